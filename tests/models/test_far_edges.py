"""Networks that look further than their messages say what edges beyond the counted hops do."""

import json
import warnings

import pytest
import torch
from support.small_networks import Stack, build, random_graph
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GINEConv, GPSConv

import graphgauge as gg
from graphgauge.core.errors import GraphgaugeWarning
from graphgauge.guidelines import diagnose
from graphgauge.report.provenance import provenance_facts


def ring(num_nodes, seed=0):
    """A ring with edges both ways: two hops see 8 of 48 edges."""
    around = torch.arange(num_nodes)
    edge_index = torch.stack([around, (around + 1) % num_nodes])
    x = torch.randn(
        num_nodes, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return Data(x=x, edge_index=torch.cat([edge_index, edge_index.flip(0)], 1))


class GlobalAttention(nn.Module):
    """Two GPS layers: messages along edges, and attention among all nodes."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            GPSConv(8, GCNConv(8, 8), heads=2, norm=None, attn_type="multihead") for _ in range(2)
        )
        self.lin = nn.Linear(8, 3)

    def forward(self, x, edge_index):
        for layer in self.layers:
            x = layer(x, edge_index)
        return self.lin(x)


def literal_largest_change(net, data, targets, hops_of):
    """Each far edge dropped by itself, one call after another."""
    largest = 0.0
    with torch.no_grad():
        start = net(data.x, data.edge_index).softmax(1)
        for target in targets:
            for edge in range(data.num_edges):
                if edge not in hops_of[target]:
                    kept = torch.arange(data.num_edges) != edge
                    change = (
                        (net(data.x, data.edge_index[:, kept]).softmax(1) - start)[target]
                        .abs()
                        .max()
                    )
                    largest = max(largest, float(change))
    return largest


def test_edges_beyond_the_hops_are_measured_recorded_and_reported():
    data, net = ring(24), build(GlobalAttention, dtype=torch.float64)
    model = gg.NodeClassificationModel(net, data)
    far = model.record()["edges_beyond_hops"]
    graphs = model.computation_graphs(range(24))
    relevant = {graph.target: set(graph.edges.tolist()) for graph in graphs}
    assert (far["edges"], far["scored_per_target"]) == (48, len(relevant[0]))
    assert 1e-5 < far["largest_change"] <= literal_largest_change(net, data, range(24), relevant)
    json.dumps(model.record())
    results = gg.Evaluator(
        model, sides="edges", timed=0, stability="none", cap=3, trials=(5, 5)
    ).compare(gg.RandomExplainer(), [0])
    assert results.made["network"]["edges_beyond_hops"] == far
    assert (
        f"largest_change: {far['largest_change']}"
        in provenance_facts(results)["network: edges_beyond_hops"]
    )
    (finding,) = (finding for finding in diagnose(results) if finding.name == "far_edges")
    assert "Edges more than 2 hops away move a prediction by up to" in finding.text
    assert f"cover {len(relevant[0])} of 48 edges" in finding.text


def test_all_far_edges_of_a_small_graph_give_the_largest_change():
    data, net = ring(16), build(GlobalAttention, dtype=torch.float64)
    model = gg.NodeClassificationModel(net, data)
    far, probes = model.edges_beyond_hops, model.probes.ids[:, 0].tolist()
    relevant = {
        graph.target: set(graph.edges.tolist()) for graph in model.computation_graphs(range(16))
    }
    chosen = [
        probes[k]
        for k in torch.linspace(0, len(probes) - 1, 4, dtype=torch.float64).round().long().tolist()
    ]
    assert far["dropped"] == 4 * (32 - len(relevant[0]))
    assert far["largest_change"] == pytest.approx(
        literal_largest_change(net, data, chosen, relevant), abs=1e-12
    )


def test_a_network_that_only_passes_messages_has_none():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    assert model.record()["edges_beyond_hops"] is None
    results = gg.Evaluator(model, timed=0, stability="none").compare(gg.RandomExplainer(), [3])
    assert not [finding for finding in diagnose(results) if finding.name == "far_edges"]


class ByHand(nn.Module):
    """Messages that no MessagePassing layer sends."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 4)

    def forward(self, x, edge_index):
        return self.lin(x).index_add(0, edge_index[1], self.lin(x)[edge_index[0]])


class WithAttributes(nn.Module):
    """A layer whose edges have attributes."""

    def __init__(self):
        super().__init__()
        self.conv = GINEConv(nn.Linear(6, 3), edge_dim=2)

    def forward(self, x, edge_index, edge_attr):
        return self.conv(x, edge_index, edge_attr)


def test_the_record_says_which_explainers_score_edges():
    without = gg.NodeClassificationModel(build(ByHand), random_graph(), num_hops=1)
    advice = "use Occlusion or RandomExplainer with edge_removal='drop'"
    assert without.record()["edge_scores"] == f"only explainers that need no masks: {advice}"
    (noted,) = gg.check_model(without, only=["messages_can_be_masked"])
    assert noted.status == "noted"
    assert advice in noted.reason
    data = random_graph()
    data.edge_attr = torch.ones(data.num_edges, 2)
    assert (
        gg.NodeClassificationModel(build(WithAttributes), data).record()["edge_scores"]
        == "every explainer"
    )


def test_the_record_says_that_a_network_does_not_use_the_edges():
    """It finds neighbours by itself, or has none."""
    net = build(lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)))
    model = gg.NodeClassificationModel(
        net, random_graph(), num_hops=1, forward=lambda net, g: net(g.x)
    )
    assert "does not use the graph's edges" in model.record()["edge_scores"]


class Noting(gg.Saliency):
    """Writes down that it was run."""

    name = "noting"
    runs: list = []

    def scores(self, model, graphs, seeds):
        self.runs.append(len(graphs))
        return super().scores(model, graphs, seeds)


def test_missing_edge_scores_are_told_before_anything_is_run():
    model = gg.NodeClassificationModel(build(ByHand), random_graph(), num_hops=1)
    Noting.runs.clear()
    with pytest.warns(GraphgaugeWarning) as told:
        results = gg.Evaluator(model, edge_removal="drop", timed=0, stability="none").compare(
            [gg.Occlusion(), Noting()], [3]
        )
    assert [str(warning.message) for warning in told] == [
        "there are no edge scores: refused: edges act outside the messages of MessagePassing "
        "layers; use drop. So noting gives features only; for edges use Occlusion or "
        "RandomExplainer with edge_removal='drop'."
    ]
    status = {(row.explainer, row.cell.status) for row in results.rows if row.metric == "edge_ec"}
    assert status == {("occlusion", "ok"), ("noting", "no_scores")}
    Noting.runs.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(GraphgaugeWarning, match="So noting gives features only"):
            Noting().explain(model, [3])
    assert Noting.runs == []
