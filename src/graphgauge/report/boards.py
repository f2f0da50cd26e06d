"""The table of a task: the scores of each explainer, with n, interval and verdict.

Means are those of the recommendation: over the targets of a network, then over networks.
"""

import math
from dataclasses import dataclass
from typing import Any

from graphgauge.core.verdicts import worst
from graphgauge.evaluation import STATUSES
from graphgauge.evaluation.cells import FAULTS
from graphgauge.evaluation.meanings import higher_is_better
from graphgauge.guidelines.book import family_of
from graphgauge.guidelines.judging import verdict
from graphgauge.guidelines.limits import title
from graphgauge.guidelines.measures import Measured, Subject
from graphgauge.guidelines.requirements import Requirements

REASONS = {**STATUSES, **FAULTS}
DIGITS = {"pertinence": 2, "stability": 2, "ec": 1}
SHORT = {
    "Time": "Seconds",
    "effective compactness": "EC",
    "pertinence (ties half)": "pertinence, tied",
}


@dataclass(frozen=True)
class Score:
    """One mean with its verdict; ``gap`` says why there is none."""

    metric: str
    mean: float | None
    n: int
    low: float | None
    high: float | None
    missing: dict[str, int]
    outcome: str
    threshold: float | None
    reason: str
    gap: str


@dataclass(frozen=True)
class Line:
    """The scores of one explainer, which pictures show as ``number``."""

    number: int
    explainer: str
    outcome: str
    is_chosen: bool
    is_baseline: bool
    scores: list[Score]


def board(
    measured: Measured, task: str, wanted: Requirements, numbers: dict[str, int], chosen: str
) -> list[Line]:
    """Return the scores of each explainer of a task.

    The chosen explainer comes first, the baseline last, all others as they were measured.
    """
    lines = [
        line_of(measured, subject, wanted, numbers, chosen) for subject in measured.subjects(task)
    ]
    return sorted(lines, key=lambda line: (line.is_baseline, not line.is_chosen, line.number))


def line_of(
    measured: Measured, subject: Subject, wanted: Requirements, numbers: dict[str, int], chosen: str
) -> Line:
    """Return the scores of one explainer."""
    name = subject[2]
    verdicts = [verdict(measured, subject, metric, wanted) for metric in measured.judged()]
    scores = [score_of(measured, subject, judged) for judged in verdicts]
    return Line(
        numbers[name], name, worst(verdicts), name == chosen, name == wanted.baseline, scores
    )


def score_of(measured: Measured, subject: Subject, judged: Any) -> Score:
    """Return one mean with its verdict."""
    measure = measured.get(subject, judged.metric)
    low, high = (measure.interval if measure is not None else None) or (None, None)
    missing = dict(measure.missing) if measure is not None else {}
    gap = "" if judged.number is not None else told_gap(missing)
    n = judged.n or 0
    return Score(
        judged.metric,
        judged.number,
        n,
        low,
        high,
        missing,
        judged.outcome,
        judged.threshold,
        judged.reason,
        gap,
    )


def told_gap(missing: dict[str, int]) -> str:
    """Say why there is no number.

    >>> told_gap({"empty": 3}), told_gap({})
    ('3 empty: no edge can carry a message to the target', 'not measured')
    """
    reasons = [
        f"{count} {status}: {REASONS.get(status, 'unknown')}"
        for status, count in missing.items()
        if count
    ]
    return "; ".join(reasons) or "not measured"


def heading(metric: str) -> dict[str, Any]:
    """Describe the column of a metric: titles, which values are better, and digits.

    >>> list(heading("edge_ec").values())
    ['edge_ec', 'Edge EC', 'Edge effective compactness', 'lower is better', 1]
    """
    full = short = title(metric)
    for long, word in SHORT.items():
        short = short.replace(long, word)
    better = "higher is better" if higher_is_better(metric) else "lower is better"
    return {
        "metric": metric,
        "title": short,
        "full": full,
        "better": better,
        "digits": DIGITS.get(family_of(metric)),
    }


def figure(value: float | None, metric: str) -> str:
    """Format a number with the digits that the recommendation compares.

    Seconds have two significant digits.

    >>> figure(1, "edge_stability"), figure(3.14, "edge_ec"), figure(0.01234, "time")
    ('1.00', '3.1', '0.012')
    >>> figure(None, "time")
    '–'
    """
    if value is None or not math.isfinite(value):
        return "–"
    digits = DIGITS.get(family_of(metric))
    return f"{value:.2g}" if digits is None else f"{value:,.{digits}f}"
