"""Validation on the command line: from a project file to a decision, its summary, and the exit code
of the check.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from graphgauge.core import JsonObject
from graphgauge.evaluation import UNKNOWN_ACCURACY
from graphgauge.lifecycle import (
    DECISION_FILE,
    VALIDATION_PAGE,
    Project,
    SignOff,
    Tracker,
    Validation,
    check_folder,
    describe_shortlist,
    mlflow_client,
    validate,
)


def _run_validation(project: Project, terms: SignOff) -> Validation:
    """Measure and decide. Explainers are the project's where its file names any, else the
    shortlist.
    """
    model = project.model()
    named = project.explainers() if "explainers" in project.config.model_fields_set else None
    return validate(
        project.evaluator(model),
        project.targets(model),
        named,
        project.requirements(model),
        terms,
        project.config.names,
    )


def _output_folder(config: str, output: str | None, replace: bool = False) -> Path:
    """Where the files go: the folder 'validation' beside the project file, unless another one is
    asked for; refuses one in use.
    """
    return check_folder(output or Path(config).parent / "validation", replace)


def _log_validation_to_mlflow(found: Validation, folder: Path, uri: str) -> str:
    """The validation in MLflow, with its files; the id of the run."""
    return Tracker(uri, experiment="graphgauge-validation").validation(found, folder)


def _validation_record(found: Validation, folder: Path) -> JsonObject:
    """The decision and where it is."""
    return {"code": found.check.code, "folder": str(folder), "decision": found.decision.record()}


def _validation_json(found: Validation, folder: Path) -> str:
    """For programs."""
    return json.dumps(_validation_record(found, folder), indent=2, allow_nan=False)


def _validation_text(found: Validation, folder: Path) -> str:
    """For people: the choice, its numbers, what stands out, and the files."""
    own = found.decision
    title, names = describe_shortlist(own.consultation)
    accuracy = own.accuracy_of_model()
    told = accuracy.sentence if accuracy is not None else UNKNOWN_ACCURACY
    lines = [f"Chosen: {own.label}, because {own.reason}.", told, f"{title.capitalize()}: {names}."]
    lines += [f"  {verdict.outcome:<14}  {verdict.reason}" for verdict in found.check.verdicts]
    lines += [
        f"Beside the benchmark: {line.note}"
        for line in found.comparison
        if line.note and line.explainer == own.label
    ]
    lines.append(f"Production: {found.trade_off}.")
    signed = (
        f"signed by {own.signed_by}" if own.signed_by else "signed by nobody yet (graphgauge sign)"
    )
    return "\n".join(
        [
            *lines,
            (
                f"{folder / DECISION_FILE}: {signed}, holds until {own.expires}. To be read: "
                f"{folder / VALIDATION_PAGE}"
            ),
        ]
    )


def validate_command(
    config: Annotated[str, typer.Argument(help="A project file, my.yaml.")],
    output: Annotated[
        str | None,
        typer.Option(help="Folder for the files (default: 'validation' beside the config)."),
    ] = None,
    signed_by: Annotated[
        str, typer.Option(help="Who answers for the decision; else sign later.")
    ] = "",
    days: Annotated[int, typer.Option(min=1, help="Days until the decision expires.")] = 180,
    accuracy: Annotated[
        float | None, typer.Option(help="Of the network, from 0 to 1 (default: from the data).")
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Take the place of a validation in the folder; a signed one is kept in 'earlier'.",
        ),
    ] = False,
    mlflow: Annotated[
        str | None, typer.Option(help="Also log to this MLflow store, such as sqlite:///runs.db.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Measure the project's explainers, or a shortlist, on its data, choose one, write the
    decision. Exit codes as for check.
    """
    if mlflow is not None:
        mlflow_client(mlflow)  # a missing package is told before the work
    project = Project.read(config)
    folder = _output_folder(config, output, replace)  # before an hour of measuring
    found = _run_validation(project, SignOff(signed_by, days, accuracy))
    found.save(folder, replace=replace)
    if mlflow is not None:
        typer.echo(f"MLflow run {_log_validation_to_mlflow(found, folder, mlflow)}", err=True)
    typer.echo(_validation_json(found, folder) if json else _validation_text(found, folder))
    raise typer.Exit(found.check.code)
