"""The report of a run: which explainer to trust, why, and what speaks against it.

    results.report().save("report.html")          # or .md, .json, .csv, .pdf

The page is one file that makes no outside request. Its security policy names the script by its
digest, and every name is escaped. The same results give the same bytes.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from graphgauge.core import BadFile, BadSetting, lookup
from graphgauge.evaluation import ModelAccuracy, Results
from graphgauge.guidelines import Requirements
from graphgauge.narrative import NamesLike
from graphgauge.report.exporters import report_as_csv, report_as_json, report_as_markdown
from graphgauge.report.html_report import report_as_html, report_as_pdf
from graphgauge.report.report_data import DEFAULT_TITLE, ReportOptions, build_report_data
from graphgauge.report.score_table import Record


@dataclass(frozen=True, repr=False)
class Report:
    """What a report says, as plain data, and ways to write it.

    Notebooks show it as a page; ``save`` writes it as HTML, Markdown, JSON, CSV or PDF.
    """

    content: Record

    def __repr__(self) -> str:
        answer = self.content["answer"]
        return f"Report({answer['badge']}: {answer['headline']})"

    def _repr_html_(self) -> str:
        """Show the page in a frame of its own."""
        page = escape(report_as_html(self.content))
        style = "width: 100%; height: 640px; border: 0"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> Path:
        """Write the report to a file.

        Args:
            path: The file. Its suffix chooses the format.
            format: "html", "md", "json", "csv" or "pdf", if the suffix does not say it.

        Returns:
            The path.

        Raises:
            UnknownName: There is no such format.
            BadFile: The file cannot be written.
            MissingExtra: PDF needs the extra ``pdf``.
        """
        place = Path(path)
        write = lookup(
            _REPORT_FORMATS, format or place.suffix.lower().removeprefix("."), "format of a report"
        )
        written = write(self.content)
        _write_atomically(
            place, written if isinstance(written, bytes) else written.encode("utf-8", "replace")
        )
        return place


_REPORT_FORMATS: dict[str, Callable[[Record], str | bytes]] = {
    "html": report_as_html,
    "md": report_as_markdown,
    "json": report_as_json,
    "csv": report_as_csv,
    "pdf": report_as_pdf,
}


def build_report(
    results: Results,
    requirements: Requirements | None = None,
    accuracy: Any = None,
    names: NamesLike = None,
    *,
    title: str = DEFAULT_TITLE,
    language: str = "en",
    audience: str = "expert",
    run: str | os.PathLike[str] | None = None,
) -> Report:
    """Build the report of some results.

    Args:
        results: What an evaluator or a benchmark measured.
        requirements: What the use asks for; by default the paper's thresholds.
        accuracy: Accuracy of the model on its task, if its data have no labels: a share such as
            0.81, or a mapping {"name": "R²", "value": 0.64, "interval": [0.58, 0.7]}.
        names: What features, nodes and classes are called. Missing names come from the data.
            Examples of a saved run keep the names that they were saved with.
        title: Heading of the page.
        language: Language of the sentences about single explanations.
        audience: Reader of these sentences: "expert", "internal" or "affected person".
        run: The folder that the results were read from; the report adds its facts.

    Returns:
        A report; ``.save("report.html")`` writes it, notebooks show it.

    Raises:
        UndefinedScore: The results have no rows.
        BadSetting: ``requirements`` is something else, or names do not fit the data.
    """
    if requirements is not None and not isinstance(requirements, Requirements):
        raise BadSetting(
            f"report takes requirements first, but got {requirements!r}. "
            "A path goes to save: results.report().save(path)."
        )
    asked = ReportOptions(
        requirements or Requirements(),
        ModelAccuracy.from_value(accuracy),
        names,
        title,
        language,
        audience,
        run,
    )
    return Report(build_report_data(results, asked))


def _write_atomically(path: Path, content: bytes) -> None:
    """Write a file; a failure leaves what was there."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        raise BadFile(f"{path} could not be written: {error}.") from error
