"""Stability: an explainer is run again and again on the same targets, all repetitions as one batch.

    pairs       30 to 100 pairs of independent explanations; the two lists (features, edges) go on
                until both may stop (with ``early_stop="betting"`` by the rule of precision alone,
                because there is no null value to bet against)
    binomial    M explanations, all M (M - 1) / 2 pairs, with the jackknife's standard error

An explainer that says it is deterministic is run twice; if the two are alike to within 1e-5 (on a
CPU they are equal to the last bit, on a GPU sums come in any order), so would all others be, and
that likeness is its stability. The corrected twin compares with what permuted scores reach.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import torch
from torch import Tensor

from graphgauge.core import (
    Target,
    Xplanation,
    advance_progress,
    budget_bytes,
    derive_seed,
)
from graphgauge.evaluation.candidate_scores import edge_scores
from graphgauge.evaluation.chance_similarity import similarities_by_chance
from graphgauge.evaluation.explanation_set import ChosenClassExplainer
from graphgauge.evaluation.metric_value import MetricValue, missing_value
from graphgauge.evaluation.random_comparison import trial_schedule
from graphgauge.evaluation.repeated_scores import RepeatedScores, have_same_edges
from graphgauge.evaluation.settings import Settings
from graphgauge.explainers import BaseExplainer, Explanations
from graphgauge.metrics import (
    StoppingPoints,
    correct_for_chance,
    jackknife_over_pairs,
    stop_early,
    stop_pairs_early,
)
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraph, ComputationGraphs

_DETERMINISTIC_TOLERANCE = 1e-5  #: likeness that a deterministic explainer may miss
_SHARE_OF_BUDGET = 0.25  #: of the memory budget that explanations may fill at a time
_ID_BYTES_OF_NODE = 16  #: its id and its distance, in a computation graph
_ID_BYTES_OF_EDGE = 24  #: its id and its two ends


@dataclass
class _SimilaritySeries:
    """The similarities of one target and side, pair after pair."""

    status: str = ""
    values: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.float64))
    chance: float = float("nan")
    num_explanations: int = 0
    num_zero: int = 0
    is_lonely: bool = False

    @property
    def remark(self) -> str | None:
        """What makes a stability less than it seems, for people; None where there is nothing."""
        zero = f"all scores are 0 in {self.num_zero} of {self.num_explanations} explanations"
        lonely = "no other node can reach the target: its own features alone"
        said = [zero if self.num_zero else "", lonely if self.is_lonely else ""]
        return "; ".join(filter(None, said)) or None

    def add(self, scores: RepeatedScores, k: int, similarity: Tensor) -> None:
        """Add similarities (P,) of explanations of target number ``k`` of some scores."""
        self.status = self.status or scores.status[k]
        if self.status:
            return
        self.values = torch.cat([self.values, similarity.double()])
        self.num_explanations += scores.repeats
        self.num_zero += scores.num_zero[k]
        self.is_lonely = self.is_lonely or scores.is_lonely[k]


#: the series of a target by side
_Series: TypeAlias = dict[str, _SimilaritySeries]


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
    both = torch.tensor([0]), torch.tensor([1])
    for some, sides in _repeat_explanations(
        explainer, model, targets, 2, settings, derive_seed(seed, "stability", 0)
    ):
        alike = [scores.similarity(*both)[:, 0].tolist() for scores in sides]
        same = both[0], both[0]
        chance = [_chance_of_targets(scores, *same, some, settings, seed) for scores in sides]
        for k, target in enumerate(some):
            series = {scores.side: _SimilaritySeries() for scores in sides}
            cells: dict[str, MetricValue] = {}
            for scores, values, by_chance in zip(sides, alike, chance, strict=True):
                own = series[scores.side]
                own.add(scores, k, torch.tensor([values[k]], dtype=torch.float64))
                if not own.status and values[k] < 1 - _DETERMINISTIC_TOLERANCE:
                    break
                own.chance = by_chance[k]
                mean = 1.0 if own.status else values[k]
                cells |= _stability_metric_values(
                    scores.side, own, mean, settings, 1, "deterministic", 0.0
                )
            else:
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
    series = {target: {side: _SimilaritySeries() for side in _SIDES} for target in targets}
    left, start = list(targets), 0
    for end in _pair_schedule(settings):
        first = torch.arange(0, 2 * (end - start), 2)
        for some, sides in _repeat_explanations(
            explainer,
            model,
            left,
            2 * (end - start),
            settings,
            derive_seed(seed, "stability", start),
        ):
            for scores in sides:
                alike = scores.similarity(first, first + 1)
                chance = None
                if start == 0:
                    chance = _chance_of_targets(scores, first, first + 1, some, settings, seed)
                for k, target in enumerate(some):
                    own = series[target][scores.side]
                    own.add(scores, k, alike[k])
                    own.chance = own.chance if chance is None else chance[k]
            finished = _finished_pairs({t: series[t] for t in some}, end, settings)
            done |= finished
            advance_progress(0)  # the explainer has told its steps
        left, start = [target for target in left if target not in done], end
        if not left:
            break
    return done


def _pair_schedule(settings: Settings) -> list[int]:
    """Numbers of pairs after which the rule is applied."""
    least, most = settings.trials
    return trial_schedule(most if settings.early_stop == "none" else least, most)


def _finished_pairs(
    series: Mapping[Target, _Series], end: int, settings: Settings
) -> dict[Target, dict[str, MetricValue]]:
    """The values of the targets whose lists may stop after ``end`` pairs; both lists of a target
    stop together.
    """
    found: dict[Target, dict[str, MetricValue]] = {}
    by_sides: dict[tuple[str, ...], list[Target]] = {}
    for target, own in series.items():
        by_sides.setdefault(tuple(s for s in _SIDES if not own[s].status), []).append(target)
    for sides, targets in by_sides.items():
        stops = _stopping_points([series[target] for target in targets], sides, end, settings)
        for k, target in enumerate(targets):
            reasons = {side: stop.reason[k] for side, stop in zip(sides, stops, strict=True)}
            if end < settings.trials[1] and "most" in reasons.values():
                continue
            trials = int(stops[0].trials[k]) if stops else 0
            found[target] = _paired_metric_values(series[target], trials, reasons, settings)
    return found


def _stopping_points(
    series: Sequence[_Series], sides: Sequence[str], end: int, settings: Settings
) -> list[StoppingPoints]:
    """Where each target's lists stop; one entry for each of the sides that can be compared."""
    if not sides:
        return []
    least, most = settings.trials
    tau = settings.tau if settings.early_stop == "paper" else None
    lists = [torch.stack([own[side].values for own in series]) for side in sides]
    rule = (most if settings.early_stop == "none" else least, end, tau, settings.epsilon)
    if len(lists) == 1:
        return [stop_early(lists[0], *rule)]
    return list(stop_pairs_early(lists[0], lists[1], *rule))


