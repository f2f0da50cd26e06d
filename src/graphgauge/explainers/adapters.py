"""Explainers of others, made to keep our promises: PyG's algorithms, and any function.

PyG explains one target at a time on the whole graph and changes the network it is given, so every target gets a copy of the
network, a fresh algorithm and a seed of its own. Stored self-loops are handed over behind all other edges: where every node
stores one, PyG takes the messages of the loops that a layer appends for those of the first edges.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from graphgauge.core.errors import BadExplanation, BadModel, BadSetting, GraphgaugeError
from graphgauge.core.later import resolve
from graphgauge.core.progress import advance
from graphgauge.core.randomness import seeded_globally
from graphgauge.core.registry import lookup
from graphgauge.core.xplanation import Target
from graphgauge.explainers.base import BaseExplainer, Scores, empty_edges, empty_features
from graphgauge.models import BaseModel, ComputationGraph, ComputationGraphs
from graphgauge.models.calling import Call
from graphgauge.models.guard import untouched
from graphgauge.models.masking import message_layers

if TYPE_CHECKING:
    from torch_geometric.explain import ExplainerAlgorithm

#: scores of one target, features and edges
Sides = tuple[Any, Any]
#: how one target is explained: its computation graph and its seed in, its sides out, cut to the computation graph
OneByOne = Callable[[ComputationGraph, int], tuple[Tensor | None, Tensor | None]]

# --- any algorithm of torch_geometric.explain ------------------------------------------------------------------------


@dataclass(frozen=True)
class Traits:
    """What an algorithm of PyG is known to be."""

    signed: bool = False
    deterministic: bool = False
    scores_features: bool = True
    explanation_type: str = "model"


#: PyG's own algorithms; others are taken for unsigned and random unless said otherwise
TRAITS = {
    "GNNExplainer": Traits(),
    "GraphMaskExplainer": Traits(),
    "DummyExplainer": Traits(),
    "AttentionExplainer": Traits(deterministic=True, scores_features=False),
    "PGExplainer": Traits(deterministic=True, scores_features=False, explanation_type="phenomenon"),
    "CaptumExplainer": Traits(signed=True, deterministic=True),
}
#: Captum's methods that differ from the others
UNSIGNED_METHODS, RANDOM_METHODS = ("Saliency",), ("ShapleyValueSampling",)
OBJECT = "object of "  #: how params name an algorithm that was handed over as an object


@dataclass(frozen=True)
class PyGExplainer(BaseExplainer):
    """An algorithm of `torch_geometric.explain`: ``PyGExplainer("GNNExplainer", {"epochs": 20})``.

    ``algorithm``  its name, its class or a function that makes it (``options`` are what it is built from); or an object, which
                   is copied for each target: the way to hand over one that has to be trained first, such as PGExplainer
    ``node_mask``  "attributes", "object", "common_attributes" or None, as PyG's ``node_mask_type``
    ``edge_mask``  "object" or None
    ``is_signed``, ``is_deterministic``  for algorithms that PyG does not know
    """

    algorithm: Any
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    node_mask: str | None = "attributes"
    edge_mask: str | None = "object"
    is_signed: bool | None = None
    is_deterministic: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.algorithm, type) and self.algorithm in known_algorithms().values():
            object.__setattr__(self, "algorithm", self.algorithm.__name__)
        if not isinstance(self.options, Mapping):
            raise BadSetting(f"options must be a dictionary such as {{'epochs': 50}}, but is {self.options!r}.")
        object.__setattr__(self, "options", dict(self.options))
        check_algorithm(self.algorithm, self.options)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Such as "pyg:GNNExplainer"."""
        return f"pyg:{self.algorithm_name}"

    @property
    def algorithm_name(self) -> str:
        """The name of the algorithm's class, or of the function that makes it."""
        if isinstance(self.algorithm, str):
            return self.algorithm
        return str(getattr(self.algorithm, "__name__", type(self.algorithm).__name__))

    @property
    def signed(self) -> bool:  # type: ignore[override]
        """As said, or as known of PyG's algorithms."""
        return (self.traits.signed and self.method not in UNSIGNED_METHODS) if self.is_signed is None else self.is_signed

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        """As said, or as known of PyG's algorithms."""
        known = self.traits.deterministic and self.method not in RANDOM_METHODS
        return known if self.is_deterministic is None else self.is_deterministic

    @property
    def traits(self) -> Traits:
        """What is known of the algorithm."""
        return TRAITS.get(self.algorithm_name, Traits())

    @property
    def method(self) -> str:
        """The method inside Captum; empty for other algorithms."""
        method = self.options.get("attribution_method", getattr(self.algorithm, "attribution_method_class", ""))
        return method if isinstance(method, str) else str(getattr(method, "__name__", ""))

    @property
    def params(self) -> dict[str, Any]:
        """What rebuilds this explainer; an algorithm that PyG does not know by name is only named, and cannot be rebuilt."""
        algorithm = self.algorithm if isinstance(self.algorithm, str) else f"{OBJECT}{self.algorithm_name}"
        sides = {"node_mask": self.node_mask, "edge_mask": self.edge_mask}
        said = {"is_signed": self.is_signed, "is_deterministic": self.is_deterministic}
        return {"algorithm": algorithm, "options": deepcopy(self.options), **sides, **said}

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """One target after another."""

        def one(graph: ComputationGraph, seed: int) -> tuple[Tensor | None, Tensor | None]:
            with seeded_globally(seed), quiet():
                return self.sides(model, graph)

        return one_by_one(model, graphs, seeds, one)

    def sides(self, model: BaseModel, graph: ComputationGraph) -> tuple[Tensor | None, Tensor | None]:
        """PyG's masks of one target, cut to its computation graph."""
        g, order = loops_behind(whole_graph(model, graph))
        wants_probs = self.algorithm_name == "CaptumExplainer"  # which refuses the logits of two classes in one column
        net = Called(copied_call(model.call), g, model, as_probs=wants_probs)
        explainer = self.connected(net, model)
        index = graph.target if model.level == "node" else None
        target = explainer.get_target(explainer.get_prediction(g.x, g.edge_index)) if self.is_about_labels else None
        try:
            found = explainer(g.x, g.edge_index, target=target, index=index)
        except GraphgaugeError:
            raise
        except Exception as error:
            told = str(error) or "no reason given"
            raise BadSetting(
                f"PyG's {self.algorithm_name} cannot explain target {graph.target} of {model!r}: {type(error).__name__}: {told}"
            ) from error
        feature, edge = found.get("node_mask"), found.get("edge_mask")
        if feature is not None:
            feature = feature.detach().expand_as(g.x)[graph.nodes]
        if edge is not None:
            edge = torch.zeros_like(edge).index_copy(0, order, edge.detach())[graph.edges]
        return feature, edge

    @property
    def is_about_labels(self) -> bool:
        """Whether the algorithm wants to be told the class it explains; it is told the predicted one."""
        return self.traits.explanation_type == "phenomenon"

    def connected(self, net: "Called", model: BaseModel) -> Any:
        """PyG's ``Explainer``, with what it has to know about the model."""
        from torch_geometric.explain import Explainer

        algorithm = self.built(net)
        if is_untrained(algorithm):
            raise BadSetting(
                f"{self.algorithm_name} has to be trained before it explains, but has not been. Train it as PyG's pages say, and "
                "hand over the trained object: PyGExplainer(algorithm)."
            )
        config = {"mode": net.mode, "task_level": "edge" if model.level == "link" else model.level, "return_type": net.kind}
        try:
            return Explainer(
                net,
                algorithm=algorithm,
                explanation_type=self.traits.explanation_type,
                node_mask_type=self.node_mask if self.traits.scores_features else None,
                edge_mask_type=self.edge_mask,
                model_config=config,
            )
        except ValueError as error:
            raise BadSetting(
                f"PyG's {self.algorithm_name} cannot explain this {model.level} {model.task} model with node_mask="
                f"{self.node_mask!r} and edge_mask={self.edge_mask!r}: {error}"
            ) from error

    def built(self, net: Module) -> "ExplainerAlgorithm":
        """A fresh algorithm for ``net``: built by name, class or function, or the copy of an object."""
        if isinstance(self.algorithm, Module):
            return deepcopy(self.algorithm)
        make = lookup(known_algorithms(), self.algorithm, "PyG algorithm") if isinstance(self.algorithm, str) else self.algorithm
        options = dict(self.options)
        if self.algorithm_name == "GraphMaskExplainer":  # wants to be told what can be counted, and draws bars
            options = {"num_layers": len(message_layers(net)), "log": False, **options}
        try:
            return made_alone(make, deepcopy(options))
        except (TypeError, ValueError, AttributeError) as error:
            raise BadSetting(f"{self.algorithm_name} cannot be built with {options!r}: {error}.") from error


