"""Gradient explainers: one forward and one backward pass for all targets at once.

With f the explained output (the probability of the predicted class or of a chosen one, or the
value), x the features and m = 1 the factors on the messages of the edges,

    Saliency              |df/dx|                   |df/dm|
    InputXGradient        x df/dx                   df/dm
    IntegratedGradients   x ∫ df/dx(αx, αm) dα      ∫ df/dm(αx, αm) dα        α from 0 to 1

Features and messages move along one path together, so for Integrated Gradients all scores of a
target, features and edges, add up to f(x, 1) - f(0, 0). The integral is a Gauss-Legendre sum; its
steps are copies in the same unions as the targets.
"""

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphgauge.core.errors import BadSetting
from graphgauge.core.progress import advance
from graphgauge.explainers.base import (
    BaseExplainer,
    Scores,
    can_mask,
    check_count,
    check_explained,
    empty_edges,
    empty_features,
    explained,
)
from graphgauge.explainers.chosen_classes import classes_to_explain
from graphgauge.models import BaseModel, ComputationGraphs, Union

#: gradients of one union: for its nodes (num_nodes, F), for its edges (num_edges,) or None
Gradients = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class GradientExplainer(BaseExplainer):
    """Scores from gradients of the explained output.

    ``explain_output``  "prob" (the probability of the explained class) or "logit"; regression explains its value
    ``edge_factor``     where the factors on edges act: "message" (normalisation stays, as with edge_removal="mask") or "weight"
                        (they multiply edge_weight and go through the normalisation, as with edge_removal="drop")
    """

    lean = True
    explains_labels = True
    explain_output: str = "prob"
    edge_factor: str = "message"

    def __post_init__(self) -> None:
        check_explained(self.explain_output)
        if self.edge_factor not in ("message", "weight"):
            raise BadSetting(
                f"edge_factor must be 'message' or 'weight', but {self.edge_factor!r} was given."
            )

    @property
    def needs_masks(self) -> bool:
        """Unless the factors act on weights."""
        return self.edge_factor == "message"

    @property
    def has_rules(self) -> bool:
        """Whether `rules` must find the operations inside message-passing layers."""
        return False

    def rules(self, model: BaseModel, union: Union) -> AbstractContextManager[Any]:
        """Other rules for the gradient of the network's operations in a pass over ``union``; here
        none.
        """
        return nullcontext()

    def differentiate(
        self, output: Tensor, leaves: list[Tensor], rules: Any
    ) -> tuple[Tensor | None, ...]:
        """Gradients of the explained outputs (K,) for ``leaves``; None for one that they do not
        depend on.
        """
        return torch.autograd.grad(output.sum(), leaves, allow_unused=True)

    def check_pass(self, model: BaseModel, union: Union, raw: Tensor) -> None:
        """Refuse a pass whose raw rows (K, columns) show that the rules do not fit the network;
        here none does.
        """

    def scores_edges(self, model: BaseModel) -> bool:
        """Whether edges get scores; refuses weights that the network does not take."""
        if self.edge_factor == "message":
            return can_mask(model)
        if "edge_weight" not in (
            model.source.edge_attrs if model.call.names is None else model.call.names
        ):
            raise BadSetting(
                f"edge_factor='weight' needs a network that takes edge_weight and data that has it, but {type(model.net).__name__} "
                "is called without. Use edge_factor='message', or set data.edge_weight = torch.ones(data.num_edges)."
            )
        return True

    def gradients(
        self, model: BaseModel, label: Tensor | None, scale: Tensor | None = None
    ) -> Callable[[Union], Gradients]:
        """Work that gives the gradients of a union's copies, with features and factors multiplied
        by ``scale`` (copies,).
        """
        with_edges = self.scores_edges(model)
        on_weight = self.edge_factor == "weight"

        def work(union: Union) -> Gradients:
            with torch.enable_grad():
                x = (
                    (union.x if scale is None else scaled_features(union, scale))
                    .detach()
                    .requires_grad_(True)
                )
                leaves, edited = [x], union.with_x(x)
                if with_edges:
                    leaves.append(factors(union, scale).requires_grad_(True))
                    edited = (
                        edited.with_weight_factor(leaves[1])
                        if on_weight
                        else edited.with_mask(leaves[1])
                    )
                with self.rules(model, union) as rules:
                    raw = model.engine.outputs(edited, written=self.has_rules)
                self.check_pass(model, union, raw.detach())
                output = explained(
                    model, raw, None if label is None else label[union.of], self.explain_output
                )
                grads = self.differentiate(output, leaves, rules)
            feature, *edge = (
                torch.zeros_like(leaf) if grad is None else grad
                for leaf, grad in zip(leaves, grads, strict=True)
            )
            return feature[union.node_at], edge[0] if edge else None

        return work


