"""Messages are masked by the stored edges that they go along, also where a layer runs on some of
these only.
"""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    ASAPooling,
    AttentiveFP,
    FastRGCNConv,
    GATConv,
    GraphConv,
    RGCNConv,
    SAGPooling,
    TopKPooling,
    global_add_pool,
    global_mean_pool,
)
from torch_geometric.utils import add_self_loops, coalesce, remove_self_loops, to_undirected

import graphgauge as gg
from graphgauge.execution.edge_tracking import EdgeTracker

FEATURES = 6


def graph(size, seed):
    """With self-loops and parallel edges, some of the same type."""
    random = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(0, size, (2, 3 * size), generator=random)
    edge_index = torch.cat([edge_index, edge_index[:, :3]], 1)
    return Data(
        x=torch.randn(size, FEATURES, generator=random, dtype=torch.float64),
        edge_index=edge_index,
        edge_type=torch.randint(0, 2, (edge_index.size(1),), generator=random),
        edge_attr=torch.randn(edge_index.size(1), 3, generator=random, dtype=torch.float64),
    )


def built(make, *args):
    torch.manual_seed(0)
    return make(*args).double().eval()


def predictions_without_each(model, target):
    """Predict with the messages of each relevant edge of one target masked, one row for each."""
    graphs = model.computation_graphs([target])
    count = int(graphs.num_edges[0])

    def edit(union):
        return union.with_mask(
            (union.edge_position != union.copy[union.edge_copy]).to(union.x.dtype)
        )

    return graphs[0].edges, model.pred_copies(graphs, torch.zeros(count, dtype=torch.int64), edit)


# --- what is masked is the edge's own message -----------------------------------------------------


class Relations(nn.Module):
    """Two layers of relations."""

    def __init__(self, layer, **options):
        super().__init__()
        self.first, self.second = layer(FEATURES, 8, 2, **options), layer(8, 3, 2, **options)

    def forward(self, x, edge_index, edge_type):
        return self.second(self.first(x, edge_index, edge_type).relu(), edge_index, edge_type)


def literal_relations(layer, x, data, silenced):
    """Compute the layer by its definition.

    Each node gets the mean of its messages for each relation; the silenced message is 0.
    """
    weight = (
        layer.weight
        if layer.num_bases is None
        else (layer.comp @ layer.weight.view(layer.num_bases, -1)).view(2, x.size(1), -1)
    )
    rows = []
    for v in range(len(x)):
        row = x[v] @ layer.root + layer.bias
        for relation in range(2):
            own = [
                e
                for e in range(data.num_edges)
                if data.edge_index[1, e] == v and data.edge_type[e] == relation
            ]
            messages = [
                torch.zeros_like(x[0]) if e == silenced else x[data.edge_index[0, e]] for e in own
            ]
            row = row + (torch.stack(messages).mean(0) @ weight[relation] if own else 0)
        rows.append(row)
    return torch.stack(rows)


@pytest.mark.parametrize("layer", [RGCNConv, FastRGCNConv])
@pytest.mark.parametrize("options", [{}, {"num_bases": 2}])
def test_messages_of_relations_are_masked_as_written_out_edge_by_edge(layer, options):
    data, net = graph(9, 0), built(lambda: Relations(layer, **options))
    model = gg.NodeClassificationModel(net, data)
    assert model.mask_support == "exact"
    with torch.no_grad():
        for target in (0, 4):
            edges, found = predictions_without_each(model, target)
            for edge, row in zip(edges.tolist(), found, strict=True):
                hidden = literal_relations(net.first, data.x, data, edge).relu()
                wanted = literal_relations(net.second, hidden, data, edge)[target].softmax(0)
                assert (row - wanted).abs().max() <= 1e-12


class Pooled(nn.Module):
    """A layer, pooling, another layer on the edges that are left. ``weight`` multiplies messages,
    there and in the pooling.
    """

    def __init__(self, pool):
        super().__init__()
        self.first, self.pool, self.second = GraphConv(FEATURES, 16), pool(), GraphConv(16, 16)
        self.lin = nn.Linear(16, 3)

    def forward(self, x, edge_index, batch, weight=None):
        h = self.first(x, edge_index, weight).relu()
        attribute = torch.ones(edge_index.size(1), 1).to(x) if weight is None else weight[:, None]
        if isinstance(self.pool, SAGPooling) and weight is not None:
            whole = self.pool.gnn.forward
            self.pool.gnn.forward = lambda x, edge_index: whole(x, edge_index, weight)
        h, edge_index, kept, batch, _, _ = self.pool(h, edge_index, attribute, batch)
        if isinstance(self.pool, SAGPooling) and weight is not None:
            del self.pool.gnn.forward
        h = self.second(h, edge_index, None if weight is None else kept[:, 0]).relu()
        return self.lin(global_mean_pool(h, batch))


