"""Networks and graphs that many tests share."""

import itertools

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    APPNP,
    ChebConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    SAGEConv,
    SGConv,
    TAGConv,
    TransformerConv,
    global_mean_pool,
)

FEATURES, HIDDEN, CLASSES = 6, 8, 4


def mlp(width_in, width_out):
    return nn.Sequential(nn.Linear(width_in, width_out), nn.ReLU(), nn.Linear(width_out, width_out))


#: the tested layers: how to build one, how many hops it reaches, and sensible numbers of them
LAYERS = {
    "GCN": (GCNConv, 1, (1, 2, 3)),
    "GCN cached": (lambda a, b: GCNConv(a, b, cached=True), 1, (2,)),
    "GAT": (GATConv, 1, (1, 2, 3)),
    "GAT 4 heads": (lambda a, b: GATConv(a, b, heads=4, concat=False), 1, (1, 2, 3)),
    "GATv2": (GATv2Conv, 1, (1, 2, 3)),
    "SAGE": (SAGEConv, 1, (1, 2, 3)),
    "SAGE max": (lambda a, b: SAGEConv(a, b, aggr="max"), 1, (2,)),
    "GIN": (lambda a, b: GINConv(mlp(a, b)), 1, (1, 2, 3)),
    "GraphConv": (GraphConv, 1, (1, 2, 3)),
    "Transformer": (TransformerConv, 1, (1, 2, 3)),
    "SGConv": (lambda a, b: SGConv(a, b, K=3), 3, (1,)),
    "TAGConv": (lambda a, b: TAGConv(a, b, K=2), 2, (1, 2)),
    "ChebConv": (lambda a, b: ChebConv(a, b, K=3), 2, (1, 2)),
}


class Stack(nn.Module):
    """Layers with a ReLU in between; logits, or one value with ``out=1``."""

    def __init__(self, layer, num_layers=2, out=CLASSES, norm=None, final=None, act=F.relu):
        super().__init__()
        widths = [FEATURES, *[HIDDEN] * (num_layers - 1), out]
        self.convs = nn.ModuleList(layer(a, b) for a, b in itertools.pairwise(widths))
        self.norm, self.final, self.act = norm, final, act

    def forward(self, x, edge_index):
        for number, conv in enumerate(self.convs):
            x = conv(x if number == 0 else self.act(x), edge_index)
            if number == 0 and self.norm is not None:
                x = self.norm(x)
        return x if self.final is None else self.final(x)


class Propagated(nn.Module):
    """A linear layer and ten steps of personalised PageRank."""

    def __init__(self, out=CLASSES):
        super().__init__()
        self.lin, self.prop = nn.Linear(FEATURES, out), APPNP(K=10, alpha=0.1)

    def forward(self, x, edge_index):
        return self.prop(self.lin(x), edge_index)


class EncodeDecode(nn.Module):
    """Links by an encoder and an inner product."""

    def __init__(self, layer=GCNConv, num_layers=2):
        super().__init__()
        self.encoder = Stack(layer, num_layers, out=HIDDEN)

    def encode(self, x, edge_index):
        return self.encoder(x, edge_index)

    def decode(self, z, edge_label_index):
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


class LinkForward(nn.Module):
    """Links by one forward with ``edge_label_index`` and a linear decoder of three classes."""

    def __init__(self, layer=GCNConv, num_layers=2, out=3, act=F.relu):
        super().__init__()
        self.encoder, self.lin = (
            Stack(layer, num_layers, out=HIDDEN, act=act),
            nn.Linear(HIDDEN, out),
        )

    def forward(self, x, edge_index, edge_label_index):
        z = self.encoder(x, edge_index)
        return self.lin(z[edge_label_index[0]] * z[edge_label_index[1]])


class Pooled(nn.Module):
    """One row per graph."""

    def __init__(self, layer=GCNConv, out=3, act=F.relu):
        super().__init__()
        self.encoder, self.lin = Stack(layer, 2, out=HIDDEN, act=act), nn.Linear(HIDDEN, out)

    def forward(self, x, edge_index, batch=None):
        return self.lin(global_mean_pool(self.encoder(x, edge_index), batch))


def build(make, *args, seed=0, dtype=torch.float32, **kwargs):
    """A module with reproducible weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make(*args, **kwargs).to(dtype).eval()


def random_graph(num_nodes=60, num_edges=150, seed=0, dtype=torch.float32, undirected=False):
    """A graph with stored self-loops, multi-edges and isolated nodes."""
    random = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(max(num_nodes - 3, 1), (2, num_edges), generator=random)
    loops = torch.arange(0, num_nodes, 7).repeat(2, 1)
    edge_index = torch.cat([edge_index, edge_index[:, :5], loops], dim=1)
    if undirected:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    edge_index = edge_index[:, torch.randperm(edge_index.size(1), generator=random)]
    x = torch.randn(num_nodes, FEATURES, generator=random, dtype=torch.float64).to(dtype)
    return Data(x=x, edge_index=edge_index)


@st.composite
def graphs(draw, max_nodes=12, max_edges=24, min_nodes=1):
    """Any small graph: isolated nodes, loops, duplicates, one edge, no edge."""
    num_nodes = draw(st.integers(min_nodes, max_nodes))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=max_edges))
    edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t().contiguous()
    seed = draw(st.integers(0, 2**20))
    x = torch.randn(
        num_nodes, FEATURES, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return Data(x=x, edge_index=edge_index)
