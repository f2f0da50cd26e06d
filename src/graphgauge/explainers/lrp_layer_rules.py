"""The LRP rules of operations and layers, and which layers LRP supports.

To support a further layer: if it computes with the operations below, add its class to
`_SUPPORTED_LAYERS` (message passing), `_SUPPORTED_AGGREGATIONS` or `_SUPPORTED_MODULES`. If it uses
an operation without a rule, write the rule as a method of `ConservingRules` and map the name of the
operation to it in `ConservingRules._rule_of`. Each rule must be homogeneous of degree 1 (see
`lrp`); `lrp_conservation` checks in every pass that no relevance is lost.
"""

from collections.abc import Callable
from typing import TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import (
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GINEConv,
    GraphConv,
    MessagePassing,
    SAGEConv,
    aggr,
)

from graphgauge.core import BadModel
from graphgauge.execution import GraphBatch
from graphgauge.explainers.gradient_rules import (
    GradientRules,
    Operand,
    Operation,
    freeze_parameters,
)

_SUPPORTED_LAYERS = (GCNConv, GATConv, GATv2Conv, SAGEConv, GINConv, GINEConv, GraphConv)
_SUPPORTED_AGGREGATIONS = (
    aggr.SumAggregation,
    aggr.MeanAggregation,
    aggr.MaxAggregation,
    aggr.MinAggregation,
)
_ACTIVATIONS = (
    *("relu", "leaky_relu", "prelu", "rrelu", "relu6", "hardtanh", "elu", "selu", "celu"),
    *("gelu", "silu", "mish", "tanh", "softsign", "hardswish"),
)
_SUPPORTED_MODULES = (
    *(nn.Linear, nn.BatchNorm1d, nn.Dropout, nn.Identity),
    *(nn.Softmax, nn.LogSoftmax, nn.Sigmoid),
    *(nn.ReLU, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.ReLU6, nn.Hardtanh, nn.ELU, nn.SELU, nn.CELU),
    *(nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Softsign, nn.Hardswish),
    *(nn.ModuleList, nn.ModuleDict, nn.Sequential),
)
_TO_PROBABILITIES = ("softmax", "log_softmax", "sigmoid", "logsigmoid")
_SUMS = ("add", "sub", "subtract", "rsub", "__radd__", "__rsub__")
_QUOTIENTS = ("div", "divide", "true_divide")
_PRODUCTS = (
    *("mul", "multiply", "matmul", "mm", "bmm", "dot"),
    *("__matmul__", "__rmul__", "__rmatmul__"),
)


