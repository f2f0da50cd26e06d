"""Layer-wise relevance propagation (LRP; Bach et al., 2015), from the output back to the features.

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

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from graphgauge.core import BadModel, BadSetting
from graphgauge.execution import GraphBatch
from graphgauge.explainers.explanations import Scores
from graphgauge.explainers.gradient_rules import GradientRules
from graphgauge.explainers.gradients import PlainGradient
from graphgauge.explainers.lrp_captum import captum_rules
from graphgauge.explainers.lrp_conservation import check_conservation
from graphgauge.explainers.lrp_layer_rules import ConservingRules, check_supported_layers
from graphgauge.explainers.network_checks import check_visible_operations
from graphgauge.explainers.parameter_checks import check_finite_parameters
from graphgauge.models import BaseModel, class_probabilities
from graphgauge.subgraphs import ComputationGraphs


@dataclass(frozen=True, kw_only=True)
class LRP(PlainGradient):
    """Relevance of features and edges for the logit of the explained class, or for a regression's
    value.

    Args:
        explain_output: "logit"; with ``variant="captum"`` also "prob", its default.
        edge_factor: Where the factors on edges act. "message": on messages, so that normalisation
            stays as it is. "weight": on edge_weight, and so through the normalisation.
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
        """Run one forward and one backward pass.

        Args:
            model: The wrapped network.
            graphs: The computation graphs of T targets.
            seeds: Not used, because relevance is propagated without random draws.
        """
        if self.variant == "gamma":
            check_visible_operations("LRP", model)
            check_supported_layers(model.net)
        return super().scores(model, graphs, seeds)

    @property
    def has_rules(self) -> bool:
        """True: attention and the aggregation of messages have rules."""
        return True

    def _rules(
        self, model: BaseModel, union: GraphBatch
    ) -> AbstractContextManager[GradientRules | None]:
        """Homogeneous operations, or Captum's hooks."""
        if self.variant == "captum":
            return captum_rules(model.net)
        return ConservingRules(model.net, self.gamma, _returns_logits(model), union)

    def _differentiate(
        self, output: Tensor, leaves: list[Tensor], rules: GradientRules | None
    ) -> tuple[Tensor | None, ...]:
        """Gradients of the explained outputs (K,), after checking that relevance is conserved.

        Captum's rules are hooks, not `ConservingRules`, and do not conserve it.
        """
        if not isinstance(rules, ConservingRules):
            return torch.autograd.grad((output.detach() * output).sum(), leaves, allow_unused=True)
        ones = list(rules.ones.values())
        grads = torch.autograd.grad(output.sum(), [*leaves, *ones], allow_unused=True)
        shares = {
            len(one): grad
            for one, grad in zip(ones, grads[len(leaves) :], strict=True)
            if grad is not None
        }
        check_conservation(rules, output.detach(), leaves[0].detach(), grads[0], shares)
        return grads[: len(leaves)]

    def _check_pass(self, model: BaseModel, union: GraphBatch, raw: Tensor) -> None:
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

    def _feature_score(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Input times gradient; with Captum's rules the gradient, in which the input is a factor
        already.
        """
        return x * gradient if self.variant == "gamma" else gradient

    def _edge_score(self, gradient: Tensor) -> Tensor:
        """The relevance that messages carry."""
        return gradient


def _returns_logits(model: BaseModel) -> bool:
    """Whether the network returns what LRP explains: logits or values."""
    return model.task == "regression" or model.kind == "logits"  # type: ignore[attr-defined]
