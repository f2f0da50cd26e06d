"""The report of a run: one page that says which explainer to trust, why, and what speaks against
it.

    results.report().save("report.html")          # or .md, .json, .csv, .pdf

The page is one file: no outside request, its script is named by its digest in the page's own
security policy, every name is escaped. The same results give the same bytes.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from graphgauge.core.errors import BadFile, BadSetting
from graphgauge.core.registry import lookup
from graphgauge.evaluation import ModelAccuracy, Results
from graphgauge.guidelines import Requirements
from graphgauge.narrative import Names
from graphgauge.report.content import TITLE, Asked, content_of
from graphgauge.report.texts import as_csv, as_json, as_markdown
from graphgauge.report.webpage import as_html, as_pdf


@dataclass(frozen=True, repr=False)
class Report:
    """What is said, as plain data, and ways to write it."""

    content: dict[str, Any]

    def __repr__(self) -> str:
        answer = self.content["answer"]
        return f"Report({answer['badge']}: {answer['headline']})"

    def _repr_html_(self) -> str:
        """Notebooks show the page in a frame of its own."""
        page = escape(as_html(self.content))
        return f'<iframe sandbox="allow-scripts" style="width: 100%; height: 640px; border: 0" srcdoc="{page}"></iframe>'

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> Path:
        """Write the report; the suffix of the path says how (html, md, json, csv, pdf), unless
        ``format`` does.
        """
        place = Path(path)
        write = lookup(
            FORMATS, format or place.suffix.lower().removeprefix("."), "format of a report"
        )
        written = write(self.content)
        write_whole(
            place, written if isinstance(written, bytes) else written.encode("utf-8", "replace")
        )
        return place


FORMATS: dict[str, Callable[[dict[str, Any]], str | bytes]] = {
    "html": as_html,
    "md": as_markdown,
    "json": as_json,
    "csv": as_csv,
    "pdf": as_pdf,
}


def report(
    results: Results,
    requirements: Requirements | None = None,
    accuracy: Any = None,
    names: Names | Mapping[str, Any] | None = None,
    *,
    title: str = TITLE,
    language: str = "en",
    audience: str = "expert",
    run: str | os.PathLike[str] | None = None,
) -> Report:
    """The report of some results.

    ``requirements``  what the use asks for; default: the paper's thresholds
    ``accuracy``      of the model on its task, where the labels in its data do not tell: a share such as 0.81, or a mapping
                      {"name": "R²", "value": 0.64, "interval": [0.58, 0.7]}
    ``names``         of nodes, features and classes; what is missing is taken from the data. What a saved run has kept of its
                      explanations has the names it was saved with
    ``language``, ``audience``  of the sentences on single explanations
    ``run``           the folder the results were read from: its facts are told, too
    """
    if requirements is not None and not isinstance(requirements, Requirements):
        raise BadSetting(
            f"report takes requirements first, but got {requirements!r}. A path goes to save: results.report().save(path)."
        )
    asked = Asked(
        requirements or Requirements(),
        ModelAccuracy.read(accuracy),
        names,
        title,
        language,
        audience,
        run,
    )
    return Report(content_of(results, asked))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, or leave what was there."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        raise BadFile(f"{path} could not be written: {error}.") from error
