"""The models on which `validity` asks whether chance scores as chance: classes and values; nodes,
links and graphs.

Cora GCN, Cora GAT     the graph of `cora`, 7 classes
BA-Shapes GCN          4 classes, one-hot features
Values GAT             a random graph of 400 nodes and 2,400 edges; a node's value follows from its
                       own features and those of its neighbours
Links SAGE             four communities of 75 nodes; is there a link? an encoder and the inner
                       product
Graphs GIN             300 graphs of 8 to 20 nodes; which of three kinds of node is most frequent?
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from cora import CLASSES, FEATURES, HIDDEN, cora, sampled_targets
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GINConv, SAGEConv, global_mean_pool
from torch_geometric.utils import degree

import graphgauge as gg
from graphgauge.core import Target, make_generator, temporary_global_seed
from graphgauge.datasets import ba_shapes, trained_gcn


@dataclass(frozen=True)
class Named:
    """A model, and the targets to be explained."""

    name: str
    model: gg.BaseModel
    targets: Sequence[Target]


class TwoLayers(nn.Module):
    """Two layers of one kind with an activation in between."""

    def __init__(
        self, layer: Callable[..., nn.Module], widths: tuple[int, int, int], act: nn.Module
    ) -> None:
        super().__init__()
        self.one, self.act, self.two = layer(*widths[:2]), act, layer(*widths[1:])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """(N, F) -> (N, C)"""
        return self.two(self.act(self.one(x, edge_index)), edge_index)


class InnerProduct(nn.Module):
    """Links by an encoder and the inner product."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def encode(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """(N, D)"""
        return self.encoder(x, edge_index)

    def decode(self, z: Tensor, edge_label_index: Tensor) -> Tensor:
        """(P,)"""
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


def fitted(make: Callable[[], nn.Module], loss: Callable[[Any], Tensor], epochs: int = 200) -> Any:
    """A network after so many steps of Adam, in evaluation mode."""
    with temporary_global_seed(0):
        net = make()
        optimiser = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
        for _ in range(epochs):
            optimiser.zero_grad()
            loss(net).backward()
            optimiser.step()
    return net.eval()


def cora_gcn(count: int) -> Named:
    """The network of `cora`."""
    net, data = cora()
    return Named("Cora GCN", gg.NodeClassificationModel(net, data), sampled_targets(data, count))


def cora_gat(count: int) -> Named:
    """The same graph, attention. Without Cora's files, random weights."""
    _, data = cora()

    def make() -> nn.Module:
        return TwoLayers(GATConv, (FEATURES, HIDDEN, CLASSES), nn.ReLU())

    def loss(net: Any) -> Tensor:
        return nn.functional.cross_entropy(
            net(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask]
        )

    net = fitted(make, loss) if "y" in data else fitted(make, loss, epochs=0)
    return Named("Cora GAT", gg.NodeClassificationModel(net, data), sampled_targets(data, count))


def ba_shapes_gcn(count: int) -> Named:
    """Base graph and houses; any node can be a target, the test part has too few."""
    data = ba_shapes()
    return Named(
        "BA-Shapes GCN",
        gg.NodeClassificationModel(trained_gcn(data), data),
        drawn(data.num_nodes, count),
    )


def values_gat(count: int) -> Named:
    """A value that is told by sums of features."""
    random = make_generator(0)
    ends = torch.randint(400, (2, 1250), generator=random)
    ends = ends[:, ends[0] != ends[1]]
    edge_index = torch.cat([ends, ends.flip(0)], dim=1).unique(dim=1)
    x, weight = torch.randn(400, 16, generator=random), torch.randn(16, 2, generator=random)
    own, others = (x @ weight).T
    heard = torch.zeros(400).index_add(0, edge_index[1], others[edge_index[0]]) / degree(
        edge_index[1], 400
    ).clamp(min=1)
    y = torch.tanh(own) + 2 * torch.tanh(heard)

    def loss(net: Any) -> Tensor:
        return (net(x, edge_index)[:, 0] - y).square().mean()

    net = fitted(lambda: TwoLayers(GATConv, (16, 32, 1), nn.LeakyReLU()), loss)
    model = gg.NodeRegressionModel(net, Data(x=x, edge_index=edge_index))
    return Named(
        "Values GAT",
        model,
        [v for v in drawn(400, 400) if v in set(edge_index[1].tolist())][:count],
    )


