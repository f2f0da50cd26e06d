"""The report of a stored run: read its results, write one file, say where it is."""

from pathlib import Path

from graphgauge.evaluation import Results
from graphgauge.guidelines import Requirements
from graphgauge.report.content import TITLE
from graphgauge.report.page import report


def run_report(
    run: str, output: str | None, format: str | None, wanted: Requirements, accuracy: float | None, title: str | None
) -> Path:
    """Write the report of the results in a folder."""
    made = report(Results.load(run), wanted, accuracy, title=title or TITLE, run=run)
    return made.save(output or Path(run) / f"report.{format or 'html'}", format)
