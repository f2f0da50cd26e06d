"""The list of data sets: the paper's counts, licences, and whether the files are there."""

import json
from typing import Annotated, Any

import typer

from graphgauge.datasets import DATASETS, Description, state_of

COUNTS = ("nodes", "edges", "features", "classes", "edge classes")
HEADINGS = ("name", *COUNTS, "files", "licence")


def listed(folder: str | None = None) -> list[dict[str, Any]]:
    """One row for each data set; a regression has no number of classes."""
    return [row_of(description, folder) for description in DATASETS.values()]


def row_of(description: Description, folder: str | None) -> dict[str, Any]:
    """What people see of one data set."""
    state, place = state_of(description, folder)
    return {
        "name": description.name,
        **{count: getattr(description, count.replace(" ", "_")) for count in COUNTS},
        "node task": description.node_task,
        "link task": description.link_task,
        "licence": description.licence,
        "source": description.source,
        "files": state,
        "folder": None if place is None else str(place),
        "needed": [file.path for file in description.files],
    }


def as_json(rows: list[dict[str, Any]]) -> str:
    """The list for programs."""
    return json.dumps(rows, indent=2)


def as_text(rows: list[dict[str, Any]]) -> str:
    """The list for people, in columns, and below it what is to be done."""
    cells = [HEADINGS, *(tuple(shown(row, heading) for heading in HEADINGS) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    lines = ["  ".join(map(aligned, line, widths, HEADINGS)).rstrip() for line in cells]
    return "\n".join([*lines, *advice(rows)])


def aligned(cell: str, width: int, heading: str) -> str:
    """Numbers to the right, texts to the left."""
    return cell.rjust(width) if heading in COUNTS else cell.ljust(width)


def shown(row: dict[str, Any], heading: str) -> str:
    """A number with separators, 'reg.' for a regression, the state of the files with their folder,
    or the text itself.
    """
    value = row[heading]
    if heading in COUNTS:
        return "reg." if value is None else f"{value:,}"
    return f"{value} in {row['folder']}" if heading == "files" and row["folder"] else str(value)


def advice(rows: list[dict[str, Any]]) -> list[str]:
    """For each data set that cannot be loaded as it is, the files to put into the folder."""
    return [
        f"{row['name']} ({row['files']}): put {', '.join(row['needed'])} into the data folder, see docs/datasets.md."
        for row in rows
        if row["files"] in ("missing", "damaged")
    ]


def datasets_command(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    data: Annotated[
        str | None,
        typer.Option(help="Folder with the raw files; else GRAPHGAUGE_DATA, else the cache."),
    ] = None,
) -> None:
    """List the data sets of the paper, and whether their files are there."""
    rows = listed(data)
    typer.echo(as_json(rows) if json else as_text(rows))
