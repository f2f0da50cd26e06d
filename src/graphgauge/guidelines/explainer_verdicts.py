"""Verdicts: every number of a run against its threshold, per explainer (over targets) or per
explanation.

A number that meets its threshold is still only a warning where
    - the threshold is vacuous (`limits.vacuity`),
    - it is the mean of fewer than 50 targets (the paper asks for 50-100 to begin with, 200-500 for
      production),
    - the 95 % interval of the mean crosses the threshold,
    - much is at stake and stability lies below 0.95, or the time lies in the upper part of its
      band,
    - it is the pertinence of one explanation, and a random order does as well with p > 0.05.
It is undecided where
    - it is the mean of fewer than 10 targets, from which no interval can be trusted,
    - nothing shows that this side of the explainer is more faithful than the random explainer of
      the run (`comparisons`).
Pertinence and EC fail, whatever their thresholds, where a measure of the same side is clearly worse
than random: the number itself ("worse than random"), or another one, which contradicts it. Time is
measured on a few targets by design and exempt.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphgauge.core import (
    FAIL,
    NOT_APPLICABLE,
    PASS,
    UNDECIDED,
    WARN,
    BadSetting,
    UnknownName,
    Verdict,
)
from graphgauge.evaluation import FAULTS, OK, STATUSES, Results
from graphgauge.guidelines.aggregation import (
    AggregatedScore,
    AggregatedScores,
    Subject,
    add_stability_chance_rows,
    aggregate_run,
    aggregate_scores,
)
from graphgauge.guidelines.paired_comparisons import (
    LEAST_TARGETS,
    PairedComparison,
    RandomComparison,
    chance_level,
    compare_subject_with_random,
)
from graphgauge.guidelines.reference_data import find_band, load_guideline, metric_family
from graphgauge.guidelines.requirements import Requirements
from graphgauge.guidelines.thresholds import (
    NO_LIMIT_REASONS,
    ROUNDING_TOLERANCE,
    Limit,
    find_limit,
    format_metric_value,
    metric_title,
    reachability_note,
    vacuity_reason,
)

if TYPE_CHECKING:
    import pandas as pd

_SIGNIFICANCE_LEVEL = 0.05
ACCEPTED_GAPS = (
    "not_prescribed",
    "no_scores",
    "constant",
)  #: reasons for a missing verdict that leave a check complete
_STATUS_REASONS = {**STATUSES, **FAULTS}  #: every status that a row can have, for people
EXIT_COMPLETE, _EXIT_BELOW, EXIT_INCOMPLETE = 0, 1, 3  #: exit codes
#: why a number is undecided, or fails whatever its threshold
TOO_FEW_TARGETS, NO_BETTER_THAN_RANDOM, WORSE_THAN_RANDOM, CONTRADICTED = (
    "too_few_targets",
    "no_better_than_random",
    "worse_than_random",
    "contradiction",
)


def verdicts(
    given: "Results | pd.DataFrame",
    requirements: Requirements | None = None,
    per: str = "explainer",
) -> list[Verdict]:
    """Verdicts on a run (or on a table of means), seven for each explainer, or for each explanation
    with ``per="explanation"``.
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
    found = aggregate_scores(given, wanted)
    return [
        judge_mean(found, subject, metric, wanted)
        for subject in found.subjects()
        for metric in found.judged_metrics()
    ]


def judge_mean(
    found: AggregatedScores, subject: Subject, metric: str, wanted: Requirements
) -> Verdict:
    """One mean against its threshold."""
    task, model, explainer = subject
    own = found.get(subject, metric) or AggregatedScore(None, 0, missing={"not_measured": 0})
    limit = find_limit(metric, found.kinds.get(task), wanted)
    blank = Verdict(
        NOT_APPLICABLE,
        metric,
        "",
        explainer=explainer,
        task=task,
        model=model,
        n=own.n,
        number=own.mean,
    )
    if own.mean is None:
        return replace(
            blank,
            status=next(iter(own.missing), "not_measured"),
            reason=_missing_sentence(metric, own),
        )
    if isinstance(limit, str):
        reason = f"{metric_title(metric)} is {format_metric_value(metric, own.mean)}{_target_count_phrase(own)}; {NO_LIMIT_REASONS[limit]}{_chance_note(found, subject, metric, wanted)}."
        return _apply_random_baseline(replace(blank, status=limit, reason=reason), found, wanted)
    return _apply_random_baseline(
        _judge_against_limit(blank, own, limit, found, wanted), found, wanted
    )


