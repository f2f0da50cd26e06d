"""Tiny networks and graphs on which the right answer is known: what checks of explainers are played
on.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ReLU
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, global_mean_pool

from graphgauge.core.randomness import seeded_globally
from graphgauge.core.seeds import generator
from graphgauge.models import (
    BaseModel,
    GraphClassificationModel,
    LinkClassificationModel,
    NodeClassificationModel,
    NodeRegressionModel,
)

NODES, FEATURES, HIDDEN, CLASSES = 20, 5, 7, 3
ISOLATED = NODES - 1  #: a node without edges
DECISIVE = 3  #: the feature, or the neighbour, that alone decides


class Functional(Module):
    """Two GCN layers of different widths with a functional ReLU in between."""

    def __init__(self, out: int = CLASSES, cached: bool = False) -> None:
        super().__init__()
        self.first = GCNConv(FEATURES, HIDDEN, cached=cached)
        self.second = GCNConv(HIDDEN, out, cached=cached)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits of the nodes."""
        return self.second(
            self.between(self.first(x, edge_index, edge_weight)), edge_index, edge_weight
        )

    def between(self, hidden: Tensor) -> Tensor:
        """The activation."""
        return torch.relu(hidden)


class Modular(Functional):
    """The same function with the ReLU as a module."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = ReLU()

    def between(self, hidden: Tensor) -> Tensor:
        """The activation."""
        return self.relu(hidden)


class Paired(Module):
    """Links by an encoder and an inner product."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Functional(HIDDEN)

    def encode(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Embeddings of the nodes."""
        return self.encoder(x, edge_index)

    def decode(self, z: Tensor, edge_label_index: Tensor) -> Tensor:
        """Logits of the links."""
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


class Pooled(Functional):
    """One row per graph."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Logits of the graphs."""
        return global_mean_pool(super().forward(x, edge_index), batch)


class OneLayer(Module):
    """One GCN layer without bias whose weights are given: all that it does can be read off them."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.conv = GCNConv(weight.size(1), weight.size(0), bias=False)
        self.conv.lin.weight.data.copy_(weight)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of the nodes."""
        return self.conv(x, edge_index)


class TwoLayers(Module):
    """Two GCN layers without biases or weights to learn: features pass as they are, then their sum
    decides.
    """

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = (
            OneLayer(torch.eye(FEATURES)),
            OneLayer(torch.tensor([[-1.0], [1.0]]).expand(2, FEATURES)),
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of the nodes."""
        return self.two(torch.relu(self.one(x, edge_index)), edge_index)


def built(make: Any, *args: Any, seed: int = 0, **kwargs: Any) -> Any:
    """A network with reproducible weights, for evaluation."""
    with seeded_globally(seed):
        return make(*args, **kwargs).eval()


def tiny_graph(num_nodes: int = NODES, seed: int = 0) -> Data:
    """Any two nodes but the last linked with probability 1/4, in one direction; no loops, no
    parallel edges.
    """
    random = generator(seed)
    linked = torch.rand(num_nodes, num_nodes, generator=random) < 0.25
    linked.fill_diagonal_(False)
    linked[-1], linked[:, -1] = False, False
    return Data(
        x=torch.randn(num_nodes, FEATURES, generator=random),
        edge_index=linked.nonzero().t().contiguous(),
    )


def node_stage(net: Module | None = None, data: Data | None = None) -> NodeClassificationModel:
    """Nodes of a tiny graph."""
    return NodeClassificationModel(
        built(Functional) if net is None else net,
        tiny_graph() if data is None else data,
        output="logits",
    )


def link_stage(seed: int = 0) -> LinkClassificationModel:
    """Links of a tiny graph."""
    return LinkClassificationModel(built(Paired, seed=seed), tiny_graph(), output="logits")


def graph_stage(seed: int = 0) -> GraphClassificationModel:
    """A few tiny graphs."""
    return GraphClassificationModel(
        built(Pooled, seed=seed), [tiny_graph(6 + size, size) for size in range(3)], output="logits"
    )


def regression_stage() -> NodeRegressionModel:
    """Values of the nodes of a tiny graph."""
    return NodeRegressionModel(built(Functional, 1), tiny_graph())


def one_column_stage() -> NodeClassificationModel:
    """Two classes in one column."""
    return node_stage(built(Functional, 1))


def weighted_stage() -> NodeClassificationModel:
    """Edges with weights."""
    data = tiny_graph()
    data.edge_weight = 0.5 + torch.rand(data.num_edges, generator=generator(1))
    return node_stage(data=data)


def double_stage() -> NodeClassificationModel:
    """The same nodes in double precision."""
    data = tiny_graph()
    data.x = data.x.double()
    return node_stage(built(Functional).double(), data)


def bare_stage() -> NodeClassificationModel:
    """Nodes without any edge."""
    data = tiny_graph()
    data.edge_index = data.edge_index[:, :0]
    return node_stage(data=data)


def cached_stage() -> NodeClassificationModel:
    """Layers that remember the normalised edges of another graph."""
    net = built(Functional, cached=True)
    other = tiny_graph(seed=1)
    with torch.no_grad():
        net(other.x, other.edge_index)
    return node_stage(net)


def renumbered(data: Data) -> tuple[Data, Tensor]:
    """The same graph with its nodes in another order, and the new number of each node."""
    number = torch.randperm(data.num_nodes, generator=generator(2))
    return Data(
        x=torch.empty_like(data.x).index_copy(0, number, data.x), edge_index=number[data.edge_index]
    ), number


def with_permuted_features() -> tuple[NodeClassificationModel, Tensor]:
    """The plain stage with its columns, and what the first layer makes of them, in another order;
    and the old place of each.
    """
    order, data, net = (
        torch.randperm(FEATURES, generator=generator(4)),
        tiny_graph(),
        built(Functional),
    )
    data.x, net.first.lin.weight.data = data.x[:, order], net.first.lin.weight.data[:, order]
    return node_stage(net, data), order


def there_and_back() -> BaseModel:
    """Nodes 0 and 1 hear each other; only node 1 has anything to say: edge 0 (from 1 to 0) decides
    and edge 1 carries nothing.
    """
    data = Data(x=torch.zeros(2, FEATURES), edge_index=torch.tensor([[1, 0], [0, 1]]))
    data.x[1] = 1.0
    return node_stage(built(TwoLayers), data)


def shuffled(data: Data) -> tuple[Data, Tensor]:
    """The same graph with its edges in another order, and the old place of each edge."""
    order = torch.randperm(data.num_edges, generator=generator(3))
    return Data(x=data.x, edge_index=data.edge_index[:, order]), order


def with_stranger(data: Data) -> Data:
    """The graph beside another one, with large features, that no edge links to it."""
    other = tiny_graph(seed=1)
    edges = torch.cat([data.edge_index, other.edge_index + data.num_nodes], dim=1)
    return Data(x=torch.cat([data.x, 100 * other.x]), edge_index=edges)


def with_loops(data: Data) -> Data:
    """The graph with a self-loop stored at every node, before all other edges; GCN layers make the
    same of both.
    """
    loops = torch.arange(data.num_nodes).repeat(2, 1)
    return Data(x=data.x, edge_index=torch.cat([loops, data.edge_index], dim=1))


def doubled(data: Data) -> Data:
    """The graph with each edge stored twice, all second ones behind all first ones."""
    return Data(x=data.x, edge_index=torch.cat([data.edge_index, data.edge_index], dim=1))


def decisive_feature_stage() -> BaseModel:
    """Feature `DECISIVE` alone decides: all others have weight 0."""
    data, weight = tiny_graph(), torch.zeros(2, FEATURES)
    data.x = data.x.abs() + 0.5
    weight[:, DECISIVE] = torch.tensor([-1.0, 1.0])
    return node_stage(built(OneLayer, weight), data)


def star() -> Data:
    """Node 0 hears from nodes 1..8, of which only node `DECISIVE` has anything to say; nobody hears
    from others.
    """
    data = Data(
        x=torch.zeros(9, FEATURES),
        edge_index=torch.stack([torch.arange(1, 9), torch.zeros(8, dtype=torch.int64)]),
    )
    data.x[DECISIVE] = 2.0
    return data


def star_stage(data: Data) -> BaseModel:
    """One layer on a star: the sum of what is heard decides."""
    return node_stage(built(OneLayer, torch.tensor([[-1.0], [1.0]]).expand(2, FEATURES)), data)
