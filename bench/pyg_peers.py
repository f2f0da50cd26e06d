"""The paper's eight explainers as PyG's users call them: one `torch_geometric.explain.Explainer`
call per target.

LRP is Captum's through the same bridge: Captum has no rule for PyG's layers, so the ε-rule is named
for each of them before each call (Captum forgets it afterwards). GNNExplainer and GraphMask leave
masks and changed methods behind, so each call gets a copy of the network; the others take the
network as it is.
"""

import copy
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch_geometric.explain import (
    CaptumExplainer,
    Explainer,
    Explanation,
    GNNExplainer,
    GraphMaskExplainer,
)

from graphgauge.explainers import PASS_THROUGH_MODULES


class CaptumLRP(CaptumExplainer):
    """PyG's bridge with Captum's LRP, which PyG does not list."""

    SUPPORTED_METHODS = ("LRP",)

    def __init__(self) -> None:
        super().__init__("LRP")

    def forward(self, model: nn.Module, *args: Any, **kwargs: Any) -> Explanation:
        """Name the rules, then as the bridge does."""
        from captum.attr._utils.lrp_rules import EpsilonRule

        for module in model.modules():
            if next(module.children(), None) is None and type(module) not in (
                *PASS_THROUGH_MODULES,
                nn.Linear,
            ):
                module.rule = EpsilonRule()
        return super().forward(model, *args, **kwargs)


#: how each is made, under the names that graphgauge gives them
ALGORITHMS: dict[str, Callable[[], Any]] = {
    "saliency": lambda: CaptumExplainer("Saliency"),
    "input_x_gradient": lambda: CaptumExplainer("InputXGradient"),
    "integrated_gradients": lambda: CaptumExplainer("IntegratedGradients"),
    "guided_backprop": lambda: CaptumExplainer("GuidedBackprop"),
    "deconvolution": lambda: CaptumExplainer("Deconvolution"),
    "lrp": CaptumLRP,
    "gnn_explainer": lambda: GNNExplainer(epochs=100),
    "graphmask": lambda: GraphMaskExplainer(num_layers=2, epochs=100, log=False),
}
LEARNED = ("gnn_explainer", "graphmask")


def pyg_explainer(net: nn.Module, algorithm: Any) -> Explainer:
    """An `Explainer` of a node's predicted class, for a network that returns probabilities."""
    return Explainer(
        net,
        algorithm=algorithm,
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "node",
            "return_type": "probs",
        },
    )


def explained(
    net: nn.Module, name: str, x: Tensor, edge_index: Tensor, row: int
) -> tuple[Tensor, Tensor]:
    """One call for the node in one row of x (n, F), on edge_index (2, E).  (n, F), (E,)"""
    own = copy.deepcopy(net) if name in LEARNED else net
    found = pyg_explainer(own, ALGORITHMS[name]())(x, edge_index, index=row)
    return found.node_mask.detach(), found.edge_mask.detach()
