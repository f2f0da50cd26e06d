"""A tiny wrapped network."""

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from graphgauge.models import NodeClassificationModel


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.lin = GCNConv(3, 4), torch.nn.Linear(4, 2)

    def forward(self, x, edge_index):
        return self.lin(self.conv(x, edge_index).relu())


def model(seed=0, shift=0.0, edges=((0, 1), (1, 2))):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = Net().eval()
    return NodeClassificationModel(
        net, Data(x=torch.eye(3) + shift, edge_index=torch.tensor(edges))
    )
