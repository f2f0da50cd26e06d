"""The list of explainers: ours, PyG's, and those of installed plug-ins."""

import json
from typing import Annotated, Any

import typer

from graphgauge.core import GraphgaugeError, JsonObject
from graphgauge.explainers import (
    ALGORITHM_TRAITS,
    PYG_PREFIX,
    explainer_sources,
    find_explainer_class,
)

_EXPLAINER_HEADINGS = ("name", "signed", "deterministic", "from", "what it is")


def _list_explainers() -> list[JsonObject]:
    """One row for each name; of a plug-in that cannot be used, why."""
    return [_explainer_row(name, source) for name, source in sorted(explainer_sources().items())]


def _explainer_row(name: str, source: str) -> JsonObject:
    """What people see of one explainer; what depends on its options is neither yes nor no."""
    row: JsonObject = {"name": name, "signed": None, "deterministic": None, "from": source}
    if source == "PyG":
        algorithm = name.removeprefix(PYG_PREFIX)
        known = (
            {} if algorithm == "CaptumExplainer" else _trait_flags(ALGORITHM_TRAITS.get(algorithm))
        )
        return {
            **row,
            **known,
            "what it is": f"{algorithm} of torch_geometric.explain, one target at a time.",
        }
    try:
        explainer = find_explainer_class(name)
    except GraphgaugeError as error:
        return {**row, "what it is": f"cannot be used: {error}"}
    return {**row, **_trait_flags(explainer), "what it is": _first_paragraph(explainer)}


def _trait_flags(thing: Any) -> dict[str, bool]:
    """Whether scores are signed and deterministic, where that is said."""
    said = {flag: getattr(thing, flag, None) for flag in ("signed", "deterministic")}
    return {flag: value for flag, value in said.items() if isinstance(value, bool)}


def _first_paragraph(thing: type) -> str:
    """The first paragraph of a class's docstring, on one line."""
    return " ".join((thing.__doc__ or "").strip().partition("\n\n")[0].split())


def _explainers_json(rows: list[JsonObject]) -> str:
    """The list for programs."""
    return json.dumps(rows, indent=2)


def _explainers_text(rows: list[JsonObject]) -> str:
    """The list for people, in columns."""
    cells = [
        _EXPLAINER_HEADINGS,
        *(tuple(_yes_no_text(row[heading]) for heading in _EXPLAINER_HEADINGS) for row in rows),
    ]
    widths = [
        max(len(line[column]) for line in cells) for column in range(len(_EXPLAINER_HEADINGS))
    ]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def _yes_no_text(value: Any) -> str:
    """Yes, no, or the text itself."""
    return {True: "yes", False: "no", None: "depends"}.get(value, str(value))


def explainers_command(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the explainers that can be used by name."""
    rows = _list_explainers()
    typer.echo(_explainers_json(rows) if json else _explainers_text(rows))
