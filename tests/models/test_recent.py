"""Computation graphs that are kept for the next call, against those that are cut anew."""

from dataclasses import dataclass, fields, replace

import pytest
import torch
import zoo
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.core.errors import BadExplanation
from graphgauge.evaluation.timing import seconds_alone
from graphgauge.explainers.base import BaseExplainer, Scores
from graphgauge.models import recent

TARGETS = [5, 40, 5, 17]


@pytest.fixture
def model():
    return gg.NodeClassificationModel(zoo.build(zoo.Stack, GCNConv), zoo.random_graph())


@pytest.fixture
def cuts(monkeypatch):
    """The targets of every cut, in turn."""
    found = []

    def counted(model, target, scope):
        found.append((target.flatten().tolist(), scope))
        return checked(model, target, scope)

    checked = recent.checked_graphs
    monkeypatch.setattr(recent, "checked_graphs", counted)
    return found


def are_equal(first, second):
    pairs = [(getattr(first, entry.name), getattr(second, entry.name)) for entry in fields(first) if entry.name != "source"]
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)


def test_the_same_targets_are_cut_once(model, cuts):
    first, second = (model.computation_graphs(TARGETS) for _ in range(2))
    assert cuts == [([5, 17, 40], "messages")]
    assert are_equal(first, second)
    with recent.no_recent_graphs(model):
        assert are_equal(first, model.computation_graphs(TARGETS))
    assert len(cuts) == 2
    model.computation_graphs(TARGETS)
    assert len(cuts) == 2


def test_other_targets_orders_and_scopes_are_cut_on_their_own(model, cuts):
    for targets in ([1, 2], [2, 1], [1], [12]):
        model.computation_graphs(targets)
    model.computation_graphs([1, 2], "induced")
    assert cuts == [([1, 2], "messages"), ([2, 1], "messages"), ([1], "messages"), ([12], "messages"), ([1, 2], "induced")]


def test_links_are_told_from_nodes_in_a_row(cuts):
    model = gg.LinkClassificationModel(zoo.build(zoo.EncodeDecode), zoo.random_graph())
    model.computation_graphs([(1, 2), (3, 4)])
    model.computation_graphs([(1, 2)])
    assert [targets for targets, _ in cuts] == [[1, 2, 3, 4], [1, 2]]


def test_only_the_latest_are_kept(model, cuts):
    for target in range(recent.MOST):
        model.computation_graphs([target])
    model.computation_graphs([0])
    assert len(cuts) == recent.MOST
    model.computation_graphs([20])  # in place of 1, for 0 was asked for since
    model.computation_graphs([0])
    assert len(cuts) == recent.MOST + 1
    model.computation_graphs([1])
    assert len(cuts) == recent.MOST + 2


def test_large_ones_are_not_kept(model, cuts):
    size = sum(part.nbytes for part in recent.parts_of(model.computation_graphs([5])))
    for budget, number in ((size * recent.SHARE - 1, 2), (size * recent.SHARE, 1)):
        cuts.clear()
        small = gg.NodeClassificationModel(model.net, model.data, memory_budget=budget)
        small.computation_graphs([5])
        small.computation_graphs([5])
        assert len(cuts) == number


@pytest.mark.parametrize("change", ["weights", "features"])
def test_a_changed_network_or_graph_is_cut_anew(model, cuts, change):
    model.computation_graphs([5])
    with torch.no_grad():
        (model.net.convs[0].lin.weight if change == "weights" else model.data.x).mul_(2.0)
    model.computation_graphs([5])
    assert len(cuts) == 2


def test_what_was_asked_for_in_inference_mode_serves_gradients_too(model, cuts):
    with torch.inference_mode():
        model.computation_graphs([5])
    (x,) = gg.GNNExplainer(epochs=2).explain(model, [5])
    assert len(cuts) == 1
    assert x.feature_score.isfinite().all()


@dataclass(frozen=True)
class Vandal(BaseExplainer):
    """Turns the edges around that it is shown."""

    name = "vandal"

    def scores(self, model, graphs, seeds):
        graphs.edge_index.copy_(graphs.edge_index.flip(0))
        return Scores(graphs.source.x.new_ones(len(graphs.node), graphs.source.x.size(1)), None)


def test_an_explainer_that_writes_into_graphs_changes_none_of_the_next(model):
    wanted = gg.InputXGradient().explain(model, TARGETS)
    Vandal().explain(model, TARGETS)
    for x, y in zip(wanted, gg.InputXGradient().explain(model, TARGETS), strict=True):
        assert torch.equal(x.edge_score, y.edge_score)
        assert torch.equal(x.feature_score, y.feature_score)


def test_a_clock_counts_the_cutting(model, cuts):
    gg.Saliency().explain(model, [5])
    cuts.clear()
    seconds_alone(gg.Saliency(), model, [5], seed=0, is_warm=True)
    assert cuts == [([5], "messages")] * 3


def test_all_explainers_of_a_comparison_share_one_cut(model, cuts):
    evaluator = gg.Evaluator(model, trials=(2, 2), twin_trials=2, cap=2, timed=0, stability="none")
    evaluator.compare([gg.Saliency(), gg.InputXGradient(), gg.LRP()], [5, 17])
    assert cuts.count(([5, 17], "messages")) == 1


@pytest.mark.parametrize("level", ["node", "link", "graph"])
def test_ids_of_explanations_pass_the_checks_that_they_are_spared(level):
    data = zoo.random_graph()
    if level == "graph":
        model = gg.GraphClassificationModel(zoo.build(zoo.Pooled), [data, zoo.random_graph(seed=1), zoo.random_graph(30, 50, 2)])
        targets = [2, 0]
    elif level == "link":
        model, targets = gg.LinkClassificationModel(zoo.build(zoo.EncodeDecode), data), [(3, 8), (59, 0)]
    else:
        model, targets = gg.NodeClassificationModel(zoo.build(zoo.Stack, GCNConv), data), [0, 59]
    for x in gg.InputXGradient().explain(model, targets):
        assert replace(x).target == x.target


def test_an_explanation_of_ones_own_is_checked():
    with pytest.raises(BadExplanation, match="must lie in"):
        gg.Xplanation(target=0, nodes=torch.tensor([0, 9]), edges=torch.tensor([0]), num_nodes=3, num_edges=1)


def test_lonely_nodes_have_graphs_too(cuts):
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0], [1]]))
    model = gg.NodeClassificationModel(zoo.build(lambda: GCNConv(3, 2)), data)
    assert model.computation_graphs([2])[0].nodes.tolist() == model.computation_graphs([2])[0].nodes.tolist() == [2]
    assert len(cuts) == 1
