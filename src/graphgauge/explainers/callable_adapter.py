"""An adapter that makes any function an explainer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphgauge.core import (
    BadExplanation,
    BadSetting,
    JsonObject,
    import_object,
    temporary_global_seed,
)
from graphgauge.explainers.base import BaseExplainer
from graphgauge.explainers.explained_class import accepts_label
from graphgauge.explainers.explanations import Scores
from graphgauge.explainers.sequential import OBJECT_PREFIX, explain_sequentially
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraph, ComputationGraphs

#: feature scores and edge scores of one target, as a function returns them
_RawScores = tuple[Tensor | NDArray[np.generic] | None, Tensor | NDArray[np.generic] | None]
_SCOPES = ("computation graph", "whole graph")


@dataclass(frozen=True)
class CallableExplainer(BaseExplainer):
    """An explainer made from a function ``(model, target) -> (feature scores, edge scores)``.

    One of the two may be None. Scores are tensors or arrays, either for the computation graph of
    the target, (n, F) and (E_rel,) in the order of its ``nodes`` and ``edges``, or for the whole
    graph, (N, F) and (E,). Random draws from the global states of Python, NumPy and torch are
    seeded for each target. A function with a parameter ``label`` receives the class to explain if
    the caller chose one.

    Args:
        function: The function, or its import string such as "package.module:name".
        name: Name of the explainer; the name of the function by default.
        signed: Whether scores have a direction.
        deterministic: Whether the function draws nothing at random.
        scope: "computation graph" or "whole graph". Needed only if the sizes of the two are equal
            but their orders differ.

    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> def last_edges(model, target):
    ...     return None, model.computation_graphs([target])[0].edge_index[0].float()
    >>> explainer = gg.CallableExplainer(last_edges, deterministic=True)
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> explainer.name, explainer.explain(model, [2])[0].edge_score.shape
    ('last_edges', torch.Size([2]))
    """

    function: Callable[..., _RawScores] | str
    name: str = field(default="", kw_only=True)  # type: ignore[misc]
    signed: bool = field(default=True, kw_only=True)  # type: ignore[misc]
    deterministic: bool = field(default=False, kw_only=True)  # type: ignore[misc]
    scope: Literal["computation graph", "whole graph"] | None = None

    def __post_init__(self) -> None:
        function = _resolve_function(self.function)
        object.__setattr__(self, "function", function)
        object.__setattr__(
            self, "name", self.name or getattr(function, "__name__", type(function).__name__)
        )
        if self.scope not in (None, *_SCOPES):
            raise BadSetting(
                f"scope must be 'computation graph', 'whole graph' or None, but {self.scope!r} was "
                "given."
            )

    @property
    def params(self) -> JsonObject:
        """The parameters that rebuild this explainer.

        If the function cannot be imported, ``function`` is a text that only names it.
        """
        return {
            "function": _format_import_string(self.function),
            "name": self.name,
            "signed": self.signed,
            "deterministic": self.deterministic,
            "scope": self.scope,
        }

    @property
    def explains_labels(self) -> bool:
        """Whether the function has a parameter ``label``."""
        return accepts_label(self.function)

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Explain one target after another.

        Args:
            model: The wrapped network, with which the function is called.
            graphs: The computation graphs of T targets.
            seeds: T seeds of the global random states, one for each call of the function.
        """
        classes = graphs.chosen_class

        def explain(graph: ComputationGraph, seed: int) -> tuple[Tensor | None, Tensor | None]:
            options = {}
            if classes is not None and self.explains_labels:
                options["label"] = int(classes[graph.number])
            with temporary_global_seed(seed):
                scores = self.function(model, graph.target, **options)  # type: ignore[operator]
            return _cut_to_computation_graph(scores, graph, self)

        return explain_sequentially(model, graphs, seeds, explain)


def _resolve_function(function: object) -> Callable[..., object]:
    """Return the function, importing it if ``function`` is an import string."""
    if isinstance(function, str):
        try:
            function = import_object(function)
        except (ImportError, AttributeError, ValueError) as error:
            raise BadSetting(
                f"function {function!r} cannot be imported: {error}. Pass the function itself, or "
                "an import string such as 'package.module:name'."
            ) from error
    if not callable(function):
        raise BadSetting(
            "function must be callable as function(model, target), but is "
            f"{type(function).__name__}."
        )
    return function


