"""Gradient explainers: one forward and one backward pass explain all targets.

Let f be the explained output (the probability of the explained class, or the value of a
regression), x the features, and m = 1 a factor on the messages of each edge. The scores are

    explainer             features                  edges
    Saliency              |df/dx|                   |df/dm|
    InputXGradient        x df/dx                   df/dm
    IntegratedGradients   x ∫ df/dx(αx, αm) dα      ∫ df/dm(αx, αm) dα        α from 0 to 1

Integrated Gradients scales features and messages together, so the scores of all features and edges
of a target sum to f(x, 1) - f(0, 0). The integral is a Gauss-Legendre sum; each of its steps is one
more copy of the target's graph in the same batch.
"""

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from graphgauge.core import BadSetting, advance_progress
from graphgauge.execution import DenseFeatures, GraphBatch, TrackedFeatures
from graphgauge.explainers.base import (
    BaseExplainer,
    target_output,
    zero_edge_scores,
    zero_feature_scores,
)
from graphgauge.explainers.explained_class import classes_to_explain
from graphgauge.explainers.explanations import Scores
from graphgauge.explainers.gradient_rules import GradientRules
from graphgauge.explainers.network_checks import can_mask_messages
from graphgauge.explainers.parameter_checks import check_explain_output, check_positive_integer
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraphs

#: gradients of one batch: for its nodes (num_nodes, F), and for its edges (num_edges,) or None
_BatchGradients = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class _GradientExplainer(BaseExplainer):
    """Base class of explainers whose scores come from gradients of the explained output.

    Subclasses may override `_rules`, `_differentiate` and `_check_pass`.

    Args:
        explain_output: "prob" explains the probability of the class, "logit" its logit. Regression
            models explain their value.
        edge_factor: Where the factors on edges act. "message": on messages, so that normalisation
            stays as it is (as with edge_removal="mask"). "weight": on edge_weight, and so through
            the normalisation (as with edge_removal="drop").
    """

    lean = True
    explains_labels = True
    explain_output: Literal["prob", "logit"] = "prob"
    edge_factor: Literal["message", "weight"] = "message"

    def __post_init__(self) -> None:
        check_explain_output(self.explain_output)
        if self.edge_factor not in ("message", "weight"):
            raise BadSetting(
                f"edge_factor must be 'message' or 'weight', but {self.edge_factor!r} was given."
            )

    @property
    def needs_masks(self) -> bool:
        """True unless the factors act on edge weights."""
        return self.edge_factor == "message"

    @property
    def has_rules(self) -> bool:
        """Whether `_rules` must see the operations inside message-passing layers."""
        return False

    def _rules(
        self, model: BaseModel, union: GraphBatch
    ) -> AbstractContextManager[GradientRules | None]:
        """The context in which operations of the network have other gradient rules.

        By default none has.
        """
        return nullcontext()

    def _differentiate(
        self, output: Tensor, leaves: list[Tensor], rules: GradientRules | None
    ) -> tuple[Tensor | None, ...]:
        """Gradients of the explained outputs (K,) with respect to ``leaves``.

        ``rules`` is what the context of `_rules` gave. An entry is None if the outputs do not
        depend on that leaf.
        """
        return torch.autograd.grad(output.sum(), leaves, allow_unused=True)

    def _check_pass(self, model: BaseModel, union: GraphBatch, raw: Tensor) -> None:
        """Raise BadModel if raw outputs (K, columns) show that the rules do not fit the network.

        By default there is nothing to check.
        """

    def _scores_edges(self, model: BaseModel) -> bool:
        """Whether edges get scores. Raises BadSetting if the network does not take edge weights."""
        if self.edge_factor == "message":
            return can_mask_messages(model)
        names = model.source.edge_attrs if model.call.names is None else model.call.names
        if "edge_weight" not in names:
            raise BadSetting(
                "edge_factor='weight' needs a network that takes edge_weight and data that has "
                f"it, but {type(model.net).__name__} is called without. Use edge_factor='message', "
                "or set data.edge_weight = torch.ones(data.num_edges)."
            )
        return True

    def _gradients(
        self, model: BaseModel, label: Tensor | None, scale: Tensor | None = None
    ) -> Callable[[GraphBatch], _BatchGradients]:
        """Return a function that computes the gradients of a batch.

        Features and edge factors of copy k are multiplied by ``scale[k]``, if a scale is given.
        """
        with_edges = self._scores_edges(model)
        on_weight = self.edge_factor == "weight"
        is_mapped_first = not self.has_rules and model.feature_use == "linear"
        features_of = TrackedFeatures if is_mapped_first else DenseFeatures

        def work(union: GraphBatch) -> _BatchGradients:
            with torch.enable_grad():
                x = union.x if scale is None else _scale_features(union, scale)
                x = x.detach().requires_grad_(True)
                leaves, edited = [x], union.with_features(features_of(x))
                if with_edges:
                    factor = _message_factors(union, scale).requires_grad_(True)
                    leaves.append(factor)
                    edit = edited.with_weight_factor if on_weight else edited.with_mask
                    edited = edit(factor)
                with self._rules(model, union) as rules:
                    raw = model.executor.outputs(edited, written=self.has_rules)
                self._check_pass(model, union, raw.detach())
                target_label = None if label is None else label[union.graph_index]
                output = target_output(model, raw, target_label, self.explain_output)
                grads = self._differentiate(output, leaves, rules)
            feature, *edge = (
                torch.zeros_like(leaf) if grad is None else grad
                for leaf, grad in zip(leaves, grads, strict=True)
            )
            return feature[union.node_at], edge[0] if edge else None

        return work


