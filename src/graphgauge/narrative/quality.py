"""Whether an explanation, or its method at validation, met the quality thresholds.

The caller judges; this file only puts the verdicts into facts.

``quality`` is None (not judged), a dictionary {metric: (value, threshold, passed)} with ``passed``
True, False or None (does not apply), or a list of plain statements about what failed (an empty
list: nothing failed).
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphgauge.core import BadSetting, Target, UnknownName
from graphgauge.evaluation import higher_is_better
from graphgauge.narrative.names import MAX_SENTENCE_LENGTH, tidy_text

if TYPE_CHECKING:
    from graphgauge.narrative.facts import Facts

QualityVerdicts = Mapping[str, tuple[float | None, float, bool | None]] | Sequence[str] | None


def quality_facts(quality: QualityVerdicts, target: Target, at_validation: bool = False) -> "Facts":
    """Say which thresholds failed, out of how many that apply.

    Args:
        quality: None (not judged), {metric: (value, threshold, passed)}, or a list of statements
            about what failed.
        target: The target that was explained; error messages name it.
        at_validation: Whether ``quality`` is that of the method at validation, and not that of this
            explanation.

    Returns:
        ``judged``, the counts ``total`` and ``failed``, the ``failures`` (metric, value and
        threshold), the ``statements`` and ``at_validation``.

    Raises:
        BadSetting: ``quality`` has another form.
    """
    return {**_verdict_facts(quality, target), "at_validation": at_validation}


def _verdict_facts(quality: QualityVerdicts, target: Target) -> "Facts":
    """Say which thresholds failed, out of how many that apply."""
    if quality is None:
        return {"judged": False, "total": 0, "failed": 0, "failures": [], "statements": []}
    if isinstance(quality, Mapping):
        return _threshold_facts(
            {str(metric): _parse_verdict(metric, verdict) for metric, verdict in quality.items()}
        )
    if isinstance(quality, (str, bytes)) or not isinstance(quality, Sequence):
        raise BadSetting(
            "quality must be a dictionary {metric: (value, threshold, passed)} or a list of "
            f"statements, but is {type(quality).__name__} (target {target})."
        )
    statements = [
        tidy_text(statement, MAX_SENTENCE_LENGTH).rstrip(". ")
        for statement in map(_check_statement, quality)
    ]
    return {
        "judged": True,
        "total": len(statements),
        "failed": len(statements),
        "failures": [],
        "statements": [text for text in statements if text],
    }


def _threshold_facts(
    verdicts: dict[str, tuple[float | None, float, bool | None]],
) -> "Facts":
    """The same for {metric: (value, threshold, passed)}."""
    applying = {metric: verdict for metric, verdict in verdicts.items() if verdict[2] is not None}
    failures = [
        _failure_facts(metric, value, threshold)
        for metric, (value, threshold, passed) in applying.items()
        if not passed
    ]
    return {
        "judged": bool(applying),
        "total": len(applying),
        "failed": len(failures),
        "failures": failures,
        "statements": [],
    }


def _failure_facts(metric: str, value: float | None, threshold: float) -> "Facts":
    """One missed threshold, without rounding errors in its last digits (0.6, not 0.600000001)."""
    limit = float(f"{threshold:.12g}")
    return {
        "metric": tidy_text(metric),
        "value": _distinguish_from_threshold(value, limit),
        "threshold": limit,
        "at_least": _is_lower_limit(metric),
    }


def _distinguish_from_threshold(value: float | None, threshold: float) -> float | None:
    """Round to three significant digits, or to as many as tell the value from the threshold.

    >>> _distinguish_from_threshold(0.5123, 0.6), _distinguish_from_threshold(0.59996, 0.6)
    (0.512, 0.59996)
    """
    if value is None or not math.isfinite(value):
        return None
    candidates = [float(f"{value:.{digits}g}") for digits in range(3, 18)]
    return next((number for number in candidates if number != threshold), value)


def _is_lower_limit(metric: str) -> bool:
    """Whether values should reach the threshold, not stay below it."""
    try:
        return higher_is_better(metric)
    except UnknownName:
        return True


def _parse_verdict(metric: str, verdict: object) -> tuple[float | None, float, bool | None]:
    """Return (value, threshold, passed); raise BadSetting for anything else."""
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
            f"quality[{metric!r}] must be (number or None, number, True, False or None), "
            f"but is {verdict!r}."
        )
    return value, threshold, passed


def _check_statement(statement: object) -> str:
    """Raise BadSetting unless the statement is a text."""
    if not isinstance(statement, str):
        raise BadSetting(
            f"statements on quality must be texts, but one is {type(statement).__name__}."
        )
    return statement
