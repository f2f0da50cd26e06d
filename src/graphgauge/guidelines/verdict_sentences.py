"""The sentences of verdicts: a number with its threshold, then remarks, doubts and gaps."""

from collections.abc import Iterable

from graphgauge.evaluation import FAULTS, STATUSES
from graphgauge.guidelines.aggregation import AggregatedScore
from graphgauge.guidelines.paired_comparisons import PairedComparison, RandomComparison
from graphgauge.guidelines.reference_data import find_band, load_guideline, metric_family
from graphgauge.guidelines.thresholds import (
    NO_LIMIT_REASONS,
    Limit,
    format_metric_value,
    metric_title,
)
from graphgauge.metrics import MetricName

STATUS_REASONS = {**STATUSES, **FAULTS}  #: every status that a row can have, for people


def verdict_sentence(
    metric: str, number: float, where: str, limit: Limit, notes: Iterable[str]
) -> str:
    """State the number, its threshold, and all notes that are not empty."""
    meets = "meets" if limit.is_met(number) else "misses"
    value, threshold = (format_metric_value(metric, each) for each in (number, limit.value))
    head = (
        f"{metric_title(metric)} {value}{where} {meets} the threshold of "
        f"{limit.direction} {threshold} ({limit.source})"
    )
    return "; ".join([head, *filter(None, notes)]) + "."


def no_limit_sentence(
    metric: str, score: AggregatedScore, missing_limit: str, chance: float | None, baseline: str
) -> str:
    """State a mean that has no threshold, why it has none, and what chance reaches."""
    value = format_metric_value(metric, float(score.mean or 0.0))
    head = f"{metric_title(metric)} is {value}{target_count_phrase(score)}"
    notes = [NO_LIMIT_REASONS[missing_limit]]
    if chance is not None:
        notes.append(f"{baseline} reaches {format_metric_value(metric, chance)}")
    return "; ".join([head, *notes]) + "."


def missing_sentence(metric: str, score: AggregatedScore) -> str:
    """Say why there is no number."""
    reasons = [
        f"{status} on {count} targets ({STATUS_REASONS.get(status, 'unknown')})"
        for status, count in score.missing.items()
        if count
    ]
    return f"{metric_title(metric)} has no value: {', '.join(reasons) or 'it was not measured'}."


# --- where the number comes from ------------------------------------------------------------------


def target_count_phrase(score: AggregatedScore) -> str:
    """Say over how many targets the mean is."""
    if score.n is None:
        return ""
    return f" (mean of {score.n} {'target' if score.n == 1 else 'targets'})"


def interval_phrase(score: AggregatedScore, metric: str) -> str:
    """State the interval of the mean."""
    if score.interval is None:
        return ""
    low, high = (format_metric_value(metric, end) for end in score.interval)
    return f", 95 % interval {low} to {high},"


def missing_values_note(score: AggregatedScore) -> str:
    """Say how many values are missing, and why."""
    gaps = [
        f"{count} {status}"
        for status, count in score.missing.items()
        if count and status != "not_timed"
    ]
    return f"left out: {', '.join(gaps)}" if gaps else ""


# --- remarks and doubts ---------------------------------------------------------------------------


def paper_remark(metric: str, number: float, explainer: str, kind: str | None) -> str:
    """Return the paper's remark on such a number; '' if none applies.

    >>> paper_remark("edge_stability", 0.96, "gnn_explainer", None)
    'close to deterministic: fit for reports to a regulator'
    >>> paper_remark("edge_stability", 1.0, "lrp", None)
    'the method is deterministic, so this is 1 by construction and says nothing of quality'
    """
    family = metric_family(metric)
    if family not in ("stability", "pertinence"):
        return ""
    deterministic = load_guideline("explainers")["traits"]["deterministic"]
    if family == "stability" and number >= 1 - 1e-5 and explainer in deterministic:
        return (
            "the method is deterministic, so this is 1 by construction and says nothing of quality"
        )
    remark = str(find_band(family, number)["meaning"])
    return "" if "classification" in remark and (kind or "").endswith("regression") else remark


def few_targets_note(metric: str, score: AggregatedScore) -> str:
    """Return the advice on sample sizes if there are too few targets."""
    sizes = load_guideline("practice")["samples"]
    (first, enough), (production, most) = sizes["initial"], sizes["production"]
    if score.n is None or score.n >= first or metric == "time":
        return ""
    return (
        f"{score.n} targets are few: "
        f"take {first}-{enough} for a first look and {production}-{most} for production"
    )


def below_half_note(metric: str, number: float, chance: float | None, baseline: str) -> str:
    """Say what to compare pertinence below 0.5 with.

    In the paper's form ties count as lost, so chance lies below 0.5 too.
    """
    half = load_guideline("thresholds")["pertinence"]["random"]
    is_tied = MetricName.parse(metric).form == "tied"
    if is_tied or metric_family(metric) != "pertinence" or number >= half:
        return ""
    usual = load_guideline("chance")["pertinence"]["edges_cora"]
    reached = (
        f"{baseline} reaches {format_metric_value(metric, chance)} here"
        if chance is not None
        else f"random rankings reach {usual} on Cora's edges"
    )
    return f"ties count as lost, so chance is not 0.5: {reached}"


def crossing_note(score: AggregatedScore, limit: Limit, metric: str) -> str:
    """Return a note if the interval of a mean crosses its threshold."""
    if score.interval is None or all(limit.is_met(end) for end in score.interval):
        return ""
    threshold = format_metric_value(metric, limit.value)
    return f"the 95 % interval crosses the threshold of {threshold}, so the true mean may miss it"


def unsafe_note(number: float, limit: Limit, metric: str) -> str:
    """Return a note if a number meets its limit but not the stricter one."""
    if limit.safe is None or not limit.is_met(number) or limit.is_met(number, limit.safe):
        return ""
    return f"not yet {limit.direction} {format_metric_value(metric, limit.safe)}, which is safe"


# --- comparison with random -----------------------------------------------------------------------


def worse_sentence(comparison: PairedComparison, random: RandomComparison) -> str:
    """Say how much worse than random a number is."""
    return f"it is worse than {random.baseline_phrase}: {comparison.numbers()}"


def contradiction_sentence(random: RandomComparison) -> str:
    """Say which other measure of the same side shows that the explainer is worse than random."""
    worst = random.worse[0]
    title = _lower_first(metric_title(worst.metric))
    return (
        f"this contradicts another measure: {title} is worse than {random.baseline_phrase} "
        f"({worst.numbers()})"
    )


def no_better_sentence(random: RandomComparison) -> str:
    """List the comparisons with random that showed nothing."""
    compared = "; ".join(
        f"{_lower_first(metric_title(each.metric))} {each.numbers()}" for each in random.comparisons
    )
    sentence = f"nothing shows that the {random.side} side is better than random ({compared})"
    if random.baseline:
        return sentence
    return f"{sentence}; the run has no random explainer, so EC has nothing to be compared with"


def _lower_first(text: str) -> str:
    """Return a text with a small first letter.

    >>> _lower_first("Edge stability")
    'edge stability'
    """
    return text[:1].lower() + text[1:]
