"""One answer for programs: does an explainer meet its thresholds?"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphgauge.core import FAIL, NOT_APPLICABLE, UNDECIDED, UnknownName, Verdict
from graphgauge.evaluation import Results
from graphgauge.guidelines.explainer_verdicts import (
    CONTRADICTED,
    TOO_FEW_TARGETS,
    WORSE_THAN_RANDOM,
    verdicts,
)
from graphgauge.guidelines.paired_comparisons import LEAST_TARGETS
from graphgauge.guidelines.requirements import Requirements

if TYPE_CHECKING:
    import pandas as pd

#: reasons for a missing verdict that leave a check complete
ACCEPTED_GAPS = ("not_prescribed", "no_scores", "constant")
EXIT_COMPLETE, _EXIT_BELOW, EXIT_INCOMPLETE = 0, 1, 3  #: exit codes


@dataclass(frozen=True)
class CheckAnswer:
    """The answer of a check.

    ``code`` is 0 if every threshold is met, 1 if one is missed, and 3 if something that must be
    judged could not be, or is undecided.
    """

    code: int
    verdicts: tuple[Verdict, ...]
    reason: str


def check(
    given: "Results | pd.DataFrame",
    requirements: Requirements | None = None,
    explainers: Iterable[str] | None = None,
) -> CheckAnswer:
    """Judge all explainers of a run except the baseline, or the named ones, and give one answer.

    Args:
        given: Results of a run, or a table of means.
        requirements: Thresholds and use (default: the paper's table).
        explainers: Names of the explainers to check (default: all but the baseline).

    Raises:
        UnknownName: A named explainer is not in the run.
    """
    wanted = requirements or Requirements()
    all_verdicts = verdicts(given, wanted)
    names = _select_checked_explainers(all_verdicts, wanted.baseline, explainers)
    checked = tuple(verdict for verdict in all_verdicts if verdict.explainer in names)
    failed = [verdict for verdict in checked if verdict.outcome == FAIL]
    if failed:
        return CheckAnswer(_EXIT_BELOW, checked, _failed_sentence(failed, len(checked)))
    gaps = [
        verdict
        for verdict in checked
        if verdict.outcome == NOT_APPLICABLE and verdict.status not in ACCEPTED_GAPS
    ]
    undecided = [verdict for verdict in checked if verdict.outcome == UNDECIDED]
    with_quality = {
        verdict.explainer
        for verdict in checked
        if verdict.outcome != NOT_APPLICABLE and verdict.metric != "time"
    }
    if gaps or undecided or not checked or not with_quality.issuperset(names):
        reason = _incomplete_sentence(gaps, undecided, len(checked))
        return CheckAnswer(EXIT_INCOMPLETE, checked, reason)
    return CheckAnswer(EXIT_COMPLETE, checked, f"no number of {len(checked)} misses its threshold")


def _select_checked_explainers(
    all_verdicts: list[Verdict], baseline: str, names: Iterable[str] | None
) -> list[str]:
    """Return the explainers to check, or raise if one is not in the run."""
    known = list(dict.fromkeys(verdict.explainer for verdict in all_verdicts))
    if names is None:
        return [name for name in known if name != baseline]
    requested = list(names)
    absent = [name for name in requested if name not in known]
    if absent:
        raise UnknownName(
            f"The run has no explainer {', '.join(map(repr, absent))}. "
            f"It has: {', '.join(known) or 'none'}."
        )
    return requested


def _failed_sentence(failed: list[Verdict], total: int) -> str:
    """Say how many numbers fail, and why."""
    beside = sum(verdict.status in (WORSE_THAN_RANDOM, CONTRADICTED) for verdict in failed)
    below = len(failed) - beside
    parts = [
        f"{below} of {total} numbers miss their threshold" if below else "",
        f"{beside} of {total} fail beside random scores" if beside else "",
    ]
    return ", and ".join(filter(None, parts))


def _incomplete_sentence(gaps: list[Verdict], undecided: list[Verdict], total: int) -> str:
    """Say how many numbers could not be judged or are undecided, and why."""
    few = sum(verdict.status == TOO_FEW_TARGETS for verdict in undecided)
    no_better = len(undecided) - few
    parts = []
    if gaps or not undecided:
        parts.append(f"{len(gaps)} of {total} numbers could not be judged")
    if few:
        parts.append(
            f"{few} of {total} are undecided, for fewer than {LEAST_TARGETS} targets decide nothing"
        )
    if no_better:
        parts.append(
            f"{no_better} of {total} are undecided, for nothing shows that they are better than "
            "random"
        )
    sentence = ", and ".join(parts)
    return (
        sentence if gaps or undecided else f"{sentence}; an explainer has no quality number at all"
    )
