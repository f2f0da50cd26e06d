"""A run at a glance: the outcome, how much was measured, and the table of each task; what a report
says first, without the rest.
"""

from typing import Any

from graphgauge.evaluation import Results
from graphgauge.guidelines.measures import Measured
from graphgauge.guidelines.requirements import Requirements
from graphgauge.report.boards import heading
from graphgauge.report.content import answer, brief, facts


def overview(results: Results, found: Measured, wanted: Requirements) -> dict[str, Any]:
    """The parts of `content_of` with the same names; ``found``: the means of the results, merged
    over networks.
    """
    numbers = {
        name: k for k, name in enumerate(dict.fromkeys(row.explainer for row in results.rows), 1)
    }
    parts = [brief(results, found, task, wanted, numbers) for task in found.kinds]
    columns = [heading(metric) for metric in found.judged()]
    return {
        "answer": answer(parts),
        "facts": facts(results, parts),
        "columns": columns,
        "tasks": parts,
    }