def links_sage(count: int) -> Named:
    """Half of the targets are links, half are pairs without one."""
    random = make_generator(0)
    community = torch.arange(300) // 75
    chance = torch.where(community[:, None] == community, 0.06, 0.004)
    is_link = (torch.rand(300, 300, generator=random) < chance).triu(1)
    links, others = is_link.nonzero().T, (~is_link).triu(1).nonzero().T
    others = others[:, torch.randperm(others.size(1), generator=random)]
    edge_index = torch.cat([links, links.flip(0)], dim=1)
    x = nn.functional.one_hot(community, 4) + torch.randn(300, 4, generator=random)
    x = torch.cat([x, torch.randn(300, 12, generator=random)], dim=1)

    def loss(net: Any) -> Tensor:
        z = net.encode(x, edge_index)
        pairs = torch.cat([links, others[:, : links.size(1)]], dim=1)
        truth = (torch.arange(pairs.size(1)) < links.size(1)).float()
        return nn.functional.binary_cross_entropy_with_logits(net.decode(z, pairs), truth)

    net = fitted(lambda: InnerProduct(TwoLayers(SAGEConv, (16, 16, 8), nn.ReLU())), loss)
    chosen = links[:, torch.randperm(links.size(1), generator=random)]
    pairs = torch.cat([chosen[:, : count // 2], others[:, : count - count // 2]], dim=1)
    model = gg.LinkClassificationModel(net, Data(x=x, edge_index=edge_index))
    return Named("Links SAGE", model, [(int(u), int(v)) for u, v in pairs.T])


class PooledGin(nn.Module):
    """A GIN layer, a second one, and the mean over each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = (
            GINConv(nn.Sequential(nn.Linear(width, 16), nn.ReLU())) for width in (8, 16)
        )
        self.last = nn.Linear(16, 3)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """(N, F) -> (graphs, C)"""
        return self.last(global_mean_pool(self.two(self.one(x, edge_index), edge_index), batch))


def graphs_gin(count: int) -> Named:
    """Eight features of each node, of which the first three say its kind, with noise."""
    random, graphs = make_generator(0), []
    for _ in range(300):
        size = int(torch.randint(8, 21, (1,), generator=random))
        kind = torch.multinomial(
            torch.rand(3, generator=random) + 0.1, size, replacement=True, generator=random
        )
        ends = torch.randint(size, (2, 2 * size), generator=random)
        ends = ends[:, ends[0] != ends[1]]
        x = torch.randn(size, 8, generator=random) / 2
        x[:, :3] += nn.functional.one_hot(kind, 3)
        graphs.append(
            Data(
                x=x,
                edge_index=torch.cat([ends, ends.flip(0)], 1),
                y=torch.bincount(kind, minlength=3).argmax(),
            )
        )
    batch = Batch.from_data_list(graphs)
    net = fitted(
        PooledGin,
        lambda net: nn.functional.cross_entropy(
            net(batch.x, batch.edge_index, batch.batch), batch.y
        ),
    )
    return Named("Graphs GIN", gg.GraphClassificationModel(net, graphs), drawn(300, count))


def drawn(size: int, count: int) -> list[Target]:
    """Some of the numbers below ``size``."""
    return list(torch.randperm(size, generator=make_generator(0))[:count].tolist())


MODELS: dict[str, Callable[[int], Named]] = {
    "Cora GCN": cora_gcn,
    "Cora GAT": cora_gat,
    "BA-Shapes GCN": ba_shapes_gcn,
    "Values GAT": values_gat,
    "Links SAGE": links_sage,
    "Graphs GIN": graphs_gin,
}
