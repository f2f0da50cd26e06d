"""Networks and graphs whose prediction hangs on one edge and one feature, known in advance."""

from dataclasses import dataclass

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv

import graphgauge as gg


@dataclass
class Planted:
    """A target, the edge (by number) and the feature (node, column) that its prediction hangs on."""

    model: gg.BaseModel
    target: int
    edge: int
    feature: tuple[int, int]

    def assert_on_top(self, x):
        assert x.edge_vector().argmax() == self.edge
        assert x.feature_matrix().argmax() == self.feature[0] * x.feature_score.size(1) + self.feature[1]


class OneSource(nn.Module):
    """Class 1 if a neighbour has feature 2, else class 0; what other neighbours say counts against it."""

    def __init__(self):
        super().__init__()
        self.one, self.two = GraphConv(5, 4), GraphConv(4, 2)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.fill_(0.01)
            self.one.lin_rel.weight.fill_(-0.1)  # else the entropy of a mask decides on it
            self.one.lin_rel.weight[:, 2] = 2.0
            self.two.lin_root.weight[1] = 0.5
            self.two.lin_rel.bias[0] = 1.5

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


def decisive(neighbours=6, num_nodes=200):
    """Node 0 has ``neighbours`` neighbours with one word each; only node 4 has the word that decides.

    All other nodes stand alone: they make the start of GNNExplainer's edge masks as narrow as in a graph of usual size.
    """
    source = torch.arange(1, neighbours + 1)
    edge_index = torch.stack([source, torch.zeros_like(source)])
    x = torch.zeros(num_nodes, 5)
    x[source, source % 2] = 1.0
    x[4, 2] = 1.0
    x[0, 3] = 1.0
    data = Data(x=x, edge_index=edge_index)
    return Planted(gg.NodeClassificationModel(OneSource().eval(), data), target=0, edge=3, feature=(4, 2))
