"""Gates on messages: in each round of messages, a closed gate replaces an edge's message by a baseline.

    message of edge e in round r:    z m + (1 - z) b_r

A gate is drawn from a hard concrete distribution with logit a and u ~ U(0, 1),

    s = σ((log u - log(1 - u) + a) / β),    z = clip(s (ζ - γ) + γ, 0, 1),    β = 1/3, γ = -0.2, ζ = 1.2,

so that it is exactly 0 or 1 most of the time and has a gradient in between. It is not closed with the chance
P(z > 0) = σ(a - β log(-γ / ζ)).
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
    """One round of messages: each ``gate`` whose edge sends one that can arrive, its ``row`` among all, the ``width`` of one."""

    gate: Tensor
    row: Tensor
    width: int


def recorded_rounds(model: BaseModel, union: Union, edges: Entries) -> list[Round]:
    """The rounds of messages of one pass."""
    rounds: list[Round] = []

    def record(sent: Messages) -> None:
        column = union.edge_at[edges.at]
        row = column if sent.kept is None else sent.kept.cumsum(0)[column] - 1
        if sent.at is not None:
            place = torch.full_like(sent.used[0], -1)
            place[sent.at] = torch.arange(len(sent.at), device=row.device)
            row = place[row]
        (gate,) = (row >= 0).nonzero(as_tuple=True)
        rounds.append(Round(gate, row[gate], as_rows(sent).size(1)))

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
        own, z = self.rounds[number], self.gates[number]
        return z.new_ones(len(column)).index_copy(0, own.row, z.index_select(0, own.gate)), self.baselines[number]

    def __call__(self, sent: Messages) -> Tensor | None:
        """On messages that are written out."""
        rows = as_rows(sent)
        change = self.of(sent.number, rows[:, 0])
        if change is None:
            return None
        return as_messages(torch.lerp(self.baselines[sent.number].expand_as(rows), rows, change[0][:, None]), sent)


def gated_by_copy(rounds: list[Round], gates: dict[int, Tensor], baselines: list[Tensor], copy: Tensor) -> Edit:
    """Likewise with baselines (K, width) of each copy, ``copy`` (M,) being that of each gate."""

    def edit(sent: Messages) -> Tensor:
        rows, own, baseline = as_rows(sent), rounds[sent.number], baselines[sent.number]
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
        self.step = self.stream.new_zeros(())  #: () int64, in memory: steps that a GPU replays read it there

    def draw(self, first: int) -> None:
        """New numbers in ``uniform`` (rounds, size) for this step and the rounds from ``first`` on."""
        for number in range(first, self.rounds):
            drawn = uniform(self.stream, self.step * self.rounds + number)
            self.uniform[number].copy_(drawn.clamp_(1e-6, 1 - 1e-6))
