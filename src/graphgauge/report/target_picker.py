"""The numbers of single targets, packed for the target picker of a page.

A value is a number with four digits. A missing value is a text: the position of its reason in
``statuses``. What was never asked for is null.
"""

import math
from typing import Any

from graphgauge.core import Target
from graphgauge.evaluation import Results, Row
from graphgauge.narrative import Names
from graphgauge.report.examples import describe_target, has_labels
from graphgauge.report.score_table import GAP_REASONS, Record, column_heading


def pack_targets(results: Results, metrics: list[str], names: Names, level: str) -> Record:
    """Pack every target by task and network: ``groups[g].values[target][explainer][metric]``."""
    explainers = list(dict.fromkeys(row.explainer for row in results.rows))
    statuses = list(
        dict.fromkeys(row.cell.status for row in results.rows if row.cell.value is None)
    )
    groups: dict[tuple[str, str], dict[Any, dict[tuple[str, str], Row]]] = {}
    for row in results.rows:
        if row.metric in metrics:
            group = groups.setdefault((row.task, row.model), {})
            group.setdefault((row.target, row.occurrence), {})[row.explainer, row.metric] = row
    return {
        "metrics": [column_heading(metric) for metric in metrics],
        "explainers": explainers,
        "statuses": [
            {"name": status, "told": GAP_REASONS.get(status, "unknown")} for status in statuses
        ],
        "groups": [
            {
                "task": task,
                "model": model,
                "targets": [
                    _target_title(target, occurrence, level, names, has_labels(results))
                    for target, occurrence in group
                ],
                "values": [
                    [
                        [_pack_cell(rows.get((name, metric)), statuses) for metric in metrics]
                        for name in explainers
                    ]
                    for rows in group.values()
                ],
            }
            for (task, model), group in groups.items()
        ],
    }


def _target_title(
    target: Target, occurrence: int, level: str, names: Names, has_label: bool = False
) -> str:
    """Describe a target, and say which of several explanations of it is meant."""
    if not has_label:
        level = "link" if isinstance(target, tuple) else "node" if level == "link" else level
    return describe_target(target, level, names) + (f", again {occurrence}" if occurrence else "")


def _pack_cell(row: Row | None, statuses: list[str]) -> float | str | None:
    """Pack a number, the position of a reason, or nothing.

    >>> _pack_cell(None, []) is None
    True
    """
    if row is None:
        return None
    value = row.cell.value
    if value is None:
        return str(statuses.index(row.cell.status))
    return float(f"{value:.4g}") if math.isfinite(value) else None
