"""`graphgauge audit`: check and export the log of answers."""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import typer

from graphgauge.cli.console import ExitCode, JsonOption, command_group, print_answer
from graphgauge.core import BadFile, JsonObject, lookup
from graphgauge.store import Verification, csv_lines, json_lines, verify_log

_EXPORT_FORMATS = {"jsonl": json_lines, "csv": csv_lines}


def _verify_audit_log(log: str, head: str | None) -> Verification:
    """Whether the log is whole."""
    return verify_log(log, head)


def _verification_record(found: Verification) -> JsonObject:
    """For programs."""
    return {
        "whole": not found.fault,
        "entries": found.count,
        "head": found.head,
        "fault": found.fault or None,
    }


def _verification_text(found: Verification) -> str:
    """For people."""
    if found.fault:
        return f"not whole: {found.fault}. The first {found.count} entries are whole."
    return (
        f"whole: {found.count} entries. Note the head elsewhere, to find out later if the end is "
        f"cut off: {found.head}"
    )


def _read_ahead(lines: Iterator[str]) -> Iterator[str]:
    """The same lines, after the first entry was read: a log that cannot be read is told before
    anything is written.
    """
    head = list(islice(lines, 2))  # a header, perhaps, and an entry
    return chain(head, lines)


def _export_audit_log(log: str, form: str, output: str | None) -> Iterator[str]:
    """The lines of an export; none where they went to a file."""
    lines = _read_ahead(lookup(_EXPORT_FORMATS, form, "format of an export")(log))
    if output is None:
        yield from lines
        return
    try:
        with open(Path(output), "x", encoding="utf-8", newline="") as file:
            file.writelines(f"{line}\n" for line in lines)
    except FileExistsError as error:
        raise BadFile(f"{output} is there already: name another file.") from error
    except OSError as error:
        if isinstance(error, BadFile):
            raise
        raise BadFile(f"{output} could not be written: {error}.") from error


audit_command = command_group("Check and export the log of answers.")
_LogArgument = Annotated[str, typer.Argument(help="The audit log, such as audit.sqlite.")]


@audit_command.command("verify")
def verify_command(
    log: _LogArgument,
    head: Annotated[
        str | None, typer.Option(help="A digest noted earlier, which the log must hold.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make every digest of the log again: exit code 0 if it is whole, 1 if something was changed or
    removed.
    """
    found = _verify_audit_log(log, head)
    print_answer(_verification_record(found) if json else found, _verification_text, json)
    raise typer.Exit(ExitCode.BELOW if found.fault else ExitCode.PASS)


@audit_command.command("export")
def export_command(
    log: _LogArgument,
    form: Annotated[
        str, typer.Option("--format", help="jsonl, with everything, or csv, for spreadsheets.")
    ] = "jsonl",
    output: Annotated[str | None, typer.Option(help="A file (default: stdout).")] = None,
) -> None:
    """Write the log out, an entry a line."""
    for line in _export_audit_log(log, form, output):
        typer.echo(line)