POOLS = {"TopK": lambda: TopKPooling(16, 0.6), "SAG": lambda: SAGPooling(16, 0.6)}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_messages_behind_a_pooling_layer_are_masked_as_by_weights_of_0(pool):
    """The layers weigh their messages without normalising, so a weight of 0 silences an edge,
    wherever it is left.
    """
    many, net = [graph(7 + seed, seed) for seed in range(6)], built(Pooled, pool)
    model = gg.GraphClassificationModel(
        net, many, forward=lambda net, g: net(g.x, g.edge_index, g.batch)
    )
    assert model.mask_support == "exact"
    with torch.no_grad():
        for number in (0, 3):
            data = many[number]
            edges, found = predictions_without_each(model, number)
            for edge, row in zip(edges.tolist(), found, strict=True):
                weight = torch.ones(data.num_edges, dtype=torch.float64).index_fill(
                    0, torch.tensor([edge]), 0.0
                )
                wanted = net(
                    data.x, data.edge_index, torch.zeros(len(data.x), dtype=torch.int64), weight
                )[0].softmax(0)
                assert (row - wanted).abs().max() <= 1e-12


class WithAGraphNode(nn.Module):
    """Messages to and from a node that stands for the whole graph, beside those of the edges."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.lin = GraphConv(FEATURES, 8), GraphConv(8, 8), nn.Linear(8, 3)

    def forward(self, x, edge_index, batch):
        count = int(batch.max()) + 1
        up = torch.stack([torch.arange(len(x)), len(x) + batch])
        edges = torch.cat([edge_index, up, up.flip(0)], 1)
        h = self.first(torch.cat([x, x.new_zeros(count, x.size(1))]), edges).relu()
        return self.lin(self.second(h, edges).relu()[len(x) :])


class OwnGraph(nn.Module):
    """Neighbours are nodes with similar features, whatever edges are stored."""

    def __init__(self):
        super().__init__()
        self.conv, self.lin = GraphConv(FEATURES, 8), nn.Linear(8, 3)

    def forward(self, x, edge_index, batch):
        near = (
            (torch.cdist(x, x) < 3)
            & (batch[:, None] == batch)
            & ~torch.eye(len(x), dtype=torch.bool)
        )
        return self.lin(global_add_pool(self.conv(x, near.nonzero().t()).relu(), batch))


class Fingerprint(nn.Module):
    """Attention from all nodes of a graph to a row that stands for it, after attention along its
    edges.
    """

    def __init__(self):
        super().__init__()
        self.inner = AttentiveFP(FEATURES, 8, 3, edge_dim=3, num_layers=2, num_timesteps=2)

    def forward(self, x, edge_index, edge_attr, batch):
        return self.inner(x, edge_index, edge_attr, batch)


@pytest.mark.parametrize("make", [WithAGraphNode, OwnGraph, Fingerprint])
def test_edges_of_another_kind_keep_their_messages(make):
    """Silencing all stored edges is then the same as a graph without edges."""
    many = [graph(7 + seed, seed) for seed in range(6)]
    model = gg.GraphClassificationModel(built(make), many)
    assert model.mask_support == "exact"
    graphs = model.computation_graphs(range(6))
    silent = model.pred_copies(
        graphs, edit=lambda union: union.with_mask(union.x.new_zeros(union.num_edges))
    )
    bare = [Data(x=g.x, edge_index=g.edge_index[:, :0], edge_attr=g.edge_attr[:0]) for g in many]
    assert (
        silent - gg.GraphClassificationModel(model.net, bare).pred_continuous(range(6))
    ).abs().max() <= 1e-12


class Rerouted(nn.Module):
    """A layer on edges that are made out of the graph's."""

    def __init__(self, reroute):
        super().__init__()
        self.conv, self.reroute = GraphConv(FEATURES, 3), reroute

    def forward(self, x, edge_index):
        return self.conv(x, self.reroute(edge_index))


def two_steps(edge_index):
    """Pairs of nodes with a walk of two edges."""
    size = int(edge_index.max()) + 1 if edge_index.numel() else 0
    dense = torch.zeros(size, size).index_put(
        (edge_index[0], edge_index[1]), torch.ones(edge_index.size(1))
    )
    return (dense @ dense).nonzero().t()


@pytest.mark.parametrize("reroute", [two_steps, to_undirected], ids=["products", "both ways"])
def test_edges_that_are_more_than_a_selection_are_refused(reroute):
    model = gg.NodeClassificationModel(built(Rerouted, reroute), graph(20, 0))
    assert model.mask_support.startswith("refused")


class Clustered(nn.Module):
    """Pooling into overlapping clusters; what joins them is a product of matrices."""

    def __init__(self):
        super().__init__()
        self.first, self.pool, self.second = (
            GraphConv(FEATURES, 8),
            ASAPooling(8, 0.6),
            GraphConv(8, 3),
        )

    def forward(self, x, edge_index, batch):
        h, edge_index, weight, batch, _ = self.pool(
            self.first(x, edge_index).relu(), edge_index, batch=batch
        )
        return global_mean_pool(self.second(h, edge_index, weight), batch)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_pooling_into_clusters_is_refused():
    many = [graph(7 + seed, seed) for seed in range(6)]
    for data in many:
        data.x = data.x.float()
    assert gg.GraphClassificationModel(built(Clustered).float(), many).mask_support.startswith(
        "refused"
    )


