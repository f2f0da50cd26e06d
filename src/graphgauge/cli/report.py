"""The report of a stored run: read its results, write one file, say where it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from graphgauge.core import JsonObject
from graphgauge.evaluation import Results
from graphgauge.guidelines import Requirements
from graphgauge.lifecycle import stored_accuracy, stored_requirements
from graphgauge.report import build_report


def _run_report(
    run: str,
    output: str | None,
    format: str | None,
    asked: Mapping[str, object],
    told: Mapping[str, object],
) -> Path:
    """Write the report of the results in a folder.

    What the run was judged by when it was saved holds, changed by the requirements ``asked`` for.
    ``told``: other options of `build_report`; None stands for one that was not given.
    """
    given = {name: value for name, value in asked.items() if value is not None}
    results = Results.load(run)
    options: JsonObject = {"accuracy": results.accuracy or stored_accuracy(run)}
    options |= {name: value for name, value in told.items() if value is not None}
    wanted = Requirements(**{**stored_requirements(run), **given})
    made = build_report(results, wanted, **options, run=run)
    return made.save(output or Path(run) / f"report.{format or 'html'}", format)


def report_command(
    run: Annotated[str, typer.Argument(help="Folder of a run, or of saved results.")],
    output: Annotated[
        str | None,
        typer.Option(help="File to write (default: report.html in the run's folder)."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="html, md, json, csv or pdf (default: as the file is called)."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Kind of task, such as link-regression; else seen from the run."),
    ] = None,
    stakes: Annotated[
        str | None, typer.Option(help="standard or high-stakes (default: as the run was judged).")
    ] = None,
    latency: Annotated[
        str | None, typer.Option(help="interactive, batch or offline; else the paper's 5 s.")
    ] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Number of features; limits are shares of it.")
    ] = None,
    focus: Annotated[
        str | None, typer.Option(help="feature or edge: judge that side only.")
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(help="Of the model on its task, from 0 to 1 (default: as in the run)."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="What stands at the top of the page.")] = None,
    language: Annotated[
        str, typer.Option(help="Of sentences on single explanations: en, it, de, fr or es.")
    ] = "en",
    audience: Annotated[
        str, typer.Option(help="Of these sentences: expert, internal or affected_person.")
    ] = "expert",
) -> None:
    """Write the report of a stored run: one page that says which explainer to trust, and why."""
    asked = {
        "task_kind": task,
        "stakes": stakes,
        "latency": latency,
        "num_features": features,
        "focus": focus,
    }
    told = {"accuracy": accuracy, "title": title, "language": language, "audience": audience}
    typer.echo(_run_report(run, output, format, asked, told))
