"""What a report says as data frames, for pages that sort and draw by themselves. Column names are
fixed; names of people's things are in cells only.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphgauge.benchmark.pareto import front, known_pairs
from graphgauge.benchmark.study import study_of
from graphgauge.core.errors import UndefinedScore
from graphgauge.core.verdicts import Verdict
from graphgauge.evaluation import Results, Row
from graphgauge.guidelines.measures import of_run
from graphgauge.guidelines.requirements import Requirements
from graphgauge.guidelines.what_if import WhatIf
from graphgauge.monitor import History, Look, Status
from graphgauge.report.boards import REASONS, Line, heading
from graphgauge.report.content import BADGES, Part
from graphgauge.report.histories import MOST, OUTSIDE, charts, has_raised, limits_of
from graphgauge.report.monitoring import metric_lines, title
from graphgauge.report.pareto import axis_label
from graphgauge.report.scatter import DRAWS, is_drawable, pairs_of

if TYPE_CHECKING:
    import pandas as pd

VERDICTS = ["Explainer", "Number", "Verdict", "Why"]
Fronts = list[tuple[str, str, "pd.DataFrame"]]


def headline_frame(lines: Sequence[Line]) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """The means of each explainer, and the outcomes of the same cells; the column 'Verdict' is the
    worst of a line.
    """
    import pandas as pd

    titles = [heading(score.metric)["title"] for score in lines[0].scores] if lines else []
    index = pd.Index([line.explainer for line in lines], name="Explainer")
    means = pd.DataFrame(
        [[score.mean for score in line.scores] for line in lines], index, titles, dtype=float
    )
    outcomes = pd.DataFrame(
        [[score.outcome for score in line.scores] for line in lines], index, titles, dtype=object
    )
    means.insert(0, "Verdict", [BADGES[line.outcome] for line in lines])
    outcomes.insert(0, "Verdict", [line.outcome for line in lines])
    return means, outcomes


def task_frame(parts: Sequence[Part]) -> "pd.DataFrame":
    """A row for each task: whom to use there, and why; the table of tasks that a report has."""
    import pandas as pd

    reasons = [
        part.recommendation.reason if part.recommendation else "nothing was measured"
        for part in parts
    ]
    rows = [
        (part.title, BADGES[part.outcome], part.chosen or "–", why)
        for part, why in zip(parts, reasons, strict=True)
    ]
    return pd.DataFrame(rows, columns=["Task", "Verdict", "Recommended", "Because"])


def score_frame(lines: Sequence[Line]) -> "pd.DataFrame":
    """A row for each explainer and number, with its verdict and the reason."""
    import pandas as pd

    pairs = ((line, score) for line in lines for score in line.scores)
    rows = [
        (line.explainer, heading(score.metric)["title"], BADGES[score.outcome], score.reason)
        for line, score in pairs
    ]
    return pd.DataFrame(rows, columns=VERDICTS)


def front_frames(results: Results, task: str, wanted: Requirements) -> Fronts:
    """Of one task: label of x, label of y, and the points, for each pair that was measured by two
    explainers or more.
    """
    study = study_of(results).only(task=task)
    try:
        pairs = known_pairs(study, pairs_of(of_run(results, wanted).pertinence))
    except UndefinedScore:
        return []
    tables = [(pair, front(study, pair, DRAWS)[0]) for pair in pairs]
    return [(*labels(pair), points(table)) for pair, table in tables if is_drawable(table, pair)]


def labels(pair: tuple[str, str]) -> tuple[str, str]:
    """What stands at the axes."""
    return axis_label(pair[0], "→", "←"), axis_label(pair[1], "↑", "↓")


def points(table: "pd.DataFrame") -> "pd.DataFrame":
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
    own["here"] = own.groupby(["x", "y"])["explainer"].transform(
        ", ".join
    )  # on one spot, one mark can be pointed at
    return own[["explainer", "here", "x", "y", "x_low", "x_high", "y_low", "y_high", "place"]]


# --- single targets -------------------------------------------------------------------------------


def rows_of_target(results: Results, task: str, model: str, target: Any) -> Results:
    """The part of results that is about one target."""
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
    known = {(row.explainer, row.occurrence, row.metric): told(row) for row in results.rows}
    lines = [[known.get((*key, metric), "not measured") for metric in metrics] for key in keys]
    names = [name + (f", again {occurrence}" if occurrence else "") for name, occurrence in keys]
    return pd.DataFrame(
        lines,
        pd.Index(names, name="Explainer"),
        [heading(metric)["title"] for metric in metrics],
        dtype=str,
    )


def told(row: Row) -> str:
    """A number with four digits, or why there is none."""
    value = row.cell.value
    return REASONS.get(row.cell.status, "unknown") if value is None else f"{value:.4g}"


def verdict_frame(verdicts: Iterable[Verdict]) -> "pd.DataFrame":
    """A row for each verdict."""
    import pandas as pd

    rows = [
        (own.explainer, heading(own.metric)["title"], BADGES[own.outcome], own.reason)
        for own in verdicts
    ]
    return pd.DataFrame(rows, columns=VERDICTS)


def changes_frame(found: WhatIf) -> "pd.DataFrame":
    """The verdicts that other thresholds change."""
    import pandas as pd

    rows = [
        (
            new.explainer,
            heading(new.metric)["title"],
            new.number,
            old.threshold,
            new.threshold,
            BADGES[old.outcome],
            BADGES[new.outcome],
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
    """Of each watched metric its title and a row per run: mean, quartiles, the baseline with
    control limits, threshold.
    """
    import pandas as pd

    runs, bases = list(history.runs[-MOST:]), {own.number: own for own in history.baselines}
    found = []
    for metric in [chart.metric for chart in charts(history)]:
        known = [run for run in runs if len(run.sample.known(metric))]
        rows = [history_row(metric, run, bases[run.body["baseline"]]) for run in known]
        found.append((title(metric), pd.DataFrame(rows)))
    return found


def history_row(metric: str, run: Look, baseline: Look) -> dict[str, Any]:
    """One run. Times of day say nothing of the limits of a time, so it has none."""
    values = run.sample.known(metric)
    lower, upper = np.quantile(values, (0.25, 0.75)).tolist()
    low, centre, high = limits_of(baseline, metric, run) or (None, None, None)
    threshold = run.plan.thresholds.get(metric)
    return {
        "run": run.number,
        "at": run.at,
        "mean": float(values.mean()),
        "targets": len(values),
        "lower": lower,
        "upper": upper,
        "baseline": centre,
        "low": low if metric != "time" else None,
        "high": high if metric != "time" else None,
        "threshold": threshold.value if threshold else None,
        "state": "a trigger was raised" if has_raised(run, metric) else "no trigger",
    }


def last_run_frame(history: History) -> "pd.DataFrame":
    """Each metric of the last run beside the baseline."""
    import pandas as pd

    lines = metric_lines(history, history.since[-1] if history.since else None)
    rows = [
        (
            title(own["metric"]),
            own["then"],
            own["now"],
            own["n"],
            told_limit(own),
            told_drift(own),
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


def told_limit(line: dict[str, Any]) -> str:
    """The threshold of a metric, and whether its mean meets it."""
    states = {"inside": "met", "near": "near", "crossed": "crossed"}
    return f"{line['limit']}: {states.get(line['state'], 'not judged')}" if line["limit"] else "–"


def told_drift(line: dict[str, Any]) -> str:
    """Whether a metric drifted."""
    none = f"none ({OUTSIDE})" if line["is_outside"] else "none"
    return "drift" if line["has_drifted"] else "not tested" if line["p"] is None else none


def due_frame(status: Status) -> "pd.DataFrame":
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


def raised_frame(history: History) -> "pd.DataFrame":
    """Every trigger there was, the newest first."""
    import pandas as pd

    rows = [
        (str(own.at.date()), own.name, own.trigger.name, own.trigger.told, state_of(history, own))
        for own in reversed(history.raised)
    ]
    return pd.DataFrame(rows, columns=["Date", "Name", "Trigger", "Evidence", "State"])


def state_of(history: History, own: Any) -> str:
    """Whether a trigger waits, or why it does not."""
    if own in history.waiting:
        return "waits"
    return f"settled: {own.note}" if own.note is not None else "a newer baseline was taken"
