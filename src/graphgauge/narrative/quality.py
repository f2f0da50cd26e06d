"""Whether an explanation met its quality thresholds, or its method at validation. Both are given:
this room judges nothing.

``quality`` is None (not judged), a dictionary {metric: (value, threshold, passed)} with ``passed``
True, False or None (does not apply), or a list of plain statements about what failed (an empty one:
all is well).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from graphgauge.core.errors import BadSetting, UnknownName
from graphgauge.core.xplanation import Target
from graphgauge.evaluation.meanings import higher_is_better
from graphgauge.narrative.names import LONGEST_SENTENCE, tidy

Quality = Mapping[str, tuple[float | None, float, bool | None]] | Sequence[str] | None


def quality_facts(quality: Quality, target: Target, at_validation: bool = False) -> dict[str, Any]:
    """Which thresholds failed, out of how many that apply; ``at_validation``: for the method, not
    for this explanation.
    """
    return {**judged_facts(quality, target), "at_validation": at_validation}


def judged_facts(quality: Quality, target: Target) -> dict[str, Any]:
    """Which thresholds failed, out of how many that apply."""
    if quality is None:
        return {"judged": False, "total": 0, "failed": 0, "failures": [], "statements": []}
    if isinstance(quality, Mapping):
        return threshold_facts(
            {str(metric): read_verdict(metric, verdict) for metric, verdict in quality.items()}
        )
    if isinstance(quality, (str, bytes)) or not isinstance(quality, Sequence):
        raise BadSetting(
            f"quality must be a dictionary {{metric: (value, threshold, passed)}} or a list of statements, but is "
            f"{type(quality).__name__} (target {target})."
        )
    told = [
        tidy(statement, LONGEST_SENTENCE).rstrip(". ")
        for statement in map(check_statement, quality)
    ]
    return {
        "judged": True,
        "total": len(told),
        "failed": len(told),
        "failures": [],
        "statements": [text for text in told if text],
    }


def threshold_facts(verdicts: dict[str, tuple[float | None, float, bool | None]]) -> dict[str, Any]:
    """From metric -> (value, threshold, passed)."""
    asked = {metric: verdict for metric, verdict in verdicts.items() if verdict[2] is not None}
    failures = [
        failure(metric, value, threshold)
        for metric, (value, threshold, passed) in asked.items()
        if not passed
    ]
    return {
        "judged": bool(asked),
        "total": len(asked),
        "failed": len(failures),
        "failures": failures,
        "statements": [],
    }


def failure(metric: str, value: float | None, threshold: float) -> dict[str, Any]:
    """One threshold that was missed, without what computing left in its last digits (0.6, not
    0.6000000000000001).
    """
    limit = float(f"{threshold:.12g}")
    return {
        "metric": tidy(metric),
        "value": told_apart(value, limit),
        "threshold": limit,
        "at_least": is_floor(metric),
    }


def told_apart(value: float | None, threshold: float) -> float | None:
    """The value with three significant digits, or as many as it takes not to look like the
    threshold.

    >>> told_apart(0.5123, 0.6), told_apart(0.59996, 0.6)
    (0.512, 0.59996)
    """
    if value is None or not math.isfinite(value):
        return None
    shown = [float(f"{value:.{digits}g}") for digits in range(3, 18)]
    return next((number for number in shown if number != threshold), value)


def is_floor(metric: str) -> bool:
    """Whether the threshold is the least that is asked for, or the most."""
    try:
        return higher_is_better(metric)
    except UnknownName:
        return True


def read_verdict(metric: Any, verdict: Any) -> tuple[float | None, float, bool | None]:
    """(value, threshold, passed), or an error that says what was found."""
    if not isinstance(verdict, Sequence) or isinstance(verdict, str) or len(verdict) != 3:
        raise BadSetting(
            f"quality[{metric!r}] must be (value, threshold, passed), but is {verdict!r}."
        )
    value, threshold, passed = verdict
    is_threshold = (
        isinstance(threshold, (int, float))
        and not isinstance(threshold, bool)
        and math.isfinite(threshold)
    )
    if (
        not is_threshold
        or (passed is not None and not isinstance(passed, bool))
        or not isinstance(value, (int, float, type(None)))
    ):
        raise BadSetting(
            f"quality[{metric!r}] must be (number or None, number, True, False or None), but is {verdict!r}."
        )
    return value, threshold, passed


def check_statement(statement: Any) -> str:
    """Refuse what is no text."""
    if not isinstance(statement, str):
        raise BadSetting(
            f"statements on quality must be texts, but one is {type(statement).__name__}."
        )
    return statement
