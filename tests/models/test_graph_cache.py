"""Computation graphs that are kept for the next call, against those that are cut anew."""

from dataclasses import dataclass, fields

import pytest
import torch
from support import small_networks
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.core.errors import BadExplanation
from graphgauge.evaluation.timing import seconds_alone
from graphgauge.explainers.base import BaseExplainer, Scores
from graphgauge.models import graph_cache as recent

TARGETS = [5, 40, 5, 17]


@pytest.fixture
def model():
    return gg.NodeClassificationModel(
        small_networks.build(small_networks.Stack, GCNConv), small_networks.random_graph()
    )


@pytest.fixture
def cuts(monkeypatch):
    """The targets of every cut, in turn."""
    found = []

    def counted(model, target, scope):
        found.append((target.rows.flatten().tolist(), scope))
        return checked(model, target, scope)

    checked = recent.extract_checked_graphs
    monkeypatch.setattr(recent, "extract_checked_graphs", counted)
    return found


def are_equal(first, second):
    pairs = [
        (getattr(first, entry.name), getattr(second, entry.name))
        for entry in fields(first)
        if entry.name != "source"
    ]
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)


def test_the_same_targets_are_cut_once(model, cuts):
    first, second = (model.computation_graphs(TARGETS) for _ in range(2))
    assert cuts == [([5, 17, 40], "messages")]
    assert are_equal(first, second)
    with recent.without_cached_graphs(model):
        assert are_equal(first, model.computation_graphs(TARGETS))
    assert len(cuts) == 2
    model.computation_graphs(TARGETS)
    assert len(cuts) == 2


def test_other_targets_orders_and_scopes_are_cut_on_their_own(model, cuts):
    for targets in ([1, 2], [2, 1], [1], [12]):
        model.computation_graphs(targets)
    model.computation_graphs([1, 2], "induced")
    assert cuts == [
        ([1, 2], "messages"),
        ([2, 1], "messages"),
        ([1], "messages"),
        ([12], "messages"),
        ([1, 2], "induced"),
    ]


def test_links_are_told_from_nodes_in_a_row(cuts):
    model = gg.LinkClassificationModel(
        small_networks.build(small_networks.EncodeDecode), small_networks.random_graph()
    )
    model.computation_graphs([(1, 2), (3, 4)])
    model.computation_graphs([(1, 2)])
    assert [targets for targets, _ in cuts] == [[1, 2, 3, 4], [1, 2]]


def test_only_the_latest_are_kept(model, cuts):
    for target in range(recent._MAX_CACHED_LISTS):
        model.computation_graphs([target])
    model.computation_graphs([0])
    assert len(cuts) == recent._MAX_CACHED_LISTS
    model.computation_graphs([20])  # in place of 1, for 0 was asked for since
    model.computation_graphs([0])
    assert len(cuts) == recent._MAX_CACHED_LISTS + 1
    model.computation_graphs([1])
    assert len(cuts) == recent._MAX_CACHED_LISTS + 2


def test_large_ones_are_not_kept(model, cuts):
    graphs = model.computation_graphs([5])
    size = sum(
        part.nbytes
        for entry in fields(graphs)
        if isinstance(part := getattr(graphs, entry.name), torch.Tensor)
    )
    for budget, number in (
        (size * recent._BUDGET_FRACTION - 1, 2),
        (size * recent._BUDGET_FRACTION, 1),
    ):
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
    """Writes into the graphs that it is shown."""

    name = "vandal"
    part: str = "edge_index"

    def scores(self, model, graphs, seeds):
        getattr(graphs, self.part).numpy()[:] = (
            0 if self.part == "edge_index" else graphs.source.num_nodes
        )
        return Scores(graphs.source.x.new_ones(len(graphs.node), graphs.source.x.size(1)), None)


def test_an_explainer_that_writes_into_graphs_changes_none_of_the_next(model):
    wanted = gg.InputXGradient().explain(model, TARGETS)
    Vandal().explain(model, TARGETS)
    with pytest.raises(BadExplanation, match="must lie in"):
        Vandal(part="node").explain(model, TARGETS)
    for x, y in zip(wanted, gg.InputXGradient().explain(model, TARGETS), strict=True):
        assert torch.equal(x.edge_score, y.edge_score)
        assert torch.equal(x.feature_score, y.feature_score)


def test_no_two_calls_share_what_they_give(model):
    first, second, untouched = (model.computation_graphs([5]) for _ in range(3))
    first.target_ids[0][0] = 17
    for entry in fields(first):
        if isinstance(part := getattr(first, entry.name), torch.Tensor):
            part.fill_(0)
    assert are_equal(second, untouched)
    assert are_equal(second, model.computation_graphs([5]))
    assert model.computation_graphs([5])[0].target == 5


def test_what_one_explanation_took_does_not_hang_on_who_came_first(model, monkeypatch):
    """Cutting takes an hour here."""
    clock = [0.0]
    checked = recent.extract_checked_graphs

    def slow(*given):
        clock[0] += 3600
        return checked(*given)

    monkeypatch.setattr(recent, "extract_checked_graphs", slow)
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    first, second = (
        explainer.explain(model, [5])[0].seconds
        for explainer in (gg.Saliency(), gg.InputXGradient())
    )
    assert first == second == 0.0
    assert clock == [3600.0]


def test_a_clock_counts_the_cutting(model, cuts):
    gg.Saliency().explain(model, [5])
    cuts.clear()
    seconds_alone(gg.Saliency(), model, [5], seed=0, is_warm=True)
    assert cuts == [([5], "messages")] * 3


def test_all_explainers_of_a_comparison_share_one_cut(model, cuts):
    evaluator = gg.Evaluator(model, trials=(2, 2), twin_trials=2, cap=2, timed=0, stability="none")
    evaluator.compare([gg.Saliency(), gg.InputXGradient(), gg.LRP()], [5, 17])
    assert cuts.count(([5, 17], "messages")) == 1


def test_lonely_nodes_have_graphs_too(cuts):
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0], [1]]))
    model = gg.NodeClassificationModel(small_networks.build(lambda: GCNConv(3, 2)), data)
    assert (
        model.computation_graphs([2])[0].nodes.tolist()
        == model.computation_graphs([2])[0].nodes.tolist()
        == [2]
    )
    assert len(cuts) == 1
