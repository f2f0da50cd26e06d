"""What every evaluation promises: a reason for each missing number, the same numbers in any company, and nothing left behind."""

import dataclasses
import itertools
import json
import math
import random

import numpy as np
import pytest
import torch
from made_networks import OfNodes, explanation, graph, own_features
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from zoo import EncodeDecode, LinkForward, Pooled, Stack, build, random_graph

import graphgauge as gg
from graphgauge.core.errors import BadExplanation, BadFile, BadSetting, BadTarget, GraphgaugeWarning, UnknownName
from graphgauge.core.seeds import derive_seed
from graphgauge.evaluation import STATUSES, Cell, Row, Settings, evaluator, identity
from graphgauge.explainers import OtherTaskExplainer
from graphgauge.perturbation import random_orders

QUICK = {"trials": (4, 12), "twin_trials": 5, "timed": 0, "permutations": 3}
EXPLAINERS = [gg.Saliency(), gg.RandomExplainer(), gg.GNNExplainer(epochs=2)]


def node_model(**options):
    return gg.NodeClassificationModel(build(Stack, GCNConv, seed=4), random_graph(undirected=True), **options)


def values_model(**options):
    return gg.NodeRegressionModel(build(Stack, GATConv, out=1), random_graph(), **options)


def link_model(**options):
    return gg.LinkClassificationModel(build(EncodeDecode, seed=2), random_graph(undirected=True), **options)


def graph_model(**options):
    net, data = build(Pooled), [random_graph(12 + k, 24, seed=k) for k in range(6)]
    with torch.no_grad():
        net.lin.bias -= torch.stack([net(g.x, g.edge_index)[0] for g in data]).mean(0)  # so that classes differ
    return gg.GraphClassificationModel(net, data, **options)


MODELS = {
    "nodes": (node_model, [3, 20, 41]),
    "values": (values_model, [3, 20, 41]),
    "links": (link_model, [(3, 20), (41, 5)]),
    "graphs": (graph_model, [4, 0, 2]),
}


def numbers(results, metrics=None):
    """Everything but clocks, by (explainer, target, occurrence, metric)."""
    return {
        (row.explainer, row.target, row.occurrence, row.metric): row.cell
        for row in results.rows
        if not row.metric.startswith("time") and (metrics is None or row.metric in metrics)
    }


def shared(first, second):
    """The numbers that two evaluations both have, twice; there must be some."""
    keys = first.keys() & second.keys()
    assert keys
    return {key: first[key] for key in keys}, {key: second[key] for key in keys}


@pytest.fixture(params=MODELS, scope="module")
def compared(request):
    """A maker of models, targets and the numbers of all explainers."""
    make, targets = MODELS[request.param]
    return make, targets, numbers(gg.Evaluator(make(), **QUICK).compare(EXPLAINERS, targets))


def cells_of(results):
    """Cells of one explanation by metric."""
    return {row.metric: row.cell for row in results.rows}


# --- a reason for each missing number --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Sentence(OtherTaskExplainer):
    """No scores."""

    name = "sentence"
    deterministic = True

    def outcome(self, model, target, seed):
        return "because"


def a_star(read=lambda x, sent: sent - 0.5, output="logits", **options):
    """Nodes 1, 2 and 3 send 1 to node 0; node 4 stands alone."""
    data = graph([(1, 0), (2, 0), (3, 0)], [[1.0]] * 5)
    return gg.NodeClassificationModel(OfNodes(read), data, embedding=own_features, output=output, **options)


def by_table(*table):
    """The logit of a node that is sent k ones is entry k."""
    return lambda x, sent: torch.tensor(table)[sent.round().long().clamp(0, len(table) - 1)]


def judged(model, target=0, edge_score=(3, 2, 1), feature_score=None, **settings):
    """Cells of scores made by hand."""
    features = [[1.0]] * 5 if feature_score is None else feature_score
    return cells_of(gg.Evaluator(model, **{**QUICK, **settings}).evaluate(explanation(model, target, edge_score, features)))


def with_max_aggregation():
    net = build(Stack, lambda a, b: SAGEConv(a, b, aggr="max"))
    model = gg.NodeClassificationModel(net, random_graph())
    with pytest.warns(GraphgaugeWarning, match=r"edge_removal='drop'"):
        return cells_of(gg.Evaluator(model, **QUICK).compare(gg.Saliency(), [3]))


def same_score_for_all(model, target):
    return torch.ones(4, 1), torch.ones(3)


OCCURRENCES = {
    "ok": ("edge_ec", lambda: judged(a_star())),
    "empty": ("edge_ec", lambda: judged(a_star(), target=4)),
    "no_reference": ("feature_ec", lambda: judged(a_star(lambda x, sent: 0 * sent - 1))),
    "no_scores": ("edge_pertinence", lambda: cells_of(gg.Evaluator(a_star(), **QUICK).compare(Sentence(), [0]))),
    "nan_attribution": ("edge_pertinence_tied", lambda: judged(a_star(), edge_score=(1, math.nan, 2))),
    "nan_prediction": ("edge_ec", lambda: judged(a_star(by_table(-1.0, -1.0, math.nan, 1.0)))),
    "no_mask": ("edge_ec", with_max_aggregation),
    "no_explainer": ("edge_stability", lambda: judged(a_star())),
    "constant": (
        "edge_stability_corrected",
        lambda: cells_of(gg.Evaluator(a_star(), **QUICK).compare(gg.CallableExplainer(same_score_for_all), [0])),
    ),
    "not_timed": ("time", lambda: cells_of(gg.Evaluator(node_model(), **QUICK).compare(gg.Saliency(), [3]))),
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
    """3 edges: class 1. 2: NaN. 1: class 0. The flip that is found behind the NaN is not believed."""
    cells = judged(a_star(by_table(-1.0, -1.0, math.nan, 1.0)))
    assert {cell.status for metric, cell in cells.items() if metric.startswith("edge_") and "stab" not in metric} == {
        "nan_prediction"
    }


def test_nan_in_the_probability_of_another_class_counts_too():
    rows = torch.tensor([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3], [0.6, math.nan, 0.4], [0.6, 0.3, 0.1]])
    model = a_star(lambda x, sent: rows[sent[:, 0].round().long().clamp(0, 3)], output="probs")
    assert judged(model)["edge_ec"].status == "nan_prediction"