class Called(Module):
    """A network as PyG's algorithms call one, ``net(x, edge_index)``; everything else it takes is already there.

    ``mode`` and ``kind`` say to PyG what the rows are. One column of log-probabilities, which PyG does not know, becomes one
    of probabilities; so does one column of logits with ``as_probs``.
    """

    def __init__(self, call: Call, g: Data, model: BaseModel, as_probs: bool) -> None:
        super().__init__()
        self.net, self.call, self.g, self.copies_input = call.net, call, g, model.writes_input
        self.turn, self.mode, self.kind = "", "regression", "raw"
        if model.task == "classification":
            kind, columns = model.kind, model.whole_rows(model.everything[:1]).size(1)  # type: ignore[attr-defined]
            self.mode = "binary_classification" if columns == 1 else "multiclass_classification"
            if columns == 1 and (kind == "log_probs" or (kind == "logits" and as_probs)):
                self.turn, kind = kind, "probs"
            self.kind = "raw" if kind == "logits" else kind

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Raw rows, one for each node, or one for the link or graph."""
        g = self.g.clone()
        g.x, g.edge_index = x.clone() if self.copies_input else x, edge_index
        rows = self.call(g)
        return rows.exp() if self.turn == "log_probs" else rows.sigmoid() if self.turn == "logits" else rows


def known_algorithms() -> dict[str, Any]:
    """The algorithms in `torch_geometric.explain`, by name."""
    from torch_geometric.explain import algorithm

    return {name: getattr(algorithm, name) for name in algorithm.classes if name != "ExplainerAlgorithm"}


def check_algorithm(algorithm: Any, options: Mapping[str, Any]) -> None:
    """Refuse what cannot be an algorithm of PyG."""
    from torch_geometric.explain import ExplainerAlgorithm

    if isinstance(algorithm, str) and algorithm.startswith(OBJECT):
        raise BadSetting(f"this explainer was made from an {algorithm}, which params cannot hold: hand over the object again.")
    if isinstance(algorithm, str):
        lookup(known_algorithms(), algorithm, "PyG algorithm")
    elif isinstance(algorithm, ExplainerAlgorithm) and options:
        raise BadSetting(f"options build an algorithm by name or class, but {type(algorithm).__name__} is built: leave them out.")
    elif not isinstance(algorithm, ExplainerAlgorithm) and not callable(algorithm):
        raise BadSetting(
            f"algorithm must be the name, the class or an object of a torch_geometric.explain algorithm, but is {algorithm!r}."
        )


def is_untrained(algorithm: Any) -> bool:
    """Whether an algorithm counts the epochs of a training before use, as PGExplainer does, and is not through."""
    return hasattr(algorithm, "_curr_epoch") and algorithm._curr_epoch < algorithm.epochs - 1


def made_alone(make: Any, options: Mapping[str, Any]) -> Any:
    """An algorithm whose options are its own: GraphMask's change a dictionary that all of its objects share."""
    shared = vars(make).get("coeffs") if isinstance(make, type) else None
    if shared is None:
        return make(**options)
    try:
        make.coeffs = dict(shared)
        algorithm = make(**options)
        algorithm.coeffs = make.coeffs
        return algorithm
    finally:
        make.coeffs = shared


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings that Captum gives about tensors that PyG made."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Input Tensor . did not already require gradients")
        warnings.filterwarnings("ignore", message="Setting backward hooks on ReLU activations")
        yield


