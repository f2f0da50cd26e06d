"""Stability: an explainer is run again and again on the same targets, all repetitions as one batch.

    pairs       30 to 100 pairs of independent explanations; the two lists (features, edges) go on
                until both may stop (with ``early_stop="betting"`` by the rule of precision alone,
                because there is no null value to bet against)
    binomial    M explanations, all M (M - 1) / 2 pairs, with the jackknife's standard error

An explainer that says it is deterministic is run twice; if the two are alike to within 1e-5 (on a
CPU they are equal to the last bit, on a GPU sums come in any order), so would all others be, and
that likeness is its stability. The corrected twin compares with what permuted scores reach.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from graphgauge.core import (
    Target,
    Xplanation,
    advance_progress,
    all_finite,
    budget_bytes,
    derive_seed,
    make_generator,
)
from graphgauge.evaluation.candidate_scores import EMPTY, NAN_ATTRIBUTION, NO_SCORES, edge_scores
from graphgauge.evaluation.explanation_set import ChosenClassExplainer
from graphgauge.evaluation.metric_value import MetricValue, missing_value
from graphgauge.evaluation.random_comparison import trial_schedule
from graphgauge.evaluation.settings import Settings
from graphgauge.explainers import BaseExplainer
from graphgauge.metrics import (
    correct_for_chance,
    edge_stability,
    edge_stability_by_chance,
    feature_stability,
    feature_stability_by_chance,
    has_permutable_entries,
    jackknife_over_pairs,
    score_blocks,
    stop_early,
    stop_pairs_early,
)
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraph

_DETERMINISTIC_TOLERANCE = 1e-5  #: likeness that a deterministic explainer may miss
_SHARE_OF_BUDGET = 0.25  #: of the memory budget that explanations may fill at a time


@dataclass
class _RepeatedSimilarities:
    """The repeated explanations of one target, one side, kept as likenesses."""

    status: str = ""
    values: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.float64))
    chance: float = float("nan")
    caveats: "_StabilityCaveats" = field(default_factory=lambda: _StabilityCaveats())


@dataclass(frozen=True)
class _StabilityCaveats:
    """What makes a stability less than it seems: explanations that are all 0, and a target without
    other nodes.
    """

    num_explanations: int = 0
    num_zero: int = 0
    is_lonely: bool = False

    def __add__(self, more: "_StabilityCaveats") -> "_StabilityCaveats":
        return _StabilityCaveats(
            self.num_explanations + more.num_explanations,
            self.num_zero + more.num_zero,
            self.is_lonely or more.is_lonely,
        )

    @property
    def remark(self) -> str | None:
        """For people; None where there is nothing to say."""
        zero = (
            f"all scores are 0 in {self.num_zero} of {self.num_explanations} explanations"
            if self.num_zero
            else ""
        )
        lonely = (
            "no other node can reach the target: its own features alone" if self.is_lonely else ""
        )
        return "; ".join(filter(None, [zero, lonely])) or None


def measure_stability(
    explainer: BaseExplainer | ChosenClassExplainer,
    model: BaseModel,
    targets: Sequence[Target],
    settings: Settings,
    seed: int,
) -> dict[Target, dict[str, MetricValue]]:
    """Stability of both sides for each target, and its corrected twin.

    Args:
        explainer: Explains the targets again. If it says that it is deterministic, two explanations
            are compared first, and only targets whose two differ are repeated further.
        model: The wrapped network.
        targets: What is explained again; each target is listed once.
        settings: They say how many explanations are made and how they are compared.
        seed: Seed of all explanations and permutations.

    Returns:
        The values by target and name of the metric.
    """
    if explainer.deterministic:
        found = _check_deterministic(explainer, model, targets, settings, seed)
        changing = [target for target in targets if target not in found]
    else:
        found, changing = {}, list(targets)
    run = _stability_in_pairs if settings.stability == "pairs" else _stability_over_all_pairs
    return {**found, **(run(explainer, model, changing, settings, seed) if changing else {})}


def _check_deterministic(
    explainer: BaseExplainer | ChosenClassExplainer,
    model: BaseModel,
    targets: Sequence[Target],
    settings: Settings,
    seed: int,
) -> dict[Target, dict[str, MetricValue]]:
    """Targets whose two explanations are the same."""
    found = {}
    for target, xs in _repeat_explanations(
        explainer, model, targets, 2, settings, derive_seed(seed, "stability", 0)
    ):
        advance_progress(1)
        given = [_StackedScores.from_explanations(xs, side) for side in _SIDES]
        alike = [
            1.0 if one.status else float(one.similarity(one.scores[:1], one.scores[1:]))
            for one in given
        ]
        if min(alike) < 1 - _DETERMINISTIC_TOLERANCE:
            continue
        cells: dict[str, MetricValue] = {}
        for one, mean in zip(given, alike, strict=True):
            is_wanted = settings.twins and not one.status
            same = one.scores[:1]
            chance = (
                one.chance(
                    same, same, settings.permutations, _permutation_seed(seed, target, one.side)
                )
                if is_wanted
                else float("nan")
            )
            cells |= _stability_metric_values(
                one.side,
                one.status,
                mean,
                chance,
                settings,
                1,
                "deterministic",
                0.0,
                one.caveats.remark,
            )
        found[target] = cells
    return found


def _stability_in_pairs(
    explainer: BaseExplainer | ChosenClassExplainer,
    model: BaseModel,
    targets: Sequence[Target],
    settings: Settings,
    seed: int,
) -> dict[Target, dict[str, MetricValue]]:
    """The paper's algorithm, for all targets at once, stage by stage."""
    done: dict[Target, dict[str, MetricValue]] = {}
    series = {target: {side: _RepeatedSimilarities() for side in _SIDES} for target in targets}
    left, start = list(targets), 0
    for end in _pair_schedule(settings):
        for target, xs in _repeat_explanations(
            explainer,
            model,
            left,
            2 * (end - start),
            settings,
            derive_seed(seed, "stability", start),
        ):
            for side, own in series[target].items():
                _add_pairs(
                    own,
                    _StackedScores.from_explanations(xs, side),
                    settings,
                    _permutation_seed(seed, target, side),
                    is_first=start == 0,
                )
            found = _paired_metric_values(series[target], end, settings)
            if found is not None:
                done[target] = found
                advance_progress(1)
        left, start = [target for target in left if target not in done], end
        if not left:
            break
    return done


