"""Removal of edges.

``removal="mask"`` multiplies the messages of an edge by 0 and leaves normalisation and attention
unchanged; "drop" removes the edge from the graph. Each step removes one *unit*: one directed edge,
or with ``unit="undirected"`` all relevant edges between two nodes, in both directions.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from graphgauge.core import BadModel, BadSetting
from graphgauge.execution import SCALED_ROW_LAYERS, TOGETHER, GraphBatch, GraphCopies
from graphgauge.models import FORWARD_ERRORS, BaseModel, is_close
from graphgauge.perturbation.deletion_curves import (
    CurveLines,
    GraphEdits,
    steps_between,
    steps_of_edits,
)
from graphgauge.perturbation.edit_orders import random_orders
from graphgauge.perturbation.incremental_removal import VersionedCopies
from graphgauge.perturbation.removal_routes import RemovalRoutes
from graphgauge.subgraphs import HALOS, ComputationGraphs, message_layers

_REMOVALS = ("mask", "drop")
_UNITS = ("directed", "undirected")
_NUM_TRIAL_STEPS = 6


@dataclass(frozen=True)
class EdgeEdits(GraphEdits):
    """Removal of edges; each target is one case."""

    graphs: ComputationGraphs
    removal: str
    #: (sum of edges,) number of each relevant edge's unit in its own graph; -1 for other edges
    unit_of: Tensor
    num_units: Tensor  #: (T,)

    @staticmethod
    def from_graphs(
        model: BaseModel, graphs: ComputationGraphs, removal: str = "mask", unit: str = "directed"
    ) -> "EdgeEdits":
        """Edits of the relevant edges of ``graphs``.

        Args:
            model: The wrapped network.
            graphs: Computation graphs of T targets.
            removal: "mask" or "drop".
            unit: "directed" or "undirected".

        Raises:
            BadSetting: The removal or the unit is unknown.
            BadModel: The network's messages cannot be masked exactly.
        """
        _check_removal(model, removal)
        if unit not in _UNITS:
            raise BadSetting(
                f"removal_unit must be 'directed' or 'undirected', but {unit!r} was given."
            )
        return EdgeEdits(
            graphs, removal, *(_directed_units if unit == "directed" else _undirected_units)(graphs)
        )

    @property
    def kind(self) -> str:  # type: ignore[override]
        """Name of the edits in the memory plan."""
        return f"{self.removal} edges"

    @property
    def drops(self) -> bool:  # type: ignore[override]
        """Whether edges are dropped, not masked."""
        return self.removal == "drop"

    @property
    def graph(self) -> Tensor:  # type: ignore[override]
        """Case q is target q. (T,)"""
        return torch.arange(len(self.graphs), device=self.num_units.device)

    @property
    def candidates(self) -> Tensor:
        """Number of units of each target. (T,)"""
        return self.num_units

    def changes(self, lines: CurveLines) -> Tensor:
        """Every removal may change the prediction. (M, K) bool"""
        return lines.order >= 0

    def edit(self, union: GraphBatch, lines: CurveLines, line: Tensor, step: Tensor) -> GraphBatch:
        """Remove the units that come first in each copy's line."""
        distinct, line_of_copy = line.unique(return_inverse=True)
        when, first = steps_of_edits(lines.order[distinct], self.num_units[lines.case[distinct]])
        unit = self.unit_of[union.edge_row]
        is_relevant = unit >= 0
        turn = when[(first[line_of_copy][union.edge_copy] + unit)[is_relevant]]
        is_removed = is_relevant.masked_scatter(
            is_relevant, (turn > 0) & (turn <= step[union.edge_copy][is_relevant])
        )
        if self.removal == "drop":
            return union.without_edges(is_removed)
        return union.with_mask((~is_removed).to(union.features.like.dtype))

    @cached_property
    def routes(self) -> RemovalRoutes:
        """Index of the edges of all graphs."""
        return RemovalRoutes(self.graphs, self.unit_of, self.num_units)

    def incremental_copies(
        self, model: BaseModel, lines: CurveLines, line: Tensor, step: Tensor
    ) -> GraphCopies | None:
        """Versions of single nodes in place of copies, if that takes less memory and gives the same
        outputs.
        """
        if not _can_remove_incrementally(model, self):
            return None
        align = model.executor.align(line)
        versioned = self.versioned_copies(model, lines, line, step)
        whole = GraphCopies(self.graphs, versioned.graph_index)
        is_smaller = _count_nodes_and_edges(versioned, align) < _count_nodes_and_edges(whole, align)
        return versioned if is_smaller else None

    def versioned_copies(
        self, model: BaseModel, lines: CurveLines, line: Tensor, step: Tensor
    ) -> VersionedCopies:
        """The points as versions of single nodes.

        Args:
            model: The wrapped network, of which the number of hops is used.
            lines: The lines.
            line: The line of each point (P,).
            step: The number of removed units of each point (P,); 0 is the unedited graph.
        """
        has_degrees = self.graphs.widest_halo > HALOS.index("none")
        begins = 0 if self.removal == "drop" and has_degrees else 1
        return VersionedCopies(
            self.graphs,
            lines.case[line],
            lines,
            line,
            step,
            self.routes,
            model.hops,
            begins,
            self.removal == "drop",
        )

    def unit_scores(self, edge_score: Tensor) -> Tensor:
        """Sum the scores of each unit's edges. (sum of relevant edges,) -> (sum of units,)"""
        is_relevant = self.unit_of >= 0
        first = (self.num_units.cumsum(0) - self.num_units).repeat_interleave(
            self.graphs.edge_sizes
        )
        total = edge_score.new_zeros(int(self.num_units.sum()))
        return total.index_add(0, (first + self.unit_of)[is_relevant], edge_score)


