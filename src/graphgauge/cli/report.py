"""The report of a stored run: read its results, write one file, say where it is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphgauge.evaluation import Results
from graphgauge.guidelines import Requirements
from graphgauge.lifecycle.assessment import stored_accuracy, stored_requirements
from graphgauge.report.page import report


def run_report(
    run: str,
    output: str | None,
    format: str | None,
    asked: Mapping[str, Any],
    told: Mapping[str, Any],
) -> Path:
    """Write the report of the results in a folder.

    What the run was judged by when it was saved holds, changed by the requirements ``asked`` for.
    ``told``: other options of `report`; None stands for one that was not given.
    """
    given = {name: value for name, value in asked.items() if value is not None}
    results = Results.load(run)
    options: dict[str, Any] = {"accuracy": results.accuracy or stored_accuracy(run)}
    options |= {name: value for name, value in told.items() if value is not None}
    wanted = Requirements(**{**stored_requirements(run), **given})
    made = report(results, wanted, **options, run=run)
    return made.save(output or Path(run) / f"report.{format or 'html'}", format)
