"""Three SAGE layers whose messages read the attributes of their edges.

h_i' = W h_i + mean over edges (j, i) of  V [h_j, e_ji]
"""

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing


class EdgeSAGE(MessagePassing):
    """One layer.  x (N, wide), edge_index (2, E), edge_attr (E, D) -> (N, out)"""

    def __init__(self, wide: int, out: int, edge_width: int) -> None:
        super().__init__(aggr="mean")
        self.own = nn.Linear(wide, out)
        self.neighbour = nn.Linear(wide + edge_width, out, bias=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        return self.own(x) + self.propagate(edge_index, x=x, edge_attr=edge_attr)

    def message(self, x_j: Tensor, edge_attr: Tensor) -> Tensor:
        return self.neighbour(torch.cat([x_j, edge_attr], dim=-1))


class EdgeSAGENet(nn.Module):
    """Logits of each node.  -> (N, classes)"""

    def __init__(
        self, features: int = 6, edge_width: int = 2, hidden: int = 16, classes: int = 2
    ) -> None:
        super().__init__()
        self.first = EdgeSAGE(features, hidden, edge_width)
        self.second = EdgeSAGE(hidden, hidden, edge_width)
        self.last = EdgeSAGE(hidden, classes, edge_width)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        hidden = self.first(x, edge_index, edge_attr).relu()
        return self.last(self.second(hidden, edge_index, edge_attr).relu(), edge_index, edge_attr)


def make_net(hidden: int = 16) -> EdgeSAGENet:
    """What the project file names."""
    return EdgeSAGENet(hidden=hidden)
