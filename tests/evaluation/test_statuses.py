"""A reason for each missing number, and never a number where there is none."""

import dataclasses
import itertools
import math

import pytest
import torch
from support.hand_computed_networks import OfNodes, explanation, graph, own_features
from support.quick_evaluation import QUICK, cells_of, node_model, numbers, shared
from support.small_networks import Stack, build, random_graph
from torch_geometric.nn import SAGEConv

import graphgauge as gg
from graphgauge.core.errors import GraphgaugeWarning
from graphgauge.evaluation import STATUSES, curve_measurement
from graphgauge.explainers import OtherTaskExplainer
from graphgauge.metrics import Metric


@dataclasses.dataclass(frozen=True)
class Sentence(OtherTaskExplainer):
    """No scores."""

    name = "sentence"
    deterministic = True

    def outcome(self, model, target, seed):
        return "because"


@dataclasses.dataclass(frozen=True)
class WithoutValue(Metric):
    """A metric of one's own that has no value for anything."""

    name = "without_value"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "scores"

    def __call__(self, bundle):
        return torch.full((len(bundle.score),), torch.nan)


def a_star(read=lambda x, sent: sent - 0.5, output="logits", **options):
    """Nodes 1, 2 and 3 send 1 to node 0; node 4 stands alone."""
    data = graph([(1, 0), (2, 0), (3, 0)], [[1.0]] * 5)
    return gg.NodeClassificationModel(
        OfNodes(read), data, embedding=own_features, output=output, **options
    )


def by_table(*table):
    """The logit of a node that is sent k ones is entry k."""
    return lambda x, sent: torch.tensor(table)[sent.round().long().clamp(0, len(table) - 1)]


def judged(model, target=0, edge_score=(3, 2, 1), feature_score=None, **settings):
    """Cells of scores made by hand."""
    features = [[1.0]] * 5 if feature_score is None else feature_score
    return cells_of(
        gg.Evaluator(model, **{**QUICK, **settings}).evaluate(
            explanation(model, target, edge_score, features)
        )
    )


def judged_with_truth(mask):
    """Cells of three edge scores beside a truth, or none."""
    model = a_star()
    x = explanation(model, 0, (3, 2, 1), [[1.0]] * 5)
    return cells_of(gg.Evaluator(model, **QUICK).evaluate(x, truth={"edge": {0: mask}}))


def with_max_aggregation():
    net = build(Stack, lambda a, b: SAGEConv(a, b, aggr="max"))
    model = gg.NodeClassificationModel(net, random_graph())
    with pytest.warns(GraphgaugeWarning, match=r"edge_removal='drop'"):
        return cells_of(gg.Evaluator(model, **QUICK).compare(gg.Saliency(), [3]))


def of_another_class():
    model = node_model()
    return cells_of(
        gg.Evaluator(model, **QUICK).compare(
            gg.Saliency(), [3], label=(model.pred_discrete([3]) + 1) % 2
        )
    )


def same_score_for_all(model, target):
    return torch.ones(4, 1), torch.ones(3)


OCCURRENCES = {
    "ok": ("edge_ec", lambda: judged(a_star())),
    "empty": ("edge_ec", lambda: judged(a_star(), target=4)),
    "no_reference": ("feature_ec", lambda: judged(a_star(lambda x, sent: 0 * sent - 1))),
    "no_scores": (
        "edge_pertinence",
        lambda: cells_of(gg.Evaluator(a_star(), **QUICK).compare(Sentence(), [0])),
    ),
    "nan_attribution": (
        "edge_pertinence_tied",
        lambda: judged(a_star(), edge_score=(1, math.nan, 2)),
    ),
    "nan_prediction": ("edge_ec", lambda: judged(a_star(by_table(-1.0, -1.0, math.nan, 1.0)))),
    "not_predicted": ("edge_ec", of_another_class),
    "no_mask": ("edge_ec", with_max_aggregation),
    "no_explainer": ("edge_stability", lambda: judged(a_star())),
    "constant": (
        "edge_stability_corrected",
        lambda: cells_of(
            gg.Evaluator(a_star(), **QUICK).compare(gg.CallableExplainer(same_score_for_all), [0])
        ),
    ),
    "all_selected": ("edge_fidelity_plus", lambda: judged(a_star(), extras=True)),
    "no_truth": ("edge_auroc", lambda: judged_with_truth(None)),
    "one_sided_truth": ("edge_auroc", lambda: judged_with_truth(torch.ones(3, dtype=torch.bool))),
    "undefined": ("edge_without_value", lambda: judged(a_star(), metrics=[WithoutValue()])),
    "not_timed": (
        "time",
        lambda: cells_of(gg.Evaluator(node_model(), **QUICK).compare(gg.Saliency(), [3])),
    ),
}


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_occurs(status):
    metric, run = OCCURRENCES[status]
    cell = run()[metric]
    assert cell.status == status
    assert (cell.value is not None) == (status == "ok")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers_are_never_judged_and_leave_the_other_side_alone(bad):
    spoiled, whole = judged(a_star(), edge_score=(bad, 1, 2)), judged(a_star())
    for metric, cell in spoiled.items():
        if metric.startswith("edge_") and "stability" not in metric:
            assert (cell.status, cell.value) == ("nan_attribution", None)
        else:
            assert cell == whole[metric]