def _apply_random_baseline(
    verdict: Verdict, found: AggregatedScores, wanted: Requirements
) -> Verdict:
    """The verdict once it is known what random scores reach and whether there are targets enough."""
    family, side = metric_family(verdict.metric), verdict.metric.split("_")[0]
    if family == "time":
        return verdict
    subject = (verdict.task, verdict.model, verdict.explainer)
    against = (
        compare_subject_with_random(found, subject, side, wanted.baseline)
        if family in ("pertinence", "ec")
        else None
    )
    if against is not None and against.worse:
        own = [each for each in against.worse if each.metric == verdict.metric]
        sentence = (
            _worse_sentence(own[0], against) if own else _contradiction_sentence(verdict, against)
        )
        return _override_outcome(
            verdict, FAIL, WORSE_THAN_RANDOM if own else CONTRADICTED, sentence
        )
    if verdict.outcome not in (PASS, WARN):
        return verdict
    if verdict.n is not None and verdict.n < LEAST_TARGETS:
        return _override_outcome(
            verdict,
            UNDECIDED,
            TOO_FEW_TARGETS,
            f"undecided: fewer than {LEAST_TARGETS} targets decide nothing",
        )
    if against is not None and not against.is_better:
        return _override_outcome(
            verdict, UNDECIDED, NO_BETTER_THAN_RANDOM, f"undecided: {_no_better_sentence(against)}"
        )
    return verdict


def _override_outcome(verdict: Verdict, outcome: str, status: str, note: str) -> Verdict:
    """The verdict with another outcome, and why."""
    return replace(
        verdict,
        outcome=outcome,
        status=status,
        reason=f"{verdict.reason.removesuffix('.')}; {note}.",
    )


def _worse_sentence(own: PairedComparison, against: RandomComparison) -> str:
    """How much worse than random a number is."""
    return f"it is worse than {against.baseline_phrase}: {own.numbers()}"


def _contradiction_sentence(verdict: Verdict, against: RandomComparison) -> str:
    """Which other measure of the same side says that the explainer is worse than random."""
    worst = against.worse[0]
    said = f"{metric_title(worst.metric)[0].lower()}{metric_title(worst.metric)[1:]} is worse than {against.baseline_phrase} ({worst.numbers()})"
    return f"this contradicts another measure: {said}"


def _no_better_sentence(against: RandomComparison) -> str:
    """What was compared with random in vain."""
    parts = [
        f"{metric_title(own.metric)[0].lower()}{metric_title(own.metric)[1:]} {own.numbers()}"
        for own in against.comparisons
    ]
    gap = (
        ""
        if against.baseline
        else "; the run has no random explainer, so EC has nothing to be compared with"
    )
    return f"nothing shows that the {against.side} side is better than random ({'; '.join(parts)}){gap}"


def _judge_against_limit(
    blank: Verdict,
    own: AggregatedScore,
    limit: Limit,
    found: AggregatedScores,
    wanted: Requirements,
) -> Verdict:
    """The outcome and its sentence."""
    metric, number = blank.metric, float(own.mean or 0.0)
    subject = (blank.task, blank.model, blank.explainer)
    vacuous = vacuity_reason(
        metric, limit, found.cap, *chance_level(found, subject, metric, wanted.baseline)
    )
    doubts = [
        vacuous,
        *_few_targets_notes(metric, own),
        _crossing_note(own, limit, metric),
        _unsafe_note(number, limit, metric),
    ]
    outcome, remark = (
        _outcome_before_doubts(number, limit, metric, wanted),
        _paper_remark(metric, number, blank.explainer, found.kinds.get(blank.task)),
    )
    if outcome == PASS and any(doubts):
        outcome = WARN
    notes = [
        remark,
        *(
            doubts
            if outcome != FAIL
            else [vacuous, _below_half_note(metric, number, found, subject, wanted)]
        ),
    ]
    notes += [reachability_note(metric, limit), _missing_values_note(own)]
    reason = _verdict_sentence(
        metric, number, _target_count_phrase(own) + _interval_phrase(own, metric), limit, notes
    )
    return replace(
        blank, outcome=outcome, reason=reason, threshold=limit.value, is_vacuous=bool(vacuous)
    )


