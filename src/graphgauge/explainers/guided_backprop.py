"""Guided Backprop and Deconvolution: the gradient, clipped at 0 at every rectifier.

For y = act(x), with act a ReLU or leaky ReLU and g the gradient at y, the gradient at x is

    plain gradient     g act'(x)
    GuidedBackprop     max(g act'(x), 0)     the gradient at the activation's input, clipped
    Deconvolution      max(g, 0)             the gradient at its output, clipped

The rule applies to ReLU and leaky ReLU between layers, whether called as modules, functions or
methods. What a layer computes while it passes messages (GAT's attention) keeps its gradient, except
for `nn.ReLU` modules, which are clipped everywhere, as in Captum. With ``variant="captum"`` only
`nn.ReLU` modules are clipped.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import FunctionCtx

from graphgauge.core import BadSetting, GraphgaugeWarning
from graphgauge.execution import GraphBatch
from graphgauge.explainers.explanations import Scores
from graphgauge.explainers.gradient_rules import (
    ActivationRule,
    GradientRules,
    Operand,
    Operation,
)
from graphgauge.explainers.gradients import PlainGradient
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraphs

_RECTIFIERS = ("relu", "leaky_relu", "prelu", "rrelu")
_Activation = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class _RectifiedGradientExplainer(PlainGradient):
    """Base class of explainers that clip gradients at rectifiers; a subclass defines `_rectified`.

    Args:
        explain_output: "prob" explains the probability of the class, "logit" its logit. Regression
            models explain their value.
        edge_factor: Where the factors on edges act. "message": on messages, so that normalisation
            stays as it is. "weight": on edge_weight, and so through the normalisation.
        variant: "default" clips at every rectifier between layers, "captum" at `nn.ReLU` modules
            only.
    """

    variant: Literal["default", "captum"] = "default"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in ("default", "captum"):
            raise BadSetting(
                f"variant must be 'default' or 'captum', but {self.variant!r} was given."
            )

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Run one pass. Warns if no rectifier is clipped, so that scores are the plain gradient.

        Args:
            model: The wrapped network.
            graphs: The computation graphs of T targets.
            seeds: Not used, because a gradient has no random draws.
        """
        if len(graphs) and not self._num_rectifiers(model):
            warnings.warn(_plain_gradient_warning(self, model), GraphgaugeWarning, stacklevel=5)
        return super().scores(model, graphs, seeds)

    def _rules(self, model: BaseModel, union: GraphBatch) -> GradientRules:
        """Clip at rectifiers."""
        return _RectifierRules(model.net, self._rectified, only_modules=self.variant == "captum")

    def _num_rectifiers(self, model: BaseModel) -> int:
        """Number of rectifiers that one pass of the network meets."""

        def count() -> int:
            rules = _RectifierRules(
                model.net, self._rectified, only_modules=self.variant == "captum"
            )
            with rules:
                model.run_once()
            return rules.caught

        return model.cached_fact(f"rectifiers, {self.variant}", count)

    @staticmethod
    @abstractmethod
    def _rectified(activation: _Activation, x: Tensor) -> Tensor:
        """Compute ``activation(x)``, with a clipped gradient."""

    def _feature_score(self, x: Tensor, gradient: Tensor) -> Tensor:
        """The clipped gradient."""
        return gradient

    def _edge_score(self, gradient: Tensor) -> Tensor:
        """The clipped gradient."""
        return gradient


@dataclass(frozen=True)
class GuidedBackprop(_RectifiedGradientExplainer):
    """The gradient, clipped at the input of every rectifier.

    Args:
        explain_output: "prob" explains the probability of the class, "logit" its logit. Regression
            models explain their value.
        edge_factor: Where the factors on edges act. "message": on messages, so that normalisation
            stays as it is. "weight": on edge_weight, and so through the normalisation.
        variant: "default" clips at every rectifier between layers, "captum" at `nn.ReLU` modules
            only.

    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> explanation = gg.GuidedBackprop().explain(model, [2])[0]
    >>> explanation.feature_score.shape, explanation.edge_score.shape  # (n, F), (E_rel,)
    (torch.Size([3, 4]), torch.Size([2]))
    """

    name = "guided_backprop"
    signed = True
    deterministic = True

    @staticmethod
    def _rectified(activation: _Activation, x: Tensor) -> Tensor:
        """max(g act'(x), 0)."""
        return activation(_ClippedGradient.apply(x))


