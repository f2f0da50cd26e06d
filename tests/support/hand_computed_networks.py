"""Networks small enough to work out by hand: every node adds up what its neighbours send, a
function reads the sum.
"""

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing, global_add_pool

import graphgauge as gg


class Messages(MessagePassing):
    """sum over edges u -> v of w_uv x_u."""

    def __init__(self):
        super().__init__(aggr="add")

    def forward(self, x, edge_index, edge_weight):
        return self.propagate(edge_index, x=x, edge_weight=edge_weight)

    def message(self, x_j, edge_weight):
        return x_j * edge_weight[:, None]


class OfNodes(nn.Module):
    """``read(x, messages)`` gives the output of every node; with ``layers=2`` messages travel
    twice.
    """

    def __init__(self, read, layers=1):
        super().__init__()
        self.convs, self.read = nn.ModuleList(Messages() for _ in range(layers)), read

    def forward(self, x, edge_index, edge_weight):
        sent = x
        for conv in self.convs:
            sent = conv(sent, edge_index, edge_weight)
        return self.read(x, sent)


class OfLinks(OfNodes):
    """``read(z_u, z_v)`` with z = x + messages gives the output of the link (u, v)."""

    def forward(self, x, edge_index, edge_weight, edge_label_index):
        z = x + self.convs[0](x, edge_index, edge_weight)
        return self.read(z[edge_label_index[0]], z[edge_label_index[1]])


class OfGraphs(OfNodes):
    """``read(sum of x, sum of messages)`` gives the output of the graph."""

    def forward(self, x, edge_index, edge_weight, batch=None):
        sent = self.convs[0](x, edge_index, edge_weight)
        return self.read(global_add_pool(x, batch), global_add_pool(sent, batch))


def graph(edges, x):
    """From edges (u, v) or (u, v, weight) and a row of features for each node."""
    ends = torch.tensor([edge[:2] for edge in edges], dtype=torch.int64).reshape(-1, 2).t()
    weight = torch.tensor([edge[2] if len(edge) == 3 else 1.0 for edge in edges])
    return Data(
        x=torch.tensor(x, dtype=torch.float32).reshape(len(x), -1),
        edge_index=ends,
        edge_weight=weight,
    )


def own_features(net, g):
    """A hidden space in which every node, or graph, is its features."""
    return g.x if g.get("batch") is None else global_add_pool(g.x, g.batch)


def explanation(model, target, edge_score=None, feature_score=None, edge_scope=None, **fields):
    """Scores by hand: of edges by their number in the data, of features by the number of the node;
    the rest has 0.
    """
    graph = model.computation_graphs([target], edge_scope)[0]
    edge, feature = (
        None if side is None else torch.as_tensor(side, dtype=torch.float32)
        for side in (edge_score, feature_score)
    )
    return gg.Xplanation(
        target=target,
        level=model.level,
        nodes=graph.nodes,
        edges=graph.edges,
        num_nodes=graph.num_source_nodes,
        num_edges=graph.num_source_edges,
        edge_score=None if edge is None else edge[graph.edges],
        feature_score=None if feature is None else feature[graph.nodes],
        **fields,
    )
