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
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from graphgauge.core import BadModel, GraphgaugeError, budget_bytes, make_generator
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
from graphgauge.subgraphs import (
    HALOS,
    ComputationGraphs,
    Extractor,
    MessageTrace,
    Targets,
    message_layers,
    needed_halo,
    select_part,
    trace_messages,
)

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel

_Rows = TypeVar("_Rows", Tensor, Targets)

PREDICTION_TOLERANCE = 1e-5  #: of a probability, or of the SD of predictions
COARSE_TOLERANCE = 1e-3  #: of the SD of raw rows
_FINE_TOLERANCE = 1e-4  #: of the SD of raw rows, for probes on changed data
_NUM_PROBES = {"node": 12, "link": 12, "graph": 32}
_MAX_ARRIVING_SHARE = (
    0.75  #: messages are left out of a round where fewer than this share can arrive
)
_MOST_TRACED_EDGES = 512
_FIRST_PART_SIZE, _EXTRACTION_BYTES_PER_ITEM = (
    16,
    160,
)  #: targets cut out first, and what cutting takes at most for each node and edge it lists

#: what networks raise on graphs they cannot work on, such as a norm on a single node
FORWARD_ERRORS = (RuntimeError, ValueError, LookupError, AssertionError, TypeError, AttributeError)


