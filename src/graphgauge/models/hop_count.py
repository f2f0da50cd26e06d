"""Number of hops L that matter to a target: the counted hops, and more if features further away
matter.
"""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from graphgauge.core import make_generator
from graphgauge.execution import Executor, GraphBatch
from graphgauge.models.capability_probes import count_hops
from graphgauge.models.probe_errors import FORWARD_ERRORS
from graphgauge.models.tolerances import is_close
from graphgauge.subgraphs import ComputationGraphs, needed_halo

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel

_MAX_EXTRA_HOPS = 4


def find_hops(model: "BaseModel") -> int:
    """The counted hops, and more if features further away matter because of edges, not because all
    nodes do.
    """
    counted = count_hops(model)
    if model.level == "graph" or not features_matter_beyond(model, counted):
        return counted
    if model.num_hops is not None:
        warnings.warn(
            f"num_hops={counted} was given, but the prediction depends on features further away.",
            stacklevel=2,
        )
        return counted
    if _does_mix_all_nodes(model, counted):
        return counted
    for hops in range(counted + 1, 1 + max(counted + _MAX_EXTRA_HOPS, model.trace.calls)):
        if not features_matter_beyond(model, hops):
            return hops
    return counted


def features_matter_beyond(model: "BaseModel", hops: int) -> bool:
    """Whether features of nodes ``hops + 1`` away matter for a probe; False if no probe has such a
    node.
    """
    graphs = model.extract_graphs(model.probes, hops + 1, needed_halo(model.net), "messages")
    return _do_features_matter(model, graphs, graphs.hop == hops + 1)


def _does_mix_all_nodes(model: "BaseModel", hops: int) -> bool:
    """Whether features of other nodes matter even without any edge."""
    graphs = model.extract_graphs(model.probes, hops + 1, needed_halo(model.net), "messages")
    return _do_features_matter(
        model,
        graphs,
        graphs.hop > 0,
        lambda union: union.without_edges(torch.ones_like(union.edge_at, dtype=torch.bool)),
    )


def _do_features_matter(
    model: "BaseModel",
    graphs: ComputationGraphs,
    is_far: Tensor,
    edit: Callable[[GraphBatch], GraphBatch] | None = None,
) -> bool:
    """Whether an output depends on the features of the nodes under ``is_far``.

    It does if a gradient reaches one of them, or if other features change the output. Gradients are
    those at random features, for which no unit is silent. The other features are those of other
    nodes: this serves networks that do not work with just any number, and finds effects without a
    gradient.
    """
    executor = Executor(model.call, model.joining, model.writes_input, budget=model.executor.budget)
    x, edited = model.source.x, edit or (lambda union: union)
    scale = float(x.std(correction=0) + x.abs().mean()) or 1.0

    def by_gradient(union: GraphBatch) -> Tensor:
        noise = (
            torch.randn(union.x.shape, generator=make_generator(0), dtype=torch.float64).to(union.x)
            * scale
        )
        return _does_gradient_reach(
            executor.outputs, edited(union.with_x(noise)), is_far[union.node_row]
        )

    def exchanged(union: GraphBatch) -> Tensor:
        (far,) = is_far[union.node_row].nonzero(as_tuple=True)
        other = (union.graphs.node[union.node_row[far]] + len(x) // 2) % len(x)
        return executor.outputs(
            edited(union.with_x(union.x.index_copy(0, union.node_at[far], x[other])))
        )

    return _try_probe(lambda: bool(executor.map(by_gradient, graphs).any())) or _try_probe(
        lambda: (
            not is_close(
                executor.map(lambda union: executor.outputs(edited(union)), graphs),
                executor.map(exchanged, graphs),
            )
        )
    )


def _does_gradient_reach(
    outputs: Callable[[GraphBatch], Tensor], union: GraphBatch, is_far: Tensor
) -> Tensor:
    """Whether a gradient of a copy's output reaches one of its nodes under ``is_far`` (num_nodes,).
    (K,) bool

    The gradient is that of a random combination of the output's columns, since probabilities add up
    to a constant.
    """
    with torch.enable_grad():
        x = union.x.detach().requires_grad_(True)
        rows = outputs(union.with_x(x))
        weight = torch.rand(
            rows.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64
        ).to(rows)
        (grad,) = (
            torch.autograd.grad((rows * weight).sum(), x, allow_unused=True)
            if rows.requires_grad
            else (None,)
        )
    reached = (
        torch.zeros_like(is_far) if grad is None else (grad[union.node_at] != 0).any(1) & is_far
    )
    return torch.bincount(union.node_copy[reached], minlength=len(union)) > 0


def _try_probe(look: Callable[[], bool]) -> bool:
    """The result of a probe; False if the network cannot process its input."""
    try:
        return look()
    except FORWARD_ERRORS:
        return False
