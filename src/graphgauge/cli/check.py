"""A stored run against its thresholds: verdicts for people, programs and pipelines, and the exit
code.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphgauge.cli.conventions import ANSWERS, ExitCode, paint
from graphgauge.core.errors import BadSetting
from graphgauge.core.verdicts import Verdict
from graphgauge.evaluation import ModelAccuracy, Results
from graphgauge.evaluation.accuracy import UNKNOWN
from graphgauge.guidelines import Check, Requirements, check
from graphgauge.lifecycle.assessment import stored_requirements
from graphgauge.lifecycle.decision import Decision, Problem
from graphgauge.lifecycle.gate import annotations, write_junit


def run_check(
    results: Results,
    requirements: Requirements,
    explainers: Sequence[str],
    decision: Decision | None = None,
    on_other_data: bool = False,
) -> Check:
    """The verdicts on a run; none on one that is not of the ``decision``'s task, network and data."""
    problems = [] if decision is None else decision.changes_in(results)
    refused = [problem for problem in problems if problem.kind != "data" or not on_other_data]
    if refused:
        code = ExitCode.INCOMPLETE if refused[0].kind == "unknown" else ExitCode.USAGE
        return Check(int(code), (), told_problems(refused))
    found = check(results, requirements, explainers or None)
    return (
        replace(found, reason=f"{found.reason}; {told_problems(problems)}") if problems else found
    )


def told_problems(problems: Sequence[Problem]) -> str:
    """What does not fit, in one sentence without its full stop."""
    told = "; ".join(problem.message.rstrip(".") for problem in problems)
    is_of_data = [problem.kind for problem in problems] == ["data"]
    return f"{told} (--other-data judges a run on other data)" if is_of_data else told


def agreed(
    folder: str, decision: Decision | None, given: dict[str, Any], explainers: Sequence[str]
) -> tuple[Requirements, Sequence[str]]:
    """Thresholds and explainers: a decision's, or what the run was judged by when saved, changed by
    the options ``given``.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    if decision is None:
        return Requirements(**{**stored_requirements(folder), **asked}), explainers
    if asked or explainers:
        raise BadSetting(
            "--decision holds the thresholds and the explainer: leave --explainer, --task, --features ... out."
        )
    return decision.wanted(), [decision.label]


def gated(found: Check, decision: Decision | None) -> Check:
    """The check, which is incomplete where its decision is unsigned or expired, however good the
    numbers are.
    """
    problems = [] if decision is None or found.code else decision.check()
    if not problems:
        return found
    return replace(
        found,
        code=int(ExitCode.INCOMPLETE),
        reason=f"{found.reason}, but {problems[0].message.rstrip('.')}",
    )


def write_for_pipelines(found: Check, junit: str | None, wants_annotations: bool) -> None:
    """A JUnit file and annotations, where asked for."""
    if junit is not None:
        write_junit(found, junit)
    for line in annotations(found) if wants_annotations else ():
        print(line, file=sys.stderr)


def as_record(
    found: Check, requirements: Requirements, accuracy: ModelAccuracy | None = None
) -> dict[str, Any]:
    """Everything, as plain data."""
    return {
        "accuracy": None if accuracy is None else accuracy.record(),
        "code": found.code,
        "reason": found.reason,
        "requirements": requirements.record(),
        "verdicts": [verdict.record() for verdict in found.verdicts],
    }


def as_json(found: Check, requirements: Requirements, accuracy: ModelAccuracy | None = None) -> str:
    """The verdicts for programs."""
    return json.dumps(as_record(found, requirements, accuracy), indent=2, allow_nan=False)


def as_text(found: Check, accuracy: ModelAccuracy | None = None) -> str:
    """The verdicts for people: how good the model itself is, a line for each verdict, then the
    answer.
    """
    groups: dict[str, list[Verdict]] = {}
    for verdict in found.verdicts:
        groups.setdefault(
            ", ".join(filter(None, (verdict.task, verdict.model, verdict.explainer))), []
        ).append(verdict)
    lines = [accuracy.told if accuracy is not None else UNKNOWN]
    for name, own in groups.items():
        lines += [name, *(f"  {paint(verdict.outcome, 14)}  {verdict.reason}" for verdict in own)]
    return "\n".join([*lines, f"{paint(ANSWERS[ExitCode(found.code)])}: {found.reason}."])
