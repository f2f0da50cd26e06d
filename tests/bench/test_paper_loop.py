"""The loop that graphgauge is timed against does what the paper says, and its length is counted
right.
"""

import math

import paper_algorithms
import paper_loop
import pytest
import torch
from cora import cora_sized, sampled_targets, untrained
from paper_algorithms import Substitutes
from paper_loop import Setting, Trials, Units
from pyg_peers import ALGORITHMS, LEARNED, explained
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.core.errors import UndefinedScore
from graphgauge.metrics import (
    class_flips,
    edge_stability,
    effective_compactness,
    feature_stability,
    stop_early,
    win_share,
)
from graphgauge.perturbation import CurveLines, EdgeEdits, predict_curves

# Captum
pytestmark = pytest.mark.filterwarnings(
    "ignore:Input Tensor . did not already require gradients",
    "ignore:Setting backward hooks on ReLU",
)
FEATURES, CLASSES, TARGET = 4, 3, 7


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.act, self.two = GCNConv(FEATURES, 8), nn.ReLU(), GCNConv(8, CLASSES)

    def forward(self, x, edge_index):
        return (4 * self.two(self.act(self.one(x, edge_index)), edge_index)).softmax(1)


@pytest.fixture
def data():
    """A ring of 40 nodes with 20 chords, and node 40 without a neighbour."""
    random = torch.Generator().manual_seed(1)
    ring = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])
    chords = torch.stack([torch.arange(20), torch.arange(20) + 20])
    links = torch.cat([ring, chords], dim=1)
    return Data(
        x=torch.randn(41, FEATURES, generator=random),
        edge_index=torch.cat([links, links.flip(0)], dim=1),
    )


@pytest.fixture
def net():
    torch.manual_seed(3)
    return Net().eval()


def test_the_graph_has_the_librarys_nodes_and_edges_and_predicts_what_the_whole_graph_does(
    net, data
):
    local = paper_algorithms.computation_graph(data, TARGET)
    ours = gg.NodeClassificationModel(net, data).computation_graphs([TARGET])[0]
    assert {TARGET, *local.ids[local.neighbours].tolist()} == set(ours.nodes.tolist())
    edges = local.ids[local.edge_index[:, local.relevant]].T.tolist()
    assert sorted(edges) == sorted(data.edge_index[:, ours.edges].T.tolist())
    whole = net(data.x, data.edge_index)[TARGET].tolist()
    assert paper_algorithms.prediction(net, local, local.x) == pytest.approx(whole, abs=1e-6)


def test_a_target_without_messages_is_refused(data):
    with pytest.raises(UndefinedScore, match="no message reaches target 40"):
        paper_algorithms.computation_graph(data, 40)


@pytest.mark.parametrize(
    ("mean", "spread"), [(0.5, 1.0), (0.5, 0.1), (0.6, 1.0), (0.9, 0.3), (0.5, 0.0)]
)
def test_early_stopping_is_the_rule_of_the_metrics(mean, spread):
    random = torch.Generator().manual_seed(0)
    series = mean + spread * (torch.rand(20, 100, generator=random, dtype=torch.float64) - 0.5)
    literal = [
        next(n for n in range(101) if paper_algorithms.early_stop(row[:n]))
        for row in series.tolist()
    ]
    assert literal == stop_early(series).trials.tolist()


def test_pairs_are_compared_as_the_metrics_do(data):
    local, random = (
        paper_algorithms.computation_graph(data, TARGET),
        torch.Generator().manual_seed(0),
    )
    edge, feature = (
        torch.randn(2, local.edge_index.size(1), generator=random),
        torch.randn(2, *local.x.shape, generator=random),
    )
    feature[1, local.row] = 0
    rows = torch.cat([torch.tensor([local.row]), local.neighbours])
    wanted = feature_stability(feature[:1, rows], feature[1:, rows], rows == local.row)
    assert paper_algorithms.stability_pair_feature(feature[0], feature[1], local) == pytest.approx(
        wanted.item(), abs=1e-6
    )
    wanted = edge_stability(edge[:1, local.relevant], edge[1:, local.relevant])
    assert paper_algorithms.stability_pair_edge(edge[0], edge[1], local) == pytest.approx(
        wanted.item(), abs=1e-6
    )


