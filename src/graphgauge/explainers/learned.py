"""What the learned explainers share: masks over a union's features and edges, and the loss that they are learned by.

A mask holds one number for each feature that is not 0 at a scored node, and one for each relevant edge. Features that are 0
need none: their gradient is 0 whatever the mask, and their score is 0 in the end. The numbers of one copy stand together and
start at a multiple of 16 in a vector whose length is a multiple of 64, so that they get the same bits in every union.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core.seeds import derive_seed, generator
from graphgauge.explainers.base import Scores, can_mask, empty_edges, empty_features
from graphgauge.models import BaseModel, ComputationGraphs, Union
from graphgauge.models.outputs import log_probabilities
from graphgauge.models.union import Layout

#: a union and the scores of its nodes (num_nodes, F) and edges (num_edges,)
Learned = tuple[Union, Tensor, Tensor]


@dataclass(frozen=True)
class Entries:
    """The masked things of one kind (features or edges) in a union, in the order of their copies.

    ``at`` (M,) where each stands in the flat features, or among the union's edges; ``slot`` (M,) its place in a vector of
    ``size`` numbers; ``copy`` (size,) the copy that each place belongs to; ``count`` (K,) things per copy.
    """

    at: Tensor
    slot: Tensor
    copy: Tensor
    count: Tensor
    size: int

    @staticmethod
    def of(at: Tensor, copy: Tensor, num_copies: int, align: int) -> "Entries":
        """Lay things out that come in the order of their copies."""
        count = torch.bincount(copy, minlength=num_copies)
        layout = Layout.of(count, align, spare=0)
        rank = torch.arange(len(at), device=at.device) - (count.cumsum(0) - count)[copy]
        slot = layout.start[copy] + rank
        owner = torch.zeros(layout.size, dtype=torch.int64, device=at.device).index_copy(0, slot, copy)
        return Entries(at, slot, owner, count, layout.size)

    def drawn(self, seeds: list[int], purpose: str, like: Tensor) -> Tensor:
        """Standard normal numbers, those of copy k from ``seeds[k]``; on the CPU and in double precision.  (size,)"""
        drawn = [
            torch.randn(count, generator=generator(derive_seed(seed, purpose)), dtype=torch.float64)
            for count, seed in zip(self.count.tolist(), seeds, strict=True)
        ]
        return placed(self, torch.cat(drawn).to(like))

    def counted(self, chosen: Tensor) -> Tensor:
        """How many places under ``chosen`` (size,) bool each copy has.  (K,)"""
        return torch.bincount(self.copy[chosen], minlength=len(self.count))


def feature_entries(union: Union) -> Entries:
    """The features that are not 0 at scored nodes."""
    row, column = (union.x[union.node_at] * union.is_scored[:, None]).nonzero(as_tuple=True)
    return Entries.of(union.node_at[row] * union.x.size(1) + column, union.node_copy[row], len(union), union.align)


def edge_entries(union: Union, align: int) -> Entries:
    """The relevant edges."""
    (at,) = union.is_relevant.nonzero(as_tuple=True)
    return Entries.of(at, union.edge_copy[at], len(union), align)


class MaskedCopies:
    """A union whose features and messages are multiplied by gates; the same memory serves every step of an optimisation."""

    def __init__(self, union: Union, with_edges: bool) -> None:
        self.union, self.features = union, feature_entries(union)
        self.edges = edge_entries(union, union.align) if with_edges else None
        self.x = union.x.clone().requires_grad_(True)
        self.value = union.x.flatten()[self.features.at]
        self.factor = union.x.new_ones(union.num_edges).requires_grad_(True)
        self.edited = union.with_x(self.x)
        if with_edges:
            self.edited = self.edited.with_mask(self.factor)

    @torch.no_grad()
    def set_gates(self, for_features: Tensor, for_edges: Tensor | None = None) -> None:
        """Multiply features and messages by gates (size,)."""
        self.x.view(-1)[self.features.at] = self.value * for_features[self.features.slot]
        if self.edges is not None and for_edges is not None:
            self.factor[self.edges.at] = for_edges[self.edges.slot]

    def gradients(self, loss: Tensor) -> list[Tensor]:
        """How ``loss`` changes with the gates of features and, if there are any, edges, at their places.  (size,), (size,)"""
        leaves = [self.x] if self.edges is None else [self.x, self.factor]
        found = torch.autograd.grad(loss, leaves, allow_unused=True)
        for_x, *for_factor = (torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, found, strict=True))
        gradients = [self.at_places(for_x)]
        return gradients if self.edges is None else [*gradients, placed(self.edges, for_factor[0][self.edges.at])]

    def at_places(self, for_x: Tensor) -> Tensor:
        """From a gradient for the features as they enter the network, that for their gates.  (rows, F) -> (size,)"""
        return placed(self.features, self.value * for_x.flatten()[self.features.at])

    def scores(self, for_features: Tensor, for_edges: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Gates (size,) as scores of the union's nodes (num_nodes, F) and edges (num_edges,); 0 for what has no gate."""
        feature, edge = torch.zeros_like(self.union.x), self.union.x.new_zeros(self.union.num_edges)
        feature.view(-1)[self.features.at] = for_features[self.features.slot]
        if self.edges is not None and for_edges is not None:
            edge[self.edges.at] = for_edges[self.edges.slot]
        return feature[self.union.node_at], edge


