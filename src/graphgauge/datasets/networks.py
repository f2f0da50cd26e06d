"""The paper's networks: two graph convolutions (GCN, or GAT with one head), with a decoder for link
tasks.

    h = dropout(act(conv(x)))        act: nn.ReLU for classes, nn.LeakyReLU for values
    z = conv(h)                      nodes: C logits or one value; links: an embedding

The embedding of a link task has the hidden size; for the decoder "sum" it is one number.

    inner product   z_u . z_v (+ b)            does the link exist (one logit); MovieLens' value
    hadamard        W (z_u * z_v) + b          the classes of links of BA-Shapes
    sum             z_u + z_v                  Synthetic's value

A network for values whose last step has a bias starts with that bias at the mean training label
(half of it where two are added): Adam moves a weight by about one learning rate a step, and labels
around 3.5 would need 3,500 steps of 0.001.

The names of these classes and of their attributes are part of the digest by which stored runs
identify a network: they must not change.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv

from graphgauge.core import lookup, temporary_global_seed

#: what each network takes of an edge, in node tasks that have it
_EDGE_ARGUMENTS = {"gcn": "edge_weight", "gat": "edge_attr"}
_RECTIFIERS = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU}


class GCN(nn.Module):
    """Two graph convolutions with a ReLU module and dropout between them; returns logits (N, C)."""

    def __init__(
        self,
        num_features: int,
        num_hidden: int,
        num_classes: int,
        dropout: float = 0.2,
        act: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.first = GCNConv(num_features, num_hidden)
        self.act = act or nn.ReLU()
        self.dropout = nn.Dropout(dropout)
        self.second = GCNConv(num_hidden, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits.  (N, C)

        Args:
            x: Features of the nodes.  (N, num_features)
            edge_index: Source and target node of each edge.  (2, E)
            edge_weight: Weight of each edge (E,); by default all are 1.
        """
        hidden = self.dropout(self.act(self.first(x, edge_index, edge_weight)))
        return self.second(hidden, edge_index, edge_weight)


class GAT(nn.Module):
    """Two attention layers of one head each, with an activation module and dropout between them;
    returns (N, C).
    """

    def __init__(
        self,
        num_features: int,
        num_hidden: int,
        num_classes: int,
        dropout: float = 0.2,
        act: nn.Module | None = None,
        edge_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.first = GATConv(num_features, num_hidden, edge_dim=edge_dim)
        self.act = act or nn.ReLU()
        self.dropout = nn.Dropout(dropout)
        self.second = GATConv(num_hidden, num_classes, edge_dim=edge_dim)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """Logits or values.  (N, C)

        Args:
            x: Features of the nodes.  (N, num_features)
            edge_index: Source and target node of each edge.  (2, E)
            edge_attr: Features of each edge (E, edge_dim), which change the attention if the
                network was built with ``edge_dim``; by default there are none.
        """
        hidden = self.dropout(self.act(self.first(x, edge_index, edge_attr)))
        return self.second(hidden, edge_index, edge_attr)


class LinkNetwork(nn.Module):
    """An encoder of nodes and a decoder of pairs."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def encode(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Node embeddings.  (N, D)"""
        return self.encoder(x, edge_index)

    def decode(self, z: Tensor, edge_label_index: Tensor) -> Tensor:
        """One row per pair.  (N, D), (2, P) -> (P,) or (P, C)"""
        return self.decoder(z[edge_label_index[0]], z[edge_label_index[1]])


class InnerProduct(nn.Module):
    """z_u . z_v, plus a learned number if ``bias`` is set."""

    def __init__(self, bias: bool = False) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1)) if bias else None

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """(P, D), (P, D) -> (P,)"""
        product = (u * v).sum(1)
        return product if self.bias is None else product + self.bias


class Hadamard(nn.Module):
    """A linear layer on the element-wise product."""

    def __init__(self, size: int, num_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, num_classes)

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """(P, D), (P, D) -> (P, C)"""
        return self.linear(u * v)


class Sum(nn.Module):
    """z_u + z_v, for one number per node."""

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """(P, 1), (P, 1) -> (P,)"""
        return (u + v)[:, 0]


@dataclass(frozen=True)
class Architecture:
    """Everything that is needed to build a network without its data."""

    conv: str  #: "gcn" or "gat"
    num_features: int
    hidden: int
    outputs: int  #: of the second convolution
    dropout: float
    rectifier: str  #: "relu" or "leaky_relu"
    edge_input: bool  #: edge_weight (GCN) or edge_attr (GAT) is used
    decoder: str  #: "none" (node task), "inner_product", "hadamard" or "sum"
    classes: int  #: 0 for values
    decoder_bias: bool

    def build(self) -> nn.Module:
        """Build the network; its weights are drawn from the global random state."""
        act = lookup(_RECTIFIERS, self.rectifier, "rectifier")()
        sizes = (self.num_features, self.hidden, self.outputs, self.dropout, act)
        encoder: nn.Module = (
            GCN(*sizes)
            if self.conv == "gcn"
            else GAT(*sizes, edge_dim=1 if self.edge_input else None)
        )
        return encoder if self.decoder == "none" else LinkNetwork(encoder, self.build_decoder())

    def build_decoder(self) -> nn.Module:
        """Build the decoder."""
        if self.decoder == "hadamard":
            return Hadamard(self.outputs, self.classes)
        return Sum() if self.decoder == "sum" else InnerProduct(self.decoder_bias)


