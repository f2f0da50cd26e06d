"""A run at a glance: the outcome, how much was measured, and the table of each task; what a report says first, without the rest."""

from typing import Any

from graphgauge.core.verdicts import NOT_APPLICABLE, worst
from graphgauge.evaluation import Results
from graphgauge.guidelines.measures import Measured
from graphgauge.guidelines.requirements import Requirements
from graphgauge.report.boards import board, heading
from graphgauge.report.content import Part, answer, facts, recommended


def overview(results: Results, found: Measured, wanted: Requirements) -> dict[str, Any]:
    """The parts of `content_of` with the same names; ``found``: the means of the results, merged over networks."""
    numbers = {name: k for k, name in enumerate(dict.fromkeys(row.explainer for row in results.rows), 1)}
    parts = [brief(results, found, task, wanted, numbers) for task in found.kinds]
    columns = [heading(metric) for metric in found.judged()]
    return {"answer": answer(parts), "facts": facts(results, parts), "columns": columns, "tasks": parts}


def brief(results: Results, found: Measured, task: str, wanted: Requirements, numbers: dict[str, int]) -> Part:
    """One task without pictures and examples."""
    own = recommended(found, task, wanted)
    rows = [row for row in results.rows if row.task == task]
    return Part(
        task=task,
        kind=(found.kinds.get(task) or "").replace("_", " "),
        outcome=worst(own.verdicts) if own is not None else NOT_APPLICABLE,
        recommendation=own,
        networks=list(dict.fromkeys(row.model for row in rows)),
        num_targets=len({row.target for row in rows}),
        lines=board(found, task, wanted, numbers, own.chosen if own is not None else ""),
        drawings=[],
        examples=[],
    )
