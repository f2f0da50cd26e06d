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
from typing import TYPE_CHECKING, Any

from graphgauge.core.errors import BadFile
from graphgauge.guidelines.book import guide
from graphgauge.guidelines.deployment import DONE, NOT_DONE, OPEN, Point
from graphgauge.monitor import History, Look, Status, status_of
from graphgauge.monitor.drift import Compared, metric_tests
from graphgauge.monitor.rules import INSIDE, held
from graphgauge.monitor.samples import CLOCKS
from graphgauge.monitor.scoring import leading
from graphgauge.monitor.triggers import REVALIDATE, signed
from graphgauge.narrative.names import tidy
from graphgauge.report.histories import HEIGHT, OUTSIDE, WIDTH, charts, limits_of

if TYPE_CHECKING:
    from jinja2 import Template

RUNS, EXPLANATIONS, LEADING = 12, 10, 10  #: lines of the tables


def write_monitoring(history: History, path: str | os.PathLike[str], now: datetime) -> Path:
    """Write the page; a failure leaves no partial file."""
    place = Path(path)
    partial = place.with_name(place.name + ".part")
    try:
        partial.write_text(monitoring_html(history, now), encoding="utf-8")
        partial.replace(place)
    except OSError as error:
        raise BadFile(f"{place} could not be written: {error}.") from error
    return place


def monitoring_html(history: History, now: datetime) -> str:
    """Return the page."""
    status = status_of(history, now)
    last = history.since[-1] if history.since else None
    content = {
        "status": status,
        "now": now,
        "baseline": history.baseline,
        "last": last,
        "charts": charts(history),
        "metrics": metric_lines(history, last),
        "features": feature_lines(history.baseline, last),
        "leading": leading(history.baseline.plan.top, len(history.baseline.facts.features))
        if history.baseline
        else 0,
        "runs": list(reversed(history.runs[-RUNS:])),
        "explanations": explanation_lines(last),
        "examples": history.examples,
        "closed": [own for own in reversed(history.raised) if own not in history.waiting][:RUNS],
        "current": history.baseline.number if history.baseline else 0,
        "checklist": monitoring_checklist(history, status),
        "watched": REVALIDATE,
        "outside": OUTSIDE,
    }
    return template().render(**content, size=(WIDTH, HEIGHT)) + "\n"


@cache
def template() -> "Template":
    """Return the page's template, which escapes everything and knows no undefined names."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        num=number,
        signed=signed,
        title=title,
        shown=lambda text: tidy(str(text), 2000),
        image=image,
    )
    return environment.from_string(
        (files("graphgauge.report") / "templates" / "monitoring.html").read_text(encoding="utf-8")
    )


def number(value: float | None) -> str:
    """Format with three significant digits; None becomes a dash.

    >>> number(0.12345), number(None), number(1.2e-7)
    ('0.123', '–', '1.2e-07')
    """
    return "–" if value is None else f"{value:.3g}"


def image(svg: str) -> str:
    """Return a picture as the address of an image.

    >>> image("<svg/>")
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def title(metric: str) -> str:
    """Return the title of a metric.

    >>> title("edge_ec"), title("feature_pertinence"), title("time")
    ('Edge effective compactness', 'Feature pertinence', 'Time (s)')
    """
    words = {"ec": "effective compactness", "time": "time (s)"}
    text = " ".join(words.get(word, word) for word in metric.split("_"))
    return text[:1].upper() + text[1:]


# --- tables ---------------------------------------------------------------------------------------


def metric_lines(history: History, last: Look | None) -> list[dict[str, Any]]:
    """Compare each metric of the last run with the baseline: means, effect, p-value, threshold."""
    baseline = history.baseline
    if baseline is None or last is None:
        return []
    tested = metric_tests(baseline.sample, [run.sample for run in history.since], last.plan)
    limits = {own.metric: own for own in held(last.sample, last.plan)}
    return [
        metric_line(metric, baseline, last, tested, limits)
        for metric in baseline.sample.values
        if metric != "time_batched"
    ]


