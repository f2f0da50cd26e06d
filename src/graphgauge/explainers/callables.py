"""Any function as an explainer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphgauge.core.errors import BadExplanation, BadSetting
from graphgauge.core.later import resolve
from graphgauge.core.randomness import seeded_globally
from graphgauge.explainers.base import BaseExplainer, Scores
from graphgauge.explainers.chosen_classes import takes_label
from graphgauge.explainers.one_by_one import OBJECT, one_by_one
from graphgauge.models import BaseModel, ComputationGraph, ComputationGraphs

#: scores of one target, features and edges
Sides = tuple[Any, Any]
SCOPES = ("computation graph", "whole graph")


@dataclass(frozen=True)
class CallableExplainer(BaseExplainer):
    """Any function ``(model, target) -> (feature scores, edge scores)``; one of the two may be
    None.

    Scores are tensors or arrays for the target's computation graph, (n, F) and (E_rel,) in the
    order of its ``nodes`` and ``edges``, or for the whole graph, (N, F) and (E,). Where both have
    the same sizes but not the same order, ``scope`` must say which: "computation graph" or "whole
    graph". What the function draws from the global random states is governed by the seed. A
    function with a parameter ``label`` is told the class to explain where one was chosen.
    ``function`` may be an address such as "package.module:name".

    >>> def degree(model, target):
    ...     return None, model.computation_graphs([target])[0].edge_index[0].float()
    >>> CallableExplainer(degree, deterministic=True).name
    'degree'
    """

    function: Callable[[BaseModel, Any], Sides] | str
    name: str = field(default="", kw_only=True)  # type: ignore[misc]
    signed: bool = field(default=True, kw_only=True)  # type: ignore[misc]
    deterministic: bool = field(default=False, kw_only=True)  # type: ignore[misc]
    scope: str | None = None

    def __post_init__(self) -> None:
        function = found_function(self.function)
        object.__setattr__(self, "function", function)
        object.__setattr__(
            self, "name", self.name or getattr(function, "__name__", type(function).__name__)
        )
        if self.scope not in (None, *SCOPES):
            raise BadSetting(
                f"scope must be 'computation graph', 'whole graph' or None, but {self.scope!r} was given."
            )

    @property
    def params(self) -> dict[str, Any]:
        """What rebuilds this explainer where its function can be imported; else the function is
        only named.
        """
        said = {
            "name": self.name,
            "signed": self.signed,
            "deterministic": self.deterministic,
            "scope": self.scope,
        }
        return {"function": address_of(self.function), **said}

    @property
    def explains_labels(self) -> bool:
        """Whether the function takes a class."""
        return takes_label(self.function)

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """One target after another."""
        classes = graphs.chosen_class

        def one(graph: ComputationGraph, seed: int) -> tuple[Tensor | None, Tensor | None]:
            chosen = (
                {"label": int(classes[graph.number])}
                if classes is not None and self.explains_labels
                else {}
            )
            with seeded_globally(seed):
                given = self.function(model, graph.target, **chosen)  # type: ignore[operator]
            return fitted(given, graph, self)

        return one_by_one(model, graphs, seeds, one)


def found_function(function: Any) -> Callable[..., Any]:
    """The function itself, also from its address."""
    if isinstance(function, str):
        try:
            function = resolve(function)
        except (ImportError, AttributeError, ValueError) as error:
            raise BadSetting(
                f"function {function!r} cannot be imported: {error}. Hand over the function, or write 'package.module:name'."
            ) from error
    if not callable(function):
        raise BadSetting(
            f"function must be callable as function(model, target), but is {type(function).__name__}."
        )
    return function


def address_of(function: Any) -> str:
    """Where a function can be imported from; of any other, a text that says what it is and cannot
    be imported.
    """
    address = (
        f"{function.__module__}:{getattr(function, '__qualname__', type(function).__qualname__)}"
    )
    try:
        is_there = resolve(address) is function
    except (ImportError, AttributeError, ValueError):
        is_there = False
    return address if is_there else f"{OBJECT}{address}"


def fitted(
    given: Any, graph: ComputationGraph, explainer: CallableExplainer
) -> tuple[Tensor | None, Tensor | None]:
    """What a function gave, as scores of the computation graph."""
    name, x = explainer.name, graph.batch.source.x
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise BadExplanation(
            f"{name} must return (feature scores, edge scores), but returned {type(given).__name__}."
        )
    feature, edge = (as_scores(side, x, name) for side in given)
    if feature is None and edge is None:
        raise BadExplanation(
            f"{name} gave neither feature nor edge scores for target {graph.target}: one of the two is needed."
        )
    if scope_of(feature, edge, graph, explainer) == "computation graph":
        return feature, edge
    return None if feature is None else feature[graph.nodes], None if edge is None else edge[
        graph.edges
    ]


def scope_of(
    feature: Tensor | None,
    edge: Tensor | None,
    graph: ComputationGraph,
    explainer: CallableExplainer,
) -> str:
    """What the scores are of, told by their shapes; or an error that names the shapes that fit."""
    F, name = graph.batch.source.x.size(1), explainer.name
    shapes = {
        "computation graph": ((len(graph.nodes), F), (len(graph.edges),)),
        "whole graph": ((graph.num_source_nodes, F), (graph.num_source_edges,)),
    }
    allowed = [scope for scope in shapes if explainer.scope in (None, scope)]
    fitting = [
        scope
        for scope in allowed
        if fits_in(feature, shapes[scope][0]) and fits_in(edge, shapes[scope][1])
    ]
    if not fitting:
        found = " and ".join(
            "None" if side is None else str(tuple(side.shape)) for side in (feature, edge)
        )
        wanted = ", or ".join(
            f"{shapes[scope][0]} and {shapes[scope][1]} for the {scope}" for scope in allowed
        )
        raise BadExplanation(
            f"{name} gave scores of shape {found} for target {graph.target}. Accepted: {wanted}."
        )
    if len(fitting) == 2 and not is_in_order(graph, feature, edge):
        raise BadExplanation(
            f"scores that {name} gave for target {graph.target} fit its computation graph and the whole graph alike, in different "
            "orders: say CallableExplainer(..., scope='whole graph') or scope='computation graph'."
        )
    return fitting[0]


def as_scores(side: Any, x: Tensor, name: str) -> Tensor | None:
    """Scores as a tensor like the features, without a gradient."""
    if side is None:
        return None
    if not isinstance(side, (Tensor, np.ndarray)):
        raise BadExplanation(
            f"{name} must give scores as tensors or arrays, but gave {type(side).__name__}."
        )
    return (
        torch.as_tensor(np.array(side, order="C") if isinstance(side, np.ndarray) else side)
        .detach()
        .to(x)
    )


def fits_in(side: Tensor | None, shape: tuple[int, ...]) -> bool:
    """Whether scores have this shape; no scores fit everywhere."""
    return side is None or tuple(side.shape) == shape


def is_in_order(graph: ComputationGraph, feature: Tensor | None, edge: Tensor | None) -> bool:
    """Whether the given sides of the computation graph are listed as in the whole graph."""
    sides = ((feature, graph.nodes), (edge, graph.edges))
    return all(
        side is None or torch.equal(ids, torch.arange(len(ids), device=ids.device))
        for side, ids in sides
    )
