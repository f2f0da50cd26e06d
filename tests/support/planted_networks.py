"""Networks and graphs whose prediction depends on one edge and one feature, known in advance."""

from dataclasses import dataclass

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv

import graphgauge as gg


@dataclass
class Planted:
    """A target, and the edge (by number) and feature (node, column) that decide its prediction."""

    model: gg.BaseModel
    target: int
    edge: int
    feature: tuple[int, int]

    def assert_on_top(self, x):
        assert x.edge_vector().argmax() == self.edge
        assert (
            x.feature_matrix().argmax()
            == self.feature[0] * x.feature_score.size(1) + self.feature[1]
        )


class OneSource(nn.Module):
    """Class 1 if a neighbour has feature 2, else class 0; what other neighbours say counts
    ``against`` it.
    """

    def __init__(self, against):
        super().__init__()
        self.one, self.two = GraphConv(5, 4), GraphConv(4, 2)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.fill_(0.01)
            self.one.lin_rel.weight.fill_(-against)
            self.one.lin_rel.weight[:, 2] = 2.0
            self.two.lin_root.weight[1] = 0.5
            self.two.lin_rel.bias[0] = 1.5

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


def decisive(stars=30, neighbours=6, against=0.1):
    """Stars whose middle hears a word from each neighbour; in every second star one of them has the
    word that decides.

    The target is the middle of the first star, its fourth neighbour decides. GNNExplainer's edge
    entropy wins over neighbours that matter less than 0.1; GraphMask keeps all that matter.
    """
    middle = torch.arange(stars) * (neighbours + 1)
    source = (middle[:, None] + 1 + torch.arange(neighbours)).flatten()
    x = torch.zeros(stars * (neighbours + 1), 5)
    x[source, source % 2] = 1.0
    x[middle, 3] = 1.0
    for star in range(0, stars, 2):
        x[middle[star] + 1 + (star + 3) % neighbours, 2] = 1.0
    data = Data(x=x, edge_index=torch.stack([source, middle.repeat_interleave(neighbours)]))
    return Planted(
        gg.NodeClassificationModel(OneSource(against).eval(), data),
        target=0,
        edge=3,
        feature=(4, 2),
    )