def metric_line(
    metric: str, baseline: Look, last: Look, tested: Sequence[Compared], limits: dict[str, Any]
) -> dict[str, Any]:
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
        "effect": single_run.found.effect if single_run else None,
        "p": min((test.corrected[test.best] for test in tests), default=None),
        "limit": last.plan.thresholds.get(metric),
        "state": limits[metric].state if metric in limits else "",
        "is_outside": is_outside(baseline, last, metric, means["now"]),
        "has_drifted": any(
            test["subject"] == metric and test["name"] == "metric drift"
            for test in last.body["triggers"]
        ),
        "missing": last.sample.missing.get(metric, {}) if metric != "time" else {},
    }


def is_outside(baseline: Look, last: Look, metric: str, mean: float | None) -> bool:
    """Whether the mean of the last run lies outside the control limits of the chart."""
    limits = (
        limits_of(baseline, metric, last) if mean is not None and metric not in CLOCKS else None
    )
    return limits is not None and mean is not None and not limits[0] <= mean <= limits[2]


def feature_lines(baseline: Look | None, last: Look | None) -> list[dict[str, Any]]:
    """Return how often each feature is among the strongest, then and now; the largest first."""
    if baseline is None or last is None or baseline.sample.top is None or last.sample.top is None:
        return []
    then, now = (shares(look) for look in (baseline, last))
    order = sorted({*then, *now}, key=lambda k: (-max(then.get(k, 0.0), now.get(k, 0.0)), k))[
        :LEADING
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


def shares(look: Look) -> dict[int, float]:
    """Return in which share of the explanations each feature is among the strongest."""
    counts: dict[int, int] = {}
    for chosen in look.sample.top or ():
        for k in chosen:
            counts[k] = counts.get(k, 0) + 1
    return {k: count / len(look.sample) for k, count in counts.items()}


def explanation_lines(last: Look | None) -> list[dict[str, Any]]:
    """Return target, leading features and values of the first explanations of the last run."""
    if last is None:
        return []
    return [
        {
            "target": row["target"],
            "top": first_names(last, row.get("top", [])),
            "values": row["values"],
        }
        for row in last.sample.rows(with_data=False)[:EXPLANATIONS]
    ]


def first_names(look: Look, top: Sequence[int]) -> list[str]:
    """Return names of the three strongest features."""
    names = look.facts.features
    return [names[k] if k < len(names) else f"feature {k}" for k in top[:3]]


# --- the checklist --------------------------------------------------------------------------------


def monitoring_checklist(history: History, status: Status) -> list[Point]:
    """Return the paper's eight points; monitoring can show some, the owner the others."""
    baseline, last = history.baseline, history.since[-1] if history.since else None
    evidence: dict[str, tuple[str, str]] = {}
    if baseline is not None:
        evidence["validation"] = OPEN, validation_sentence(baseline)
        plan = (last or baseline).plan
        evidence["revalidation"] = (
            DONE,
            f"triggers below; again after {plan.age} days at the latest",
        )
    if last is not None:
        beyond = [own.metric for own in held(last.sample, last.plan) if own.state != INSIDE]
        evidence["thresholds"] = (
            (NOT_DONE if beyond else DONE),
            told_thresholds(beyond, len(last.plan.thresholds), last),
        )
        evidence["monitoring"] = (
            DONE,
            f"{status.runs} runs since the baseline, the last on {last.at.date()}",
        )
    if not last or not last.plan.thresholds:
        evidence.pop("thresholds", None)
    return [
        Point(
            entry["name"],
            entry["point"],
            *evidence.get(entry["name"], (OPEN, "for the owner to show")),
        )
        for entry in guide("practice")["checklist"]
    ]


def validation_sentence(baseline: Look) -> str:
    """Say that a baseline validates nothing, and where the validation is."""
    least = next(
        entry["least_targets"]
        for entry in guide("practice")["checklist"]
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


def told_thresholds(beyond: list[str], limits: int, last: Look) -> str:
    """Say how many thresholds the means of a run meet."""
    met = f"{limits - len(beyond)} of {limits} means"
    sentence = f"{met} meet their threshold in the run of {last.at.date()}"
    return f"{sentence}; beyond: {', '.join(beyond)}" if beyond else sentence
