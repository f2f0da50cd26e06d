"""Fidelity beside our metrics, and what a run cost."""

import numpy as np
import pandas as pd
import pytest
from support.table_results import noisy, results, row, values

from graphgauge.benchmark import agreement, effort
from graphgauge.benchmark.resampling import _draw_cases
from graphgauge.core.errors import UndefinedScore
from graphgauge.core.seeds import derive_seed


def literal_rho(first, second):
    """Spearman's correlation by pandas; NaN where one does not vary."""
    return pd.DataFrame({"a": first, "b": second}).rank().corr().loc["a", "b"]


def test_correlations_over_targets_equal_a_loop_over_the_same_draws():
    made = noisy(targets=8)
    table = agreement(made, fidelity=["fidelity_plus"], draws=25, seed=4)
    for explainer in ("saliency", "lrp"):
        own = {}
        for line in made.rows:
            if line.explainer == explainer and line.cell.status == "ok":
                own.setdefault((line.task, line.model), {}).setdefault(str(line.target), {})[
                    line.metric
                ] = line.cell.value
        points, draws = [], []
        for place, cases in own.items():
            names = sorted(case for case, found in cases.items() if "edge_fidelity_plus" in found)
            first, second = (
                [cases[name][f"edge_{form}"] for name in names]
                for form in ("fidelity_plus", "pertinence")
            )
            points.append(literal_rho(first, second))
            chosen = _draw_cases(len(names), 25, derive_seed(4, "bootstrap", *place)).tolist()
            draws.append(
                [
                    literal_rho([first[i] for i in line], [second[i] for i in line])
                    for line in chosen
                ]
            )
        expected = np.nanmean(draws, 0)
        line = table[
            (table["level"] == "targets")
            & (table["explainer"] == explainer)
            & (table["kind"] == "all")
        ]
        line = line[(line["side"] == "edge") & (line["metric"] == "pertinence")].iloc[0]
        assert line["rho"] == pytest.approx(np.mean(points))
        assert (line["low"], line["high"]) == pytest.approx(
            tuple(np.quantile(expected, (0.025, 0.975)))
        )
        assert (line["parts"], line["points"]) == (4, 28)


def fidelity(task, explainer, plus, pertinence, ec):
    parts = (("fidelity_plus", plus), ("pertinence", pertinence), ("ec", ec))
    return [
        line
        for form, numbers in parts
        for line in values(task, "gcn", explainer, f"edge_{form}", numbers)
    ]


def test_perfect_agreement_is_1_and_the_expected_sign_follows_the_direction():
    rows = [
        line
        for k, name in enumerate(("lrp", "saliency", "graphmask"))
        for line in fidelity(
            "cora-node",
            name,
            [0.1 + k, 0.2 + k, 0.4 + k],
            [0.5 + k, 0.6 + k, 0.9 + k],
            [9 - k, 5 - k, 3 - k],
        )
    ]
    table = agreement(results(rows), draws=50)
    assert set(table["level"]) == {"targets", "explainers"}
    for line in table.itertuples():
        expected = 1 if line.metric == "pertinence" else -1
        assert (line.rho, line.expected) == (pytest.approx(expected), expected)
    means = table[(table["level"] == "explainers") & (table["kind"] == "node_classification")].iloc[
        0
    ]
    assert (means["low"], means["high"], means["agree"], means["points"]) == (
        pytest.approx(1),
        pytest.approx(1),
        True,
        3,
    )


def test_disagreement_is_told():
    rows = fidelity("cora-node", "lrp", [0.1, 0.2, 0.3, 0.4], [0.9, 0.7, 0.5, 0.1], [1, 2, 3, 4])
    table = agreement(results(rows), draws=50)
    assert not table["agree"].any()
    assert table["rho"].tolist() == pytest.approx([-1, -1, -1, -1, 1, 1, 1, 1])


def test_baselines_two_targets_and_constants_say_nothing():
    useless = [
        fidelity("cora-node", "random", [0.1, 0.2, 0.3], [0.1, 0.2, 0.3], [1, 2, 3]),
        fidelity("cora-node", "lrp", [0.1, 0.2], [0.1, 0.2], [1, 2]),
        fidelity("github-node", "lrp", [0.1, 0.1, 0.1], [0.1, 0.2, 0.3], [1, 2, 3]),
    ]
    with pytest.raises(UndefinedScore, match="evaluate with extras=True"):
        agreement(results([line for part in useless for line in part]))


def test_a_regression_without_characterization_has_the_other_correlations():
    rows = fidelity("synthetic-node", "lrp", [0.1, 0.2, 0.3], [0.1, 0.2, 0.3], [1, 2, 3])
    rows += values("cora-node", "gcn", "lrp", "edge_characterization", [0.1, 0.2, 0.3])
    rows += values("cora-node", "gcn", "lrp", "edge_ec", [3, 2, 1])
    table = agreement(results(rows), draws=20)
    assert set(zip(table["kind"], table["fidelity"], strict=True)) == {
        ("node_regression", "fidelity_plus"),
        ("all", "fidelity_plus"),
        ("node_classification", "characterization"),
        ("all", "characterization"),
    }


def test_effort_counts_trials_reasons_and_explanations():
    def place(name, target):
        return ("cora-node", "gcn", name, target)

    rows = [
        row(
            *place("lrp", 0), "feature_pertinence", 0.5, trials=(30, 100), stop=("decided", "most")
        ),
        row(*place("lrp", 1), "feature_pertinence", 0.5, trials=(50,), stop=("decided",)),
        row(*place("lrp", 0), "edge_pertinence", status="empty"),
        *(
            row(*place("lrp", 0), f"{side}_stability", 1.0, trials=(1,), stop=("deterministic",))
            for side in ("feature", "edge")
        ),
        *(
            row(
                *place("gnn_explainer", 0),
                f"{side}_stability",
                0.9,
                trials=(32,),
                stop=("precise",),
            )
            for side in ("feature", "edge")
        ),
        row(*place("graphmask", 0), "feature_stability", 0.9, trials=(15,), stop=("binomial",)),
        row(*place("graphmask", 0), "edge_stability", status="empty"),
        row(*place("lrp", 0), "time", 0.1),
        row(*place("lrp", 1), "time", status="not_timed"),
    ]
    found = effort(results(rows))
    trials = found.trials.set_index("metric")
    assert trials["mean_trials"].to_dict() == {
        "feature_pertinence": 60,
        "feature_stability": 32,
        "edge_stability": 32,
        "pertinence, both sides": 60,
        "all": pytest.approx((30 + 100 + 50 + 32 + 32) / 5),
    }
    stops = found.stops.set_index(["metric", "stop"])["share"].to_dict()
    assert stops["feature_pertinence", "decided"] == pytest.approx(2 / 3)
    assert stops["feature_stability", "binomial"] == pytest.approx(1 / 3)
    made = found.explanations.set_index("explanations")["number"].to_dict()
    assert made == {
        "scored": 4,
        "stability": 2 + 64 + 15,
        "time": 3,
        "all": 4 + 81 + 3,
        "by the paper's rule, at most": 60 + 200 + 200,
        "the paper's claim": 2_000_000,
    }


def test_effort_of_results_without_trials_is_empty_not_an_error():
    found = effort(results([row("t", "m", "lrp", 0, "edge_ec", 3.0, flipped=True)]))
    assert (len(found.trials), len(found.stops)) == (0, 0)
    assert found.explanations["number"].tolist() == [1, 0, 0, 1, 0, 2_000_000]