# --- operations that are followed -----------------------------------------------------------------

KEPT = torch.tensor([True, False, True, True, False, True])
ORDER = torch.tensor([5, 0, 3])
NUMBER = torch.tensor([4, 0, 2, 3, 1])
SELECTIONS = {
    "mask": (lambda e: e[:, KEPT], [0, 2, 3, 5]),
    "order": (lambda e: e[:, ORDER], [5, 0, 3]),
    "rows": (lambda e: torch.stack([e[0][KEPT], e[1][KEPT]]), [0, 2, 3, 5]),
    "unpacked and renumbered": (
        lambda e: torch.stack([NUMBER[row][ORDER] for row in e], dim=0),
        [5, 0, 3],
    ),
    "renumbered": (lambda e: NUMBER[e], [0, 1, 2, 3, 4, 5]),
    "turned": (lambda e: e.flip(0)[:, 2:5], [2, 3, 4]),
    "turned by index": (lambda e: e[[1, 0]], [0, 1, 2, 3, 4, 5]),
    "backwards": (lambda e: e.flip(1), [5, 4, 3, 2, 1, 0]),
    "every second": (lambda e: e[:, ::2], [0, 2, 4]),
    "transposed": (lambda e: e.t()[ORDER].t().contiguous(), [5, 0, 3]),
    "index_select": (lambda e: e.index_select(1, ORDER), [5, 0, 3]),
    "masked_select": (lambda e: torch.stack([row.masked_select(KEPT) for row in e]), [0, 2, 3, 5]),
    "shifted": (lambda e: e + 10, [0, 1, 2, 3, 4, 5]),
    "without loops": (lambda e: remove_self_loops(e)[0], [0, 1, 2, 4, 5]),
    "with loops": (lambda e: add_self_loops(e, num_nodes=2)[0], [0, 1, 2, 3, 4, 5, -1, -1]),
    "sorted": (lambda e: coalesce(e), [2, 0, 4, 1, 3, 5]),
    "copied": (lambda e: e.clone().long().contiguous().view(2, -1), [0, 1, 2, 3, 4, 5]),
    "written into": (lambda e: e.clone().fill_(0), None),
    "made anew": (lambda e: torch.tensor(e.tolist()), None),
    "two of one kind": (lambda e: torch.stack([e[0][KEPT], e[1][ORDER.repeat(2)[:4]]]), None),
}


@pytest.mark.parametrize(("make", "wanted"), SELECTIONS.values(), ids=SELECTIONS)
def test_columns_are_followed_through(make, wanted):
    edge_index = torch.tensor([[1, 2, 0, 3, 1, 4], [0, 0, 1, 3, 3, 2]])
    with EdgeTracker(edge_index) as tracker:
        made = make(edge_index)
    found = tracker.columns(made)
    assert (None if found is None else found.tolist()) == wanted


def test_attention_with_a_renumbered_selection_is_masked_by_gradient_and_by_hand():
    """Gradient explainers give edge scores there.

    The scores equal those of a small change of each factor.
    """
    many = [graph(7 + seed, seed) for seed in range(4)]
    net = built(Pooled, POOLS["TopK"])
    net.second = GATConv(16, 16).double()
    net.forward = lambda x, edge_index, batch: attention_behind_pooling(net, x, edge_index, batch)
    model = gg.GraphClassificationModel(
        net, many, forward=lambda net, g: net(g.x, g.edge_index, g.batch)
    )
    (x,) = gg.InputXGradient().explain(model, [1])
    graphs, label = model.computation_graphs([1]), int(model.pred_discrete([1]))
    step = 1e-6

    def edit(union):
        own = union.edge_position == union.copy[union.edge_copy]
        return union.with_mask(1 - step * own.to(union.x.dtype))

    moved = model.pred_copies(graphs, torch.zeros(len(x.edges), dtype=torch.int64), edit)[:, label]
    wanted = (model.pred_continuous([1])[0, label] - moved) / step
    assert (x.edge_score - wanted).abs().max() <= 1e-6
    assert bool((x.edge_score != 0).any())


def attention_behind_pooling(net, x, edge_index, batch):
    h, edge_index, _, batch, _, _ = net.pool(
        net.first(x, edge_index).relu(), edge_index, None, batch
    )
    return net.lin(global_mean_pool(net.second(h, edge_index).relu(), batch))


def test_gates_follow_the_edges_that_pooling_leaves():
    """GraphMask closes gates, which changes what pooling leaves: messages keep the gates of their
    own edges.
    """
    many = [graph(7 + seed, seed) for seed in range(4)]
    model = gg.GraphClassificationModel(
        built(Pooled, POOLS["TopK"]), many, forward=lambda net, g: net(g.x, g.edge_index, g.batch)
    )
    xs = gg.GraphMask(epochs=5).explain(model, [0, 1])
    alone = gg.GraphMask(epochs=5).explain(model, [1])
    assert all(x.edge_score is not None and bool(x.edge_score.isfinite().all()) for x in xs)
    assert torch.allclose(xs[1].edge_score, alone[0].edge_score, atol=1e-12)