def _pair_schedule(settings: Settings) -> list[int]:
    """Numbers of pairs after which the rule is applied."""
    least, most = settings.trials
    return trial_schedule(most if settings.early_stop == "none" else least, most)


def _add_pairs(
    own: _RepeatedSimilarities,
    given: "_StackedScores",
    settings: Settings,
    seed: int,
    is_first: bool,
) -> None:
    """Likenesses of explanations 0 and 1, 2 and 3 ..., and once the likeness by chance."""
    own.status = own.status or given.status
    if own.status:
        return
    first, second = given.scores[0::2], given.scores[1::2]
    own.values, own.caveats = (
        torch.cat([own.values, given.similarity(first, second).double().cpu()]),
        own.caveats + given.caveats,
    )
    if is_first and settings.twins:
        own.chance = given.chance(first, second, settings.permutations, seed)


def _paired_metric_values(
    series: dict[str, _RepeatedSimilarities], end: int, settings: Settings
) -> dict[str, MetricValue] | None:
    """The cells of a target once both of its lists may stop; None: go on."""
    open_sides = [side for side in _SIDES if not series[side].status]
    if not open_sides:
        return {
            name: cell
            for side in _SIDES
            for name, cell in _stability_metric_values(
                side, series[side].status, 0, 0, settings
            ).items()
        }
    least, most = settings.trials
    tau = settings.tau if settings.early_stop == "paper" else None
    lists = [series[side].values[None] for side in open_sides]
    rule = (most if settings.early_stop == "none" else least, end, tau, settings.epsilon)
    stops = (
        [stop_early(lists[0], *rule)]
        if len(lists) == 1
        else list(stop_pairs_early(lists[0], lists[1], *rule))
    )
    if end < most and any(stop.reason == ["most"] for stop in stops):
        return None
    cells: dict[str, MetricValue] = {}
    # then no rule ends the lists, whatever holds at their end
    is_fixed = settings.early_stop == "none"
    reasons = {
        side: "most" if is_fixed else stop.reason[0]
        for side, stop in zip(open_sides, stops, strict=True)
    }
    trials = int(stops[0].trials[0])
    for side, own in series.items():
        counted = own.values[:trials]
        error = (
            float(counted.std(correction=0) / trials**0.5) if trials and not own.status else None
        )
        mean = float(counted.mean()) if not own.status else 0.0
        cells |= _stability_metric_values(
            side,
            own.status,
            mean,
            own.chance,
            settings,
            trials,
            reasons.get(side, ""),
            error,
            own.caveats.remark,
        )
    return cells


