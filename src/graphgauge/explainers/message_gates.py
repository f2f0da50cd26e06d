"""Message gates: a closed gate replaces the message of an edge by a baseline.

Each edge has a gate z in each round of messages (each layer that passes messages). With message m
and the baseline b_r of round r, the layer sends

    z m + (1 - z) b_r

instead of m. Gates are drawn from a hard concrete distribution (Louizos et al., 2018) with logit a
and u ~ U(0, 1):

    s = σ((log u - log(1 - u) + a) / β)        β = 1/3
    z = clip(s (ζ - γ) + γ, 0, 1)              γ = -0.2, ζ = 1.2

Stretching s beyond [0, 1] and clipping it makes z exactly 0 or 1 most of the time, while z has a
gradient in a in between. The gate is open, if only in part, with probability

    P(z > 0) = σ(a - β log(-γ / ζ))
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import uniform_at
from graphgauge.execution import GraphBatch, LayerMessages, MessageEdit, MessageScaling
from graphgauge.explainers.mask_optimisation import MaskEntries
from graphgauge.models import BaseModel

TEMPERATURE, _LOW, _HIGH = 1 / 3, -0.2, 1.2


@dataclass(frozen=True)
class _MessageRound:
    """The gates of one round of messages.

    Args:
        gate: Numbers of the gates whose edge sends a message in this round that can reach the
            target.
        row: The row of each of these messages among all messages of the round.
        width: Number of values in a message.
        column: Column in ``edge_index`` of the edge of every gate (M,). Networks that choose their
            edges while they compute need it, because message rows then differ from pass to pass.
    """

    gate: Tensor
    row: Tensor
    width: int
    column: Tensor

    @staticmethod
    def from_messages(sent: LayerMessages, column: Tensor) -> "_MessageRound":
        """The round in which a layer sends ``sent``, for gates on the edges in ``column``."""
        row = sent.rows_of(column)
        (gate,) = (row >= 0).nonzero(as_tuple=True)
        return _MessageRound(gate, row[gate], _messages_to_rows(sent).size(1), column)

    def here(self, sent: LayerMessages) -> "_MessageRound":
        """The same round with the message rows of the pass that is running."""
        return self if sent.column is None else _MessageRound.from_messages(sent, self.column)


def record_message_rounds(
    model: BaseModel, union: GraphBatch, edges: MaskEntries
) -> list[_MessageRound]:
    """Run the network once and record its rounds of messages."""
    rounds: list[_MessageRound] = []

    def record(sent: LayerMessages) -> None:
        rounds.append(_MessageRound.from_messages(sent, union.edge_at[edges.at]))

    with torch.no_grad():
        model.executor.outputs(union, record)
    return rounds


@dataclass(frozen=True)
class GatedMessages(MessageScaling):
    """Replaces messages by the baseline (width,) of their round as far as ``gates`` (M,) close.

    Rounds without an entry in ``gates`` pass unchanged.
    """

    rounds: list[_MessageRound]
    gates: dict[int, Tensor]
    baselines: list[Tensor]

    def scaling_of_round(self, number: int, column: Tensor) -> tuple[Tensor, Tensor | None] | None:
        """Factor and baseline for the messages of a round, or None if the round has no gates."""
        if number not in self.gates:
            return None
        return self.factors(self.rounds[number], number, len(column)), self.baselines[number]

    def factors(self, sent: _MessageRound, number: int, count: int) -> Tensor:
        """The gates of a round in the order of its messages, 1 for messages without gate.
        (messages,)
        """
        z = self.gates[number]
        return z.new_ones(count).index_copy(0, sent.row, z.index_select(0, sent.gate))

    def __call__(self, sent: LayerMessages) -> Tensor | None:
        """Edit messages that a layer has computed explicitly."""
        rows = _messages_to_rows(sent)
        if sent.number not in self.gates:
            return None
        z = self.factors(self.rounds[sent.number].here(sent), sent.number, len(rows))
        return _rows_to_messages(
            torch.lerp(self.baselines[sent.number].expand_as(rows), rows, z[:, None]), sent
        )


def gate_messages_by_copy(
    rounds: list[_MessageRound], gates: dict[int, Tensor], baselines: list[Tensor], copy: Tensor
) -> MessageEdit:
    """Gate messages with a baseline (K, width) of its own for each copy.

    ``copy`` (M,) is the copy to which each gate belongs.
    """

    def edit(sent: LayerMessages) -> Tensor:
        rows, here = _messages_to_rows(sent), rounds[sent.number].here(sent)
        z = gates[sent.number].index_select(0, here.gate)
        baseline = baselines[sent.number].index_select(0, copy[here.gate])
        mixed = torch.lerp(baseline, rows[here.row], z[:, None])
        return _rows_to_messages(rows.index_copy(0, here.row, mixed), sent)

    return edit


def _messages_to_rows(sent: LayerMessages) -> Tensor:
    """Messages as one row each, with all attention heads in it. (messages, width)"""
    return sent.value.movedim(sent.layer.node_dim, 0).flatten(1)


def _rows_to_messages(rows: Tensor, sent: LayerMessages) -> Tensor:
    """Reshape rows to the shape of the messages they come from."""
    shape = sent.value.movedim(sent.layer.node_dim, 0).shape
    return rows.view(shape).movedim(0, sent.layer.node_dim)


def sample_hard_concrete(logit: Tensor, uniform: Tensor) -> Tensor:
    """Draw hard concrete gates from uniform numbers. (size,), (size,) -> (size,)"""
    s = ((uniform.log() - (1 - uniform).log() + logit) / TEMPERATURE).sigmoid()
    return (s * (_HIGH - _LOW) + _LOW).clamp(0, 1)


def open_probability(logit: Tensor) -> Tensor:
    """The probability P(z > 0) that a gate is not fully closed. (size,)"""
    return (logit - TEMPERATURE * math.log(-_LOW / _HIGH)).sigmoid()


class GateNoise:
    """Uniform random numbers for each step, round and gate; those of copy k come from
    ``seeds[k]``.
    """

    def __init__(self, edges: MaskEntries, seeds: list[int], rounds: int, like: Tensor) -> None:
        self.stream, self.rounds = edges.streams(seeds, "noise"), rounds
        self.uniform = like.new_full((rounds, edges.size), 0.5)
        #: () int64; a tensor, because CUDA graphs read the number of the step from memory
        self.step = self.stream.new_zeros(())

    def draw(self, first: int) -> None:
        """Fill ``uniform_at`` (rounds, size) for the current step, for the rounds from ``first``
        on.
        """
        for number in range(first, self.rounds):
            drawn = uniform_at(self.stream, self.step * self.rounds + number)
            self.uniform[number].copy_(drawn.clamp_(1e-6, 1 - 1e-6))
