"""An adapter for the algorithms of `torch_geometric.explain`.

PyG explains one target at a time on the whole graph and changes the network, so every target gets a
copy of the network, a new algorithm object and a seed of its own.

Stored self-loops are moved behind all other edges: if every node stores one, PyG confuses the
messages of self-loops that a layer adds with those of the first edges.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Module

from graphgauge.core import BadSetting, GraphgaugeError, lookup, temporary_global_seed
from graphgauge.explainers.base import BaseExplainer
from graphgauge.explainers.explanations import Scores
from graphgauge.explainers.pyg_algorithms import (
    ALGORITHM_TRAITS,
    AlgorithmTraits,
    build_isolated_algorithm,
    check_pyg_algorithm,
    is_untrained,
    pyg_algorithms,
    suppress_captum_warnings,
)
from graphgauge.explainers.pyg_network import (
    PyGNetwork,
    copy_network_adapter,
    move_loops_last,
    source_graph,
)
from graphgauge.explainers.sequential import OBJECT_PREFIX, explain_sequentially
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraph, ComputationGraphs, message_layers

if TYPE_CHECKING:
    from torch_geometric.explain import ExplainerAlgorithm


#: Captum's methods that differ from the others
_UNSIGNED_METHODS, _RANDOM_METHODS = ("Saliency",), ("ShapleyValueSampling",)


@dataclass(frozen=True)
class PyGExplainer(BaseExplainer):
    """An algorithm of `torch_geometric.explain` as an explainer.

    Args:
        algorithm: The name of a PyG algorithm, its class, or a function that builds it; or an
            algorithm object, which is copied for each target. Pass an object if the algorithm must
            be trained first, such as PGExplainer.
        options: Arguments with which the algorithm is built.
        node_mask: PyG's ``node_mask_type``: "attributes", "object", "common_attributes" or None.
        edge_mask: PyG's ``edge_mask_type``: "object" or None.
        is_signed: Whether scores have a direction; for algorithms that are not PyG's own.
        is_deterministic: Whether the seed has no effect; for algorithms that are not PyG's own.

    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> explanation = gg.PyGExplainer("GNNExplainer", {"epochs": 10}).explain(model, [2])[0]
    >>> explanation.feature_score.shape, explanation.edge_score.shape  # (n, F), (E_rel,)
    (torch.Size([3, 4]), torch.Size([2]))
    """

    algorithm: Any
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    node_mask: str | None = "attributes"
    edge_mask: str | None = "object"
    is_signed: bool | None = None
    is_deterministic: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.algorithm, type) and self.algorithm in pyg_algorithms().values():
            object.__setattr__(self, "algorithm", self.algorithm.__name__)
        if not isinstance(self.options, Mapping):
            raise BadSetting(
                f"options must be a dictionary such as {{'epochs': 50}}, but is {self.options!r}."
            )
        object.__setattr__(self, "options", dict(self.options))
        check_pyg_algorithm(self.algorithm, self.options)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name in the registry, such as "pyg:GNNExplainer"."""
        return f"pyg:{self.algorithm_name}"

    @property
    def algorithm_name(self) -> str:
        """The name of the algorithm's class, or of the function that builds it."""
        if isinstance(self.algorithm, str):
            return self.algorithm
        return str(getattr(self.algorithm, "__name__", type(self.algorithm).__name__))

    @property
    def signed(self) -> bool:  # type: ignore[override]
        """As given by ``is_signed``, or as known for PyG's algorithms."""
        known = self.traits.signed and self.method not in _UNSIGNED_METHODS
        return known if self.is_signed is None else self.is_signed

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        """As given by ``is_deterministic``, or as known for PyG's algorithms."""
        known = self.traits.deterministic and self.method not in _RANDOM_METHODS
        return known if self.is_deterministic is None else self.is_deterministic

    @property
    def traits(self) -> AlgorithmTraits:
        """The known properties of the algorithm."""
        return ALGORITHM_TRAITS.get(self.algorithm_name, AlgorithmTraits())

    @property
    def method(self) -> str:
        """The name of Captum's method; empty for other algorithms."""
        method = self.options.get(
            "attribution_method", getattr(self.algorithm, "attribution_method_class", "")
        )
        return method if isinstance(method, str) else str(getattr(method, "__name__", ""))

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that rebuild this explainer.

        An algorithm that has no name in PyG is only described, and cannot be rebuilt.
        """
        is_name = isinstance(self.algorithm, str)
        return {
            "algorithm": self.algorithm if is_name else f"{OBJECT_PREFIX}{self.algorithm_name}",
            "options": deepcopy(self.options),
            "node_mask": self.node_mask,
            "edge_mask": self.edge_mask,
            "is_signed": self.is_signed,
            "is_deterministic": self.is_deterministic,
        }

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Explain one target after another."""
        labels = _unpredicted_classes(model, graphs)

        def explain(graph: ComputationGraph, seed: int) -> tuple[Tensor | None, Tensor | None]:
            with temporary_global_seed(seed), suppress_captum_warnings():
                return self.sides(model, graph, labels[graph.number])

        return explain_sequentially(model, graphs, seeds, explain)

    @property
    def explains_labels(self) -> bool:
        """True for all algorithms but attention, which looks at no class."""
        return self.algorithm_name != "AttentionExplainer"

    def sides(
        self, model: BaseModel, graph: ComputationGraph, label: int | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """PyG's masks of one target, cut to its computation graph.

        Args:
            model: The wrapped network.
            graph: The computation graph of the target. PyG gets the graph that it was cut from.
            label: The class to explain if it is not the predicted one; None for the predicted
                class, and for regression.

        Returns:
            Feature scores (n, F) of the nodes of the computation graph, and edge scores (E_rel,) of
            its relevant edges. None for a mask that the algorithm does not give.

        Raises:
            BadSetting: PyG cannot build the algorithm, or it fails on this target.
        """
        g, order = move_loops_last(source_graph(model, graph))
        call = copy_network_adapter(model.call)
        if graph.batch.label is not None:
            call = replace(call, column=int(graph.batch.label[graph.number]))
        # PyG's bridge to Captum rejects the logits of two classes in one column.
        net = PyGNetwork(call, g, model, as_probs=self.algorithm_name == "CaptumExplainer")
        kind = self.traits.explanation_type if label is None else "phenomenon"
        explainer = self.connected(net, model, kind)
        index = int(graph.batch.target[graph.number, 0]) if model.level == "node" else None
        target = None
        if kind == "phenomenon":
            target = explainer.get_target(explainer.get_prediction(g.x, g.edge_index))
            if label is not None:
                at = torch.tensor([index or 0], device=target.device)
                target = target.index_fill(0, at, label)
        try:
            explanation = explainer(g.x, g.edge_index, target=target, index=index)
        except GraphgaugeError:
            raise
        except Exception as error:
            reason = str(error) or "no reason given"
            raise BadSetting(
                f"PyG's {self.algorithm_name} cannot explain target {graph.target} of {model!r}: "
                f"{type(error).__name__}: {reason}"
            ) from error
        feature, edge = explanation.get("node_mask"), explanation.get("edge_mask")
        if feature is not None:
            feature = feature.detach().expand_as(g.x)[graph.nodes]
        if edge is not None:
            edge = torch.zeros_like(edge).index_copy(0, order, edge.detach())[graph.edges]
        return feature, edge

    def connected(self, net: "PyGNetwork", model: BaseModel, kind: str) -> Any:
        """Build PyG's ``Explainer`` for a network.

        Args:
            net: A copy of the network with the signature that PyG expects.
            model: The wrapped network, which says whether targets are nodes, links or graphs.
            kind: PyG's ``explanation_type``: "model" explains the prediction, "phenomenon" the
                class that the ``Explainer`` receives with each call.

        Raises:
            BadSetting: The algorithm is untrained, or PyG rejects it for this kind of network.
        """
        from torch_geometric.explain import Explainer

        algorithm = self.built(net)
        if is_untrained(algorithm):
            raise BadSetting(
                f"{self.algorithm_name} has to be trained before it explains, but has not been. "
                "Train it as PyG's documentation says, and pass the trained object: "
                "PyGExplainer(algorithm)."
            )
        config = {
            "mode": net.mode,
            "task_level": "edge" if model.level == "link" else model.level,
            "return_type": net.kind,
        }
        try:
            return Explainer(
                net,
                algorithm=algorithm,
                explanation_type=kind,
                node_mask_type=self.node_mask if self.traits.scores_features else None,
                edge_mask_type=self.edge_mask,
                model_config=config,
            )
        except ValueError as error:
            raise BadSetting(
                f"PyG's {self.algorithm_name} cannot explain this {model.level} {model.task} model "
                f"with node_mask={self.node_mask!r} and edge_mask={self.edge_mask!r}: {error}"
            ) from error

    def built(self, net: Module) -> "ExplainerAlgorithm":
        """Build the algorithm by name, class or function, or copy the algorithm object."""
        if isinstance(self.algorithm, Module):
            return deepcopy(self.algorithm)
        make = self.algorithm
        if isinstance(make, str):
            make = lookup(pyg_algorithms(), make, "PyG algorithm")
        options = dict(self.options)
        if self.algorithm_name == "GraphMaskExplainer":
            # It does not count the layers itself, and shows progress bars unless told not to.
            options = {"num_layers": len(message_layers(net)), "log": False, **options}
        try:
            return build_isolated_algorithm(make, deepcopy(options))
        except (TypeError, ValueError, AttributeError) as error:
            raise BadSetting(
                f"{self.algorithm_name} cannot be built with {options!r}: {error}."
            ) from error


def _unpredicted_classes(model: BaseModel, graphs: ComputationGraphs) -> list[int | None]:
    """The class to explain for each graph's target, or None if it is the predicted class."""
    if graphs.chosen_class is None:
        return [None] * len(graphs)
    predicted = model.pred_discrete(graphs.targets).tolist()
    return [
        None if label == predicted_label else label
        for predicted_label, label in zip(predicted, graphs.chosen_class.tolist(), strict=True)
    ]
