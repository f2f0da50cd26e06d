"""Validation: shortlist, both measurements, the comparison with the benchmark, the choice, and the
decision.
"""

import json
from datetime import datetime, timezone

import fraud
import pytest
import torch
from support.chosen_results import GOOD, good
from support.chosen_results import run as made

from graphgauge.cli.validate import _validation_text
from graphgauge.core.errors import BadModel, BadSetting
from graphgauge.evaluation import Evaluator, Results, Settings
from graphgauge.explainers import InputXGradient, RandomExplainer, Saliency
from graphgauge.guidelines import TASK_KINDS, Requirements, consult, recommend, shipped_benchmark
from graphgauge.lifecycle import Decision, SignOff, validate
from graphgauge.lifecycle.benchmark_comparison import (
    BenchmarkComparison,
    _benchmark_size,
    _comparison_note,
    _GraphSize,
    compare_with_benchmark,
)
from graphgauge.lifecycle.digests import digest_of_results
from graphgauge.lifecycle.documents import write_documents
from graphgauge.lifecycle.early_stop_cost import (
    exhaustive_settings,
    measure_trade_off,
    production_settings,
    with_settings,
)
from graphgauge.lifecycle.shortlist import build_shortlist
from graphgauge.metrics import Sparsity
from graphgauge.models import NodeClassificationModel