def _count_nodes_and_edges(copies: GraphCopies, align: int) -> int:
    """Number of nodes and edges of all copies."""
    nodes, edges, _ = copies.sizes(align)
    return int(nodes.sum() + edges.sum())


def _can_remove_incrementally(model: BaseModel, edits: EdgeEdits) -> bool:
    """Whether versions of nodes can replace copies of graphs.

    They can for chains of local layers, if a trial on the model confirms it. On a CPU the layers
    must also be such that no bit of a message depends on its position (see `message_pruning`).
    """
    is_local = edits.graphs.widest_halo <= HALOS.index("in") and model.trace.chain == model.hops > 0
    is_plain = (
        model.level != "graph"
        and model.joining == TOGETHER
        and model.trace.flow == "source_to_target"
    )
    has_place = model.source.device.type == "cpu" and any(
        type(layer) not in SCALED_ROW_LAYERS for layer in message_layers(model.net)
    )
    return (
        is_local
        and is_plain
        and not has_place
        and model.cached_fact(
            f"unfolds, {edits.removal}", lambda: _try_incremental_removal(model, edits.removal)
        )
    )


def _try_incremental_removal(model: BaseModel, removal: str) -> bool:
    """Try on a few graphs whether versions of nodes give the outputs of copies."""
    graphs = model.extract_graphs(model.probes, model.hops, model.base_halo, "messages")
    edits = EdgeEdits(graphs, removal, *_directed_units(graphs))
    order = random_orders(edits.candidates, list(range(len(graphs))), _NUM_TRIAL_STEPS, 0, 2)
    order = order.flatten(0, 1)
    lines = CurveLines(torch.arange(len(graphs), device=order.device).repeat_interleave(2), order)
    line, step = steps_between(torch.zeros_like(lines.case), (order >= 0).sum(1))
    copies, engine = GraphCopies(graphs, lines.case[line]), model.executor
    model.prepare_engine()

    def edited(union: GraphBatch) -> Tensor:
        return engine.outputs(edits.edit(union, lines, line[union.copy], step[union.copy]))

    try:
        expected = engine.rows(edited, copies, f"{edits.kind}, tried")
        versioned = edits.versioned_copies(model, lines, line, step)
        return is_close(expected, engine.rows(engine.outputs, versioned, f"{edits.kind}, unfolded"))
    except (BadModel, *FORWARD_ERRORS):
        return False


def _directed_units(graphs: ComputationGraphs) -> tuple[Tensor, Tensor]:
    """Make each relevant edge a unit."""
    place = graphs.edge_position
    return torch.where(place < graphs.num_edges[graphs.edge_owner], place, -1), graphs.num_edges


def _undirected_units(graphs: ComputationGraphs) -> tuple[Tensor, Tensor]:
    """Make all relevant edges of a graph between the same two nodes a unit, in order of first
    edge.
    """
    single, _ = _directed_units(graphs)
    relevant = (single >= 0).nonzero()[:, 0]
    owner = graphs.edge_owner[relevant]
    ends = graphs.edge_index[:, relevant]
    width = int(graphs.edge_index.max()) + 1 if graphs.edge_index.numel() else 1
    pair = (owner * width + ends.amin(0)) * width + ends.amax(0)
    _, group = pair.unique(return_inverse=True)
    place = torch.arange(len(group), device=group.device)
    first_edge = torch.full((len(group),), len(group), device=group.device).scatter_reduce(
        0, group, place, "amin"
    )
    is_first = first_edge[group] == place
    num_units = torch.bincount(owner[is_first], minlength=len(graphs))
    number = is_first.cumsum(0) - 1 - (num_units.cumsum(0) - num_units)[owner]
    return single.index_copy(0, relevant, number[first_edge[group]]), num_units


def _check_removal(model: BaseModel, removal: str) -> None:
    """Raise an error for an unknown removal, or for masks if messages cannot be masked."""
    if removal not in _REMOVALS:
        raise BadSetting(f"edge_removal must be 'mask' or 'drop', but {removal!r} was given.")
    if removal == "mask" and model.mask_support != "exact":
        raise BadModel(
            f"edge_removal='mask' is not possible for {type(model.net).__name__}: "
            f"{model.mask_support}."
        )
