"""Layer-wise relevance propagation (LRP; Bach et al., 2015): the output, propagated back to
features.

Relevance is input times gradient of a network with the same values and other derivatives. Every
operation y(x) is replaced by one that is homogeneous of degree 1. By Euler's theorem Σ x dy/dx = y,
so no relevance is lost or created:

    operation      replacement                          remark
    linear map     y = z' [z / z'],  z = W x + b        γ-rule, see below
    activation     y = x [act(x) / x]                   also scaling a row to length 1
    batch norm     y = x [scale] + shift                in evaluation mode
    product        y = (u [v] + [u] v) / 2              inner product of two embeddings
    quotient       y = u / [v]
    attention      [α]                                  coefficients are constants

[·] is held constant. Sums, means, messages, maxima, concatenation and dropout stay as they are. The
γ-rule uses

    z' = z + γ (sum of the positive summands of z if z > 0, else of the negative summands)

With γ = 0 and ReLU nothing changes: LRP is input times gradient. With γ > 0 each linear map favours
the summands with the sign of their sum, so that large terms that cancel do not dominate.

Biases, shifts and the edge attributes that GINEConv adds to its messages receive their share of the
relevance: the relevance of the features and the share of the biases sum to the explained output.
Each pass checks this. The score of an edge is the relevance that its messages carry in all layers
together: the gradient for a factor on them.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

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

from graphgauge.core import BadModel, BadSetting
from graphgauge.execution import GraphBatch
from graphgauge.explainers.base import Scores, check_finite_parameters, check_visible_operations
from graphgauge.explainers.gradient_rules import GradientRules, freeze_parameters
from graphgauge.explainers.gradients import PlainGradient
from graphgauge.explainers.lrp_captum import captum_rules
from graphgauge.models import BaseModel, class_probabilities
from graphgauge.subgraphs import ComputationGraphs

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


@dataclass(frozen=True, kw_only=True)
class LRP(PlainGradient):
    """Relevance of features and edges for the logit of the explained class, or for a regression's
    value.

    Args:
        explain_output: "logit"; with ``variant="captum"`` also "prob", its default.
        edge_factor: "message" or "weight"; see `GradientExplainer`.
        variant: "gamma", or "captum": the ε-rule as Captum applies it to PyG's networks, which
            loses relevance and explains the probability.
        gamma: How much the γ-rule favours summands with the sign of their sum; 0 is no preference.

    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> explanation = gg.LRP(gamma=0.1).explain(model, [2])[0]
    >>> explanation.feature_score.shape, explanation.edge_score.shape  # (n, F), (E_rel,)
    (torch.Size([3, 4]), torch.Size([2]))
    """

    name = "lrp"
    signed = True
    deterministic = True
    explain_output: Literal["", "prob", "logit"] = ""  # type: ignore[assignment]
    variant: Literal["gamma", "captum"] = "gamma"
    gamma: float = 0.25

    def __post_init__(self) -> None:
        if self.variant not in ("gamma", "captum"):
            raise BadSetting(
                f"variant must be 'gamma' or 'captum', but {self.variant!r} was given."
            )
        check_finite_parameters(self, "gamma")
        if not self.explain_output:
            object.__setattr__(
                self, "explain_output", "logit" if self.variant == "gamma" else "prob"
            )
        if self.variant == "gamma" and self.explain_output != "logit":
            raise BadSetting(
                "LRP explains explain_output='logit', which it can hand back whole, not "
                f"{self.explain_output!r}."
            )
        super().__post_init__()

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Run one forward and one backward pass."""
        if self.variant == "gamma":
            check_visible_operations("LRP", model)
            _check_supported_layers(model.net)
        return super().scores(model, graphs, seeds)

    @property
    def has_rules(self) -> bool:
        """True: attention and the aggregation of messages have rules."""
        return True

    def rules(self, model: BaseModel, union: GraphBatch) -> AbstractContextManager[Any]:
        """Homogeneous operations, or Captum's hooks."""
        if self.variant == "captum":
            return captum_rules(model.net)
        return _ConservingRules(model.net, self.gamma, _returns_logits(model), union)

    def differentiate(
        self, output: Tensor, leaves: list[Tensor], rules: Any
    ) -> tuple[Tensor | None, ...]:
        """Gradients of the explained outputs (K,), after checking that relevance is conserved."""
        if self.variant == "captum":
            return torch.autograd.grad((output.detach() * output).sum(), leaves, allow_unused=True)
        ones = list(rules.ones.values())
        grads = torch.autograd.grad(output.sum(), [*leaves, *ones], allow_unused=True)
        shares = {
            len(one): grad
            for one, grad in zip(ones, grads[len(leaves) :], strict=True)
            if grad is not None
        }
        _check_conservation(rules, output.detach(), leaves[0].detach(), grads[0], shares)
        return grads[: len(leaves)]

    def check_pass(self, model: BaseModel, union: GraphBatch, raw: Tensor) -> None:
        """Raise BadModel unless the logits that were found give the network's probabilities."""
        if self.variant == "captum" or _returns_logits(model):
            return
        expected = model.pred_continuous(union.graphs.targets[union.graph_index])
        if not bool(((class_probabilities(raw, "logits") - expected).abs() <= 1e-3).all()):
            raise BadModel(
                "LRP explains the logits in front of a last softmax or sigmoid, but "
                f"{type(model.net).__name__} goes on from there. Use IntegratedGradients, or "
                "return logits from the network."
            )

    def feature_score(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Input times gradient; with Captum's rules the gradient, in which the input is a factor
        already.
        """
        return x * gradient if self.variant == "gamma" else gradient

    def edge_score(self, gradient: Tensor) -> Tensor:
        """The relevance that messages carry."""
        return gradient


class _ConservingRules(GradientRules):
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

    def share(self, constant: Any, shape: torch.Size | tuple[int, ...]) -> Any:
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

    def apply(self, func: Callable[..., Any], name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """Apply the rule of an operation, if it has one and depends on features or edge factors."""
        rule = self.rule_of(name)
        if rule is None or not any(_needs_gradient(item) for item in (*args, *kwargs.values())):
            return func(*args, **kwargs)
        return rule(func, *args, **kwargs)

    def rule_of(self, name: str) -> Callable[..., Any] | None:
        """Return the rule for operations of this name, or None."""
        plain = name.removesuffix("_") if not name.endswith("__") else name
        if plain in (*_ACTIVATIONS, "normalize"):
            return self.activation
        if plain in _SUMS:
            return self.plus_constant
        if plain in _PRODUCTS and not self.passing:
            return self.product
        if plain in _TO_PROBABILITIES and not self.passing and not self.ends_in_logits:
            return self.end
        if plain in _QUOTIENTS:
            return self.quotient
        others: dict[str, Callable[..., Any]] = {
            "linear": self.linear,
            "batch_norm": self.batch_norm,
            "addmm": self.addmm,
        }
        return others.get(plain)

    def linear(
        self, func: Callable[..., Any], input: Tensor, weight: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        """The γ-rule: y = z' [z / z']."""
        shape = (*input.shape[:-1], weight.size(0))
        return _gamma_linear(
            input, weight, None if bias is None else self.share(bias, shape), self.gamma
        )

    def addmm(
        self, func: Callable[..., Any], input: Tensor, mat1: Tensor, mat2: Tensor, **kwargs: Any
    ) -> Tensor:
        """The γ-rule for a matrix product plus a bias."""
        if kwargs or _needs_gradient(input) or _needs_gradient(mat2):
            return func(input, mat1, mat2, **kwargs)
        return _gamma_linear(
            mat1, mat2.t(), self.share(input, (mat1.size(0), mat2.size(1))), self.gamma
        )

    def activation(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Tensor:
        """The rule y = x [act(x) / x]."""
        return self.replaced(
            lambda act, x: x * _safe_ratio(act(x.detach().clone()), x.detach()), func, args, kwargs
        )

    def plus_constant(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A constant summand receives its share of the relevance."""
        (first, second), rest = _split_operands(args, kwargs)
        if not _both_need_gradients(first, second):
            shape = torch.broadcast_shapes(
                *(item.shape for item in (first, second) if isinstance(item, Tensor))
            )
            first, second = (
                item if _needs_gradient(item) else self.share(item, shape)
                for item in (first, second)
            )
        return func(first, second, **rest)

    def product(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The rule y = (u [v] + [u] v) / 2 if both factors depend on features; the γ-rule for x
        W.
        """
        (first, second), rest = _split_operands(args, kwargs)
        if _both_need_gradients(first, second):
            return (func(first, second.detach(), **rest) + func(first.detach(), second, **rest)) / 2
        is_matmul = getattr(func, "__name__", "") in ("matmul", "mm", "__matmul__")
        if is_matmul and _needs_gradient(first) and second.dim() == 2:
            return _gamma_linear(first, second.t(), None, self.gamma)
        return func(first, second, **rest)

    def quotient(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The rule y = u / [v]."""
        (first, second), rest = _split_operands(args, kwargs)
        return func(first, second.detach() if isinstance(second, Tensor) else second, **rest)

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
        """The rule y = x [scale] + shift."""
        if training or running_mean is None or running_var is None:
            raise BadModel(
                "LRP has no rule for batch norm without running statistics, which mixes targets. "
                "Use another explainer."
            )
        scale = (running_var + eps).rsqrt() * (1 if weight is None else weight)
        shift = (0 if bias is None else bias) - running_mean * scale
        shape = (1, -1, *[1] * (input.dim() - 2))
        return input * scale.view(shape) + self.share(shift.view(shape), input.shape)

    def end(self, func: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Return the logits where the network would turn them into probabilities."""
        self.ends += 1
        if self.ends > 1:
            raise BadModel(
                "LRP explains the logit in front of a last softmax or sigmoid, but this network "
                "calls more than one. Use IntegratedGradients, or return logits from the network."
            )
        return input.clone()


def _gamma_linear(x: Tensor, weight: Tensor, bias: Tensor | None, gamma: float) -> Tensor:
    """Compute W x + b with the derivatives of the γ-rule. x (..., in), W (out, in) -> (..., out)"""
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


def _needs_gradient(item: Any) -> bool:
    """Whether a value depends on features or edge factors."""
    return isinstance(item, Tensor) and item.requires_grad


def _both_need_gradients(first: Any, second: Any) -> bool:
    """Whether both values depend on features or edge factors."""
    return _needs_gradient(first) and _needs_gradient(second)


def _check_supported_layers(net: nn.Module) -> None:
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


def _returns_logits(model: BaseModel) -> bool:
    """Whether the network returns what LRP explains: logits or values."""
    return model.task == "regression" or model.kind == "logits"  # type: ignore[attr-defined]


def _split_operands(args: Any, kwargs: dict[str, Any]) -> tuple[tuple[Any, Any], dict[str, Any]]:
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


def _check_conservation(
    rules: _ConservingRules,
    output: Tensor,
    x: Tensor,
    gradient: Tensor | None,
    shares: dict[int, Tensor],
) -> None:
    """Raise BadModel if an operation loses or creates relevance.

    Features and biases must sum to the output (K,) of each copy, up to rounding.
    """
    union = rules.union
    by_node = (torch.zeros_like(x) if gradient is None else x * gradient)[union.node_at]
    relevance, size = (
        _sum_per_copy(union, values.sum(1), union.node_copy) for values in (by_node, by_node.abs())
    )
    bias_share = _bias_share_per_copy(union, shares)
    if bias_share is None:  # the shares cannot be assigned to copies: check the sum over all copies
        relevance, size, output = (values.sum()[None] for values in (relevance, size, output))
        bias_share = torch.stack([share.sum() for share in shares.values()]).sum()[None]
    total = relevance + bias_share
    gap = (total - output).abs()
    if not bool((gap <= 1e-3 * output.abs() + 1e-4 * size + 1e-6).all()):
        worst = int(gap.nan_to_num(torch.inf).argmax())
        raise BadModel(
            f"LRP hands back {float(total[worst]):.4g}, the share of biases included, of an "
            f"output of {float(output[worst]):.4g}: {type(rules.net).__name__} calls an operation "
            "without a rule. Use IntegratedGradients."
        )


def _bias_share_per_copy(union: GraphBatch, shares: dict[int, Tensor]) -> Tensor | None:
    """The share of biases in each copy's output, from shares by their number of rows. (K,)

    Returns None if it is not clear to which copies the rows belong.
    """
    total = union.x.new_zeros(len(union))
    for rows, share in shares.items():
        owner = _find_row_owners(union, rows)
        if owner is None:
            return None
        total = total + _sum_per_copy(union, share[owner[0]], owner[1])
    return total


def _sum_per_copy(union: GraphBatch, values: Tensor, copy: Tensor) -> Tensor:
    """Sum values over the copies to which they belong. (n,), (n,) -> (K,)"""
    return values.new_zeros(len(union)).index_add(0, copy, values)


def _find_row_owners(union: GraphBatch, rows: int) -> tuple[Tensor, Tensor] | None:
    """Which rows belong to copies, and to which ones. (n,), (n,)

    The number of rows tells whether rows are nodes, edges, or links and graphs. Returns None if
    that is ambiguous.
    """
    kinds = [
        (union.x.size(0), (union.node_at, union.node_copy)),
        (union.edge_index.size(1), (union.edge_at, union.edge_copy)),
    ]
    if union.target_rows.size(1) != 1:
        kinds.append(
            (
                union.num_outputs,
                (union.output_row, torch.arange(len(union), device=union.graph_index.device)),
            )
        )
    fitting = [owner for size, owner in kinds if size == rows]
    return fitting[0] if len(fitting) == 1 else None
