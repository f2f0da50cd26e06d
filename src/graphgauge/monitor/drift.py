"""Drift against the baseline: metrics, accuracy, the ranking of features, data and relations.

Each kind of drift may spend `Plan.level` in one run.

    metrics     both two-sample tests for every metric, on the targets of this run and on those of
                the last few runs together, with Holm's correction over all of them
    accuracy    the same tests on the errors of predictions, where labels are known; only more
                errors count as a drop
    ranking     for each feature, whether it is among the strongest of an explanation (0 or 1)
    data        the distribution of every column
    relations   how columns relate to each other, to the label and to the neighbours

The last three use a permutation test, which gives one p-value for all columns. Where the data
shifted, relations of a column that shifted are not counted, because its own trigger names it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphgauge.core import derive_seed, make_generator
from graphgauge.monitor.data_drift_columns import (
    DriftColumns,
    describe_relation,
    describe_shift,
    relation_columns,
    shift_columns,
)
from graphgauge.monitor.monitoring_plan import (
    ACCURACY_DROP,
    BROKEN_RELATION,
    DATA_SHIFT,
    METRIC_DRIFT,
    RANKING_DRIFT,
    Plan,
    holm_correction,
)
from graphgauge.monitor.multivariate_drift import (
    PermutationResult,
    indicator_rows,
    permutation_test,
)
from graphgauge.monitor.run_sample import Sample, pool_samples
from graphgauge.monitor.scoring import is_prediction
from graphgauge.monitor.triggers import Trigger, format_signed, join_names
from graphgauge.monitor.two_sample_tests import TEST_NAMES, SampleDifference, compare_samples

_TEST_TITLES = {"ks": "Kolmogorov-Smirnov", "rank": "Mann-Whitney"}
LEAST_VALUES = 5  #: values on both sides below which nothing is compared
_CLEAR_Z, _MOST_NAMED = 3.0, 20  #: columns that are named beside the one that moved most
#: about relations in one trigger; columns that another one no longer follows, in one of them
_MOST_SENTENCES, _NAMED_BESIDE = (3, 2)


@dataclass(frozen=True)
class MetricDriftTest:
    """A metric compared with the baseline, over this run or over several."""

    metric: str
    runs: int  #: how many runs together
    n: int  #: targets with a value
    difference: SampleDifference
    corrected_p: dict[str, float]  #: p-values after Holm's correction

    @property
    def clearest_test(self) -> str:
        """The test with the smaller p-value."""
        return min(TEST_NAMES, key=lambda test: self.corrected_p[test])


class ColumnNames(NamedTuple):
    """Names of the features and of the data columns."""

    features: Sequence[str] = ()
    columns: Sequence[str] = ()

    def feature(self, k: int) -> str:
        """Return the name of a feature."""
        return self.features[k] if k < len(self.features) else f"feature {k}"

    def column(self, k: int) -> str:
        """Return the name of a data column."""
        return self.columns[k] if k < len(self.columns) else f"column {k}"

    @property
    def predictions(self) -> list[int]:
        """Numbers of the columns that hold predictions of the network."""
        return [
            k
            for k, name in enumerate(self.columns)
            if k >= len(self.features) and is_prediction(name)
        ]

    def place(self, k: int) -> str:
        """Name a column, with its number if it is a feature: "column 3 'income'"."""
        name = self.column(k)
        return (
            f"column {k} {name!r}"
            if k < len(self.features) and name not in (f"feature {k}", f"column {k}")
            else name
        )


def drift_triggers(
    baseline: Sample, runs: Sequence[Sample], plan: Plan, labels: ColumnNames, seed: int = 0
) -> list[Trigger]:
    """Raise a trigger for each drift in the last run.

    Args:
        baseline: The sample of the baseline.
        runs: The samples of all runs since the baseline; the last one is tested.
        plan: Levels, and how many runs are also tested together.
        labels: Names of features and columns.
        seed: Seed of the permutation tests.
    """
    number, last = len(runs), runs[-1]
    ranking = _compare_rankings(baseline, last, plan, derive_seed(seed, number))
    return [
        *_metric_triggers(run_metric_tests(baseline, runs, plan), plan),
        *_ranking_triggers(ranking, labels.feature, plan),
        *_data_triggers(baseline, last, plan, labels, derive_seed(seed, number)),
        *_accuracy_triggers(baseline, runs, plan),
    ]


def run_metric_tests(
    baseline: Sample, runs: Sequence[Sample], plan: Plan, kind: str = METRIC_DRIFT
) -> list[MetricDriftTest]:
    """Test all metrics of the last run, alone and together with the runs before it.

    Args:
        baseline: The sample of the baseline. Metrics with fewer than five values there or in the
            runs are not tested.
        runs: The samples of all runs since the baseline; the last one is tested.
        plan: ``window`` says how many of the last runs are also tested together.
        kind: The kind of drift whose level in the plan holds; p-values up to it are exact.

    Returns:
        A test for each metric and each number of runs, with p-values after Holm's correction over
        all of them.
    """
    level = plan.level(kind)
    spans = {
        1: runs[-1],
        **(
            {min(plan.window, len(runs)): pool_samples(runs[-plan.window :])}
            if len(runs) > 1 and plan.window > 1
            else {}
        ),
    }
    found = {
        (metric, count): (
            len(own.known(metric)),
            compare_samples(own.known(metric), baseline.known(metric), level),
        )
        for count, own in spans.items()
        for metric in baseline.metrics
        if min(len(own.known(metric)), len(baseline.known(metric))) >= LEAST_VALUES
    }
    corrected = holm_correction(
        {(*key, test): own.p[test] for key, (_, own) in found.items() for test in TEST_NAMES}
    )
    return [
        MetricDriftTest(
            metric, count, n, own, {test: corrected[metric, count, test] for test in TEST_NAMES}
        )
        for (metric, count), (n, own) in found.items()
    ]


def _metric_triggers(tested: Sequence[MetricDriftTest], plan: Plan) -> list[Trigger]:
    """Raise one trigger for each metric that drifted, with its clearest test."""
    drifted: dict[str, MetricDriftTest] = {}
    for own in sorted(tested, key=lambda own: own.corrected_p[own.clearest_test]):
        if own.corrected_p[own.clearest_test] <= plan.level():
            drifted.setdefault(own.metric, own)
    return [_metric_trigger(own, plan) for own in drifted.values()]


def _metric_trigger(own: MetricDriftTest, plan: Plan) -> Trigger:
    """Build the trigger of one metric."""
    p, found = own.corrected_p[own.clearest_test], own.difference
    where = "this run" if own.runs == 1 else f"the last {own.runs} runs"
    moved = "" if found.shift is None else f", the mean moved by {format_signed(found.shift)} SD"
    told = (
        f"{own.metric} of {where} ({own.n} targets) is not distributed as in the baseline: "
        f"{_TEST_TITLES[own.clearest_test]} p = {p:.2g} after correction, limit "
        f"{plan.level():.2g}; Cliff's delta {format_signed(found.effect)}{moved}, largest "
        f"distance {found.distance:.2f}."
    )
    details = {
        "runs": own.runs,
        "test": own.clearest_test,
        "distance": found.distance,
        "shift": found.shift,
        "n": own.n,
        "p": found.p,
    }
    return Trigger(METRIC_DRIFT, own.metric, told, p, plan.level(), found.effect, details)


def _accuracy_triggers(baseline: Sample, runs: Sequence[Sample], plan: Plan) -> list[Trigger]:
    """Raise a trigger if the model makes more errors than at the baseline; none without labels."""
    judged = run_metric_tests(
        baseline.errors_as_metrics, [run.errors_as_metrics for run in runs], plan, ACCURACY_DROP
    )
    level, worse = plan.level(ACCURACY_DROP), [own for own in judged if own.difference.effect > 0]
    own = min(worse, key=lambda own: own.corrected_p[own.clearest_test], default=None)
    if own is None or own.corrected_p[own.clearest_test] > level:
        return []
    new = pool_samples([run.errors_as_metrics for run in runs[-own.runs :]]).known(own.metric)
    old, where = (
        baseline.errors[own.metric],
        "this run" if own.runs == 1 else f"the last {own.runs} runs",
    )
    p = own.corrected_p[own.clearest_test]
    told = (
        f"the model errs more than at the baseline: the {own.metric} is {np.nanmean(old):.3g} on "
        f"average there, and {new.mean():.3g} in {where} ({own.n} targets with a label): "
        f"{_TEST_TITLES[own.clearest_test]} p = {p:.2g} after correction, limit {level:.2g}; "
        f"Cliff's delta {format_signed(own.difference.effect)}."
    )
    details = {
        "runs": own.runs,
        "test": own.clearest_test,
        "error": own.metric,
        "then": float(np.nanmean(old)),
        "now": float(new.mean()),
    }
    return [Trigger(ACCURACY_DROP, "", told, p, level, own.difference.effect, details)]


def control_limits(baseline: Sample, metric: str, n: int, plan: Plan) -> tuple[float, float] | None:
    """Return where the mean of n targets is expected, for a chart; the tests decide about drift.

        mean +- z SD sqrt(1/n + 1/m)    z: the normal quantile at the level of the strictest test

    Args:
        baseline: The sample of the baseline, with m values.
        metric: Name of the metric.
        n: Number of targets in the run that have a value.
        plan: The plan, for the level of the tests.

    Returns:
        The lower and the upper limit; None if the baseline has too few values, or the run has none.
    """
    values, tests = baseline.known(metric), 2 * len(TEST_NAMES) * max(1, len(baseline.metrics))
    if len(values) < LEAST_VALUES or n < 1:
        return None
    z = -NormalDist().inv_cdf(plan.level() / (2 * tests))
    reach = z * float(values.std(ddof=1)) * (1 / n + 1 / len(values)) ** 0.5
    return float(values.mean()) - reach, float(values.mean()) + reach


# --- features -------------------------------------------------------------------------------------


def _compare_rankings(
    baseline: Sample, run: Sample, plan: Plan, seed: int
) -> PermutationResult | None:
    """Test whether other features are among the strongest; None if rankings are not known."""
    if baseline.top is None or run.top is None or min(len(baseline), len(run)) < LEAST_VALUES:
        return None
    size = 1 + max((k for chosen in (*baseline.top, *run.top) for k in chosen), default=0)
    new, old = indicator_rows(list(run.top), size), indicator_rows(list(baseline.top), size)
    return permutation_test(
        new, old, plan.level(RANKING_DRIFT), make_generator(derive_seed(seed, RANKING_DRIFT))
    )


def _ranking_triggers(
    found: PermutationResult | None, label: Callable[[int], str], plan: Plan
) -> list[Trigger]:
    """Raise a trigger if the ranking of features has moved."""
    if found is None or found.p > plan.level(RANKING_DRIFT):
        return []
    moved = {label(k): float(found.z[k]) for k in _clearest_columns(found)}
    named = join_names([f"{own} ({format_signed(z, 1)})" for own, z in moved.items()])
    told = (
        f"the features that lead explanations are not those of the baseline: p = {found.p:.2g}, "
        f"limit {plan.level(RANKING_DRIFT):.2g}; moved most (z): {named}."
    )
    return [
        Trigger(
            RANKING_DRIFT,
            "",
            told,
            found.p,
            plan.level(RANKING_DRIFT),
            float(np.abs(found.z).max()),
            {"z": moved},
        )
    ]


def _clearest_columns(found: PermutationResult) -> list[int]:
    """Return the column that shifted most and others that shifted clearly, the largest first."""
    return [
        k
        for k in found.largest[:_MOST_NAMED]
        if abs(found.z[k]) >= _CLEAR_Z or k == found.largest[0]
    ]


# --- data -----------------------------------------------------------------------------------------


def _data_triggers(
    baseline: Sample, run: Sample, plan: Plan, labels: ColumnNames, seed: int
) -> list[Trigger]:
    """Raise triggers for columns that shifted and relations that broke; none without data."""
    if baseline.data is None or run.data is None or min(len(baseline), len(run)) < LEAST_VALUES:
        return []
    shift = shift_columns(run, baseline)
    moved = _compare_columns(shift, len(run), plan.level(DATA_SHIFT), derive_seed(seed, DATA_SHIFT))
    has_shifted = moved is not None and moved.p <= plan.level(DATA_SHIFT)
    named = (
        {shift.about[k].column for k in np.flatnonzero(np.abs(moved.z) >= _CLEAR_Z)}
        if moved is not None and has_shifted
        else set()
    )
    relations = relation_columns(run, baseline, labels.predictions)
    counted = np.array(
        [not named & {own.column, *own.others} for own in relations.about], dtype=bool
    )
    broken = _compare_columns(
        relations,
        len(run),
        plan.level(BROKEN_RELATION),
        derive_seed(seed, BROKEN_RELATION),
        counted,
    )
    width = baseline.data.shape[1]
    return [
        *_shift_triggers(shift, moved, plan, _make_column_namer(labels.column, shift, width)),
        *_relation_triggers(
            relations, broken, counted, plan, _make_column_namer(labels.place, relations, width)
        ),
    ]


def _compare_columns(
    looked: DriftColumns, n: int, level: float, seed: int, counted: NDArray[np.bool_] | None = None
) -> PermutationResult | None:
    """Test whether a column shifted in the first n rows; None if there is no column to count."""
    if not looked.about or (counted is not None and not counted.any()):
        return None
    return permutation_test(looked.rows[:n], looked.rows[n:], level, make_generator(seed), counted)


def _make_column_namer(
    label: Callable[[int], str], looked: DriftColumns, width: int
) -> Callable[[int], str]:
    """Return a function that names columns; label columns come after ``width`` data columns."""
    return lambda k: label(k) if k < width else looked.names[k - width]


def _shift_triggers(
    looked: DriftColumns, found: PermutationResult | None, plan: Plan, label: Callable[[int], str]
) -> list[Trigger]:
    """Raise a trigger for columns that shifted; each column is named once, by its largest shift."""
    level = plan.level(DATA_SHIFT)
    if found is None or found.p > level:
        return []
    first: dict[int, int] = {}
    for k in _clearest_columns(found):
        first.setdefault(looked.about[k].column, k)
    moved = {label(own): float(found.z[k]) for own, k in first.items()}
    named = join_names(
        [describe_shift(looked.about[k], float(found.z[k]), label(own)) for own, k in first.items()]
    )
    told = (
        f"the data of the targets are not those of the baseline: p = {found.p:.2g}, "
        f"limit {level:.2g}; moved most (z): {named}."
    )
    return [
        Trigger(DATA_SHIFT, "", told, found.p, level, float(np.abs(found.z).max()), {"z": moved})
    ]


def _relation_triggers(
    looked: DriftColumns,
    found: PermutationResult | None,
    counted: NDArray[np.bool_],
    plan: Plan,
    label: Callable[[int], str],
) -> list[Trigger]:
    """Raise a trigger for relations that broke; each column is named once, with the clearest."""
    level = plan.level(BROKEN_RELATION)
    if found is None or found.p > level:
        return []
    order = [k for k in found.largest if counted[k]]
    clear = [k for k in order[:_MOST_NAMED] if abs(found.z[k]) >= _CLEAR_Z or k == order[0]]
    sentences: dict[int, str] = {}
    for k in clear:
        about = looked.about[k]
        said = describe_relation(
            about,
            float(found.z[k]),
            [label(own) for own in (about.column, *about.others[:_NAMED_BESIDE])],
        )
        sentences.setdefault(about.column, said)
    named = sorted(
        {label(own) for k in clear for own in (looked.about[k].column, *looked.about[k].others[:1])}
    )
    broken = "; ".join(list(sentences.values())[:_MOST_SENTENCES])
    told = f"{broken}: p = {found.p:.2g} for all relations, limit {level:.2g}."
    largest = float(np.abs(found.z[order]).max())
    return [Trigger(BROKEN_RELATION, "", told, found.p, level, largest, {"columns": named})]
