"""Networks that need nodes or edges in the order they are stored in: refused by name, never
evaluated as something else.
"""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    FastRGCNConv,
    GraphConv,
    RGCNConv,
    SAGEConv,
    TopKPooling,
    global_add_pool,
    global_mean_pool,
)

import graphgauge as gg
from graphgauge.core.errors import BadModel


class Weighted(nn.Module):
    """A graph classifier with a number for each edge."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.lin = GraphConv(4, 8), nn.Linear(8, 3)

    def forward(self, x, edge_index, batch, weight=None, edge_weight=None):
        return self.lin(
            global_add_pool(
                self.conv(x, edge_index, edge_weight if weight is None else weight).relu(), batch
            )
        )


def ring(size, name):
    """As many edges as nodes; the first is a self-loop, which graphgauge puts last."""
    start = torch.arange(size)
    edge_index = torch.stack([start, start.roll(-1)])
    edge_index[:, 0] = 0
    random = torch.Generator().manual_seed(size)
    return Data(
        x=torch.randn(size, 4, generator=random),
        edge_index=edge_index,
        **{name: 3 * torch.rand(size, generator=random)},
    )


def as_stored(net, graphs, name):
    rows = [
        net(g.x, g.edge_index, torch.zeros(len(g.x), dtype=torch.int64), **{name: g[name]})
        for g in graphs
    ]
    return torch.cat(rows).softmax(1).detach()


def test_numbers_of_edges_that_pass_for_numbers_of_nodes_are_refused_by_name():
    graphs = [ring(size, "weight") for size in (4, 5, 6, 7)]
    with pytest.raises(
        BadModel,
        match=(
            r"Weighted gives other predictions when .* data\.weight has a row for each node and "
            r"for each edge"
        ),
    ):
        gg.GraphClassificationModel(Weighted(), graphs).pred_continuous([0, 1, 2, 3])


def test_under_the_name_of_an_edges_number_they_move_with_the_edges():
    graphs, net = [ring(size, "edge_weight") for size in (4, 5, 6, 7)], Weighted()
    found = gg.GraphClassificationModel(net, graphs).pred_continuous([0, 1, 2, 3])
    assert (found - as_stored(net, graphs, "edge_weight")).abs().max() <= 1e-6


class InOrder(nn.Module):
    """Needs edges sorted by the node they lead to."""

    def __init__(self, pools):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.lin, self.pools = SAGEConv(4, 8, aggr="lstm"), nn.Linear(8, 3), pools

    def forward(self, x, edge_index, batch=None):
        h = self.conv(x, edge_index).relu()
        return self.lin(global_add_pool(h, batch) if self.pools else h)


def in_order(size, seed, has_loop):
    random = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(0, size, (2, 3 * size), generator=random)
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    loop = torch.zeros(2, int(has_loop), dtype=torch.int64)
    return Data(
        x=torch.randn(size, 4, generator=random), edge_index=torch.cat([edge_index, loop], 1)
    ).sort(sort_by_row=False)


def test_a_network_that_needs_sorted_edges_is_refused_in_words():
    told = (
        r"InOrder could not be run \(ValueError: .*sorted.*\) when nodes and edges are renumbered"
    )
    with pytest.raises(BadModel, match=told):
        gg.NodeClassificationModel(InOrder(pools=False), in_order(30, 0, has_loop=False)).record()
    with pytest.raises(BadModel, match=told):
        gg.GraphClassificationModel(
            InOrder(pools=True), [in_order(5, k, has_loop=True) for k in range(4)]
        ).pred_continuous([0])


def test_where_its_edges_stay_as_they_are_it_is_not():
    graphs, net = [in_order(5, k, has_loop=False) for k in range(4)], InOrder(pools=True)
    rows = [net(g.x, g.edge_index, torch.zeros(len(g.x), dtype=torch.int64)) for g in graphs]
    found = gg.GraphClassificationModel(net, graphs).pred_continuous([0, 1, 2, 3])
    assert (found - torch.cat(rows).softmax(1).detach()).abs().max() <= 1e-6


# --- layers that are doubtful, and others that cannot be masked at all ----------------------------


class MaxAndPool(nn.Module):
    """A silenced message can win in the first layer; the second sends along other edges, which are
    made out of the graph's.
    """

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.pool, self.second = (
            SAGEConv(6, 16, aggr="max"),
            TopKPooling(16, 0.6),
            SAGEConv(16, 16, aggr="max"),
        )
        self.lin = nn.Linear(16, 3)

    def forward(self, x, edge_index, batch):
        h, edge_index, _, batch, _, _ = self.pool(
            self.first(x, edge_index).relu(), edge_index, None, batch
        )
        return self.lin(
            global_mean_pool(
                self.second(h, torch.cat([edge_index, edge_index.flip(0)], 1)).relu(), batch
            )
        )


class Relations(nn.Module):
    """RGCNConv, in which a silenced message can win, sends along parts of the edges; the next layer
    both ways along each.
    """

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = RGCNConv(6, 8, 2, aggr="max"), FastRGCNConv(8, 3, 2)

    def forward(self, x, edge_index, edge_type):
        both = torch.cat([edge_index, edge_index.flip(0)], 1)
        return self.second(self.first(x, edge_index, edge_type).relu(), both, edge_type.repeat(2))


def graph(size, seed):
    random = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.randn(size, 6, generator=random),
        edge_index=torch.randint(0, size, (2, 3 * size), generator=random),
        edge_type=torch.randint(0, 2, (3 * size,), generator=random),
    )


@pytest.mark.parametrize(
    "model",
    [
        lambda: gg.GraphClassificationModel(
            MaxAndPool(), [graph(9, k) for k in range(8)], output="logits"
        ),
        lambda: gg.NodeClassificationModel(Relations(), graph(20, 0)),
    ],
    ids=["pooling", "relations"],
)
def test_a_refused_layer_is_not_hidden_by_a_doubtful_one(model):
    """Explanations then have features only, and the rows of edges say why."""
    own = model()
    assert own.mask_support.startswith("refused: edges cannot be masked in")
    with pytest.warns(UserWarning, match="there are no edge scores"):
        found = gg.Evaluator(own, edge_removal="drop", timed=0).compare(
            [gg.InputXGradient()], [0, 1]
        )
    status = {row.metric: row.cell.status for row in found.rows}
    assert (status["edge_pertinence"], status["feature_stability"]) == ("no_scores", "ok")
