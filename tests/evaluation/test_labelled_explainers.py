"""What explainers are called in `compare`: seeds under names of one's own, and clocks that start
warm.
"""

import time
from dataclasses import dataclass

import pytest
from support.quick_evaluation import QUICK, node_model

import graphgauge as gg
from graphgauge.evaluation.explanation_set import explainer_seed

TARGETS = [3, 20, 41]
CURVES = ("edge_ec", "edge_pertinence", "feature_ec", "feature_pertinence_tied")


def values_of(results, explainer, metrics=CURVES):
    return [
        row.cell.value
        for row in results.rows
        if row.explainer == explainer and row.metric in metrics
    ]


def test_two_random_explainers_in_one_dictionary_draw_different_numbers():
    evaluator = gg.Evaluator(node_model(), "calibrated", **QUICK)
    results = evaluator.compare(
        {"random": gg.RandomExplainer(), "second": gg.RandomExplainer()}, TARGETS
    )
    assert values_of(results, "random") != values_of(results, "second")
    stability = ("edge_stability", "feature_stability")
    assert values_of(results, "random", stability) != values_of(results, "second", stability)


def test_a_name_that_is_the_explainers_own_changes_no_seed():
    explainers = [gg.RandomExplainer(), gg.GNNExplainer(epochs=2), gg.GNNExplainer(epochs=3)]
    evaluator = gg.Evaluator(node_model(), **QUICK)
    listed = evaluator.compare(explainers, TARGETS)
    names = ["random", "gnn_explainer(epochs=2)", "gnn_explainer(epochs=3)"]
    assert [explainer_seed(name, one, 5) for name, one in zip(names, explainers, strict=True)] == [
        5,
        5,
        5,
    ]
    named = evaluator.compare(dict(zip(names, explainers, strict=True)), TARGETS)
    assert {row.explainer for row in listed.rows} == set(names)
    clocks = ("time", "time_batched")
    assert [row.cell for row in named.rows if row.metric not in clocks] == [
        row.cell for row in listed.rows if row.metric not in clocks
    ]


def test_the_seed_under_a_name_depends_on_that_name_and_the_runs_seed_alone():
    random = gg.RandomExplainer()
    evaluator = gg.Evaluator(node_model(), **QUICK)
    alone = evaluator.compare({"second": random}, TARGETS)
    both = evaluator.compare({"first": random, "second": random}, TARGETS)
    chosen = [
        row.cell for row in both.rows if row.explainer == "second" and row.metric != "time_batched"
    ]
    assert [row.cell for row in alone.rows if row.metric != "time_batched"] == chosen
    assert (
        len(
            {
                explainer_seed(name, random, seed)
                for name in ("first", "second", "random")
                for seed in (0, 1)
            }
        )
        == 6
    )


def test_an_explanation_shown_later_is_the_one_that_was_judged():
    model = node_model()
    results = gg.Evaluator(model, **QUICK).compare(
        {"first": gg.RandomExplainer(), "second": gg.RandomExplainer()}, [3, 3]
    )
    for label in ("first", "second"):
        seed = explainer_seed(label, gg.RandomExplainer(), 0)
        expected = gg.RandomExplainer().explain(model, [3, 3], seed=seed)
        for x, y in zip(
            results.source.explain_several(label, [(3, 0), (3, 1)]), expected, strict=True
        ):
            assert x.edge_score.equal(y.edge_score)
            assert x.seed == y.seed == seed
        assert results.source.explanations[label, 3, 1]().edge_score.equal(expected[1].edge_score)


class Recorded:
    """The seeds that an explainer is run with."""

    seeds: set


@dataclass(frozen=True)
class SeedKeeper(gg.RandomExplainer):
    name = "seed keeper"

    def explain(self, model, targets, seed=0):
        Recorded.seeds.add(seed)
        return super().explain(model, targets, seed)


def test_explaining_and_timing_use_one_seed():
    Recorded.seeds = set()
    evaluator = gg.Evaluator(node_model(), **{**QUICK, "timed": 2, "stability": "none"})
    evaluator.compare({"own": SeedKeeper()}, TARGETS)
    assert Recorded.seeds == {explainer_seed("own", SeedKeeper(), 0)} != {0}


# --- clocks ---------------------------------------------------------------------------------------


class Clock:
    """Seconds that pass only when somebody says so."""

    def __init__(self):
        self.now = 0.0
        self.is_cold = True

    def __call__(self):
        return self.now


CLOCK = Clock()


@dataclass(frozen=True)
class SlowStart(gg.RandomExplainer):
    """Takes 100 seconds at its first call, then one for each target."""

    name = "slow start"

    def scores(self, model, graphs, seeds):
        CLOCK.now += len(graphs) + 100 * CLOCK.is_cold
        CLOCK.is_cold = False
        return super().scores(model, graphs, seeds)


@pytest.mark.parametrize("stability", ["none", "pairs"])
def test_a_cold_start_is_in_nobodys_time(monkeypatch, stability):
    CLOCK.__init__()
    monkeypatch.setattr(time, "perf_counter", CLOCK)
    results = gg.Evaluator(node_model(), **{**QUICK, "timed": 2, "stability": stability}).compare(
        SlowStart(), TARGETS
    )
    assert values_of(results, "slow start", ["time_batched"]) == [1.0, 1.0, 1.0]
    assert [value for value in values_of(results, "slow start", ["time"]) if value is not None] == [
        1.0,
        1.0,
    ]


def test_nothing_is_warmed_up_for_no_targets():
    CLOCK.__init__()
    assert len(gg.Evaluator(node_model(), **QUICK).compare(SlowStart(), [])) == 0
