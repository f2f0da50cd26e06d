"""Paired comparisons of two explainers, and of one explainer with the random one of the same run.

Two explainers are compared on the targets that both have. A difference is called better or worse if
its 95 % interval (`core.intervals.difference_interval`) excludes 0, and a tie otherwise. With fewer
than 10 shared targets, and for tables of means, intervals do not decide, because they are shown to
cover from 10 targets on. Then means that differ by at most 0.03 (pertinence), 3 edits (EC) or 0.005
(stability) are ties. Differences that vanish at the paper's printed precision (0.01; EC 0.1) are
always ties.

The comparison with random concerns faithfulness: pertinence of one side (as it is judged, and with
ties counted half), pertinence by |change| for values (unless edits are to move them in one
direction, `Settings.direction`), and EC. An explainer is

    worse          in every measure whose interval lies on the wrong side of the random explainer
    better         if some measure is better, or a one-sided sign test of pertinence has p <= 0.05
    not decided    with fewer than 10 shared targets

Without a random explainer, pertinence with ties counted half is compared with 0.5, which a random
order reaches exactly; EC then has no baseline.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from graphgauge.core import difference_interval
from graphgauge.evaluation import higher_is_better
from graphgauge.guidelines.aggregation import AggregatedScores, CaseKey, Subject, values_by_model
from graphgauge.guidelines.findings import SIGNIFICANCE_LEVEL, binomial_tail
from graphgauge.guidelines.reference_data import load_guideline, metric_family
from graphgauge.guidelines.thresholds import ROUNDING_TOLERANCE, format_metric_value

_RULES = load_guideline("rules")["comparison"]
LEAST_TARGETS: int = _RULES["least_targets"]  #: from which intervals decide
TIE_TOLERANCE: dict[str, float] = _RULES["tie"]  #: ties where no interval decides
_PRINTED_PRECISION: dict[str, float] = _RULES["printed"]  #: smaller differences are always ties
_CHANCE_PERTINENCE: float = _RULES["chance_pertinence"]  #: tied pertinence of a random order
_CaseValues = Mapping[CaseKey, float]


@dataclass(frozen=True)
class PairedComparison:
    """One metric of two explainers: means over shared targets, and their difference."""

    metric: str
    first: float
    second: float
    difference: float
    interval: tuple[float, float] | None = None
    n: int | None = None  #: shared targets; None: means from a table

    @property
    def is_decided(self) -> bool:
        """Whether there are enough targets for the interval to decide."""
        return self.interval is not None and self.n is not None and self.n >= LEAST_TARGETS

    @property
    def sign(self) -> int:
        """1 if the first explainer is better, -1 if it is worse, 0 for a tie."""
        family = metric_family(self.metric)
        gap = self.difference if higher_is_better(self.metric) else -self.difference
        if abs(gap) < _PRINTED_PRECISION[family] / 2 + ROUNDING_TOLERANCE:
            return 0
        if self.is_decided and self.interval is not None:
            is_clear = (
                self.interval[0] > ROUNDING_TOLERANCE or self.interval[1] < -ROUNDING_TOLERANCE
            )
        else:
            is_clear = abs(gap) > TIE_TOLERANCE[family] + ROUNDING_TOLERANCE
        return 0 if not is_clear else 1 if gap > 0 else -1

    def numbers(self) -> str:
        """Both means, and their difference where there is an interval.

        >>> PairedComparison("edge_ec", 31.2, 29.3, 1.9, (1.2, 2.6), 60).numbers()
        '31.2 against 29.3, difference 1.9 [1.2, 2.6] over 60 targets'
        """
        first, second = (format_metric_value(self.metric, n) for n in (self.first, self.second))
        both = f"{first} against {second}"
        if self.interval is None or not self.is_decided:
            return both
        low, high = self.interval
        difference = f"difference {self.difference:.3g} [{low:.3g}, {high:.3g}]"
        return f"{both}, {difference} over {self.n} targets"


def _compare_values(
    metric: str, first: _CaseValues, second: "_CaseValues | float"
) -> PairedComparison | None:
    """Compare the values of two explainers on shared targets, or those of one with a constant.

    Returns None if there are no shared targets.
    """
    shared = [case for case in first if isinstance(second, float) or case in second]
    if not shared:
        return None
    minuend = {case: first[case] for case in shared}
    subtrahend = {case: second if isinstance(second, float) else second[case] for case in shared}
    gaps = {case: minuend[case] - subtrahend[case] for case in shared}
    interval = difference_interval(*values_by_model(gaps).values())
    if interval is None:  # some network has a single target
        interval = difference_interval(list(gaps.values()))
    means = _mean_over_models(minuend), _mean_over_models(subtrahend)
    difference = round(means[0] - means[1], 12)
    return PairedComparison(metric, *means, difference, interval, len(shared))


def _mean_over_models(values: _CaseValues) -> float:
    """Return the mean over targets, then over networks."""
    means = [sum(sorted(group)) / len(group) for group in values_by_model(values).values()]
    return sum(means) / len(means)


def compare_explainers(
    scores: AggregatedScores, first: Subject, second: Subject, metric: str
) -> PairedComparison | None:
    """Compare two explainers of a run, or two means of a table; None if one has no value.

    Args:
        scores: Scores of a run or a table; comparisons are kept in it.
        first: Task, network and explainer.
        second: The other one.
        metric: The metric.
    """
    one, other = scores.get(first, metric), scores.get(second, metric)
    if one is None or other is None or one.mean is None or other.mean is None:
        return None
    key = (first, second, metric)
    if key not in scores.compared:
        scores.compared[key] = (
            _compare_values(metric, one.cases, other.cases)
            if one.cases and other.cases
            else PairedComparison(metric, one.mean, other.mean, one.mean - other.mean)
        )
    return scores.compared[key]


# --- with random ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class RandomComparison:
    """The faithfulness of one side of an explainer, compared with random."""

    side: str
    baseline: str  #: the random explainer, or '' where tied pertinence is compared with 0.5
    comparisons: tuple[PairedComparison, ...]
    wins: int = 0  #: targets on which pertinence beats the baseline's
    losses: int = 0

    @property
    def is_decided(self) -> bool:
        """Whether there are enough targets for a decision."""
        return any(each.is_decided for each in self.comparisons)

    @property
    def worse(self) -> list[PairedComparison]:
        """The measures in which the explainer is clearly worse."""
        return [each for each in self.comparisons if each.is_decided and each.sign < 0]

    @property
    def better(self) -> list[PairedComparison]:
        """The measures in which the explainer is clearly better."""
        return [each for each in self.comparisons if each.is_decided and each.sign > 0]

    @property
    def p_value(self) -> float:
        """The p-value of the one-sided sign test of pertinence, which leaves ties out."""
        return binomial_tail(self.wins, self.wins + self.losses, 0.5)

    @property
    def is_better(self) -> bool:
        """Whether anything shows that the explainer is better."""
        return bool(self.better) or (self.is_decided and self.p_value <= SIGNIFICANCE_LEVEL)

    @property
    def baseline_phrase(self) -> str:
        """What the explainer is compared with."""
        return f"that of {self.baseline!r}" if self.baseline else "the 0.5 of a random order"


def compare_with_random(
    side: str,
    form: str,
    baseline: str,
    own: Callable[[str], _CaseValues],
    other: Callable[[str], _CaseValues],
    is_one_way: bool = False,
) -> RandomComparison | None:
    """Compare one side of an explainer with random.

    Args:
        side: "feature" or "edge".
        form: The form of pertinence that is judged.
        baseline: Name of the random explainer.
        own: Returns the explainer's values of a metric.
        other: Returns the random explainer's values of a metric.
        is_one_way: Whether edits are to move values in one direction.

    Returns:
        The comparison; None if there is neither a baseline nor tied pertinence.
    """
    compared = [
        _compare_values(metric, own(metric), other(metric))
        for metric in _faithfulness_metrics(side, form, is_one_way)
    ]
    comparisons = tuple(each for each in compared if each is not None)
    if not comparisons:
        metric, baseline = f"{side}_pertinence_tied", ""
        with_chance = _compare_values(metric, own(metric), _CHANCE_PERTINENCE)
        if with_chance is None:
            return None
        comparisons = (with_chance,)
    gaps: list[float] = []
    for name in dict.fromkeys(["pertinence_tied", form]):  # the first form that has values
        metric = f"{side}_{name}"
        gaps = gaps or _paired_gaps(own(metric), other(metric) if baseline else None)
    wins, losses = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
    return RandomComparison(side, baseline, comparisons, wins, losses)


def _faithfulness_metrics(side: str, form: str, is_one_way: bool) -> list[str]:
    """List the measures of faithfulness of a side; the judged form of pertinence comes first.

    Pertinence by |change| is listed only if edits may move values in either direction.
    """
    change = [] if is_one_way else ["pertinence_abs"]
    return [f"{side}_{name}" for name in dict.fromkeys([form, "pertinence_tied", *change, "ec"])]


def _paired_gaps(first: _CaseValues, second: _CaseValues | None) -> list[float]:
    """Return differences on shared targets (from 0.5 without a second explainer), rounded."""
    if second is None:
        return [round(value - _CHANCE_PERTINENCE, 9) for value in first.values()]
    return [round(first[case] - second[case], 9) for case in first if case in second]


def compare_subject_with_random(
    scores: AggregatedScores, subject: Subject, side: str, baseline: str
) -> RandomComparison | None:
    """Compare one side of an explainer of a run with the random explainer.

    Args:
        scores: Scores of a run; comparisons are kept in it.
        subject: Task, network and explainer.
        side: "feature" or "edge".
        baseline: Name of the random explainer.

    Returns:
        The comparison; None for the random explainer itself, and if nothing can be compared.
    """
    task, model, explainer = subject
    if explainer == baseline:
        return None
    key = (subject, side, baseline)
    if key not in scores.beside_random:
        own, other = (
            partial(_measured_cases, scores, (task, model, name)) for name in (explainer, baseline)
        )
        scores.beside_random[key] = compare_with_random(
            side, scores.pertinence, baseline, own, other, scores.is_one_way
        )
    return scores.beside_random[key]


def _measured_cases(scores: AggregatedScores, subject: Subject, metric: str) -> _CaseValues:
    """Return the values of a metric by case; none if it was not measured."""
    score = scores.get(subject, metric)
    return {} if score is None else score.cases


def chance_level(
    scores: AggregatedScores, subject: Subject, metric: str, baseline: str
) -> tuple[float | None, str]:
    """Return what chance reaches in the same run (None if unknown), and the name of that baseline.

    The random explainer's mean is over the targets that both explainers have.
    """
    task, model, explainer = subject
    if metric_family(metric) == "stability":
        score = None if explainer == baseline else scores.get(subject, f"{metric}_chance")
        return (None if score is None else score.mean), "a permutation of the scores"
    comparison = (
        None
        if explainer == baseline
        else compare_explainers(scores, subject, (task, model, baseline), metric)
    )
    return (None if comparison is None else comparison.second), f"the explainer {baseline!r}"
