"""Occlusion is what it says: predictions with one thing taken away, looked at one by one."""

import pytest
import torch
from support.small_networks import EncodeDecode, Pooled, Stack, build, random_graph
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    DenseGCNConv,
    GATConv,
    GCNConv,
    MessagePassing,
    PNAConv,
    RGCNConv,
    SAGEConv,
    dense_diff_pool,
)
from torch_geometric.utils import to_dense_adj, to_dense_batch

import graphgauge as gg
from graphgauge.core.errors import BadModel, BadSetting


def sparse_graph(num_nodes=14, num_edges=30, seed=0):
    """Features that are 0 here and there."""
    data = random_graph(num_nodes, num_edges, seed, dtype=torch.float64)
    data.x[torch.rand(data.x.shape, generator=torch.Generator().manual_seed(seed)) < 0.4] = 0.0
    return data


def node_model():
    return gg.NodeClassificationModel(build(Stack, GCNConv, dtype=torch.float64), sparse_graph())


def link_model():
    return gg.LinkClassificationModel(
        build(EncodeDecode, SAGEConv, dtype=torch.float64), sparse_graph(), output="logits"
    )


def graph_model():
    many = [sparse_graph(5 + seed, 9, seed) for seed in range(3)]
    return gg.GraphRegressionModel(build(Pooled, GATConv, out=1, dtype=torch.float64), many)


CASES = {
    "node": (node_model, [3, 8]),
    "link": (link_model, [(3, 8), (1, 4)]),
    "graph": (graph_model, [0, 2]),
}


def literal_prediction(model, target, x=None, without=None, removal="drop"):
    """The explained output on the whole data, one call of the network: with other features, and
    without an edge.
    """
    net, data = model.net, model.data[target] if model.level == "graph" else model.data
    x, edge_index = (data.x if x is None else x), data.edge_index
    hooks = []
    if without is not None and removal == "drop":
        kept = torch.arange(edge_index.size(1)) != without
        edge_index = edge_index[:, kept]
    elif without is not None:
        used, (tail, head) = [], data.edge_index[:, without].tolist()
        parallel = (
            ((data.edge_index[0] == tail) & (data.edge_index[1] == head)).nonzero()[:, 0].tolist()
        )

        def silence(layer, inputs, message):
            # parallel edges: in the order they are stored in
            same = ((used[-1][0] == tail) & (used[-1][1] == head)).nonzero()[:, 0]
            return message.index_fill(
                layer.node_dim % message.dim(), same[parallel.index(without)], 0.0
            )

        for layer in net.modules():
            if isinstance(layer, MessagePassing):
                hooks.append(
                    layer.register_propagate_forward_pre_hook(
                        lambda layer, inputs: used.append(inputs[0])
                    )
                )
                hooks.append(layer.register_message_forward_hook(silence))
    with torch.no_grad():
        if model.level == "node":
            out = net(x, edge_index).softmax(1)[target]
        elif model.level == "link":
            z = net.encode(x, edge_index)
            out = torch.stack(
                [
                    1 - torch.sigmoid(z[target[0]] @ z[target[1]]),
                    torch.sigmoid(z[target[0]] @ z[target[1]]),
                ]
            )
        else:
            out = net(x, edge_index)[0]
    for hook in hooks:
        hook.remove()
    return out


def explained_change(model, target, **edit):
    start = literal_prediction(model, target)
    label = int(start.argmax())
    return float(start[label] - literal_prediction(model, target, **edit)[label])


def groups_of(x, data, how, baseline):
    """All (row in x.nodes, feature) that are set to the baseline together."""
    ends = x.target if isinstance(x.target, tuple) else (x.target,)
    found = {}
    for row, node in enumerate(x.nodes.tolist()):
        for feature in range(data.x.size(1)):
            if data.x[node, feature] != baseline[feature]:
                block = (
                    ends.index(node)
                    if node in ends and len(data.x) == x.num_nodes and how == "columns"
                    else "others"
                )
                key = {"cells": (row, feature), "nodes": row, "columns": (block, feature)}[how]
                found.setdefault(key, []).append((row, feature))
    return found.values()


