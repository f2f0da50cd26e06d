"""Pareto fronts of pertinence against Effective Compactness, and of pertinence against time.

An explainer is on the front of two metrics if no other is as good in both and better in one. The
front is that of the means. ``share`` says how much of this could be chance: targets are drawn again
(see resampling.py), and the front is computed again from the means of each draw.

The paper speaks of "robustly non-dominated" solutions, on the front "across metric pairs and
tasks". Here that is an explainer that is on the front in every task, for a pair of metrics, or for
all four pairs. ``share`` is then the share of draws in which that holds.

Random scores are a baseline: nothing is faster, so they would be on every front against time. They
are shown, but they are on no front and dominate nobody.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from graphgauge.benchmark.explainer_names import (
    BASELINE_EXPLAINERS,
    PAPER_EXPLAINERS,
    sort_as_in_paper,
)
from graphgauge.benchmark.paper.published_numbers import table_1_of_the_paper
from graphgauge.benchmark.rank_correlation import Floats
from graphgauge.benchmark.resampling import (
    BOOTSTRAP_DRAWS,
    SAME_MEAN,
    resampled_means,
    split_configurations,
)
from graphgauge.benchmark.task_kinds import TASK_KIND_TITLES
from graphgauge.benchmark.tidy_table import Study, as_study
from graphgauge.core import Bools, Interval, JsonObject, UndefinedScore, is_on_front
from graphgauge.evaluation import Results, higher_is_better, interval_of_mean

#: the paper's pairs of metrics
METRIC_PAIRS = (
    ("feature_pertinence", "feature_ec"),
    ("edge_pertinence", "edge_ec"),
    ("feature_pertinence", "time"),
    ("edge_pertinence", "time"),
)
MetricPair = tuple[str, str]
ALL_PAIRS = "all pairs"


def _metric_signs(pair: MetricPair) -> Floats:
    """1 for metrics of which more is better, -1 for the others.  (2,)"""
    return np.array([1.0 if higher_is_better(metric) else -1.0 for metric in pair])


def available_pairs(study: Study, pairs: Sequence[MetricPair]) -> list[MetricPair]:
    """The pairs for which the results have both metrics.

    Args:
        study: The results.
        pairs: Pairs of names of metrics.

    Raises:
        UndefinedScore: if the results have no pair.
    """
    available = [pair for pair in pairs if set(pair) <= set(study.by_metric)]
    if not available:
        raise UndefinedScore(
            f"a front needs two metrics, but of {', '.join(map(str, pairs))} these results have "
            "no pair."
        )
    return available


def pareto_front(
    study: Study, pair: MetricPair, draws: int = BOOTSTRAP_DRAWS, seed: int = 0
) -> tuple[pd.DataFrame, Bools]:
    """The front of one study: a row for each explainer that has both metrics, and who is on it in
    each draw.  (B, E)

    Args:
        study: The results.
        pair: Names of two metrics.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
    """
    means, names = study.means, sort_as_in_paper(study.explainers)
    mean = np.array([[means.get((name, metric), np.nan) for metric in pair] for name in names])
    names, mean = (
        [name for name, row in zip(names, mean, strict=True) if not np.isnan(row).any()],
        mean[~np.isnan(mean).any(1)],
    )
    drawn = np.stack([resampled_means(study, metric, names, draws, seed) for metric in pair], -1)
    direction = _metric_signs(pair) * np.array(
        [[np.nan if name in BASELINE_EXPLAINERS else 1.0] for name in names]
    ).reshape(-1, 1)
    fronts_drawn = is_on_front(drawn * direction, SAME_MEAN)
    bounds = [[_explainer_interval(study, metric, name) for metric in pair] for name in names]
    low, high = np.moveaxis(np.array(bounds).reshape(len(names), len(pair), 2), -1, 0)
    table = pd.DataFrame(
        {
            "first": pair[0],
            "second": pair[1],
            "explainer": names,
            "first_mean": mean[:, 0],
            "second_mean": mean[:, 1],
            "front": is_on_front(mean * direction, SAME_MEAN),
            "share": fronts_drawn.mean(0),
            **{
                f"{place}_{end}": bound[:, k]
                for k, place in enumerate(("first", "second"))
                for end, bound in (("low", low), ("high", high))
            },
        }
    )
    return table, fronts_drawn


def _explainer_interval(study: Study, metric: str, explainer: str) -> Interval:
    """95 % interval of an explainer's mean over the targets of all its configurations; the mean
    itself where there is none.
    """
    groups = [
        part.values[:, 0]
        for part in split_configurations(study.only(explainer=[explainer]), metric, [explainer])
        if part.cases
    ]
    mean = study.means[explainer, metric]
    return interval_of_mean(metric, *groups) or (mean, mean)


def fronts(
    results: Results | Study,
    pairs: Sequence[MetricPair] = METRIC_PAIRS,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """The fronts of every kind of task and of every task. For kinds, the column ``paper_front``
    says who is on the front of the paper's table.

    Args:
        results: Results, or the table made of them.
        pairs: Pairs of metrics.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
    """
    study = as_study(results)
    metric_pairs = available_pairs(study, pairs)
    parts = [
        pareto_front(part, pair, draws, seed)[0].assign(scope=scope, name=name)
        for scope, name, part in analysis_scopes(study)
        for pair in metric_pairs
    ]
    table = pd.concat(parts, ignore_index=True)
    table["paper_front"] = [
        _is_on_paper_front(*row)
        for row in table[["name", "first", "second", "explainer"]].itertuples(index=False)
    ]
    leading = ["scope", "name"]
    return table[[*leading, *(column for column in table.columns if column not in leading)]]


def analysis_scopes(study: Study) -> list[tuple[str, str, Study]]:
    """The study of every kind of task, then of every task: scope, name and rows."""
    kinds = [("kind", kind, study.only(kind=kind)) for kind in study.kinds]
    return kinds + [("task", task, study.only(task=task)) for task in study.tasks]


def _is_on_paper_front(kind: str, first: str, second: str, explainer: str) -> bool | None:
    """Whether an explainer is on the front of the paper's table; None where the paper has no such
    cell.
    """
    if (
        kind not in TASK_KIND_TITLES
        or explainer not in PAPER_EXPLAINERS
        or (first, second) not in METRIC_PAIRS
    ):
        return None
    paper = table_1_of_the_paper()
    points = np.array(
        [
            [paper[kind, name, metric].mean for metric in (first, second)]
            for name in PAPER_EXPLAINERS
        ]
    )
    return bool(
        is_on_front(points * _metric_signs((first, second)), SAME_MEAN)[
            list(PAPER_EXPLAINERS).index(explainer)
        ]
    )


def robustly_non_dominated(
    results: Results | Study,
    pairs: Sequence[MetricPair] = METRIC_PAIRS,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Who is on the front in every task, for each pair of metrics and for all of them.

    Columns: pair, explainer, tasks (in which it has both metrics), on_front (in how many), robust
    (in every task, none missing), share of the draws in which it is robust.

    Args:
        results: Results, or the table made of them.
        pairs: Pairs of metrics.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.
    """
    study = as_study(results)
    metric_pairs, names = (
        available_pairs(study, pairs),
        [name for name in sort_as_in_paper(study.explainers) if name not in BASELINE_EXPLAINERS],
    )
    measured = [
        (
            pair,
            [
                _front_membership(study.only(task=task), pair, names, draws, seed)
                for task in study.tasks
            ],
        )
        for pair in metric_pairs
    ]
    lines = [
        line
        for pair, parts in measured
        for line in _robustness_rows(" / ".join(pair), parts, names)
    ]
    everything = [part for _, parts in measured for part in parts]
    return pd.DataFrame(
        [*lines, *(_robustness_rows(ALL_PAIRS, everything, names) if len(metric_pairs) > 1 else [])]
    )


