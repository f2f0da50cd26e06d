"""Capability probes: facts about a network, found by trying it on a few targets.

Two properties are tested before anything relies on them:

1. The extracted graph is the model. Its prediction must equal the whole graph's within 1e-5 of a
   probability (or of the standard deviation of the predictions). If it does not, the halo grows, at
   last to the whole graph.
2. A union does not change the model. Different copies in one union must give what each gives alone.
   If they do not (layers that normalise over all nodes), ``batch=`` is passed if forward takes it;
   otherwise copies run one by one.
"""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphgauge.core import BadModel, make_generator
from graphgauge.execution import (
    ALONE,
    TOGETHER,
    WITH_BATCH,
    Executor,
    GraphBatch,
    ProbedFeatures,
    arriving_shares,
    build_batch,
    check_finite_rows,
    list_doubtful_aggregations,
)
from graphgauge.models.probe_errors import FORWARD_ERRORS, explain_renumbering_failure
from graphgauge.models.probe_targets import evenly_spaced_rows
from graphgauge.models.tolerances import (
    is_close,
)
from graphgauge.subgraphs import (
    HALOS,
    ComputationGraphs,
    Extractor,
    MessageTrace,
    message_layers,
    needed_halo,
    select_part,
    trace_messages,
)

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel


_MAX_ARRIVING_SHARE = (
    0.75  #: messages are left out of a round where fewer than this share can arrive
)
_MOST_TRACED_EDGES = 512


# --- messages of one pass -------------------------------------------------------------------------


def count_hops(model: "BaseModel") -> int:
    """The number of hops that the user stated, or the longest chain of propagations in one forward
    pass.
    """
    if model.num_hops is not None:
        return model.num_hops
    if model.trace.calls == 0 and model.level != "graph":
        is_hidden = isinstance(model.net, torch.jit.ScriptModule)
        hidden = (
            " torch.jit hides the layers: better wrap the module that was compiled, whose edges "
            "can be masked."
            if is_hidden
            else ""
        )
        raise BadModel(
            f"{type(model.net).__name__} has no torch_geometric MessagePassing layer that runs, so "
            "how far it looks cannot be "
            f"counted. Say it: num_hops=2.{hidden}"
        )
    return model.trace.chain


def find_trace(model: "BaseModel") -> MessageTrace:
    """Observe the network on a small part of the data, or on all of it if it cannot process a small
    part.
    """
    union, executor = _small_union(model), Executor(model.call, ALONE, model.writes_input)
    try:
        return trace_messages(model.net, lambda: executor.outputs(union), union.edge_index)
    except FORWARD_ERRORS:
        return trace_messages(model.net, model.first_call, model.source.edge_index)


def find_writes_input(model: "BaseModel") -> bool:
    """Whether the network changes its input, tested on a small part of the data."""
    union = _small_union(model)
    executor = Executor(model.call, ALONE)
    tensors = [union.edge_index, union.x, *union.node_attrs.values(), *union.edge_attrs.values()]
    before = [tensor._version for tensor in tensors]
    try:
        executor.outputs(union)
    except FORWARD_ERRORS:
        return True  # it may not work on a small part: copies do no harm
    return [tensor._version for tensor in tensors] != before


def _small_union(model: "BaseModel") -> GraphBatch:
    """One probe with a few hundred edges of the data, or one graph of the list."""
    if model.level == "graph":
        graphs = model.extract_graphs(model.probes, 0, 0, "messages")
    else:
        edges = evenly_spaced_rows(
            torch.arange(model.source.num_edges, device=model.source.device), _MOST_TRACED_EDGES
        )
        part, target = select_part(model.source, model.probes[-1:].ids, edges)
        graphs = Extractor(part).extract(target, 0, HALOS.index("whole graph"))
    largest = graphs.edge_sizes.argmax()[None]
    return build_batch(graphs, largest, largest, align=1)


# --- whether copies can share a call --------------------------------------------------------------