@dataclass(frozen=True)
class Deconvolution(_RectifiedGradientExplainer):
    """The gradient, clipped at the output of every rectifier instead of multiplied by its
    derivative.

    Args:
        explain_output: "prob" explains the probability of the class, "logit" its logit. Regression
            models explain their value.
        edge_factor: Where the factors on edges act. "message": on messages, so that normalisation
            stays as it is. "weight": on edge_weight, and so through the normalisation.
        variant: "default" clips at every rectifier between layers, "captum" at `nn.ReLU` modules
            only.

    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> explanation = gg.Deconvolution().explain(model, [2])[0]
    >>> explanation.feature_score.shape, explanation.edge_score.shape  # (n, F), (E_rel,)
    (torch.Size([3, 4]), torch.Size([2]))
    """

    name = "deconvolution"
    signed = True
    deterministic = True

    @staticmethod
    def _rectified(activation: _Activation, x: Tensor) -> Tensor:
        """max(g, 0)."""
        return _ClippedPassThrough.apply(x, activation(x.detach().clone()))


class _RectifierRules(GradientRules):
    """Gives rectifiers another gradient, and counts them in ``caught``."""

    def __init__(self, net: nn.Module, rule: ActivationRule, only_modules: bool) -> None:
        super().__init__(net)
        self.rule, self.only_modules = rule, only_modules
        self.caught, self.in_module = 0, False

    def add_hooks(self) -> None:
        """Track when an `nn.ReLU` module runs."""
        for module in self.net.modules():
            if isinstance(module, nn.ReLU):
                self.hooks.callback(module.register_forward_pre_hook(self._mark(True)).remove)
                self.hooks.callback(module.register_forward_hook(self._mark(False)).remove)

    def _mark(self, entering: bool) -> Callable[..., None]:
        """A hook that records whether an `nn.ReLU` module is running."""

        def hook(*_: object) -> None:
            self.in_module = entering

        return hook

    def apply(
        self, func: Operation, name: str, args: tuple[Operand, ...], kwargs: dict[str, Operand]
    ) -> Tensor:
        """Apply the rule if the operation is a rectifier that is to be clipped."""
        is_caught = self.in_module or not (self.only_modules or self.passing)
        if name.removesuffix("_") not in _RECTIFIERS or not is_caught:
            return func(*args, **kwargs)
        self.caught += 1
        return self.apply_activation_rule(self.rule, func, args, kwargs)


class _ClippedGradient(Function):
    """A copy of x whose gradient is clipped at 0."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor) -> Tensor:
        """Copy."""
        return x.clone()

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> Tensor:
        """max(g, 0)."""
        return gradient.clamp(min=0)


class _ClippedPassThrough(Function):
    """The value ``y``; its gradient goes to ``x``, clipped at 0."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, y: Tensor) -> Tensor:
        """Copy y."""
        return y.clone()

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        """max(g, 0) for x."""
        return gradient.clamp(min=0), None


def _plain_gradient_warning(explainer: _RectifiedGradientExplainer, model: BaseModel) -> str:
    """The warning that the network has no rectifier to clip."""
    kind, net = type(explainer).__name__, type(model.net).__name__
    missed = (
        "no nn.ReLU module runs in it (F.relu and leaky ones are only seen by variant='default')"
        if explainer.variant == "captum"
        else "no ReLU or leaky ReLU runs between its layers"
    )
    return (
        f"{kind} of {net} is the plain gradient: {missed}, so nothing is clipped. Its edge scores "
        "are those of InputXGradient, and GuidedBackprop and Deconvolution give the same numbers: "
        "do not count them as different explainers."
    )
