"""The documents on the command line: read a run and what the owner states, write, say where."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from graphgauge.core import BadSetting
from graphgauge.lifecycle import DECISION_FILE, Decision, Owner, write_documents


def _run_documents(run: str, output: str, decision: str | None, owner: Owner) -> list[Path]:
    """Write all documents.

    The decision is the given one, else the one beside the run, else none.
    """
    beside = Path(run) / DECISION_FILE
    place = decision if decision is not None else str(beside) if beside.is_file() else None
    return write_documents(run, output, None if place is None else Decision.read(place), owner)


def _read_evidence(given: Sequence[str]) -> dict[str, str]:
    """Files by point, from texts such as "monitoring=plan.pdf"."""
    wrong = [text for text in given if "=" not in text]
    if wrong:
        raise BadSetting(
            f"evidence is given as POINT=FILE, such as monitoring=plan.pdf, but {wrong[0]!r} was "
            "given."
        )
    return dict(text.split("=", 1) for text in given)


def _missing_files(evidence: Mapping[str, str]) -> list[str]:
    """What to say of evidence that names a file which is not there."""
    return [
        f"{file} is named as evidence for {point}, but there is no such file."
        for point, file in evidence.items()
        if not Path(file).is_file()
    ]


def _documents_text(paths: list[Path]) -> str:
    """The files, one a line, and how much is left to do."""
    open_lines = sum(path.read_text(encoding="utf-8").count("TODO(owner)") for path in paths)
    return "\n".join([*map(str, paths), f"{open_lines} places are marked TODO(owner)"])


def _documents_json(paths: list[Path]) -> str:
    """The files for programs."""
    return json.dumps([str(path) for path in paths], indent=2)


def documents_command(
    run: Annotated[str, typer.Argument(help="Folder of a validation, a run, or saved results.")],
    output: Annotated[str, typer.Option(help="Folder for the documents.")],
    decision: Annotated[
        str | None, typer.Option(help="A decision file (default: the one in the run's folder).")
    ] = None,
    system: Annotated[str, typer.Option(help="Name of the system.")] = "",
    contact: Annotated[str, typer.Option(help="Who answers questions.")] = "",
    classification: Annotated[
        str, typer.Option(help="Classification as the owner states it; printed as the owner's.")
    ] = "",
    audit_log: Annotated[str, typer.Option(help="Where the log of answers is.")] = "",
    monitor: Annotated[
        str,
        typer.Option(
            help="A store of `graphgauge monitor`, for the monitoring plan and the checklist."
        ),
    ] = "",
    evidence: Annotated[
        list[str] | None,
        typer.Option(help="POINT=FILE for a point of the checklist (may be repeated)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the written files as JSON.")] = False,
) -> None:
    """Write model card section, instructions for use, Annex IV tables, monitoring plan, checklist
    and audit trail.
    """
    owner = Owner(
        system, contact, classification, audit_log, _read_evidence(evidence or []), monitor
    )
    paths = _run_documents(run, output, decision, owner)
    for missing in _missing_files(owner.evidence):
        typer.echo(f"graphgauge: note: {missing}", err=True)
    typer.echo(_documents_json(paths) if json else _documents_text(paths))