def plan_architecture(
    data: Data, conv: str, hidden: int, dropout: float, bias: bool = False
) -> Architecture:
    """The architecture that the paper uses for this task.

    Args:
        data: The task.
        conv: "gcn" or "gat".
        hidden: Hidden size.
        dropout: Share of hidden values that are dropped.
        bias: Whether an inner-product decoder has a learned number.
    """
    lookup(_EDGE_ARGUMENTS, conv, "network")
    decoder = decoder_name(data)
    classes = len(data.class_names) if data.task == "classification" else 0
    outputs = {"none": max(classes, 1), "sum": 1}.get(decoder, hidden)
    rectifier = "relu" if classes else "leaky_relu"
    used = bool(edge_inputs(data, conv))
    inner = decoder == "inner_product"
    return Architecture(
        conv,
        data.num_node_features,
        hidden,
        outputs,
        dropout,
        rectifier,
        used,
        decoder,
        classes,
        bias and inner,
    )


def decoder_name(data: Data) -> str:
    """The name of the decoder of the task."""
    if data.level == "node":
        return "none"
    if data.task == "classification":
        return "inner_product" if len(data.class_names) == 2 else "hadamard"
    return "sum" if data.name == "Synthetic" else "inner_product"


def edge_inputs(data: Data, conv: str) -> dict[str, Tensor]:
    """The inputs of a network besides x and edge_index, by keyword: in node tasks the edge weights,
    if there are any.
    """
    name = _EDGE_ARGUMENTS[conv]
    return {name: data[name]} if data.level == "node" and name in data else {}


def create_network(
    data: Data, conv: str, hidden: int, dropout: float, bias: bool = False, seed: int = 0
) -> nn.Module:
    """Create a network for the task, in the float type of ``data.x``. Global random states are not
    changed.

    Args:
        data: The task.
        conv: "gcn" or "gat".
        hidden: Hidden size.
        dropout: Share of hidden values that are dropped.
        bias: Whether an inner-product decoder has a learned number.
        seed: Seed of the initial weights.
    """
    with temporary_global_seed(seed):
        net = plan_architecture(data, conv, hidden, dropout, bias).build()
    _set_mean_label_bias(net, data)
    return net.to(data.x.dtype)


def rebuild_network(plan: Architecture, state: dict[str, Tensor]) -> nn.Module:
    """Build the network with these weights, in evaluation mode."""
    with temporary_global_seed(0):
        net = plan.build()
    net = net.to(next(iter(state.values())).dtype)
    net.load_state_dict(state)
    return net.eval()


def _set_mean_label_bias(net: nn.Module, data: Data) -> None:
    """Set the last bias of a network for values to the mean training label, which it would
    otherwise learn first.
    """
    bias = _last_bias(net)
    if data.task == "regression" and bias is not None:
        share = 0.5 if decoder_name(data) == "sum" else 1.0
        bias.data.fill_(share * float(task_labels(data)[data.train_mask].double().mean()))


def _last_bias(net: nn.Module) -> nn.Parameter | None:
    """The bias that is added last, or None."""
    if not isinstance(net, LinkNetwork):
        return net.second.bias  # type: ignore[union-attr, return-value]
    return (
        net.encoder.second.bias  # type: ignore[return-value, union-attr]
        if isinstance(net.decoder, Sum)
        else getattr(net.decoder, "bias", None)
    )


def task_labels(data: Data) -> Tensor:
    """The labels of the nodes (N,), or of the pairs (L,)."""
    return data.y if data.level == "node" else data.edge_label


def trained_gcn(
    data: Data, num_hidden: int = 32, epochs: int = 200, learning_rate: float = 0.02, seed: int = 0
) -> GCN:
    """Train a GCN on ``data.y`` under ``data.train_mask`` with Adam, and return it in evaluation
    mode.

    Args:
        data: A graph with ``y`` and ``train_mask``.
        num_hidden: Hidden size.
        epochs: Number of epochs.
        learning_rate: Learning rate of Adam.
        seed: Seed of the initial weights and of dropout.
    """
    with temporary_global_seed(seed):
        net = GCN(data.num_node_features, num_hidden, int(data.y.max()) + 1)
        optimiser = torch.optim.Adam(net.parameters(), lr=learning_rate, weight_decay=5e-4)
        for _ in range(epochs):
            optimiser.zero_grad()
            logits = net(data.x, data.edge_index)
            nn.functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
            optimiser.step()
    return net.eval()


def accuracy(net: nn.Module, data: Data, mask: Tensor) -> float:
    """The share of nodes under ``mask`` whose class the network predicts.

    Args:
        net: Called as ``net(x, edge_index)``; returns a score for each class.
        data: A graph with ``y``.
        mask: Which nodes count.  (N,) bool
    """
    with torch.no_grad():
        predicted = net(data.x, data.edge_index).argmax(1)
    return float((predicted == data.y)[mask].float().mean())
