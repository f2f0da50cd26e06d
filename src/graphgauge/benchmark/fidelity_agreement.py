"""Do fidelity and its relatives agree with Pertinence and Effective Compactness? The paper claims
"a clear relationship".

Two questions, both answered by Spearman's ρ with a bootstrap interval (targets are drawn again
inside each task and model):

    targets      Within one explainer, task and model: does an explanation that scores well by one
                 metric score well by the other? ρ of each, then the mean over tasks and models
                 (and over explainers).
    explainers   Within a kind of task: do the means of both metrics order explainers alike?

``expected`` is the sign that agreement has: fidelity_plus and pertinence should rise together,
fidelity_plus and EC should not. ``agree``: the whole interval lies on that side. "all" rows average
the ρ of the rows above them.

The ranks of a draw come from counts: with cases sorted into groups of equal values, and C_g the
number drawn from group g,

    rank of group g = C_1 + ... + C_g - (C_g - 1) / 2
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from graphgauge.benchmark.explainer_names import BASELINE_EXPLAINERS
from graphgauge.benchmark.rank_correlation import Floats, spearman_correlation
from graphgauge.benchmark.resampling import (
    ConfigurationValues,
    mean_without_nan,
    percentile_interval,
    resampled_means,
)
from graphgauge.benchmark.tidy_table import CONFIGURATION_COLUMNS, Study, as_study
from graphgauge.core import JsonObject, UndefinedScore
from graphgauge.evaluation import Results, higher_is_better

_FIDELITY_METRICS = ("fidelity_plus", "fidelity_minus", "characterization", "unfaithfulness")
_COMPARED_METRICS = ("pertinence", "ec")
_LEAST_POINTS = 3  #: cases or explainers below which a correlation says nothing
_ALL_LABEL = "all"
_CORRELATION_DRAWS = 500


@dataclass(frozen=True)
class _RankCorrelation:
    """One correlation: over the targets of a configuration and explainer, or over the explainers of
    a kind.
    """

    level: str
    kind: str
    explainer: str
    side: str
    fidelity: str
    metric: str
    rho: float
    drawn: Floats  #: (B,)
    points: int


def agreement(
    results: Results | Study,
    fidelity: Sequence[str] = _FIDELITY_METRICS,
    ours: Sequence[str] = _COMPARED_METRICS,
    draws: int = _CORRELATION_DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Correlate the fidelity family with Pertinence and EC; one row per level, kind, explainer,
    side and pair of metrics.

    Args:
        results: Results with the extra metrics, or the table made of them.
        fidelity: Metrics of the fidelity family.
        ours: Metrics to compare them with.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
    """
    study = _drop_baselines(as_study(results))
    parts = [
        *_correlate_over_targets(study, fidelity, ours, draws, seed),
        *_correlate_over_explainers(study, fidelity, ours, draws, seed),
    ]
    if not parts:
        raise UndefinedScore(
            f"there is nothing to correlate: none of {', '.join(fidelity)} is in these results "
            "for three targets or more. They are "
            "extra metrics: evaluate with extras=True."
        )
    return _summarise_correlations(parts)


def _drop_baselines(study: Study) -> Study:
    """The explainers that are no baselines. Random scores are last by every metric, which would
    look like agreement.
    """
    return study.only(
        explainer=[name for name in study.explainers if name not in BASELINE_EXPLAINERS]
    )


# --- over targets ---------------------------------------------------------------------------------


def _correlate_over_targets(
    study: Study, fidelity: Sequence[str], ours: Sequence[str], draws: int, seed: int
) -> Iterator[_RankCorrelation]:
    """One correlation for each configuration, explainer, side and pair of metrics."""
    names = [f"{side}_{form}" for side in ("feature", "edge") for form in (*fidelity, *ours)]
    chosen = study.good[study.good["metric"].isin(names)]
    for (task, model, kind, explainer), part in chosen.groupby(
        [*CONFIGURATION_COLUMNS, "kind", "explainer"], sort=False
    ):
        wide = part.pivot(index="case", columns="metric", values="value").sort_index()
        for side in ("feature", "edge"):
            side_values = (
                wide[[name for name in wide.columns if name.startswith(side)]]
                .dropna(axis=1, how="all")
                .dropna()
            )
            yield from _correlate_side(
                side_values, (kind, explainer, side), (fidelity, ours), task, model, draws, seed
            )


def _correlate_side(
    side_values: pd.DataFrame,
    place: tuple[str, str, str],
    forms: tuple[Sequence[str], Sequence[str]],
    task: str,
    model: str,
    draws: int,
    seed: int,
) -> Iterator[_RankCorrelation]:
    """The correlations of one side, of one kind, explainer and side (``place``) and for each pair
    of a fidelity metric with one of ours (``forms``).
    """
    kind, explainer, side = place
    if len(side_values) < _LEAST_POINTS:
        return
    counts = ConfigurationValues(
        task, model, tuple(side_values.index), side_values.to_numpy(np.float64)
    ).counts(draws, seed)
    weights = np.concatenate([np.ones((1, len(side_values))), counts])
    ranked = {
        name: _resampled_ranks(side_values[name].to_numpy(np.float64), weights)
        for name in side_values.columns
    }
    for first, second in (
        (f, o)
        for f in forms[0]
        for o in forms[1]
        if {f"{side}_{f}", f"{side}_{o}"} <= set(side_values.columns)
    ):
        rho = _weighted_correlation(ranked[f"{side}_{first}"], ranked[f"{side}_{second}"], weights)
        if not np.isnan(rho[0]):
            yield _RankCorrelation(
                "targets",
                kind,
                explainer,
                side,
                first,
                second,
                float(rho[0]),
                rho[1:],
                len(side_values),
            )