def test_nan_behind_what_a_number_reads_does_not_touch_it():
    """3 edges: class 1. 2: class 0. 1: NaN. The EC is 1, and pertinence reads one step; the twins read all."""
    model = a_star(by_table(-1.0, math.nan, -1.0, 1.0))
    cells = judged(model)
    assert (cells["edge_ec"].value, cells["edge_ec"].flipped, cells["edge_pertinence"].value) == (1, True, 0.0)
    assert {cells[f"edge_pertinence_{twin}"].status for twin in ("tied", "rank", "p")} == {"nan_prediction"}
    without = judged(model, twins=False)
    assert [without[name] for name in ("edge_ec", "edge_pertinence")] == [cells[name] for name in ("edge_ec", "edge_pertinence")]


def test_nan_that_only_another_explainer_meets_changes_nothing():
    """Node 0 is class 1 while edge 0 is there. One explainer removes it first and reads no further; the other meets a NaN at 10."""

    def read(x, sent):
        return torch.where(sent == 10, math.nan, sent - 5)

    data = graph([(1, 0, 10.0), (2, 0), (3, 0)], [[1.0]] * 4)
    model = gg.NodeClassificationModel(OfNodes(read), data, embedding=own_features, output="logits")
    first, last = (explanation(model, 0, scores, explainer=name) for scores, name in (([3, 2, 1], "first"), ([1, 2, 3], "last")))
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
    assert [cells[f"edge_{name}"].value for name in ("pertinence", "pertinence_tied", "pertinence_abs")] == [0, 0.5, 0.5]


def test_explainers_without_scores_have_a_time_and_nothing_else():
    results = gg.Evaluator(node_model(), **{**QUICK, "timed": 1}).compare(Sentence(), [3, 20])
    status = {(row.target, row.metric): row.cell.status for row in results.rows}
    assert (status[3, "time"], status[20, "time"]) == ("ok", "not_timed")
    assert {why for (_, metric), why in status.items() if metric == "time_batched"} == {"ok"}
    assert {why for (_, metric), why in status.items() if not metric.startswith("time")} == {"no_scores"}
    assert all(row.cell.value > 0 for row in results.rows if row.cell.status == "ok")


def test_an_isolated_node_has_features_but_no_edges():
    cells = cells_of(gg.Evaluator(node_model(), **QUICK).compare(gg.Saliency(), [59]))
    assert cells["edge_ec"].status == cells["edge_stability"].status == "empty"
    assert cells["feature_ec"].status == cells["feature_stability"].status == "ok"


def test_an_explainer_of_one_side_has_no_scores_of_the_other():
    def of_edges(model, target):
        return None, torch.arange(len(model.computation_graphs([target])[0].edges)).float()

    cells = cells_of(gg.Evaluator(node_model(), **QUICK).compare(gg.CallableExplainer(of_edges), [3]))
    assert {cell.status for metric, cell in cells.items() if metric.startswith("feature")} == {"no_scores"}
    assert cells["edge_ec"].status == cells["edge_stability"].status == "ok"


def test_time_is_asked_for_the_first_targets_only():
    results = gg.Evaluator(node_model(), **{**QUICK, "timed": 2}).compare(gg.Saliency(), [5, 3, 20])
    assert [row.cell.status for row in results.rows if row.metric == "time"] == ["ok", "ok", "not_timed"]


# --- the same numbers in any company ---------------------------------------------------------------------------------


def test_numbers_do_not_depend_on_the_memory_budget(compared):
    make, targets, found = compared
    assert numbers(gg.Evaluator(make(memory_budget="600KiB"), **QUICK).compare(EXPLAINERS, targets)) == found


def test_numbers_do_not_depend_on_the_order_of_targets(compared):
    make, targets, found = compared
    assert numbers(gg.Evaluator(make(), **QUICK).compare(EXPLAINERS[::-1], targets[::-1])) == found


def test_numbers_do_not_depend_on_other_targets_or_explainers(compared):
    make, targets, found = compared
    alone = numbers(gg.Evaluator(make(), **QUICK).compare(EXPLAINERS[1], targets[1:2]))
    ours, theirs = shared(alone, found)
    assert len(ours) == len(alone)
    assert ours == theirs


def test_numbers_do_not_depend_on_the_number_of_threads(compared, two_threads):
    make, targets, found = compared
    few = {**QUICK, "twins": False}
    assert numbers(gg.Evaluator(make(), **few).compare(EXPLAINERS[1], targets[:1])).items() <= found.items()


def test_the_papers_numbers_do_not_depend_on_the_twins(compared):
    make, targets, found = compared
    without = numbers(gg.Evaluator(make(), **{**QUICK, "twins": False}).compare(EXPLAINERS, targets))
    ours, theirs = shared(without, found)
    assert len(ours) == len(without)
    assert ours == theirs


def test_the_papers_numbers_do_not_depend_on_how_many_curves_the_twins_need(compared):
    make, targets, found = compared
    paper = [metric for _, _, _, metric in found if metric.endswith(("_ec", "_pertinence", "_stability"))]
    more = numbers(gg.Evaluator(make(), **{**QUICK, "twin_trials": 9}).compare(EXPLAINERS[1], targets[:2]), paper)
    ours, theirs = shared(more, found)
    assert ours == theirs


def test_numbers_do_not_depend_on_how_many_targets_are_judged_at_a_time(compared, monkeypatch):
    make, targets, found = compared
    monkeypatch.setattr(evaluator, "MOST_HEIGHTS", 1)
    assert numbers(gg.Evaluator(make(), **QUICK).compare(EXPLAINERS[:2], targets)).items() <= found.items()


