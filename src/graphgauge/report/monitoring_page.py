"""The monitoring page, one HTML file.

It shows what is due, metrics over time, leading features, the latest runs and explanations, and a
checklist. The page loads nothing and runs nothing: its security policy allows no script, and Jinja
escapes every text. Pictures of explanations come from the store as SVG. The page shows them as
images (``data:``), in which browsers run no script and load nothing, so that even a store that
someone has tampered with cannot do anything to the page.
"""

import base64
import os
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from graphgauge.core import BadFile
from graphgauge.guidelines import ITEM_DONE, ITEM_NOT_DONE, ITEM_OPEN, ChecklistItem, load_guideline
from graphgauge.metrics import MetricName
from graphgauge.monitor import (
    CLOCK_METRICS,
    INSIDE,
    REVALIDATION_ADVICE,
    History,
    MetricDriftTest,
    Snapshot,
    Status,
    check_thresholds,
    compute_status,
    format_signed,
    leading_feature_count,
    run_metric_tests,
)
from graphgauge.narrative import tidy_text
from graphgauge.plots import OUTSIDE_BAND, band_limits, build_charts, with_own_ids
from graphgauge.report.score_table import Record

if TYPE_CHECKING:
    from jinja2 import Template

_MAX_RUNS, _MAX_EXPLANATIONS, _MAX_LEADING = 12, 10, 10  #: lines of the tables


def write_monitoring_page(history: History, path: str | os.PathLike[str], now: datetime) -> Path:
    """Write the page; a failure leaves no partial file.

    Args:
        history: The content of a monitoring store.
        path: The HTML file. A file that exists is replaced.
        now: The time for which the page says what is due.

    Returns:
        The path of the file.

    Raises:
        BadFile: The file cannot be written.
    """
    place = Path(path)
    partial = place.with_name(place.name + ".part")
    try:
        partial.write_text(_monitoring_html(history, now), encoding="utf-8")
        partial.replace(place)
    except OSError as error:
        raise BadFile(f"{place} could not be written: {error}.") from error
    return place


def _monitoring_html(history: History, now: datetime) -> str:
    """Return the page."""
    status = compute_status(history, now)
    last = history.runs_since_baseline[-1] if history.runs_since_baseline else None
    content = {
        "status": status,
        "now": now,
        "baseline": history.baseline,
        "last": last,
        "charts": build_charts(history),
        "metrics": compare_metrics(history, last),
        "features": _feature_lines(history.baseline, last),
        "leading": leading_feature_count(
            history.baseline.plan.top, len(history.baseline.facts.features)
        )
        if history.baseline
        else 0,
        "runs": list(reversed(history.runs[-_MAX_RUNS:])),
        "explanations": _explanation_lines(last),
        "examples": history.examples,
        "closed": [
            own for own in reversed(history.triggers) if own not in history.waiting_triggers
        ][:_MAX_RUNS],
        "current": history.baseline.number if history.baseline else 0,
        "checklist": _monitoring_checklist(history, status),
        "watched": REVALIDATION_ADVICE,
        "outside": OUTSIDE_BAND,
    }
    return _monitoring_template().render(**content) + "\n"


@cache
def _monitoring_template() -> "Template":
    """Return the page's template, which escapes everything and knows no undefined names."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        num=_format_value,
        signed=format_signed,
        title=monitored_title,
        shown=lambda text: tidy_text(str(text), 2000),
        image=_image_address,
        chart=lambda svg, prefix: Markup(with_own_ids(svg, prefix)),
    )
    return environment.from_string(
        (files("graphgauge.report") / "templates" / "monitoring.html").read_text(encoding="utf-8")
    )


def _format_value(value: float | None) -> str:
    """Format with three significant digits; None becomes a dash.

    >>> _format_value(0.12345), _format_value(None), _format_value(1.2e-7)
    ('0.123', '–', '1.2e-07')
    """
    return "–" if value is None else f"{value:.3g}"


def _image_address(svg: str) -> str:
    """Return a picture as the address of an image.

    >>> _image_address("<svg/>")
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def monitored_title(metric: str) -> str:
    """Return the title of a metric.

    >>> monitored_title("edge_ec"), monitored_title("feature_pertinence"), monitored_title("time")
    ('Edge effective compactness', 'Feature pertinence', 'Time (s)')
    """
    name = MetricName.parse(metric)
    words = {"ec": "effective compactness", "time": "time (s)"}
    family = words.get(name.family, name.family.replace("_", " "))
    text = " ".join(part for part in (name.side, family, name.form) if part)
    return text[:1].upper() + text[1:]


# --- tables ---------------------------------------------------------------------------------------


def compare_metrics(history: History, last: Snapshot | None) -> list[Record]:
    """Compare each metric of the last run with the baseline: means, effect, p-value, threshold."""
    baseline = history.baseline
    if baseline is None or last is None:
        return []
    tested = run_metric_tests(
        baseline.sample, [run.sample for run in history.runs_since_baseline], last.plan
    )
    limits = {own.metric: own for own in check_thresholds(last.sample, last.plan)}
    return [
        _compare_metric(metric, baseline, last, tested, limits)
        for metric in baseline.sample.values
        if metric != "time_batched"
    ]


