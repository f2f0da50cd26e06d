"""Verdicts on single explanations: each value, compared with its threshold and with chance."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphgauge.core import NOT_APPLICABLE, PASS, WARN, Verdict
from graphgauge.evaluation import FAULTS, OK, Results
from graphgauge.guidelines.aggregation import (
    AggregatedScores,
    add_stability_chance_rows,
    aggregate_run,
)
from graphgauge.guidelines.findings import SIGNIFICANCE_LEVEL
from graphgauge.guidelines.reference_data import load_guideline, metric_family
from graphgauge.guidelines.requirements import Requirements
from graphgauge.guidelines.thresholds import (
    NO_LIMIT_REASONS,
    ROUNDING_TOLERANCE,
    find_limit,
    format_metric_value,
    metric_title,
    outcome_before_doubts,
    reachability_note,
    vacuity_reason,
)
from graphgauge.guidelines.verdict_sentences import (
    STATUS_REASONS,
    paper_remark,
    unsafe_note,
    verdict_sentence,
)
from graphgauge.metrics import MetricName

#: a row of `Results.to_pandas`: its columns hold texts, numbers, targets and lists
Row = Mapping[str, Any]


def judge_explanations(results: Results, requirements: Requirements) -> list[Verdict]:
    """Judge every explanation and metric of a run.

    Args:
        results: Results of a run.
        requirements: Thresholds and use.
    """
    scores = aggregate_run(results, requirements)
    judged_metrics = scores.judged_metrics()
    rows: list[Row] = add_stability_chance_rows(results.to_pandas()).to_dict("records")
    values = {
        (*_explanation_key(row), row["metric"]): float(row["value"])
        for row in rows
        if row["status"] == OK
    }
    least_p = {
        side: smallest_p_value(results.settings.trials_of(side)) for side in ("edge", "feature")
    }
    return [
        _judge_explanation(row, values, least_p, scores, requirements)
        for row in rows
        if row["metric"] in judged_metrics
    ]


def smallest_p_value(curves: int) -> float:
    """Return the smallest p-value that this many random curves allow.

    >>> smallest_p_value(19)
    0.05
    """
    return 1 / (curves + 1)


def _explanation_key(row: Row) -> tuple[Any, ...]:
    """Return which explanation a row belongs to."""
    return tuple(row[name] for name in ("task", "model", "explainer", "target", "occurrence"))


def _judge_explanation(
    row: Row,
    values: Mapping[tuple[Any, ...], float],
    least_p: Mapping[str, float],
    scores: AggregatedScores,
    requirements: Requirements,
) -> Verdict:
    """Judge one value; ``values`` are those of all explanations, by key and metric."""
    metric, kind = str(row["metric"]), scores.kinds.get(row["task"])
    names = {name: row[name] for name in ("explainer", "target", "task", "model", "occurrence")}
    verdict = Verdict(NOT_APPLICABLE, metric, "", n=1, status=row["status"], **names)
    if row["status"] != OK:
        return replace(verdict, reason=_gap_sentence(metric, row["status"], row["message"]))
    limit, number = find_limit(metric, kind, requirements), float(row["value"])
    if isinstance(limit, str):
        value = format_metric_value(metric, number)
        reason = f"{metric_title(metric)} is {value}; {NO_LIMIT_REASONS[limit]}."
        return replace(verdict, number=number, status=limit, reason=reason)
    chance = values.get((*_explanation_key(row), f"{metric}_chance"))  # of stability only
    vacuous = vacuity_reason(metric, limit, scores.cap, chance, "a permutation of the scores")
    p = values.get((*_explanation_key(row), str(MetricName.parse(metric).in_form("p"))))
    doubts = [
        vacuous,
        _unproven_note(metric, p, least_p),
        unsafe_note(number, limit, metric),
        _unflipped_note(row),
    ]
    outcome = outcome_before_doubts(number, limit, metric, requirements)
    notes = [
        paper_remark(metric, number, verdict.explainer, kind),
        *doubts,
        reachability_note(metric, limit),
    ]
    return replace(
        verdict,
        outcome=WARN if outcome == PASS and any(doubts) else outcome,
        reason=verdict_sentence(metric, number, f" of target {row['target']}", limit, notes),
        number=number,
        threshold=limit.value,
        is_vacuous=bool(vacuous),
    )


def _gap_sentence(metric: str, status: str, message: str | None) -> str:
    """Say why one explanation has no number, with the run's message if it is a fault."""
    detail = f": {message.rstrip('.')}" if status in FAULTS and message else ""
    return f"{metric_title(metric)} has no value: {status} ({STATUS_REASONS[status]}){detail}."


def _unproven_note(metric: str, p: float | None, least_p: Mapping[str, float]) -> str:
    """Return a note if a random order does as well.

    Without a p-value, the note says how often random orders reach 0.6.
    """
    if metric_family(metric) != "pertinence":
        return ""
    if p is None:
        share = load_guideline("chance")["pertinence"]["share_at_least_06"]
        return (
            f"one target says little: {share:.0%} of random rankings reach 0.6 on a target of "
            "Cora; measure with twins=True"
        )
    level = max(SIGNIFICANCE_LEVEL, least_p[MetricName.parse(metric).side])
    return "" if p <= level + ROUNDING_TOLERANCE else f"a random order does as well (p = {p:.3g})"


def _unflipped_note(row: Row) -> str:
    """Return a note if the EC is only the number of candidates or the cap."""
    is_ec = MetricName.parse(row["metric"]).family == "ec"
    is_open = is_ec and row["flipped"] is not None and not row["flipped"]
    return "the prediction never changed, so this is where the edits ended" if is_open else ""