def test_calibrated_numbers_do_not_depend_on_company_either():
    quick = {**QUICK, "trials": (6, 6), "twin_trials": 6, "calls": 3}
    found = numbers(gg.Evaluator(node_model(), "calibrated", **quick).compare(EXPLAINERS[:2], [3, 20, 41]))
    alone = numbers(gg.Evaluator(node_model(memory_budget="600KiB"), "calibrated", **quick).compare(EXPLAINERS[1], [20]))
    assert alone.items() <= found.items()


@pytest.mark.parametrize("change", [{"seed": 1}, {"task": "other"}, {"name": "other"}])
def test_seed_task_and_name_change_what_is_drawn(change):
    model, constant = node_model(), gg.CallableExplainer(constant_scores, deterministic=True)
    found, other = (numbers(gg.Evaluator(model, **QUICK, **more).compare(constant, [3, 20, 41])) for more in ({}, change))
    assert found.keys() == other.keys()
    different = {key[-1] for key, cell in found.items() if other[key] != cell}
    assert {"edge_pertinence_tied", "feature_pertinence_tied"} <= different


def constant_scores(model, target):
    graph = model.computation_graphs([target])[0]
    return torch.ones(len(graph.nodes), 6), torch.ones(len(graph.edges))


def test_stability_draws_other_explanations_with_another_seed_or_name():
    model = node_model()
    values = [
        numbers(gg.Evaluator(model, **QUICK, **more).compare(gg.RandomExplainer(), [3]))["random", 3, 0, "edge_stability"].value
        for more in ({}, {"seed": 1}, {"task": "other"}, {"name": "other"})
    ]
    assert len(set(values)) == 4


def test_pertinence_is_that_of_the_random_orders_of_the_target():
    """The orders that everyone can draw from the seed of the target, counted by hand on an additive network."""
    weights = [8.0, 1.0, 4.0, 2.0]
    data = graph([(k, 0, w) for k, w in enumerate(weights, 1)], [[1.0]] * 5)
    model = gg.NodeRegressionModel(OfNodes(lambda x, sent: sent), data, embedding=own_features)
    settings = {**QUICK, "trials": (7, 7), "twin_trials": 7, "early_stop": "none"}
    cells = cells_of(gg.Evaluator(model, seed=5, task="t", name="n", **settings).evaluate(explanation(model, 0, [4, 3, 2, 1])))
    seed = derive_seed(5, "t", "n", 0, "edges")
    orders = random_orders(torch.tensor([4]), [seed], 100, 0, 7)[0, :, :4].tolist()
    edges = model.computation_graphs([0])[0].edges.tolist()
    curves = [[15 - sum(weights[edges[c]] for c in order[:k]) for k in (1, 2, 3, 4)] for order in orders]
    own = [7, 6, 2, 0]
    assert cells["edge_ec"].value == 1
    assert cells["edge_pertinence"].value == pytest.approx(sum(own[0] < curve[0] for curve in curves) / 7)
    halves = [[(a < b) + (a == b) / 2 for a, b in zip(own, curve, strict=True)] for curve in curves]
    assert cells["edge_pertinence_tied"].value == pytest.approx(sum(map(sum, halves)) / 28)
    assert cells["edge_pertinence_p"].value == pytest.approx((1 + sum(sum(curve) <= sum(own) for curve in curves)) / 8)


# --- what has been measured is not measured again --------------------------------------------------------------------


def test_a_second_evaluation_runs_neither_model_nor_explainer(monkeypatch):
    model = node_model()
    xs = gg.RandomExplainer().explain(model, [3, 20])
    evaluator = gg.Evaluator(model, **{**QUICK, "timed": 1})
    first = evaluator.evaluate(xs)

    def refuse(*args, **kwargs):
        raise AssertionError("was measured again")

    monkeypatch.setattr(type(model), "map", refuse)
    monkeypatch.setattr(gg.RandomExplainer, "scores", refuse)
    monkeypatch.setattr(model.net, "forward", refuse)
    second = evaluator.evaluate(xs)
    assert second.rows == first.rows


def test_numbers_come_back_from_a_saved_explanation(tmp_path, monkeypatch):
    model = node_model()
    x = gg.RandomExplainer().explain(model, [3])[0]
    first = gg.Evaluator(model, **QUICK).evaluate(x)
    x.save(tmp_path / "x.safetensors")
    loaded = gg.Xplanation.load(tmp_path / "x.safetensors")
    monkeypatch.setattr(gg.RandomExplainer, "scores", None)
    assert gg.Evaluator(model, **QUICK).evaluate(loaded).rows == first.rows


def test_metrics_hold_the_values_of_the_rows():
    model = node_model()
    x = gg.Saliency().explain(model, [59])[0]
    results = gg.Evaluator(model, **QUICK).evaluate(x)
    assert {row.metric: row.cell.value for row in results.rows} == {k: v for k, v in x.metrics.items() if k != evaluator.RECORD}
    assert x.metrics["edge_ec"] is None
    assert x.metrics["feature_ec"] >= 1


def test_changed_scores_are_measured_anew():
    model = node_model()
    x = gg.Saliency().explain(model, [3])[0]
    first = numbers(gg.Evaluator(model, **QUICK).evaluate(x))
    x.edge_score = -x.edge_score
    second = numbers(gg.Evaluator(model, **QUICK).evaluate(x))
    fresh = dataclasses.replace(x, metrics={})
    assert second == numbers(gg.Evaluator(model, **QUICK).evaluate(fresh)) != first


def test_changed_settings_seeds_and_names_are_measured_anew():
    model = node_model()
    x = gg.RandomExplainer().explain(model, [3])[0]
    for change in ({}, {"cap": 3}, {"seed": 1}, {"task": "a"}, {"name": "a"}, {"order": "magnitude"}):
        kept = numbers(gg.Evaluator(model, **{**QUICK, **change}).evaluate(x))
        assert kept == numbers(gg.Evaluator(model, **{**QUICK, **change}).evaluate(dataclasses.replace(x, metrics={})))