def find_joining(model: "BaseModel") -> str:
    """Whether different copies in one union give what each gives alone."""
    hops, probes = (
        count_hops(model),
        model.probes if model.level == "graph" else model.probes[:4],
    )
    of = torch.arange(len(probes), device=model.source.device).repeat(2)
    try:
        graphs = model.extract_graphs(probes, hops, needed_halo(model.net), "messages")
        alone = _joint_rows(model, graphs, of, ALONE)
    except FORWARD_ERRORS:  # some networks cannot work on small graphs
        graphs = model.extract_graphs(probes, hops, HALOS.index("whole graph"), "messages")
        try:
            alone = _joint_rows(model, graphs, of, ALONE)
        except FORWARD_ERRORS as error:
            raise BadModel(
                explain_renumbering_failure(
                    model, f"could not be run ({type(error).__name__}: {error})"
                )
            ) from error
    check_finite_rows(alone, "probe")
    for joining in [TOGETHER, WITH_BATCH] if model.call.takes_batch else [TOGETHER]:
        if _rows_agree(model, graphs, of, joining, alone):
            return joining
    return ALONE


def _rows_agree(
    model: "BaseModel", graphs: ComputationGraphs, of: Tensor, joining: str, alone: Tensor
) -> bool:
    """Whether such a union gives the rows that the copies give alone; False if the network fails on
    it.
    """
    try:
        joint = _joint_rows(model, graphs, of, joining)
    except FORWARD_ERRORS:
        return False
    return joint.shape == alone.shape and is_close(joint, alone)


def _joint_rows(model: "BaseModel", graphs: ComputationGraphs, of: Tensor, joining: str) -> Tensor:
    """Raw rows of copies, the second half of them with their features in reverse order.  (K,
    columns)
    """
    return mirrored_rows(
        Executor(model.call, joining, model.writes_input, budget=model.executor.budget), graphs, of
    )


def mirrored_rows(executor: Executor, graphs: ComputationGraphs, of: Tensor) -> Tensor:
    """Raw rows of copies, the second half of them with their features in reverse order.  (K,
    columns)
    """
    half = len(of) // 2

    def work(union: GraphBatch) -> Tensor:
        is_turned = union.copy[union.node_copy] >= half
        last = union.graphs.sizes[union.graph_index][union.node_copy] - 1 - union.node_position
        mirrored = torch.where(is_turned, union.node_start[union.node_copy] + last, union.node_at)
        return executor.outputs(
            union.with_x(union.x.index_copy(0, union.node_at, union.x[mirrored]))
        )

    return executor.map(work, graphs, of, kind="joining")


def find_prunable_rounds(model: "BaseModel") -> tuple[bool, ...]:
    """The rounds from which messages that cannot arrive are left out.

    These are rounds in which that saves much, if the rows stay the same.
    """
    chain = model.trace.chain
    if (
        model.level == "graph"
        or model.joining != TOGETHER
        or not model.trace.calls == chain == model.hops
    ):
        return ()
    graphs = model.extract_graphs(
        model.probes,
        chain,
        min(needed_halo(model.net), HALOS.index("in and out")),
        "messages",
    )
    of = torch.arange(len(graphs), device=model.source.device).repeat(2)
    cuts = tuple(share < _MAX_ARRIVING_SHARE for share in arriving_shares(graphs, chain))
    budget = model.executor.budget
    few = Executor(model.call, TOGETHER, model.writes_input, cuts, budget=budget)
    every = Executor(model.call, TOGETHER, model.writes_input, budget=budget)
    try:
        return (
            cuts
            if is_close(mirrored_rows(few, graphs, of), mirrored_rows(every, graphs, of))
            else ()
        )
    except (BadModel, *FORWARD_ERRORS):
        return ()