def _stability_over_all_pairs(
    explainer: BaseExplainer | ChosenClassExplainer,
    model: BaseModel,
    targets: Sequence[Target],
    settings: Settings,
    seed: int,
) -> dict[Target, dict[str, MetricValue]]:
    """All pairs of M explanations."""
    done = {}
    for target, xs in _repeat_explanations(
        explainer, model, targets, settings.calls, settings, derive_seed(seed, "stability", 0)
    ):
        cells: dict[str, MetricValue] = {}
        for given in (_StackedScores.from_explanations(xs, side) for side in _SIDES):
            if given.status:
                cells |= _stability_metric_values(given.side, given.status, 0, 0, settings)
                continue
            scores, seed_of_side = given.scores, _permutation_seed(seed, target, given.side)
            found = jackknife_over_pairs(
                torch.stack(
                    [given.similarity(own[None].expand_as(scores), scores) for own in scores]
                )
            )
            chance = (
                given.chance(scores, scores.roll(-1, 0), settings.permutations, seed_of_side)
                if settings.twins
                else float("nan")
            )
            error, remark = float(found.error), given.caveats.remark
            cells |= _stability_metric_values(
                given.side,
                "",
                float(found.mean),
                chance,
                settings,
                settings.calls,
                "binomial",
                error,
                remark,
            )
        done[target] = cells
        advance_progress(1)
    return done


# --- small parts ----------------------------------------------------------------------------------

_SIDES = ("feature", "edge")


def _repeat_explanations(
    explainer: BaseExplainer | ChosenClassExplainer,
    model: BaseModel,
    targets: Sequence[Target],
    count: int,
    settings: Settings,
    seed: int,
) -> Iterator[tuple[Target, list[Xplanation]]]:
    """``count`` independent explanations of each target, in as few calls as memory allows."""
    if not targets:
        return
    graphs = model.computation_graphs(list(targets), settings.edge_scope)
    graph = iter(graphs)
    each = graphs.num_nodes * graphs.source.x.size(1) + graphs.num_edges
    room = _SHARE_OF_BUDGET * budget_bytes(model.executor.budget, graphs.source.device)
    filled = (each.double() * graphs.source.x.element_size() * count / room).cumsum(0)
    for part in filled.floor().unique_consecutive(return_counts=True)[1].tolist():
        some, targets = targets[:part], targets[part:]
        xs = explainer.explain(model, [target for target in some for _ in range(count)], seed=seed)
        for k, target in enumerate(some):
            found = xs[k * count : (k + 1) * count]  # all of one computation graph
            own = next(graph)
            yield (
                target,
                found
                if torch.equal(found[0].edges, own.edges)
                else [_restrict_to_scope(x, own) for x in found],
            )


def _restrict_to_scope(x: Xplanation, graph: ComputationGraph) -> Xplanation:
    """Restrict an explanation to the edges that are scored.

    This is needed where the model's own scope is another.
    """
    return replace(
        x, edges=graph.edges, edge_score=None if x.edge_score is None else edge_scores(x, graph)
    )