def copied_call(call: Call) -> Call:
    """The way to call a copy of the network."""
    try:
        return replace(call, net=deepcopy(call.net))
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise BadModel(
            f"PyG's algorithms change the network they explain and need a copy, but {type(call.net).__name__} cannot be "
            f"copied: {error}. Detach the tensors it keeps."
        ) from error


def whole_graph(model: BaseModel, graph: ComputationGraph) -> Data:
    """The graph that a target's computation graph was cut from, as the network sees it."""
    if model.level != "graph":
        pairs = graph.batch.target[graph.number][:, None] if model.level == "link" else None
        g: Data = model.whole_data(pairs)  # type: ignore[attr-defined]
        return g
    source, number = model.source, int(graph.batch.target[graph.number, 0])
    nodes, edges = (slice(int(ptr[number]), int(ptr[number + 1])) for ptr in (source.node_ptr, source.edge_ptr))
    g = Data(edge_index=source.edge_index[:, edges] - nodes.start)
    for rows, attrs in ((nodes, source.node_attrs), (edges, source.edge_attrs), (slice(number, number + 1), source.graph_attrs)):
        for name, value in attrs.items():
            g[name] = value[rows].clone()
    if model.call.takes_batch:
        g.batch = torch.zeros(len(g.x), dtype=torch.int64, device=g.x.device)
    return g


