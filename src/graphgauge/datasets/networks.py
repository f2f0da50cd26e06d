"""Small networks in the paper's shape, and their training."""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from graphgauge.core.randomness import seeded_globally


class GCN(nn.Module):
    """Two graph convolutions with a ReLU module and dropout in between; returns logits (N, C)."""

    def __init__(self, num_features: int, num_hidden: int, num_classes: int, dropout: float = 0.2) -> None:
        super().__init__()
        self.first = GCNConv(num_features, num_hidden)
        self.act = nn.ReLU()
        self.dropout = nn.Dropout(dropout)
        self.second = GCNConv(num_hidden, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits.  (N, C)"""
        hidden = self.dropout(self.act(self.first(x, edge_index)))
        return self.second(hidden, edge_index)


def trained_gcn(data: Data, num_hidden: int = 32, epochs: int = 200, learning_rate: float = 0.02, seed: int = 0) -> GCN:
    """A GCN fitted to ``data.y`` on ``data.train_mask`` with Adam, in evaluation mode."""
    with seeded_globally(seed):
        net = GCN(data.num_node_features, num_hidden, int(data.y.max()) + 1)
        optimiser = torch.optim.Adam(net.parameters(), lr=learning_rate, weight_decay=5e-4)
        for _ in range(epochs):
            optimiser.zero_grad()
            logits = net(data.x, data.edge_index)
            nn.functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
            optimiser.step()
    return net.eval()


def accuracy(net: nn.Module, data: Data, mask: Tensor) -> float:
    """Share of the nodes under ``mask`` whose class the network names."""
    with torch.no_grad():
        predicted = net(data.x, data.edge_index).argmax(1)
    return float((predicted == data.y)[mask].float().mean())