@dataclass(frozen=True)
class _StackedScores:
    """Scores of one side of several explanations of one target, or why there are none.

    ``scores`` is (R, n, F) for features and (R, E_rel) for edges.
    """

    side: str
    status: str
    scores: Tensor
    is_target: Tensor  #: (n,) bool; all edges

    @staticmethod
    def from_explanations(xs: Sequence[Xplanation], side: str) -> "_StackedScores":
        """Put together once."""
        found = [score for x in xs if (score := getattr(x, f"{side}_score")) is not None]
        own = (
            torch.ones_like(xs[0].edges, dtype=torch.bool)
            if side == "edge"
            else _target_node_mask(xs[0])
        )
        if side == "edge" and len(xs[0].edges) == 0:
            return _StackedScores(side, EMPTY, torch.zeros(0), own)
        if len(found) < len(xs):
            return _StackedScores(side, NO_SCORES, torch.zeros(0), own)
        scores = torch.stack(found)
        return _StackedScores(side, "" if all_finite(scores) else NAN_ATTRIBUTION, scores, own)

    @property
    def caveats(self) -> _StabilityCaveats:
        """What people should know of these scores."""
        if self.status:
            return _StabilityCaveats()
        zero = int((self.scores == 0).flatten(1).all(1).sum())
        return _StabilityCaveats(
            len(self.scores), zero, self.side == "feature" and bool(self.is_target.all())
        )

    def similarity(self, first: Tensor, second: Tensor) -> Tensor:
        """How alike two stacks of scores are.  (R,)"""
        return (
            edge_stability(first, second)
            if self.side == "edge"
            else feature_stability(first, second, self.is_target)
        )

    def chance(self, first: Tensor, second: Tensor, permutations: int, seed: int) -> float:
        """Mean likeness of pairs after permuting one of each, ``permutations`` times, over all
        pairs in turn.
        """
        number = permutations if len(first) == 1 else 1
        pairs = torch.arange(permutations // number, device=first.device) % len(first)
        first, second = first[pairs], second[pairs]
        if not any(
            bool(has_permutable_entries(first[:, part].flatten(1), second[:, part].flatten(1)))
            for part in score_blocks(self.is_target)
        ):
            return 1.0
        if self.side == "edge":
            return float(
                edge_stability_by_chance(first, second, make_generator(seed), number)
                .double()
                .mean()
            )
        return float(
            feature_stability_by_chance(first, second, self.is_target, make_generator(seed), number)
            .double()
            .mean()
        )


def _target_node_mask(x: Xplanation) -> Tensor:
    """Which nodes are the target's own.  (n,) bool"""
    ends = torch.tensor(x.target_nodes, dtype=torch.int64, device=x.nodes.device)
    return torch.isin(x.nodes, ends)


def _permutation_seed(seed: int, target: Target, side: str) -> int:
    """For the permutations."""
    return derive_seed(seed, "permuted scores", target, side)


def _stability_metric_values(
    side: str,
    status: str,
    mean: float,
    chance: float,
    settings: Settings,
    trials: int = 0,
    stop: str = "",
    error: float | None = None,
    message: str | None = None,
) -> dict[str, MetricValue]:
    """The paper's number and its twin."""
    names = [f"{side}_stability", *([f"{side}_stability_corrected"] if settings.twins else [])]
    if status:
        return dict.fromkeys(names, missing_value(status))
    cells = {
        names[0]: MetricValue(mean, trials=(trials,), stop=(stop,), error=error, message=message)
    }
    if settings.twins:
        value = float(
            correct_for_chance(
                torch.tensor(mean, dtype=torch.float64), torch.tensor(chance, dtype=torch.float64)
            )
        )
        cells[names[1]] = (
            MetricValue(value, trials=(trials,), stop=(stop,))
            if value == value
            else missing_value("constant")
        )
    return cells