def _resampled_ranks(values: Floats, counts: Floats) -> Floats:
    """Ranks of each case in each draw, minus their mean.  (n,), (B, n) -> (B, n)

    >>> draws = np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0]])
    >>> _resampled_ranks(np.array([5.0, 1.0, 5.0]), draws).tolist()
    [[0.5, -1.0, 0.5], [0.5, -1.0, 0.5]]
    """
    _, group = np.unique(values, return_inverse=True)
    size = counts @ (group[:, None] == np.arange(group.max() + 1)).astype(np.float64)
    rank = size.cumsum(1) - (size - 1) / 2
    return rank[:, group] - (counts.sum(1, keepdims=True) + 1) / 2


def _weighted_correlation(first: Floats, second: Floats, weight: Floats) -> Floats:
    """Correlation of ranks whose weighted mean is 0; NaN where one of them is constant.  (B, n) x 3
    -> (B,)
    """
    scale = np.sqrt((weight * first**2).sum(1) * (weight * second**2).sum(1))
    return np.divide(
        (weight * first * second).sum(1), scale, out=np.full_like(scale, np.nan), where=scale > 0
    )


# --- over explainers ------------------------------------------------------------------------------


def _correlate_over_explainers(
    study: Study, fidelity: Sequence[str], ours: Sequence[str], draws: int, seed: int
) -> Iterator[_RankCorrelation]:
    """One correlation for each kind, side and pair of metrics."""
    for kind in study.kinds:
        kind_study = study.only(kind=kind)
        for side in ("feature", "edge"):
            for first, second in ((f, o) for f in fidelity for o in ours):
                yield from _correlate_means(kind_study, kind, side, first, second, draws, seed)


def _correlate_means(
    study: Study, kind: str, side: str, first: str, second: str, draws: int, seed: int
) -> Iterator[_RankCorrelation]:
    """The correlation of two metrics' means over explainers."""
    names = (f"{side}_{first}", f"{side}_{second}")
    means = study.means.unstack("metric")
    if not set(names) <= set(means.columns):
        return
    both = means[list(names)].dropna()
    if len(both) < _LEAST_POINTS:
        return
    rho = float(
        spearman_correlation(both[names[0]].to_numpy(float), both[names[1]].to_numpy(float))
    )
    if rho == rho:
        drawn = [
            resampled_means(study, name, list(both.index), draws, seed).round(9) for name in names
        ]
        yield _RankCorrelation(
            "explainers",
            kind,
            _ALL_LABEL,
            side,
            first,
            second,
            rho,
            spearman_correlation(*drawn),
            len(both),
        )


# --- together -------------------------------------------------------------------------------------


def _summarise_correlations(parts: list[_RankCorrelation]) -> pd.DataFrame:
    """Means over correlations: for each kind and explainer, over explainers, over kinds,
    over both.
    """
    groups: dict[tuple[str, ...], list[_RankCorrelation]] = {}
    for part in parts:
        for kind, explainer in dict.fromkeys(
            (k, e) for k in (part.kind, _ALL_LABEL) for e in (part.explainer, _ALL_LABEL)
        ):
            groups.setdefault(
                (part.level, part.side, part.fidelity, part.metric, kind, explainer), []
            ).append(part)
    table = pd.DataFrame([_summary_row(name, members) for name, members in groups.items()])
    order = ["level", "side", "fidelity", "metric"]
    return table.sort_values(order, kind="stable", key=_order_of_appearance).reset_index(drop=True)


def _summary_row(name: tuple[str, ...], parts: list[_RankCorrelation]) -> JsonObject:
    """One row: the mean of ρ over several correlations, and over their draws."""
    level, side, fidelity, metric, kind, explainer = name
    low, high = percentile_interval(mean_without_nan(np.stack([part.drawn for part in parts])))
    expected = 1 if higher_is_better(fidelity) == higher_is_better(metric) else -1
    return {
        "level": level,
        "side": side,
        "fidelity": fidelity,
        "metric": metric,
        "kind": kind,
        "explainer": explainer,
        "rho": float(np.mean([part.rho for part in parts])),
        "low": low,
        "high": high,
        "expected": expected,
        "agree": bool(low > 0 if expected > 0 else high < 0),
        "parts": len(parts),
        "points": sum(part.points for part in parts),
    }


def _order_of_appearance(column: pd.Series) -> pd.Series:
    """Sort keys that keep the order of first appearance."""
    place = {name: k for k, name in enumerate(dict.fromkeys(column))}
    return column.map(place)
