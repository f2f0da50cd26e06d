"""PyG's `GraphMaskExplainer` on a network whose layers change their width: nothing is trained.

Its feature mask is frozen, so feature scores are the random start σ(0.1 n), n ~ N(0, 1), of every
feature of every node. Its gate networks are replaced by new ones after the optimiser was built, so
they stay at their random start too. Its messages are relu(LN(m)) instead of m. The result of 100
epochs is that of their last pass, on a network that is no longer the user's:

    1. A pass with these messages. With the states h_u, h_v of an edge's ends and its message m,
       in each layer
           a = v · relu((LN(A h_u) + LN(B m) + LN(C h_v)) / 3) + c       A, B, C, v, c random
    2. Gates z = [s > t] with s = clip(1.4 σ((log u - log(1 - u) + a + 2) / β) - 0.2, 0, 1) and t
       halfway between the smallest and the largest s. A second pass with features x σ(0.1 n) and
       messages  z relu(LN(m)) + (1 - z) b,  b a random number.
    3. Again a from that pass, and s = clip(1.4 σ(a + 2) - 0.2, 0, 1). The score of an edge is its
       mean of [s > t] over the layers: with two layers 0, 1/2 or 1.

This file does all of this for many targets at once, on their computation graphs (PyG takes t over
the whole graph). It serves comparison with published numbers, not explanation.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgauge.core import BadModel, advance_progress, derive_seed, make_generator
from graphgauge.execution import GraphBatch, LayerMessages
from graphgauge.explainers.mask_optimisation import LearnedScores, MaskEntries
from graphgauge.explainers.message_gates import TEMPERATURE
from graphgauge.models import BaseModel
from graphgauge.subgraphs import message_layers

_TILE = 16
_FEATURE_STD, _START, _LOW, _HIGH = 0.1, 2.0, -0.2, 1.2


def check_gates_are_untrained(model: BaseModel) -> None:
    """Raise BadModel for networks on which PyG's code behaves differently.

    PyG trains the gates of layers that keep their width, and fails on several attention heads.
    """
    layers = message_layers(model.net)
    if any(getattr(layer, "heads", 1) > 1 for layer in layers):
        raise BadModel(
            "GraphMask(variant='pyg') cannot explain layers with several heads, as PyG's cannot. "
            "Use variant='default'."
        )
    unknown = [
        type(layer).__name__
        for layer in layers
        if not hasattr(layer, "in_channels") or not hasattr(layer, "out_channels")
    ]
    if unknown:
        raise BadModel(
            f"GraphMask(variant='pyg') cannot explain {unknown[0]}, as PyG's cannot. Use "
            "variant='default'."
        )
    if all(
        getattr(layer, "in_channels", None) == getattr(layer, "out_channels", None)
        for layer in layers
    ):
        raise BadModel(
            "GraphMask(variant='pyg') is what PyG's does where layers change their width. In this "
            "network none does, and PyG's gates are trained: use "
            "PyGExplainer('GraphMaskExplainer', ...), or variant='default'."
        )


def score_with_random_gates(model: BaseModel, union: GraphBatch, seeds: list[int]) -> LearnedScores:
    """Scores of the features and edges of a batch, from gates with random weights."""
    noise = _random_feature_mask(union, seeds)
    first = _record_layers(model, union, seeds, [])
    masked = union.with_x(union.x * _expand_to_rows(union, noise))
    last = _record_layers(model, masked, seeds, [layer.sampled() for layer in first])
    score = (
        torch.stack([layer.edge_score(union) for layer in last]).mean(0)
        if last
        else union.x.new_zeros(union.num_edges)
    )
    advance_progress(len(union))
    at = union.node_row[:, None] * noise.size(1) + torch.arange(noise.size(1), device=noise.device)
    return union, at.flatten(), noise.flatten(), score


def _random_feature_mask(union: GraphBatch, seeds: list[int]) -> Tensor:
    """Random feature scores σ(0.1 n) for every feature of every node. (num_nodes, F)"""
    drawn = [
        torch.randn(
            count,
            union.x.size(1),
            generator=make_generator(derive_seed(seed, "features")),
            dtype=torch.float64,
        )
        for count, seed in zip(union.graphs.sizes[union.graph_index].tolist(), seeds, strict=True)
    ]
    # σ is applied per copy, so that the bits do not depend on the other copies.
    return torch.cat([(_FEATURE_STD * values).sigmoid() for values in drawn]).to(union.x)


def _expand_to_rows(union: GraphBatch, values: Tensor) -> Tensor:
    """Values of the nodes at the rows of the batch, 1 in padding rows. (num_nodes, F) -> (rows,
    F)
    """
    return torch.ones_like(union.x).index_copy(0, union.node_at, values)


def _record_layers(
    model: BaseModel, union: GraphBatch, seeds: list[int], gates: list[tuple[Tensor, Tensor]]
) -> list["_RecordedLayer"]:
    """Run one pass with PyG's messages and record each layer.

    ``gates`` holds, for each layer, the gates (messages,) and what replaces a closed message
    (messages,); it is empty for a pass without gates.
    """
    layers: list[_RecordedLayer] = []
    row_copy = torch.full(
        (union.x.size(0),), len(union), device=union.graph_index.device
    ).index_copy(0, union.node_at, union.node_copy)

    def edit(sent: LayerMessages) -> Tensor:
        if sent.column is not None:
            raise _unsupported_layer_error(sent)
        basis = F.layer_norm(sent.value, sent.value.shape[-1:]).relu()
        if gates:
            gate, other = (value.view(-1, *[1] * (basis.dim() - 1)) for value in gates[sent.number])
            basis = basis * gate + (1 - gate) * other
        layers.append(_RecordedLayer.from_messages(sent, basis.flatten(1), row_copy, seeds))
        return basis

    with torch.no_grad():
        model.executor.outputs(union, edit, every_message=True)
    return layers


@dataclass(frozen=True)
class _RecordedLayer:
    """The gate logits of the messages of one layer.

    Args:
        number: Number of the round of messages.
        width: Number of values in a message.
        logit: The logit a of each message (messages,).
        copy: The copy of each message (messages,).
        column: Column of each message's edge in the batch's edge_index (messages,); -1 for
            self-loops that the layer added.
        seeds: One seed for each copy.
    """

    number: int
    width: int
    logit: Tensor
    copy: Tensor
    column: Tensor
    seeds: list[int]

    @staticmethod
    def from_messages(
        sent: LayerMessages, basis: Tensor, row_copy: Tensor, seeds: list[int]
    ) -> "_RecordedLayer":
        """Compute the gate logits of the messages that a layer sends."""
        copy, column = row_copy[sent.used[1]], sent.columns()
        sender, receiver = _endpoint_states(sent)
        logit = _gate_logits(
            [sender, basis, receiver], copy, sent.number, sent.layer.out_channels, seeds
        )
        return _RecordedLayer(sent.number, basis.size(1), logit, copy, column, seeds)

    def sampled(self) -> tuple[Tensor, Tensor]:
        """Random gates, and what replaces closed messages. (messages,), (messages,)"""
        order, entries = _group_by_copy(self.copy, len(self.seeds))
        drawn = [
            torch.rand(
                count,
                generator=make_generator(derive_seed(seed, "noise", self.number)),
                dtype=torch.float64,
            )
            for count, seed in zip(entries.count.tolist(), self.seeds, strict=True)
        ]
        uniform = torch.full_like(self.logit, 0.5)
        uniform[order] = torch.cat(drawn).clamp(1e-6, 1 - 1e-6).to(self.logit)
        soft = ((uniform.log() - (1 - uniform).log() + self.logit + _START) / TEMPERATURE).sigmoid()
        other = torch.stack(
            [
                _draw_random_weights(seed, ("baseline", self.number), self.width**-0.5, 1)
                for seed in self.seeds
            ]
        )
        return self.hard(soft), torch.cat([other[:, 0].to(soft), soft.new_zeros(1)])[self.copy]

    def hard(self, soft: Tensor) -> Tensor:
        """1 for values above the middle of the range of their copy, else 0. (messages,)"""
        s = (soft * (_HIGH - _LOW) + _LOW).clamp(0, 1)
        none = s.new_zeros(len(self.seeds) + 1)
        low, high = (
            none.scatter_reduce(0, self.copy, s, kind, include_self=False)
            for kind in ("amin", "amax")
        )
        return (s > ((low + high) / 2)[self.copy]).to(s)

    def edge_score(self, union: GraphBatch) -> Tensor:
        """Gates of the edges of the batch without noise; 0 for edges that the layer does not use.
        (num_edges,)
        """
        by_column = self.logit.new_zeros(union.edge_index.size(1))
        is_stored = self.column >= 0
        by_column[self.column[is_stored]] = self.hard((self.logit + _START).sigmoid())[is_stored]
        return by_column[union.edge_at]


def _endpoint_states(sent: LayerMessages) -> tuple[Tensor, Tensor]:
    """The inputs of a layer at the sender and the receiver of each message. (messages, D) each"""
    x = sent.inputs.get("x")
    senders, receivers = x if isinstance(x, tuple) else (x, x)
    if not isinstance(senders, Tensor) or not isinstance(receivers, Tensor):
        raise _unsupported_layer_error(sent)
    return senders[sent.used[0]].flatten(1), receivers[sent.used[1]].flatten(1)


def _unsupported_layer_error(sent: LayerMessages) -> BadModel:
    """The error for layers that PyG's gates do not fit."""
    return BadModel(
        f"GraphMask(variant='pyg') cannot explain {type(sent.layer).__name__}, as PyG's cannot. "
        "Use variant='default'."
    )


