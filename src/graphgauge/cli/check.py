"""A stored run against its thresholds: verdicts for people or programs, and the exit code."""

import json
from collections.abc import Sequence
from typing import Any

from graphgauge.cli.conventions import ANSWERS, ExitCode, paint
from graphgauge.core.verdicts import Verdict
from graphgauge.evaluation import Results
from graphgauge.guidelines import Check, Requirements, check
from graphgauge.lifecycle.assessment import stored_requirements


def requirements_of(folder: str, given: dict[str, Any]) -> Requirements:
    """What the run was judged by when it was saved, if it says so, changed by the options that were given (not None)."""
    return Requirements(**{**stored_requirements(folder), **{name: value for name, value in given.items() if value is not None}})


def run_check(folder: str, requirements: Requirements, explainers: Sequence[str]) -> Check:
    """The verdicts on the run in a folder."""
    return check(Results.load(folder), requirements, explainers or None)


def as_record(found: Check, requirements: Requirements) -> dict[str, Any]:
    """Everything, as plain data."""
    return {
        "code": found.code,
        "reason": found.reason,
        "requirements": requirements.record(),
        "verdicts": [verdict.record() for verdict in found.verdicts],
    }


def as_json(found: Check, requirements: Requirements) -> str:
    """The verdicts for programs."""
    return json.dumps(as_record(found, requirements), indent=2, allow_nan=False)


def as_text(found: Check) -> str:
    """The verdicts for people: one line each, then the answer."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in found.verdicts:
        groups.setdefault(", ".join(filter(None, (verdict.task, verdict.model, verdict.explainer))), []).append(verdict)
    lines = []
    for name, own in groups.items():
        lines += [name, *(f"  {paint(verdict.outcome, 14)}  {verdict.reason}" for verdict in own)]
    return "\n".join([*lines, f"{paint(ANSWERS[ExitCode(found.code)])}: {found.reason}."])
