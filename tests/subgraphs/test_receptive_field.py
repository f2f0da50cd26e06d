"""What is known of PyG's layers is true: with the halo of the table, extracted graphs give the
whole graph's raw rows.
"""

import pytest
import torch
from support.small_networks import FEATURES, mlp, random_graph
from torch import nn
from torch_geometric import nn as pyg

import graphgauge as gg
from graphgauge.subgraphs.computation_graph import HALOS
from graphgauge.subgraphs.receptive_field import (
    _DEGREE_NORMALISED_LAYERS,
    _LOCAL_LAYERS,
    layer_halo,
)

DEGREES = torch.tensor([3, 9, 12, 9, 5, 3, 1])
MAKE = {
    "AGNNConv": lambda: pyg.AGNNConv(),
    "APPNP": lambda: pyg.APPNP(K=3, alpha=0.2),
    "ARMAConv": lambda: pyg.ARMAConv(FEATURES, 4, num_stacks=2, num_layers=2),
    "CGConv": lambda: pyg.CGConv(FEATURES),
    "ClusterGCNConv": lambda: pyg.ClusterGCNConv(FEATURES, 4),
    "EdgeConv": lambda: pyg.EdgeConv(mlp(2 * FEATURES, 4)),
    "FAConv": lambda: pyg.FAConv(FEATURES),
    "FeaStConv": lambda: pyg.FeaStConv(FEATURES, 4, heads=2),
    "FiLMConv": lambda: pyg.FiLMConv(FEATURES, 4),
    "GATConv": lambda: pyg.GATConv(FEATURES, 4),
    "GATv2Conv": lambda: pyg.GATv2Conv(FEATURES, 4),
    "GCN2Conv": lambda: pyg.GCN2Conv(FEATURES, alpha=0.1),
    "GCNConv": lambda: pyg.GCNConv(FEATURES, 4),
    "GENConv": lambda: pyg.GENConv(FEATURES, 4),
    "GINConv": lambda: pyg.GINConv(mlp(FEATURES, 4)),
    "GINEConv": lambda: pyg.GINEConv(mlp(FEATURES, 4)),
    "GatedGraphConv": lambda: pyg.GatedGraphConv(FEATURES, num_layers=2),
    "GeneralConv": lambda: pyg.GeneralConv(FEATURES, 4),
    "GraphConv": lambda: pyg.GraphConv(FEATURES, 4),
    "LEConv": lambda: pyg.LEConv(FEATURES, 4),
    "LGConv": lambda: pyg.LGConv(),
    "MFConv": lambda: pyg.MFConv(FEATURES, 4),
    "MixHopConv": lambda: pyg.MixHopConv(FEATURES, 4, powers=[0, 1, 2]),
    "NNConv": lambda: pyg.NNConv(FEATURES, 4, nn.Linear(2, FEATURES * 4)),
    "PNAConv": lambda: pyg.PNAConv(
        FEATURES, 4, ["mean", "max", "std"], ["identity", "amplification"], DEGREES
    ),
    "RGATConv": lambda: pyg.RGATConv(FEATURES, 4, num_relations=2),
    "RGCNConv": lambda: pyg.RGCNConv(FEATURES, 4, num_relations=2),
    "ResGatedGraphConv": lambda: pyg.ResGatedGraphConv(FEATURES, 4),
    "SAGEConv": lambda: pyg.SAGEConv(FEATURES, 4),
    "SGConv": lambda: pyg.SGConv(FEATURES, 4, K=2),
    "SSGConv": lambda: pyg.SSGConv(FEATURES, 4, alpha=0.1, K=2),
    "SuperGATConv": lambda: pyg.SuperGATConv(FEATURES, 4, is_undirected=True),
    "TAGConv": lambda: pyg.TAGConv(FEATURES, 4, K=2),
    "TransformerConv": lambda: pyg.TransformerConv(FEATURES, 4),
}


class One(nn.Module):
    """One layer, with what it needs beside features and edges."""

    def __init__(self, conv):
        super().__init__()
        self.conv = conv

    def forward(self, x, edge_index, edge_attr, edge_type):
        name = type(self.conv).__name__
        if name in ("FAConv", "GCN2Conv"):
            return self.conv(x, x, edge_index)
        if name in ("GINEConv", "NNConv"):
            return self.conv(
                x, edge_index, edge_attr if name == "NNConv" else edge_attr.repeat(1, 3)
            )
        if name in ("RGATConv", "RGCNConv"):
            return self.conv(x, edge_index, edge_type)
        return self.conv(x, edge_index)


def test_the_table_is_tested_whole():
    assert set(MAKE) == _LOCAL_LAYERS | _DEGREE_NORMALISED_LAYERS


@pytest.mark.parametrize("name", sorted(MAKE))
def test_the_known_halo_gives_the_raw_rows_of_the_whole_graph(name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = One(MAKE[name]()).double().eval()
    data = random_graph(120, 260, dtype=torch.float64)
    data.edge_attr = torch.rand(
        data.num_edges, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    data.edge_type = torch.arange(data.num_edges) % 2
    model = gg.NodeClassificationModel(net, data, output="logits")
    assert HALOS[layer_halo(net.conv)] == ("none" if name in _LOCAL_LAYERS else "in")
    batch = model.computation_graphs(range(120))
    assert batch.notes() == {HALOS[layer_halo(net.conv)]: 120}
    with torch.no_grad():
        rows = model.map(model.executor.outputs, batch)
        whole = net(data.x, data.edge_index, data.edge_attr, data.edge_type)
    assert (rows - whole).abs().max() <= 1e-12 * whole.abs().max()


def test_a_smaller_halo_would_be_wrong_for_normalised_layers():
    """A k-hop subgraph is not what a degree-normalised network sees.

    The table of halos is needed, because without the halo the same comparison fails.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = One(pyg.GCNConv(FEATURES, 4)).double().eval()
    data = random_graph(120, 260, dtype=torch.float64)
    data.edge_attr, data.edge_type = torch.ones(data.num_edges, 2), torch.zeros(data.num_edges)
    model = gg.NodeClassificationModel(net, data, output="logits")
    bare = model.extract_graphs(
        model.parse_targets(range(120)), model.hops, HALOS.index("none"), "messages"
    )
    assert (model.pred_copies(bare) - model.pred_continuous(range(120))).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("layer", "halo"),
    [
        (pyg.GCNConv(2, 2, normalize=False, add_self_loops=False), "none"),
        (pyg.TAGConv(2, 2, normalize=False), "none"),
        (pyg.ChebConv(2, 2, K=2), "in and out"),
        (type("GCNConv", (pyg.GCNConv,), {})(2, 2), "in and out"),
        (pyg.SimpleConv(), "in and out"),
    ],
    ids=["GCN as it is", "TAG as it is", "Cheb", "a subclass", "not listed"],
)
def test_halos_of_other_layers(layer, halo):
    assert HALOS[layer_halo(layer)] == halo