def test_changed_weights_are_measured_anew():
    model = node_model()
    x = gg.Saliency().explain(model, [3])[0]
    first = numbers(gg.Evaluator(model, **QUICK).evaluate(x))
    with torch.no_grad():
        for parameter in model.net.parameters():
            parameter.mul_(-3)
    second = numbers(gg.Evaluator(model, **QUICK).evaluate(x))
    assert second == numbers(gg.Evaluator(model, **QUICK).evaluate(dataclasses.replace(x, metrics={}))) != first


def test_numbers_of_one_explainer_do_not_serve_another():
    model = node_model()
    x = gg.RandomExplainer().explain(model, [3])[0]
    gg.Evaluator(model, **QUICK).evaluate(x)
    unnamed = dataclasses.replace(x, explainer="", params={})
    assert cells_of(gg.Evaluator(model, **QUICK).evaluate(unnamed))["edge_stability"].status == "no_explainer"


@pytest.mark.parametrize(
    "options", [{"embedding": lambda net, g: g.x}, {"forward": lambda net, g: net(g.x, g.edge_index).flip(1)}, {"num_hops": 3}]
)
def test_the_same_weights_called_in_another_way_are_another_model(options):
    net, data = build(Stack, GCNConv), random_graph()
    first, second = gg.NodeClassificationModel(net, data), gg.NodeClassificationModel(net, data, **options)
    assert identity.digest_of_model(first) != identity.digest_of_model(second)
    assert identity.digest_of_model(first) == identity.digest_of_model(gg.NodeClassificationModel(net, data))


@pytest.mark.parametrize("extra", [torch.ones(3, dtype=torch.bfloat16), torch.eye(3).to_sparse(), torch.tensor(True)])
def test_networks_with_unusual_buffers_can_be_named(extra):
    names = []
    for change in (extra, extra.to_dense().logical_not().to(extra.dtype)):
        net = build(Stack, GCNConv)
        net.register_buffer("extra", change)
        names.append(identity.digest_of_model(gg.NodeClassificationModel(net, random_graph())))
    assert names[0] != names[1]


# --- explanations from everywhere ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nodes", "values", "links"])
def test_an_explanation_of_the_whole_graph_is_judged_as_the_cut_one(kind):
    make, targets = MODELS[kind]
    model = make()
    x = gg.RandomExplainer().explain(model, targets[:1])[0]
    whole = gg.Xplanation.from_pyg(x.to_pyg(), x.target, explainer=x.explainer, params=x.params, seed=x.seed)
    assert len(whole.nodes) == 60 > len(x.nodes)
    evaluator = gg.Evaluator(model, **QUICK, extras=True)
    found = numbers(evaluator.evaluate(x))
    assert numbers(evaluator.evaluate(whole)) == found
    assert found[x.explainer, x.target, 0, "feature_sparsity"].status == "ok"


def test_scores_in_another_order_or_precision_are_the_same_scores():
    model = node_model()
    x = gg.RandomExplainer().explain(model, [3])[0]
    nodes, edges = (torch.randperm(len(ids), generator=torch.Generator().manual_seed(1)) for ids in (x.nodes, x.edges))
    turned = dataclasses.replace(
        x,
        metrics={},
        nodes=x.nodes[nodes],
        edges=x.edges[edges],
        feature_score=x.feature_score[nodes].double(),
        edge_score=x.edge_score[edges].double(),
    )
    assert numbers(gg.Evaluator(model, **QUICK).evaluate(turned)) == numbers(gg.Evaluator(model, **QUICK).evaluate(x))


def test_scores_too_close_for_single_precision_still_have_an_order():
    data = graph([(1, 0, 9.0), (2, 0, 0.0), (3, 0, 0.0)], [[1.0]] * 4)
    model = gg.NodeClassificationModel(OfNodes(lambda x, sent: sent - 5), data, embedding=own_features, output="logits")
    x = explanation(model, 0, [0, 0, 0])
    for decisive in range(1, 4):
        score = torch.ones(3, dtype=torch.float64)
        score[x.edges == 0] += 1e-12 * (2 - decisive)
        score[x.edges == 1] += 0.5e-12
        score[x.edges == 2] += -0.5e-12
        given = dataclasses.replace(x, edge_score=score, metrics={})
        assert cells_of(gg.Evaluator(model, **QUICK).evaluate(given))["edge_ec"].value == decisive


def test_a_target_named_twice_is_judged_twice():
    model = node_model()
    twice = gg.Evaluator(model, **QUICK).compare(gg.RandomExplainer(), [3, 20, 3])
    assert {(row.target, row.occurrence) for row in twice.rows} == {(3, 0), (20, 0), (3, 1)}
    found = numbers(twice)
    once = numbers(gg.Evaluator(model, **QUICK).compare(gg.RandomExplainer(), [3]))
    assert once.items() <= found.items()
    assert found["random", 3, 0, "edge_pertinence_tied"] != found["random", 3, 1, "edge_pertinence_tied"]
    assert found["random", 3, 0, "edge_stability"] != found["random", 3, 1, "edge_stability"]


def test_an_explanation_given_twice_has_the_same_curves():
    model = node_model()
    x = gg.Saliency().explain(model, [3])[0]
    found = numbers(gg.Evaluator(model, **QUICK).evaluate([x, dataclasses.replace(x)]))
    for metric in ("edge_ec", "edge_pertinence", "feature_pertinence_rank"):
        assert found["saliency", 3, 0, metric] == found["saliency", 3, 1, metric]


def test_explanations_of_one_name_with_other_parameters_are_told_apart():
    model = node_model()
    xs = [x for steps in (2, 3) for x in gg.IntegratedGradients(steps=steps).explain(model, [3])]
    elsewhere = [explanation_elsewhere(xs[0], "mine", {"alpha": alpha}) for alpha in (1, 2)]
    results = gg.Evaluator(model, **QUICK).evaluate([*xs, *elsewhere])
    labels = list(dict.fromkeys(row.explainer for row in results.rows))
    assert labels == ["integrated_gradients(steps=2)", "integrated_gradients(steps=3)", "mine(alpha=1)", "mine(alpha=2)"]
    assert len(numbers(results)) == len([row for row in results.rows if not row.metric.startswith("time")])


