"""GNNExplainer: masks on features and messages, learned to keep a prediction while they shrink and harden.

For one target with prediction y, features x, and mask logits a (features) and b (edges),

    loss = misfit(f(x σ(a), messages σ(b)), y)  +  c₁ mean σ(a) + c₂ mean H(σ(a))  +  c₃ sum σ(b) + c₄ mean H(σ(b))

with H the entropy of a coin, minimised by Adam from a ~ N(0, 0.1²), b ~ N(0, 2/N): the objective and the defaults of PyG.
Means and sums run over what had a gradient in the first step; everything else gets the score 0.

Masks of different targets never meet, and Adam works on each number alone, so the optimisation of a whole union is exactly
the optimisation of each of its copies. The penalties have a closed gradient: d/da [p σ(a) + q H(σ(a))] = σ'(a) (p - q a).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core.errors import BadSetting
from graphgauge.core.progress import advance
from graphgauge.explainers.base import BaseExplainer, Scores, can_mask, empty_edges, empty_features, predicted
from graphgauge.explainers.learned import Entries, MaskedCopies, misfit
from graphgauge.models import BaseModel, ComputationGraphs, Union

FEATURE_STD = 0.1

#: a union and the scores of its nodes (num_nodes, F) and edges (num_edges,)
Learned = tuple[Union, Tensor, Tensor]


@dataclass(frozen=True)
class GNNExplainer(BaseExplainer):
    """Learned masks; parameters are named as in PyG."""

    name = "gnn_explainer"
    signed = False
    deterministic = False
    epochs: int = 100
    lr: float = 0.01
    edge_size: float = 0.005
    edge_ent: float = 1.0
    node_feat_size: float = 1.0
    node_feat_ent: float = 0.1

    def __post_init__(self) -> None:
        check_epochs(self.epochs)

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """All targets as one optimisation."""
        feature, edge = empty_features(graphs), empty_edges(graphs)

        def write(done: Learned) -> None:
            union, for_nodes, for_edges = done
            feature[union.node_row] = for_nodes
            edge[union.edge_row] = for_edges

        optimise = self.optimiser(model, graphs, seeds)
        model.each(
            lambda union: optimise(union, self.epochs), write, graphs, kind=self.name, probe=lambda union: optimise(union, 1)
        )
        return Scores(feature, edge if can_mask(model) else None)

    def optimiser(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Callable[[Union, int], Learned]:
        """Work that learns the masks of a union's copies in a number of epochs."""
        label, value, std = predicted(model, graphs), first_values(model, graphs), edge_std(model, graphs)
        with_edges = can_mask(model)

        def optimise(union: Union, epochs: int) -> Learned:
            copies = MaskedCopies(union, with_edges)
            masks = self.masks(copies, [seeds[k] for k in union.of.tolist()], std[union.of])
            adam = torch.optim.Adam([mask.logit for mask in masks], lr=self.lr)
            wanted = None if label is None else label[union.of]
            for _ in range(epochs):
                copies.set_gates(*(mask.gates() for mask in masks))
                with torch.enable_grad():
                    loss = misfit(model, model.engine.outputs(copies.edited), wanted, value[union.of]).sum()
                    gradients = copies.gradients(loss)
                for mask, gradient in zip(masks, gradients, strict=True):
                    mask.logit.grad = mask.gradient(gradient)
                adam.step()
                advance(len(union) / self.epochs)
            return union, *copies.scores(*(mask.score() for mask in masks))

        return optimise

    def masks(self, copies: MaskedCopies, seeds: list[int], std: Tensor) -> list["Mask"]:
        """The masks of features and, where messages can be masked, edges, at their random start."""
        features, edges, like = copies.features, copies.edges, copies.union.x
        start = FEATURE_STD * features.drawn(seeds, "features", like)
        found = [Mask(features, start, self.node_feat_size, self.node_feat_ent, mean_size=True)]
        if edges is not None:
            start = std.to(like)[edges.copy] * edges.drawn(seeds, "edges", like)
            found.append(Mask(edges, start, self.edge_size, self.edge_ent, mean_size=False))
        return found


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
    return model.pred_continuous(graphs.target if model.level == "link" else graphs.target[:, 0])


def edge_std(model: BaseModel, graphs: ComputationGraphs) -> Tensor:
    """PyG's spread of the edges' start: sqrt(2 / N), with N the nodes of the whole graph.  (T,)"""
    num_nodes = graphs.num_nodes if model.level == "graph" else torch.full_like(graphs.num_nodes, graphs.source.num_nodes)
    return (2 / num_nodes.double()).sqrt()


def check_epochs(epochs: int) -> None:
    """Refuse what is no number of steps."""
    if not isinstance(epochs, int) or isinstance(epochs, bool) or epochs < 1:
        raise BadSetting(f"epochs must be a whole number, 1 or more, but {epochs!r} was given.")