def find_probes(model: "BaseModel", everything: Targets) -> Targets:
    """Evenly spaced targets: half of them among all, half among those at the end of the longest
    walks of messages.
    """
    count = _NUM_PROBES[model.level]
    if model.level == "graph":
        return evenly_spaced_rows(everything, count)
    deep = everything[
        _find_deep_nodes(model.source.edge_index, model.source.num_nodes)[everything.ids].any(1)
    ]
    probes = torch.cat(
        [
            evenly_spaced_rows(everything, count // 2).rows,
            evenly_spaced_rows(deep, count - count // 2).rows,
        ]
    )
    return everything.with_rows(probes.unique(dim=0))


def _find_deep_nodes(edge_index: Tensor, num_nodes: int, steps: int = 4) -> Tensor:
    """The nodes at the end of the longest walks along (or against) up to ``steps`` edges.  (N,)
    bool
    """
    ends = [torch.ones(num_nodes, dtype=torch.bool, device=edge_index.device) for _ in range(2)]
    for _ in range(steps):
        for way, (source, target) in enumerate((edge_index, edge_index.flip(0))):
            further = torch.zeros_like(ends[way])
            further[target[ends[way][source] & (source != target)]] = True
            ends[way] = further if bool(further.any()) else ends[way]
    return ends[0] | ends[1]


def evenly_spaced_rows(targets: _Rows, count: int) -> _Rows:
    """Up to ``count`` rows of ``targets``, evenly spread."""
    steps = torch.linspace(0, len(targets) - 1, count, dtype=torch.float64, device=targets.device)
    return targets[steps.round().long().unique()] if len(targets) else targets


# --- how far it looks -----------------------------------------------------------------------------


def count_hops(model: "BaseModel") -> int:
    """The number of hops that the user stated, or the longest chain of propagations in one forward
    pass.
    """
    if model.num_hops is not None:
        return model.num_hops
    if model.trace.calls == 0 and model.level != "graph":
        is_hidden = isinstance(model.net, torch.jit.ScriptModule)
        hidden = (
            " torch.jit hides the layers: better wrap the module that was compiled, whose edges can be masked."
            if is_hidden
            else ""
        )
        raise BadModel(
            f"{type(model.net).__name__} has no torch_geometric MessagePassing layer that runs, so how far it looks cannot be "
            f"counted. Say it: num_hops=2.{hidden}"
        )
    return model.trace.chain


def find_trace(model: "BaseModel") -> MessageTrace:
    """Observe the network on a small part of the data, or on all of it if it cannot process a small
    part.
    """
    union, engine = _small_union(model), Executor(model.call, None, ALONE, model.writes_input)
    try:
        return trace_messages(model.net, lambda: engine.outputs(union), union.edge_index)
    except FORWARD_ERRORS:
        return trace_messages(model.net, model.first_call, model.source.edge_index)


def find_writes_input(model: "BaseModel") -> bool:
    """Whether the network changes its input, tested on a small part of the data."""
    union = _small_union(model)
    engine = Executor(model.call, None, ALONE)
    tensors = [union.edge_index, union.x, *union.node_attrs.values(), *union.edge_attrs.values()]
    before = [tensor._version for tensor in tensors]
    try:
        engine.outputs(union)
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
        Executor(model.call, model.executor.budget, joining, model.writes_input), graphs, of
    )


def mirrored_rows(engine: Executor, graphs: ComputationGraphs, of: Tensor) -> Tensor:
    """Raw rows of copies, the second half of them with their features in reverse order.  (K,
    columns)
    """
    half = len(of) // 2

    def work(union: GraphBatch) -> Tensor:
        is_turned = union.copy[union.node_copy] >= half
        last = union.graphs.sizes[union.graph_index][union.node_copy] - 1 - union.node_position
        mirrored = torch.where(is_turned, union.node_start[union.node_copy] + last, union.node_at)
        return engine.outputs(union.with_x(union.x.index_copy(0, union.node_at, union.x[mirrored])))

    return engine.map(work, graphs, of, kind="joining")


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
    few = Executor(model.call, model.executor.budget, TOGETHER, model.writes_input, cuts)
    every = Executor(model.call, model.executor.budget, TOGETHER, model.writes_input)
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
        "linear" if it only maps them linearly, "written" if they are written out on the way, "no" if it gives other rows.
    """
    graphs = model.extract_graphs(model.probes[:4], model.hops, model.base_halo, "messages")
    of = torch.arange(len(graphs), device=model.source.device).repeat(2)
    seen: list[bool] = []

    def watched(union: GraphBatch) -> Tensor:
        features = ProbedFeatures(union.features, seen)
        return lazy.outputs(union.with_features(features))

    plain = Executor(model.call, model.executor.budget, model.joining, model.writes_input)
    lazy = Executor(model.call, model.executor.budget, model.joining, model.writes_input, lazy=True)
    try:
        wanted = plain.map(plain.outputs, graphs, of, kind="lazy")
        with torch.no_grad():
            found = lazy.map(watched, graphs, of, kind="lazy, watched")
    except (BadModel, *FORWARD_ERRORS):
        return "no"
    if not is_close(wanted, found):
        return "no"
    return "written" if any(seen) or model.writes_input else "linear"


# --- whether an extracted graph is the model ------------------------------------------------------


def find_halo(model: "BaseModel") -> int:
    """The smallest halo, from what the layers are known to need upwards, for which all probes
    pass.
    """
    if model.level == "graph":
        return HALOS.index("none")
    for halo in range(needed_halo(model.net), len(HALOS)):
        if _is_extraction_exact(
            model, model.extract_graphs(model.probes, model.hops, halo, "messages")
        ):
            return halo
    raise BadModel(explain_renumbering_failure(model, "gives other predictions"))


def explain_renumbering_failure(model: "BaseModel", found: str) -> str:
    """The error message for a network that fails, or gives other results, if nodes and edges are
    reordered.
    """
    source = model.source
    fits_both = (
        [name for name in source.node_attrs if name != "x"]
        if torch.equal(source.node_ptr, source.edge_ptr)
        else []
    )
    advice = [
        f" data.{name} has a row for each node and for each edge, and counts as the nodes': call it edge_{name} if it is the "
        "edges'."
        for name in fits_both
    ]
    return (
        f"{type(model.net).__name__} {found} when nodes and edges are renumbered, so it cannot be evaluated on copies or parts of "
        "the graph. Does it keep something for each node or edge by its position, or need its edges in a certain order? Store "
        f"such things in data, one row per node or edge, where they are cut along.{''.join(advice)}"
    )


def _is_extraction_exact(model: "BaseModel", graphs: ComputationGraphs) -> bool:
    """Whether all extracted graphs give the whole graph's prediction; False if the network fails on
    one.
    """
    try:
        return not bool(_differs_from_whole_graph(model, graphs).any()) and _does_follow_edits(
            model, graphs
        )
    except FORWARD_ERRORS as error:
        if bool((graphs.halo < HALOS.index("whole graph")).any()):
            return False
        if isinstance(error, GraphgaugeError):
            raise
        raise BadModel(
            explain_renumbering_failure(
                model, f"could not be run ({type(error).__name__}: {error})"
            )
        ) from error


def _does_follow_edits(model: "BaseModel", graphs: ComputationGraphs) -> bool:
    """Whether extracted graphs follow the whole graph if it has random features and a third of its
    edges less.

    Zero or constant features, or saturated outputs, can hide that an extracted graph lacks
    something that edits would show.
    """
    random = make_generator(0)
    scale = float(model.source.x.std(correction=0) + model.source.x.abs().mean()) or 1.0
    x = (
        torch.randn(model.source.x.shape, generator=random, dtype=model.source.x.dtype).to(
            model.source.device
        )
        * scale
    )
    gone = (torch.rand(model.source.num_edges, generator=random) < 1 / 3).to(model.source.device)

    def edit(union: GraphBatch) -> GraphBatch:
        rows = x[graphs.node[union.node_row]]
        return union.with_x(union.x.index_copy(0, union.node_at, rows)).without_edges(
            gone[graphs.edge[union.edge_row]]
        )

    try:
        whole = model.trial_rows(graphs.targets, x, ~gone)
    except FORWARD_ERRORS:  # the network does not take other data: nothing to compare with
        return True
    here = model.map(lambda union: model.executor.outputs(edit(union)), graphs, kind="trial")
    return is_alike(here, whole, _FINE_TOLERANCE)


def _differs_from_whole_graph(model: "BaseModel", graphs: ComputationGraphs) -> Tensor:
    """Which extracted graphs give another prediction than the whole graph.  (T,) bool

    The raw rows are compared too, coarsely (1e-3 of their standard deviation): a probability of
    0.9999999 would hide a wrong graph, which shows as soon as an edge is removed.
    """
    raw, whole = model.map(model.executor.outputs, graphs), model.whole_rows(graphs.targets)
    gap = largest_gap(model.interpret(raw), model.interpret(whole))
    return (gap > model.tolerance()) | (
        largest_gap(raw, whole) > COARSE_TOLERANCE * model.raw_spread
    )


def find_raw_spread(model: "BaseModel") -> float:
    """The standard deviation of the raw rows, at least their resolution.

    A constant network differs from itself by rounding.
    """
    rows = model.whole_rows(model.population_rows).double()
    rows = rows[rows.isfinite().all(1)]
    resolution = 1e-3 * float(rows.abs().max()) if rows.numel() else 1.0
    return max(float(rows.std(0, correction=0).max()) if len(rows) else 0.0, resolution)


def extract_checked_graphs(model: "BaseModel", target: Targets, scope: str) -> ComputationGraphs:
    """Computation graphs whose predictions are those of the whole graph. If one is not, its halo
    grows.
    """
    halo = model.base_halo
    model.check_room(target, halo)
    graphs = _extract_in_parts(model, target, halo, scope)
    while halo < len(HALOS) - 1 and model.level != "graph" and len(graphs):
        wrong = (
            (_differs_from_whole_graph(model, graphs) & (graphs.halo == halo)).nonzero().squeeze(1)
        )
        if not len(wrong):
            break
        halo += 1
        model.check_room(target[wrong], halo)
        graphs = _replace_graphs(
            graphs, wrong, model.extract_graphs(target[wrong], model.hops, halo, scope)
        )
    return graphs


def _extract_in_parts(
    model: "BaseModel", target: Targets, halo: int, scope: str
) -> ComputationGraphs:
    """Computation graphs, extracted in parts that fit into the budget, whose size follows from the
    first few.
    """
    budget = budget_bytes(model.executor.budget, model.source.device)
    most = (
        len(target) * (model.source.num_nodes + model.source.num_edges) * _EXTRACTION_BYTES_PER_ITEM
    )
    if model.level == "graph" or most <= budget:
        return model.extract_graphs(target, model.hops, halo, scope)
    parts, start, size = [], 0, max(1, min(_FIRST_PART_SIZE, budget * len(target) // most))
    while start < len(target):
        parts.append(model.extract_graphs(target[start : start + size], model.hops, halo, scope))
        start += size
        largest = max((len(part.node) + len(part.edge)) / len(part) for part in parts)
        size = max(1, int(budget / (2 * largest * _EXTRACTION_BYTES_PER_ITEM)))
    return ComputationGraphs.join(parts)


def _replace_graphs(
    graphs: ComputationGraphs, index: Tensor, others: ComputationGraphs
) -> ComputationGraphs:
    """``graphs`` with those at ``index`` replaced by ``others``."""
    order = torch.arange(len(graphs), device=index.device)
    order[index] = len(graphs) + torch.arange(len(index), device=index.device)
    return ComputationGraphs.join([graphs, others]).take(order)


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
        is_gap = ~(
            with_edges.isfinite() | without.isfinite()
        )  # moved numbers may be none that the network can work with
        with_edges, without = with_edges.where(~is_gap, 0), without.where(~is_gap, 0)
    except BadModel as error:
        return f"refused: {error}"
    except FORWARD_ERRORS as error:
        return f"refused: the network cannot work without edges ({type(error).__name__}: {error}); use drop"
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


# --- comparing rows -------------------------------------------------------------------------------


def is_close(first: Tensor, second: Tensor) -> bool:
    """Whether rows are equal within 1e-5 of the larger of each number and its column's median
    size.
    """
    if not first.numel():
        return True
    size = torch.maximum(first.abs(), second.abs()).nan_to_num(posinf=0.0)
    usual = size.reshape(len(size), -1).median(0).values.reshape(size.shape[1:])
    return bool(
        (largest_gap(first, second, PREDICTION_TOLERANCE * torch.maximum(size, usual)) <= 0).all()
    )


def is_alike(here: Tensor, whole: Tensor, share: float) -> bool:
    """Whether rows are equal within ``share`` of their standard deviation, or 1e-5 of the largest.

    Columns that are not finite are left out.
    """
    finite = whole[:, whole.isfinite().all(0)].double()
    if not finite.numel():
        return True
    allowed = max(
        share * float(finite.std(0, correction=0).max()),
        PREDICTION_TOLERANCE * float(finite.abs().max()),
    )
    return bool((largest_gap(here, whole) <= allowed).all())


def largest_gap(first: Tensor, second: Tensor, allowed: Tensor | float = 0.0) -> Tensor:
    """Largest difference in each row beyond what is allowed; equal infinities do not differ.  (T,
    ...) -> (T,)
    """
    gap = torch.where(first == second, torch.zeros_like(first), (first - second).abs() - allowed)
    return gap.reshape(len(gap), -1).amax(1) if gap.numel() else gap.new_zeros(len(gap))
