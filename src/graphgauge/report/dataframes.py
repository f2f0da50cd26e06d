"""What a report says as data frames, for pages that sort and draw by themselves. Column names are
fixed; names of people's things are in cells only.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphgauge.benchmark import as_study
from graphgauge.core import Target, Verdict
from graphgauge.evaluation import Results, Row
from graphgauge.guidelines import Requirements, WhatIfResult, aggregate_run
from graphgauge.monitor import History, RaisedTrigger, Status
from graphgauge.plots import OUTSIDE_BAND, RunPoint, axis_label, build_charts, measured_fronts
from graphgauge.report.monitoring_page import compare_metrics, monitored_title
from graphgauge.report.report_data import VERDICT_BADGES, TaskReport
from graphgauge.report.score_table import GAP_REASONS, ExplainerScores, Record, column_heading

if TYPE_CHECKING:
    import pandas as pd

_VERDICT_COLUMNS = ["Explainer", "Number", "Verdict", "Why"]
FrontTables = list[tuple[str, str, "pd.DataFrame"]]


def headline_frame(lines: Sequence[ExplainerScores]) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """The means of each explainer, and the outcomes of the same cells; the column 'Verdict' is the
    worst of a line.
    """
    import pandas as pd

    titles = [column_heading(score.metric)["title"] for score in lines[0].scores] if lines else []
    index = pd.Index([line.explainer for line in lines], name="Explainer")
    means = pd.DataFrame(
        [[score.mean for score in line.scores] for line in lines], index, titles, dtype=float
    )
    outcomes = pd.DataFrame(
        [[score.outcome for score in line.scores] for line in lines], index, titles, dtype=object
    )
    means.insert(0, "Verdict", [VERDICT_BADGES[line.outcome] for line in lines])
    outcomes.insert(0, "Verdict", [line.outcome for line in lines])
    return means, outcomes


def task_frame(parts: Sequence[TaskReport]) -> "pd.DataFrame":
    """A row for each task: whom to use there, and why; the table of tasks that a report has."""
    import pandas as pd

    reasons = [
        part.recommendation.reason if part.recommendation else "nothing was measured"
        for part in parts
    ]
    rows = [
        (part.title, VERDICT_BADGES[part.outcome], part.chosen or "–", why)
        for part, why in zip(parts, reasons, strict=True)
    ]
    return pd.DataFrame(rows, columns=["Task", "Verdict", "Recommended", "Because"])


def score_frame(lines: Sequence[ExplainerScores]) -> "pd.DataFrame":
    """A row for each explainer and number, with its verdict and the reason."""
    import pandas as pd

    pairs = ((line, score) for line in lines for score in line.scores)
    rows = [
        (
            line.explainer,
            column_heading(score.metric)["title"],
            VERDICT_BADGES[score.outcome],
            score.reason,
        )
        for line, score in pairs
    ]
    return pd.DataFrame(rows, columns=_VERDICT_COLUMNS)


def front_frames(results: Results, task: str, wanted: Requirements) -> FrontTables:
    """Of one task: label of x, label of y, and the points, for each pair that was measured by two
    explainers or more.

    Args:
        results: The results of a run.
        task: Name of the task, as the rows have it.
        wanted: What the explanations are used for. It does not change the points.
    """
    study = as_study(results).only(task=task)
    fronts = measured_fronts(study, aggregate_run(results, wanted).pertinence)
    return [(*_axis_labels(pair), _front_points(table)) for pair, table in fronts]


def _axis_labels(pair: tuple[str, str]) -> tuple[str, str]:
    """What stands at the axes."""
    return axis_label(pair[0], "→", "←"), axis_label(pair[1], "↑", "↓")


def _front_points(table: "pd.DataFrame") -> "pd.DataFrame":
    """A front with short column names, and words for who is on it."""
    places = {"first": "x", "second": "y"}
    named = {
        f"{place}_{part}": f"{axis}_{part}"
        for place, axis in places.items()
        for part in ("low", "high")
    }
    own = table.rename(columns={**named, "first_mean": "x", "second_mean": "y"})
    own = own.round(12)  # so that equal numbers are equal
    own["place"] = np.where(own["front"], "on the front", "beaten")
    # on one spot, one mark can be pointed at
    own["here"] = own.groupby(["x", "y"])["explainer"].transform(", ".join)
    return own[["explainer", "here", "x", "y", "x_low", "x_high", "y_low", "y_high", "place"]]


# --- single targets -------------------------------------------------------------------------------


def rows_of_target(results: Results, task: str, model: str, target: Target | None) -> Results:
    """The part of results that is about one target.

    Args:
        results: The results of a run.
        task: Name of the task, as the rows have it.
        model: Name of the network, as the rows have it.
        target: The target; None selects no rows.

    Returns:
        The rows of all explainers with the settings of the run, but without its explanations and
        curves.
    """
    rows = tuple(
        row for row in results.rows if (row.task, row.model, row.target) == (task, model, target)
    )
    return Results(rows, results.settings)


def target_frame(results: Results, metrics: Sequence[str]) -> "pd.DataFrame":
    """A row for each explanation, a column for each number that is judged; texts where there is
    none say why.
    """
    import pandas as pd

    keys = dict.fromkeys((row.explainer, row.occurrence) for row in results.rows)
    known = {
        (row.explainer, row.occurrence, row.metric): _format_row_value(row) for row in results.rows
    }
    lines = [[known.get((*key, metric), "not measured") for metric in metrics] for key in keys]
    names = [name + (f", again {occurrence}" if occurrence else "") for name, occurrence in keys]
    return pd.DataFrame(
        lines,
        pd.Index(names, name="Explainer"),
        [column_heading(metric)["title"] for metric in metrics],
        dtype=str,
    )


def _format_row_value(row: Row) -> str:
    """A number with four digits, or why there is none."""
    value = row.cell.value
    return GAP_REASONS.get(row.cell.status, "unknown") if value is None else f"{value:.4g}"


def verdict_frame(verdicts: Iterable[Verdict]) -> "pd.DataFrame":
    """A row for each verdict."""
    import pandas as pd

    rows = [
        (
            own.explainer,
            column_heading(own.metric)["title"],
            VERDICT_BADGES[own.outcome],
            own.reason,
        )
        for own in verdicts
    ]
    return pd.DataFrame(rows, columns=_VERDICT_COLUMNS)


def changes_frame(found: WhatIfResult) -> "pd.DataFrame":
    """The verdicts that other thresholds change."""
    import pandas as pd

    rows = [
        (
            new.explainer,
            column_heading(new.metric)["title"],
            new.number,
            old.threshold,
            new.threshold,
            VERDICT_BADGES[old.outcome],
            VERDICT_BADGES[new.outcome],
        )
        for old, new in found.changed
    ]
    columns = [
        "Explainer",
        "Number",
        "Mean",
        "Threshold before",
        "Threshold now",
        "Verdict before",
        "Verdict now",
    ]
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[2:5], float))


# --- monitoring -----------------------------------------------------------------------------------


def history_frames(history: History) -> "list[tuple[str, pd.DataFrame]]":
    """Return the title of each watched metric, with a row per run.

    A row has the mean, the quartiles, the baseline with control limits, and the threshold.
    """
    import pandas as pd

    return [
        (
            monitored_title(chart.metric),
            pd.DataFrame([_history_row(point) for point in chart.points]),
        )
        for chart in build_charts(history)
    ]


def _history_row(point: RunPoint) -> Record:
    """Return one run."""
    low, high = point.band or (None, None)
    return {
        "run": point.number,
        "at": point.at,
        "mean": point.mean,
        "targets": point.num_targets,
        "lower": point.quartiles[0],
        "upper": point.quartiles[1],
        "baseline": point.baseline,
        "low": low,
        "high": high,
        "threshold": point.threshold,
        "state": "a trigger was raised" if point.triggers else "no trigger",
    }


def last_run_frame(history: History) -> "pd.DataFrame":
    """Each metric of the last run beside the baseline."""
    import pandas as pd

    lines = compare_metrics(
        history, history.runs_since_baseline[-1] if history.runs_since_baseline else None
    )
    rows = [
        (
            monitored_title(own["metric"]),
            own["then"],
            own["now"],
            own["n"],
            _threshold_text(own),
            _drift_text(own),
            own["effect"],
            own["p"],
        )
        for own in lines
    ]
    return pd.DataFrame(
        rows,
        columns=[
            "Metric",
            "Baseline",
            "Now",
            "Targets",
            "Threshold",
            "Drift",
            "Cliff's delta",
            "p",
        ],
    )


def _threshold_text(line: Record) -> str:
    """The threshold of a metric, and whether its mean meets it."""
    states = {"inside": "met", "near": "near", "crossed": "crossed"}
    return f"{line['limit']}: {states.get(line['state'], 'not judged')}" if line["limit"] else "–"


def _drift_text(line: Record) -> str:
    """Whether a metric drifted."""
    none = f"none ({OUTSIDE_BAND})" if line["is_outside"] else "none"
    return "drift" if line["has_drifted"] else "not tested" if line["p"] is None else none


def pending_actions_frame(status: Status) -> "pd.DataFrame":
    """What waits to be done."""
    import pandas as pd

    rows = [
        (
            own.name or "–",
            own.trigger.name,
            own.trigger.told,
            own.trigger.revalidate,
            str(own.first.date()),
            own.times,
        )
        for own in status.due
    ]
    return pd.DataFrame(
        rows, columns=["Name", "Trigger", "Evidence", "What to do", "Since", "Times"]
    )


def triggers_frame(history: History) -> "pd.DataFrame":
    """Every trigger there was, the newest first."""
    import pandas as pd

    rows = [
        (
            str(own.at.date()),
            own.name,
            own.trigger.name,
            own.trigger.told,
            _trigger_state(history, own),
        )
        for own in reversed(history.triggers)
    ]
    return pd.DataFrame(rows, columns=["Date", "Name", "Trigger", "Evidence", "State"])


def _trigger_state(history: History, own: RaisedTrigger) -> str:
    """Whether a trigger waits, or why it does not."""
    if own in history.waiting_triggers:
        return "waits"
    return f"settled: {own.note}" if own.note is not None else "a newer baseline was taken"
