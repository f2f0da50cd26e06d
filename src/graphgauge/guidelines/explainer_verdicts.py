"""Verdicts on explainers: the mean of every metric, compared with its threshold and with random.

A number that meets its threshold is still only a warning if

    - the threshold is vacuous (chance meets it too),
    - it is the mean of fewer than 50 targets (the paper asks for 50-100 to begin with, and for
      200-500 for production),
    - the 95 % interval of the mean crosses the threshold,
    - the stakes are high and stability lies below 0.95, or the time lies in the upper part of its
      band,
    - it is the pertinence of one explanation, and a random order does as well (p > 0.05).

It is undecided if

    - it is the mean of fewer than 10 targets, from which no interval can be trusted,
    - nothing shows that this side of the explainer is more faithful than the run's random explainer
      (see the paired comparisons).

Pertinence and EC fail, whatever their thresholds, if a measure of the same side is clearly worse
than random: either the number itself ("worse than random"), or another one that contradicts it.
Time is measured on a few targets by design and exempt from these rules.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from graphgauge.core import FAIL, NOT_APPLICABLE, PASS, UNDECIDED, WARN, BadSetting, Verdict
from graphgauge.evaluation import Results
from graphgauge.guidelines.aggregation import (
    AggregatedScore,
    AggregatedScores,
    Subject,
    aggregate_scores,
)
from graphgauge.guidelines.explanation_verdicts import judge_explanations
from graphgauge.guidelines.paired_comparisons import (
    LEAST_TARGETS,
    RandomComparison,
    chance_level,
    compare_subject_with_random,
)
from graphgauge.guidelines.reference_data import metric_family
from graphgauge.guidelines.requirements import Requirements
from graphgauge.guidelines.thresholds import (
    Limit,
    find_limit,
    outcome_before_doubts,
    reachability_note,
    vacuity_reason,
)
from graphgauge.guidelines.verdict_sentences import (
    below_half_note,
    contradiction_sentence,
    crossing_note,
    few_targets_note,
    interval_phrase,
    missing_sentence,
    missing_values_note,
    no_better_sentence,
    no_limit_sentence,
    paper_remark,
    target_count_phrase,
    unsafe_note,
    verdict_sentence,
    worse_sentence,
)
from graphgauge.metrics import MetricName

if TYPE_CHECKING:
    import pandas as pd

#: why a number is undecided, or fails whatever its threshold
TOO_FEW_TARGETS = "too_few_targets"
NO_BETTER_THAN_RANDOM = "no_better_than_random"
WORSE_THAN_RANDOM = "worse_than_random"
CONTRADICTED = "contradiction"


def verdicts(
    given: "Results | pd.DataFrame",
    requirements: Requirements | None = None,
    per: Literal["explainer", "explanation"] = "explainer",
) -> list[Verdict]:
    """Judge every number of a run or of a table of means.

    Args:
        given: Results of a run, or a table of means.
        requirements: Thresholds and use (default: the paper's table).
        per: "explainer" for seven verdicts on each explainer, "explanation" for each explanation.

    Raises:
        BadSetting: ``per`` is unknown, or single explanations are asked of a table of means.
    """
    wanted = requirements or Requirements()
    if per not in ("explainer", "explanation"):
        raise BadSetting(f"per must be 'explainer' or 'explanation', but {per!r} was given.")
    if per == "explanation":
        if not isinstance(given, Results):
            raise BadSetting(
                "a table of means holds no single explanations: pass the Results of a run."
            )
        return judge_explanations(given, wanted)
    scores = aggregate_scores(given, wanted)
    return [
        judge_mean(scores, subject, metric, wanted)
        for subject in scores.subjects()
        for metric in scores.judged_metrics()
    ]


def judge_mean(
    scores: AggregatedScores, subject: Subject, metric: str, requirements: Requirements
) -> Verdict:
    """Judge one mean.

    Args:
        scores: The scores of a run or a table.
        subject: Task, network and explainer.
        metric: The metric.
        requirements: Thresholds and use.
    """
    task, model, explainer = subject
    score = scores.get(subject, metric) or AggregatedScore(None, 0, missing={"not_measured": 0})
    limit = find_limit(metric, scores.kinds.get(task), requirements)
    verdict = Verdict(
        NOT_APPLICABLE,
        metric,
        "",
        explainer=explainer,
        task=task,
        model=model,
        n=score.n,
        number=score.mean,
    )
    if score.mean is None:
        status = next(iter(score.missing), "not_measured")
        return replace(verdict, status=status, reason=missing_sentence(metric, score))
    if isinstance(limit, str):
        chance = chance_level(scores, subject, metric, requirements.baseline)
        verdict = replace(
            verdict, status=limit, reason=no_limit_sentence(metric, score, limit, *chance)
        )
    else:
        verdict = _judge_against_limit(verdict, score, limit, scores, requirements)
    return _apply_random_baseline(verdict, scores, requirements.baseline)


def _judge_against_limit(
    verdict: Verdict,
    score: AggregatedScore,
    limit: Limit,
    scores: AggregatedScores,
    requirements: Requirements,
) -> Verdict:
    """Compare a mean with its limit, and explain the outcome."""
    metric, mean = verdict.metric, float(score.mean or 0.0)
    subject = (verdict.task, verdict.model, verdict.explainer)
    chance = chance_level(scores, subject, metric, requirements.baseline)
    vacuous = vacuity_reason(metric, limit, scores.cap, *chance)
    doubts = [
        vacuous,
        few_targets_note(metric, score),
        crossing_note(score, limit, metric),
        unsafe_note(mean, limit, metric),
    ]
    outcome = outcome_before_doubts(mean, limit, metric, requirements)
    if outcome == PASS and any(doubts):
        outcome = WARN
    if outcome == FAIL:
        doubts = [vacuous, below_half_note(metric, mean, *chance)]
    notes = [
        paper_remark(metric, mean, verdict.explainer, scores.kinds.get(verdict.task)),
        *doubts,
        reachability_note(metric, limit),
        missing_values_note(score),
    ]
    where = target_count_phrase(score) + interval_phrase(score, metric)
    return replace(
        verdict,
        outcome=outcome,
        reason=verdict_sentence(metric, mean, where, limit, notes),
        threshold=limit.value,
        is_vacuous=bool(vacuous),
    )


def _apply_random_baseline(verdict: Verdict, scores: AggregatedScores, baseline: str) -> Verdict:
    """Adjust a verdict by what random scores reach, and by the number of targets."""
    family, side = metric_family(verdict.metric), MetricName.parse(verdict.metric).side
    if family == "time":
        return verdict
    subject = (verdict.task, verdict.model, verdict.explainer)
    random = (
        compare_subject_with_random(scores, subject, side, baseline)
        if family in ("pertinence", "ec")
        else None
    )
    if random is not None and random.worse:
        return _fail_beside_random(verdict, random)
    if verdict.outcome not in (PASS, WARN):
        return verdict
    if verdict.n is not None and verdict.n < LEAST_TARGETS:
        note = f"undecided: fewer than {LEAST_TARGETS} targets decide nothing"
        return _override_outcome(verdict, UNDECIDED, TOO_FEW_TARGETS, note)
    if random is not None and not random.is_better:
        note = f"undecided: {no_better_sentence(random)}"
        return _override_outcome(verdict, UNDECIDED, NO_BETTER_THAN_RANDOM, note)
    return verdict


def _fail_beside_random(verdict: Verdict, random: RandomComparison) -> Verdict:
    """Fail a number that is worse than random, or that a worse measure contradicts."""
    for comparison in random.worse:
        if comparison.metric == verdict.metric:
            note = worse_sentence(comparison, random)
            return _override_outcome(verdict, FAIL, WORSE_THAN_RANDOM, note)
    return _override_outcome(verdict, FAIL, CONTRADICTED, contradiction_sentence(random))


def _override_outcome(verdict: Verdict, outcome: str, status: str, note: str) -> Verdict:
    """Return the verdict with another outcome and the reason for it."""
    reason = f"{verdict.reason.removesuffix('.')}; {note}."
    return replace(verdict, outcome=outcome, status=status, reason=reason)
