"""The list of explainers: ours, PyG's, and those of installed plug-ins."""

import json
from typing import Annotated, Any

import typer

from graphgauge.core.errors import GraphgaugeError
from graphgauge.explainers.pyg import TRAITS
from graphgauge.explainers.registry import PYG, explainer_class, sources

HEADINGS = ("name", "signed", "deterministic", "from", "what it is")


def listed() -> list[dict[str, Any]]:
    """One row for each name; of a plug-in that cannot be used, why."""
    return [row_of(name, source) for name, source in sorted(sources().items())]


def row_of(name: str, source: str) -> dict[str, Any]:
    """What people see of one explainer; what depends on its options is neither yes nor no."""
    row: dict[str, Any] = {"name": name, "signed": None, "deterministic": None, "from": source}
    if source == "PyG":
        algorithm = name.removeprefix(PYG)
        known = {} if algorithm == "CaptumExplainer" else flags(TRAITS.get(algorithm))
        return {
            **row,
            **known,
            "what it is": f"{algorithm} of torch_geometric.explain, one target at a time.",
        }
    try:
        explainer = explainer_class(name)
    except GraphgaugeError as error:
        return {**row, "what it is": f"cannot be used: {error}"}
    return {**row, **flags(explainer), "what it is": first_paragraph(explainer)}


def flags(thing: Any) -> dict[str, bool]:
    """Whether scores are signed and deterministic, where that is said."""
    said = {flag: getattr(thing, flag, None) for flag in ("signed", "deterministic")}
    return {flag: value for flag, value in said.items() if isinstance(value, bool)}


def first_paragraph(thing: type) -> str:
    """The first paragraph of a class's docstring, on one line."""
    return " ".join((thing.__doc__ or "").strip().partition("\n\n")[0].split())


def as_json(rows: list[dict[str, Any]]) -> str:
    """The list for programs."""
    return json.dumps(rows, indent=2)


def as_text(rows: list[dict[str, Any]]) -> str:
    """The list for people, in columns."""
    cells = [HEADINGS, *(tuple(shown(row[heading]) for heading in HEADINGS) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def shown(value: Any) -> str:
    """Yes, no, or the text itself."""
    return {True: "yes", False: "no", None: "depends"}.get(value, str(value))


def explainers_command(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the explainers that can be used by name."""
    rows = listed()
    typer.echo(as_json(rows) if json else as_text(rows))
