"""K networks of one architecture as one computation: every weight and every hidden row has a first
axis of length K.

What the networks share is computed once. The features of a GCN's first layer are propagated before
training, since Â (X W) = (Â X) W; features that are mostly zero stay sparse; the edges are one
matrix with K blocks (blocks.py). Parameters are the rows of one matrix theta (K, T), in the order
of the network's ``state_dict``, so that one step of Adam is a few operations on theta, whatever the
network. Shapes: N nodes, E edges with self-loops, D hidden, n labelled rows, C classes.
"""

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, leaky_relu, relu
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops, remove_self_loops

from graphgauge.benchmark.paper.block_sparse import (
    BlockDiagonal,
    SparsePattern,
    edge_dots,
    sort_pattern,
    weighted_sums,
)
from graphgauge.benchmark.paper.early_stopping import WATCHED_PARTS
from graphgauge.datasets import Architecture, decoder_name, edge_inputs, task_labels

_MOSTLY_ZERO = 0.1  #: features filled less than this are kept sparse
_ATTENTION_SLOPE = 0.2  #: of the leaky ReLU inside GATConv
_PairIndex = tuple[slice | Tensor, Tensor]


@dataclass(frozen=True)
class _SplitRows:
    """The labelled rows of a split: nodes, or pairs of nodes (sorted, with their labels)."""

    label: Tensor  #: (n,)
    node: Tensor  #: (n,) of a node task
    pairs: SparsePattern | None  #: of a link task


@dataclass(frozen=True)
class StackInputs:
    """A task, prepared for one kind of network and moved to a device."""

    x: Tensor  #: (N, F), propagated once for GCN; empty where ``places`` holds it
    places: SparsePattern | None  #: where x is not zero, with the values in ``x_value``
    x_value: Tensor
    edges: SparsePattern  #: with self-loops; rows are the heads
    edge_value: Tensor  #: (E,) normalised weights of GCN; (E, d) edge features of GAT
    part: dict[str, _SplitRows]


def prepare_inputs(data: Data, conv: str) -> StackInputs:
    """Compute once what K networks share."""
    edge_index, edge_value = (_normalised_edges if conv == "gcn" else _looped_edges)(
        data, edge_inputs(data, conv)
    )
    edges = sort_pattern(edge_index[1], edge_index[0], data.num_nodes, data.num_nodes)
    edge_value = edge_value[edges.order]
    x = (
        BlockDiagonal(edges, 1).times(edge_value[None], data.x[None])[0]
        if conv == "gcn"
        else data.x
    )
    parts = {name: _collect_split_rows(data, data[f"{name}_mask"]) for name in WATCHED_PARTS}
    if float((x != 0).double().mean()) >= _MOSTLY_ZERO:
        return StackInputs(x, None, x[:0], edges, edge_value, parts)
    row, col = x.nonzero(as_tuple=True)
    places = sort_pattern(row, col, *x.shape)
    return StackInputs(x[:0], places, x[row, col][places.order], edges, edge_value, parts)


