"""Layer-wise relevance propagation (LRP): the output, handed back layer by layer until features
hold all of it.

Relevance is computed as input times gradient of a network with the same values and other
derivatives: every operation y(x) is
replaced by one that is homogeneous of degree 1, so that  Σ x dy/dx = y  (Euler) and nothing is lost or made on the way:

    linear map      y = z' [z / z'],  z = W x + b,  z' = z + γ (sum of the positive summands of z if z > 0, else of the negative)
    activation      y = x [act(x) / x]                                      the same for normalising a row to length 1
    batch norm      y = x [scale] + shift                                   in evaluation mode
    product         y = (u [v] + [u] v) / 2                                 inner products of two embeddings
    quotient        y = u / [v]
    attention       [α]                                                     coefficients are constants
    sums, means, messages, maxima, concatenation, dropout: as they are

[·] is held constant. With γ = 0 and ReLU, nothing changes: LRP is input times gradient. Each linear
map, with γ > 0, favours the summands of the sign of its sum, so that large cancelling terms do not
blow up. Biases, shifts and the edge attributes that GINEConv adds to its messages take their share
of the relevance: features add up to the explained output less that share, and each pass checks that
the books balance.

An edge's score is the relevance that its messages carry, in all layers together: the gradient for a
factor on them.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

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

from graphgauge.core.errors import BadModel, BadSetting
from graphgauge.explainers.base import Scores, check_numbers, check_visible_operations
from graphgauge.explainers.gradients import PlainGradient
from graphgauge.explainers.lrp_captum import captum_rules
from graphgauge.explainers.rules import Rules, frozen
from graphgauge.models import BaseModel, ComputationGraphs, Union
from graphgauge.models.outputs import probabilities

LAYERS = (GCNConv, GATConv, GATv2Conv, SAGEConv, GINConv, GINEConv, GraphConv)
AGGREGATIONS = (aggr.SumAggregation, aggr.MeanAggregation, aggr.MaxAggregation, aggr.MinAggregation)
ACTIVATIONS = "relu leaky_relu prelu rrelu relu6 hardtanh elu selu celu gelu silu mish tanh softsign hardswish".split()
MODULES = (
    *(nn.Linear, nn.BatchNorm1d, nn.Dropout, nn.Identity, nn.Softmax, nn.LogSoftmax, nn.Sigmoid),
    *(
        nn.ReLU,
        nn.LeakyReLU,
        nn.PReLU,
        nn.RReLU,
        nn.ReLU6,
        nn.ELU,
        nn.SELU,
        nn.CELU,
        nn.GELU,
        nn.SiLU,
        nn.Mish,
        nn.Tanh,
    ),
    *(nn.ModuleList, nn.ModuleDict, nn.Sequential, nn.Softsign, nn.Hardswish, nn.Hardtanh),
)
TO_PROBABILITIES = ("softmax", "log_softmax", "sigmoid", "logsigmoid")
SUMS = ("add", "sub", "subtract", "rsub", "__radd__", "__rsub__")
QUOTIENTS = ("div", "divide", "true_divide")
PRODUCTS = (
    "mul",
    "multiply",
    "matmul",
    "mm",
    "bmm",
    "dot",
    "__matmul__",
    "__rmul__",
    "__rmatmul__",
)


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
            raise BadSetting(
                f"variant must be 'gamma' or 'captum', but {self.variant!r} was given."
            )
        check_numbers(self, "gamma")
        if not self.explain_output:
            object.__setattr__(
                self, "explain_output", "logit" if self.variant == "gamma" else "prob"
            )
        if self.variant == "gamma" and self.explain_output != "logit":
            raise BadSetting(
                f"LRP explains explain_output='logit', which it can hand back whole, not {self.explain_output!r}."
            )
        super().__post_init__()

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """One pass."""
        if self.variant == "gamma":
            check_visible_operations("LRP", model)
            check_layers(model.net)
        return super().scores(model, graphs, seeds)

    @property
    def has_rules(self) -> bool:
        """Attention, and the sum of messages, have some."""
        return True

    def rules(self, model: BaseModel, union: Union) -> AbstractContextManager[Any]:
        """Homogeneous operations, or Captum's hooks."""
        if self.variant == "captum":
            return captum_rules(model.net)
        return ConservingRules(model.net, self.gamma, ends_in_logits(model), union)

    def differentiate(
        self, output: Tensor, leaves: list[Tensor], rules: Any
    ) -> tuple[Tensor | None, ...]:
        """Gradients of the explained outputs (K,); with the books checked."""
        if self.variant == "captum":
            return torch.autograd.grad((output.detach() * output).sum(), leaves, allow_unused=True)
        ones = list(rules.ones.values())
        found = torch.autograd.grad(output.sum(), [*leaves, *ones], allow_unused=True)
        shares = {
            len(one): grad
            for one, grad in zip(ones, found[len(leaves) :], strict=True)
            if grad is not None
        }
        check_books(rules, output.detach(), leaves[0].detach(), found[0], shares)
        return found[: len(leaves)]

    def check_pass(self, model: BaseModel, union: Union, raw: Tensor) -> None:
        """What stands in front of the last softmax or sigmoid must give the network's
        probabilities.
        """
        if self.variant == "captum" or ends_in_logits(model):
            return
        wanted = model.pred_continuous(model.asked(union.graphs.target[union.of]))
        if not bool(((probabilities(raw, "logits") - wanted).abs() <= 1e-3).all()):
            raise BadModel(
                f"LRP explains the logits in front of a last softmax or sigmoid, but {type(model.net).__name__} goes on from "
                "there. Use IntegratedGradients, or return logits from the network."
            )

    def feature_score(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Input times gradient; Captum's hooks have multiplied already."""
        return x * gradient if self.variant == "gamma" else gradient

    def edge_score(self, gradient: Tensor) -> Tensor:
        """The relevance that messages carry."""
        return gradient


class ConservingRules(Rules):
    """Operations of degree 1. ``ones`` are factors on the biases and shifts of rows, so that their
    gradients are the shares.

    By the number of rows that an operation has: (rows,) each, all 1.
    """

    def __init__(self, net: nn.Module, gamma: float, ends_in_logits: bool, union: Union) -> None:
        super().__init__(net)
        self.gamma, self.ends_in_logits, self.union = gamma, ends_in_logits, union
        self.ones: dict[int, Tensor] = {}
        self.ends = 0

    def share(self, constant: Any, shape: torch.Size | tuple[int, ...]) -> Any:
        """A constant summand of a result of this shape, row by row times a factor of 1."""
        rows = shape[0] if shape else 1
        if rows not in self.ones:
            self.ones[rows] = self.union.x.new_ones(rows).requires_grad_(True)
        return (
            constant * self.ones[rows].view(-1, *[1] * (len(shape) - 1))
            if shape
            else constant * self.ones[1][0]
        )

    def add_hooks(self) -> None:
        """Only features and factors have gradients, and attention is constant."""
        self.hooks.enter_context(frozen(self.net))
        for layer in self.net.modules():
            if isinstance(layer, (GATConv, GATv2Conv)):
                self.hooks.callback(
                    layer.register_edge_update_forward_hook(
                        lambda *given: given[-1].detach()
                    ).remove
                )

    def apply(self, func: Callable[..., Any], name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """The rule for one operation, where it has one and something to hand on."""
        rule = self.rule_of(name)
        if rule is None or not any(requires_grad(item) for item in (*args, *kwargs.values())):
            return func(*args, **kwargs)
        return rule(func, *args, **kwargs)

    def rule_of(self, name: str) -> Callable[..., Any] | None:
        """The rule for the operations of a name."""
        plain = name.removesuffix("_") if not name.endswith("__") else name
        if plain in (*ACTIVATIONS, "normalize"):
            return self.activation
        if plain in SUMS:
            return self.plus_constant
        if plain in PRODUCTS and not self.passing:
            return self.product
        if plain in TO_PROBABILITIES and not self.passing and not self.ends_in_logits:
            return self.end
        if plain in QUOTIENTS:
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
        """Y = z' [z / z']."""
        shape = (*input.shape[:-1], weight.size(0))
        return favoured(
            input, weight, None if bias is None else self.share(bias, shape), self.gamma
        )

    def addmm(
        self, func: Callable[..., Any], input: Tensor, mat1: Tensor, mat2: Tensor, **kwargs: Any
    ) -> Tensor:
        """A bias and a product of matrices."""
        if kwargs or requires_grad(input) or requires_grad(mat2):
            return func(input, mat1, mat2, **kwargs)
        return favoured(mat1, mat2.t(), self.share(input, (mat1.size(0), mat2.size(1))), self.gamma)

    def activation(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Tensor:
        """Y = x [act(x) / x]."""
        return self.replaced(
            lambda act, x: x * ratio(act(x.detach().clone()), x.detach()), func, args, kwargs
        )

    def plus_constant(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A constant summand takes its share."""
        (first, second), rest = operands(args, kwargs)
        if not both(first, second):
            shape = torch.broadcast_shapes(
                *(item.shape for item in (first, second) if isinstance(item, Tensor))
            )
            first, second = (
                item if requires_grad(item) else self.share(item, shape) for item in (first, second)
            )
        return func(first, second, **rest)

    def product(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Y = (u [v] + [u] v) / 2 where both depend on features; x W with the rule of linear maps."""
        (first, second), rest = operands(args, kwargs)
        if both(first, second):
            return (func(first, second.detach(), **rest) + func(first.detach(), second, **rest)) / 2
        if (
            getattr(func, "__name__", "") in ("matmul", "mm", "__matmul__")
            and requires_grad(first)
            and second.dim() == 2
        ):
            return favoured(first, second.t(), None, self.gamma)
        return func(first, second, **rest)

    def quotient(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Y = u / [v]."""
        (first, second), rest = operands(args, kwargs)
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
        """Y = x [scale] + shift."""
        if training or running_mean is None or running_var is None:
            raise BadModel(
                "LRP has no rule for batch norm without running statistics, which mixes targets. Use another explainer."
            )
        scale = (running_var + eps).rsqrt() * (1 if weight is None else weight)
        shift = (0 if bias is None else bias) - running_mean * scale
        shape = (1, -1, *[1] * (input.dim() - 2))
        return input * scale.view(shape) + self.share(shift.view(shape), input.shape)

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
    """W x + b with the derivatives of the γ-rule.  (..., in), (out, in), (..., out) -> (..., out)"""
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
        is_known = (
            isinstance(module, (*LAYERS, *AGGREGATIONS, *MODULES)) or kind.__name__ == "Linear"
        )
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


def ends_in_logits(model: BaseModel) -> bool:
    """Whether the network returns what LRP explains: logits or values."""
    return model.task == "regression" or model.kind == "logits"  # type: ignore[attr-defined]


def operands(args: Any, kwargs: dict[str, Any]) -> tuple[tuple[Any, Any], dict[str, Any]]:
    """The two operands of an operation, given by place or by name, and what else it was given."""
    rest = dict(kwargs)
    named = [
        rest.pop(name) for name in ("input", "other", "mat2", "tensor", "vec2") if name in rest
    ]
    first, second, *more = (*args, *named) if "input" not in kwargs else (*named, *args)
    if more:
        raise BadModel(
            f"LRP has no rule for an operation with the operands {[type(item).__name__ for item in more]}."
        )
    return (first, second), rest


def check_books(
    rules: ConservingRules,
    output: Tensor,
    x: Tensor,
    gradient: Tensor | None,
    shares: dict[int, Tensor],
) -> None:
    """Refuse a network with an operation that loses or makes relevance: features and biases must
    add up to each output (K,).
    """
    union = rules.union
    by_node = (torch.zeros_like(x) if gradient is None else x * gradient)[union.node_at]
    relevance, size = (
        per_copy(union, part.sum(1), union.node_copy) for part in (by_node, by_node.abs())
    )
    kept = share_per_copy(union, shares)
    if (
        kept is None
    ):  # rows of which it cannot be told whose they are: only all targets together can be checked
        relevance, size, output = (part.sum()[None] for part in (relevance, size, output))
        kept = torch.stack([share.sum() for share in shares.values()]).sum()[None]
    handed_back = relevance + kept
    gap = (handed_back - output).abs()
    if not bool((gap <= 1e-3 * output.abs() + 1e-4 * size + 1e-6).all()):
        worst = int(gap.nan_to_num(torch.inf).argmax())
        raise BadModel(
            f"LRP hands back {float(handed_back[worst]):.4g}, the share of biases included, of an output of "
            f"{float(output[worst]):.4g}: {type(rules.net).__name__} calls an operation without a rule. Use IntegratedGradients."
        )


def share_per_copy(union: Union, shares: dict[int, Tensor]) -> Tensor | None:
    """What biases keep of each copy's output, from shares by their number of rows; None where it
    cannot be told.  (K,)
    """
    kept = union.x.new_zeros(len(union))
    for rows, share in shares.items():
        owner = owner_of(union, rows)
        if owner is None:
            return None
        kept = kept + per_copy(union, share[owner[0]], owner[1])
    return kept


def per_copy(union: Union, values: Tensor, copy: Tensor) -> Tensor:
    """Sums of values over the copies that they belong to.  (n,), (n,) -> (K,)"""
    return values.new_zeros(len(union)).index_add(0, copy, values)


def owner_of(union: Union, rows: int) -> tuple[Tensor, Tensor] | None:
    """Which of so many rows belong to copies, and to which: nodes, edges, or links and graphs; None
    where that cannot be told.

    (n,), (n,)
    """
    kinds = [
        (union.x.size(0), (union.node_at, union.node_copy)),
        (union.edge_index.size(1), (union.edge_at, union.edge_copy)),
    ]
    if union.target_rows.size(1) != 1:
        kinds.append(
            (union.num_answers, (union.answer_at, torch.arange(len(union), device=union.of.device)))
        )
    fitting = [owner for size, owner in kinds if size == rows]
    return fitting[0] if len(fitting) == 1 else None
