"""A run at a glance: the outcome, how much was measured, and the table of each task."""

from graphgauge.evaluation import Results
from graphgauge.guidelines import AggregatedScores, Requirements
from graphgauge.report.report_data import count_measured, overall_answer, summarize_task
from graphgauge.report.score_table import Record, column_heading


def build_overview(
    results: Results, measured: AggregatedScores, requirements: Requirements
) -> Record:
    """Return the parts of `build_report_data` with these names.

    Args:
        results: The results of a run.
        measured: Their means, merged over networks.
        requirements: What the use asks for.
    """
    numbers = {
        name: k for k, name in enumerate(dict.fromkeys(row.explainer for row in results.rows), 1)
    }
    parts = [
        summarize_task(results, measured, task, requirements, numbers) for task in measured.kinds
    ]
    columns = [column_heading(metric) for metric in measured.judged_metrics()]
    return {
        "answer": overall_answer(parts),
        "facts": count_measured(results, parts),
        "columns": columns,
        "tasks": parts,
    }
