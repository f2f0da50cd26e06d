"""Means of a run: the same numbers as cutting its table piece by piece, in the same order."""

import random

import numpy as np
import pytest
from support.chosen_results import row

from graphgauge.evaluation import Results, Settings
from graphgauge.guidelines import Requirements
from graphgauge.guidelines.aggregation import add_stability_chance_rows, aggregate_run

METRICS = (
    "feature_pertinence",
    "edge_pertinence_tied",
    "edge_ec",
    "edge_stability",
    "edge_stability_corrected",
    "time",
)


def random_run(seed, rows=600):
    """Rows in no order, three networks, pairs and nodes as targets, ties and gaps; one metric of
    one explainer has no value.
    """
    dice, found = random.Random(seed), []
    for k in range(rows):
        task, explainer, metric = (
            dice.choice(["b-link", "a-node"]),
            dice.choice("zyx"),
            dice.choice(METRICS),
        )
        target = (k % 40, k % 7) if task == "b-link" else k % 40
        is_gap = dice.random() < 0.2 or (explainer, metric) == ("y", "time")
        status = dice.choice(["empty", "timeout", "no_reference"]) if is_gap else "ok"
        value = None if is_gap else dice.choice([0.25, dice.random()])
        found.append(
            row(
                explainer,
                target,
                metric,
                value,
                status,
                task,
                dice.choice(["gcn", "gat", "gin"]),
                k,
            )
        )
        if metric == "edge_stability_corrected":
            found.append(
                row(explainer, target, "edge_stability", 0.75, "ok", task, found[-1].model, k)
            )
    return Results(tuple(found), Settings())


def literal_measures(results, merge_models):
    """Cut the table by task, model, explainer and metric, and each piece by model: mean, n, values,
    missing.
    """
    table = add_stability_chance_rows(results.to_pandas())
    keys = ["task", "whole" if merge_models else "model", "explainer", "metric"]
    found = {}
    for (task, model, explainer, metric), part in table.assign(whole="").groupby(keys, sort=False):
        good = part[part["status"] == "ok"]
        means = [float(np.sort(own["value"].to_numpy()).mean()) for _, own in good.groupby("model")]
        missing = part[part["status"] != "ok"]["status"].value_counts().to_dict()
        mean = float(np.mean(means)) if means else None
        found[(task, model, explainer), metric] = (
            mean,
            len(good),
            tuple(sorted(good["value"].tolist())),
            missing,
        )
    return found


@pytest.mark.parametrize("merge_models", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_measures_equal_those_of_cutting_the_table_to_the_last_bit(seed, merge_models):
    results = random_run(seed)
    found, twin = (
        aggregate_run(results, Requirements(), merge_models).measures,
        literal_measures(results, merge_models),
    )
    assert {key: (own.mean, own.n, own.values, own.missing) for key, own in found.items()} == twin
    assert list(found) == list(twin)
    assert any(metric == "edge_stability_chance" for _, metric in found)
    assert any(own.mean is None for own in found.values())


def test_the_most_frequent_reason_comes_first():
    statuses = ["empty", "timeout", "timeout", "ok"]
    rows = [
        row("mine", k, "time", 1.0 if status == "ok" else None, status)
        for k, status in enumerate(statuses)
    ]
    (own,) = aggregate_run(Results(tuple(rows), Settings()), Requirements()).measures.values()
    assert list(own.missing.items()) == [("timeout", 2), ("empty", 1)]


def test_a_run_without_rows_has_no_measures():
    assert aggregate_run(Results((), Settings()), Requirements()).measures == {}


def test_a_long_run_is_cut_once(monkeypatch):
    """However many groups there are, pandas cuts the table twice: for the measures and for the
    tasks.
    """
    import pandas as pd

    calls, whole = [], pd.DataFrame.groupby
    monkeypatch.setattr(
        pd.DataFrame,
        "groupby",
        lambda *given, **options: calls.append(1) or whole(*given, **options),
    )
    assert len(aggregate_run(random_run(0), Requirements()).measures) > 30
    assert len(calls) == 2