def _outcome_before_doubts(number: float, limit: Limit, metric: str, wanted: Requirements) -> str:
    """Pass, warn or fail before any doubt."""
    if limit.is_met(number):
        return PASS
    is_pertinence = metric_family(metric) == "pertinence"
    is_excused = (
        wanted.is_difficult
        and is_pertinence
        and number >= load_guideline("thresholds")["pertinence"]["random"]
    )
    return WARN if is_excused or limit.never_fails else FAIL


def _paper_remark(metric: str, number: float, explainer: str, kind: str | None) -> str:
    """What the paper says of such a number, where that applies; '' elsewhere.

    >>> _paper_remark("edge_stability", 0.96, "gnn_explainer", None)
    'close to deterministic: fit for reports to a regulator'
    >>> _paper_remark("edge_stability", 1.0, "lrp", None)
    'the method is deterministic, so this is 1 by construction and says nothing of quality'
    """
    family = metric_family(metric)
    if family not in ("stability", "pertinence"):
        return ""
    if (
        family == "stability"
        and number >= 1 - 1e-5
        and explainer in load_guideline("explainers")["traits"]["deterministic"]
    ):
        return (
            "the method is deterministic, so this is 1 by construction and says nothing of quality"
        )
    remark = str(find_band(family, number)["meaning"])
    return "" if "classification" in remark and (kind or "").endswith("regression") else remark


def _verdict_sentence(
    metric: str, number: float, where: str, limit: Limit, notes: Iterable[str]
) -> str:
    """The number, its threshold, and what else there is to say."""
    meets = "meets" if limit.is_met(number) else "misses"
    head = f"{metric_title(metric)} {format_metric_value(metric, number)}{where} {meets} the threshold of {limit.direction} {format_metric_value(metric, limit.value)}"
    return "; ".join([f"{head} ({limit.source})", *(note for note in notes if note)]) + "."


# --- parts of a sentence --------------------------------------------------------------------------


def _target_count_phrase(own: AggregatedScore) -> str:
    """Over how many targets."""
    return "" if own.n is None else f" (mean of {own.n} {'target' if own.n == 1 else 'targets'})"


def _interval_phrase(own: AggregatedScore, metric: str) -> str:
    """The interval of the mean."""
    return (
        ""
        if own.interval is None
        else f", 95 % interval {format_metric_value(metric, own.interval[0])} to {format_metric_value(metric, own.interval[1])},"
    )


def _few_targets_notes(metric: str, own: AggregatedScore) -> list[str]:
    """The advice on sample sizes, where there are too few targets."""
    sizes = load_guideline("practice")["samples"]
    (first, enough), (production, most) = sizes["initial"], sizes["production"]
    if own.n is None or own.n >= first or metric == "time":
        return []
    return [
        f"{own.n} targets are few: take {first}-{enough} for a first look and {production}-{most} for production"
    ]


def _below_half_note(
    metric: str, number: float, found: AggregatedScores, subject: Subject, wanted: Requirements
) -> str:
    """What a paper's pertinence below 0.5 is to be compared with: ties count as lost, so chance
    lies below 0.5 too.
    """
    if (
        metric.endswith("_tied")
        or metric_family(metric) != "pertinence"
        or number >= load_guideline("thresholds")["pertinence"]["random"]
    ):
        return ""
    chance, who = chance_level(found, subject, metric, wanted.baseline)
    usual = load_guideline("chance")["pertinence"]["edges_cora"]
    seen = (
        f"{who} reaches {format_metric_value(metric, chance)} here"
        if chance is not None
        else f"random rankings reach {usual} on Cora's edges"
    )
    return f"ties count as lost, so chance is not 0.5: {seen}"


def _crossing_note(own: AggregatedScore, limit: Limit, metric: str) -> str:
    """Whether the interval of a mean that meets its threshold crosses it."""
    if own.interval is None or all(limit.is_met(end) for end in own.interval):
        return ""
    return f"the 95 % interval crosses the threshold of {format_metric_value(metric, limit.value)}, so the true mean may miss it"


def _unsafe_note(number: float, limit: Limit, metric: str) -> str:
    """Whether a number meets its limit but not the stricter one."""
    if limit.safe is None or not limit.is_met(number) or limit.is_met(number, limit.safe):
        return ""
    return f"not yet {limit.direction} {format_metric_value(metric, limit.safe)}, which is safe"


def _missing_values_note(own: AggregatedScore) -> str:
    """How many values are missing, and why."""
    gaps = [
        f"{count} {status}"
        for status, count in own.missing.items()
        if count and status != "not_timed"
    ]
    return f"left out: {', '.join(gaps)}" if gaps else ""


