"""Advice before anything was measured: which explainer for which kind of task, from a benchmark."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from graphgauge.cli.console import colour_word
from graphgauge.core import BadFile
from graphgauge.guidelines import Recommendation, Requirements, consult, requirements_document


def _run_consult(kind: str, requirements: Requirements, document: str | None) -> Recommendation:
    """The recommendation; with ``document`` also the requirements as a Markdown file."""
    found = consult(kind, requirements)
    if document is not None:
        _write_text_file(
            document, requirements_document(found, replace(requirements, task_kind=kind))
        )
    return found


def _write_text_file(path: str, text: str) -> None:
    """Write a file, or say why not."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadFile(f"{path} could not be written: {error}.") from error


def _consultation_json(found: Recommendation) -> str:
    """The recommendation for programs."""
    return json.dumps(found.record(), indent=2, allow_nan=False)


def _consultation_text(found: Recommendation) -> str:
    """The recommendation for people, with the verdicts on the chosen explainer."""
    return "\n".join(
        [
            str(found),
            "",
            f"{found.chosen}:",
            *(f"  {colour_word(own.outcome, 14)}  {own.reason}" for own in found.verdicts),
        ]
    )


def consult_command(
    task: Annotated[
        str,
        typer.Argument(
            help="node-classification, node-regression, link-classification or link-regression."
        ),
    ],
    stakes: Annotated[str, typer.Option(help="standard or high-stakes.")] = "standard",
    latency: Annotated[
        str | None, typer.Option(help="interactive, batch or offline; else the paper's 5 s.")
    ] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Number of features; limits are shares of it.")
    ] = None,
    focus: Annotated[
        str | None, typer.Option(help="feature or edge: judge that side only.")
    ] = None,
    requirements: Annotated[
        str | None,
        typer.Option(help="Also write the requirements document to this Markdown file."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Say which explainer to begin with, from a benchmark, before anything of your own was
    measured.
    """
    wanted = Requirements(None, stakes, latency, features, focus=focus)
    found = _run_consult(task, wanted, requirements)
    typer.echo(_consultation_json(found) if json else _consultation_text(found))
