"""Numbers do not depend on the company they are measured in."""

from dataclasses import replace

import pytest
import torch
from support.hand_computed_networks import OfNodes, explanation, graph, own_features
from support.quick_evaluation import (
    EXPLAINERS,
    MODELS,
    QUICK,
    cells_of,
    constant_scores,
    node_model,
    numbers,
    shared,
    values_model,
)
from support.small_networks import Stack, build, random_graph
from torch import nn
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.core.errors import ChangedModel
from graphgauge.core.seeds import derive_seed
from graphgauge.evaluation import explanation_scoring
from graphgauge.perturbation import random_orders


def test_numbers_do_not_depend_on_the_memory_budget(compared):
    make, targets, found = compared
    assert (
        numbers(gg.Evaluator(make(memory_budget="600KiB"), **QUICK).compare(EXPLAINERS, targets))
        == found
    )


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
    assert (
        numbers(gg.Evaluator(make(), **few).compare(EXPLAINERS[1], targets[:1])).items()
        <= found.items()
    )


def test_the_papers_numbers_do_not_depend_on_the_twins(compared):
    make, targets, found = compared
    without = numbers(
        gg.Evaluator(make(), **{**QUICK, "twins": False}).compare(EXPLAINERS, targets)
    )
    ours, theirs = shared(without, found)
    assert len(ours) == len(without)
    assert ours == theirs


def test_the_papers_numbers_do_not_depend_on_how_many_curves_the_twins_need(compared):
    make, targets, found = compared
    paper = [
        metric for _, _, _, metric in found if metric.endswith(("_ec", "_pertinence", "_stability"))
    ]
    more = numbers(
        gg.Evaluator(make(), **{**QUICK, "twin_trials": 9}).compare(EXPLAINERS[1], targets[:2]),
        paper,
    )
    ours, theirs = shared(more, found)
    assert ours == theirs


def test_numbers_do_not_depend_on_how_many_targets_are_judged_at_a_time(compared, monkeypatch):
    make, targets, found = compared
    monkeypatch.setattr(explanation_scoring, "_MOST_HEIGHTS", 1)
    assert (
        numbers(gg.Evaluator(make(), **QUICK).compare(EXPLAINERS[:2], targets)).items()
        <= found.items()
    )


def test_calibrated_numbers_do_not_depend_on_company_either():
    quick = {**QUICK, "trials": (6, 6), "twin_trials": 6, "calls": 3}
    found = numbers(
        gg.Evaluator(node_model(), "calibrated", **quick).compare(EXPLAINERS[:2], [3, 20, 41])
    )
    alone = numbers(
        gg.Evaluator(node_model(memory_budget="600KiB"), "calibrated", **quick).compare(
            EXPLAINERS[1], [20]
        )
    )
    assert alone.items() <= found.items()


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"seed_scope": ("other", "")}, {"seed_scope": ("", "other")}]
)
def test_seed_and_scope_change_what_is_drawn_and_names_do_not(change):
    model, constant = node_model(), gg.CallableExplainer(constant_scores, deterministic=True)
    found, other = (
        numbers(gg.Evaluator(model, **QUICK, **more).compare(constant, [3, 20, 41]))
        for more in ({}, change)
    )
    assert found.keys() == other.keys()
    different = {key[-1] for key, cell in found.items() if other[key] != cell}
    assert {"edge_pertinence_tied", "feature_pertinence_tied"} <= different
    named = numbers(
        gg.Evaluator(model, **QUICK, task="other", name="other").compare(constant, [3, 20, 41])
    )
    assert named == found


def test_stability_depends_on_the_seed_and_the_scope_and_not_on_the_name():
    model = node_model()
    values = [
        numbers(gg.Evaluator(model, **QUICK, **more).compare(gg.RandomExplainer(), [3]))[
            "random", 3, 0, "edge_stability"
        ].value
        for more in (
            {},
            {"seed": 1},
            {"seed_scope": ("other", "")},
            {"seed_scope": ("", "other")},
            {"task": "other", "name": "n"},
        )
    ]
    assert len(set(values[:4])) == 4
    assert values[4] == values[0]


def test_pertinence_is_that_of_the_random_orders_of_the_target():
    """The orders that everyone can draw from the seed of the target, counted by hand on an additive
    network.
    """
    weights = [8.0, 1.0, 4.0, 2.0]
    data = graph([(k, 0, w) for k, w in enumerate(weights, 1)], [[1.0]] * 5)
    model = gg.NodeRegressionModel(OfNodes(lambda x, sent: sent), data, embedding=own_features)
    settings = {**QUICK, "trials": (7, 7), "twin_trials": 7, "early_stop": "none"}
    cells = cells_of(
        gg.Evaluator(model, seed=5, seed_scope=("t", "n"), **settings).evaluate(
            explanation(model, 0, [4, 3, 2, 1])
        )
    )
    seed = derive_seed(5, "t", "n", 0, "edges")
    orders = random_orders(torch.tensor([4]), [seed], 100, 0, 7)[0, :, :4].tolist()
    edges = model.computation_graphs([0])[0].edges.tolist()
    curves = [
        [15 - sum(weights[edges[c]] for c in order[:k]) for k in (1, 2, 3, 4)] for order in orders
    ]
    own = [7, 6, 2, 0]
    assert cells["edge_ec"].value == 1
    assert cells["edge_pertinence"].value == pytest.approx(
        sum(own[0] < curve[0] for curve in curves) / 7
    )
    halves = [[(a < b) + (a == b) / 2 for a, b in zip(own, curve, strict=True)] for curve in curves]
    assert cells["edge_pertinence_tied"].value == pytest.approx(sum(map(sum, halves)) / 28)
    assert cells["edge_pertinence_p"].value == pytest.approx(
        (1 + sum(sum(curve) <= sum(own) for curve in curves)) / 8
    )