def _missing_sentence(metric: str, own: AggregatedScore) -> str:
    """Why there is no number."""
    told_why = [
        f"{status} on {count} targets ({_STATUS_REASONS.get(status, 'unknown')})"
        for status, count in own.missing.items()
        if count
    ]
    return f"{metric_title(metric)} has no value: {', '.join(told_why) or 'it was not measured'}."


def _chance_note(
    found: AggregatedScores, subject: Subject, metric: str, wanted: Requirements
) -> str:
    """What the random explainer of the run reaches, for numbers without a threshold."""
    chance, who = chance_level(found, subject, metric, wanted.baseline)
    return "" if chance is None else f"; {who} reaches {format_metric_value(metric, chance)}"


# --- single explanations --------------------------------------------------------------------------


def judge_explanations(results: Results, wanted: Requirements) -> list[Verdict]:
    """A verdict on every explanation and metric."""
    found = aggregate_run(results, wanted)
    chosen = found.judged_metrics()
    rows = add_stability_chance_rows(results.to_pandas()).to_dict("records")
    known: dict[Any, float] = {
        (*_explanation_key(row), row["metric"]): row["value"] for row in rows if row["status"] == OK
    }
    known |= {
        side: smallest_p_value(results.settings.trials_of(side)) for side in ("edge", "feature")
    }
    return [
        _judge_explanation(row, known, found, wanted) for row in rows if row["metric"] in chosen
    ]


def _explanation_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """Which explanation a row belongs to."""
    return tuple(row[name] for name in ("task", "model", "explainer", "target", "occurrence"))


def _judge_explanation(
    row: dict[str, Any], known: dict[Any, float], found: AggregatedScores, wanted: Requirements
) -> Verdict:
    """One value against its threshold."""
    metric = str(row["metric"])
    names = {name: row[name] for name in ("explainer", "target", "task", "model", "occurrence")}
    blank = Verdict(NOT_APPLICABLE, metric, "", n=1, status=row["status"], **names)
    if row["status"] != OK:
        return replace(blank, reason=_gap_sentence(metric, row["status"], row["message"]))
    limit, number = find_limit(metric, found.kinds.get(row["task"]), wanted), float(row["value"])
    if isinstance(limit, str):
        reason = f"{metric_title(metric)} is {format_metric_value(metric, number)}; {NO_LIMIT_REASONS[limit]}."
        return replace(blank, number=number, status=limit, reason=reason)
    vacuous = vacuity_reason(metric, limit, found.cap, *_explanation_chance(row, known, wanted))
    doubts = [
        vacuous,
        _unproven_note(row, known),
        _unsafe_note(number, limit, metric),
        _unflipped_note(row),
    ]
    remark = _paper_remark(metric, number, blank.explainer, found.kinds.get(row["task"]))
    outcome = _outcome_before_doubts(number, limit, metric, wanted)
    outcome = WARN if outcome == PASS and any(doubts) else outcome
    reason = _verdict_sentence(
        metric,
        number,
        f" of target {row['target']}",
        limit,
        [remark, *doubts, reachability_note(metric, limit)],
    )
    return replace(
        blank,
        outcome=outcome,
        reason=reason,
        number=number,
        threshold=limit.value,
        is_vacuous=bool(vacuous),
    )


def _gap_sentence(metric: str, status: str, message: str | None) -> str:
    """Why one explanation has no number; of a fault, also what the run noted."""
    noted = f": {message.rstrip('.')}" if status in FAULTS and message else ""
    return f"{metric_title(metric)} has no value: {status} ({_STATUS_REASONS[status]}){noted}."


def _explanation_chance(
    row: dict[str, Any], known: dict[Any, float], wanted: Requirements
) -> tuple[float | None, str]:
    """What permuted scores reach for this very explanation; of other metrics one random value says
    nothing.
    """
    if metric_family(row["metric"]) != "stability":
        return None, wanted.baseline
    return known.get(
        (*_explanation_key(row), f"{row['metric']}_chance")
    ), "a permutation of the scores"


def _unproven_note(row: dict[str, Any], known: dict[Any, float]) -> str:
    """Whether a random order does as well; without a p-value, how often random orders reach 0.6."""
    if metric_family(row["metric"]) != "pertinence":
        return ""
    p = known.get((*_explanation_key(row), row["metric"].removesuffix("_tied") + "_p"))
    if p is None:
        share = load_guideline("chance")["pertinence"]["share_at_least_06"]
        return f"one target says little: {share:.0%} of random rankings reach 0.6 on a target of Cora; measure with twins=True"
    least = known[row["metric"].split("_")[0]]
    return (
        ""
        if p <= max(_SIGNIFICANCE_LEVEL, least) + ROUNDING_TOLERANCE
        else f"a random order does as well (p = {p:.3g})"
    )


