"""The table of a task: a line for each explainer, a score for each number that is judged, with n,
interval and verdict.

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
    """One mean with its verdict. ``gap``: why there is none, for people."""

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
    """The scores of one explainer. ``number`` stands for it in pictures."""

    number: int
    explainer: str
    outcome: str
    is_chosen: bool
    is_baseline: bool
    scores: list[Score]


def board(
    found: Measured, task: str, wanted: Requirements, numbers: dict[str, int], chosen: str
) -> list[Line]:
    """The lines of a task, the chosen explainer first, the baseline last, all others as they were
    measured.
    """
    lines = [line_of(found, subject, wanted, numbers, chosen) for subject in found.subjects(task)]
    return sorted(lines, key=lambda line: (line.is_baseline, not line.is_chosen, line.number))


def line_of(
    found: Measured, subject: Subject, wanted: Requirements, numbers: dict[str, int], chosen: str
) -> Line:
    """The line of one explainer."""
    name = subject[2]
    verdicts = [verdict(found, subject, metric, wanted) for metric in found.judged()]
    scores = [score_of(found, subject, own) for own in verdicts]
    return Line(
        numbers[name], name, worst(verdicts), name == chosen, name == wanted.baseline, scores
    )


def score_of(found: Measured, subject: Subject, own: Any) -> Score:
    """One cell."""
    measure = found.get(subject, own.metric)
    low, high = (measure.interval if measure is not None else None) or (None, None)
    missing = dict(measure.missing) if measure is not None else {}
    gap = "" if own.number is not None else told_gap(missing)
    n = own.n or 0
    return Score(
        own.metric, own.number, n, low, high, missing, own.outcome, own.threshold, own.reason, gap
    )


def told_gap(missing: dict[str, int]) -> str:
    """Why there is no number.

    >>> told_gap({"empty": 3}), told_gap({})
    ('3 empty: no edge can carry a message to the target', 'not measured')
    """
    told = [
        f"{count} {status}: {REASONS.get(status, 'unknown')}"
        for status, count in missing.items()
        if count
    ]
    return "; ".join(told) or "not measured"


def heading(metric: str) -> dict[str, Any]:
    """What stands above a column.

    >>> heading("edge_ec")
    {'metric': 'edge_ec', 'title': 'Edge EC', 'full': 'Edge effective compactness', 'better': 'lower is better', 'digits': 1}
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
    """A number for people, with as many digits as the recommendation compares; seconds have two
    that count.

    >>> figure(1, "edge_stability"), figure(3.14, "edge_ec"), figure(0.01234, "time"), figure(None, "time")
    ('1.00', '3.1', '0.012', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    digits = DIGITS.get(family_of(metric))
    return f"{value:.2g}" if digits is None else f"{value:,.{digits}f}"