def placed(entries: Entries, values: Tensor) -> Tensor:
    """A number of each thing (M,) at its place; 0 between them.  (size,)"""
    return values.new_zeros(entries.size).index_copy(0, entries.slot, values)


class Mask:
    """Logits (size,) of gates with penalties on their size and entropy, per copy over what had a gradient in the first step."""

    def __init__(self, entries: Entries, start: Tensor, size: float, entropy: float, mean_size: bool) -> None:
        self.entries, self.logit, self.gate = entries, start, start
        self.size, self.entropy, self.mean_size = size, entropy, mean_size
        self.is_alive: Tensor | None = None  # what had a gradient; then its penalties' weights
        self.for_size = self.for_entropy = torch.zeros_like(start)

    def gates(self) -> Tensor:
        """σ(logit).  (size,)"""
        self.gate = self.logit.sigmoid()
        return self.gate

    def gradient(self, for_gates: Tensor) -> Tensor:
        """From the loss's gradient for the gates: that of loss and penalties for the logits.  (size,) -> (size,)"""
        slope = self.gate * (1 - self.gate)
        if self.is_alive is None:
            self.start_penalties(for_gates * slope != 0)
            return for_gates * slope
        return slope * (for_gates + self.for_size - self.for_entropy * self.logit)

    def start_penalties(self, is_alive: Tensor) -> None:
        """Penalties act on what is alive, from the second step on."""
        share = is_alive / self.entries.counted(is_alive).clamp(min=1).to(self.logit)[self.entries.copy]
        self.is_alive = is_alive
        self.for_size = self.size * (share if self.mean_size else is_alive.to(share))
        self.for_entropy = self.entropy * share

    def score(self) -> Tensor:
        """The gates at the end, 0 for what never was alive.  (size,)"""
        return self.logit.sigmoid() * (self.is_alive if self.is_alive is not None else 0)


def first_values(model: BaseModel, graphs: ComputationGraphs) -> Tensor:
    """The predictions that masks have to keep, on the whole graph.  (T, C) or (T,)"""
    return model.pred_continuous(model.asked(graphs.target))


def misfit(model: BaseModel, raw: Tensor, label: Tensor | None, value: Tensor) -> Tensor:
    """-log p(label), or the squared distance from ``value``, one per copy.  (K, columns), (K,), (K,) -> (K,)"""
    if label is None:
        return (model.interpret(raw) - value).square()
    return -log_probabilities(raw, model.kind).gather(1, label[:, None])[:, 0]  # type: ignore[attr-defined]


def learned_scores(
    model: BaseModel, graphs: ComputationGraphs, work: Callable[[Union], Learned], probe: Callable[[Union], Learned], kind: str
) -> Scores:
    """Scores of all graphs from work that learns those of a union; ``probe`` is one round of it."""
    feature, edge = empty_features(graphs), empty_edges(graphs)

    def write(done: Learned) -> None:
        union, for_nodes, for_edges = done
        feature[union.node_row] = for_nodes
        edge[union.edge_row] = for_edges

    model.each(work, write, graphs, kind=kind, probe=probe)
    return Scores(feature, edge if can_mask(model) else None)