def _normalised_edges(data: Data, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Edges with self-loops and their GCN weights.  (2, E), (E,)"""
    return gcn_norm(data.edge_index, inputs.get("edge_weight"), data.num_nodes, dtype=data.x.dtype)


def _looped_edges(data: Data, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Edges with self-loops and their features; a loop has the mean of the edges into its node.
    (2, E), (E, d)
    """
    feature = inputs.get("edge_attr", data.x.new_zeros(data.num_edges, 0))
    edge_index, without_loops = remove_self_loops(data.edge_index, feature)
    return add_self_loops(edge_index, without_loops, fill_value="mean", num_nodes=data.num_nodes)


def _collect_split_rows(data: Data, mask: Tensor) -> _SplitRows:
    """The nodes or pairs under ``mask`` with their labels: classes, or values in the float type of
    the features.
    """
    chosen, label = mask.nonzero()[:, 0], task_labels(data)[mask]
    is_class = data.task == "classification" and decoder_name(data) != "inner_product"
    label = label.long() if is_class else label.to(data.x.dtype)
    if data.level == "node":
        return _SplitRows(label, chosen, None)
    u, v = data.edge_label_index[:, chosen]
    pairs = sort_pattern(u, v, data.num_nodes, data.num_nodes)
    return _SplitRows(label[pairs.order], chosen, pairs)


class ParameterLayout:
    """The position of each tensor of a network in a row of theta."""

    def __init__(self, net: nn.Module) -> None:
        self.shape = {name: tuple(value.shape) for name, value in net.state_dict().items()}
        self.size = [prod(shape) for shape in self.shape.values()]

    def theta(self, nets: list[nn.Module]) -> Tensor:
        """The parameters of K networks.  (K, T)"""
        return torch.stack(
            [torch.cat([value.flatten() for value in net.state_dict().values()]) for net in nets]
        )

    def named(self, theta: Tensor) -> dict[str, Tensor]:
        """(K, T) -> (K, *shape) by name, without the prefix of an encoder."""
        parts = zip(self.shape.items(), theta.split(self.size, 1), strict=True)
        return {
            name.removeprefix("encoder."): part.view(len(theta), *shape)
            for (name, shape), part in parts
        }

    def state(self, row: Tensor) -> dict[str, Tensor]:
        """(T,) -> the ``state_dict`` of one network."""
        parts = zip(self.shape.items(), row.split(self.size), strict=True)
        return {name: part.reshape(shape).clone() for (name, shape), part in parts}


class NetworkStack:
    """The forward pass of ``count`` networks."""

    def __init__(
        self, inputs: StackInputs, plan: Architecture, parameters: ParameterLayout, count: int
    ) -> None:
        self.inputs, self.plan, self.parameters, self.count = inputs, plan, parameters, count
        self.edges = BlockDiagonal(inputs.edges, count)
        self.features = BlockDiagonal(inputs.places, 1) if inputs.places is not None else None
        self.pairs = {
            name: BlockDiagonal(part.pairs, count)
            for name, part in inputs.part.items()
            if part.pairs is not None
        }

    def outputs(
        self, theta: Tensor, part: str, keep: Tensor | None = None, rows: Tensor | None = None
    ) -> Tensor:
        """Outputs for the labelled nodes or pairs of a part.  (K, T) -> (K, n) or (K, n, C)

        Args:
            theta: Parameters of the networks.  (K, T)
            part: Name of the part.
            keep: Factors of dropout.  (K, N, D)
            rows: For each network, the positions of the pairs in the part; by default all.  (K, n)
        """
        weight = self.parameters.named(theta)
        hidden = self.first(weight)
        hidden = relu(hidden) if self.plan.rectifier == "relu" else leaky_relu(hidden)
        hidden = hidden if keep is None else hidden * keep
        z = self.spread(weight, "second", hidden @ weight["second.lin.weight"].transpose(1, 2))
        return self.decode(weight, z, part, rows)

    def first(self, weight: dict[str, Tensor]) -> Tensor:
        """The first convolution.  (K, N, D)"""
        mixed = self.mixed_features(weight["first.lin.weight"])
        return (
            mixed + weight["first.bias"][:, None]
            if self.plan.conv == "gcn"
            else self.spread(weight, "first", mixed)
        )

    def mixed_features(self, weight: Tensor) -> Tensor:
        """The product x W of each network.  (K, D, F) -> (K, N, D)"""
        if self.features is None:
            return (self.inputs.x @ weight.transpose(1, 2)).contiguous()
        # (1, F, K D): x is one matrix for all
        columns = weight.flatten(0, 1).t().contiguous()[None]
        mixed = weighted_sums(self.features, self.inputs.x_value[None], columns)[0]
        return mixed.view(-1, *weight.shape[:2]).transpose(0, 1).contiguous()

    def spread(self, weight: dict[str, Tensor], layer: str, h: Tensor) -> Tensor:
        """Pass the rows h along the edges.  (K, N, D) -> (K, N, D)"""
        value = (
            self.attention(weight, layer, h)
            if self.plan.conv == "gat"
            else self.inputs.edge_value.expand(self.count, -1)
        )
        return weighted_sums(self.edges, value, h) + weight[f"{layer}.bias"][:, None]

    def attention(self, weight: dict[str, Tensor], layer: str, h: Tensor) -> Tensor:
        """GAT's coefficients: a softmax over the edges into each node.  (K, N, D) -> (K, E)"""
        head, tail = (
            index.expand(self.count, -1) for index in (self.inputs.edges.row, self.inputs.edges.col)
        )
        by_tail, by_head = (
            (h @ weight[f"{layer}.att_{end}"].view(self.count, -1, 1))[..., 0]
            for end in ("src", "dst")
        )
        logit = by_tail.gather(1, tail) + by_head.gather(1, head)
        if self.plan.edge_input:
            by_edge = (
                weight[f"{layer}.lin_edge.weight"]
                * weight[f"{layer}.att_edge"].view(self.count, -1, 1)
            ).sum(1)
            logit = logit + by_edge @ self.inputs.edge_value.t()
        return _grouped_softmax(leaky_relu(logit, _ATTENTION_SLOPE), head, h.size(1))

    def decode(
        self, weight: dict[str, Tensor], z: Tensor, part: str, rows: Tensor | None = None
    ) -> Tensor:
        """From embeddings (K, N, D) to outputs for the rows of a part.  (K, n) or (K, n, C)"""
        if self.plan.decoder == "none":
            nodes = z[:, self.inputs.part[part].node]
            return nodes if self.plan.classes else nodes[..., 0]
        pairs = self.pairs[part]
        if self.plan.decoder == "sum":
            u, v = _pair_index(pairs.places, rows)
            return (z[u] + z[v])[..., 0]
        if self.plan.decoder == "inner_product":
            product = _pair_dots(pairs, rows, z, z)
            return product + weight["decoder.bias"] if self.plan.decoder_bias else product
        each = [
            _pair_dots(pairs, rows, z * row[:, None], z)
            for row in weight["decoder.linear.weight"].unbind(1)
        ]
        return torch.stack(each, -1) + weight["decoder.linear.bias"][:, None]

    def losses(
        self, theta: Tensor, part: str, keep: Tensor | None = None, rows: Tensor | None = None
    ) -> Tensor:
        """Mean loss of each network on a part of the labels, or on some pairs of it.  (K,)"""
        label = self.inputs.part[part].label
        return _network_losses(
            self.outputs(theta, part, keep, rows),
            label if rows is None else label[rows],
            self.plan.classes,
        )


def _pair_index(places: SparsePattern, rows: Tensor | None) -> tuple[_PairIndex, _PairIndex]:
    """Where the two nodes of each pair are in (K, N, D): of all pairs, or of the pairs ``rows`` of
    each network.  (K, n)
    """
    if rows is None:
        return (slice(None), places.row), (slice(None), places.col)
    network = torch.arange(len(rows), device=rows.device)[:, None]
    return (network, places.row[rows]), (network, places.col[rows])


def _pair_dots(pairs: BlockDiagonal, rows: Tensor | None, g: Tensor, h: Tensor) -> Tensor:
    """Inner products of the ends of pairs. A batch of pairs is small, so its rows of g and h are
    copied.  (K, N, D), (K, N, D) -> (K, n)
    """
    if rows is None:
        return edge_dots(pairs, g, h)
    u, v = _pair_index(pairs.places, rows)
    return (g[u] * h[v]).sum(2)


def _grouped_softmax(logit: Tensor, group: Tensor, num_groups: int) -> Tensor:
    """A softmax over the entries of each group.  (K, E), (K, E) -> (K, E)"""
    highest = (
        logit.detach()
        .new_full((len(logit), num_groups), -torch.inf)
        .scatter_reduce(1, group, logit.detach(), "amax")
    )
    power = (logit - highest.gather(1, group)).exp()
    total = power.new_zeros(len(logit), num_groups).scatter_add(1, group, power)
    return power / total.gather(1, group)


def _network_losses(output: Tensor, label: Tensor, classes: int) -> Tensor:
    """Cross entropy of classes (one logit: binary), or mean squared error of values, with labels
    (n,) or (K, n).  (K, n) or (K, n, C) -> (K,)
    """
    if output.dim() == 3:
        chosen = output.log_softmax(2).gather(2, label.expand(len(output), -1)[..., None])
        return -chosen.mean((1, 2))
    expected = label.expand_as(output)
    if classes:
        return binary_cross_entropy_with_logits(output, expected, reduction="none").mean(1)
    return (output - expected).square().mean(1)