def loops_behind(g: Data) -> tuple[Data, Tensor]:
    """The same graph with its self-loops behind all other edges, sorted by node; and where each edge was before.  (E,)"""
    source, end = g.edge_index
    order = torch.where(source == end, 1 + source, 0).argsort(stable=True)
    for name in [name for name in g.keys() if name != "edge_index" and is_per_edge(g, str(name))]:  # noqa: SIM118
        g[name] = g[name][order]
    g.edge_index = g.edge_index[:, order]
    return g, order


def is_per_edge(g: Data, name: str) -> bool:
    """Whether an attribute has a row for each edge."""
    return isinstance(g[name], Tensor) and name not in ("x", "batch", "edge_label_index") and g.is_edge_attr(name)


# --- any function ----------------------------------------------------------------------------------------------------

SCOPES = ("computation graph", "whole graph")


@dataclass(frozen=True)
class CallableExplainer(BaseExplainer):
    """Any function ``(model, target) -> (feature scores, edge scores)``; one of the two may be None.

    Scores are tensors or arrays for the target's computation graph, (n, F) and (E_rel,) in the order of its ``nodes`` and
    ``edges``, or for the whole graph, (N, F) and (E,). Where both have the same sizes but not the same order, ``scope`` must
    say which: "computation graph" or "whole graph". What the function draws from the global random states is governed by the
    seed. ``function`` may be an address such as "package.module:name".

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
        object.__setattr__(self, "name", self.name or getattr(function, "__name__", type(function).__name__))
        if self.scope not in (None, *SCOPES):
            raise BadSetting(f"scope must be 'computation graph', 'whole graph' or None, but {self.scope!r} was given.")

    @property
    def params(self) -> dict[str, Any]:
        """What rebuilds this explainer where its function can be imported; else the function is only named."""
        said = {"name": self.name, "signed": self.signed, "deterministic": self.deterministic, "scope": self.scope}
        return {"function": address_of(self.function), **said}

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """One target after another."""

        def one(graph: ComputationGraph, seed: int) -> tuple[Tensor | None, Tensor | None]:
            with seeded_globally(seed):
                given = self.function(model, graph.target)  # type: ignore[operator]
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
        raise BadSetting(f"function must be callable as function(model, target), but is {type(function).__name__}.")
    return function


def address_of(function: Any) -> str:
    """Where a function can be imported from; of any other, a text that says what it is and cannot be imported."""
    address = f"{function.__module__}:{getattr(function, '__qualname__', type(function).__qualname__)}"
    try:
        is_there = resolve(address) is function
    except (ImportError, AttributeError, ValueError):
        is_there = False
    return address if is_there else f"{OBJECT}{address}"


def fitted(given: Any, graph: ComputationGraph, explainer: CallableExplainer) -> tuple[Tensor | None, Tensor | None]:
    """What a function gave, as scores of the computation graph."""
    name, x = explainer.name, graph.batch.source.x
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise BadExplanation(f"{name} must return (feature scores, edge scores), but returned {type(given).__name__}.")
    feature, edge = (as_scores(side, x, name) for side in given)
    if feature is None and edge is None:
        raise BadExplanation(f"{name} gave neither feature nor edge scores for target {graph.target}: one of the two is needed.")
    if scope_of(feature, edge, graph, explainer) == "computation graph":
        return feature, edge
    return None if feature is None else feature[graph.nodes], None if edge is None else edge[graph.edges]


def scope_of(feature: Tensor | None, edge: Tensor | None, graph: ComputationGraph, explainer: CallableExplainer) -> str:
    """What the scores are of, told by their shapes; or an error that names the shapes that fit."""
    F, name = graph.batch.source.x.size(1), explainer.name
    shapes = {
        "computation graph": ((len(graph.nodes), F), (len(graph.edges),)),
        "whole graph": ((graph.num_source_nodes, F), (graph.num_source_edges,)),
    }
    allowed = [scope for scope in shapes if explainer.scope in (None, scope)]
    fitting = [scope for scope in allowed if fits_in(feature, shapes[scope][0]) and fits_in(edge, shapes[scope][1])]
    if not fitting:
        found = " and ".join("None" if side is None else str(tuple(side.shape)) for side in (feature, edge))
        wanted = ", or ".join(f"{shapes[scope][0]} and {shapes[scope][1]} for the {scope}" for scope in allowed)
        raise BadExplanation(f"{name} gave scores of shape {found} for target {graph.target}. Accepted: {wanted}.")
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
        raise BadExplanation(f"{name} must give scores as tensors or arrays, but gave {type(side).__name__}.")
    return torch.as_tensor(np.array(side, order="C") if isinstance(side, np.ndarray) else side).detach().to(x)


def fits_in(side: Tensor | None, shape: tuple[int, ...]) -> bool:
    """Whether scores have this shape; no scores fit everywhere."""
    return side is None or tuple(side.shape) == shape


def is_in_order(graph: ComputationGraph, feature: Tensor | None, edge: Tensor | None) -> bool:
    """Whether the given sides of the computation graph are listed as in the whole graph."""
    sides = ((feature, graph.nodes), (edge, graph.edges))
    return all(side is None or torch.equal(ids, torch.arange(len(ids), device=ids.device)) for side, ids in sides)


# --- one target after another ----------------------------------------------------------------------------------------


def one_by_one(model: BaseModel, graphs: ComputationGraphs, seeds: list[int], explain: OneByOne) -> Scores:
    """Packed scores of graphs that are explained one after another, the network being as before each time."""
    feature, edge = empty_features(graphs), empty_edges(graphs)
    has: set[tuple[bool, bool]] = set()
    for graph, seed in zip(graphs, seeds, strict=True):
        with untouched(model.net), torch.enable_grad():
            for_nodes, for_edges = explain(graph, seed)
        has.add((for_nodes is not None, for_edges is not None))
        check_same_sides(has, graph.target)
        if for_nodes is not None:
            feature[graph.node_slice][: len(graph.nodes)] = for_nodes.to(feature)
        if for_edges is not None:
            edge[graph.edge_slice][: len(graph.edges)] = for_edges.to(edge)
        advance(1)
    with_features, with_edges = next(iter(has), (True, True))
    return Scores(feature if with_features else None, edge if with_edges else None)


def check_same_sides(has: set[tuple[bool, bool]], target: Target) -> None:
    """Refuse an explainer that scores features (or edges) of some targets only."""
    if len(has) > 1:
        raise BadExplanation(
            f"target {target} got other sides than the targets before it: features and edges for all, or for none."
        )
