"""Tiny networks and graphs on which the right answer is known: what checks of explainers are played
on.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ReLU
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, global_mean_pool

from graphgauge.core import make_generator, temporary_global_seed
from graphgauge.models import (
    BaseModel,
    GraphClassificationModel,
    LinkClassificationModel,
    NodeClassificationModel,
    NodeRegressionModel,
)

_NODES, _FEATURES, _HIDDEN, _CLASSES = 20, 5, 7, 3
ISOLATED = _NODES - 1  #: a node without edges
DECISIVE = 3  #: the feature, or the neighbour, that alone decides


class ToyNet(Module):
    """Two GCN layers of different widths with a functional ReLU in between."""

    def __init__(self, out: int = _CLASSES, cached: bool = False) -> None:
        super().__init__()
        self.first = GCNConv(_FEATURES, _HIDDEN, cached=cached)
        self.second = GCNConv(_HIDDEN, out, cached=cached)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits of the nodes."""
        return self.second(
            self.between(self.first(x, edge_index, edge_weight)), edge_index, edge_weight
        )

    def between(self, hidden: Tensor) -> Tensor:
        """The activation."""
        return torch.relu(hidden)


class ModuleReLUNet(ToyNet):
    """The same function with the ReLU as a module."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = ReLU()

    def between(self, hidden: Tensor) -> Tensor:
        """The activation."""
        return self.relu(hidden)


class _ToyLinkNet(Module):
    """Links by an encoder and an inner product."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = ToyNet(_HIDDEN)

    def encode(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Embeddings of the nodes."""
        return self.encoder(x, edge_index)

    def decode(self, z: Tensor, edge_label_index: Tensor) -> Tensor:
        """Logits of the links."""
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


class _ToyGraphNet(ToyNet):
    """One row per graph."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        """Logits of the graphs."""
        return global_mean_pool(super().forward(x, edge_index), batch)


class _OneLayerNet(Module):
    """One GCN layer without bias whose weights are given: all that it does can be read off them."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.conv = GCNConv(weight.size(1), weight.size(0), bias=False)
        self.conv.lin.weight.data.copy_(weight)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of the nodes."""
        return self.conv(x, edge_index)


class _TwoLayerNet(Module):
    """Two GCN layers without biases or weights to learn: features pass as they are, then their sum
    decides.
    """

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = (
            _OneLayerNet(torch.eye(_FEATURES)),
            _OneLayerNet(torch.tensor([[-1.0], [1.0]]).expand(2, _FEATURES)),
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits of the nodes."""
        return self.two(torch.relu(self.one(x, edge_index)), edge_index)


def build_network(make: Any, *args: Any, seed: int = 0, **kwargs: Any) -> Any:
    """A network with reproducible weights, for evaluation."""
    with temporary_global_seed(seed):
        return make(*args, **kwargs).eval()


def tiny_graph(num_nodes: int = _NODES, seed: int = 0) -> Data:
    """Any two nodes but the last linked with probability 1/4, in one direction; no loops, no
    parallel edges.
    """
    random = make_generator(seed)
    linked = torch.rand(num_nodes, num_nodes, generator=random) < 0.25
    linked.fill_diagonal_(False)
    linked[-1], linked[:, -1] = False, False
    return Data(
        x=torch.randn(num_nodes, _FEATURES, generator=random),
        edge_index=linked.nonzero().t().contiguous(),
    )


def toy_node_model(net: Module | None = None, data: Data | None = None) -> NodeClassificationModel:
    """Nodes of a tiny graph."""
    return NodeClassificationModel(
        build_network(ToyNet) if net is None else net,
        tiny_graph() if data is None else data,
        output="logits",
    )


def toy_link_model(seed: int = 0) -> LinkClassificationModel:
    """Links of a tiny graph."""
    return LinkClassificationModel(
        build_network(_ToyLinkNet, seed=seed), tiny_graph(), output="logits"
    )


def toy_graph_model(seed: int = 0) -> GraphClassificationModel:
    """A few tiny graphs."""
    return GraphClassificationModel(
        build_network(_ToyGraphNet, seed=seed),
        [tiny_graph(6 + size, size) for size in range(3)],
        output="logits",
    )


def toy_regression_model() -> NodeRegressionModel:
    """Values of the nodes of a tiny graph."""
    return NodeRegressionModel(build_network(ToyNet, 1), tiny_graph())


def toy_one_column_model() -> NodeClassificationModel:
    """Two classes in one column."""
    return toy_node_model(build_network(ToyNet, 1))


def toy_weighted_model() -> NodeClassificationModel:
    """Edges with weights."""
    data = tiny_graph()
    data.edge_weight = 0.5 + torch.rand(data.num_edges, generator=make_generator(1))
    return toy_node_model(data=data)


def toy_double_model() -> NodeClassificationModel:
    """The same nodes in double precision."""
    data = tiny_graph()
    data.x = data.x.double()
    return toy_node_model(build_network(ToyNet).double(), data)


def toy_edgeless_model() -> NodeClassificationModel:
    """Nodes without any edge."""
    data = tiny_graph()
    data.edge_index = data.edge_index[:, :0]
    return toy_node_model(data=data)


def toy_cached_model() -> NodeClassificationModel:
    """Layers that remember the normalised edges of another graph."""
    net = build_network(ToyNet, cached=True)
    other = tiny_graph(seed=1)
    with torch.no_grad():
        net(other.x, other.edge_index)
    return toy_node_model(net)


def renumber_nodes(data: Data) -> tuple[Data, Tensor]:
    """The same graph with its nodes in another order, and the new number of each node."""
    number = torch.randperm(data.num_nodes, generator=make_generator(2))
    return Data(
        x=torch.empty_like(data.x).index_copy(0, number, data.x), edge_index=number[data.edge_index]
    ), number


def toy_permuted_features_model() -> tuple[NodeClassificationModel, Tensor]:
    """The plain stage with its columns, and what the first layer makes of them, in another order;
    and the old place of each.
    """
    order, data, net = (
        torch.randperm(_FEATURES, generator=make_generator(4)),
        tiny_graph(),
        build_network(ToyNet),
    )
    data.x, net.first.lin.weight.data = data.x[:, order], net.first.lin.weight.data[:, order]
    return toy_node_model(net, data), order


def toy_opposite_edges_model() -> BaseModel:
    """Nodes 0 and 1 hear each other; only node 1 has anything to say: edge 0 (from 1 to 0) decides
    and edge 1 carries nothing.
    """
    data = Data(x=torch.zeros(2, _FEATURES), edge_index=torch.tensor([[1, 0], [0, 1]]))
    data.x[1] = 1.0
    return toy_node_model(build_network(_TwoLayerNet), data)


def shuffle_edges(data: Data) -> tuple[Data, Tensor]:
    """The same graph with its edges in another order, and the old place of each edge."""
    order = torch.randperm(data.num_edges, generator=make_generator(3))
    return Data(x=data.x, edge_index=data.edge_index[:, order]), order


def add_unreachable_part(data: Data) -> Data:
    """The graph beside another one, with large features, that no edge links to it."""
    other = tiny_graph(seed=1)
    edges = torch.cat([data.edge_index, other.edge_index + data.num_nodes], dim=1)
    return Data(x=torch.cat([data.x, 100 * other.x]), edge_index=edges)


def add_self_loops(data: Data) -> Data:
    """The graph with a self-loop stored at every node, before all other edges; GCN layers make the
    same of both.
    """
    loops = torch.arange(data.num_nodes).repeat(2, 1)
    return Data(x=data.x, edge_index=torch.cat([loops, data.edge_index], dim=1))


def duplicate_edges(data: Data) -> Data:
    """The graph with each edge stored twice, all second ones behind all first ones."""
    return Data(x=data.x, edge_index=torch.cat([data.edge_index, data.edge_index], dim=1))


def toy_decisive_feature_model() -> BaseModel:
    """Feature `DECISIVE` alone decides: all others have weight 0."""
    data, weight = tiny_graph(), torch.zeros(2, _FEATURES)
    data.x = data.x.abs() + 0.5
    weight[:, DECISIVE] = torch.tensor([-1.0, 1.0])
    return toy_node_model(build_network(_OneLayerNet, weight), data)


def star_graph() -> Data:
    """Node 0 hears from nodes 1..8, of which only node `DECISIVE` has anything to say; nobody hears
    from others.
    """
    data = Data(
        x=torch.zeros(9, _FEATURES),
        edge_index=torch.stack([torch.arange(1, 9), torch.zeros(8, dtype=torch.int64)]),
    )
    data.x[DECISIVE] = 2.0
    return data


def toy_star_model(data: Data) -> BaseModel:
    """One layer on a star: the sum of what is heard decides."""
    return toy_node_model(
        build_network(_OneLayerNet, torch.tensor([[-1.0], [1.0]]).expand(2, _FEATURES)), data
    )
