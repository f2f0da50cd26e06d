"""Layer-wise relevance propagation (LRP): the output, handed back layer by layer until features hold all of it.

Relevance is computed as input times gradient of a network with the same values and other derivatives: every operation y(x) is
replaced by one that is homogeneous of degree 1, so that  Σ x dy/dx = y  (Euler) and nothing is lost or made on the way:

    linear map      y = z' [z / z'],  z = W x + b,  z' = z + γ (sum of the positive summands of z if z > 0, else of the negative)
    activation      y = x [act(x) / x]                                      the same for normalising a row to length 1
    batch norm      y = x [scale] + shift                                   in evaluation mode
    product         y = (u [v] + [u] v) / 2                                 inner products of two embeddings
    quotient        y = u / [v]
    attention       [α]                                                     coefficients are constants
    sums, means, messages, maxima, concatenation, dropout: as they are

[·] is held constant. With γ = 0 and ReLU, nothing changes: LRP is input times gradient. Each linear map, with γ > 0, favours the
summands of the sign of its sum, so that large cancelling terms do not blow up. Biases and shifts take their share of the
relevance: features add up to the explained output less that share, and each pass checks that the books balance.

An edge's score is the relevance that its messages carry, in all layers together: the gradient for a factor on them.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GINConv, GraphConv, MessagePassing, SAGEConv, aggr

from graphgauge.core.errors import BadModel, BadSetting
from graphgauge.explainers.base import Scores
from graphgauge.explainers.gradients import PlainGradient
from graphgauge.explainers.lrp_captum import captum_rules
from graphgauge.explainers.rules import Rules, frozen
from graphgauge.models import BaseModel, ComputationGraphs

LAYERS = (GCNConv, GATConv, GATv2Conv, SAGEConv, GINConv, GraphConv)
AGGREGATIONS = (aggr.SumAggregation, aggr.MeanAggregation, aggr.MaxAggregation, aggr.MinAggregation)
ACTIVATIONS = "relu leaky_relu prelu rrelu relu6 hardtanh elu selu celu gelu silu mish tanh softsign hardswish".split()
MODULES = (
    *(nn.Linear, nn.BatchNorm1d, nn.Dropout, nn.Identity, nn.Softmax, nn.LogSoftmax, nn.Sigmoid),
    *(nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.ReLU6, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Tanh),
    *(nn.ModuleList, nn.ModuleDict, nn.Sequential, nn.Softsign, nn.Hardswish, nn.Hardtanh),
)
TO_PROBABILITIES = ("softmax", "log_softmax", "sigmoid", "logsigmoid")
PRODUCTS = ("mul", "multiply", "matmul", "mm", "bmm", "dot", "__matmul__", "__rmul__", "__rmatmul__")


@dataclass(frozen=True, kw_only=True)
class LRP(PlainGradient):
    """Relevance of features and edges for the logit of the predicted class, or the value.

    ``gamma``    how much summands of the sign of their sum are favoured; 0: not at all
    ``variant``  "gamma", or "captum": the ε-rule as Captum applies it to PyG's networks, which loses relevance on the way and
                 explains the probability
    """

    name = "lrp"
    signed = True
    deterministic = True
    explain_output: str = ""
    variant: str = "gamma"
    gamma: float = 0.25

    def __post_init__(self) -> None:
        if self.variant not in ("gamma", "captum"):
            raise BadSetting(f"variant must be 'gamma' or 'captum', but {self.variant!r} was given.")
        if not isinstance(self.gamma, (int, float)) or isinstance(self.gamma, bool) or not 0 <= self.gamma < float("inf"):
            raise BadSetting(f"gamma must be a number, 0 or more, but {self.gamma!r} was given.")
        if not self.explain_output:
            object.__setattr__(self, "explain_output", "logit" if self.variant == "gamma" else "prob")
        if self.variant == "gamma" and self.explain_output != "logit":
            raise BadSetting(f"LRP explains explain_output='logit', which it can hand back whole, not {self.explain_output!r}.")
        super().__post_init__()

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """One pass."""
        if self.variant == "gamma":
            check_layers(model.net)
        return super().scores(model, graphs, seeds)

    def rules(self, model: BaseModel) -> AbstractContextManager[Any]:
        """Homogeneous operations, or Captum's hooks."""
        if self.variant == "captum":
            return captum_rules(model.net)
        ends_in_logits = model.task == "regression" or model.kind == "logits"  # type: ignore[attr-defined]
        return ConservingRules(model.net, self.gamma, ends_in_logits, model.source.x.new_ones(()))

    def differentiate(self, output: Tensor, leaves: list[Tensor], rules: Any) -> tuple[Tensor | None, ...]:
        """Gradients of the explained outputs (K,); with the books checked."""
        if self.variant == "captum":
            return torch.autograd.grad((output.detach() * output).sum(), leaves, allow_unused=True)
        *found, share = torch.autograd.grad(output.sum(), [*leaves, rules.one], allow_unused=True)
        check_books(output, leaves[0], found[0], share, rules)
        return tuple(found)

    def feature_score(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Input times gradient; Captum's hooks have multiplied already."""
        return x * gradient if self.variant == "gamma" else gradient

    def edge_score(self, gradient: Tensor) -> Tensor:
        """The relevance that messages carry."""
        return gradient


class ConservingRules(Rules):
    """Operations of degree 1. ``one`` is a factor on every bias and shift, so that its gradient is their share."""

    def __init__(self, net: nn.Module, gamma: float, ends_in_logits: bool, one: Tensor) -> None:
        super().__init__(net)
        self.gamma, self.ends_in_logits, self.one = gamma, ends_in_logits, one.requires_grad_(True)
        self.ends = 0

    def add_hooks(self) -> None:
        """Only features and factors have gradients, and attention is constant."""
        self.hooks.enter_context(frozen(self.net))
        for layer in self.net.modules():
            if isinstance(layer, (GATConv, GATv2Conv)):
                self.hooks.callback(layer.register_edge_update_forward_hook(lambda *given: given[-1].detach()).remove)

    def apply(self, func: Callable[..., Any], name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """The rule for one operation, where it has one and something to hand on."""
        rule = self.rule_of(name)
        inputs = (*args, *kwargs.values())
        if rule is None or not any(isinstance(item, Tensor) and item.requires_grad for item in inputs):
            return func(*args, **kwargs)
        return rule(func, *args, **kwargs)

    def rule_of(self, name: str) -> Callable[..., Any] | None:
        """The rule for the operations of a name."""
        plain = name.removesuffix("_") if not name.endswith("__") else name
        if plain in (*ACTIVATIONS, "normalize"):
            return self.activation
        if plain in ("add", "sub", "__radd__", "__rsub__"):
            return self.plus_constant
        if plain in PRODUCTS and not self.passing:
            return self.product
        if plain in TO_PROBABILITIES and not self.passing and not self.ends_in_logits:
            return self.end
        others: dict[str, Callable[..., Any]] = {"linear": self.linear, "batch_norm": self.batch_norm, "div": self.quotient}
        return others.get(plain)

    def linear(self, func: Callable[..., Any], input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Y = z' [z / z']."""
        return favoured(input, weight, None if bias is None else bias * self.one, self.gamma)

    def activation(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Tensor:
        """Y = x [act(x) / x]."""
        return self.replaced(lambda act, x: x * ratio(act(x.detach().clone()), x.detach()), func, args, kwargs)

    def plus_constant(self, func: Callable[..., Any], first: Any, second: Any, **kwargs: Any) -> Any:
        """A constant summand takes its share."""
        first, second = (item if requires_grad(item) or both(first, second) else item * self.one for item in (first, second))
        return func(first, second, **kwargs)

    def product(self, func: Callable[..., Any], first: Any, second: Any, **kwargs: Any) -> Any:
        """Y = (u [v] + [u] v) / 2 where both depend on features; x W with the rule of linear maps."""
        if both(first, second):
            return (func(first, second.detach(), **kwargs) + func(first.detach(), second, **kwargs)) / 2
        if getattr(func, "__name__", "") in ("matmul", "mm", "__matmul__") and requires_grad(first) and second.dim() == 2:
            return favoured(first, second.t(), None, self.gamma)
        return func(first, second, **kwargs)

    def quotient(self, func: Callable[..., Any], first: Any, second: Any, **kwargs: Any) -> Any:
        """Y = u / [v]."""
        return func(first, second.detach() if isinstance(second, Tensor) else second, **kwargs)

    def batch_norm(
        self,
        func: Callable[..., Any],
        input: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:
        """Y = x [scale] + shift."""
        if training or running_mean is None or running_var is None:
            raise BadModel("LRP has no rule for batch norm without running statistics, which mixes targets. Use another explainer.")
        scale = (running_var + eps).rsqrt() * (1 if weight is None else weight)
        shift = (0 if bias is None else bias) - running_mean * scale
        return input * scale + shift * self.one

    def end(self, func: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logits themselves, where the network would turn them into probabilities."""
        self.ends += 1
        if self.ends > 1:
            raise BadModel(
                "LRP explains the logit in front of a last softmax or sigmoid, but this network calls more than one. "
                "Use IntegratedGradients, or return logits from the network."
            )
        return input.clone()


def favoured(x: Tensor, weight: Tensor, bias: Tensor | None, gamma: float) -> Tensor:
    """W x + b with the derivatives of the γ-rule.  (..., in), (out, in), (out,) -> (..., out)"""
    z = F.linear(x, weight, bias)
    if gamma == 0:
        return z
    positive = F.linear(x.clamp(min=0), weight.clamp(min=0), None if bias is None else bias.clamp(min=0))
    if bool((x < 0).any()):
        positive = positive + F.linear(x.clamp(max=0), weight.clamp(max=0))
    more = z + gamma * torch.where(z > 0, positive, z - positive)
    return more * ratio(z.detach(), more.detach())


def ratio(y: Tensor, x: Tensor) -> Tensor:
    """Y / x, 0 where x is 0."""
    return torch.where(x == 0, 0, y / torch.where(x == 0, 1, x))


def requires_grad(item: Any) -> bool:
    """Whether something depends on features or factors."""
    return isinstance(item, Tensor) and item.requires_grad


def both(first: Any, second: Any) -> bool:
    """Whether both depend on features or factors."""
    return requires_grad(first) and requires_grad(second)


def check_layers(net: nn.Module) -> None:
    """Refuse, by name, layers that have no rule."""
    for module in net.modules():
        kind = type(module)
        is_foreign = not kind.__module__.startswith(("torch.nn.", "torch_geometric.nn."))
        is_known = isinstance(module, (*LAYERS, *AGGREGATIONS, *MODULES)) or kind.__name__ == "Linear"
        has_parts = next(module.children(), None) is not None
        if isinstance(module, MessagePassing) and not isinstance(module, LAYERS):
            refuse(kind.__name__)
        if not (is_foreign or is_known or has_parts):
            refuse(kind.__name__)


def refuse(layer: str) -> None:
    """Say what has no rule and what has."""
    known = ", ".join(layer.__name__ for layer in LAYERS)
    raise BadModel(
        f"LRP has no rule for {layer}. It knows Linear, {known}, batch norm, dropout and the usual activations. "
        "Use IntegratedGradients, which works with every layer."
    )


def check_books(output: Tensor, x: Tensor, gradient: Tensor | None, share: Tensor | None, rules: ConservingRules) -> None:
    """Refuse a network with an operation that loses or makes relevance: features and biases must add up to the outputs."""
    relevance = torch.zeros_like(x) if gradient is None else x.detach() * gradient
    gap = (relevance.sum() + (0 if share is None else share * rules.one.detach()) - output.detach().sum()).abs()
    if bool(gap > 1e-3 * output.detach().abs().sum() + 1e-4 * relevance.abs().sum()):
        raise BadModel(
            f"LRP hands back {float(relevance.sum()):.4g} and leaves {float(share or 0):.4g} with biases, but the outputs add up "
            f"to {float(output.detach().sum()):.4g}: {type(rules.net).__name__} calls an operation without a rule. "
            "Use IntegratedGradients."
        )
