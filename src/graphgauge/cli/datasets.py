"""The list of data sets: the paper's counts, licences, and whether the files are there."""

import json
from typing import Annotated

import typer

from graphgauge.core import JsonObject
from graphgauge.datasets import DATASETS, DatasetDescription, dataset_state

_COUNT_COLUMNS = ("nodes", "edges", "features", "classes", "edge classes")
_DATASET_HEADINGS = ("name", *_COUNT_COLUMNS, "files", "licence")


def _list_datasets(folder: str | None = None) -> list[JsonObject]:
    """One row for each data set; a regression has no number of classes."""
    return [_dataset_row(description, folder) for description in DATASETS.values()]


def _dataset_row(description: DatasetDescription, folder: str | None) -> JsonObject:
    """What people see of one data set."""
    state, place = dataset_state(description, folder)
    return {
        "name": description.name,
        **{count: getattr(description, count.replace(" ", "_")) for count in _COUNT_COLUMNS},
        "node task": description.node_task,
        "link task": description.link_task,
        "licence": description.licence,
        "source": description.source,
        "files": state,
        "folder": None if place is None else str(place),
        "needed": [file.path for file in description.files],
    }


def _datasets_json(rows: list[JsonObject]) -> str:
    """The list for programs."""
    return json.dumps(rows, indent=2)


def _datasets_text(rows: list[JsonObject]) -> str:
    """The list for people, in columns, and below it what is to be done."""
    cells = [
        _DATASET_HEADINGS,
        *(tuple(_dataset_cell(row, heading) for heading in _DATASET_HEADINGS) for row in rows),
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_DATASET_HEADINGS))]
    lines = [
        "  ".join(map(_align_cell, line, widths, _DATASET_HEADINGS)).rstrip() for line in cells
    ]
    return "\n".join([*lines, *_missing_files_advice(rows)])


def _align_cell(cell: str, width: int, heading: str) -> str:
    """Numbers to the right, texts to the left."""
    return cell.rjust(width) if heading in _COUNT_COLUMNS else cell.ljust(width)


def _dataset_cell(row: JsonObject, heading: str) -> str:
    """A number with separators, 'reg.' for a regression, the state of the files with their folder,
    or the text itself.
    """
    value = row[heading]
    if heading in _COUNT_COLUMNS:
        return "reg." if value is None else f"{value:,}"
    return f"{value} in {row['folder']}" if heading == "files" and row["folder"] else str(value)


def _missing_files_advice(rows: list[JsonObject]) -> list[str]:
    """For each data set that cannot be loaded as it is, the files to put into the folder."""
    return [
        (
            f"{row['name']} ({row['files']}): put {', '.join(row['needed'])} into the data "
            "folder, see docs/datasets.md."
        )
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
    rows = _list_datasets(data)
    typer.echo(_datasets_json(rows) if json else _datasets_text(rows))