def explanation_elsewhere(x, name, params):
    return dataclasses.replace(x, explainer=name, params=params, metrics={})


def test_explanations_with_and_without_their_default_parameters_are_of_one_explainer():
    model = node_model()
    x = gg.Saliency().explain(model, [3])[0]
    results = gg.Evaluator(model, **QUICK).evaluate([x, explanation_elsewhere(x, "saliency", {})])
    assert {(row.explainer, row.occurrence) for row in results.rows} == {("saliency", 0), ("saliency", 1)}


def test_targets_may_come_from_a_generator():
    model = node_model()
    from_list = numbers(gg.Evaluator(model, **QUICK).compare([gg.Saliency(), gg.RandomExplainer()], [3, 20]))
    assert from_list == numbers(gg.Evaluator(model, **QUICK).compare([gg.Saliency(), gg.RandomExplainer()], (t for t in (3, 20))))
    assert from_list == numbers(
        gg.Evaluator(model, **QUICK).compare(iter([gg.Saliency(), gg.RandomExplainer()]), np.array([3, 20]))
    )


# --- what is refused -------------------------------------------------------------------------------------------------


def test_nothing_to_evaluate_gives_empty_results():
    evaluator = gg.Evaluator(node_model(), **QUICK)
    for results in (evaluator.evaluate([]), evaluator.compare([gg.Saliency()], []), evaluator.compare([], [3])):
        assert len(results) == len(results.to_pandas()) == len(results.summary()) == 0
        assert len(results.flip_curve()) == 100
        with pytest.raises(UnknownName, match="edge_ec"):
            results.pareto("edge_ec", "time")


def test_unknown_targets_and_explainers_are_refused_by_name():
    evaluator = gg.Evaluator(node_model(), **QUICK)
    with pytest.raises(BadTarget, match="3000"):
        evaluator.compare(gg.Saliency(), [3, 3000])
    for wrong in ("saliency", ["saliency"], 5, [gg.Saliency]):
        with pytest.raises(BadSetting, match=r"gg\.find_explainer"):
            evaluator.compare(wrong, [3])
    with pytest.raises(BadSetting, match="'saliency'"):
        evaluator.compare("saliency", [3])
    with pytest.raises(BadSetting, match="saliency is listed twice"):
        evaluator.compare([gg.Saliency(), gg.Saliency()], [3])


def test_two_explainers_of_one_kind_can_have_names():
    results = gg.Evaluator(node_model(), **QUICK).compare({"a": gg.Saliency(), "b": gg.Saliency()}, [3])
    found = numbers(results)
    assert {key[0] for key in found} == {"a", "b"}
    assert found["a", 3, 0, "edge_ec"] == found["b", 3, 0, "edge_ec"]


def test_all_bad_settings_are_listed_at_once():
    model = node_model()
    with pytest.raises(BadSetting) as error:
        gg.Evaluator(
            model, cap=0, flip=-1.0, pooling="median", trials=(3, 2), tau="half", twins=1, keep=0, early_stop=None, calls=2
        )
    for name in ("cap", "flip", "pooling", "trials", "tau", "twins", "keep", "early_stop", "calls"):
        assert f"{name} must be" in str(error.value)
    with pytest.raises(UnknownName, match=r"'capp', 'trails'.*Known: .*cap, .*trials"):
        gg.Evaluator(model, capp=3, trails=4)
    with pytest.raises(UnknownName, match="Did you mean 'cap'"):
        gg.Evaluator(model, capp=3)
    with pytest.raises(UnknownName, match="Did you mean 'paper'"):
        gg.Evaluator(model, "papr")
    with pytest.raises(BadSetting, match="seed"):
        gg.Evaluator(model, seed=-1)


def test_an_evaluator_needs_a_wrapped_network():
    with pytest.raises(gg.GraphgaugeError, match="NodeClassificationModel"):
        gg.Evaluator(build(Stack, GCNConv))


def test_explanations_of_other_data_are_refused():
    model, links = node_model(), link_model()
    evaluator, x = gg.Evaluator(model, **QUICK), gg.Saliency().explain(model, [3])[0]
    with pytest.raises(BadExplanation, match="of a link"):
        evaluator.evaluate(gg.Saliency().explain(links, [(3, 20)]))
    with pytest.raises(BadExplanation, match="ndarray"):
        evaluator.evaluate([np.ones(3)])
    smaller = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph(num_nodes=40, num_edges=90))
    with pytest.raises(BadExplanation, match=r"101 edges, but the model's has 328"):
        evaluator.evaluate(gg.Saliency().explain(smaller, [3]))
    for scores in (x.feature_score[:, :3], x.feature_score.repeat(1, 2)):
        with pytest.raises(BadExplanation, match=r"features, but the model's has 6"):
            evaluator.evaluate(dataclasses.replace(x, feature_score=scores, metrics={}))


# --- nothing left behind ---------------------------------------------------------------------------------------------


def state_of(net):
    """Everything of a network, and of the global random streams, that a user could notice."""
    return {
        "numbers": {name: value.tolist() for name, value in net.state_dict().items()},
        "gradients": [None if p.grad is None else p.grad.tolist() for p in net.parameters()],
        "needs": [p.requires_grad for p in net.parameters()],
        "modes": [module.training for module in net.modules()],
        "hooks": [(list(m._forward_hooks), list(m._forward_pre_hooks), list(m._backward_hooks)) for m in net.modules()],
        "attributes": [sorted(vars(module)) for module in net.modules()],
        "random": (torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()),
        "settings": (torch.is_grad_enabled(), torch.get_num_threads()),
    }


def in_use(make):
    """A model in the middle of training: training mode, gradients, a frozen parameter, a hook."""
    model = make()
    model.net.train()
    parameters = list(model.net.parameters())
    parameters[0].grad = torch.ones_like(parameters[0])
    parameters[-1].requires_grad_(False)
    next(model.net.children()).register_forward_hook(lambda module, args, out: None)
    return model


