"""Checked extraction: computation graphs whose predictions are those of the whole graph."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from graphgauge.core import BadModel, GraphgaugeError, budget_bytes, make_generator
from graphgauge.execution import (
    GraphBatch,
)
from graphgauge.models.probe_errors import FORWARD_ERRORS, explain_renumbering_failure
from graphgauge.models.tolerances import (
    COARSE_TOLERANCE,
    FINE_TOLERANCE,
    is_alike,
    largest_gap,
)
from graphgauge.subgraphs import (
    HALOS,
    ComputationGraphs,
    Targets,
    needed_halo,
)

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel


#: targets cut out first, and what cutting takes at most for each node and edge it lists
_FIRST_PART_SIZE, _EXTRACTION_BYTES_PER_ITEM = (16, 160)


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
    return is_alike(here, whole, FINE_TOLERANCE)


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
