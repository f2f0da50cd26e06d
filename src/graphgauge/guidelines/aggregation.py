"""What was measured, one entry per (task, model, explainer, metric): from a run, or from a table of
means.

A run gives values of every target. The interval of a mean is `core.intervals.mean_interval`; it
covers in 93 to 97 % of cases for 10 to 200 values, skewed or bounded (docs/validity.md). Shares k
of n get Wilson's interval,

    (p + z²/2n ± z sqrt(p (1 - p)/n + z²/4n²)) / (1 + z²/n)        p = k/n, z = 1.96

Of the likeness that permuted scores reach only the corrected stability c = (S - S₀)/(1 - S₀) is
stored; S₀ = (S - c)/(1 - c).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from graphgauge.core import BadSetting, Interval, Target
from graphgauge.evaluation import OK, Results, Settings, interval_of_mean
from graphgauge.guidelines.reference_data import TASK_KINDS, load_guideline
from graphgauge.guidelines.requirements import Requirements

if TYPE_CHECKING:
    import pandas as pd

_TABLE_COLUMNS = (
    "task",
    "explainer",
    "metric",
    "mean",
)  #: columns a table of means must have; sd and n may be there
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
_ObjectArray = np.ndarray[Any, np.dtype[np.object_]]
Subject = tuple[str, str, str]  #: task, model, explainer
CaseKey = tuple[str, Target, int]  #: of one explainer: model, target, occurrence


@dataclass(frozen=True)
class AggregatedScore:
    """One mean over targets. ``n`` None: the table does not say; ``missing``: how many values are
    not there, by status.
    """

    mean: float | None
    n: int | None = None
    values: tuple[float, ...] = ()  #: sorted
    missing: Mapping[str, int] = field(default_factory=dict)
    cases: Mapping[CaseKey, float] = field(
        default_factory=dict, compare=False
    )  #: the values by network, target and occurrence
    metric: str = ""

    @cached_property
    def interval(self) -> Interval | None:
        """95 % interval of the mean; None where single values are not known, or there is one (of
        some network).
        """
        return interval_of_mean(self.metric, *values_by_model(self.cases).values())


@dataclass(frozen=True)
class AggregatedScores:
    """Every `AggregatedScore` by subject and metric, with what is needed to judge it."""

    measures: Mapping[tuple[Subject, str], AggregatedScore]
    kinds: Mapping[str, str | None]  #: kind of each task
    cap: int
    pertinence: str = "pertinence"  #: which form is judged: "pertinence" or "pertinence_tied"
    focus: str | None = None  #: the side that is judged; None: both
    #: whether edits are to move values in one direction, so that |change| is another question
    is_one_way: bool = False
    compared: dict[tuple[Subject, Subject, str], Any] = field(
        default_factory=dict, compare=False
    )  #: comparisons, made once
    beside_random: dict[tuple[Subject, str, str], Any] = field(
        default_factory=dict, compare=False
    )  #: the same with random

    def subjects(self, task: str | None = None) -> list[Subject]:
        """Who was measured, in order; on one task, or on all."""
        return list(
            dict.fromkeys(subject for subject, _ in self.measures if task in (None, subject[0]))
        )

    def get(self, subject: Subject, metric: str) -> AggregatedScore | None:
        """One measure, or None."""
        return self.measures.get((subject, metric))

    def judged_metrics(self) -> list[str]:
        """The numbers that have verdicts (seven, or four of one side), in the form that the
        settings put first.
        """
        chosen = [
            name
            for name in JUDGED_METRICS
            if self.focus is None or name.startswith((self.focus, "time"))
        ]
        return [
            f"{name.split('_')[0]}_{self.pertinence}" if name.endswith("pertinence") else name
            for name in chosen
        ]


def aggregate_scores(
    given: "Results | pd.DataFrame", requirements: Requirements, merge_models: bool = False
) -> AggregatedScores:
    """What a run or a table of means says."""
    if isinstance(given, Results):
        return aggregate_run(given, requirements, merge_models)
    return _aggregate_table(given, requirements)


def aggregate_run(
    results: Results, requirements: Requirements, merge_models: bool = False
) -> AggregatedScores:
    """Means over targets of each network; merged: then over networks."""
    table = add_stability_chance_rows(_select_needed_columns(results))
    columns = [
        table[name].to_numpy(dtype=object) for name in ("status", "model", "target", "occurrence")
    ]
    columns.append(table["value"].to_numpy())
    found = {}
    for (subject, metric), places in _group_rows(table, merge_models):
        found[subject, metric] = _aggregate_group(metric, *(column[places] for column in columns))
    kinds = {
        str(task): requirements.task_kind or infer_task_kind(str(task), part)
        for task, part in table.groupby("task", sort=False)
    }
    form = judged_pertinence_form(results.settings, (metric for _, metric in found))
    return AggregatedScores(
        found, kinds, results.settings.cap, form, requirements.focus, is_one_way(results.settings)
    )


def is_one_way(settings: Settings) -> bool:
    """Whether edits are to move values in one direction; settings of older runs have none."""
    return getattr(settings, "direction", "paper") in ("down", "up", "towards_reference")


def judged_pertinence_form(settings: Settings, metrics: Iterable[str]) -> str:
    """Which form of pertinence is judged: the twin where the settings put twins first and it was
    measured.
    """
    has_tied = any(metric.endswith("_pertinence_tied") for metric in metrics)
    return "pertinence_tied" if settings.headline == "twins" and has_tied else "pertinence"


def _select_needed_columns(results: Results) -> "pd.DataFrame":
    """Of `Results.to_pandas` the columns that are read here: a long run has many rows."""
    return (
        results.with_seeds_as_networks()
        .table[[*_EXPLANATION_KEYS, "metric", "value", "status"]]
        .copy()
    )


def _group_rows(
    table: "pd.DataFrame", merge_models: bool
) -> Iterable[tuple[tuple[Subject, str], "np.ndarray[Any, Any]"]]:
    """Where the rows of each subject and metric are, in the order in which they come; merged:
    networks under one name.
    """
    whole = table.assign(model="") if merge_models else table
    places = whole.groupby(["task", "model", "explainer", "metric"], sort=False).indices
    for (task, model, explainer, metric), own in sorted(
        places.items(), key=lambda item: int(item[1][0])
    ):
        yield ((str(task), str(model), str(explainer)), str(metric)), own


def _aggregate_group(
    metric: str,
    status: _ObjectArray,
    model: _ObjectArray,
    target: _ObjectArray,
    occurrence: _ObjectArray,
    value: "np.ndarray[Any, Any]",
) -> AggregatedScore:
    """Mean over targets, then over networks; what is missing, the most frequent reason first.  (T,) each"""
    is_good = status == OK
    good, network = value[is_good], model[is_good]
    missing = dict(Counter(map(str, status[~is_good])).most_common())
    means = [float(np.sort(good[network == name]).mean()) for name in sorted(set(network))]
    cases = dict(
        zip(
            zip(network, target[is_good], occurrence[is_good], strict=True),
            good.tolist(),
            strict=True,
        )
    )
    mean = float(np.mean(means)) if means else None
    return AggregatedScore(mean, len(good), tuple(np.sort(good).tolist()), missing, cases, metric)


def values_by_model(cases: Mapping[CaseKey, float]) -> dict[str, list[float]]:
    """The values of each network."""
    found: dict[str, list[float]] = {}
    for (model, _, _), value in cases.items():
        found.setdefault(model, []).append(value)
    return found


def add_stability_chance_rows(table: "pd.DataFrame") -> "pd.DataFrame":
    """The rows, and one more for each corrected stability: the likeness that permuted scores reach
    (S₀).
    """
    import pandas as pd

    parts = [table]
    for side in SIDES if _has_metric_ending(table, "_stability_corrected") else ():
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
    """The kind of a task: its name if that is a kind; else pairs are links, and |change| is
    measured for values only.
    """
    if task in TASK_KINDS or not len(rows):
        return task if task in TASK_KINDS else None
    level = "link" if isinstance(rows["target"].iloc[0], tuple) else "node"
    return f"{level}_{'regression' if _has_metric_ending(rows, '_pertinence_abs') else 'classification'}"


def _has_metric_ending(rows: "pd.DataFrame", ending: str) -> bool:
    """Whether some metric ends so."""
    return any(metric.endswith(ending) for metric in set(rows["metric"]))


def _aggregate_table(table: "pd.DataFrame", requirements: Requirements) -> AggregatedScores:
    """A table of means: columns task, explainer, metric, mean; sd and n where they are known."""
    absent = [name for name in _TABLE_COLUMNS if name not in table.columns]
    if absent:
        raise BadSetting(
            f"a summary needs the columns {', '.join(_TABLE_COLUMNS)}, but {', '.join(absent)} are not in it."
        )
    found = {}
    for line in table.to_dict("records"):
        subject = (str(line["task"]), "", str(line["explainer"]))
        found[subject, str(line["metric"])] = AggregatedScore(
            _float_or_none(line["mean"]), _int_or_none(line.get("n"))
        )
    _add_stability_chance(found)
    kinds = {
        task: requirements.task_kind or (task if task in TASK_KINDS else None)
        for task, _, _ in (subject for subject, _ in found)
    }
    form = (
        "pertinence"
        if any(metric.endswith("_pertinence") for _, metric in found)
        else "pertinence_tied"
    )
    return AggregatedScores(
        found, kinds, load_guideline("thresholds")["compactness"]["cap"], form, requirements.focus
    )


def _add_stability_chance(found: dict[tuple[Subject, str], AggregatedScore]) -> None:
    """S₀ from the means of S and c."""
    for (subject, metric), own in list(found.items()):
        raw = found.get((subject, metric.removesuffix("_corrected")))
        if (
            metric.endswith("_stability_corrected")
            and raw
            and raw.mean is not None
            and own.mean is not None
            and own.mean < 1 - 1e-9
        ):
            chance = (raw.mean - own.mean) / (1 - own.mean)
            found[subject, metric.removesuffix("corrected") + "chance"] = AggregatedScore(
                chance, own.n
            )


def _float_or_none(value: Any) -> float | None:
    """A float, or None for what is no number."""
    return None if value is None or value != value else float(value)


def _int_or_none(value: Any) -> int | None:
    """A count, or None for what is no number."""
    return None if value is None or value != value else int(value)