def _format_import_string(function: object) -> str:
    """Where a function can be imported from, or a text that names a function that cannot be
    imported.
    """
    address = (
        f"{function.__module__}:{getattr(function, '__qualname__', type(function).__qualname__)}"
    )
    try:
        is_importable = import_object(address) is function
    except (ImportError, AttributeError, ValueError):
        is_importable = False
    return address if is_importable else f"{OBJECT_PREFIX}{address}"


def _cut_to_computation_graph(
    scores: object, graph: ComputationGraph, explainer: CallableExplainer
) -> tuple[Tensor | None, Tensor | None]:
    """Check the scores that a function returned and cut them to the computation graph."""
    name, x = explainer.name, graph.batch.source.x
    if not isinstance(scores, (tuple, list)) or len(scores) != 2:
        raise BadExplanation(
            f"{name} must return (feature scores, edge scores), but returned "
            f"{type(scores).__name__}."
        )
    feature, edge = (_to_score_tensor(side, x, name) for side in scores)
    if feature is None and edge is None:
        raise BadExplanation(
            f"{name} gave neither feature nor edge scores for target {graph.target}: one of the "
            "two is needed."
        )
    if _infer_scope(feature, edge, graph, explainer) == "computation graph":
        return feature, edge
    return (
        None if feature is None else feature[graph.nodes],
        None if edge is None else edge[graph.edges],
    )


def _infer_scope(
    feature: Tensor | None,
    edge: Tensor | None,
    graph: ComputationGraph,
    explainer: CallableExplainer,
) -> str:
    """Tell from their shapes whether scores are for the computation graph or the whole graph.

    Raises BadExplanation, with the shapes that are accepted, if the shapes fit neither, or fit both
    in different orders.
    """
    F, name = graph.batch.source.x.size(1), explainer.name
    shapes = {
        "computation graph": ((len(graph.nodes), F), (len(graph.edges),)),
        "whole graph": ((graph.num_source_nodes, F), (graph.num_source_edges,)),
    }
    allowed = [scope for scope in shapes if explainer.scope in (None, scope)]
    fitting = [
        scope
        for scope in allowed
        if _has_shape(feature, shapes[scope][0]) and _has_shape(edge, shapes[scope][1])
    ]
    if not fitting:
        given = " and ".join(
            "None" if side is None else str(tuple(side.shape)) for side in (feature, edge)
        )
        accepted = ", or ".join(
            f"{shapes[scope][0]} and {shapes[scope][1]} for the {scope}" for scope in allowed
        )
        raise BadExplanation(
            f"{name} gave scores of shape {given} for target {graph.target}. Accepted: {accepted}."
        )
    if len(fitting) == 2 and not _is_in_source_order(graph, feature, edge):
        raise BadExplanation(
            f"scores that {name} gave for target {graph.target} fit both its computation graph and "
            "the whole graph, which have different orders. "
            "Use CallableExplainer(..., scope='whole graph') or scope='computation graph'."
        )
    return fitting[0]


def _to_score_tensor(side: object, x: Tensor, name: str) -> Tensor | None:
    """Convert scores to a tensor with the type and device of the features, without gradient."""
    if side is None:
        return None
    if not isinstance(side, (Tensor, np.ndarray)):
        raise BadExplanation(
            f"{name} must give scores as tensors or arrays, but gave {type(side).__name__}."
        )
    if isinstance(side, np.ndarray):
        side = np.array(side, order="C")
    return torch.as_tensor(side).detach().to(x)


def _has_shape(side: Tensor | None, shape: tuple[int, ...]) -> bool:
    """Whether scores have this shape; missing scores fit every shape."""
    return side is None or tuple(side.shape) == shape


def _is_in_source_order(
    graph: ComputationGraph, feature: Tensor | None, edge: Tensor | None
) -> bool:
    """Whether nodes or edges of the computation graph have the order of the whole graph."""
    sides = ((feature, graph.nodes), (edge, graph.edges))
    return all(
        side is None or torch.equal(ids, torch.arange(len(ids), device=ids.device))
        for side, ids in sides
    )