NOW = datetime(2026, 11, 15, 12, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def model():
    data = fraud.week(0)
    return NodeClassificationModel(fraud.trained(data, epochs=60), data)


@pytest.fixture(scope="module")
def found(model):
    """A validation on 12 targets with two named explainers."""
    evaluator = Evaluator(model, seed=3, task="fraud")
    wanted = Requirements(limits={"feature_ec": 7, "edge_ec": 10})
    return validate(
        evaluator,
        evaluator.sample(12),
        [InputXGradient(), Saliency()],
        wanted,
        SignOff("Ada", 30, 0.9, NOW),
    )


# --- shortlist ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TASK_KINDS)
def test_the_shortlist_begins_with_the_recommendation_and_who_fails_in_the_benchmark_comes_last(
    kind,
):
    names = build_shortlist(kind, size=8).names
    assert names[0] == consult(kind).chosen
    table = shipped_benchmark()
    own = {
        (row.explainer, row.metric): row.mean for row in table[table["task"] == kind].itertuples()
    }
    fails = [
        min(own[name, "feature_pertinence"], own[name, "edge_pertinence"]) < 0.6
        or min(own[name, "feature_stability"], own[name, "edge_stability"]) < 0.8
        or own[name, "time"] >= 5
        for name in names
    ]
    assert fails[1:] == sorted(fails[1:])
    assert len(names) == len(set(names)) == 8
    assert build_shortlist(kind).names == names[:3]


def test_own_limits_do_not_empty_the_shortlist_but_the_use_counts(monkeypatch):
    strict = Requirements(limits={"feature_ec": "1%", "edge_pertinence": 0.99}, num_features=3)
    assert build_shortlist("node_classification", strict) == build_shortlist("node_classification")
    quick = build_shortlist(
        "node_classification", Requirements(latency="interactive"), size=8
    ).names
    table = shipped_benchmark()
    slow = table.assign(
        mean=table["mean"].where((table["metric"] != "time") | (table["explainer"] != "lrp"), 0.31)
    )
    for room in ("lifecycle.shortlist", "guidelines.recommendation"):
        monkeypatch.setattr(f"graphgauge.{room}.shipped_benchmark", lambda: slow)
    slowed = build_shortlist(
        "node_classification", Requirements(latency="interactive"), size=8
    ).names
    assert quick.index("lrp") < quick.index("gnn_explainer")
    assert slowed.index("lrp") > slowed.index("gnn_explainer")
    assert build_shortlist("node_classification", size=8).names == quick


def test_node_tasks_stand_in_for_graph_tasks_and_that_is_told():
    found = build_shortlist("graph_classification")
    assert found.names == build_shortlist("node_classification").names
    assert "node classification stands in" in found.source


# --- settings of both measurements ----------------------------------------------------------------


@pytest.mark.parametrize(
    "preset",
    [
        Settings(),
        Settings(early_stop="none", trials=(100, 100), stability="pairs", headline="twins"),
    ],
)
def test_one_measurement_makes_every_trial_and_the_other_stops_early(preset):
    every, short = exhaustive_settings(preset), production_settings(preset)
    assert (every.early_stop, every.trials, every.twins) == ("none", (100, 100), True)
    assert (short.early_stop, short.trials, short.stability, short.twins) == (
        "paper",
        (30, 100),
        "binomial",
        False,
    )
    untouched = ("early_stop", "trials", "stability", "twins", "headline")
    assert {**vars(short), **dict.fromkeys(untouched)} == {
        **vars(preset),
        **dict.fromkeys(untouched),
    }


def test_fewer_trials_than_the_least_and_no_stability_stay_as_they_are():
    short = production_settings(Settings(trials=(5, 10), stability="none", early_stop="betting"))
    assert (short.trials, short.stability, short.early_stop) == ((10, 10), "none", "betting")


def test_metrics_beside_the_papers_are_left_out_where_there_are_no_full_curves(model):
    evaluator = Evaluator(model, metrics=[Sparsity()], extras=True)
    assert with_settings(evaluator, production_settings(evaluator.settings)).metrics == ()
    assert (
        with_settings(evaluator, exhaustive_settings(evaluator.settings)).metrics
        == evaluator.metrics
    )
    assert evaluator.settings.twins


# --- the whole ------------------------------------------------------------------------------------


def test_the_choice_is_that_of_the_guidelines_on_the_same_rows(found):
    assert found.decision.label == recommend(found.results, found.decision.wanted())[0].chosen
    assert {row.explainer for row in found.results.rows} == {
        "input_x_gradient",
        "saliency",
        "random",
    }


def test_a_validation_measures_what_the_evaluator_measures(found, model):
    evaluator = Evaluator(model, seed=3, task="fraud", early_stop="none", trials=(100, 100))
    twin = evaluator.compare(
        [InputXGradient(), Saliency(), RandomExplainer()], evaluator.sample(12)
    )
    exact = [
        (row.explainer, row.target, row.metric, row.cell.value)
        for row in twin.rows
        if not row.metric.startswith("time")
    ]
    own = [
        (row.explainer, row.target, row.metric, row.cell.value)
        for row in found.results.rows
        if not row.metric.startswith("time")
    ]
    assert own == exact


def test_the_trade_off_is_counted_by_hand(found):
    cost = found.trade_off
    every, short = (results.to_pandas() for results in (found.results, found.production))
    for loss in cost.losses:
        a, b = (
            part[(part["explainer"] == cost.explainer) & (part["metric"] == loss.metric)]
            .set_index("target")["value"]
            .dropna()
            for part in (every, short)
        )
        gaps = [abs(a[target] - b[target]) for target in a.index]
        assert loss.n == len(gaps)
        assert (loss.mean_difference, loss.largest_difference) == (
            pytest.approx(sum(gaps) / len(gaps)),
            pytest.approx(max(gaps)),
        )
        assert (loss.exhaustive, loss.production) == (
            pytest.approx(a.mean()),
            pytest.approx(b.mean()),
        )
    assert cost.trials[0] == 100
    assert 30 <= cost.trials[1] < 100
    assert cost.seconds[0] > 0
    assert cost.saved == 1 - cost.seconds[1] / cost.seconds[0]


@pytest.mark.parametrize(
    ("moved", "accepted", "changed"),
    [(0.85, True, ()), (0.805, True, ()), (0.795, False, ()), (0.59, False, ("edge_pertinence",))],
)
def test_early_stopping_is_accepted_where_no_mean_moves_by_more_than_epsilon_and_no_verdict_changes(
    moved, accepted, changed
):
    wanted = Requirements("node_classification", num_features=200)
    short = made({"lrp": good(edge_pertinence=moved)})
    cost = measure_trade_off((made({"lrp": GOOD}), 4.0), (short, 1.0), "lrp", wanted)
    assert (cost.is_accepted, cost.changed_verdicts, cost.saved) == (accepted, changed, 0.75)


def test_no_saving_is_told_as_a_negative_one():
    wanted = Requirements("node_classification", num_features=200)
    cost = measure_trade_off((made({"lrp": GOOD}), 3.0), (made({"lrp": GOOD}), 4.26), "lrp", wanted)
    assert str(cost).startswith("early stopping saves nothing of 3 s; ")
    # the number itself stays what was measured
    assert cost.record()["saved"] == pytest.approx(-0.42)


def test_a_verdict_that_changes_within_epsilon_is_not_accepted():
    wanted = Requirements("node_classification", num_features=200)
    both = made({"lrp": good(edge_pertinence=0.61)}), made({"lrp": good(edge_pertinence=0.59)})
    cost = measure_trade_off((both[0], 1.0), (both[1], 1.0), "lrp", wanted)
    assert (cost.is_accepted, cost.changed_verdicts) == (False, ("edge_pertinence",))


def test_the_decision_holds_everything_that_later_steps_ask_for(found, model):
    own = found.decision
    assert own.check(model, NOW) == []
    assert own.chosen().name == own.explainer
    assert own.wanted().limits == {"feature_ec": 7, "edge_ec": 10}
    assert (own.signed_by, own.made, own.expires) == (
        "Ada",
        "2026-11-15T12:00:00+00:00",
        "2026-12-15T12:00:00+00:00",
    )
    assert own.targets == 12
    assert own.rows == digest_of_results(found.results)
    assert own.measured_with() == found.results.settings
    assert own.monitor_with() == (
        found.production.settings if found.trade_off.is_accepted else found.results.settings
    )
    assert (own.numbers()[0].metric, own.numbers()[0].n) == ("feature_pertinence", 12)
    means = found.results.summary()["mean"][own.label]
    assert {each.metric: each.number for each in own.numbers()} == {
        each.metric: pytest.approx(means[each.metric]) for each in own.numbers()
    }
    assert own.description == {
        "wrapper": "NodeClassificationModel",
        "network": "FraudGAT",
        "hops": 2,
        "nodes": 600,
        "edges": 2160,
        "features": 8,
    }


def test_few_targets_are_a_warning(found):
    assert "Only 12 targets were measured; 100 or more are asked for." in found.decision.warnings
    assert not any("accuracy" in text for text in found.decision.warnings)  # it was given


def test_explainers_that_are_named_are_called_the_projects_list_and_no_shortlist_is_spoken_of(
    found, tmp_path
):
    own = found.decision
    assert (own.consultation["names"], own.consultation["source"]) == (
        ["input_x_gradient", "saliency"],
        "the project's own list",
    )
    assert not any("shortlist" in warning for warning in own.warnings)
    write_documents(found.save(tmp_path / "run"), tmp_path / "documents", own)
    pages = [
        (tmp_path / name).read_text()
        for name in ("run/validation.md", "documents/explainability.md")
    ]
    for text in [_validation_text(found, tmp_path), *pages]:
        assert "shortlist" not in text.lower()
        assert "(the project's own list)" in text


def test_saved_files_are_read_by_the_steps_after(found, tmp_path):
    called = []
    found.save(tmp_path, [lambda own, place: called.append((own, place))])
    assert called == [(found, tmp_path)]
    assert Decision.read(tmp_path) == found.decision
    assert digest_of_results(Results.load(tmp_path)) == found.decision.rows
    assert Results.load(tmp_path / "production").settings == found.production.settings
    page = (tmp_path / "validation.md").read_text()
    assert page.startswith("# Validation of explanations")
    assert all(line.note.split(" (")[0] in page for line in found.comparison if line.note)
    assert json.loads((tmp_path / "decision.json").read_text())["digest"] == found.decision.digest


def test_the_network_is_untouched(model):
    before = [parameter.clone() for parameter in model.net.parameters()]
    evaluator = Evaluator(model, trials=(2, 2))
    validate(evaluator, evaluator.sample(2), [Saliency()])
    assert all(torch.equal(a, b) for a, b in zip(before, model.net.parameters(), strict=True))


def test_without_explainers_the_shortlist_and_the_baseline_are_measured(model, tmp_path):
    evaluator = Evaluator(model, trials=(2, 2), stability="none")
    found = validate(evaluator, evaluator.sample(2))
    assert {row.explainer for row in found.results.rows} == {
        *build_shortlist("node_classification").names,
        "random",
    }
    assert found.decision.consultation == build_shortlist("node_classification").record()
    assert (
        f"Shortlist: {', '.join(build_shortlist('node_classification').names)} (from "
        in _validation_text(found, tmp_path)
    )
    assert found.decision.signed_by == ""


@pytest.mark.parametrize(
    ("explainers", "requirements", "message"),
    [
        ([RandomExplainer()], None, "needs an explainer besides 'random'"),
        ([Saliency()], Requirements("link_regression"), "the model is for node_classification"),
    ],
)
def test_what_cannot_be_validated_is_refused_before_anything_is_measured(
    model, explainers, requirements, message
):
    with pytest.raises(BadSetting, match=message):
        validate(Evaluator(model), [0], explainers, requirements)


def test_a_decision_without_days_is_refused(model):
    evaluator = Evaluator(model, trials=(2, 2), stability="none")
    with pytest.raises(BadSetting, match="1 day or more"):
        validate(evaluator, [0], [Saliency()], terms=SignOff(days=0))


class Picky(Saliency):
    """An explainer that no network is good enough for."""

    name = "picky"

    def explain(self, model, targets, seed=0):
        raise BadModel("it has too few layers.")


def test_an_explainer_that_cannot_be_run_is_left_out_and_told(model):
    evaluator = Evaluator(model, trials=(2, 2), stability="none")
    found = validate(evaluator, [0, 1], {"saliency": Saliency(), "picky": Picky()})
    assert "picky cannot be run on this network: it has too few layers." in found.decision.warnings
    assert {row.explainer for row in found.results.rows} == {"saliency", "random"}
    with pytest.raises(BadModel, match="no explainer can be run on this network"):
        validate(evaluator, [0, 1], {"picky": Picky()})
    with pytest.raises(BadSetting, match="there is none"):
        validate(evaluator, [], [Saliency()])


# --- beside the benchmark -------------------------------------------------------------------------


def test_the_benchmarks_degree_is_that_of_its_data_sets():
    found = _benchmark_size("node_classification")  # Cora, GitHub, BA-Shapes
    assert found.degree == pytest.approx((8448 / 2708 + 462406 / 37700 + 3942 / 700) / 3)
    assert found.features == pytest.approx((1433 + 128 + 700) / 3)
    assert _benchmark_size("node_regression").features == pytest.approx((404 + 16) / 2)


LOWER, HIGHER = (
    f"is {word} than the benchmark's by more than 2 of its SDs " for word in ("lower", "higher")
)
OWN, OTHER = _GraphSize(14.0, 8, 2), _GraphSize(7.0, 700, 2)  #: degree, features, layers


def test_a_note_names_both_numbers_and_a_reason():
    assert _comparison_note(
        BenchmarkComparison("lrp", "edge_ec", 30.0, 100, 10.0, 4.0), OWN, OTHER
    ) == (
        "Your edge effective compactness with lrp is 3x the benchmark's (30, mean of 100 targets, "
        "against 10): higher degree (14 against 7)."
    )


@pytest.mark.parametrize(
    ("metric", "own", "benchmark", "sd", "said"),
    [
        (
            "edge_ec",
            20.0,
            10.0,
            4.0,
            (
                "is 2x the benchmark's (20, mean of 9 targets, against 10): higher degree (14 "
                "against 7)."
            ),
        ),
        ("edge_ec", 19.9, 10.0, 4.0, ""),
        (
            "edge_ec",
            5.0,
            10.0,
            4.0,
            "the degree does not explain it (14 against 7): look at the data and the network.",
        ),
        (
            "feature_ec",
            20.0,
            10.0,
            4.0,
            "features do not explain it (8 against 700): look at the data and the network.",
        ),
        (
            "feature_ec",
            2.0,
            10.0,
            4.0,
            "against 10): fewer features (8 against 700).",
        ),
        ("time", 0.09, 0.03, 0.1, "against 0.03 s): other hardware, or larger computation graphs."),
        ("time", 0.08, 0.03, 0.1, ""),
        (
            "edge_pertinence",
            0.5,
            0.9,
            0.1,
            LOWER + "(0.5, mean of 9 targets, against 0.9).",
        ),
        ("edge_pertinence", 0.75, 0.9, 0.1, ""),
        ("edge_stability", 0.97, 1.0, 0.0, ""),
        (
            "edge_stability",
            1.0,
            0.9,
            0.0,
            HIGHER + "(1, mean of 9 targets, against 0.9).",
        ),
        ("edge_stability", 0.5, 1.0, None, ""),
    ],
)
def test_what_differs_much_is_told_and_the_rest_is_not(metric, own, benchmark, sd, said):
    note = _comparison_note(BenchmarkComparison("lrp", metric, own, 9, benchmark, sd), OWN, OTHER)
    assert note.endswith(said)
    assert bool(note) == bool(said)


def test_depth_is_a_reason_too():
    line = BenchmarkComparison("lrp", "edge_ec", 30.0, 100, 10.0, 4.0)
    assert _comparison_note(line, _GraphSize(7.0, 8, 3), _GraphSize(7.0, 700, 2)).endswith(
        "against 10): more layers (3 against 2)."
    )


def test_every_number_that_the_benchmark_has_stands_beside_it(found, model):
    cells = shipped_benchmark().set_index(["task", "explainer", "metric"])["mean"]
    lines = compare_with_benchmark(found.results, model, found.decision.wanted())
    # the benchmark has no random explainer
    assert {line.explainer for line in lines} == {"input_x_gradient", "saliency"}
    assert len(lines) == 14
    means = found.results.summary()["mean"]
    for line in lines:
        assert line.benchmark == cells["node_classification", line.explainer, line.metric]
        assert line.own == pytest.approx(means[line.explainer, line.metric])
        assert line.record()["ratio"] == pytest.approx(line.own / line.benchmark)


def test_a_missing_number_is_left_out(model):
    lines = compare_with_benchmark(
        made({"lrp": good(edge_ec="empty")}), model, Requirements("node_classification")
    )
    assert "edge_ec" not in {line.metric for line in lines}


def test_a_benchmark_of_zero_has_no_ratio():
    line = BenchmarkComparison("lrp", "edge_ec", 3.0, 100, 0.0, 1.0)
    assert line.ratio is None
    assert _comparison_note(line, _GraphSize(1, 1, 1), _GraphSize(1, 1, 1)) == ""