def smallest_p_value(curves: int) -> float:
    """The smallest p-value there can be with so many random curves.

    >>> smallest_p_value(19)
    0.05
    """
    return 1 / (curves + 1)


def _unflipped_note(row: dict[str, Any]) -> str:
    """Whether the EC is only the number of candidates or the cap."""
    is_open = row["metric"].endswith("_ec") and row["flipped"] is not None and not row["flipped"]
    return "the prediction never changed, so this is where the edits ended" if is_open else ""


# --- one answer for programs ----------------------------------------------------------------------


@dataclass(frozen=True)
class CheckAnswer:
    """Exit code 0: every threshold is met; 1: one is not; 3: something that must be judged could
    not be, or is undecided.
    """

    code: int
    verdicts: tuple[Verdict, ...]
    reason: str


def check(
    given: "Results | pd.DataFrame",
    requirements: Requirements | None = None,
    explainers: Iterable[str] | None = None,
) -> CheckAnswer:
    """The verdicts on every explainer of a run but the baseline, or on those named, and one answer."""
    wanted = requirements or Requirements()
    every = verdicts(given, wanted)
    chosen = _select_checked_explainers(every, wanted, explainers)
    own = [each for each in every if each.explainer in chosen]
    failed = [each for each in own if each.outcome == FAIL]
    gaps = [
        each for each in own if each.outcome == NOT_APPLICABLE and each.status not in ACCEPTED_GAPS
    ]
    open_ones = [each for each in own if each.outcome == UNDECIDED]
    unjudged = [
        name
        for name in chosen
        if not any(_is_quality_verdict(each) for each in own if each.explainer == name)
    ]
    if failed:
        return CheckAnswer(_EXIT_BELOW, tuple(own), _failed_sentence(failed, len(own)))
    if gaps or unjudged or open_ones or not own:
        return CheckAnswer(EXIT_INCOMPLETE, tuple(own), _open_sentence(gaps, open_ones, len(own)))
    return CheckAnswer(EXIT_COMPLETE, tuple(own), f"no number of {len(own)} misses its threshold")


def _failed_sentence(failed: list[Verdict], total: int) -> str:
    """How many numbers fail, and why."""
    beside = [each for each in failed if each.status in (WORSE_THAN_RANDOM, CONTRADICTED)]
    below = len(failed) - len(beside)
    parts = [f"{below} of {total} numbers miss their threshold"] if below else []
    return ", and ".join(
        [*parts, *([f"{len(beside)} of {total} fail beside random scores"] if beside else [])]
    )


def _open_sentence(gaps: list[Verdict], open_ones: list[Verdict], total: int) -> str:
    """How many numbers could not be judged or are undecided, and why."""
    few = sum(each.status == TOO_FEW_TARGETS for each in open_ones)
    parts = [f"{len(gaps)} of {total} numbers could not be judged"] if gaps or not open_ones else []
    parts += (
        [f"{few} of {total} are undecided, for fewer than {LEAST_TARGETS} targets decide nothing"]
        if few
        else []
    )
    no_better = len(open_ones) - few
    parts += (
        [
            f"{no_better} of {total} are undecided, for nothing shows that they are better than random"
        ]
        if no_better
        else []
    )
    return ", and ".join(parts) + (
        "" if gaps or open_ones else "; an explainer has no quality number at all"
    )


def _is_quality_verdict(verdict: Verdict) -> bool:
    """Whether a verdict says something of an explanation, not of the clock."""
    return verdict.outcome != NOT_APPLICABLE and verdict.metric != "time"


def _select_checked_explainers(
    every: list[Verdict], wanted: Requirements, names: Iterable[str] | None
) -> list[str]:
    """The explainers to check; refuses names that are not in the run."""
    known = list(dict.fromkeys(verdict.explainer for verdict in every))
    if names is None:
        return [name for name in known if name != wanted.baseline]
    asked = list(names)
    absent = [name for name in asked if name not in known]
    if absent:
        raise UnknownName(
            f"The run has no explainer {', '.join(map(repr, absent))}. It has: {', '.join(known) or 'none'}."
        )
    return asked