def _gate_logits(
    inputs: list[Tensor], copy: Tensor, number: int, hidden: int, seeds: list[int]
) -> Tensor:
    """The logit a of each message, from the random gate network of its copy. (messages,)

    Messages of one copy are put into tiles of 16, so that one batched matrix product serves all
    copies.
    """
    order, entries = _group_by_copy(copy, len(seeds))
    tile = entries.copy[::_TILE]
    reach = (6 / (sum(values.size(1) for values in inputs) + hidden)) ** 0.5
    total = torch.zeros((), dtype=inputs[0].dtype, device=copy.device)
    for place, values in enumerate(inputs):
        drawn = [
            _draw_random_weights(seed, ("gate", number, place), reach, values.size(1), hidden)
            for seed in seeds
        ]
        rows = values.new_zeros(entries.size, values.size(1)).index_copy(
            0, entries.slot, values[order]
        )
        product = torch.bmm(
            rows.view(-1, _TILE, values.size(1)), torch.stack(drawn).to(values)[tile]
        )
        total = total + F.layer_norm(product, product.shape[2:])
    last = torch.stack(
        [
            _draw_random_weights(seed, ("gate", number, "last"), hidden**-0.5, hidden + 1)
            for seed in seeds
        ]
    ).to(total)[tile]
    a = ((total / len(inputs)).relu() * last[:, None, :-1]).sum(2) + last[:, -1:]
    return torch.zeros_like(copy, dtype=a.dtype).index_copy(0, order, a.flatten()[entries.slot])


def _group_by_copy(copy: Tensor, num_copies: int) -> tuple[Tensor, MaskEntries]:
    """The messages of the copies, without padding, sorted by copy, and their places in tiles."""
    order = copy.argsort(stable=True)
    order = order[copy[order] < num_copies]
    return order, MaskEntries.from_copies(order, copy[order], num_copies, _TILE)


def _draw_random_weights(
    seed: int, purpose: tuple[str | int, ...], reach: float, *shape: int
) -> Tensor:
    """Draw from U(-reach, reach) with a copy's own seed, on the CPU."""
    return (
        2
        * torch.rand(
            shape, generator=make_generator(derive_seed(seed, *purpose)), dtype=torch.float64
        )
        - 1
    ) * reach
