"""Computation graphs without the edges that only set degrees, against those that have them."""

import pytest
import torch
from support import literal_models, small_networks
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGEConv, SGConv
from torch_geometric.utils import degree, remove_self_loops

import graphgauge as gg
from graphgauge.core.errors import BadModel, BadSetting
from graphgauge.core.seeds import make_generator

GCNS = {
    "plain": GCNConv,
    "improved": lambda a, b: GCNConv(a, b, improved=True),
    "no loops": lambda a, b: GCNConv(a, b, add_self_loops=False),
    "cached": lambda a, b: GCNConv(a, b, cached=True),
}
EDITS = {
    "none": lambda union: union,
    "mask": lambda union: union.with_mask(
        ((union.edge_position % 3 > 0) | ~union.is_relevant).to(union.x.dtype)
    ),
    "x": lambda union: union.with_x(union.x.flip(0)),
}


def random_data(seed=0, num_nodes=60, num_edges=170, **more):
    """Self-loops and double edges among them."""
    random = make_generator(seed)
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=random)
    edge_index = torch.cat([edge_index, edge_index[:, :5], torch.tensor([[3, 9, 9], [3, 9, 9]])], 1)
    return Data(
        x=torch.randn(num_nodes, small_networks.FEATURES, generator=random),
        edge_index=edge_index,
        **more,
    )


def node_model(conv, seed=0, layers=2, **more):
    torch.manual_seed(seed)
    return gg.NodeClassificationModel(small_networks.Stack(conv, layers), random_data(seed, **more))


def rows_and_slopes(model, graphs, edit):
    """Raw rows, and what becomes of the features' gradients."""

    def work(union):
        edited = edit(union)
        x = edited.x.detach().clone().requires_grad_(True)
        with torch.enable_grad():
            rows = model.executor.outputs(edited.with_x(x))
            (slope,) = torch.autograd.grad(rows.square().sum(), x)
        total = slope.new_zeros(len(union), slope.size(1)).index_add(
            0, union.node_copy, slope[union.node_at]
        )
        return torch.cat([rows.detach(), total], 1)

    return model.map(
        work, graphs, torch.arange(len(graphs), device=graphs.node.device).repeat(2), kind="test"
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("conv", GCNS.values(), ids=GCNS)
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_rows_and_gradients_have_the_same_bits(conv, edit, seed):
    model = node_model(conv, seed, layers=2 + seed % 2)
    targets = torch.arange(0, 60, 7)
    full, lean = model.computation_graphs(targets), model.computation_graphs(targets, lean=True)
    assert len(lean.edge) < len(full.edge)
    assert torch.equal(rows_and_slopes(model, lean, edit), rows_and_slopes(model, full, edit))


def test_layers_of_different_kinds_and_links():
    torch.manual_seed(0)

    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = SAGEConv(small_networks.FEATURES, 8), GCNConv(8, 8)

        def forward(self, x, edge_index, edge_label_index):
            x = self.second(self.first(x, edge_index).relu(), edge_index)
            return (x[edge_label_index[0]] * x[edge_label_index[1]]).sum(1)

    model = gg.LinkRegressionModel(Mixed(), random_data())
    targets = [[0, 5], [7, 8], [3, 9]]
    full, lean = model.computation_graphs(targets), model.computation_graphs(targets, lean=True)
    assert len(lean.edge) < len(full.edge)
    assert torch.equal(model.pred_copies(lean), model.pred_copies(full))


@pytest.mark.parametrize("scope", ["messages", "induced"])
def test_left_are_relevant_edges_and_messages_that_arrive(scope):
    model, data = node_model(GCNConv), random_data()
    targets = list(range(0, 60, 4))
    for target, lean in zip(
        targets, model.computation_graphs(targets, scope, lean=True), strict=True
    ):
        wanted = literal_models.computation_graph(data, target, 2, "in", scope)
        arrives = [
            edge
            for edge in wanted["others"]
            if wanted["distance"].get(int(data.edge_index[1, edge]), 2) < 2  # a stored self-loop
        ]
        assert lean.edges.tolist() == wanted["relevant"]
        assert sorted(lean.all_edges.tolist()) == sorted(wanted["relevant"] + arrives)


EXPLAINERS = [
    gg.Saliency(),
    gg.IntegratedGradients(steps=4),
    gg.GuidedBackprop(),
    gg.LRP(),
    gg.GNNExplainer(epochs=4),
    gg.GraphMask(epochs=3),
    gg.GraphMask(variant="pyg"),
    gg.RandomExplainer(),
]


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=str)
def test_explanations_have_the_same_bits(explainer, monkeypatch):
    targets = [0, 7, 7, 21, 50]
    lean = explainer.explain(node_model(GCNConv), targets)
    monkeypatch.setattr("graphgauge.models.halo_pruning._prune_halo", lambda model, graphs: graphs)
    for few, every in zip(lean, explainer.explain(node_model(GCNConv), targets), strict=True):
        assert torch.equal(few.feature_score, every.feature_score)
        assert torch.equal(few.edge_score, every.edge_score)