def _front_membership(
    study: Study, pair: MetricPair, names: list[str], draws: int, seed: int
) -> tuple[Bools, Bools, Bools]:
    """For one task and all explainers: is it measured, is it on the front, and is it in each draw.
    (E,), (E,), (B, E)
    """
    table, drawn = pareto_front(
        study.only(explainer=[name for name in names if name in study.explainers]),
        pair,
        draws,
        seed,
    )
    place = [names.index(name) for name in table["explainer"]]
    is_measured, is_on = np.zeros(len(names), bool), np.zeros(len(names), bool)
    every = np.zeros((draws, len(names)), bool)
    is_measured[place], is_on[place], every[:, place] = True, table["front"].to_numpy(bool), drawn
    return is_measured, is_on, every


def _robustness_rows(
    pair: str, parts: list[tuple[Bools, Bools, Bools]], names: list[str]
) -> list[JsonObject]:
    """A row for each explainer, over all tasks."""
    measured, on, drawn = (np.stack([part[k] for part in parts]) for k in range(3))
    return [
        {
            "pair": pair,
            "explainer": name,
            "tasks": int(measured[:, e].sum()),
            "on_front": int(on[:, e].sum()),
            "robust": bool(on[:, e].all()),
            "share": float(drawn[:, :, e].all(0).mean()),
        }
        for e, name in enumerate(names)
    ]
