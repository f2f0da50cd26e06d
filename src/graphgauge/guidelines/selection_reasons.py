"""Sentences that say why an explainer was selected, and why the others were not."""

from graphgauge.core import Verdict
from graphgauge.guidelines.explainer_selection import (
    FAITHFULNESS,
    STABILITY,
    ExplainerSelection,
    tie_break_key,
)
from graphgauge.guidelines.explainer_verdicts import CONTRADICTED, WORSE_THAN_RANDOM
from graphgauge.guidelines.paired_comparisons import (
    LEAST_TARGETS,
    TIE_TOLERANCE,
    PairedComparison,
)
from graphgauge.guidelines.reference_data import hierarchy_rank
from graphgauge.guidelines.thresholds import format_metric_value


def reason_for(selection: ExplainerSelection) -> str:
    """Explain why the chosen explainer was chosen."""
    start = _verdicts_phrase(selection)
    return start if len(selection.viable) == 1 else f"{start}; {_deciding_phrase(selection)}"


def reason_against(selection: ExplainerSelection, name: str) -> str:
    """Explain why another explainer was not chosen."""
    chosen = selection.chosen
    if name not in selection.viable:
        failed = selection.failed(name)
        return (
            _describe_failures(failed)
            if failed
            else "nothing shows that all its scores are better than random"
        )
    if name not in selection.faithful:
        return _defeat_phrase(selection, name, FAITHFULNESS)
    if name not in selection.finalists:
        return _defeat_phrase(selection, name, STABILITY)
    means = selection.means
    further = [metric for metric in means[name] if metric not in means[chosen]]
    extra = f", and it alone has {', '.join(further)}" if further else ""
    tie = _tie_phrase(selection, name, chosen)
    return f"as good as {chosen} {tie}{extra}; {_tie_break_phrase(selection, name)}"


# --- for the chosen one ---------------------------------------------------------------------------


def _verdicts_phrase(selection: ExplainerSelection) -> str:
    """Say what the verdicts decided."""
    chosen, total = selection.chosen, len(selection.subjects)
    tier, viable = selection.tier(chosen), len(selection.viable)
    if tier >= 2:
        start = f"every one of {total} explainers fails a verdict ({chosen}: " if total > 1 else "("
        failures = _describe_failures(selection.failed(chosen))
        return f"{start}{failures}), so do not rely on it"
    if tier == 1:
        start = f"{chosen} is not" if total == 1 else f"no explainer of {total} is"
        return f"{start} shown to be better than random on every side, so do not rely on it"
    few = (
        f" (undecided: fewer than {LEAST_TARGETS} targets)"
        if selection.has_few_targets(chosen)
        else ""
    )
    if total == 1:
        return f"it fails no verdict{few}, and it is the only one"
    if viable == 1:
        return f"it alone of {total} explainers fails no verdict{few}"
    return f"{viable} of {total} explainers fail no verdict{few}"


def _deciding_phrase(selection: ExplainerSelection) -> str:
    """Say what singled out one of the viable explainers."""
    chosen, faithful = selection.chosen, selection.faithful
    if len(faithful) == 1:
        return f"of these {chosen} is the most faithful (pertinence and EC)"
    tie = _tie_phrase(selection, *faithful[:2])
    equal = f"{', '.join(faithful)} are equally faithful {tie}"
    if len(selection.finalists) == 1:
        return f"{equal}, and {chosen} is the most stable of them"
    return f"{equal}, and {_tie_break_phrase(selection, selection.finalists[1])}"


# --- against the others ---------------------------------------------------------------------------


def _defeat_phrase(selection: ExplainerSelection, name: str, families: tuple[str, ...]) -> str:
    """Say in which measures an explainer is worse than the one that beats it."""
    chosen = selection.chosen
    rival = next(
        (
            other
            for other in (chosen, *selection.viable)
            if other != name and selection.beats(other, name, families)
        ),
        chosen,
    )
    comparisons = selection.compare(rival, name, families)
    ahead, behind = (
        _describe_comparisons([each for each in comparisons if each.sign == sign])
        for sign in (1, -1)
    )
    if not ahead:
        return (
            f"it is behind more often than {chosen} in pertinence and EC, all explainers considered"
        )
    return f"{rival} is better in {ahead}" + (f", though worse in {behind}" if behind else "")


def _describe_comparisons(comparisons: list[PairedComparison]) -> str:
    """List metrics with the numbers of both explainers."""
    return ", ".join(f"{each.metric} ({each.numbers()})" for each in comparisons)


def _describe_failures(verdicts: list[Verdict]) -> str:
    """Summarise which verdicts an explainer fails."""
    below = [
        _describe_miss(verdict)
        for verdict in verdicts
        if verdict.status not in (WORSE_THAN_RANDOM, CONTRADICTED)
    ]
    worse = [verdict.metric for verdict in verdicts if verdict.status == WORSE_THAN_RANDOM]
    contradicted = [verdict.metric for verdict in verdicts if verdict.status == CONTRADICTED]
    parts = [f"it misses {', '.join(below)}"] if below else []
    if worse:
        parts.append(f"it is worse than random in {', '.join(worse)}")
    elif contradicted:
        parts.append(f"another measure contradicts its {', '.join(contradicted)}")
    return " and ".join(parts)


def _describe_miss(verdict: Verdict) -> str:
    """Describe a missed threshold in a few words."""
    number, threshold = (
        format_metric_value(verdict.metric, float(value or 0))
        for value in (verdict.number, verdict.threshold)
    )
    return f"{verdict.metric} ({number} against {threshold})"


# --- ties -----------------------------------------------------------------------------------------


def _tie_phrase(selection: ExplainerSelection, first: str, second: str) -> str:
    """Say what makes two explainers a tie."""
    if any(each.is_decided for each in selection.compare(first, second, FAITHFULNESS)):
        return "within their 95 % intervals"
    pertinence, ec = TIE_TOLERANCE["pertinence"], TIE_TOLERANCE["ec"]
    return f"to within {pertinence:g} (pertinence) and {ec:g} edits (EC)"


def _tie_break_phrase(selection: ExplainerSelection, name: str) -> str:
    """Say which of hierarchy, time and name decided for the chosen explainer."""
    chosen = selection.chosen
    rank, time, _ = tie_break_key(name, selection.means[name])
    chosen_rank, chosen_time, _ = tie_break_key(chosen, selection.means[chosen])
    if rank != chosen_rank:
        return f"{chosen} is {_hierarchy_phrase(chosen)}, {name} is {_hierarchy_phrase(name)}"
    return f"{chosen} comes first by {'time' if time != chosen_time else 'name'}"


def _hierarchy_phrase(name: str) -> str:
    """Describe the rank of an explainer in the hierarchy.

    >>> _hierarchy_phrase("lrp"), _hierarchy_phrase("mine")
    ("number 4 in the paper's hierarchy", "not in the paper's hierarchy")
    """
    rank = hierarchy_rank(name)
    if rank < 5:
        return f"number {rank} in the paper's hierarchy"
    return "to be avoided by the paper" if rank == 6 else "not in the paper's hierarchy"