def _scale_features(union: GraphBatch, scale: Tensor) -> Tensor:
    """The features of a batch, those of copy k multiplied by ``scale[k]``."""
    return union.x.index_copy(
        0, union.node_at, union.x[union.node_at] * scale[union.copy][union.node_copy][:, None]
    )


def _message_factors(union: GraphBatch, scale: Tensor | None) -> Tensor:
    """Factors on the messages of a batch. (num_edges,)

    They are ``scale[k]`` on the relevant edges of copy k, and 1 on other edges.
    """
    ones = union.x.new_ones(union.num_edges)
    if scale is None:
        return ones
    return torch.where(union.is_relevant, scale[union.copy][union.edge_copy], ones)


@dataclass(frozen=True)
class PlainGradient(_GradientExplainer):
    """Base class of explainers that need one gradient at the input.

    Subclasses turn gradients into scores with `_feature_score` and `_edge_score`.
    """

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Run one forward and one backward pass.

        Args:
            model: The wrapped network.
            graphs: The computation graphs of T targets.
            seeds: Not used, because a gradient has no random draws.
        """
        feature, edge = zero_feature_scores(graphs), zero_edge_scores(graphs)
        work = self._gradients(model, classes_to_explain(model, graphs))

        def write(result: tuple[GraphBatch, _BatchGradients]) -> None:
            union, (for_nodes, for_edges) = result
            feature[union.node_row] = for_nodes
            if for_edges is not None:
                edge[union.edge_row] = for_edges
            advance_progress(len(union))

        model.for_each(lambda union: (union, work(union)), write, graphs, kind=repr(self))
        x = graphs.source.x[graphs.node]
        return Scores(
            self._feature_score(x, feature),
            self._edge_score(edge) if self._scores_edges(model) else None,
        )

    @abstractmethod
    def _feature_score(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Scores of features ``x`` from their gradients, both (sum of nodes, F)."""

    @abstractmethod
    def _edge_score(self, gradient: Tensor) -> Tensor:
        """Scores of edges from the gradients of their factors, which are 1. (sum of edges,)"""