def test_removals_ec_and_pertinence_equal_the_batched_curves(net, data):
    model = gg.NodeClassificationModel(net, data)
    graphs, case = (
        model.computation_graphs([TARGET]),
        paper_loop.Case(Setting(net, data, {}), "saliency", TARGET),
    )
    place = {
        tuple(pair): column
        for column, pair in enumerate(case.local.ids[case.local.edge_index].T.tolist())
    }
    ours = [place[tuple(pair)] for pair in data.edge_index[:, graphs[0].edges].T.tolist()]
    count, label = len(ours), torch.tensor([case.label])
    lines = CurveLines(
        torch.zeros(2, dtype=torch.int64), torch.stack([torch.randperm(count) for _ in range(2)])
    )
    found = predict_curves(
        model,
        EdgeEdits.from_graphs(model, graphs),
        lines,
        torch.tensor([0, 0]),
        torch.tensor([count, count]),
    )
    curves = found.prediction.view(2, count, CLASSES)
    orders = [[ours[edge] for edge in row.tolist()] for row in lines.order]
    literal = torch.tensor([list(case.removals(order)) for order in orders])
    assert torch.allclose(literal, curves, atol=1e-6)
    fast = effective_compactness(class_flips(curves, label.expand(2)), torch.tensor([count, count]))
    assert [case.edge_ec(order) for order in orders] == fast.ec.tolist()
    own, random = curves[..., case.label]
    assert set(
        paper_algorithms.pertinence(
            lambda _: iter(literal[0].tolist()), orders[0], count, case.label
        )
    ) == {0.0}  # itself
    first = iter([literal[0].tolist()])
    shares = paper_algorithms.pertinence(
        lambda _: iter(next(first, literal[1].tolist())), orders[0], count, case.label
    )
    assert shares == pytest.approx(
        [win_share(own[None], random[None, None], torch.tensor([count])).item()] * 30
    )


def test_no_mask_stays_behind_on_the_network(net, data):
    local = paper_algorithms.computation_graph(data, TARGET)
    before = paper_algorithms.prediction(net, local, local.x)
    after = next(paper_algorithms.removals(net, local, local.relevant.tolist()))
    assert after != before
    assert paper_algorithms.prediction(net, local, local.x) == before


def test_substitutions_write_the_references_values(net, data):
    local = paper_algorithms.computation_graph(data, TARGET)
    given = Substitutes(torch.arange(FEATURES) + 1.0, torch.randn(len(local.neighbours), FEATURES))
    points = list(paper_algorithms.substitutions(net, local, [2, FEATURES + 1], given))
    x = local.x.clone()
    x[local.row, 2] = 3.0
    assert points[0] == paper_algorithms.prediction(net, local, x)
    for number, row in enumerate(local.neighbours.tolist()):
        x[row, 1] = given.others[number, 1]
    assert points[1] == paper_algorithms.prediction(net, local, x)
    assert local.x[local.row, 2] == data.x[TARGET, 2]


def test_the_map_is_one_to_one_into_the_references_neighbourhood(data):
    data.x = torch.arange(41.0)[:, None].repeat(1, FEATURES)
    local = paper_algorithms.computation_graph(data, TARGET)
    given, there = (
        paper_algorithms.substitutes(data, local, 30),
        paper_algorithms.computation_graph(data, 30),
    )
    assert given.own.tolist() == [30.0] * FEATURES
    sources = given.others[:, 0].tolist()
    assert set(sources) <= set(there.ids[there.neighbours].float().tolist())
    assert len(set(sources)) == len(sources) == len(local.neighbours) <= len(there.neighbours)
    assert torch.equal(given.others, paper_algorithms.substitutes(data, local, 30).others)
    assert not torch.equal(given.others, paper_algorithms.substitutes(data, local, 31).others)


def test_few_neighbours_of_a_reference_serve_several_times(data):
    data.x = torch.arange(41.0)[:, None].repeat(1, FEATURES)
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[39], [40]])], dim=1)
    local, there = (paper_algorithms.computation_graph(data, node) for node in (TARGET, 40))
    assert len(there.neighbours) < len(local.neighbours)
    sources = paper_algorithms.substitutes(data, local, 40).others[:, 0]
    assert len(sources) == len(local.neighbours)
    assert set(sources.tolist()) <= set(there.ids[there.neighbours].float().tolist())


def test_compactness_counts_edits_until_another_class_leads():
    points = [[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]]
    assert paper_algorithms.compactness(iter(points), 0, 3) == 3
    assert paper_algorithms.compactness(iter(points), 0, 2) == 2
    assert paper_algorithms.compactness(iter(points), 1, 3) == 1


def test_priorities_are_the_targets_scores_and_its_neighbours_largest(data):
    local = paper_algorithms.computation_graph(data, TARGET)
    score = torch.zeros_like(local.x)
    score[local.row, 0], score[local.neighbours[0], 1], score[local.neighbours[1], 1] = (
        5.0,
        -7.0,
        3.0,
    )
    assert paper_algorithms.priorities(score, local).tolist() == [5, 0, 0, 0, 0, 3, 0, 0]
    halo = [
        row
        for row in range(len(local.ids))
        if row != local.row and row not in local.neighbours.tolist()
    ]
    score[halo] = 9.0
    assert paper_algorithms.priorities(score, local).tolist() == [5, 0, 0, 0, 0, 3, 0, 0]


def test_medoids_are_of_the_predicted_class_and_nearest_to_its_mean(net, data):
    predicted, hidden = (
        net(data.x, data.edge_index).argmax(1),
        net.act(net.one(data.x, data.edge_index)).detach(),
    )
    for label, node in paper_algorithms.class_medoids(net, data).items():
        members = [n for n in range(40) if predicted[n] == label]
        mean = hidden[members].mean(0)
        assert node == min(members, key=lambda n: float((hidden[n] - mean).norm()))