def test_a_network_that_predicts_nan_on_the_way_gets_no_score():
    """With 3 edges the network predicts class 1, with 2 edges NaN, and with 1 edge class 0.

    A flip behind a NaN does not count.
    """
    cells = judged(a_star(by_table(-1.0, -1.0, math.nan, 1.0)))
    assert {
        cell.status
        for metric, cell in cells.items()
        if metric.startswith("edge_") and "stab" not in metric
    } == {"nan_prediction"}


def test_nan_in_the_probability_of_another_class_counts_too():
    rows = torch.tensor([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3], [0.6, math.nan, 0.4], [0.6, 0.3, 0.1]])
    model = a_star(lambda x, sent: rows[sent[:, 0].round().long().clamp(0, 3)], output="probs")
    assert judged(model)["edge_ec"].status == "nan_prediction"


def test_nan_behind_what_a_number_reads_does_not_touch_it():
    """3 edges: class 1. 2: class 0. 1: NaN. The EC is 1, and pertinence reads one step; the twins
    read all.
    """
    model = a_star(by_table(-1.0, math.nan, -1.0, 1.0))
    cells = judged(model)
    assert (cells["edge_ec"].value, cells["edge_ec"].flipped, cells["edge_pertinence"].value) == (
        1,
        True,
        0.0,
    )
    assert {cells[f"edge_pertinence_{twin}"].status for twin in ("tied", "rank", "p")} == {
        "nan_prediction"
    }
    without = judged(model, twins=False)
    assert [without[name] for name in ("edge_ec", "edge_pertinence")] == [
        cells[name] for name in ("edge_ec", "edge_pertinence")
    ]


def test_nan_that_only_another_explainer_meets_changes_nothing():
    """Node 0 is class 1 while edge 0 is there. One explainer removes it first and reads no further;
    the other meets a NaN at 10.
    """

    def read(x, sent):
        return torch.where(sent == 10, math.nan, sent - 5)

    data = graph([(1, 0, 10.0), (2, 0), (3, 0)], [[1.0]] * 4)
    model = gg.NodeClassificationModel(OfNodes(read), data, embedding=own_features, output="logits")
    first, last = (
        explanation(model, 0, scores, explainer=name)
        for scores, name in (([3, 2, 1], "first"), ([1, 2, 3], "last"))
    )
    evaluator = gg.Evaluator(model, **{**QUICK, "twins": False})
    both = numbers(evaluator.evaluate([first, last]), ("edge_ec", "edge_pertinence"))
    assert both["last", 0, 0, "edge_ec"].status == "nan_prediction"
    first.metrics.clear()
    alone, again = shared(numbers(evaluator.evaluate([first])), both)
    assert alone == again
    assert alone["first", 0, 0, "edge_ec"].value == 1
    assert alone["first", 0, 0, "edge_pertinence"].status == "ok"


def test_rounding_is_no_change_of_constant_values():
    """Each message moves 0.1 by a bit or so: no flip, no win."""
    data = graph([(k, 0) for k in (1, 2, 3)], [[1.0]] * 4)

    def read(x, sent):
        return 0.1 + 1e-8 * sent

    model = gg.NodeRegressionModel(OfNodes(read), data, embedding=own_features)
    cells = cells_of(gg.Evaluator(model, **QUICK).evaluate(explanation(model, 0, [1, 2, 3])))
    assert 0 < model.spread < 1e-7
    assert (cells["edge_ec"].value, cells["edge_ec"].flipped) == (3, False)
    assert [
        cells[f"edge_{name}"].value for name in ("pertinence", "pertinence_tied", "pertinence_abs")
    ] == [0, 0.5, 0.5]


