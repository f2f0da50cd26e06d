"""What GNNExplainer and GraphMask share: learned masks over a batch, and the loss of a prediction.

A mask has one number for each nonzero feature of a scored node, and one for each relevant edge.
Zero features need none: their gradient is 0 for every mask value, and so is their final score.

The numbers of one copy are adjacent and start at a multiple of 16, in a vector whose length is a
multiple of 64. Reductions over them then give the same bits in every batch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import derive_seed, normal_at, random_streams
from graphgauge.execution import (
    AlignedLayout,
    BatchFeatures,
    DenseFeatures,
    GraphBatch,
    ScatteredFeatures,
    TrackedFeatures,
)
from graphgauge.explainers.base import zero_edge_scores, zero_feature_scores
from graphgauge.explainers.explanations import Scores
from graphgauge.explainers.network_checks import can_mask_messages
from graphgauge.models import BaseModel, class_log_probabilities
from graphgauge.subgraphs import ComputationGraphs, ragged_ranges

#: what was learned for a batch: the batch, positions in the flattened packed feature scores (M,),
#: the scores of these features (M,), and the scores of the batch's edges (num_edges,)
LearnedScores = tuple[GraphBatch, Tensor, Tensor, Tensor]
_MOST_FILLED = 0.2  #: up to this share of nonzero features, a list of them is faster than a matrix


@dataclass(frozen=True)
class MaskEntries:
    """The masked items of one kind (features or edges) of a batch, sorted by copy.

    Args:
        at: Position of each item in the flattened features, or among the edges of the batch (M,).
        slot: Position of each item in a padded vector of ``size`` numbers (M,).
        copy: The copy to which each position of that vector belongs (size,).
        count: Number of items of each copy (K,).
        size: Length of the padded vector.
    """

    at: Tensor
    slot: Tensor
    copy: Tensor
    count: Tensor
    size: int

    @staticmethod
    def from_copies(at: Tensor, copy: Tensor, num_copies: int, align: int) -> "MaskEntries":
        """Lay out items that are sorted by copy."""
        count = torch.bincount(copy, minlength=num_copies)
        layout = AlignedLayout.from_counts(count, align, spare=0)
        rank = torch.arange(len(at), device=at.device) - (count.cumsum(0) - count)[copy]
        slot = layout.start[copy] + rank
        owner = torch.zeros(layout.size, dtype=torch.int64, device=at.device).index_copy(
            0, slot, copy
        )
        return MaskEntries(at, slot, owner, count, layout.size)

    def drawn(self, seeds: list[int], purpose: str, like: Tensor) -> Tensor:
        """Standard normal numbers, those of copy k from ``seeds[k]``; 0 in padding. (size,)"""
        return _scatter_to_slots(
            self, normal_at(self.streams(seeds, purpose)[self.slot], 0).to(like)
        )

    def streams(self, seeds: list[int], purpose: str) -> Tensor:
        """Random streams of all positions, those of copy k from ``seeds[k]`` (see `counter_rng`).
        (size,)
        """
        seed = torch.tensor(
            [derive_seed(seed, purpose) for seed in seeds], device=self.copy.device
        )[self.copy]
        place = torch.arange(self.size, device=self.copy.device)
        first = place.new_full((len(seeds),), self.size).scatter_reduce(
            0, self.copy[self.slot], self.slot, "amin"
        )
        return random_streams(seed, place - first[self.copy])

    def counted(self, chosen: Tensor) -> Tensor:
        """Number of positions of each copy for which ``chosen`` (size,) bool is True. (K,)"""
        return torch.bincount(self.copy[chosen], minlength=len(self.count))


@dataclass(frozen=True)
class _NonZeroFeatures:
    """The nonzero features of a batch, sorted by node: node, column and value of each. (M,) each"""

    node: Tensor
    column: Tensor
    value: Tensor

    @staticmethod
    def from_batch(union: GraphBatch) -> "_NonZeroFeatures":
        """List them, searching each node of the data only once."""
        source = union.graphs.source.x
        ids, which = union.graphs.node[union.node_row].unique(return_inverse=True)
        row, column = source[ids].nonzero(as_tuple=True)
        count = torch.bincount(row, minlength=len(ids))
        node, place = ragged_ranges((count.cumsum(0) - count)[which], count[which])
        return _NonZeroFeatures(node, column[place], source[ids[row], column][place])


def relevant_edge_entries(union: GraphBatch, align: int) -> MaskEntries:
    """The relevant edges of a batch."""
    (at,) = union.is_relevant.nonzero(as_tuple=True)
    return MaskEntries.from_copies(at, union.edge_copy[at], len(union), align)


class MaskedBatch:
    """A batch whose features and messages are multiplied by gates.

    All steps of an optimisation use the same memory. ``leaf`` is the tensor with respect to which
    the network is differentiated: the list of nonzero features, if most features are 0 and the
    network uses them in linear maps only; else all of x.
    """

    def __init__(self, model: BaseModel, union: GraphBatch, with_edges: bool) -> None:
        self.union, self.num_features = union, union.features.shape[1]
        listed = _NonZeroFeatures.from_batch(union)
        self.scored = union.is_scored[listed.node].nonzero()[:, 0]
        node, column = listed.node[self.scored], listed.column[self.scored]
        self.score_at = union.node_row[node] * self.num_features + column
        is_mapped_first = model.feature_use == "linear"
        self.is_sparse = is_mapped_first and _feature_density(model) <= _MOST_FILLED
        at = self.scored if self.is_sparse else union.node_at[node] * self.num_features + column
        self.features = MaskEntries.from_copies(at, union.node_copy[node], len(union), union.align)
        self.edges = relevant_edge_entries(union, union.align) if with_edges else None
        self.value = listed.value[self.scored]
        self.leaf = (listed.value if self.is_sparse else union.x).clone().requires_grad_(True)
        self.factor = self.leaf.detach().new_ones(union.num_edges).requires_grad_(True)
        features: BatchFeatures
        if self.is_sparse:
            features = ScatteredFeatures(
                self.leaf, union.node_at[listed.node], listed.column, union.features.shape
            )
        else:
            features = (TrackedFeatures if is_mapped_first else DenseFeatures)(self.leaf)
        self.edited = union.with_features(features)
        if with_edges:
            self.edited = self.edited.with_mask(self.factor)

    @torch.no_grad()
    def set_gates(self, for_features: Tensor, for_edges: Tensor | None = None) -> None:
        """Multiply features and messages by gates (size,)."""
        self.leaf.view(-1)[self.features.at] = self.value * for_features[self.features.slot]
        if self.edges is not None and for_edges is not None:
            self.factor[self.edges.at] = for_edges[self.edges.slot]

    def leaf_gradients(self, loss: Tensor) -> list[Tensor]:
        """Gradients of ``loss`` for what gates are written into: ``leaf`` and, if edges have gates,
        ``factor``.
        """
        leaves = [self.leaf] if self.edges is None else [self.leaf, self.factor]
        return list(torch.autograd.grad(loss, leaves, materialize_grads=True))

    def gate_gradients(self, for_leaves: list[Tensor]) -> list[Tensor]:
        """Convert these gradients to those for the gates of features and, if there are any, of
        edges. (size,), (size,)
        """
        for_leaf, *for_factor = for_leaves
        for_features = self.at_places(for_leaf)
        if self.edges is None:
            return [for_features]
        return [for_features, _scatter_to_slots(self.edges, for_factor[0][self.edges.at])]

    def mask_indices(self) -> list[tuple[Tensor, Tensor, Tensor, Tensor | None]]:
        """Of features and, if they have gates, of edges: what gates are written into, position of
        each item there and among the gates, and its value.
        """
        features = (self.leaf, self.features.at, self.features.slot, self.value)
        if self.edges is None:
            return [features]
        return [features, (self.factor, self.edges.at, self.edges.slot, None)]

    def at_places(self, for_leaf: Tensor) -> Tensor:
        """Convert a gradient for ``leaf`` to one for the feature gates. (size,)"""
        return _scatter_to_slots(self.features, self.value * for_leaf.flatten()[self.features.at])

    def scores(self, for_features: Tensor, for_edges: Tensor | None = None) -> LearnedScores:
        """Return gates (size,) as scores; items without a gate get 0."""
        edge = self.value.new_zeros(self.union.num_edges)
        if self.edges is not None and for_edges is not None:
            edge[self.edges.at] = for_edges[self.edges.slot]
        return self.union, self.score_at, for_features[self.features.slot], edge


def _feature_density(model: BaseModel) -> float:
    """The share of nonzero features in the data."""
    x = model.source.x
    return model.cached_data_fact(
        "filled features", lambda: float((x != 0).double().mean()) if x.numel() else 1.0
    )


def _scatter_to_slots(entries: MaskEntries, values: Tensor) -> Tensor:
    """Put values of items (M,) at their positions in the padded vector, 0 in padding. (size,)"""
    return values.new_zeros(entries.size).index_copy(0, entries.slot, values)


class LearnedMask:
    """Logits (size,) of gates, with penalties on their size and entropy.

    The penalties are per copy, over the items that had a gradient in the first step.
    """

    def __init__(
        self, entries: MaskEntries, start: Tensor, size: float, entropy: float, mean_size: bool
    ) -> None:
        self.entries, self.logit, self.gate = entries, start, start
        self.size, self.entropy, self.mean_size = size, entropy, mean_size
        self.is_alive: Tensor | None = None  #: which items had a gradient in the first step
        self.for_size = self.for_entropy = torch.zeros_like(start)  #: weights of their penalties

    def gates(self) -> Tensor:
        """The gates σ(logit). (size,)"""
        self.gate = self.logit.sigmoid()
        return self.gate

    def gradient(self, for_gates: Tensor) -> Tensor:
        """Convert a gradient for the gates to one for the logits, penalties included. (size,) ->
        (size,)
        """
        slope = self.gate * (1 - self.gate)
        if self.is_alive is None:
            self.start_penalties(for_gates * slope != 0)
            return for_gates * slope
        return slope * (for_gates + self.for_size - self.for_entropy * self.logit)

    def start_penalties(self, is_alive: Tensor) -> None:
        """Penalise the items for which ``is_alive`` is True, from the second step on."""
        share = (
            is_alive / self.entries.counted(is_alive).clamp(min=1).to(self.logit)[self.entries.copy]
        )
        self.is_alive = is_alive
        self.for_size = self.size * (share if self.mean_size else is_alive.to(share))
        self.for_entropy = self.entropy * share

    def score(self) -> Tensor:
        """The final gates, 0 for items that never had a gradient. (size,)"""
        return self.logit.sigmoid() * (self.is_alive if self.is_alive is not None else 0)


def original_predictions(model: BaseModel, graphs: ComputationGraphs) -> Tensor:
    """The predictions on the whole graph, which masks have to keep. (T, C) or (T,)"""
    return model.pred_continuous(graphs.targets)


def prediction_loss(model: BaseModel, raw: Tensor, label: Tensor | None, value: Tensor) -> Tensor:
    """The loss -log p(label), or for regression the squared error, of each copy. raw (K, columns)
    -> (K,)
    """
    if label is None:
        return (model.interpret(raw) - value).square()
    log_prob = class_log_probabilities(raw, model.kind)  # type: ignore[attr-defined]
    return -log_prob.gather(1, label[:, None])[:, 0]


def collect_learned_scores(
    model: BaseModel,
    graphs: ComputationGraphs,
    work: Callable[[GraphBatch], LearnedScores],
    probe: Callable[[GraphBatch], LearnedScores],
    kind: str,
) -> Scores:
    """Collect the scores that ``work`` learns batch by batch. ``probe`` is one step of it, which
    measures its memory.
    """
    feature, edge = zero_feature_scores(graphs), zero_edge_scores(graphs)

    def write(result: LearnedScores) -> None:
        union, at, for_features, for_edges = result
        feature.view(-1)[at] = for_features
        edge[union.edge_row] = for_edges

    model.for_each(work, write, graphs, kind=kind, probe=probe)
    return Scores(feature, edge if can_mask_messages(model) else None)