def _compare_metric(
    metric: str,
    baseline: Snapshot,
    last: Snapshot,
    tested: Sequence[MetricDriftTest],
    limits: Record,
) -> Record:
    """Compare one metric with the baseline."""
    tests = [test for test in tested if test.metric == metric]
    single_run = next((test for test in tests if test.runs == 1), None)
    known = {
        look: look_.sample.known(metric) for look, look_ in (("then", baseline), ("now", last))
    }
    means = {name: float(values.mean()) if len(values) else None for name, values in known.items()}
    return {
        "metric": metric,
        **means,
        "n": len(known["now"]),
        "effect": single_run.difference.effect if single_run else None,
        "p": min((test.corrected_p[test.clearest_test] for test in tests), default=None),
        "limit": last.plan.thresholds.get(metric),
        "state": limits[metric].state if metric in limits else "",
        "is_outside": _is_outside_band(baseline, last, metric, means["now"]),
        "has_drifted": any(
            test["subject"] == metric and test["name"] == "metric drift"
            for test in last.body["triggers"]
        ),
        "missing": last.sample.missing.get(metric, {}) if metric != "time" else {},
    }


def _is_outside_band(baseline: Snapshot, last: Snapshot, metric: str, mean: float | None) -> bool:
    """Whether the mean of the last run lies outside the control limits of the chart."""
    limits = (
        band_limits(baseline, metric, last)
        if mean is not None and metric not in CLOCK_METRICS
        else None
    )
    return limits is not None and mean is not None and not limits[0] <= mean <= limits[2]


def _feature_lines(baseline: Snapshot | None, last: Snapshot | None) -> list[Record]:
    """Return how often each feature is among the strongest, then and now; the largest first."""
    if baseline is None or last is None or baseline.sample.top is None or last.sample.top is None:
        return []
    then, now = (_leading_shares(look) for look in (baseline, last))
    order = sorted({*then, *now}, key=lambda k: (-max(then.get(k, 0.0), now.get(k, 0.0)), k))[
        :_MAX_LEADING
    ]
    names = last.facts.features
    return [
        {
            "name": names[k] if k < len(names) else f"feature {k}",
            "then": then.get(k, 0.0),
            "now": now.get(k, 0.0),
        }
        for k in order
    ]


def _leading_shares(look: Snapshot) -> dict[int, float]:
    """Return in which share of the explanations each feature is among the strongest."""
    counts: dict[int, int] = {}
    for chosen in look.sample.top or ():
        for k in chosen:
            counts[k] = counts.get(k, 0) + 1
    return {k: count / len(look.sample) for k, count in counts.items()}


def _explanation_lines(last: Snapshot | None) -> list[Record]:
    """Return target, leading features and values of the first explanations of the last run."""
    if last is None:
        return []
    return [
        {
            "target": row["target"],
            "top": _top_feature_names(last, row.get("top", [])),
            "values": row["values"],
        }
        for row in last.sample.rows(with_data=False)[:_MAX_EXPLANATIONS]
    ]


def _top_feature_names(look: Snapshot, top: Sequence[int]) -> list[str]:
    """Return names of the three strongest features."""
    names = look.facts.features
    return [names[k] if k < len(names) else f"feature {k}" for k in top[:3]]


# --- the checklist --------------------------------------------------------------------------------


def _monitoring_checklist(history: History, status: Status) -> list[ChecklistItem]:
    """Return the paper's eight points; monitoring can show some, the owner the others."""
    baseline, last = (
        history.baseline,
        history.runs_since_baseline[-1] if history.runs_since_baseline else None,
    )
    evidence: dict[str, tuple[str, str]] = {}
    if baseline is not None:
        evidence["validation"] = ITEM_OPEN, _validation_sentence(baseline)
        plan = (last or baseline).plan
        evidence["revalidation"] = (
            ITEM_DONE,
            f"triggers below; again after {plan.age} days at the latest",
        )
    if last is not None:
        beyond = [
            own.metric for own in check_thresholds(last.sample, last.plan) if own.state != INSIDE
        ]
        evidence["thresholds"] = (
            (ITEM_NOT_DONE if beyond else ITEM_DONE),
            _thresholds_sentence(beyond, len(last.plan.thresholds), last),
        )
        evidence["monitoring"] = (
            ITEM_DONE,
            f"{status.runs} runs since the baseline, the last on {last.at.date()}",
        )
    if not last or not last.plan.thresholds:
        evidence.pop("thresholds", None)
    return [
        ChecklistItem(
            entry["name"],
            entry["point"],
            *evidence.get(entry["name"], (ITEM_OPEN, "for the owner to show")),
        )
        for entry in load_guideline("practice")["checklist"]
    ]


def _validation_sentence(baseline: Snapshot) -> str:
    """Say that a baseline validates nothing, and where the validation is."""
    least = next(
        entry["least_targets"]
        for entry in load_guideline("practice")["checklist"]
        if entry["name"] == "validation"
    )
    record = baseline.validated
    where = (
        f"the decision of {record.at.date()} says on how many"
        if record is not None
        else "no decision is kept with the baseline"
    )
    followed = f"the {len(baseline.sample)} of the baseline are followed, not validated"
    return f"a validation needs {least} targets, and {where}; {followed}"


def _thresholds_sentence(beyond: list[str], limits: int, last: Snapshot) -> str:
    """Say how many thresholds the means of a run meet."""
    met = f"{limits - len(beyond)} of {limits} means"
    sentence = f"{met} meet their threshold in the run of {last.at.date()}"
    return f"{sentence}; beyond: {', '.join(beyond)}" if beyond else sentence
