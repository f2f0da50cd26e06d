"""GNNExplainer: masks on features and messages, learned to keep a prediction while they shrink and
harden.

For one target with prediction y, features x, and mask logits a (features) and b (edges),

    loss = misfit(f(x σ(a), messages σ(b)), y)  +  c₁ mean σ(a) + c₂ mean H(σ(a))  +  c₃ sum σ(b) + c₄ mean H(σ(b))

with H the entropy of a coin, minimised by Adam from a ~ N(0, 0.1²), b ~ N(0, 2/N): the objective
and the defaults of PyG. Means and sums run over what had a gradient in the first step; everything
else gets the score 0.

Masks of different targets never meet, and Adam works on each number alone, so the optimisation of a
whole union is exactly the optimisation of each of its copies. The penalties have a closed gradient:
d/da [p σ(a) + q H(σ(a))] = σ'(a) (p - q a).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core.progress import advance
from graphgauge.explainers.base import BaseExplainer, Scores, can_mask, check_count, check_numbers
from graphgauge.explainers.chosen_classes import classes_to_explain
from graphgauge.explainers.learned import (
    Learned,
    Mask,
    MaskedCopies,
    first_values,
    learned_scores,
    misfit,
)
from graphgauge.explainers.replay import Replay
from graphgauge.models import BaseModel, ComputationGraphs, Union

FEATURE_STD = 0.1


@dataclass(frozen=True)
class GNNExplainer(BaseExplainer):
    """Masks on features and edges, learned to keep the prediction while they shrink; parameters are
    named as in PyG.
    """

    name = "gnn_explainer"
    signed = False
    deterministic = False
    lean = True
    explains_labels = True
    epochs: int = 100
    lr: float = 0.01
    edge_size: float = 0.005
    edge_ent: float = 1.0
    node_feat_size: float = 1.0
    node_feat_ent: float = 0.1

    def __post_init__(self) -> None:
        check_count("epochs", self.epochs)
        check_numbers(self, "lr", "edge_size", "edge_ent", "node_feat_size", "node_feat_ent")

    @property
    def needs_masks(self) -> bool:
        """Edges are learned as factors on messages."""
        return True

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """All targets as one optimisation."""
        optimise = self.optimiser(model, graphs, seeds)
        return learned_scores(
            model,
            graphs,
            lambda union: optimise(union, self.epochs),
            lambda union: optimise(union, 1),
            self.name,
        )

    def optimiser(
        self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]
    ) -> Callable[[Union, int], Learned]:
        """Work that learns the masks of a union's copies in a number of epochs."""
        label, value, std = (
            classes_to_explain(model, graphs),
            first_values(model, graphs),
            edge_std(model, graphs),
        )
        with_edges = can_mask(model)

        def optimise(union: Union, epochs: int) -> Learned:
            copies = MaskedCopies(model, union, with_edges)
            masks = self.masks(copies, [seeds[k] for k in union.of.tolist()], std[union.of])
            adam = torch.optim.Adam(
                [mask.logit for mask in masks],
                lr=self.lr,
                fused=True,
                capturable=copies.value.is_cuda,
            )
            wanted, wished = None if label is None else label[union.of], value[union.of]

            def step() -> None:
                copies.set_gates(*(mask.gates() for mask in masks))
                with torch.enable_grad():
                    loss = misfit(model, model.engine.outputs(copies.edited), wanted, wished).sum()
                    gradients = copies.gradients(loss)
                for mask, gradient in zip(masks, gradients, strict=True):
                    mask.logit.grad = mask.gradient(gradient)
                adam.step()

            again = Replay(step, copies.value.device)
            for _ in range(epochs):
                again()
                advance(len(union) / self.epochs)
            return copies.scores(*(mask.score() for mask in masks))

        return optimise

    def masks(self, copies: MaskedCopies, seeds: list[int], std: Tensor) -> list[Mask]:
        """The masks of features and, where messages can be masked, edges, at their random start."""
        features, edges, like = copies.features, copies.edges, copies.value
        start = FEATURE_STD * features.drawn(seeds, "features", like)
        found = [Mask(features, start, self.node_feat_size, self.node_feat_ent, mean_size=True)]
        if edges is not None:
            start = std.to(like)[edges.copy] * edges.drawn(seeds, "edges", like)
            found.append(Mask(edges, start, self.edge_size, self.edge_ent, mean_size=False))
        return found


def edge_std(model: BaseModel, graphs: ComputationGraphs) -> Tensor:
    """PyG's spread of the edges' start: sqrt(2 / N), with N the nodes of the whole graph.  (T,)"""
    num_nodes = (
        graphs.num_nodes
        if model.level == "graph"
        else torch.full_like(graphs.num_nodes, graphs.source.num_nodes)
    )
    return (2 / num_nodes.double()).sqrt()