def _paired_metric_values(
    series: _Series, trials: int, reasons: Mapping[str, str], settings: Settings
) -> dict[str, MetricValue]:
    """The values of one target whose lists stopped after ``trials`` pairs."""
    cells: dict[str, MetricValue] = {}
    # then no rule ends the lists, whatever holds at their end
    is_fixed = settings.early_stop == "none"
    for side, own in series.items():
        counted = own.values[:trials]
        mean, error = 0.0, None
        if not own.status:
            mean = float(counted.mean())
            error = float(counted.std(correction=0) / trials**0.5) if trials else None
        reason = "" if own.status else "most" if is_fixed else reasons[side]
        cells |= _stability_metric_values(side, own, mean, settings, trials, reason, error)
    return cells


def _stability_over_all_pairs(
    explainer: BaseExplainer | ChosenClassExplainer,
    model: BaseModel,
    targets: Sequence[Target],
    settings: Settings,
    seed: int,
) -> dict[Target, dict[str, MetricValue]]:
    """All pairs of M explanations."""
    done: dict[Target, dict[str, MetricValue]] = {}
    every = torch.arange(settings.calls)
    for some, sides in _repeat_explanations(
        explainer, model, targets, settings.calls, settings, derive_seed(seed, "stability", 0)
    ):
        for scores in sides:
            rows = [scores.similarity(torch.full_like(every, m), every) for m in every.tolist()]
            matrix = torch.stack(rows, 1)  # (T, M, M)
            chance = _chance_of_targets(scores, every, every.roll(-1), some, settings, seed)
            for k, target in enumerate(some):
                own = _SimilaritySeries()
                own.add(scores, k, matrix[k].flatten())
                cells = done.setdefault(target, {})
                if own.status:
                    cells |= _stability_metric_values(scores.side, own, 0.0, settings)
                    continue
                estimate = jackknife_over_pairs(matrix[k])
                own.chance = chance[k]
                mean, error = float(estimate.mean), float(estimate.error)
                cells |= _stability_metric_values(
                    scores.side, own, mean, settings, settings.calls, "binomial", error
                )
        advance_progress(0)
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
) -> Iterator[tuple[Sequence[Target], list[RepeatedScores]]]:
    """``count`` independent explanations of each target, in as few calls as memory allows.

    Each item holds some of the targets and their scores, features first. It must be used before the
    next one is asked for, because its list of scores is emptied then. All explanations of a target
    are held at once, whatever the budget.
    """
    if not targets:
        return
    graphs = model.computation_graphs(list(targets), settings.edge_scope)
    size = graphs.source.x.element_size()
    each = graphs.sizes * (size * graphs.source.x.size(1) + _ID_BYTES_OF_NODE)
    each = each + graphs.edge_sizes * (size + _ID_BYTES_OF_EDGE)
    room = _SHARE_OF_BUDGET * budget_bytes(model.executor.budget, graphs.source.device)
    filled = (each.double() * count / room).cumsum(0)
    start = 0
    for part in filled.floor().unique_consecutive(return_counts=True)[1].tolist():
        some = targets[start : start + part]
        own = graphs.take(torch.arange(start, start + part, device=graphs.num_nodes.device))
        start += part
        repeated = [target for target in some for _ in range(count)]
        sides = _pack_sides(explainer.explain(model, repeated, seed=seed), own, count)
        yield some, sides
        sides.clear()