def test_explainers_without_scores_have_a_time_and_nothing_else():
    results = gg.Evaluator(node_model(), **{**QUICK, "timed": 1}).compare(Sentence(), [3, 20])
    status = {(row.target, row.metric): row.cell.status for row in results.rows}
    assert (status[3, "time"], status[20, "time"]) == ("ok", "not_timed")
    assert {why for (_, metric), why in status.items() if metric == "time_batched"} == {"ok"}
    assert {why for (_, metric), why in status.items() if not metric.startswith("time")} == {
        "no_scores"
    }
    assert all(row.cell.value > 0 for row in results.rows if row.cell.status == "ok")


def test_an_isolated_node_has_features_but_no_edges():
    cells = cells_of(gg.Evaluator(node_model(), **QUICK).compare(gg.Saliency(), [59]))
    assert cells["edge_ec"].status == cells["edge_stability"].status == "empty"
    assert cells["feature_ec"].status == cells["feature_stability"].status == "ok"


#: explanations that are zero in turn: pairs have one each (1/2), of all pairs of four two are of a
#: kind (1)
LIKENESS = {"pairs": 1 / 2, "binomial": (2 * 1 + 4 / 2) / 6}


def zeros_in_turn(factor):
    """Scores 0, factor, 0, factor ... from call to call."""
    calls = itertools.count()

    def scores(model, target):
        cut, value = model.computation_graphs([target])[0], float(factor * (next(calls) % 2))
        return torch.full((len(cut.nodes), 6), value), torch.full((len(cut.edges),), value)

    return scores


@pytest.mark.parametrize("form", [{"stability": "binomial", "calls": 4}, {"stability": "pairs"}])
def test_stability_of_explanations_that_are_all_zero_says_so(form):
    evaluator = gg.Evaluator(node_model(), **{**QUICK, **form})
    never = cells_of(evaluator.compare(gg.CallableExplainer(zeros_in_turn(0)), [3]))
    half = cells_of(evaluator.compare(gg.CallableExplainer(zeros_in_turn(1)), [3]))
    made = 4 if form["stability"] == "binomial" else 2 * QUICK["trials"][0]
    for side in ("edge", "feature"):
        assert (never[f"{side}_stability"].value, half[f"{side}_stability"].value) == pytest.approx(
            (1, LIKENESS[form["stability"]])
        )
        assert (
            never[f"{side}_stability"].message
            == f"all scores are 0 in {made} of {made} explanations"
        )
        assert (
            half[f"{side}_stability"].message
            == f"all scores are 0 in {made // 2} of {made} explanations"
        )
        assert never[f"{side}_ec"].message is None


def test_stability_of_features_alone_says_so():
    cells = cells_of(gg.Evaluator(node_model(), **QUICK).compare(gg.Saliency(), [59]))
    assert (
        cells["feature_stability"].message
        == "no other node can reach the target: its own features alone"
    )


def test_an_explainer_of_one_side_has_no_scores_of_the_other():
    def of_edges(model, target):
        return None, torch.arange(len(model.computation_graphs([target])[0].edges)).float()

    cells = cells_of(
        gg.Evaluator(node_model(), **QUICK).compare(gg.CallableExplainer(of_edges), [3])
    )
    assert {cell.status for metric, cell in cells.items() if metric.startswith("feature")} == {
        "no_scores"
    }
    assert cells["edge_ec"].status == cells["edge_stability"].status == "ok"


def test_time_is_asked_for_the_first_targets_only():
    results = gg.Evaluator(node_model(), **{**QUICK, "timed": 2}).compare(gg.Saliency(), [5, 3, 20])
    assert [row.cell.status for row in results.rows if row.metric == "time"] == [
        "ok",
        "ok",
        "not_timed",
    ]


def test_nan_under_a_further_draw_of_the_neighbours_map_leaves_no_ec_of_features(monkeypatch):
    model, measured = node_model(), curve_measurement.measure_explanation_curves

    def with_gaps(*given, all_steps):
        height, flips = measured(*given, all_steps=all_steps)
        return torch.full_like(height, math.nan), flips

    x = gg.Saliency().explain(model, [3])[0]
    evaluator = gg.Evaluator(model, draws=3, **QUICK)
    before = cells_of(evaluator.evaluate(x))
    x.metrics.clear()
    monkeypatch.setattr(curve_measurement, "measure_explanation_curves", with_gaps)
    after = cells_of(evaluator.evaluate(x))
    assert (before["feature_ec"].status, after["feature_ec"].status) == ("ok", "nan_prediction")
    assert after["edge_ec"] == before["edge_ec"]
    assert after["feature_pertinence_tied"] == before["feature_pertinence_tied"]