@pytest.mark.parametrize("removal", ["mask", "drop"])
@pytest.mark.parametrize(("make", "targets"), CASES.values(), ids=CASES)
def test_the_score_of_an_edge_is_the_prediction_less_the_one_without_it(make, targets, removal):
    model = make()
    for x in gg.Occlusion(edges=removal, features="none").explain(model, targets):
        wanted = [
            explained_change(model, x.target, without=edge, removal=removal)
            for edge in x.edges.tolist()
        ]
        assert x.feature_score is None
        assert torch.allclose(
            x.edge_score, torch.tensor(wanted, dtype=torch.float64), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("baseline", ["zero", "mean"])
@pytest.mark.parametrize("how", ["cells", "columns", "nodes"])
@pytest.mark.parametrize(("make", "targets"), CASES.values(), ids=CASES)
def test_the_score_of_a_group_of_features_is_shared_by_its_cells(make, targets, how, baseline):
    model = make()
    everything = model.source.x
    fill = (
        torch.zeros(everything.size(1), dtype=torch.float64)
        if baseline == "zero"
        else everything.mean(0)
    )
    for x in gg.Occlusion(edges="none", features=how, baseline=baseline).explain(model, targets):
        data = model.data[x.target] if model.level == "graph" else model.data
        wanted = torch.zeros_like(x.feature_score)
        for cells in (
            groups_of(x, data, how, fill)
            if model.level != "graph"
            else groups_of_graph(x, data, how, fill)
        ):
            changed = data.x.clone()
            for row, feature in cells:
                changed[x.nodes[row], feature] = fill[feature]
            for row, feature in cells:
                wanted[row, feature] = explained_change(model, x.target, x=changed) / len(cells)
        assert x.edge_score is None
        assert torch.allclose(x.feature_score, wanted, rtol=0, atol=1e-12)


def groups_of_graph(x, data, how, baseline):
    """Of a graph no node is the target."""
    found = {}
    for node in range(len(data.x)):
        for feature in range(data.x.size(1)):
            if data.x[node, feature] != baseline[feature]:
                found.setdefault(
                    {"cells": (node, feature), "nodes": node, "columns": feature}[how], []
                ).append((node, feature))
    return found.values()


def test_targets_with_many_cells_are_scored_by_columns():
    """Target by target, so that a batch does not change what one gets alone."""
    model = node_model()
    counts = [
        int((model.source.x[model.computation_graphs([t])[0].nodes] != 0).sum()) for t in range(14)
    ]
    limit = sorted(counts)[7]
    both = {
        how: gg.Occlusion(features=how).explain(model, range(14)) for how in ("cells", "columns")
    }
    for t, x in enumerate(gg.Occlusion(max_cells=limit).explain(model, range(14))):
        assert torch.equal(
            x.feature_score, both["cells" if counts[t] <= limit else "columns"][t].feature_score
        )
    assert 0 < sum(count <= limit for count in counts) < 14


def test_features_may_stay_unwritten():
    """A network that begins with a linear map gets the changes of rows; one that writes features
    out gets them whole.
    """
    data = sparse_graph()
    net = build(Stack, GCNConv, dtype=torch.float64)

    class Written(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = net

        def forward(self, x, edge_index):
            return self.inner(x + 0.0, edge_index)

    plain, written = (
        gg.NodeClassificationModel(net, data),
        gg.NodeClassificationModel(Written(), data),
    )
    assert (plain.feature_use, written.feature_use) == ("linear", "written")
    for x, other in zip(
        *(gg.Occlusion().explain(model, range(5)) for model in (plain, written)), strict=True
    ):
        assert torch.allclose(x.feature_score, other.feature_score, rtol=0, atol=1e-12)


class DiffPool(nn.Module):
    """Pooling by products with a dense adjacency matrix: no messages to mask."""

    def __init__(self):
        super().__init__()
        self.pool, self.embed, self.lin = DenseGCNConv(6, 3), DenseGCNConv(6, 8), nn.Linear(8, 3)

    def forward(self, x, edge_index, batch):
        rows, is_node = to_dense_batch(x, batch)
        adjacency = to_dense_adj(
            edge_index, batch, batch_size=len(rows), max_num_nodes=rows.size(1)
        ).to(x)
        hidden, *_ = dense_diff_pool(
            self.embed(rows, adjacency).relu(), adjacency, self.pool(rows, adjacency), is_node
        )
        return self.lin(hidden.mean(1))


def test_networks_without_messages_get_edge_scores_by_dropping():
    many = [random_graph(6 + seed, 12, seed=seed) for seed in range(6)]
    model = gg.GraphClassificationModel(build(DiffPool), many)
    assert model.mask_support.startswith("refused")
    for x in gg.Occlusion().explain(model, [0, 1]):
        alone = gg.Occlusion(edges="drop", features="none").explain(model, [x.target])[0]
        assert torch.equal(x.edge_score, alone.edge_score)
        assert bool((x.edge_score != 0).any())
    with pytest.raises(BadModel, match=r"Use Occlusion\(edges='drop'\)"):
        gg.Occlusion(edges="mask").explain(model, [0])


class Aggregators(nn.Module):
    """A silenced message can still be the largest, so masks are doubtful."""

    def __init__(self):
        super().__init__()
        options = {"aggregators": ["mean", "max", "std"], "scalers": ["identity", "amplification"]}
        self.one, self.two = (
            PNAConv(a, b, deg=torch.tensor([2, 5, 9, 3]), **options) for a, b in ((6, 8), (8, 3))
        )

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


def without_messages():
    return gg.GraphClassificationModel(
        build(DiffPool), [random_graph(6 + seed, 12, seed=seed) for seed in range(6)]
    )


def with_several_aggregators():
    return gg.NodeClassificationModel(build(Aggregators), random_graph(20, 50), output="logits")


@pytest.mark.parametrize("make", [without_messages, with_several_aggregators])
def test_what_cannot_be_masked_is_measured_by_dropping(make):
    evaluator = gg.Evaluator(
        make(), edge_removal="drop", sides="edges", timed=0, cap=4, trials=(5, 5)
    )
    results = evaluator.compare([gg.Occlusion(features="none"), gg.RandomExplainer()], [0, 1])
    status = {
        row.metric: row.cell.status
        for row in results.rows
        if row.metric in ("edge_ec", "edge_pertinence", "edge_stability")
    }
    assert status == dict.fromkeys(status, "ok")
    assert len(status) == 3


@pytest.mark.parametrize(
    "settings",
    [
        {"edges": "no"},
        {"features": "all"},
        {"baseline": "median"},
        {"max_cells": 0},
        {"explain_output": "raw"},
    ],
)
def test_unknown_choices_are_refused(settings):
    with pytest.raises(BadSetting, match="must be"):
        gg.Occlusion(**settings)


def test_relations_are_occluded_as_masked_and_as_dropped():
    data = random_graph(20, 50)
    data.edge_type = torch.arange(data.num_edges) % 2

    class Relational(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = RGCNConv(6, 8, 2), RGCNConv(8, 3, 2)

        def forward(self, x, edge_index, edge_type):
            return self.two(self.one(x, edge_index, edge_type).relu(), edge_index, edge_type)

    model = gg.NodeClassificationModel(build(Relational), Data(**data.to_dict()))
    masked, dropped = (gg.Occlusion(edges=how).explain(model, range(6)) for how in ("mask", "drop"))
    assert all(x.edge_score.isfinite().all() for x in (*masked, *dropped))
    assert any(
        not torch.allclose(x.edge_score, y.edge_score, atol=1e-4)
        for x, y in zip(masked, dropped, strict=True)
    )
