"""Results made by hand, for tests of tables: a value, a status or nothing for each cell."""

import random

import graphgauge as gg
from graphgauge.evaluation import MetricValue, Row, Settings


def row(task, model, explainer, target, metric, value=None, status="ok", **cell):
    return Row(
        task,
        model,
        explainer,
        target,
        0,
        metric,
        MetricValue(value, status, **cell),
        None,
        0,
        "digest",
        "version",
    )


def results(rows, **settings):
    return gg.Results(tuple(rows), Settings(**settings))


def values(task, model, explainer, metric, numbers):
    """One row per target; None is a missing value. ECs that reach 100 did not flip."""
    return [
        row(task, model, explainer, t, metric, status="empty")
        if number is None
        else row(
            task,
            model,
            explainer,
            t,
            metric,
            float(number),
            flipped=number < 100 if metric.endswith("_ec") else None,
        )
        for t, number in enumerate(numbers)
    ]


def noisy(
    tasks=("cora-node", "cora-link"),
    models=("gcn", "gat"),
    explainers=("saliency", "lrp", "random"),
    targets=6,
    seed=0,
):
    """Random numbers of every metric that the analyses read, with ties and gaps."""
    draw = random.Random(seed)
    rows = []
    for task in tasks:
        for model in models:
            for e, explainer in enumerate(explainers):
                for t in range(targets):
                    rows += cells(draw, task, model, explainer, e, t)
    return results(rows)


def cells(draw, task, model, explainer, e, t):
    place = (task, model, explainer, t)
    for side in ("feature", "edge"):
        if side == "edge" and t == 0:
            yield from (
                row(*place, f"edge_{form}", status="empty")
                for form in ("ec", "pertinence", "fidelity_plus")
            )
            continue
        ec = draw.choice([2, 5, 5, 40, 100])
        yield row(*place, f"{side}_ec", float(ec), flipped=ec < 100)
        trials = (draw.choice([30, 34, 100]),)
        yield row(
            *place,
            f"{side}_pertinence",
            draw.choice([0.25, 0.5, 0.75]) + e / 10,
            trials=trials,
            stop=("decided",),
        )
        yield row(*place, f"{side}_fidelity_plus", draw.random())
        yield row(*place, f"{side}_stability", 1.0, trials=(1,), stop=("deterministic",))
    yield (
        row(*place, "time", 0.01 * (e + 1) + draw.random() / 100)
        if t < 2
        else row(*place, "time", status="not_timed")
    )