def find_feature_use(model: "BaseModel") -> str:
    """Whether the network works on features that are written out only when it needs them.

    Returns:
        "linear" if it only maps them linearly, "written" if they are written out on the way, "no"
        if it gives other rows.
    """
    graphs = model.extract_graphs(model.probes[:4], model.hops, model.base_halo, "messages")
    of = torch.arange(len(graphs), device=model.source.device).repeat(2)
    seen: list[bool] = []

    def watched(union: GraphBatch) -> Tensor:
        features = ProbedFeatures(union.features, seen)
        return lazy.outputs(union.with_features(features))

    options, budget = (model.call, model.joining, model.writes_input), model.executor.budget
    plain, lazy = Executor(*options, budget=budget), Executor(*options, lazy=True, budget=budget)
    try:
        wanted = plain.map(plain.outputs, graphs, of, kind="lazy")
        with torch.no_grad():
            found = lazy.map(watched, graphs, of, kind="lazy, watched")
    except (BadModel, *FORWARD_ERRORS):
        return "no"
    if not is_close(wanted, found):
        return "no"
    return "written" if any(seen) or model.writes_input else "linear"


# --- whether messages can be masked ---------------------------------------------------------------


def find_mask_support(model: "BaseModel") -> str:
    """Test whether messages can be masked: if all are silenced, it must not matter whether there
    are edges.

    With aggregations in which a silenced message can win it does matter. Then nothing is compared,
    but messages must still be maskable. The output of a silent layer is shifted away from zero:
    rows of zeros would hide that an adjacency matrix is multiplied by them.
    """
    doubtful = list_doubtful_aggregations(model.net)
    graphs = model.extract_graphs(model.probes, model.hops, model.base_halo, "messages")

    def silent(union: GraphBatch) -> Tensor:
        factor = torch.zeros_like(union.edge_index[0], dtype=union.x.dtype)
        with ExitStack() as stack:
            for layer in message_layers(model.net):
                stack.callback(layer.register_propagate_forward_hook(_shift_from_zero).remove)
            return model.executor.outputs(
                union, lambda sent: sent.times(sent.factors(factor, 0.0)), every_message=True
            )

    def silent_without_edges(union: GraphBatch) -> Tensor:
        return silent(union.without_edges(torch.ones_like(union.edge_at, dtype=torch.bool)))

    try:
        with_edges = model.map(silent, graphs, kind="silent")
        if doubtful:
            return f"doubtful: a silenced message can win in {', '.join(doubtful)}; use drop"
        without = model.map(silent_without_edges, graphs, kind="silent")
        # moved numbers may be none that the network can work with
        is_gap = ~(with_edges.isfinite() | without.isfinite())
        with_edges, without = with_edges.where(~is_gap, 0), without.where(~is_gap, 0)
    except BadModel as error:
        return f"refused: {error}"
    except FORWARD_ERRORS as error:
        return (
            f"refused: the network cannot work without edges ({type(error).__name__}: {error}); "
            "use drop"
        )
    return (
        "exact"
        if is_close(with_edges, without)
        else "refused: edges act outside the messages of MessagePassing layers; use drop"
    )


def _shift_from_zero(layer: Any, inputs: Any, out: Any) -> Any:
    """Add the same random numbers for every node to what a layer aggregated."""
    if not isinstance(out, Tensor) or not out.is_floating_point():
        return out
    return out + torch.rand(out.shape[1:], generator=make_generator(0), dtype=torch.float64).to(out)


def find_edge_use(model: "BaseModel") -> bool:
    """Whether edges change the rows of some probe; True if the network cannot run without edges."""
    graphs = model.extract_graphs(model.probes, model.hops, model.base_halo, "messages")

    def without_edges(union: GraphBatch) -> Tensor:
        return model.executor.outputs(
            union.without_edges(torch.ones_like(union.edge_at, dtype=torch.bool))
        )

    try:
        return not is_close(
            model.map(model.executor.outputs, graphs),
            model.map(without_edges, graphs, kind="without edges"),
        )
    except FORWARD_ERRORS:
        return True