def scaled_features(union: Union, scale: Tensor) -> Tensor:
    """The union's features, those of copy k times ``scale[k]``."""
    return union.x.index_copy(
        0, union.node_at, union.x[union.node_at] * scale[union.copy][union.node_copy][:, None]
    )


def factors(union: Union, scale: Tensor | None) -> Tensor:
    """The factors on the messages: ``scale[k]`` on the relevant edges of copy k, 1 on all others.
    (num_edges,)
    """
    ones = union.x.new_ones(union.num_edges)
    if scale is None:
        return ones
    return torch.where(union.is_relevant, scale[union.copy][union.edge_copy], ones)


@dataclass(frozen=True)
class PlainGradient(GradientExplainer):
    """Gradients at the input as it is, turned into scores by `feature_score` and `edge_score`."""

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """One pass."""
        feature, edge = empty_features(graphs), empty_edges(graphs)
        work = self.gradients(model, classes_to_explain(model, graphs))

        def write(done: tuple[Union, Gradients]) -> None:
            union, (for_nodes, for_edges) = done
            feature[union.node_row] = for_nodes
            if for_edges is not None:
                edge[union.edge_row] = for_edges
            advance(len(union))

        model.each(lambda union: (union, work(union)), write, graphs, kind=repr(self))
        x = graphs.source.x[graphs.node]
        return Scores(
            self.feature_score(x, feature),
            self.edge_score(edge) if self.scores_edges(model) else None,
        )

    @abstractmethod
    def feature_score(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Scores of features ``x`` from their gradients, both (sum of nodes, F)."""

    @abstractmethod
    def edge_score(self, gradient: Tensor) -> Tensor:
        """Scores of edges from the gradients of their factors, which are 1.  (sum of edges,)"""


@dataclass(frozen=True)
class Saliency(PlainGradient):
    """The size of the gradient: how much the output reacts, not in which direction."""

    name = "saliency"
    signed = False
    deterministic = True

    def feature_score(self, x: Tensor, gradient: Tensor) -> Tensor:
        """|df/dx|."""
        return gradient.abs()

    def edge_score(self, gradient: Tensor) -> Tensor:
        """|df/dm|."""
        return gradient.abs()


@dataclass(frozen=True)
class InputXGradient(PlainGradient):
    """The gradient times what is there: the first-order effect of taking a feature, or an edge's
    message, away.
    """

    name = "input_x_gradient"
    signed = True
    deterministic = True

    def feature_score(self, x: Tensor, gradient: Tensor) -> Tensor:
        """X df/dx."""
        return x * gradient

    def edge_score(self, gradient: Tensor) -> Tensor:
        """df/dm."""
        return gradient


@dataclass(frozen=True)
class IntegratedGradients(GradientExplainer):
    """Gradients averaged on the way from nothing to what is there."""

    name = "integrated_gradients"
    signed = True
    deterministic = True
    steps: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("steps", self.steps)

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """All steps of all targets as copies; the steps of one target follow each other."""
        feature, edge = empty_features(graphs), empty_edges(graphs)
        of = torch.arange(len(graphs), device=graphs.node.device).repeat_interleave(self.steps)
        alpha, weight = (
            part.to(feature).repeat(len(graphs)) for part in gauss_legendre(self.steps)
        )
        work = self.gradients(model, classes_to_explain(model, graphs), scale=alpha)

        def add(done: tuple[Union, Gradients]) -> None:
            union, (for_nodes, for_edges) = done
            share = weight[union.copy]
            feature.index_add_(0, union.node_row, for_nodes * share[union.node_copy][:, None])
            if for_edges is not None:
                edge.index_add_(0, union.edge_row, for_edges * share[union.edge_copy])
            advance(len(union) / self.steps)

        model.each(lambda union: (union, work(union)), add, graphs, of, kind=repr(self))
        return Scores(
            graphs.source.x[graphs.node] * feature, edge if self.scores_edges(model) else None
        )


def gauss_legendre(steps: int) -> tuple[Tensor, Tensor]:
    """Points in (0, 1) and their weights, which add up to 1.  (steps,), (steps,)"""
    points, weights = np.polynomial.legendre.leggauss(steps)
    return torch.from_numpy((1 + points) / 2), torch.from_numpy(weights / 2)