@pytest.mark.parametrize("removal", ["mask", "drop"])
def test_measures_are_the_same(removal, monkeypatch):
    def table():
        evaluator = gg.Evaluator(
            node_model(GCNConv), edge_removal=removal, trials=(10, 10), timed=0, stability="none"
        )
        found = evaluator.compare(
            [gg.InputXGradient(), gg.RandomExplainer()], [0, 7, 21, 50]
        ).to_pandas()
        return found[~found.metric.str.startswith("time")].drop(columns="seconds")

    lean = table()
    monkeypatch.setattr("graphgauge.models.halo_pruning._prune_halo", lambda model, graphs: graphs)
    assert lean.equals(table())


class ByDegree(nn.Module):
    """Also reads degrees itself."""

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(small_networks.FEATURES, 8)

    def forward(self, x, edge_index):
        return self.conv(x * degree(edge_index[1], len(x), x.dtype)[:, None], edge_index)


class Changing(nn.Module):
    """Changes the edges first."""

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(small_networks.FEATURES, 8)

    def forward(self, x, edge_index):
        return self.conv(x, remove_self_loops(edge_index)[0])


class Weighted(nn.Module):
    """Edges with weights, or attributes that are used as such."""

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(small_networks.FEATURES, 8)

    def forward(self, x, edge_index, edge_weight=None, edge_attr=None):
        return self.conv(x, edge_index, edge_weight if edge_attr is None else edge_attr)


@pytest.mark.parametrize(
    "make",
    [
        lambda: node_model(lambda a, b: SGConv(a, b)),
        lambda: node_model(SAGEConv),
        lambda: gg.NodeClassificationModel(ByDegree(), random_data()),
        lambda: gg.NodeClassificationModel(Changing(), random_data()),
        lambda: gg.NodeClassificationModel(Weighted(), random_data(edge_weight=torch.rand(178))),
        lambda: gg.NodeClassificationModel(Weighted(), random_data(edge_attr=torch.rand(178))),
    ],
    ids=["SGConv", "SAGEConv", "reads degrees", "changes edges", "edge weights", "edge attributes"],
)
def test_other_networks_keep_their_graphs(make):
    model = make()
    full, lean = (
        model.computation_graphs([0, 7, 21]),
        model.computation_graphs([0, 7, 21], lean=True),
    )
    assert torch.equal(full.edge, lean.edge)
    assert lean.weights is None


def test_no_edge_can_be_dropped_where_degrees_would_not_follow():
    model = node_model(GCNConv)
    with pytest.raises(BadSetting, match="lack edges that set degrees"):
        model.pred_copies(
            model.computation_graphs([0, 7], lean=True),
            edit=lambda union: union.without_edges(union.edge_position < 1),
        )


def test_a_network_that_has_changed_gets_new_weights():
    model = node_model(GCNConv)
    model.computation_graphs([0, 7], lean=True)
    model.net.convs[0].add_self_loops = False
    lean, full = model.computation_graphs([0, 7], lean=True), model.computation_graphs([0, 7])
    assert torch.equal(model.pred_copies(lean), model.pred_copies(full))


def test_a_network_that_changes_its_edges_only_later_is_told():
    class Moody(Changing):
        changes = False

        def forward(self, x, edge_index):
            return super().forward(x, edge_index) if self.changes else self.conv(x, edge_index)

    model = gg.NodeClassificationModel(Moody(), random_data())
    lean = model.computation_graphs([0, 7], lean=True)
    with model.session(), pytest.raises(BadModel, match="was given other edges than the graph's"):
        model.net.changes = True
        model.pred_copies(lean)