@dataclass(frozen=True)
class Saliency(PlainGradient):
    """The absolute gradient: how strongly the output reacts to a feature or a message.

    Args:
        explain_output: "prob" explains the probability of the class, "logit" its logit. Regression
            models explain their value.
        edge_factor: Where the factors on edges act. "message": on messages, so that normalisation
            stays as it is. "weight": on edge_weight, and so through the normalisation.

    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> explanation = gg.Saliency().explain(model, [2])[0]
    >>> explanation.feature_score.shape, explanation.edge_score.shape  # (n, F), (E_rel,)
    (torch.Size([3, 4]), torch.Size([2]))
    """

    name = "saliency"
    signed = False
    deterministic = True

    def _feature_score(self, x: Tensor, gradient: Tensor) -> Tensor:
        """|df/dx|."""
        return gradient.abs()

    def _edge_score(self, gradient: Tensor) -> Tensor:
        """|df/dm|."""
        return gradient.abs()


@dataclass(frozen=True)
class InputXGradient(PlainGradient):
    """The gradient times the input: the first-order effect of removing a feature or a message.

    Args:
        explain_output: "prob" explains the probability of the class, "logit" its logit. Regression
            models explain their value.
        edge_factor: Where the factors on edges act. "message": on messages, so that normalisation
            stays as it is. "weight": on edge_weight, and so through the normalisation.

    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> explanation = gg.InputXGradient(explain_output="logit").explain(model, [2], label=1)[0]
    >>> explanation.feature_score.shape, explanation.edge_score.shape  # (n, F), (E_rel,)
    (torch.Size([3, 4]), torch.Size([2]))
    """

    name = "input_x_gradient"
    signed = True
    deterministic = True

    def _feature_score(self, x: Tensor, gradient: Tensor) -> Tensor:
        """The product x df/dx."""
        return x * gradient

    def _edge_score(self, gradient: Tensor) -> Tensor:
        """The gradient df/dm, since m is 1."""
        return gradient


@dataclass(frozen=True)
class IntegratedGradients(_GradientExplainer):
    """Gradients averaged along the straight path from an empty input to the real one.

    The scores of all features and edges of a target sum to f(x, 1) - f(0, 0).

    Args:
        explain_output: "prob" explains the probability of the class, "logit" its logit. Regression
            models explain their value.
        edge_factor: Where the factors on edges act. "message": on messages, so that normalisation
            stays as it is. "weight": on edge_weight, and so through the normalisation.
        steps: Points of the Gauss-Legendre quadrature.

    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> explanation = gg.IntegratedGradients(steps=20).explain(model, [2])[0]
    >>> explanation.feature_score.shape, explanation.edge_score.shape  # (n, F), (E_rel,)
    (torch.Size([3, 4]), torch.Size([2]))
    """

    name = "integrated_gradients"
    signed = True
    deterministic = True
    steps: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive_integer("steps", self.steps)

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Run all steps of all targets as copies in one batch; steps of a target are adjacent.

        Args:
            model: The wrapped network.
            graphs: The computation graphs of T targets.
            seeds: Not used, because the points of the quadrature are fixed.
        """
        feature, edge = zero_feature_scores(graphs), zero_edge_scores(graphs)
        of = torch.arange(len(graphs), device=graphs.node.device).repeat_interleave(self.steps)
        alpha, weight = (
            values.to(feature).repeat(len(graphs)) for values in _gauss_legendre(self.steps)
        )
        work = self._gradients(model, classes_to_explain(model, graphs), scale=alpha)

        def add(result: tuple[GraphBatch, _BatchGradients]) -> None:
            union, (for_nodes, for_edges) = result
            share = weight[union.copy]
            feature.index_add_(0, union.node_row, for_nodes * share[union.node_copy][:, None])
            if for_edges is not None:
                edge.index_add_(0, union.edge_row, for_edges * share[union.edge_copy])
            advance_progress(len(union) / self.steps)

        model.for_each(lambda union: (union, work(union)), add, graphs, of, kind=repr(self))
        return Scores(
            graphs.source.x[graphs.node] * feature, edge if self._scores_edges(model) else None
        )


def _gauss_legendre(steps: int) -> tuple[Tensor, Tensor]:
    """Nodes in (0, 1) and their weights, which sum to 1. (steps,), (steps,)"""
    points, weights = np.polynomial.legendre.leggauss(steps)
    return torch.from_numpy((1 + points) / 2), torch.from_numpy(weights / 2)
