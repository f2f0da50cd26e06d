"""Cora and a GCN for the benchmarks: the real one where its files are at hand, else a random graph
with Cora's numbers.

`GRAPHGAUGE_DATA` names the folder that holds ``Cora/raw/ind.cora.*``. The real graph is
`graphgauge.datasets.load("Cora", "node")` (8,448 edges), and its GCN is trained on the public
split; the random graph has about 10,550 edges, and its GCN has random weights.
"""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import degree

from graphgauge.core import make_generator, temporary_global_seed
from graphgauge.datasets import DATASETS, find_data_folder, load

NODES, LINKS, FEATURES, WORDS, HIDDEN, CLASSES = 2708, 5278, 1433, 18, 16, 7


class Net(nn.Module):
    """Two layers of GCN."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.act, self.dropout, self.two = (
            GCNConv(FEATURES, HIDDEN),
            nn.ReLU(),
            nn.Dropout(),
            GCNConv(HIDDEN, CLASSES),
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Probabilities, which is what PyG's bridge to Captum explains.  (N, C)"""
        return self.two(self.dropout(self.act(self.one(x, edge_index))), edge_index).softmax(1)


def cora(device: str = "cpu") -> tuple[Net, Data]:
    """The network, in evaluation mode, and the graph; Cora's own if its files are found."""
    is_real = find_data_folder(DATASETS["Cora"]) is not None
    data = load("Cora", "node") if is_real else cora_sized()
    return (trained(data) if is_real else untrained()).to(device), data.to(device)


def cora_sized() -> Data:
    """A random graph with Cora's numbers."""
    return random_citations(NODES, LINKS, FEATURES, WORDS)


def random_citations(nodes: int, links: int, features: int, words: int) -> Data:
    """A random graph whose links are edges in both directions, and of whose features each node has
    ``words``.
    """
    random = make_generator(0)
    ends = torch.randint(nodes, (2, links), generator=random)
    ends = ends[:, ends[0] != ends[1]]
    edge_index = torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1)
    drawn = torch.randint(features, (nodes, words), generator=random)
    return Data(x=torch.zeros(nodes, features).scatter_(1, drawn, 1.0), edge_index=edge_index)


def untrained() -> Net:
    """Random weights."""
    with temporary_global_seed(0):
        return Net().eval()


def trained(data: Data, epochs: int = 200) -> Net:
    """Adam on the training nodes."""
    with temporary_global_seed(0):
        net = Net()
        optimiser = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
        for _ in range(epochs):
            optimiser.zero_grad()
            prob = net(data.x, data.edge_index)[data.train_mask]
            nn.functional.nll_loss(prob.clamp(min=1e-12).log(), data.y[data.train_mask]).backward()
            optimiser.step()
    return net.eval()


def sampled_targets(data: Data, count: int = 10, seed: int = 0) -> list[int]:
    """Test nodes (all nodes, where there is no split) that receive messages, drawn at random."""
    received = degree(data.edge_index[1].cpu(), data.num_nodes) > 0
    candidates = (received & data.test_mask.cpu() if "test_mask" in data else received).nonzero()[
        :, 0
    ]
    return candidates[
        torch.randperm(len(candidates), generator=make_generator(seed))[:count]
    ].tolist()
