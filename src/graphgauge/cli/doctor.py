"""Is everything in order? Packages, machine, extras, and a project if there is one. Loads nothing
heavy before it must.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from graphgauge.cli.conventions import Config, ExitCode, Json, Quiet, paint, show, telling
from graphgauge.core.packages import BROKEN, OK, Line, extra_lines, is_well, package_lines

TITLES = {
    "package": "Packages",
    "machine": "This machine",
    "extra": "Extras",
    "project": "The project",
    "check": "Its model",
}


def run_doctor(config: str | None) -> list[Line]:
    """Everything that can be looked at; where a package is broken, only the packages."""
    packages = [*package_lines(), *extra_lines()]
    return [*packages, *looked_at(config)] if is_well(packages) else packages


def looked_at(config: str | None) -> list[Line]:
    """The machine, and the project that is named, or else the one in this folder."""
    from graphgauge.cli.evaluate import usual_config
    from graphgauge.lifecycle import Project
    from graphgauge.lifecycle.health import machine_lines, project_lines

    path = config or usual_config()
    return [
        *machine_lines(),
        *([] if path is None else project_lines(lambda: Project.read(Path(path)))),
    ]


def code_of(lines: list[Line]) -> ExitCode:
    """1 where something is broken."""
    return ExitCode.PASS if is_well(lines) else ExitCode.BELOW


def as_record(lines: list[Line]) -> dict[str, Any]:
    """For programs."""
    return {"code": int(code_of(lines)), "lines": [asdict(line) for line in lines]}


def as_text(lines: list[Line]) -> str:
    """For people: of the many checks of a model only what should be known."""
    parts = [
        part_text(title, [line for line in lines if line.part == part])
        for part, title in TITLES.items()
    ]
    return "\n\n".join([*filter(None, parts), answer(lines)])


def part_text(title: str, own: list[Line]) -> str:
    """One section; '' where there is nothing in it."""
    if not own:
        return ""
    is_check = own[0].part == "check"
    shown = [line for line in own if line.status != OK] if is_check else own
    width = max((len(line.name) for line in shown), default=0)
    done = [f"  {paint(OK, 8)}{len(own) - len(shown)} of {len(own)} checks"] if is_check else []
    return "\n".join(
        [
            title,
            *done,
            *(
                f"  {paint(line.status, 8)}{line.name:<{width}}  {line.told}".rstrip()
                for line in shown
            ),
        ]
    )


def answer(lines: list[Line]) -> str:
    """The last line."""
    broken = [line.name for line in lines if line.status == BROKEN]
    return f"{paint(BROKEN)}: {', '.join(broken)}" if broken else f"{paint(OK)}: nothing is broken"


def doctor_command(
    config: Config = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check packages, machine and extras, and a project from its file to its network: exit code 1
    if something is broken.
    """
    with telling(quiet):
        lines = run_doctor(config)
    show(as_record(lines) if json else lines, as_text, json)
    raise typer.Exit(code_of(lines))
