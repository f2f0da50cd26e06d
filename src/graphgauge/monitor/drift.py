"""Drift against the baseline: metrics, the ranking of features, the data. Each kind has `Plan.level` to spend at a look.

Metrics: for every metric, both tests of `two_samples`, on the targets of this run and on those of the last few runs together, with
Holm's correction over all of them. Ranking: per feature, is it among the strongest few of an explanation (0 or 1)? Data: per
column, the rank among all targets. Both by `columns.movement`, one p-value for all columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from graphgauge.core.seeds import derive_seed, generator
from graphgauge.monitor.columns import Movement, as_indicators, movement, ranked
from graphgauge.monitor.plan import DATA, METRIC, RANKING, Plan, holm
from graphgauge.monitor.samples import Sample, pooled
from graphgauge.monitor.triggers import Trigger, listed
from graphgauge.monitor.two_samples import TESTS, Difference, difference

NAMES = {"ks": "Kolmogorov-Smirnov", "rank": "Mann-Whitney"}
LEAST = 5  #: values on both sides below which nothing is compared
CLEAR_Z, MOST_NAMED = 3.0, 20  #: columns that are named beside the one that moved most


@dataclass(frozen=True)
class Compared:
    """One metric compared with the baseline, over this run or over several."""

    metric: str
    runs: int  #: how many runs together
    n: int  #: targets with a value
    found: Difference
    corrected: dict[str, float]  #: p-values after Holm's correction

    @property
    def best(self) -> str:
        """The test with the smaller p-value."""
        return min(TESTS, key=lambda test: self.corrected[test])


class Labels(NamedTuple):
    """What the numbers of features and of columns stand for."""

    features: Sequence[str] = ()
    columns: Sequence[str] = ()

    def feature(self, k: int) -> str:
        """The name of a feature."""
        return self.features[k] if k < len(self.features) else f"feature {k}"

    def column(self, k: int) -> str:
        """The name of a column."""
        return self.columns[k] if k < len(self.columns) else f"column {k}"


def drift_triggers(baseline: Sample, runs: Sequence[Sample], plan: Plan, labels: Labels, seed: int = 0) -> list[Trigger]:
    """All drift that the last of the runs since the baseline shows."""
    number, last = len(runs), runs[-1]
    ranking = ranking_movement(baseline, last, plan, derive_seed(seed, number))
    data = data_movement(baseline, last, plan, derive_seed(seed, number))
    return [
        *metric_triggers(metric_tests(baseline, runs, plan), plan),
        *movement_triggers(RANKING, ranking, labels.feature, plan),
        *movement_triggers(DATA, data, labels.column, plan),
    ]


def metric_tests(baseline: Sample, runs: Sequence[Sample], plan: Plan) -> list[Compared]:
    """All metrics of the last run, alone and with those before it; ``runs`` are all since the baseline, the last one last."""
    spans = {
        1: runs[-1],
        **({min(plan.window, len(runs)): pooled(runs[-plan.window :])} if len(runs) > 1 and plan.window > 1 else {}),
    }
    found = {
        (metric, count): (len(own.known(metric)), difference(own.known(metric), baseline.known(metric), plan.level()))
        for count, own in spans.items()
        for metric in baseline.metrics
        if min(len(own.known(metric)), len(baseline.known(metric))) >= LEAST
    }
    corrected = holm({(*key, test): own.p[test] for key, (_, own) in found.items() for test in TESTS})
    return [
        Compared(metric, count, n, own, {test: corrected[metric, count, test] for test in TESTS})
        for (metric, count), (n, own) in found.items()
    ]


def metric_triggers(tested: Sequence[Compared], plan: Plan) -> list[Trigger]:
    """One trigger for each metric that has drifted: its clearest test."""
    drifted: dict[str, Compared] = {}
    for own in sorted(tested, key=lambda own: own.corrected[own.best]):
        if own.corrected[own.best] <= plan.level():
            drifted.setdefault(own.metric, own)
    return [metric_trigger(own, plan) for own in drifted.values()]


def metric_trigger(own: Compared, plan: Plan) -> Trigger:
    """The evidence of one metric."""
    p, found = own.corrected[own.best], own.found
    where = "this run" if own.runs == 1 else f"the last {own.runs} runs"
    moved = "" if found.shift is None else f", the mean moved by {found.shift:+.2f} SD"
    told = (
        f"{own.metric} of {where} ({own.n} targets) is not distributed as in the baseline: {NAMES[own.best]} p = {p:.2g} after "
        f"correction, limit {plan.level():.2g}; Cliff's delta {found.effect:+.2f}{moved}, largest distance {found.distance:.2f}."
    )
    details = {"runs": own.runs, "test": own.best, "distance": found.distance, "shift": found.shift, "n": own.n, "p": found.p}
    return Trigger(METRIC, own.metric, told, p, plan.level(), found.effect, details)


def control_limits(baseline: Sample, metric: str, n: int, plan: Plan) -> tuple[float, float] | None:
    """Where the mean of n targets is expected, for a picture; the tests decide. None where the baseline has too few values.

    mean ± z SD sqrt(1/n + 1/m)        z: the normal quantile at the level of the strictest test of a look
    """
    values, tests = baseline.known(metric), 2 * len(TESTS) * max(1, len(baseline.metrics))
    if len(values) < LEAST or n < 1:
        return None
    z = -NormalDist().inv_cdf(plan.level() / (2 * tests))
    reach = z * float(values.std(ddof=1)) * (1 / n + 1 / len(values)) ** 0.5
    return float(values.mean()) - reach, float(values.mean()) + reach


# --- features ----------------------------------------------------------------------------------------------------------


def ranking_movement(baseline: Sample, run: Sample, plan: Plan, seed: int) -> Movement | None:
    """Whether other features are among the strongest; None where the ranking is not known."""
    if baseline.top is None or run.top is None or min(len(baseline), len(run)) < LEAST:
        return None
    size = 1 + max((k for chosen in (*baseline.top, *run.top) for k in chosen), default=0)
    new, old = as_indicators(list(run.top), size), as_indicators(list(baseline.top), size)
    return movement(new, old, plan.level(RANKING), generator(derive_seed(seed, RANKING)))


def data_movement(baseline: Sample, run: Sample, plan: Plan, seed: int) -> Movement | None:
    """Whether a column of the data has moved; None where the data are not known."""
    if baseline.data is None or run.data is None or min(len(baseline), len(run)) < LEAST:
        return None
    ranks = ranked(np.concatenate([run.data, baseline.data]))
    return movement(ranks[: len(run)], ranks[len(run) :], plan.level(DATA), generator(derive_seed(seed, DATA)))


def movement_triggers(name: str, found: Movement | None, label: Callable[[int], str], plan: Plan) -> list[Trigger]:
    """The trigger of a ranking or of data that moved; none if they did not."""
    if found is None or found.p > plan.level(name):
        return []
    moved = {label(k): float(found.z[k]) for k in found.largest[:MOST_NAMED] if abs(found.z[k]) >= CLEAR_Z or k == found.largest[0]}
    what = "the features that lead explanations are" if name == RANKING else "the data of the targets are"
    named = listed([f"{own} ({z:+.1f})" for own, z in moved.items()])
    told = f"{what} not those of the baseline: p = {found.p:.2g}, limit {plan.level(name):.2g}; moved most (z): {named}."
    return [Trigger(name, "", told, found.p, plan.level(name), float(np.abs(found.z).max()), {"z": moved})]
