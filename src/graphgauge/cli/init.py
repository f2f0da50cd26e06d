"""The first project file: every key there is, with what it means and where to edit."""

from pathlib import Path
from typing import Annotated

import typer

from graphgauge.cli.console import JsonOption, print_answer
from graphgauge.core import BadFile

_PROJECT_FILE_NAME = "graphgauge.yaml"
_TEMPLATE = Path(__file__).parent / "templates" / _PROJECT_FILE_NAME


def _write_project_file(folder: str) -> Path:
    """Write the file into a folder, which is made if need be; never over another."""
    path = Path(folder) / _PROJECT_FILE_NAME
    if path.exists():
        raise BadFile(
            f"{path} is there already, and is left as it is: remove it, or name another folder."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(_TEMPLATE.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadFile(f"{path} could not be written: {error}.") from error
    return path


def _next_steps_text(path: Path) -> str:
    """Where it is, and what comes next."""
    return f"{path}\nEdit the lines marked EDIT, then: graphgauge doctor {path}"


def init_command(
    folder: Annotated[str, typer.Argument(help="Where to write graphgauge.yaml.")] = ".",
    json: JsonOption = False,
) -> None:
    """Write a commented project file for a model of your own; never over another."""
    path = _write_project_file(folder)
    print_answer({"file": str(path)}, lambda _: _next_steps_text(path), json)