class Guest(gg.RandomExplainer):
    """Random scores, and a deed to the model."""

    name = "guest"

    def __init__(self, deed):
        object.__setattr__(self, "deed", deed)

    def scores(self, model, graphs, seeds):
        self.deed(model)
        return super().scores(model, graphs, seeds)


def negated(net, inputs, out):
    return -out


TRACES = {
    "training": lambda model: model.net.train(),
    "hook": lambda model: model.net.register_forward_hook(negated),
    "layer": lambda model: setattr(model.net, "forward", lambda x, edge_index: x),
}


@pytest.mark.parametrize("trace", TRACES)
def test_numbers_do_not_depend_on_what_others_leave_in_the_network(trace):
    net = build(Stack, GCNConv, act=nn.Dropout(0.5))
    model = gg.NodeClassificationModel(net.train(), random_graph(undirected=True))
    alone = numbers(gg.Evaluator(model, **QUICK).compare(gg.InputXGradient(), [0, 1]))
    together = gg.Evaluator(model, **QUICK).compare(
        [Guest(TRACES[trace]), gg.InputXGradient()], [0, 1]
    )
    assert shared(alone, numbers(together)) == (alone, alone)
    assert model.net.training
    assert not model.net._forward_hooks
    assert "forward" not in vars(model.net)


def raw_step(model):
    for weight in model.net.parameters():
        weight.data.mul_(-3)


def exchanged(model):
    first = next(iter(model.net.parameters()))
    first.data = first.data + 1


@pytest.mark.parametrize("deed", [raw_step, exchanged])
@pytest.mark.parametrize("place", [0, 1])
def test_an_explainer_that_changes_weights_is_named_and_they_are_put_back(deed, place):
    model = node_model()
    before = {name: value.clone() for name, value in model.net.state_dict().items()}
    explainers = [gg.InputXGradient()]
    explainers.insert(place, Guest(deed))
    with pytest.raises(ChangedModel, match="guest changed the network's weights while explaining"):
        gg.Evaluator(model, **QUICK).compare(explainers, [0, 1])
    with model.session(), pytest.raises(ChangedModel):
        Guest(deed).explain(model, [0])
    assert all(torch.equal(value, before[name]) for name, value in model.net.state_dict().items())


class Restless(Stack):
    """Changes itself whenever it is called, as networks may."""

    def __init__(self, way):
        super().__init__(GCNConv)
        self.way, self.steps = way, nn.Parameter(torch.zeros(1), requires_grad=False)
        self.table = nn.Embedding(3, 6, max_norm=0.5 if way == "norm" else None)
        self.mask = nn.Parameter(torch.tensor([torch.nan, -torch.inf]))

    def forward(self, x, edge_index):
        if self.way == "count":
            self.steps += 1
        if self.way == "exchange":
            self.steps = nn.Parameter(self.steps + 1, requires_grad=False)
        return super().forward(x + self.table((x[:, 0] > 0.5).long()), edge_index)


def leaves_a_parameter(model):
    model.net._edge_mask = nn.Parameter(torch.ones(3))


def leaves_threads(model):
    torch.set_num_threads(1 + torch.get_num_threads() % 2)


@pytest.mark.parametrize("deed", [lambda model: None, leaves_a_parameter, leaves_threads])
@pytest.mark.parametrize("way", ["norm", "count", "exchange", ""])
def test_nobody_is_blamed_for_what_the_network_does_to_itself(way, deed, two_threads):
    model = gg.NodeClassificationModel(build(Restless, way), random_graph(undirected=True))
    before = {name: value.clone() for name, value in model.net.state_dict().items()}
    found = gg.Evaluator(model, **{**QUICK, "timed": 1}).compare(
        [Guest(deed), gg.Saliency()], [0, 1]
    )
    assert {row.cell.status for row in found.rows if row.metric == "edge_ec"} == {"ok"}
    assert model.net.state_dict().keys() == before.keys()
    assert all(
        torch.equal(value.nan_to_num(), before[name].nan_to_num())
        for name, value in model.net.state_dict().items()
    )
    with pytest.raises(ChangedModel):
        Guest(raw_step).explain(model, [0])


def test_an_explainer_that_writes_into_the_data_is_named():
    model = node_model()
    with pytest.raises(ChangedModel, match="guest wrote into the data while explaining"):
        gg.Evaluator(model, **QUICK).compare(
            [Guest(lambda model: model.source.x.mul_(0.5))], [0, 1]
        )


@pytest.mark.parametrize("direction", ["up", "towards_reference"])
def test_whether_scores_from_elsewhere_have_a_sign_is_decided_for_each_explanation(direction):
    """Scores of 0 and more say how much something matters; beside an explanation with negative ones
    they still do.
    """
    model, targets = values_model(), MODELS["values"][1][:2]
    made = gg.InputXGradient().explain(model, targets)
    without_sign, signed = (
        replace(
            x,
            explainer="elsewhere",
            params={},
            feature_score=turn(x.feature_score),
            edge_score=turn(x.edge_score),
        )
        for x, turn in zip(made, (torch.abs, torch.clone), strict=True)
    )
    assert (signed.feature_score < 0).any()
    evaluator = gg.Evaluator(model, direction=direction, **QUICK)
    alone = numbers(evaluator.evaluate([without_sign]))
    without_sign.metrics.clear()
    together = numbers(evaluator.evaluate([without_sign, signed]))
    assert all(together[key] == cell for key, cell in alone.items())
