"""Is everything in order? Packages, machine, extras, and a project if there is one. Loads nothing
heavy before it must.
"""

from dataclasses import asdict
from pathlib import Path

import typer

from graphgauge.cli.console import (
    ConfigArgument,
    ExitCode,
    JsonOption,
    QuietOption,
    colour_word,
    notifications,
    print_answer,
)
from graphgauge.core import (
    BROKEN,
    OK,
    DiagnosticLine,
    JsonObject,
    extra_lines,
    is_healthy,
    package_lines,
)

_SECTION_TITLES = {
    "package": "Packages",
    "machine": "This machine",
    "extra": "Extras",
    "project": "The project",
    "check": "Its model",
}


def _run_doctor(config: str | None) -> list[DiagnosticLine]:
    """Everything that can be looked at; where a package is broken, only the packages."""
    packages = [*package_lines(), *extra_lines()]
    return [*packages, *_machine_and_project_lines(config)] if is_healthy(packages) else packages


def _machine_and_project_lines(config: str | None) -> list[DiagnosticLine]:
    """The machine, and the project that is named, or else the one in this folder."""
    from graphgauge.cli.evaluate import default_config_file
    from graphgauge.lifecycle import Project, machine_lines, project_lines

    path = config or default_config_file()
    return [
        *machine_lines(),
        *([] if path is None else project_lines(lambda: Project.read(Path(path)))),
    ]


def _doctor_exit_code(lines: list[DiagnosticLine]) -> ExitCode:
    """1 where something is broken."""
    return ExitCode.PASS if is_healthy(lines) else ExitCode.BELOW


def _doctor_record(lines: list[DiagnosticLine]) -> JsonObject:
    """For programs."""
    return {"code": int(_doctor_exit_code(lines)), "lines": [asdict(line) for line in lines]}


def _doctor_text(lines: list[DiagnosticLine]) -> str:
    """For people: of the many checks of a model only what should be known."""
    parts = [
        _section_text(title, [line for line in lines if line.part == part])
        for part, title in _SECTION_TITLES.items()
    ]
    return "\n\n".join([*filter(None, parts), _doctor_answer(lines)])


def _section_text(title: str, own: list[DiagnosticLine]) -> str:
    """One section; '' where there is nothing in it."""
    if not own:
        return ""
    is_check = own[0].part == "check"
    shown = [line for line in own if line.status != OK] if is_check else own
    width = max((len(line.name) for line in shown), default=0)
    done = (
        [f"  {colour_word(OK, 8)}{len(own) - len(shown)} of {len(own)} checks"] if is_check else []
    )
    return "\n".join(
        [
            title,
            *done,
            *(
                f"  {colour_word(line.status, 8)}{line.name:<{width}}  {line.told}".rstrip()
                for line in shown
            ),
        ]
    )


def _doctor_answer(lines: list[DiagnosticLine]) -> str:
    """The last line."""
    broken = [line.name for line in lines if line.status == BROKEN]
    return (
        f"{colour_word(BROKEN)}: {', '.join(broken)}"
        if broken
        else f"{colour_word(OK)}: nothing is broken"
    )


def doctor_command(
    config: ConfigArgument = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check packages, machine and extras, and a project from its file to its network: exit code 1
    if something is broken.
    """
    with notifications(quiet):
        lines = _run_doctor(config)
    print_answer(_doctor_record(lines) if json else lines, _doctor_text, json)
    raise typer.Exit(_doctor_exit_code(lines))
