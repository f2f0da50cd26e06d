"""A group of targets with all their explanations, on the way to their curves: statuses, orders,
sides.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from graphgauge.core import GraphgaugeWarning, Target
from graphgauge.evaluation.baseline_prediction import BaselinePrediction
from graphgauge.evaluation.candidate_scores import edge_scores, feature_scores, priority_vector
from graphgauge.evaluation.curve_measurement import CurveCases
from graphgauge.evaluation.curve_metrics import SideValues, score_curves
from graphgauge.evaluation.explanation_set import ExplanationSet
from graphgauge.evaluation.feature_references import feature_cases, value_directions
from graphgauge.evaluation.random_comparison import measure_curves
from graphgauge.evaluation.settings import Settings
from graphgauge.explainers import RandomExplainer, can_mask_messages
from graphgauge.metrics import AnyMetric
from graphgauge.models import BaseModel
from graphgauge.perturbation import (
    EdgeEdits,
    References,
    count_feature_candidates,
    draw_uniform,
    orders_by_score,
    random_orders_within_blocks,
)
from graphgauge.subgraphs import ComputationGraph, ComputationGraphs

_StatusTable = list[list[str]]  #: why target t of entry e cannot be judged; '' if it can
_TargetSeedFunction = Callable[..., int]  #: (target, what for ...) -> seed


@dataclass(frozen=True)
class TargetBatch:
    """Some targets, and the entries that explain them."""

    model: BaseModel
    settings: Settings
    metrics: tuple[AnyMetric, ...]
    entries: list[ExplanationSet]
    targets: list[Target]
    graphs: ComputationGraphs
    baseline: BaselinePrediction
    seed_of: _TargetSeedFunction

    @staticmethod
    def from_targets(
        model: BaseModel,
        settings: Settings,
        metrics: tuple[AnyMetric, ...],
        entries: list[ExplanationSet],
        targets: list[Target],
        seed_of: _TargetSeedFunction,
        label: Tensor | None = None,
    ) -> "TargetBatch":
        """Extract the computation graphs of the targets, and predict them.

        Args:
            model: The wrapped network.
            settings: The settings of the evaluation.
            metrics: The metrics of each side.
            entries: The explanations, by explainer.
            targets: T targets.
            seed_of: Gives the seed of what is drawn for a target.
            label: The explained class of each target; by default the predicted one.  (T,)
        """
        graphs = model.computation_graphs(
            targets, settings.edge_scope, lean=settings.edge_removal == "mask"
        )
        baseline = BaselinePrediction.from_model(model, graphs.targets, settings, label)
        return TargetBatch(model, settings, metrics, entries, targets, graphs, baseline, seed_of)

    def score_edges(self) -> tuple[SideValues | None, _StatusTable]:
        """What was judged of the edges, and why some were not."""
        counts = self.graphs.num_edges.tolist()
        status = self.statuses("edge", counts)
        if self.settings.edge_removal == "mask" and self.model.mask_support != "exact":
            return None, [[why or "no_mask" for why in row] for row in status]
        valid = _valid_mask(status, self.graphs.node.device)
        (used,) = valid.any(1).nonzero(as_tuple=True)
        if not len(used):
            return None, status
        edits = EdgeEdits.from_graphs(
            self.model,
            self.graphs.take(used),
            self.settings.edge_removal,
            self.settings.removal_unit,
        )
        seeds = [self.seed_of(self.targets[t], "edges") for t in used.tolist()]
        # edges have no reference: either way, unless one is stated
        way = value_directions(torch.zeros_like(used), self.settings.direction)
        cases = CurveCases(
            edits,
            used,
            seeds,
            [None] * len(used),
            way if self.baseline.label is None else torch.zeros_like(way),
        )

        def orders(entries: Iterable[int], size: int) -> Tensor:
            return self.edge_orders(edits, used, seeds, status, entries, size)

        return self.score_side("edge", cases, orders, valid), status

    def score_features(self, references: References) -> tuple[SideValues | None, _StatusTable]:
        """What was judged of the features, and why some were not."""
        has_reference = references.count().tolist()
        width = self.graphs.source.x.size(1)
        status = [
            [why or ("" if has else "no_reference") for why in row]
            for row, has in zip(
                self.statuses("feature", [width] * len(self.targets)), has_reference, strict=True
            )
        ]
        valid = _valid_mask(status, self.graphs.node.device)
        if not bool(valid.any()):
            return None, status
        seed_of = partial(reference_seed, self.seed_of, self.targets)
        cases, redrawn = feature_cases(
            self.model, self.graphs, references, self.baseline, self.settings, seed_of
        )
        return self.score_side(
            "feature", cases, partial(self.feature_orders, status), valid, redrawn
        ), status

    def statuses(self, side: str, counts: list[int]) -> _StatusTable:
        """Why one side of each explanation cannot be judged, given each target's number of things
        to score.
        """
        return [
            [entry.status(target, side, count) for entry in self.entries]
            for target, count in zip(self.targets, counts, strict=True)
        ]

    def edge_orders(
        self,
        edits: EdgeEdits,
        used: Tensor,
        seeds: list[int],
        status: _StatusTable,
        entries: Iterable[int],
        size: int,
    ) -> Tensor:
        """The first units of some entries by score; equal scores in an order that all explainers
        share.  (T, S, entries, size)
        """
        rules, found = self.sort_rules("edge"), []
        for e in entries:
            entry, order = self.entries[e], self.empty_orders(len(rules), size)
            parts = [
                edge_scores(entry.xs[self.targets[t]], graph)
                if not status[t][e]
                else graph.x.new_zeros(len(graph.edges))
                for t, graph in ((t, self.graphs[t]) for t in used.tolist())
            ]
            order[used] = self.sort_candidates(
                rules, edits.unit_scores(torch.cat(parts)), edits.num_units, seeds, entry, size
            )
            found.append(order)
        return torch.stack(found, 2)

    def feature_orders(self, status: _StatusTable, entries: Iterable[int], size: int) -> Tensor:
        """The first features of some entries by pooled score; equal scores in an order that all
        share.  (T, S, entries, size)
        """
        rules, found = self.sort_rules("feature"), []
        for e in entries:
            entry, order = self.entries[e], self.empty_orders(len(rules), size)
            found.append(order)
            rows = [t for t in range(len(self.targets)) if not status[t][e]]
            if not rows:
                continue
            graphs = [self.graphs[t] for t in rows]
            parts = [self.candidate_scores(entry, graph) for graph in graphs]
            sizes = torch.tensor([len(part) for part in parts], device=order.device)
            seeds = [self.seed_of(graph.target, "features") for graph in graphs]
            order[rows] = self.sort_candidates(rules, torch.cat(parts), sizes, seeds, entry, size)
        return torch.stack(found, 2)

    def candidate_scores(self, entry: ExplanationSet, graph: ComputationGraph) -> Tensor:
        """One score for each feature candidate of a target; random ones of the candidates
        themselves for the random baseline.

        Random scores of *nodes* are no random order of candidates once the neighbours' scores are
        pooled: their maximum is high.
        """
        x = entry.xs[graph.target]
        pooled = priority_vector(feature_scores(x, graph), graph.target_rows, self.settings.pooling)
        if not isinstance(entry.explainer, RandomExplainer):
            return pooled
        return draw_uniform(
            self.seed_of(graph.target, "candidates", x.seed or 0, entry.occurrence), len(pooled)
        ).to(pooled)

    def empty_orders(self, rules: int, size: int) -> Tensor:
        """Room for the orders of one entry.  (T, S, size)"""
        return torch.full((len(self.targets), rules, size), -1, device=self.graphs.node.device)

    def sort_rules(self, side: str) -> list[str]:
        """How scores are sorted, S ways: towards a reference both ways, since one may lie above and
        one below.

        "descending": what speaks for a high value goes first; "ascending": what speaks against it;
        "magnitude": what matters most.
        """
        settings = self.settings
        if self.baseline.label is not None or settings.direction == "paper":
            return ["magnitude" if settings.order == "magnitude" else "descending"]
        if settings.direction == "towards_reference" and side == "edge":
            # an edge has no reference, so its removal may move the value either way
            return ["magnitude"]
        return {"any": ["magnitude"], "down": ["descending"], "up": ["ascending"]}.get(
            settings.direction, ["descending", "ascending"]
        )

    def sort_candidates(
        self,
        rules: list[str],
        score: Tensor,
        sizes: Tensor,
        seeds: list[int],
        entry: ExplanationSet,
        size: int,
    ) -> Tensor:
        """Orders by each rule, packed scores in.  (sum of candidates,), (T,) -> (T, S, size)

        Scores without a sign say how much something matters, not which way: they are always sorted
        from the highest down. Those from elsewhere have one where some score of the same
        explanation is below 0.
        """
        owner = torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes)
        negative = torch.zeros_like(sizes).index_add(0, owner, (score < 0).to(sizes)) > 0
        is_signed = (
            negative
            if entry.explainer is None
            else torch.full_like(negative, entry.explainer.signed)
        )
        keys = {
            "descending": score,
            "ascending": torch.where(is_signed[owner], -score, score),
            "magnitude": score.abs(),
        }
        return torch.stack([orders_by_score(keys[rule], sizes, seeds, size) for rule in rules], 1)

    def twin_orders(self, cases: CurveCases, order: Tensor) -> Tensor:
        """Random orders of features that keep the blocks of each explanation's order.
        (T, S, E, cap) -> (Q, 1 or E, N, cap)

        They are the same for all references of a target, and for all explainers where a target has
        one block only.
        """
        counts, width = count_feature_candidates(self.graphs), self.graphs.source.x.size(1)
        T, S, E, cap = order.shape
        if S == 1:
            place = torch.arange(cap, device=order.device)
            anything = torch.where(place < counts[:, None], place, -1)[:, None, None]
            is_one_block = counts <= width
            order = torch.where(is_one_block[:, None, None, None], anything, order)
            if bool(is_one_block.all()):
                order, E = order[:, :, :1], 1
        seeds = [self.seed_of(target, "features", "twins") for target in self.targets]
        found = random_orders_within_blocks(
            order.flatten(1, 2), counts, width, seeds, self.settings.feature_trials
        )
        return _select_sort_rule(found.view(T, S, E, -1, cap), cases)

    def score_side(
        self,
        name: str,
        cases: CurveCases,
        orders: Callable[[Iterable[int], int], Tensor],
        valid: Tensor,
        redrawn: CurveCases | None = None,
    ) -> SideValues:
        """All metrics of one side; ``orders(entries, size)`` gives (T, S, entries, size)."""
        order = orders(range(len(self.entries)), self.settings.cap)
        needs_twins = name == "feature" and self.settings.twins
        measured = measure_curves(
            self.model,
            cases,
            _select_sort_rule(order, cases),
            valid,
            self.baseline,
            self.settings,
            self.twin_orders(cases, order) if needs_twins else None,
            redrawn,
        )

        def scores(t: int, e: int) -> Tensor:
            own = edge_scores if name == "edge" else feature_scores
            return own(self.entries[e].xs[self.targets[t]], self.graphs[t]).flatten()

        def full_orders(e: int) -> Tensor:
            return _select_sort_rule(orders([e], int(cases.candidates.max())), cases)[:, 0]

        return score_curves(self.model, measured, self.metrics, scores, full_orders, self.settings)


def _select_sort_rule(order: Tensor, cases: CurveCases) -> Tensor:
    """Of orders by one rule or two, each case's: the second where its value is to rise.
    (T, S, ...) -> (Q, ...)
    """
    rule = (cases.way > 0).long() if order.size(1) > 1 else torch.zeros_like(cases.target)
    return order[cases.target, rule]


def reference_seed(
    seed_of: _TargetSeedFunction, targets: list[Target], t: int, reference: Any, purpose: str
) -> int:
    """The seed of what is drawn for one target and reference.

    Args:
        seed_of: Returns the seed for a target and a purpose.
        targets: The targets of the batch.
        t: Position of the target among them.
        reference: The reference as users write it: a node id, a pair of nodes, or a graph number.
        purpose: What is drawn, such as "map" or "orders".
    """
    return seed_of(targets[t], "features", reference, purpose)


def _valid_mask(status: _StatusTable, device: torch.device) -> Tensor:
    """Which (target, entry) can be judged.  (T, E) bool"""
    return torch.tensor([[not why for why in row] for row in status], device=device)


def warn_of_unmeasured_edges(model: BaseModel, settings: Settings, stacklevel: int = 2) -> None:
    """Say, before anything is run, that edges cannot be judged by masks."""
    wants_masks = (
        "edge" in settings.curve_sides
        and settings.edge_removal == "mask"
        and model.source.num_edges
    )
    if wants_masks and model.mask_support != "exact":
        warnings.warn(
            "edges are not judged: edge_removal='mask' is not possible for "
            f"{type(model.net).__name__} ({model.mask_support}). Use Evaluator(model, "
            f"edge_removal='drop'){_mask_free_explainers_hint(model)}.",
            GraphgaugeWarning,
            stacklevel=stacklevel + 1,
        )


def _mask_free_explainers_hint(model: BaseModel) -> str:
    """With which explainers, where not all give edges scores."""
    return (
        ""
        if can_mask_messages(model)
        else " with explainers that need no masks, such as Occlusion and RandomExplainer"
    )
