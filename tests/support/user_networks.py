"""Networks as a user has them, one for each level, and the files of a project."""

import torch
import yaml
from safetensors.torch import save_model
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, MessagePassing, global_mean_pool

from graphgauge.datasets import save_graph


class NodeNet(nn.Module):
    """Two GCN layers; for links the inner product of the ends, with decode."""

    def __init__(self, width=4, out=2):
        super().__init__()
        self.first, self.last = GCNConv(3, width), GCNConv(width, out)

    def forward(self, x, edge_index):
        return self.last(self.first(x, edge_index).relu(), edge_index)


class LinkNet(NodeNet):
    def encode(self, x, edge_index):
        return NodeNet.forward(self, x, edge_index)

    def decode(self, z, edge_label_index):
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(1)


class GraphNet(NodeNet):
    def forward(self, x, edge_index, batch):
        return global_mean_pool(NodeNet.forward(self, x, edge_index), batch)


class Odd(MessagePassing):
    """A layer that LRP has no rule for."""

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)


class OddNet(NodeNet):
    def __init__(self):
        super().__init__()
        self.odd = Odd()

    def forward(self, x, edge_index):
        return self.odd(super().forward(x, edge_index), edge_index)


class PairNet(NodeNet):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index), x


def broken():
    raise RuntimeError("no spoon")


def no_network():
    return {"a": 1}


def called(net, g):
    return net(g.x, g.edge_index)


SEED = 5  #: with it both classes are predicted
ready = NodeNet()


def graph(seed=0, nodes=12):
    draw = torch.Generator().manual_seed(seed)
    ring = torch.arange(nodes)
    edges = torch.cat(
        [torch.stack([ring, ring.roll(1)]), torch.randint(nodes, (2, 2 * nodes), generator=draw)], 1
    )
    edges = edges[:, edges[0] != edges[1]].unique(dim=1)
    return Data(
        x=torch.randn(nodes, 3, generator=draw), edge_index=edges, y=torch.arange(nodes) % 2
    )


def node_graph():
    data = graph()
    data.test_mask = torch.arange(12) >= 6
    data.no_mask = torch.zeros(12, dtype=torch.bool)
    data.test_pairs = torch.tensor([[0, 1, 2], [5, 6, 7]])
    data.class_names, data.feature_names = ["no", "yes"], ["income", "age", "debt"]
    return data


def write_project(folder, **changes):
    """The files of a project; gives the path of its file."""
    torch.manual_seed(SEED)
    level = changes.get("level") or "node"
    make = {"node": NodeNet, "link": LinkNet, "graph": GraphNet}[level]
    save_model(make(), folder / "w.safetensors")
    save_graph(
        [graph(seed) for seed in range(5)] if level == "graph" else node_graph(),
        folder / "g.safetensors",
    )
    keys = {
        "model": f"support.user_networks:{make.__name__}",
        "weights": "w.safetensors",
        "data": "g.safetensors",
        "device": "cpu",
    }
    keys |= {
        "level": "node",
        "task": "classification",
        "explainers": ["saliency", "random"],
        **changes,
    }
    path = folder / "project.yaml"
    path.write_text(
        yaml.safe_dump({key: value for key, value in keys.items() if value is not None})
    )
    return path