def test_the_loop_is_as_long_as_its_counts_say(net, data, monkeypatch):
    calls, passes = [], []
    random = torch.Generator().manual_seed(0)

    def explain(net, name, x, edge_index, row):
        calls.append(row)
        return torch.randn(x.shape, generator=random), torch.randn(
            edge_index.size(1), generator=random
        )

    references = paper_algorithms.class_medoids(net, data)
    assert len(references) == CLASSES
    monkeypatch.setattr(paper_loop, "explained", explain)
    case = paper_loop.Case(Setting(net, data, references), "saliency", TARGET)
    assert len(case.given) == CLASSES - 1
    net.register_forward_hook(lambda *_: passes.append(1))
    (found,) = paper_loop.loop_metrics(net, data, "saliency", [TARGET], references)
    counts = paper_loop.loop_counts(found.trials)
    assert len(calls) == counts["time"] + counts["stability"] == 1 + 2 * found.trials.pairs
    assert len(passes) == 1 + paper_loop.forwards(counts)  # 1: the class, when the graph is cut
    assert set(found.seconds) == set(paper_loop.PARTS)
    assert found.values["feature_ec"] == min(found.trials.reference_ec)
    assert all(
        0 <= found.values[name] <= 1
        for name in ("edge_stability", "edge_pertinence", "feature_pertinence")
    )


def test_counts_and_seconds_follow_the_formulas():
    trials = Trials(
        pairs=30, edge_ec=4, edge_trials=40, reference_ec=(7, 5), feature_trials=(30, 50)
    )
    counts = paper_loop.loop_counts(trials)
    assert counts == {
        "time": 1,
        "stability": 60,
        "ec_edges": 5,
        "ec_features": 13,
        "pertinence_edges": 4 * 41,
        "pertinence_features": 5 * 31 + 5 * 51,
    }
    assert paper_loop.forwards(counts) == 5 + 13 + 164 + 410
    scaled = paper_loop.scaled_seconds(
        counts, Units(graphs=0.5, call=2, pair=5, edge_forward=0.1, feature_forward=0.2)
    )
    assert sum(scaled.values()) == pytest.approx(
        0.5 + 2 + 30 * 5 + 0.1 * (5 + 164) + 0.2 * (13 + 410)
    )


def test_a_loop_without_references_has_no_feature_pertinence(net, data):
    (found,) = paper_loop.loop_metrics(net, data, "saliency", [TARGET], {})
    assert found.values["feature_ec"] == 100
    assert math.isnan(found.values["feature_pertinence"])


GRADIENTS = {
    "saliency": gg.Saliency(),
    "input_x_gradient": gg.InputXGradient(),
    "integrated_gradients": gg.IntegratedGradients(),
    "guided_backprop": gg.GuidedBackprop(),
    "deconvolution": gg.Deconvolution(),
    "lrp": gg.LRP(variant="captum"),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_explainer_runs_twice_and_leaves_the_network_as_it_was(net, data, name):
    local = paper_algorithms.computation_graph(data, TARGET)
    before, state = (
        paper_algorithms.prediction(net, local, local.x),
        {key: value.clone() for key, value in net.state_dict().items()},
    )
    first, second = (explained(net, name, local.x, local.edge_index, local.row) for _ in range(2))
    assert first[0].shape == local.x.shape
    assert first[1].shape == local.edge_index.shape[1:]
    assert torch.equal(first[0], second[0]) == (name not in LEARNED)
    assert paper_algorithms.prediction(net, local, local.x) == before
    assert all(torch.equal(value, state[key]) for key, value in net.state_dict().items())
    assert all(value.requires_grad for value in net.parameters())


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_explainers_on_the_cut_graph_are_the_librarys(net, data, name):
    local = paper_algorithms.computation_graph(data, TARGET)
    feature, edge = explained(net, name, local.x, local.edge_index, local.row)
    (ours,) = GRADIENTS[name].explain(gg.NodeClassificationModel(net, data), [TARGET])
    rows = torch.cat([torch.tensor([local.row]), local.neighbours])
    assert torch.allclose(ours.feature_matrix()[local.ids[rows]], feature[rows], atol=1e-5)
    score = {
        tuple(pair): value
        for pair, value in zip(
            data.edge_index[:, ours.edges].T.tolist(), ours.edge_score, strict=True
        )
    }
    theirs = [
        score[tuple(pair)] for pair in local.ids[local.edge_index[:, local.relevant]].T.tolist()
    ]
    assert torch.allclose(torch.stack(theirs), edge[local.relevant], atol=1e-5)


def test_targets_are_seeded_and_receive_messages():
    data = cora_sized()
    targets = sampled_targets(data)
    assert targets == sampled_targets(data)
    assert len(set(targets)) == 10
    assert set(targets) <= set(data.edge_index[1].tolist())
    data.test_mask = torch.arange(2708) < 30
    assert max(sampled_targets(data)) < 30


def test_the_random_network_names_every_class():
    net, data = untrained(), cora_sized()
    assert len(paper_algorithms.class_medoids(net, data)) == 7
