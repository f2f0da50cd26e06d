"""Guided Backprop and Deconvolution: the plain gradient, but clipped at 0 wherever it meets a
rectifier.

For y = act(x) with act a ReLU or a leaky ReLU, and g the gradient at y,

    plain gradient     g act'(x)
    GuidedBackprop     max(g act'(x), 0)     the gradient at the activation's input, clipped
    Deconvolution      max(g, 0)             the gradient at its output, clipped

Caught are modules, functions and methods, ReLU and leaky ReLU, between layers. What a layer
computes while it passes messages (GAT's attention) is left alone, but for `nn.ReLU` modules, which
are caught anywhere, as in Captum. ``variant="captum"`` catches `nn.ReLU` modules only.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.autograd import Function

from graphgauge.core.errors import BadSetting, GraphgaugeWarning
from graphgauge.explainers.base import Scores
from graphgauge.explainers.gradients import PlainGradient
from graphgauge.explainers.rules import Rule, Rules
from graphgauge.models import BaseModel, ComputationGraphs, Union

RECTIFIERS = ("relu", "leaky_relu", "prelu", "rrelu")
Activation = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class RectifiedGradient(PlainGradient):
    """``variant``: "default" (every rectifier between layers) or "captum" (`nn.ReLU` modules only)."""

    variant: str = "default"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in ("default", "captum"):
            raise BadSetting(
                f"variant must be 'default' or 'captum', but {self.variant!r} was given."
            )

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """One pass; with a warning where it is the plain gradient."""
        if len(graphs) and not self.num_rectifiers(model):
            warnings.warn(plain_gradient_warning(self, model), GraphgaugeWarning, stacklevel=5)
        return super().scores(model, graphs, seeds)

    def rules(self, model: BaseModel, union: Union) -> Rules:
        """Clip at rectifiers."""
        return RectifierRules(model.net, self.rectified, only_modules=self.variant == "captum")

    def num_rectifiers(self, model: BaseModel) -> int:
        """How many rectifiers one pass of the network meets."""

        def count() -> int:
            rules = RectifierRules(model.net, self.rectified, only_modules=self.variant == "captum")
            with rules:
                model.run_once()
            return rules.caught

        return model.known(f"rectifiers, {self.variant}", count)

    @staticmethod
    @abstractmethod
    def rectified(activation: Activation, x: Tensor) -> Tensor:
        """``activation(x)`` with the gradient clipped."""

    def feature_score(self, x: Tensor, gradient: Tensor) -> Tensor:
        """The clipped gradient."""
        return gradient

    def edge_score(self, gradient: Tensor) -> Tensor:
        """The clipped gradient."""
        return gradient


@dataclass(frozen=True)
class GuidedBackprop(RectifiedGradient):
    """The gradient, clipped at 0 at the input of every rectifier: only what raises the output
    passes.
    """

    name = "guided_backprop"
    signed = True
    deterministic = True

    @staticmethod
    def rectified(activation: Activation, x: Tensor) -> Tensor:
        """max(g act'(x), 0)."""
        return activation(ClippedGradient.apply(x))


@dataclass(frozen=True)
class Deconvolution(RectifiedGradient):
    """The gradient, clipped at 0 at the output of every rectifier, which itself is passed as if it
    were not there.
    """

    name = "deconvolution"
    signed = True
    deterministic = True

    @staticmethod
    def rectified(activation: Activation, x: Tensor) -> Tensor:
        """max(g, 0)."""
        return PassedAround.apply(x, activation(x.detach().clone()))


class RectifierRules(Rules):
    """Rectifiers with another gradient. ``caught`` counts them."""

    def __init__(self, net: nn.Module, rule: Rule, only_modules: bool) -> None:
        super().__init__(net)
        self.rule, self.only_modules = rule, only_modules
        self.caught, self.in_module = 0, False

    def add_hooks(self) -> None:
        """Know when an `nn.ReLU` module runs."""
        for module in self.net.modules():
            if isinstance(module, nn.ReLU):
                self.hooks.callback(module.register_forward_pre_hook(self.mark(True)).remove)
                self.hooks.callback(module.register_forward_hook(self.mark(False)).remove)

    def mark(self, entering: bool) -> Callable[..., None]:
        """A hook that says whether an `nn.ReLU` module is running."""

        def hook(*_: Any) -> None:
            self.in_module = entering

        return hook

    def apply(self, func: Callable[..., Any], name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """The rule, where it is a rectifier that is to be caught."""
        is_caught = self.in_module or not (self.only_modules or self.passing)
        if name.removesuffix("_") not in RECTIFIERS or not is_caught:
            return func(*args, **kwargs)
        self.caught += 1
        return self.replaced(self.rule, func, args, kwargs)


class ClippedGradient(Function):
    """A copy of x whose gradient is clipped at 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Copy."""
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """max(g, 0)."""
        return gradient.clamp(min=0)


class PassedAround(Function):
    """The value ``y``, whose gradient goes to ``x`` clipped at 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        """Copy y."""
        return y.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """max(g, 0) for x."""
        return gradient.clamp(min=0), None


def plain_gradient_warning(explainer: RectifiedGradient, model: BaseModel) -> str:
    """What it means that no rectifier was met."""
    kind, net = type(explainer).__name__, type(model.net).__name__
    missed = (
        "no nn.ReLU module runs in it (F.relu and leaky ones are only seen by variant='default')"
        if explainer.variant == "captum"
        else "no ReLU or leaky ReLU runs between its layers"
    )
    return (
        f"{kind} of {net} is the plain gradient: {missed}, so nothing is clipped. Its edge scores are those of InputXGradient, "
        "and GuidedBackprop and Deconvolution give the same numbers: do not count them as different explainers."
    )
