"""Bootstrap draws: targets drawn again, with replacement, inside each configuration.

The targets are a sample, the tasks and models are not: so targets are drawn inside (task, model),
and configurations are kept. For a metric and a set of explainers, the cases of a configuration are
those for which every explainer that has a value there has one (an explainer with none at all gets
NaN). The draws are seeded by (seed, task, model): a configuration draws the same cases whichever
others take part, and two metrics with the same number of cases draw the same cases, which keeps
them paired.

    mean_b(e) = (1/n) Σ_i count_b(i) value(i, e)                            draw b of n cases
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphgauge.benchmark.rank_correlation import Floats
from graphgauge.benchmark.tidy_table import CONFIGURATION_COLUMNS, Study
from graphgauge.core import BadSetting, derive_seed

BOOTSTRAP_DRAWS = 2000
_INTERVAL_QUANTILES = (0.025, 0.975)
SAME_MEAN = 1e-9  #: means closer than this are the same number, added up in another order


@dataclass(frozen=True)
class ConfigurationValues:
    """The values of one metric in one (task, model): a column for each explainer, NaN for one
    without values.
    """

    task: str
    model: str
    cases: tuple[str, ...]
    values: Floats  #: (n, E)

    def means(self, draws: int, seed: int) -> Floats:
        """The means of each draw.  (B, E)"""
        return self.counts(draws, seed) @ self.values / max(1, len(self.cases))

    def counts(self, draws: int, seed: int) -> Floats:
        """How often each draw has each case.  (B, n)"""
        return _count_draws(
            _draw_cases(
                len(self.cases), draws, derive_seed(seed, "bootstrap", self.task, self.model)
            ),
            len(self.cases),
        )


def _draw_cases(size: int, draws: int, seed: int) -> NDArray[np.int64]:
    """Draw cases with replacement.  (B, n)"""
    if draws < 1:
        raise BadSetting(f"draws must be 1 or more, but is {draws}.")
    return np.random.default_rng(seed).integers(0, max(1, size), (draws, size))


def _count_draws(chosen: NDArray[np.int64], size: int) -> Floats:
    """How often each case was drawn.  (B, n) -> (B, n)

    >>> _count_draws(np.array([[0, 0, 2], [1, 1, 1]]), 3).tolist()
    [[2.0, 0.0, 1.0], [0.0, 3.0, 0.0]]
    """
    lines = np.arange(len(chosen))[:, None] * size
    return (
        np.bincount((chosen + lines).ravel(), minlength=len(chosen) * size)
        .reshape(len(chosen), size)
        .astype(np.float64)
    )


def split_configurations(
    study: Study, metric: str, explainers: list[str]
) -> list[ConfigurationValues]:
    """Split the values of a metric into configurations, complete over the explainers that have any
    there.
    """
    values = study.values(metric)
    groups = values.groupby(CONFIGURATION_COLUMNS, sort=False)
    return [_pivot_configuration(task, model, part, explainers) for (task, model), part in groups]


def _pivot_configuration(
    task: str, model: str, part: pd.DataFrame, explainers: list[str]
) -> ConfigurationValues:
    """The values of one configuration, with a column for each explainer."""
    wide = (
        part.pivot(index="case", columns="explainer", values="value")
        .reindex(columns=explainers)
        .sort_index()
    )
    present = wide.columns[wide.notna().any()]
    wide = wide.dropna(subset=present)
    return ConfigurationValues(task, model, tuple(wide.index), wide.to_numpy(dtype=np.float64))


def resampled_means(
    study: Study, metric: str, explainers: list[str], draws: int, seed: int
) -> Floats:
    """For each draw the mean over configurations, for each explainer over those in which it has
    values.  (B, E)
    """
    means = [
        part.means(draws, seed)
        for part in split_configurations(study, metric, explainers)
        if part.cases
    ]
    return mean_without_nan(np.stack(means)) if means else np.full((draws, len(explainers)), np.nan)


def mean_without_nan(values: Floats) -> Floats:
    """The mean along the first axis over values that are not NaN; NaN where all are.  (G, ...) ->
    (...)
    """
    known = ~np.isnan(values)
    number = known.sum(0)
    total = np.where(known, values, 0.0).sum(0)
    return np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0)


def percentile_interval(values: Floats) -> tuple[float, float]:
    """The middle 95 % of the draws that have a value.  (B,)"""
    known = values[~np.isnan(values)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, _INTERVAL_QUANTILES)
    return float(low), float(high)