@pytest.mark.parametrize("kind", MODELS)
def test_the_users_network_is_left_as_it_was(kind):
    make, targets = MODELS[kind]
    model = in_use(make)
    before = state_of(model.net)
    results = gg.Evaluator(model, **{**QUICK, "timed": 1}).compare(EXPLAINERS, targets[:2])
    assert any(row.cell.status == "ok" for row in results.rows)
    assert state_of(model.net) == before


class Broken(Exception):
    """Raised by a function under test."""


def test_the_users_network_is_left_as_it_was_after_a_failure():
    model, calls = in_use(node_model), []

    def breaks(given, target):
        calls.append(target)
        given.net.train()
        torch.manual_seed(3)
        next(given.net.parameters()).data.add_(1.0)
        if len(calls) > 3:  # in the middle of stability
            raise Broken
        return constant_scores(given, target)

    before = state_of(model.net)
    with pytest.raises(Broken):
        gg.Evaluator(model, **QUICK).compare(gg.CallableExplainer(breaks), [3, 20])
    assert len(calls) == 4
    assert state_of(model.net) == before
    assert numbers(gg.Evaluator(model, **QUICK).compare(gg.Saliency(), [3])) == numbers(
        gg.Evaluator(node_model(), **QUICK).compare(gg.Saliency(), [3])
    )


# --- results ---------------------------------------------------------------------------------------------------------


def row(explainer, target, metric, value=None, status="ok", task="", model="", **cell):
    found = Cell(value, status, **cell)
    return Row(task, model, explainer, target, 0, metric, found, None, 0, "digest", "version")


@pytest.fixture(scope="module")
def results():
    return gg.Evaluator(node_model(), task="t", name="n", **{**QUICK, "timed": 1}).compare(EXPLAINERS, [3, 20, 41, 59])


def test_a_table_has_a_line_for_each_number(results):
    table = results.to_pandas()
    columns = "task model explainer target occurrence metric seconds seed settings version value status trials stop flipped".split()
    assert list(table.columns) == [*columns, "per_reference", "error"]
    assert len(table) == len(results) == 3 * 4 * 16
    assert set(table["task"]) == {"t"}
    assert set(table["model"]) == {"n"}
    assert set(table["settings"]) == {results.settings.digest}
    assert (table["value"].isna() == (table["status"] != "ok")).all()
    assert set(table["status"]) <= set(STATUSES)
    first = results.rows[0]
    assert table.iloc[0]["value"] == first.cell.value
    assert not table.duplicated(["explainer", "target", "occurrence", "metric"]).any()


def test_values_of_a_metric(results):
    mine = [row.cell.value for row in results.rows if (row.explainer, row.metric) == ("random", "edge_ec") and row.cell.value]
    assert results.values("edge_ec", "random").tolist() == mine
    with pytest.raises(UnknownName, match="edge_ec"):
        results.values("edge_ek")


def test_a_summary_is_mean_sd_and_number_over_targets(results):
    summary = results.summary()
    for (explainer, metric), line in summary.iterrows():
        cells = [row.cell for row in results.rows if (row.explainer, row.metric) == (explainer, metric)]
        if not cells:  # flipped_10 and so on
            continue
        values = [cell.value for cell in cells if cell.status == "ok"]
        assert line["n"] == len(values)
        assert line["mean"] == pytest.approx(np.mean(values) if values else math.nan, nan_ok=True)
        assert line["sd"] == pytest.approx(np.std(values, ddof=1) if len(values) > 1 else math.nan, nan_ok=True)
    assert summary.loc[("saliency", "edge_ec"), "missing"] == "1 empty"
    assert summary.loc[("saliency", "time"), "missing"] == "3 not_timed"


@pytest.mark.parametrize("cap", [5, 10, 30])
def test_a_summary_counts_no_number_twice_whatever_the_cap(cap):
    results = gg.Evaluator(node_model(), **{**QUICK, "cap": cap}).compare(gg.Saliency(), [3, 20])
    summary = results.summary()
    assert (summary.loc["saliency"].drop("time")["n"] == 2).all()
    flipped = [metric for _, metric in summary.index if "flipped" in metric]
    assert sorted(flipped) == sorted(f"{side}_flipped_{k}" for k in (10, 25, 100) if k <= cap for side in ("edge", "feature"))
    share = results.flip_curve("edge")["saliency"]
    for metric in (m for m in flipped if m.startswith("edge")):
        assert summary.loc[("saliency", metric), "mean"] == share[int(metric.rpartition("_")[2])]


def test_a_summary_over_several_models_averages_each_first():
    values = {"a": [1.0, 2.0, 3.0], "b": [10.0]}
    rows = [row("x", t, "edge_ec", v, flipped=True, model=model) for model, own in values.items() for t, v in enumerate(own)]
    line = gg.Results((*rows, row("x", 9, "edge_ec", status="empty")), Settings()).summary().loc[("x", "edge_ec")]
    assert (line["mean"], line["n"], line["missing"]) == (6.0, 4, "1 empty")
    assert line["sd"] == pytest.approx(math.sqrt(32))


def test_a_flip_curve_is_the_share_flipped_within_k_edits():
    ecs = [(1, True), (3, True), (3, False), (5, True)]
    rows = [row("x", t, "edge_ec", float(ec), flipped=flipped) for t, (ec, flipped) in enumerate(ecs)]
    results = gg.Results((*rows, row("x", 9, "edge_ec", status="empty")), Settings(cap=6))
    curve = results.flip_curve("edge")
    assert curve.index.tolist() == [1, 2, 3, 4, 5, 6]
    assert curve["x"].tolist() == [sum(flipped and ec <= k for ec, flipped in ecs) / 4 for k in range(1, 7)]
    with pytest.raises(BadSetting, match="side"):
        results.flip_curve("edges")


