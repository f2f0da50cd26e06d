"""A group of targets with all their explanations, on the way to their curves: statuses, orders, sides."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from graphgauge.core.errors import GraphgaugeWarning
from graphgauge.core.xplanation import Target
from graphgauge.evaluation.alignment import edge_scores, feature_scores, priority
from graphgauge.evaluation.entries import Entry
from graphgauge.evaluation.extras import add_extra_values
from graphgauge.evaluation.settings import Settings
from graphgauge.evaluation.sides import Judged, Reading, Side, judged
from graphgauge.evaluation.substitution import feature_side
from graphgauge.explainers.base import can_mask
from graphgauge.metrics import Metric
from graphgauge.models import BaseModel, ComputationGraphs
from graphgauge.perturbation import EdgeEdits, References, orders_by_score

Statuses = list[list[str]]  #: why target t of entry e cannot be judged; '' if it can
SeedOf = Callable[..., int]  #: (target, what for ...) -> seed


@dataclass(frozen=True)
class Group:
    """Some targets, and the entries that explain them."""

    model: BaseModel
    settings: Settings
    metrics: tuple[Metric[Any], ...]
    entries: list[Entry]
    targets: list[Target]
    graphs: ComputationGraphs
    reading: Reading
    seed_of: SeedOf

    @staticmethod
    def of(
        model: BaseModel,
        settings: Settings,
        metrics: tuple[Metric[Any], ...],
        entries: list[Entry],
        targets: list[Target],
        seed_of: SeedOf,
        label: Tensor | None = None,
    ) -> "Group":
        """With the computation graphs and first predictions of the targets; ``label`` (T,): see `Reading.of`."""
        graphs = model.computation_graphs(targets, settings.edge_scope, lean=settings.edge_removal == "mask")
        reading = Reading.of(model, model.asked(graphs.target), settings, label)
        return Group(model, settings, metrics, entries, targets, graphs, reading, seed_of)

    def edges(self) -> tuple[Judged | None, Statuses]:
        """What was judged of the edges, and why some were not."""
        counts = self.graphs.num_edges.tolist()
        status = self.statuses("edge", counts)
        if self.settings.edge_removal == "mask" and self.model.mask_support != "exact":
            return None, [[why or "no_mask" for why in row] for row in status]
        valid = is_valid(status, self.graphs.node.device)
        (used,) = valid.any(1).nonzero(as_tuple=True)
        if not len(used):
            return None, status
        edits = EdgeEdits.of(self.model, self.graphs.take(used), self.settings.edge_removal, self.settings.removal_unit)
        seeds = [self.seed_of(self.targets[t], "edges") for t in used.tolist()]
        side = Side(edits, used, seeds, [None] * len(used), torch.zeros_like(used))

        def orders(entries: Iterable[int], size: int) -> Tensor:
            return self.edge_orders(edits, used, seeds, status, entries, size)

        return self.judged("edge", side, orders, valid), status

    def features(self, references: References) -> tuple[Judged | None, Statuses]:
        """What was judged of the features, and why some were not."""
        has_reference = references.count().tolist()
        width = self.graphs.source.x.size(1)
        status = [
            [why or ("" if has else "no_reference") for why in row]
            for row, has in zip(self.statuses("feature", [width] * len(self.targets)), has_reference, strict=True)
        ]
        valid = is_valid(status, self.graphs.node.device)
        if not bool(valid.any()):
            return None, status
        seed_of = partial(reference_seed, self.seed_of, self.targets)
        side = feature_side(self.model, self.graphs, references, self.reading, self.settings, seed_of)
        return self.judged("feature", side, partial(self.feature_orders, status), valid), status

    def statuses(self, side: str, counts: list[int]) -> Statuses:
        """Why one side of each explanation cannot be judged, given each target's number of things to score."""
        return [
            [entry.status(target, side, count) for entry in self.entries]
            for target, count in zip(self.targets, counts, strict=True)
        ]

    def edge_orders(
        self, edits: EdgeEdits, used: Tensor, seeds: list[int], status: Statuses, entries: Iterable[int], size: int
    ) -> Tensor:
        """The first units of some entries by score; equal scores in an order that all explainers share.  (T, entries, size)"""
        found = []
        for e in entries:
            entry, order = self.entries[e], self.no_order(size)
            parts = [
                edge_scores(entry.xs[self.targets[t]], graph) if not status[t][e] else graph.x.new_zeros(len(graph.edges))
                for t, graph in ((t, self.graphs[t]) for t in used.tolist())
            ]
            order[used] = orders_by_score(self.ranked(edits.unit_scores(torch.cat(parts))), edits.num_units, seeds, size)
            found.append(order)
        return torch.stack(found, 1)

    def feature_orders(self, status: Statuses, entries: Iterable[int], size: int) -> Tensor:
        """The first features of some entries by pooled score; equal scores in an order that all share.  (T, entries, size)"""
        found, pooling = [], self.settings.pooling
        for e in entries:
            entry, order = self.entries[e], self.no_order(size)
            found.append(order)
            rows = [t for t in range(len(self.targets)) if not status[t][e]]
            if not rows:
                continue
            graphs = [self.graphs[t] for t in rows]
            parts = [priority(feature_scores(entry.xs[graph.target], graph), graph.target_rows, pooling) for graph in graphs]
            sizes = torch.tensor([len(part) for part in parts], device=order.device)
            seeds = [self.seed_of(graph.target, "features") for graph in graphs]
            order[rows] = orders_by_score(self.ranked(torch.cat(parts)), sizes, seeds, size)
        return torch.stack(found, 1)

    def no_order(self, size: int) -> Tensor:
        """Room for the orders of one entry.  (T, size)"""
        return torch.full((len(self.targets), size), -1, device=self.graphs.node.device)

    def ranked(self, score: Tensor) -> Tensor:
        """Scores as they sort: signed, or by magnitude."""
        return score.abs() if self.settings.order == "magnitude" else score

    def judged(self, name: str, side: Side, orders: Callable[[Iterable[int], int], Tensor], valid: Tensor) -> Judged:
        """One side of all explanations, with the metrics beside the paper's."""
        order = orders(range(len(self.entries)), self.settings.cap)
        found = judged(self.model, side, order, valid, self.reading, self.settings)

        def scores(t: int, e: int) -> Tensor:
            return (edge_scores if name == "edge" else feature_scores)(
                self.entries[e].xs[self.targets[t]], self.graphs[t]
            ).flatten()

        def full_order(e: int) -> Tensor:
            return orders([e], int(side.candidates.max()))[:, 0]

        add_extra_values(self.model, found, self.metrics, scores, full_order, self.settings)
        return found.on_cpu()


def reference_seed(seed_of: SeedOf, targets: list[Target], t: int, reference: Any, purpose: str) -> int:
    """The seed of what is drawn for one target and reference."""
    return seed_of(targets[t], "features", reference, purpose)


def is_valid(status: Statuses, device: torch.device) -> Tensor:
    """Which (target, entry) can be judged.  (T, E) bool"""
    return torch.tensor([[not why for why in row] for row in status], device=device)


def warn_of_unmeasured_edges(model: BaseModel, settings: Settings, stacklevel: int = 2) -> None:
    """Say, before anything is run, that edges cannot be judged by masks."""
    wants_masks = "edge" in settings.curve_sides and settings.edge_removal == "mask" and model.source.num_edges
    if wants_masks and model.mask_support != "exact":
        warnings.warn(
            f"edges are not judged: edge_removal='mask' is not possible for {type(model.net).__name__} ({model.mask_support}). "
            f"Use Evaluator(model, edge_removal='drop'){tail_for(model)}.",
            GraphgaugeWarning,
            stacklevel=stacklevel + 1,
        )


def tail_for(model: BaseModel) -> str:
    """With which explainers, where not all give edges scores."""
    return "" if can_mask(model) else " with explainers that need no masks, such as Occlusion and RandomExplainer"
