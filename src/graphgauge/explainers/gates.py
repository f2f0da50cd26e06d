"""Gates on messages: in each round of messages, a closed gate replaces an edge's message by a
baseline.

    message of edge e in round r:    z m + (1 - z) b_r

A gate is drawn from a hard concrete distribution with logit a and u ~ U(0, 1),

    s = σ((log u - log(1 - u) + a) / β),    z = clip(s (ζ - γ) + γ, 0, 1),    β = 1/3, γ = -0.2, ζ = 1.2,

so that it is exactly 0 or 1 most of the time and has a gradient in between. It is not closed with
the chance P(z > 0) = σ(a - β log(-γ / ζ)).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core.counted import uniform
from graphgauge.explainers.learned import Entries
from graphgauge.models import BaseModel, Union
from graphgauge.models.masking import Edit, Messages, Scaling

TEMPERATURE, LOW, HIGH = 1 / 3, -0.2, 1.2


@dataclass(frozen=True)
class Round:
    """One round of messages: each ``gate`` whose edge sends one that can arrive, its ``row`` among
    all, the ``width`` of one.

    ``column`` (M,) of all gates' edges: where a network chooses its edges by what it computes, rows
    are found anew in each pass.
    """

    gate: Tensor
    row: Tensor
    width: int
    column: Tensor

    @staticmethod
    def of(sent: Messages, column: Tensor) -> "Round":
        """From the messages that a layer sends, and the columns of the edges that have gates."""
        row = sent.rows_of(column)
        (gate,) = (row >= 0).nonzero(as_tuple=True)
        return Round(gate, row[gate], as_rows(sent).size(1), column)

    def here(self, sent: Messages) -> "Round":
        """The same round in the running pass."""
        return self if sent.column is None else Round.of(sent, self.column)


def recorded_rounds(model: BaseModel, union: Union, edges: Entries) -> list[Round]:
    """The rounds of messages of one pass."""
    rounds: list[Round] = []

    def record(sent: Messages) -> None:
        rounds.append(Round.of(sent, union.edge_at[edges.at]))

    with torch.no_grad():
        model.engine.outputs(union, record)
    return rounds


@dataclass(frozen=True)
class Gated(Scaling):
    """Messages replaced by the baseline (width,) of their round where ``gates`` (M,) close."""

    rounds: list[Round]
    gates: dict[int, Tensor]
    baselines: list[Tensor]

    def of(self, number: int, column: Tensor) -> tuple[Tensor, Tensor | None] | None:
        """Messages without a gate pass."""
        if number not in self.gates:
            return None
        return self.factors(self.rounds[number], number, len(column)), self.baselines[number]

    def factors(self, own: Round, number: int, count: int) -> Tensor:
        """Gates of a round as they belong to its messages, 1 for those without.  (messages,)"""
        z = self.gates[number]
        return z.new_ones(count).index_copy(0, own.row, z.index_select(0, own.gate))

    def __call__(self, sent: Messages) -> Tensor | None:
        """On messages that are written out."""
        rows = as_rows(sent)
        if sent.number not in self.gates:
            return None
        z = self.factors(self.rounds[sent.number].here(sent), sent.number, len(rows))
        return as_messages(
            torch.lerp(self.baselines[sent.number].expand_as(rows), rows, z[:, None]), sent
        )


def gated_by_copy(
    rounds: list[Round], gates: dict[int, Tensor], baselines: list[Tensor], copy: Tensor
) -> Edit:
    """Likewise with baselines (K, width) of each copy, ``copy`` (M,) being that of each gate."""

    def edit(sent: Messages) -> Tensor:
        rows, own, baseline = as_rows(sent), rounds[sent.number].here(sent), baselines[sent.number]
        z = gates[sent.number].index_select(0, own.gate)
        mixed = torch.lerp(baseline.index_select(0, copy[own.gate]), rows[own.row], z[:, None])
        return as_messages(rows.index_copy(0, own.row, mixed), sent)

    return edit


def as_rows(sent: Messages) -> Tensor:
    """Messages as one row each, all heads in it.  (messages, width)"""
    return sent.value.movedim(sent.layer.node_dim, 0).flatten(1)


def as_messages(rows: Tensor, sent: Messages) -> Tensor:
    """Rows in the shape of the messages that they are."""
    shape = sent.value.movedim(sent.layer.node_dim, 0).shape
    return rows.view(shape).movedim(0, sent.layer.node_dim)


def sampled(logit: Tensor, uniform: Tensor) -> Tensor:
    """Hard concrete gates.  (size,), (size,) -> (size,)"""
    s = ((uniform.log() - (1 - uniform).log() + logit) / TEMPERATURE).sigmoid()
    return (s * (HIGH - LOW) + LOW).clamp(0, 1)


def chance_open(logit: Tensor) -> Tensor:
    """P(z > 0).  (size,)"""
    return (logit - TEMPERATURE * math.log(-LOW / HIGH)).sigmoid()


class Noise:
    """Numbers from U(0, 1) for each step, round and gate, those of copy k from ``seeds[k]``."""

    def __init__(self, edges: Entries, seeds: list[int], rounds: int, like: Tensor) -> None:
        self.stream, self.rounds = edges.streams(seeds, "noise"), rounds
        self.uniform = like.new_full((rounds, edges.size), 0.5)
        self.step = self.stream.new_zeros(
            ()
        )  #: () int64, in memory: steps that a GPU replays read it there

    def draw(self, first: int) -> None:
        """New numbers in ``uniform`` (rounds, size) for this step and the rounds from ``first`` on."""
        for number in range(first, self.rounds):
            drawn = uniform(self.stream, self.step * self.rounds + number)
            self.uniform[number].copy_(drawn.clamp_(1e-6, 1 - 1e-6))