def test_the_front_is_that_of_brute_force():
    stream = random.Random(0)
    points = {f"e{k}": (stream.randint(0, 4), stream.randint(0, 4)) for k in range(12)}
    rows = [
        row(name, 0, metric, float(value))
        for name, point in points.items()
        for metric, value in zip(("edge_pertinence", "time"), point, strict=True)
    ]
    found = gg.Results((*rows, row("lacking", 0, "time", 1.0)), Settings()).pareto("edge_pertinence", "time")

    def beats(other, own):
        as_good = other[0] >= own[0] and other[1] <= own[1]
        return as_good and other != own

    assert found["front"].to_dict() == {name: not any(beats(o, own) for o in points.values()) for name, own in points.items()}
    assert found["front"].any()
    assert not found["front"].all()


def test_unknown_metrics_have_no_front(results):
    with pytest.raises(UnknownName, match="edge_pertinence"):
        results.pareto("edge_pertinenze", "time")


def wins(curve, other, tolerance):
    return [a < b - tolerance for a, b in zip(curve, other, strict=True)]


STORIES = {
    "nodes": (node_model, {}),
    "nodes, no twins": (node_model, {"twins": False}),
    "values": (values_model, {}),
    "values by |change|": (values_model, {"regression_curve": "abs"}),
    "values towards the reference": (values_model, {"regression_curve": "towards"}),
    "links": (link_model, {}),
    "graphs": (graph_model, {}),
}


@pytest.mark.parametrize("kind", STORIES)
def test_the_story_of_a_number_gives_the_number(kind):
    make, settings = STORIES[kind]
    model, targets = make(), MODELS[kind.partition(",")[0].partition(" ")[0]][1]
    results = gg.Evaluator(model, **{**QUICK, **settings}).compare(EXPLAINERS[:2], targets)
    found = numbers(results)
    tolerance = 1e-6 * (model.spread if model.task == "regression" else 1)
    checked = 0
    for (explainer, target, occurrence, metric), cell in found.items():
        if not metric.endswith("_pertinence") or cell.status != "ok":
            continue
        story = results.explain({"explainer": explainer, "target": target, "occurrence": occurrence, "metric": metric})
        side = metric.partition("_")[0]
        ec = found[explainer, target, occurrence, f"{side}_ec"]
        assert tuple(case.ec for case in story.cases) == ec.per_reference
        assert any(case.flipped for case in story.cases) == ec.flipped
        assert tuple(case.trials for case in story.cases) == cell.trials
        assert tuple(case.stop for case in story.cases) == cell.stop
        for case, score in zip(story.cases, cell.per_reference, strict=True):
            assert case.steps == ec.value
            curve, randoms = seen(case, settings.get("regression_curve", "raw"), model)
            K = case.steps
            won = [wins(curve[:K], other[:K], tolerance) for other in randoms[: case.trials]]
            lost = [wins(other[:K], curve[:K], tolerance) for other in randoms[: case.trials]]
            assert score == case.score == pytest.approx(np.mean(won), abs=1e-12)
            assert (case.won, case.lost) == (pytest.approx(np.mean(won)), pytest.approx(np.mean(lost)))
            assert case.won + case.tied + case.lost == pytest.approx(1)
            checked += 1
        if "pertinence_tied" in str(story.values):
            tied = [tied_by_hand(case, settings.get("regression_curve", "raw"), model, tolerance) for case in story.cases]
            assert found[explainer, target, occurrence, f"{side}_pertinence_tied"].value == pytest.approx(np.mean(tied))
        text = str(story)
        assert f"{explainer}, target {target}" in text
        assert "nan" not in text
        for case in story.cases:
            assert f"K = {case.steps} steps against {case.trials} random orders ({case.stop})" in text
            assert (f"changes after {case.ec} of" if case.flipped else f"no change within {case.ec} of") in text
        assert set(story.values) == {m for e, t, o, m in found if (e, t, o) == (explainer, target, occurrence)} & {
            f"{side}_{name}" for name in ("ec", "pertinence", *(f"pertinence_{twin}" for twin in ("tied", "rank", "p", "abs")))
        }
    assert checked


def seen(case, how, model):
    """Curves turned so that lower is better, in plain Python."""
    is_above = how == "towards" and case.reference is not None and float(model.pred_continuous([case.reference])[0]) > case.start
    turn = {
        "raw": lambda value: value,
        "abs": lambda value: -abs(value - case.start),
        "towards": lambda value: -value if is_above else value,
    }[how]
    as_is = case.curve.double().tolist(), case.random.double().tolist()
    return [turn(value) for value in as_is[0]], [[turn(value) for value in other] for other in as_is[1]]


def tied_by_hand(case, how, model, tolerance):
    curve, randoms = seen(case, how, model)
    halves = [
        [(a < b - tolerance) + (abs(a - b) <= tolerance) / 2 for a, b in zip(curve, other, strict=True)]
        for other in randoms[: QUICK["twin_trials"]]
    ]
    return np.mean(halves)


def test_a_row_can_be_explained_by_its_number_or_its_line(results):
    number = next(k for k, row in enumerate(results.rows) if (row.metric, row.target) == ("feature_ec", 20))
    texts = [str(results.explain(given)) for given in (number, results.rows[number], results.to_pandas().iloc[number])]
    assert len(set(texts)) == 1
    time = next(k for k, row in enumerate(results.rows) if row.metric == "time")
    with pytest.raises(UnknownName, match="only Effective Compactness and Pertinence"):
        results.explain(time)


@pytest.mark.parametrize("kind", MODELS)
def test_results_come_back_from_disk_bit_for_bit(kind, tmp_path):
    make, targets = MODELS[kind]
    settings = {**QUICK, "timed": 1, "keep": "all", "tau": None}
    results = gg.Evaluator(make(), seed=2**62, task="a,b", name='"x"', **settings).compare(
        {"": gg.RandomExplainer(), "n,\n1": gg.Saliency()}, [*targets, targets[0]]
    )
    results.save(tmp_path / "new" / "run")
    loaded = gg.Results.load(tmp_path / "new" / "run")
    assert loaded.rows == results.rows
    assert loaded.settings == results.settings
    assert loaded.summary().equals(results.summary())
    results.save(tmp_path / "new" / "run")  # again, over it
    assert gg.Results.load(tmp_path / "new" / "run").rows == results.rows


