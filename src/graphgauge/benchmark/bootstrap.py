"""Is one explainer better than another, or does the difference come from the drawn targets? Paired
differences and the paired bootstrap.

For the targets for which both explainers have a value, inside each configuration c (a task and a
model),

    difference = mean over c of mean over t of (first - second)

with a 95 % interval by Student's t (`core.intervals.difference_interval`; the percentile bootstrap
excludes 0 in 9 % of null cases with 10 targets). For ``wins`` and ``best``, targets are drawn again
with replacement inside each c: in which share of the draws is an explainer better? Pairing removes
what makes a target hard for every explainer. Only configurations in which all compared explainers
have values count: an explainer must not win because it has no values where the task is hard.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from graphgauge.benchmark.rank_correlation import Floats
from graphgauge.benchmark.resampling import (
    BOOTSTRAP_DRAWS,
    SAME_MEAN,
    ConfigurationValues,
    split_configurations,
)
from graphgauge.benchmark.tidy_table import Study, as_study
from graphgauge.core import Interval, UndefinedScore, difference_interval
from graphgauge.evaluation import Results, higher_is_better


@dataclass(frozen=True)
class PairedDifference:
    """Mean of the first explainer minus the mean of the second, with a 95 % interval.

    ``low`` and ``high`` are NaN where a configuration has a single target. ``wins`` is the share of
    the draws in which the first is better; a tie counts half. ``targets`` and ``configurations``
    count those for which both explainers have values.
    """

    metric: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    wins: float
    targets: int
    configurations: int

    @property
    def is_clear(self) -> bool:
        """Whether 0 lies outside the interval."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class ExplainerRanking:
    """All explainers compared with each other.

    ``difference``, ``low`` and ``high`` are square tables (row minus column); ``best`` says in
    which share of the draws each explainer is the best.
    """

    metric: str
    difference: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame
    best: pd.Series
    targets: int
    configurations: int

    def as_table(self) -> pd.DataFrame:
        """One row for each pair of explainers."""
        names = list(self.difference.index)
        pairs = [(first, second) for k, first in enumerate(names) for second in names[k + 1 :]]
        parts = {
            name: [getattr(self, name).loc[pair] for pair in pairs]
            for name in ("difference", "low", "high")
        }
        columns = {
            "first": [first for first, _ in pairs],
            "second": [second for _, second in pairs],
            **parts,
        }
        table = pd.DataFrame(columns)
        return table.assign(clear=(table["low"] > 0) | (table["high"] < 0))


def paired_bootstrap(
    results: Results | Study,
    metric: str,
    first: str,
    second: str,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int = 0,
) -> PairedDifference:
    """How much better the first explainer is than the second, and how certain that is.

    Args:
        results: Results, or the table made of them.
        metric: Name of a metric.
        first: Label of an explainer.
        second: Label of another one.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
    """
    study = as_study(results).only(explainer=[first, second])
    common = _common_configurations(study, metric, [first, second])
    mean, drawn_mean = _paired_means(common, draws, seed)
    gap = drawn_mean[:, 0] - drawn_mean[:, 1]
    sign = 1 if higher_is_better(metric) else -1
    wins = float(((sign * gap > SAME_MEAN) + (np.abs(gap) <= SAME_MEAN) / 2).mean())
    count = sum(len(part.cases) for part in common)
    low, high = _interval_of_difference(common, 0, 1)
    return PairedDifference(
        metric, first, second, float(mean[0] - mean[1]), low, high, wins, count, len(common)
    )


def ranking(
    results: Results | Study,
    metric: str,
    explainers: list[str] | None = None,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int = 0,
) -> ExplainerRanking:
    """Compare all explainers with each other, on the same draws.

    Args:
        results: Results, or the table made of them.
        metric: Name of a metric.
        explainers: Labels; by default all explainers with a value of this metric.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
    """
    study = as_study(results)
    measured = set(study.values(metric)["explainer"])
    names = (
        [name for name in study.explainers if name in measured]
        if explainers is None
        else explainers
    )
    common = _common_configurations(study.only(explainer=names), metric, names)
    mean, drawn_mean = _paired_means(common, draws, seed)
    places = range(len(names))
    bounds = np.array(
        [[_interval_of_difference(common, first, second) for second in places] for first in places]
    )
    square = {"index": names, "columns": names}
    return ExplainerRanking(
        metric,
        pd.DataFrame(mean[:, None] - mean[None, :], **square),
        pd.DataFrame(bounds[..., 0], **square),
        pd.DataFrame(bounds[..., 1], **square),
        pd.Series(_share_best(drawn_mean, higher_is_better(metric)), index=names, name="best"),
        sum(len(part.cases) for part in common),
        len(common),
    )


def _common_configurations(
    study: Study, metric: str, names: list[str]
) -> list[ConfigurationValues]:
    """The configurations in which all explainers have values. Raises `UndefinedScore` if there are
    none.
    """
    all_configurations = split_configurations(study, metric, names)
    common = [part for part in all_configurations if part.cases and not np.isnan(part.values).any()]
    if not common:
        raise UndefinedScore(
            f"{', '.join(names)} cannot be compared by {metric}: in no task and model do all of "
            "them have values for the same "
            "target. Compare fewer explainers at a time, or run them on the same tasks."
        )
    return common


def _interval_of_difference(common: list[ConfigurationValues], first: int, second: int) -> Interval:
    """95 % interval of the mean difference of two columns; NaN where a configuration has a single
    target.
    """
    gaps = [part.values[:, first] - part.values[:, second] for part in common]
    return difference_interval(*gaps) or (float("nan"), float("nan"))


def _paired_means(
    common: list[ConfigurationValues], draws: int, seed: int
) -> tuple[Floats, Floats]:
    """The means over configurations, for all cases and for each draw.  (E,), (B, E)"""
    mean = np.stack([part.values.mean(0) for part in common]).mean(0)
    return mean, np.stack([part.means(draws, seed) for part in common]).mean(0)


def _share_best(drawn: Floats, is_higher_better: bool) -> Floats:
    """In which share of the draws each explainer is best; those who tie share the draw.
    (B, E) -> (E,)

    >>> _share_best(np.array([[1.0, 1.0], [0.0, 2.0]]), True).tolist()
    [0.25, 0.75]
    """
    good = drawn if is_higher_better else -drawn
    is_best = good >= good.max(1, keepdims=True) - SAME_MEAN
    shares: Floats = (is_best / is_best.sum(1, keepdims=True)).mean(0)
    return shares
