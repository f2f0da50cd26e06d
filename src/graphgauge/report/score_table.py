"""The table of a task: the scores of each explainer, with n, interval and verdict.

Means are those of the recommendation: over the targets of a network, then over networks.
"""

import math
from dataclasses import dataclass

from graphgauge.core import JsonObject, Verdict, worst_outcome
from graphgauge.evaluation import FAULTS, STATUSES, higher_is_better
from graphgauge.guidelines import (
    AggregatedScores,
    Requirements,
    Subject,
    judge_mean,
    metric_family,
    metric_title,
)

#: plain data that JSON can hold: numbers, texts, lists and dictionaries of them
Record = JsonObject
GAP_REASONS = {**STATUSES, **FAULTS}
_DIGITS_BY_FAMILY = {"pertinence": 2, "stability": 2, "ec": 1}
_SHORT_TITLES = {
    "Time": "Seconds",
    "effective compactness": "EC",
    "pertinence (ties half)": "pertinence, tied",
}


@dataclass(frozen=True)
class ScoreCell:
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
class ExplainerScores:
    """The scores of one explainer, which pictures show as ``number``."""

    number: int
    explainer: str
    outcome: str
    is_chosen: bool
    is_baseline: bool
    scores: list[ScoreCell]


def build_score_table(
    measured: AggregatedScores,
    task: str,
    wanted: Requirements,
    numbers: dict[str, int],
    chosen: str,
) -> list[ExplainerScores]:
    """Return the scores of each explainer of a task.

    The chosen explainer comes first, the baseline last, all others as they were measured.
    """
    lines = [
        _explainer_scores(measured, subject, wanted, numbers, chosen)
        for subject in measured.subjects(task)
    ]
    return sorted(lines, key=lambda line: (line.is_baseline, not line.is_chosen, line.number))


def _explainer_scores(
    measured: AggregatedScores,
    subject: Subject,
    wanted: Requirements,
    numbers: dict[str, int],
    chosen: str,
) -> ExplainerScores:
    """Return the scores of one explainer."""
    name = subject[2]
    verdicts = [
        judge_mean(measured, subject, metric, wanted) for metric in measured.judged_metrics()
    ]
    scores = [_build_score_cell(measured, subject, judged) for judged in verdicts]
    return ExplainerScores(
        numbers[name],
        name,
        worst_outcome(verdicts),
        name == chosen,
        name == wanted.baseline,
        scores,
    )


def _build_score_cell(measured: AggregatedScores, subject: Subject, judged: Verdict) -> ScoreCell:
    """Return one mean with its verdict."""
    measure = measured.get(subject, judged.metric)
    low, high = (measure.interval if measure is not None else None) or (None, None)
    missing = dict(measure.missing) if measure is not None else {}
    gap = "" if judged.number is not None else explain_gap(missing)
    n = judged.n or 0
    return ScoreCell(
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


def explain_gap(missing: dict[str, int]) -> str:
    """Say why there is no number.

    >>> explain_gap({"empty": 3}), explain_gap({})
    ('3 empty: no edge can carry a message to the target', 'not measured')
    """
    reasons = [
        f"{count} {status}: {GAP_REASONS.get(status, 'unknown')}"
        for status, count in missing.items()
        if count
    ]
    return "; ".join(reasons) or "not measured"


def column_heading(metric: str) -> Record:
    """Describe the column of a metric: titles, which values are better, and digits.

    >>> list(column_heading("edge_ec").values())
    ['edge_ec', 'Edge EC', 'Edge effective compactness', 'lower is better', 1]
    """
    full = short = metric_title(metric)
    for long, word in _SHORT_TITLES.items():
        short = short.replace(long, word)
    better = "higher is better" if higher_is_better(metric) else "lower is better"
    return {
        "metric": metric,
        "title": short,
        "full": full,
        "better": better,
        "digits": _DIGITS_BY_FAMILY.get(metric_family(metric)),
    }


def format_score(value: float | None, metric: str) -> str:
    """Format a number with the digits that the recommendation compares.

    Seconds have two significant digits.

    >>> format_score(1, "edge_stability"), format_score(3.14, "edge_ec")
    ('1.00', '3.1')
    >>> format_score(0.01234, "time")
    '0.012'
    >>> format_score(None, "time")
    '–'
    """
    if value is None or not math.isfinite(value):
        return "–"
    digits = _DIGITS_BY_FAMILY.get(metric_family(metric))
    return f"{value:.2g}" if digits is None else f"{value:,.{digits}f}"
