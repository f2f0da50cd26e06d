"""A stored run against its thresholds: verdicts for people, programs and pipelines, and the exit
code.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from graphgauge.cli.console import EXIT_LABELS, ExitCode, colour_word
from graphgauge.core import BadSetting, JsonObject, Verdict
from graphgauge.evaluation import UNKNOWN_ACCURACY, ModelAccuracy, Results
from graphgauge.guidelines import CheckAnswer, Requirements, check
from graphgauge.lifecycle import (
    Decision,
    DecisionProblem,
    format_annotations,
    stored_requirements,
    write_junit,
)


def _judge_run(
    results: Results,
    requirements: Requirements,
    explainers: Sequence[str],
    decision: Decision | None = None,
    on_other_data: bool = False,
) -> CheckAnswer:
    """Return the verdicts on a run.

    A run of another task, network or data than the ``decision`` names gets no verdict.
    """
    problems = [] if decision is None else decision.changes_in(results)
    refused = [problem for problem in problems if problem.kind != "data" or not on_other_data]
    if refused:
        code = ExitCode.INCOMPLETE if refused[0].kind == "unknown" else ExitCode.USAGE
        return CheckAnswer(int(code), (), _problems_text(refused))
    found = check(results, requirements, explainers or None)
    return (
        replace(found, reason=f"{found.reason}; {_problems_text(problems)}") if problems else found
    )


def _problems_text(problems: Sequence[DecisionProblem]) -> str:
    """What does not fit, in one sentence without its full stop."""
    told = "; ".join(problem.message.rstrip(".") for problem in problems)
    is_of_data = [problem.kind for problem in problems] == ["data"]
    return f"{told} (--other-data judges a run on other data)" if is_of_data else told


def _requirements_and_explainers(
    folder: str, decision: Decision | None, given: JsonObject, explainers: Sequence[str]
) -> tuple[Requirements, Sequence[str]]:
    """Thresholds and explainers: a decision's, or what the run was judged by when saved, changed by
    the options ``given``.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    if decision is None:
        return Requirements(**{**stored_requirements(folder), **asked}), explainers
    if asked or explainers:
        raise BadSetting(
            "--decision holds the thresholds and the explainer: leave --explainer, --task, "
            "--features ... out."
        )
    return decision.wanted(), [decision.label]


def _apply_decision_validity(found: CheckAnswer, decision: Decision | None) -> CheckAnswer:
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


def _write_for_pipelines(found: CheckAnswer, junit: str | None, wants_annotations: bool) -> None:
    """A JUnit file and annotations, where asked for."""
    if junit is not None:
        write_junit(found, junit)
    for line in format_annotations(found) if wants_annotations else ():
        print(line, file=sys.stderr)


def _check_record(
    found: CheckAnswer, requirements: Requirements, accuracy: ModelAccuracy | None = None
) -> JsonObject:
    """Everything, as plain data."""
    return {
        "accuracy": None if accuracy is None else accuracy.record(),
        "code": found.code,
        "reason": found.reason,
        "requirements": requirements.record(),
        "verdicts": [verdict.record() for verdict in found.verdicts],
    }


def _check_json(
    found: CheckAnswer, requirements: Requirements, accuracy: ModelAccuracy | None = None
) -> str:
    """The verdicts for programs."""
    return json.dumps(_check_record(found, requirements, accuracy), indent=2, allow_nan=False)


def _check_text(found: CheckAnswer, accuracy: ModelAccuracy | None = None) -> str:
    """The verdicts for people: how good the model itself is, a line for each verdict, then the
    answer.
    """
    groups: dict[str, list[Verdict]] = {}
    for verdict in found.verdicts:
        groups.setdefault(
            ", ".join(filter(None, (verdict.task, verdict.model, verdict.explainer))), []
        ).append(verdict)
    lines = [accuracy.sentence if accuracy is not None else UNKNOWN_ACCURACY]
    for name, own in groups.items():
        lines += [
            name,
            *(f"  {colour_word(verdict.outcome, 14)}  {verdict.reason}" for verdict in own),
        ]
    return "\n".join([*lines, f"{colour_word(EXIT_LABELS[ExitCode(found.code)])}: {found.reason}."])


def check_command(
    run: Annotated[
        str,
        typer.Argument(
            help="Folder with results: of evaluate, benchmark or Results.save, or a published run."
        ),
    ],
    explainer: Annotated[
        list[str] | None,
        typer.Option(help="Check only this one (may be repeated); else all but random."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Kind of task, such as link-regression; else seen from the run."),
    ] = None,
    stakes: Annotated[str | None, typer.Option(help="standard (usual) or high-stakes.")] = None,
    latency: Annotated[
        str | None, typer.Option(help="interactive, batch or offline; else the paper's 5 s.")
    ] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Number of features; limits are shares of it.")
    ] = None,
    focus: Annotated[
        str | None, typer.Option(help="feature or edge: judge that side only.")
    ] = None,
    decision: Annotated[
        str | None, typer.Option(help="Take thresholds and explainer from this decision file.")
    ] = None,
    other_data: Annotated[
        bool, typer.Option("--other-data", help="With --decision: the run may be on other data.")
    ] = False,
    junit: Annotated[
        str | None, typer.Option(help="Also write the verdicts to this JUnit XML file.")
    ] = None,
    annotations: Annotated[
        bool,
        typer.Option("--annotations", help="Also print GitHub annotations to stderr."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Compare a stored run with thresholds (its own, if any): exit code 0 pass, 1 below threshold,
    2 usage, 3 incomplete.
    """
    given = {
        "task_kind": task,
        "stakes": stakes,
        "latency": latency,
        "num_features": features,
        "focus": focus,
    }
    decided = None if decision is None else Decision.read(decision)
    wanted, chosen = _requirements_and_explainers(run, decided, given, explainer or [])
    results = Results.load(run)
    found = _apply_decision_validity(
        _judge_run(results, wanted, chosen, decided, other_data), decided
    )
    accuracy = results.accuracy or (None if decided is None else decided.accuracy_of_model())
    _write_for_pipelines(found, junit, annotations)
    typer.echo(_check_json(found, wanted, accuracy) if json else _check_text(found, accuracy))
    raise typer.Exit(found.code)