def test_empty_results_come_back_from_disk(tmp_path):
    gg.Results((), Settings()).save(tmp_path)
    assert gg.Results.load(tmp_path).rows == ()


def damage(folder, name, text):
    (folder / name).write_text(text)


def replace_in(folder, name, old, new):
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


DAMAGE = {
    "no rows": lambda folder: (folder / "rows.csv").unlink(),
    "no settings": lambda folder: (folder / "settings.json").unlink(),
    "settings that are none": lambda folder: damage(folder, "settings.json", "[1, 2]"),
    "settings that are no JSON": lambda folder: damage(folder, "settings.json", "{"),
    "settings of another version": lambda folder: damage(folder, "settings.json", json.dumps({"trials": [1, 2], "speed": 3})),
    "an impossible setting": lambda folder: replace_in(folder, "settings.json", '"cap": 100', '"cap": 0'),
    "another table": lambda folder: damage(folder, "rows.csv", "a,b\n1,2\n"),
    "an empty file": lambda folder: damage(folder, "rows.csv", ""),
    "an unknown status": lambda folder: replace_in(folder, "rows.csv", "empty", "vacuum"),
    "a value that is no number": lambda folder: replace_in(folder, "rows.csv", "0.5", "half"),
    "bytes that are no text": lambda folder: (folder / "rows.csv").write_bytes(b"\xff\xfe\x00"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_folder_is_refused(kind, tmp_path):
    rows = (row("x", 3, "edge_ec", 4.0, flipped=True), row("x", 3, "edge_pertinence", 0.5), row("x", 4, "edge_ec", status="empty"))
    gg.Results(rows, Settings()).save(tmp_path)
    DAMAGE[kind](tmp_path)
    with pytest.raises(BadFile, match="no results that graphgauge saved"):
        gg.Results.load(tmp_path)


def test_a_folder_that_is_not_there_or_cannot_be_is_refused(tmp_path):
    with pytest.raises(BadFile, match="nowhere"):
        gg.Results.load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="could not be written"):
        gg.Results((), Settings()).save(tmp_path / "file")


# --- which targets to evaluate on ------------------------------------------------------------------------------------


def spread_model(num_nodes=90):
    """Three classes of 60, 20 and 10 nodes; node k is the surer the higher k."""
    label = torch.tensor([0] * 60 + [1] * 20 + [2] * 10)
    sure = torch.arange(num_nodes) / num_nodes + 0.5
    x = torch.nn.functional.one_hot(label).float() * sure[:, None]
    data = graph([(k, (k + 1) % num_nodes, 0.0) for k in range(num_nodes)], x.tolist())
    return gg.NodeClassificationModel(OfNodes(lambda x, sent: x + sent), data, output="logits")


def third(node):
    start, size = ((0, 60), (60, 20), (80, 10))[(node >= 60) + (node >= 80)]
    return (node - start) * 3 // size


def test_samples_are_spread_over_classes_and_confidence():
    model = spread_model()
    chosen = gg.sample_targets(model, 18)
    assert chosen == sorted(set(chosen))
    strata = [((node >= 60) + (node >= 80), third(node)) for node in chosen]
    assert {stratum: strata.count(stratum) for stratum in strata} == dict.fromkeys(itertools.product(range(3), range(3)), 2)


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_also_a_small_sample_is_spread(count):
    chosen = gg.sample_targets(spread_model(), count)
    labels = [(node >= 60) + (node >= 80) for node in chosen]
    assert sorted(labels.count(label) for label in range(3)) == sorted([count // 3 + (k < count % 3) for k in range(3)])
    assert len({third(node) for node in chosen}) == min(count, 3)


def test_a_class_that_runs_out_leaves_its_place_to_others():
    chosen = gg.sample_targets(spread_model(), 60)
    counts = [sum(low <= node < high for node in chosen) for low, high in ((0, 60), (60, 80), (80, 90))]
    assert counts == [30, 20, 10]


def test_samples_of_values_are_spread_over_tenths():
    data = graph([(k, (k + 1) % 50, 0.0) for k in range(50)], [[float(k)] for k in range(50)])
    model = gg.NodeRegressionModel(OfNodes(lambda x, sent: x + sent), data)
    assert sorted(node // 5 for node in gg.sample_targets(model, 20)) == [k // 2 for k in range(20)]
    assert max(gg.sample_targets(model, 3)) - min(gg.sample_targets(model, 3)) >= 25


def test_a_sample_is_the_same_each_time_and_another_with_another_seed():
    model = spread_model()
    assert gg.sample_targets(model, 12) == gg.sample_targets(model, 12)
    assert gg.sample_targets(model, 12, seed=1) != gg.sample_targets(model, 12)
    evaluators = [gg.Evaluator(model, **more) for more in ({}, {"seed": 1}, {"task": "a"}, {"name": "a"})]
    assert len({tuple(one.sample(12)) for one in evaluators}) == 4


def test_fewer_than_asked_are_all_there_are():
    model = spread_model()
    assert gg.sample_targets(model, 1000) == list(range(90))
    assert gg.sample_targets(model, 5, among=[7, 3, 7, 7]) == [3, 7]
    assert gg.sample_targets(model, 5, among=[]) == []
    assert set(gg.sample_targets(model, 5, among=range(70, 90))) <= set(range(70, 90))


def test_samples_of_links_and_graphs():
    links = gg.sample_targets(link_model(), 10_000)
    assert len(links) == len(set(links)) > 300
    assert all(isinstance(link, tuple) for link in links)
    model = gg.LinkClassificationModel(build(LinkForward), random_graph())
    few = gg.sample_targets(model, 9)
    assert len(set(model.pred_discrete(few).tolist())) == len(model.pred_discrete(model.population()).unique())
    assert gg.sample_targets(graph_model(), 6) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("count", [0, -1, 2.0, True, None])
def test_a_sample_of_no_number_is_refused(count):
    with pytest.raises(BadSetting, match="count"):
        gg.sample_targets(spread_model(), count)
