"""Tables of how well explanations agree with a known truth. No verdict uses them."""

from collections.abc import Sequence

from graphgauge.evaluation import TRUTH_KINDS, TRUTH_METRIC_MEANINGS
from graphgauge.guidelines import AggregatedScore, AggregatedScores
from graphgauge.metrics import MetricName
from graphgauge.report.score_table import Record, explain_gap


def build_truth_tables(measured: AggregatedScores, tasks: Sequence[str]) -> list[Record]:
    """Return a table for each task with a known truth: columns and a line for each explainer."""
    tables = []
    for task in tasks:
        subjects = measured.subjects(task)
        names = [f"{kind}_{name}" for kind in TRUTH_KINDS for name in TRUTH_METRIC_MEANINGS]
        metrics = [
            name
            for name in names
            if any(measured.get(subject, name) is not None for subject in subjects)
        ]
        if not metrics:
            continue
        columns = [
            {
                "metric": name,
                "title": _title(name),
                "meaning": TRUTH_METRIC_MEANINGS[MetricName.parse(name).without_side],
            }
            for name in metrics
        ]
        lines = [
            {
                "explainer": subject[2],
                "scores": [_score(measured.get(subject, name)) for name in metrics],
            }
            for subject in subjects
        ]
        tables.append({"task": task, "columns": columns, "lines": lines})
    return tables


def _title(metric: str) -> str:
    """Return the title of a metric.

    >>> _title("edge_auroc"), _title("feature_precision_at_k")
    ('Edge AUROC', 'Feature precision at k')
    """
    text = metric.replace("_", " ").replace("auroc", "AUROC").replace("f1", "F1")
    return text[:1].upper() + text[1:]


def _score(measure: AggregatedScore | None) -> Record:
    """Return one mean with its interval as a text, or say why there is none."""
    if measure is None:
        return {"text": "not measured", "mean": None, "low": None, "high": None, "n": 0, "gap": ""}
    low, high = measure.interval or (None, None)
    gap = explain_gap(dict(measure.missing)) if measure.missing else ""
    text = "no value"
    if measure.mean is not None:
        between = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
        text = f"{measure.mean:.2f}{between}, n {measure.n}"
    return {
        "text": text,
        "mean": measure.mean,
        "low": low,
        "high": high,
        "n": measure.n or 0,
        "gap": gap,
    }