def _pack_sides(
    xs: Sequence[Xplanation], graphs: ComputationGraphs, count: int
) -> list[RepeatedScores]:
    """The scores of ``count`` explanations of each graph, features first."""
    if isinstance(xs, Explanations) and have_same_edges(xs, graphs, count):
        return [RepeatedScores.from_packed(xs, count, side) for side in _SIDES]
    listed = [_restrict_to_scope(x, graphs[k // count]) for k, x in enumerate(xs)]
    return [RepeatedScores.from_list(listed, count, side) for side in _SIDES]


def _restrict_to_scope(x: Xplanation, graph: ComputationGraph) -> Xplanation:
    """The explanation with scores of the edges that count, where the model's own scope is
    another.
    """
    if torch.equal(x.edges, graph.edges):
        return x
    return replace(
        x, edges=graph.edges, edge_score=None if x.edge_score is None else edge_scores(x, graph)
    )


def _chance_of_targets(
    scores: RepeatedScores,
    first: Tensor,
    second: Tensor,
    targets: Sequence[Target],
    settings: Settings,
    seed: int,
) -> list[float]:
    """The similarity by chance of each target's pairs; NaN where it is not asked for."""
    if not settings.twins:
        return [torch.nan] * len(targets)
    seeds = [_permutation_seed(seed, target, scores.side) for target in targets]
    return similarities_by_chance(scores, first, second, settings.permutations, seeds)


def _permutation_seed(seed: int, target: Target, side: str) -> int:
    """The seed of the permutations of one target and side."""
    return derive_seed(seed, "permuted scores", target, side)


def _stability_metric_values(
    side: str,
    series: _SimilaritySeries,
    mean: float,
    settings: Settings,
    trials: int = 0,
    stop: str = "",
    error: float | None = None,
) -> dict[str, MetricValue]:
    """The paper's number and its twin."""
    names = [f"{side}_stability", *([f"{side}_stability_corrected"] if settings.twins else [])]
    if series.status:
        return dict.fromkeys(names, missing_value(series.status))
    cells = {
        names[0]: MetricValue(
            mean, trials=(trials,), stop=(stop,), error=error, message=series.remark
        )
    }
    if settings.twins:
        value = float(
            correct_for_chance(
                torch.tensor(mean, dtype=torch.float64),
                torch.tensor(series.chance, dtype=torch.float64),
            )
        )
        cells[names[1]] = (
            MetricValue(value, trials=(trials,), stop=(stop,))
            if value == value
            else missing_value("constant")
        )
    return cells