class ConservingRules(GradientRules):
    """Replaces operations by homogeneous ones.

    ``ones`` holds a factor of 1 for each row of biases and shifts, so that its gradient is their
    share of the relevance. It is a dictionary from the number of rows of an operation to factors
    (rows,).
    """

    def __init__(
        self, net: nn.Module, gamma: float, ends_in_logits: bool, union: GraphBatch
    ) -> None:
        super().__init__(net)
        self.gamma, self.ends_in_logits, self.union = gamma, ends_in_logits, union
        self.ones: dict[int, Tensor] = {}
        self.ends = 0

    def _share(self, constant: Operand, shape: torch.Size | tuple[int, ...]) -> Tensor:
        """Multiply each row of a constant summand by its factor in ``ones``."""
        rows = shape[0] if shape else 1
        if rows not in self.ones:
            self.ones[rows] = self.union.x.new_ones(rows).requires_grad_(True)
        if not shape:
            return constant * self.ones[1][0]
        return constant * self.ones[rows].view(-1, *[1] * (len(shape) - 1))

    def add_hooks(self) -> None:
        """Let only features and edge factors have gradients, and keep attention constant."""
        self.hooks.enter_context(freeze_parameters(self.net))
        for layer in self.net.modules():
            if isinstance(layer, (GATConv, GATv2Conv)):
                handle = layer.register_edge_update_forward_hook(lambda *args: args[-1].detach())
                self.hooks.callback(handle.remove)

    def apply(
        self, func: Operation, name: str, args: tuple[Operand, ...], kwargs: dict[str, Operand]
    ) -> Tensor:
        """Apply the rule of an operation, if it has one and depends on features or edge factors."""
        rule = self._rule_of(name)
        if rule is None or not any(_needs_gradient(item) for item in (*args, *kwargs.values())):
            return func(*args, **kwargs)
        return rule(func, *args, **kwargs)

    def _rule_of(self, name: str) -> Callable[..., Tensor] | None:
        """Return the rule for operations of this name, or None."""
        plain = name.removesuffix("_") if not name.endswith("__") else name
        if plain in (*_ACTIVATIONS, "normalize"):
            return self._activation
        if plain in _SUMS:
            return self._plus_constant
        if plain in _PRODUCTS and not self.passing:
            return self._product
        if plain in _TO_PROBABILITIES and not self.passing and not self.ends_in_logits:
            return self._end
        if plain in _QUOTIENTS:
            return self._quotient
        others: dict[str, Callable[..., Tensor]] = {
            "linear": self._linear,
            "batch_norm": self._batch_norm,
            "addmm": self._addmm,
        }
        return others.get(plain)

    def _linear(
        self, func: Operation, input: Tensor, weight: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        """The γ-rule: y = z' [z / z']."""
        shape = (*input.shape[:-1], weight.size(0))
        return _gamma_linear(
            input, weight, None if bias is None else self._share(bias, shape), self.gamma
        )

    def _addmm(
        self, func: Operation, input: Tensor, mat1: Tensor, mat2: Tensor, **kwargs: Operand
    ) -> Tensor:
        """The γ-rule for a matrix product plus a bias."""
        if kwargs or _needs_gradient(input) or _needs_gradient(mat2):
            return func(input, mat1, mat2, **kwargs)
        return _gamma_linear(
            mat1, mat2.t(), self._share(input, (mat1.size(0), mat2.size(1))), self.gamma
        )

    def _activation(self, func: Operation, *args: Operand, **kwargs: Operand) -> Tensor:
        """The rule y = x [act(x) / x]."""
        return self.apply_activation_rule(
            lambda act, x: x * _safe_ratio(act(x.detach().clone()), x.detach()), func, args, kwargs
        )

    def _plus_constant(self, func: Operation, *args: Operand, **kwargs: Operand) -> Tensor:
        """A constant summand receives its share of the relevance."""
        (first, second), rest = _split_operands(args, kwargs)
        if not (_needs_gradient(first) and _needs_gradient(second)):
            shape = torch.broadcast_shapes(
                *(item.shape for item in (first, second) if isinstance(item, Tensor))
            )
            first, second = (
                item if _needs_gradient(item) else self._share(item, shape)
                for item in (first, second)
            )
        return func(first, second, **rest)

    def _product(self, func: Operation, *args: Operand, **kwargs: Operand) -> Tensor:
        """The rule y = (u [v] + [u] v) / 2 if both factors depend on features.

        A product x W has the γ-rule.
        """
        (first, second), rest = _split_operands(args, kwargs)
        if _needs_gradient(first) and _needs_gradient(second):
            return (func(first, second.detach(), **rest) + func(first.detach(), second, **rest)) / 2
        is_matmul = getattr(func, "__name__", "") in ("matmul", "mm", "__matmul__")
        if not (is_matmul and _needs_gradient(first) and isinstance(second, Tensor)):
            return func(first, second, **rest)
        if second.dim() == 2:
            return _gamma_linear(first, second.t(), None, self.gamma)
        return func(first, second, **rest)

    def _quotient(self, func: Operation, *args: Operand, **kwargs: Operand) -> Tensor:
        """The rule y = u / [v]."""
        (first, second), rest = _split_operands(args, kwargs)
        return func(first, second.detach() if isinstance(second, Tensor) else second, **rest)

    def _batch_norm(
        self,
        func: Operation,
        input: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:
        """The rule y = x [scale] + shift."""
        if training or running_mean is None or running_var is None:
            raise BadModel(
                "LRP has no rule for batch norm without running statistics, which mixes targets. "
                "Use another explainer."
            )
        scale = (running_var + eps).rsqrt() * (1 if weight is None else weight)
        shift = (0 if bias is None else bias) - running_mean * scale
        shape = (1, -1, *[1] * (input.dim() - 2))
        return input * scale.view(shape) + self._share(shift.view(shape), input.shape)

    def _end(self, func: Operation, input: Tensor, *args: Operand, **kwargs: Operand) -> Tensor:
        """Return the logits where the network would turn them into probabilities."""
        self.ends += 1
        if self.ends > 1:
            raise BadModel(
                "LRP explains the logit in front of a last softmax or sigmoid, but this network "
                "calls more than one. Use IntegratedGradients, or return logits from the network."
            )
        return input.clone()


def _gamma_linear(x: Tensor, weight: Tensor, bias: Tensor | None, gamma: float) -> Tensor:
    """Compute W x + b with the derivatives of the γ-rule.

    x (..., in), weight W (out, in), bias b that broadcasts to the result -> (..., out)
    """
    none = x.new_zeros(())
    z = F.linear(x, weight) + (none if bias is None else bias)
    if gamma == 0:
        return z
    positive = F.linear(x.clamp(min=0), weight.clamp(min=0)) + (
        none if bias is None else bias.clamp(min=0)
    )
    if bool((x < 0).any()):
        positive = positive + F.linear(x.clamp(max=0), weight.clamp(max=0))
    more = z + gamma * torch.where(z > 0, positive, z - positive)
    return more * _safe_ratio(z.detach(), more.detach())


def _safe_ratio(y: Tensor, x: Tensor) -> Tensor:
    """The quotient y / x, and 0 where x is 0."""
    return torch.where(x == 0, 0, y / torch.where(x == 0, 1, x))


def _needs_gradient(item: object) -> TypeGuard[Tensor]:
    """Whether a value depends on features or edge factors."""
    return isinstance(item, Tensor) and item.requires_grad


def check_supported_layers(net: nn.Module) -> None:
    """Raise BadModel, with its name, for a layer that has no rule."""
    for module in net.modules():
        kind = type(module)
        is_foreign = not kind.__module__.startswith(("torch.nn.", "torch_geometric.nn."))
        is_known = (
            isinstance(module, (*_SUPPORTED_LAYERS, *_SUPPORTED_AGGREGATIONS, *_SUPPORTED_MODULES))
            or kind.__name__ == "Linear"
        )
        has_parts = next(module.children(), None) is not None
        if isinstance(module, MessagePassing) and not isinstance(module, _SUPPORTED_LAYERS):
            _raise_unsupported_layer(kind.__name__)
        if not (is_foreign or is_known or has_parts):
            _raise_unsupported_layer(kind.__name__)


def _raise_unsupported_layer(layer: str) -> None:
    """Raise BadModel for a layer without a rule, and list the layers that have one."""
    known = ", ".join(layer.__name__ for layer in _SUPPORTED_LAYERS)
    raise BadModel(
        f"LRP has no rule for {layer}. It knows Linear, {known}, batch norm, dropout and the usual "
        "activations. Use IntegratedGradients, which works with every layer."
    )


def _split_operands(
    args: tuple[Operand, ...], kwargs: dict[str, Operand]
) -> tuple[tuple[Operand, Operand], dict[str, Operand]]:
    """The two operands of an operation, given by position or keyword, and its other arguments."""
    rest = dict(kwargs)
    named = [
        rest.pop(name) for name in ("input", "other", "mat2", "tensor", "vec2") if name in rest
    ]
    first, second, *more = (*args, *named) if "input" not in kwargs else (*named, *args)
    if more:
        raise BadModel(
            "LRP has no rule for an operation with the operands "
            f"{[type(item).__name__ for item in more]}."
        )
    return (first, second), rest
