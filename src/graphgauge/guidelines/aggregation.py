"""Aggregated scores: one per (task, model, explainer, metric), from a run or a table of means.

A run has the values of all targets. The interval of a mean is `core.intervals.mean_interval`, which
covers the true mean in 93 to 97 % of cases for 10 to 200 values, skewed or bounded
(docs/validity.md).

Of the similarity that permuted scores reach, S0, results store only the corrected stability
c = (S - S0) / (1 - S0). So S0 = (S - c) / (1 - c).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphgauge.core import BadSetting, Interval, Target
from graphgauge.evaluation import OK, Results, Settings, interval_of_mean
from graphgauge.guidelines.reference_data import TASK_KINDS, load_guideline
from graphgauge.guidelines.requirements import Requirements
from graphgauge.metrics import MetricName

if TYPE_CHECKING:
    import pandas as pd

    from graphgauge.guidelines.paired_comparisons import PairedComparison, RandomComparison

#: columns that a table of means must have; it may have sd and n too
_TABLE_COLUMNS = ("task", "explainer", "metric", "mean")
_EXPLANATION_KEYS = ["task", "model", "explainer", "target", "occurrence"]  #: of one explanation
SIDES = ("feature", "edge")
JUDGED_METRICS = (
    "feature_pertinence",
    "edge_pertinence",
    "feature_ec",
    "edge_ec",
    "feature_stability",
    "edge_stability",
    "time",
)
Subject = tuple[str, str, str]  #: task, model, explainer
CaseKey = tuple[str, Target, int]  #: of one explainer: model, target, occurrence


@dataclass(frozen=True)
class AggregatedScore:
    """The mean of a metric over targets. ``n`` is None if a table does not say it."""

    mean: float | None
    n: int | None = None
    values: tuple[float, ...] = ()  #: sorted
    missing: Mapping[str, int] = field(default_factory=dict)
    #: the values by network, target and occurrence
    cases: Mapping[CaseKey, float] = field(default_factory=dict, compare=False)
    metric: str = ""

    @cached_property
    def interval(self) -> Interval | None:
        """The 95 % interval of the mean; None without values, or if some network has only one."""
        return interval_of_mean(self.metric, *values_by_model(self.cases).values())


@dataclass(frozen=True)
class AggregatedScores:
    """All scores by subject and metric, with what is needed to judge them."""

    measures: Mapping[tuple[Subject, str], AggregatedScore]
    kinds: Mapping[str, str | None]  #: kind of each task
    cap: int
    pertinence: str = "pertinence"  #: which form is judged: "pertinence" or "pertinence_tied"
    focus: str | None = None  #: the side that is judged; None: both
    #: whether edits are to move values in one direction, so that |change| is another question
    is_one_way: bool = False
    #: comparisons that were made before, of two explainers and of one with random
    compared: dict[tuple[Subject, Subject, str], "PairedComparison | None"] = field(
        default_factory=dict, compare=False
    )
    beside_random: dict[tuple[Subject, str, str], "RandomComparison | None"] = field(
        default_factory=dict, compare=False
    )

    def subjects(self, task: str | None = None) -> list[Subject]:
        """Return the subjects in order, of one task or of all."""
        return list(
            dict.fromkeys(subject for subject, _ in self.measures if task in (None, subject[0]))
        )

    def get(self, subject: Subject, metric: str) -> AggregatedScore | None:
        """Return the score of a subject; None if it was not measured."""
        return self.measures.get((subject, metric))

    def judged_metrics(self) -> list[str]:
        """Return the seven metrics that get verdicts, or four if only one side is judged.

        Pertinence has the form that the settings put first.
        """
        names = [MetricName.parse(name) for name in JUDGED_METRICS]
        return [
            f"{name.side}_{self.pertinence}" if name.family == "pertinence" else str(name)
            for name in names
            if self.focus is None or name.side in (self.focus, "")
        ]


def aggregate_scores(
    given: "Results | pd.DataFrame", requirements: Requirements, merge_models: bool = False
) -> AggregatedScores:
    """Aggregate the scores of a run or of a table of means.

    Args:
        given: Results of a run, or a table with the columns task, explainer, metric and mean.
        requirements: What the explanations are used for.
        merge_models: Whether to average over networks too.
    """
    if isinstance(given, Results):
        return aggregate_run(given, requirements, merge_models)
    return _aggregate_table(given, requirements)


def aggregate_run(
    results: Results, requirements: Requirements, merge_models: bool = False
) -> AggregatedScores:
    """Aggregate a run: means over the targets of each network, then over networks if merged.

    Args:
        results: Results of a run.
        requirements: What the explanations are used for. The kind of task comes from here or, if it
            is None, from the name and the rows of each task; ``focus`` says which side is judged.
        merge_models: Whether to average over networks too. The network of a subject is then "".
    """
    table = add_stability_chance_rows(_select_needed_columns(results))
    columns = [
        table[name].to_numpy(dtype=object) for name in ("status", "model", "target", "occurrence")
    ]
    columns.append(table["value"].to_numpy())
    scores = {
        (subject, metric): _aggregate_group(metric, *(column[places] for column in columns))
        for (subject, metric), places in _group_rows(table, merge_models)
    }
    kinds = {
        str(task): requirements.task_kind or infer_task_kind(str(task), part)
        for task, part in table.groupby("task", sort=False)
    }
    form = judged_pertinence_form(results.settings, (metric for _, metric in scores))
    return AggregatedScores(
        scores, kinds, results.settings.cap, form, requirements.focus, is_one_way(results.settings)
    )


def is_one_way(settings: Settings) -> bool:
    """Whether edits are to move values in one direction; settings of older runs do not say."""
    return getattr(settings, "direction", "paper") in ("down", "up", "towards_reference")


def judged_pertinence_form(settings: Settings, metrics: Iterable[str]) -> str:
    """Return which form of pertinence is judged.

    It is the twin if the settings put twins first and it was measured.
    """
    has_tied = any(MetricName.parse(metric).without_side == "pertinence_tied" for metric in metrics)
    return "pertinence_tied" if settings.headline == "twins" and has_tied else "pertinence"


def _select_needed_columns(results: Results) -> "pd.DataFrame":
    """Select the columns of `Results.to_pandas` that are read here; a long run has many rows."""
    return (
        results.with_seeds_as_networks()
        .table[[*_EXPLANATION_KEYS, "metric", "value", "status"]]
        .copy()
    )


def _group_rows(
    table: "pd.DataFrame", merge_models: bool
) -> Iterable[tuple[tuple[Subject, str], NDArray[np.intp]]]:
    """Yield each subject and metric with the places of its rows, in the order of the table."""
    whole = table.assign(model="") if merge_models else table
    places = whole.groupby(["task", "model", "explainer", "metric"], sort=False).indices
    in_order = sorted(places.items(), key=lambda item: int(item[1][0]))
    for (task, model, explainer, metric), rows in in_order:
        yield ((str(task), str(model), str(explainer)), str(metric)), rows


def _aggregate_group(
    metric: str,
    status: NDArray[np.object_],
    model: NDArray[np.object_],
    target: NDArray[np.object_],
    occurrence: NDArray[np.object_],
    value: NDArray[np.float64],
) -> AggregatedScore:
    """Average over targets, then over networks, and count missing values by reason.  (T,) each"""
    is_good = status == OK
    good, network = value[is_good], model[is_good]
    missing = dict(Counter(map(str, status[~is_good])).most_common())
    means = [float(np.sort(good[network == name]).mean()) for name in sorted(set(network))]
    keys = zip(network, target[is_good], occurrence[is_good], strict=True)
    cases = dict(zip(keys, good.tolist(), strict=True))
    mean = float(np.mean(means)) if means else None
    return AggregatedScore(mean, len(good), tuple(np.sort(good).tolist()), missing, cases, metric)


def values_by_model(cases: Mapping[CaseKey, float]) -> dict[str, list[float]]:
    """Group values by network."""
    groups: dict[str, list[float]] = {}
    for (model, _, _), value in cases.items():
        groups.setdefault(model, []).append(value)
    return groups


def add_stability_chance_rows(table: "pd.DataFrame") -> "pd.DataFrame":
    """Append a row for each corrected stability: the similarity S0 that permuted scores reach."""
    import pandas as pd

    parts = [table]
    for side in SIDES if _has_metric(table, "stability_corrected") else ():
        raw, corrected = (
            table[(table["metric"] == f"{side}_{form}") & (table["status"] == OK)]
            for form in ("stability", "stability_corrected")
        )
        both = raw.merge(
            corrected[[*_EXPLANATION_KEYS, "value"]],
            on=_EXPLANATION_KEYS,
            suffixes=("", "_corrected"),
        )
        both = both[both["value_corrected"] < 1 - 1e-9]
        both["value"] = (both["value"] - both["value_corrected"]) / (1 - both["value_corrected"])
        parts.append(both.drop(columns="value_corrected").assign(metric=f"{side}_stability_chance"))
    return pd.concat([part for part in parts if len(part)] or [table], ignore_index=True)


def infer_task_kind(task: str, rows: "pd.DataFrame") -> str | None:
    """Infer the kind of a task from its name, or from its rows.

    Pairs of nodes are links, and |change| is measured for values only.
    """
    if task in TASK_KINDS or not len(rows):
        return task if task in TASK_KINDS else None
    level = "link" if isinstance(rows["target"].iloc[0], tuple) else "node"
    is_regression = _has_metric(rows, "pertinence_abs")
    return f"{level}_{'regression' if is_regression else 'classification'}"


def _has_metric(rows: "pd.DataFrame", name: str) -> bool:
    """Whether the rows have a metric, named without its side."""
    return any(MetricName.parse(metric).without_side == name for metric in set(rows["metric"]))


def _aggregate_table(table: "pd.DataFrame", requirements: Requirements) -> AggregatedScores:
    """Read a table of means with the columns task, explainer, metric, mean, and perhaps sd and n.

    Raises:
        BadSetting: A column is missing.
    """
    absent = [name for name in _TABLE_COLUMNS if name not in table.columns]
    if absent:
        raise BadSetting(
            f"a summary needs the columns {', '.join(_TABLE_COLUMNS)}, but it lacks "
            f"{', '.join(absent)}."
        )
    scores = {}
    for row in table.to_dict("records"):
        subject = (str(row["task"]), "", str(row["explainer"]))
        mean, n = _none_if_missing(row["mean"]), _none_if_missing(row.get("n"))
        scores[subject, str(row["metric"])] = AggregatedScore(mean, None if n is None else int(n))
    _add_stability_chance(scores)
    tasks = dict.fromkeys(task for (task, _, _), _ in scores)
    kinds = {
        task: requirements.task_kind or (task if task in TASK_KINDS else None) for task in tasks
    }
    has_paper_form = any(MetricName.parse(name).without_side == "pertinence" for _, name in scores)
    form = "pertinence" if has_paper_form else "pertinence_tied"
    cap = load_guideline("thresholds")["compactness"]["cap"]
    return AggregatedScores(scores, kinds, cap, form, requirements.focus)


def _add_stability_chance(scores: dict[tuple[Subject, str], AggregatedScore]) -> None:
    """Add S0, computed from the means of S and c."""
    for (subject, metric), corrected in list(scores.items()):
        name = MetricName.parse(metric)
        raw = scores.get((subject, str(name.in_form(""))))
        if name.without_side != "stability_corrected" or raw is None:
            continue
        if raw.mean is None or corrected.mean is None or corrected.mean >= 1 - 1e-9:
            continue
        chance = (raw.mean - corrected.mean) / (1 - corrected.mean)
        scores[subject, str(name.in_form("chance"))] = AggregatedScore(chance, corrected.n)


def _none_if_missing(value: float | None) -> float | None:
    """Return a float, or None for a missing value (None or NaN)."""
    return None if value is None or value != value else float(value)
