"""Results with chosen numbers, for closed-form tests."""

from graphgauge.evaluation import MetricValue, Results, Row, Settings

GOOD = {
    "feature_pertinence": 0.9,
    "edge_pertinence": 0.85,
    "feature_ec": 5.0,
    "edge_ec": 8.0,
    "feature_stability": 1.0,
    "edge_stability": 1.0,
    "time": 0.02,
}


def row(
    explainer, target, metric, value=None, status="ok", task="", model="", occurrence=0, **cell
):
    return Row(
        task,
        model,
        explainer,
        target,
        occurrence,
        metric,
        MetricValue(value, status, **cell),
        None,
        0,
        "digest",
        "version",
    )


def run(numbers, n=100, settings=None, task="", model="", is_link=False):
    """One row per explainer, target and metric. A number is a value for every target, a list of
    values, or a status.
    """
    rows = []
    for explainer, own in numbers.items():
        for metric, given in own.items():
            each = given if isinstance(given, list) else [given] * n
            for k, value in enumerate(each):
                target = (k, k + 1) if is_link else k
                rows.append(made_row(explainer, target, metric, value, task, model))
    return Results(tuple(rows), settings or Settings())


def made_row(explainer, target, metric, value, task, model):
    extra = (
        {"flipped": value < 100} if metric.endswith("_ec") and not isinstance(value, str) else {}
    )
    if isinstance(value, str):
        return row(explainer, target, metric, None, value, task, model)
    return row(explainer, target, metric, float(value), "ok", task, model, **extra)


def good(**changed):
    """Numbers that meet every threshold, with some changed."""
    return {**GOOD, **changed}
