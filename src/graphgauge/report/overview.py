"""A run at a glance: the outcome, how much was measured, and the table of each task."""

from typing import Any

from graphgauge.evaluation import Results
from graphgauge.guidelines.measures import Measured
from graphgauge.guidelines.requirements import Requirements
from graphgauge.report.boards import heading
from graphgauge.report.content import answer, brief, facts


def overview(results: Results, measured: Measured, requirements: Requirements) -> dict[str, Any]:
    """Return the parts of `content_of` with these names.

    Args:
        results: The results of a run.
        measured: Their means, merged over networks.
        requirements: What the use asks for.
    """
    numbers = {
        name: k for k, name in enumerate(dict.fromkeys(row.explainer for row in results.rows), 1)
    }
    parts = [brief(results, measured, task, requirements, numbers) for task in measured.kinds]
    columns = [heading(metric) for metric in measured.judged()]
    return {
        "answer": answer(parts),
        "facts": facts(results, parts),
        "columns": columns,
        "tasks": parts,
    }
