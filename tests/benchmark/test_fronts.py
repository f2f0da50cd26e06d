"""Pareto fronts and who is on them in every task."""

import itertools

import numpy as np
import pytest
from support.table_results import noisy, results, values

from graphgauge.benchmark import as_study, fronts, robustly_non_dominated
from graphgauge.benchmark.pareto_fronts import pareto_front
from graphgauge.core.errors import UndefinedScore

PAIR = ("edge_pertinence", "edge_ec")


def made(task, points):
    """(pertinence, EC) of each explainer, the same for three targets."""
    both = [(name, metric, own[k]) for name, own in points.items() for k, metric in enumerate(PAIR)]
    return [
        line
        for name, metric, number in both
        for line in values(task, "gcn", name, metric, [number] * 3)
    ]


def literal_front(points):
    """No other point is as good in both and better in one."""
    return [not any(a >= x and b >= y and (a > x or b > y) for a, b in points) for x, y in points]


def test_a_front_is_that_of_the_results():
    """On the same means, `Results.pareto` says the same; it has no baselines."""
    tested = noisy(explainers=("saliency", "lrp", "graphmask", "deconvolution"))
    for pair in (PAIR, ("feature_pertinence", "time")):
        own = tested.pareto(*pair)
        table = pareto_front(as_study(tested), pair, draws=5)[0].set_index("explainer")
        assert table["front"].to_dict() == own["front"].to_dict()
        assert table["first_mean"].to_dict() == pytest.approx(own[pair[0]].to_dict())
        assert table["second_mean"].to_dict() == pytest.approx(own[pair[1]].to_dict())


def test_fronts_come_for_kinds_and_for_tasks():
    points = {"lrp": (0.9, 5), "saliency": (0.5, 9), "deconvolution": (0.4, 3)}
    other = {"lrp": (0.9, 5), "saliency": (0.95, 9), "deconvolution": (0.4, 6)}
    table = fronts(results(made("cora-node", points) + made("github-node", other)), draws=10)
    chosen = table[table["front"]].groupby(["scope", "name"])["explainer"].apply(list).to_dict()
    assert chosen == {
        ("kind", "node_classification"): ["deconvolution", "lrp"],
        ("task", "cora-node"): ["deconvolution", "lrp"],
        ("task", "github-node"): ["lrp", "saliency"],
    }
    assert table["share"].tolist() == table["front"].astype(float).tolist()  # nothing varies
    of_kind = table[table["scope"] == "kind"].set_index("explainer")
    assert of_kind.loc[
        "lrp", ["first_mean", "second_mean", "first_low", "second_high"]
    ].tolist() == pytest.approx([0.9, 5, 0.9, 5])
    assert of_kind["paper_front"].to_dict() == {
        "deconvolution": False,
        "lrp": False,
        "saliency": False,
    }
    assert table[table["scope"] == "task"]["paper_front"].isna().all()


def test_robust_is_who_is_on_the_front_of_every_task():
    points = {"lrp": (0.9, 5), "saliency": (0.5, 9), "deconvolution": (0.4, 3)}
    other = {"lrp": (0.9, 5), "saliency": (0.95, 9), "deconvolution": (0.4, 6)}
    table = robustly_non_dominated(
        results(made("cora-node", points) + made("github-node", other)), draws=10
    ).set_index("explainer")
    assert set(table["pair"]) == {"edge_pertinence / edge_ec"}
    assert table["on_front"].to_dict() == {"deconvolution": 1, "lrp": 2, "saliency": 1}
    assert table["robust"].to_dict() == {"deconvolution": False, "lrp": True, "saliency": False}
    assert table["share"].to_dict() == {"deconvolution": 0, "lrp": 1, "saliency": 0}


def test_who_is_missing_in_a_task_is_not_robust_and_beats_nobody_there():
    rows = made("cora-node", {"lrp": (0.9, 5), "saliency": (0.5, 9)}) + made(
        "github-node", {"saliency": (0.5, 9)}
    )
    rows += values("github-node", "gcn", "lrp", "edge_ec", [None, None]) + values(
        "github-node", "gcn", "lrp", "edge_pertinence", [1.0]
    )
    table = robustly_non_dominated(results(rows), draws=10).set_index("explainer")
    assert table.loc["lrp", ["tasks", "on_front", "robust"]].tolist() == [1, 1, False]
    assert table.loc["saliency", ["tasks", "on_front", "robust"]].tolist() == [2, 1, False]


def test_shares_equal_a_loop_over_the_same_draws():
    tested = noisy(
        tasks=("cora-node",), models=("gcn",), explainers=("saliency", "lrp", "graphmask")
    )
    table, drawn = pareto_front(as_study(tested), PAIR, draws=40, seed=2)
    numbers = {}
    for own in tested.rows:
        if own.metric in PAIR and own.cell.status == "ok":
            numbers[own.explainer, own.metric, str(own.target)] = own.cell.value
    cases, names = sorted({case for _, _, case in numbers}), table["explainer"].tolist()
    from graphgauge.benchmark.resampling import _draw_cases as chosen_cases
    from graphgauge.core.seeds import derive_seed

    chosen = chosen_cases(len(cases), 40, derive_seed(2, "bootstrap", "cora-node", "gcn"))
    for b, line in enumerate(chosen.tolist()):
        means = {
            (n, m): round(np.mean([numbers[n, m, cases[i]] for i in line]), 9)
            for n, m in itertools.product(names, PAIR)
        }
        assert drawn[b].tolist() == literal_front(
            [(means[name, PAIR[0]], -means[name, PAIR[1]]) for name in names]
        )
    assert table["share"].tolist() == drawn.mean(0).tolist()


def test_all_pairs_of_metrics_count_together():
    points = made("cora-node", {"lrp": (0.9, 5), "saliency": (0.5, 4)})
    times = values("cora-node", "gcn", "lrp", "time", [0.1]) + values(
        "cora-node", "gcn", "saliency", "time", [0.2]
    )
    table = robustly_non_dominated(results(points + times), draws=10)
    whole = table[table["pair"] == "all pairs"].set_index("explainer")
    assert whole["on_front"].to_dict() == {"lrp": 2, "saliency": 1}
    assert whole["robust"].to_dict() == {"lrp": True, "saliency": False}


def test_random_scores_are_shown_but_on_no_front():
    table = fronts(results(made("cora-node", {"lrp": (0.5, 5), "random": (0.9, 1)})), draws=10)
    assert table["explainer"].tolist() == ["lrp", "random"] * 2
    assert table["front"].tolist() == [True, False] * 2
    assert robustly_non_dominated(
        results(made("t", {"lrp": (0.5, 5), "random": (0.9, 1)})), draws=10
    )["explainer"].tolist() == ["lrp"]


def test_results_without_a_pair_of_metrics_are_refused():
    with pytest.raises(UndefinedScore, match="these results have no pair"):
        fronts(results(values("t", "m", "lrp", "edge_ec", [1])))
