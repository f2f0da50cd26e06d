"""One explanation: scores of the nodes' features and of the edges that can reach a target.

Scores live on the target's computation graph only, together with the ids of its nodes and edges in
the whole graph:

    feature_score (n, F)   for   nodes (n,)        edge_score (E_rel,)   for   edges (E_rel,)

so a two-hop explanation in a graph of a million nodes stays small. `feature_matrix` and
`edge_vector` are the same scores seen in the whole graph, zero elsewhere.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor

from graphgauge.core.errors import BadExplanation, BadFile
from graphgauge.core.registry import lookup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from torch_geometric.data import Data
    from torch_geometric.explain import Explanation

    from graphgauge.models import BaseModel
    from graphgauge.narrative import Names

Target = (
    int | tuple[int, ...]
)  #: a node or graph, (u, v) a link; with labels (node, label), (u, v, label), (graph, label)

#: how many ids name a target of each level
IDS_PER_LEVEL = {"node": 1, "link": 2, "graph": 1}

POOLINGS = {
    "max": lambda rows: rows.amax(0),
    "sum": lambda rows: rows.sum(0),
    "mean": lambda rows: rows.mean(0),
    "abs_max": lambda rows: rows.abs().amax(0),
}


class _SubgraphIds(Protocol):
    """What `from_pyg` needs to know of a computation graph."""

    @property
    def nodes(self) -> Tensor: ...
    @property
    def edges(self) -> Tensor: ...


class _TargetView(NamedTuple):
    """Feature scores as seen from the target: its own row(s), and all other nodes pooled into one
    row.
    """

    target: Tensor  #: (1, F) for a node, (2, F) for a link, (0, F) for a graph
    neighbours: Tensor  #: (1, F), or (0, F) when the target stands alone


@dataclass(eq=False)
class Xplanation:
    """Scores of one target, with what is needed to make them again.

    ``feature_score`` or ``edge_score`` is None when the explainer gives only the other side.
    ``explainer`` and ``params`` rebuild the explainer; ``metrics`` is filled by the Evaluator.
    ``outcome`` is what an explainer without scores found (see `OtherTaskExplainer`); it can be
    anything, so `save` leaves it out.

    >>> x = Xplanation(target=4, nodes=torch.tensor([4, 1]), feature_score=torch.tensor([[0.5, 0.0], [0.1, 0.2]]),
    ...                edges=torch.tensor([7]), edge_score=torch.tensor([0.3]), num_nodes=6, num_edges=9)
    >>> x.edge_vector()
    tensor([0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.3000, 0.0000])
    >>> x.target_view().neighbours
    tensor([[0.1000, 0.2000]])
    """

    target: Target
    nodes: Tensor
    edges: Tensor
    num_nodes: int
    num_edges: int
    feature_score: Tensor | None = None
    edge_score: Tensor | None = None
    level: str = "node"
    prediction: Tensor | None = None
    explainer: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None  #: of the call that made it
    occurrence: int = 0  #: how often that call had named the target before
    seconds: float | None = None
    network: str = (
        ""  #: digest of the network that it explains (`models.fingerprints`); '': not known
    )
    metrics: dict[str, Any] = field(default_factory=dict)
    outcome: Any = None
    label: int | None = None  #: the class that was asked for; None: the predicted one

    def __post_init__(self) -> None:
        lookup(dict.fromkeys(("node", "link", "graph")), self.level, "level of targets")
        self.target = canonical_target(self.target)
        if not 0 <= len(target_tuple(self.target)) - IDS_PER_LEVEL[self.level] <= 1:
            raise BadExplanation(
                f"target {self.target} is not a {self.level}: a pair of ids is a link, one id a node or a graph; "
                "where a network gives several labels, with the number of a label behind."
            )
        self.label = None if self.label is None else _canonical_label(self.label)
        _check_ids("nodes", self.nodes, self.num_nodes)
        _check_target_nodes(self.target_nodes, self.nodes)
        _check_ids("edges", self.edges, self.num_edges)
        _check_scores("feature_score", self.feature_score, self.nodes, dims=2)
        _check_scores("edge_score", self.edge_score, self.edges, dims=1)

    def __repr__(self) -> str:
        chosen = "" if self.label is None else f"label={self.label}, "
        return (
            f"Xplanation(target={self.target}, {chosen}explainer={self.explainer!r}, features={_shape_text(self.feature_score)}, "
            f"edges={_shape_text(self.edge_score)}, metrics={len(self.metrics)})"
        )

    @property
    def target_nodes(self) -> tuple[int, ...]:
        """Ids of the node or the two ends of the link; none for a graph."""
        return () if self.level == "graph" else self.target_ids

    @property
    def target_ids(self) -> tuple[int, ...]:
        """The node, the two ends of the link, or the graph, without a label."""
        return target_tuple(self.target)[: IDS_PER_LEVEL[self.level]]

    @property
    def target_label(self) -> int | None:
        """Of a network with several labels the one that was asked about; else None."""
        numbers = target_tuple(self.target)
        return numbers[-1] if len(numbers) > IDS_PER_LEVEL[self.level] else None

    def to(self, device: "torch.device | str") -> "Xplanation":
        """The same explanation with its tensors on another device."""
        moved = {
            name: getattr(self, name).to(device)
            for name in _TENSOR_FIELDS
            if getattr(self, name) is not None
        }
        return replace(self, **moved)

    def feature_matrix(self) -> Tensor:
        """Feature scores in the whole graph, zero outside the computation graph.  (N, F)"""
        score = self.need("feature_score")
        return score.new_zeros(self.num_nodes, score.size(1)).index_copy(0, self.nodes, score)

    def edge_vector(self) -> Tensor:
        """Edge scores in the whole graph, zero outside the computation graph.  (E,)"""
        score = self.need("edge_score")
        return score.new_zeros(self.num_edges).index_copy(0, self.edges, score)

    def target_view(self, pooling: str = "max") -> _TargetView:
        """The target's own feature scores, and those of all other nodes pooled per feature."""
        score = self.need("feature_score")
        order = [int((self.nodes == node).nonzero()) for node in self.target_nodes]
        others = torch.ones(len(self.nodes), dtype=torch.bool)
        others[order] = False
        rows = score[others.to(score.device)]
        pooled = lookup(POOLINGS, pooling, "pooling")(rows)[None] if len(rows) else rows
        return _TargetView(score[order], pooled)

    def need(self, side: str) -> Tensor:
        """The scores of one side, or an error that says which explainer did not give them."""
        score: Tensor | None = getattr(self, side)
        if score is None:
            raise BadExplanation(
                f"{side} of target {self.target} was asked for, but {self.explainer or 'its explainer'} gave none. "
                f"Use the other side, an explainer that scores both, or a network whose messages can be masked (model.record())."
            )
        return score

    def draw(
        self,
        data: "BaseModel | Data | Sequence[Data] | None" = None,
        names: "Names | Mapping[str, Any] | None" = None,
        top: int = 20,
        ax: "Axes | None" = None,
        *,
        signed: bool | None = None,
    ) -> "Axes":
        """Draw the subgraph of the strongest edges.

        Args:
            data: What knows the ends of the edges: the wrapped model, the graph that was explained,
                or the list of graphs.
            names: What features, nodes and classes are called; what is missing is taken from
                ``data``.
            top: How many edges are drawn.
            ax: Axes to draw on; a new figure by default.
            signed: Whether scores carry a direction; by default what the explainer says.

        Returns:
            The axes with the picture.
        """
        from graphgauge.plots import draw_explanation

        return draw_explanation(self, data, names, top, ax, signed=signed)

    def _repr_html_(self) -> str:
        from graphgauge.report import explanation_html

        return explanation_html(self)

    def to_pyg(self) -> "Explanation":
        """As a PyG ``Explanation`` over the whole graph (``node_mask`` (N, F), ``edge_mask`` (E,))."""
        from torch_geometric.explain import Explanation

        masks: dict[str, Any] = {}
        if self.feature_score is not None:
            masks["node_mask"] = self.feature_matrix()
        if self.edge_score is not None:
            masks["edge_mask"] = self.edge_vector()
        sizes: dict[str, Any] = {"num_nodes": self.num_nodes, "num_stored_edges": self.num_edges}
        if self.label is not None:
            sizes["explained_label"] = self.label
        return Explanation(
            **masks, **sizes, index=torch.tensor(self.target), prediction=self.prediction
        )

    @classmethod
    def from_pyg(
        cls,
        explanation: "Explanation",
        target: Target,
        graph: _SubgraphIds | None = None,
        **fields: Any,
    ) -> "Xplanation":
        """From a PyG ``Explanation`` over the whole graph, cut to ``graph`` (a computation graph)
        where one is given.
        """
        edge_score, num_edges = explanation.get("edge_mask"), _count_stored_edges(explanation)
        num_nodes = int(explanation.num_nodes or 0)
        feature_score = _full_node_mask(explanation, num_nodes)
        nodes = torch.arange(num_nodes) if graph is None else graph.nodes
        edges = torch.arange(num_edges) if graph is None else graph.edges
        is_ours = (
            explanation.get("num_stored_edges") is not None
        )  # others keep the network's raw rows, of all nodes
        prediction = explanation.get("prediction") if is_ours else None
        return cls(
            target=target,
            nodes=nodes,
            edges=edges,
            num_nodes=num_nodes,
            num_edges=num_edges,
            feature_score=_select_scores("nodes", feature_score, nodes),
            edge_score=_select_scores("edges", edge_score, edges),
            **{
                "prediction": prediction,
                "label": explanation.get("explained_label"),
                "level": "link" if isinstance(target, (list, tuple)) else "node",
                **fields,
            },
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file: the tensors, and the rest but ``outcome`` as JSON in its
        header. Never half a file.
        """
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        tensors = {
            name: getattr(self, name) for name in _TENSOR_FIELDS if getattr(self, name) is not None
        }
        text = json.dumps(
            to_json_value({name: getattr(self, name) for name in _HEADER_FIELDS}), allow_nan=False
        )
        whole, part = Path(path), Path(f"{os.fspath(path)}.part")
        own = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
        try:
            save_file(own, part, metadata={"graphgauge.xplanation": text})
            part.replace(whole)
        except (OSError, SafetensorError) as error:
            part.unlink(missing_ok=True)
            raise BadFile(f"{os.fspath(path)} could not be written: {error}.") from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Xplanation":
        """Read what `save` wrote. Nothing in the file is executed."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(os.fspath(path), "pt") as file:
                header = json.loads((file.metadata() or {})["graphgauge.xplanation"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
            return cls(**_from_json_value(header), **tensors)
        except FileNotFoundError as error:
            raise BadFile(f"{os.fspath(path)} does not exist.") from error
        except (
            OSError,
            SafetensorError,
            LookupError,
            ValueError,
            TypeError,
            AttributeError,
        ) as error:
            raise BadFile(
                f"{os.fspath(path)} is not an explanation that graphgauge saved: {error}."
            ) from error


_FLOAT_KEY = "$float"  #: marks a number that JSON does not know
_TENSOR_FIELDS = ("nodes", "edges", "feature_score", "edge_score", "prediction")
_SHORT_LIST_LENGTH = 1000  #: ids
_HEADER_FIELDS = (
    *(
        "target",
        "num_nodes",
        "num_edges",
        "level",
        "explainer",
        "params",
        "seed",
        "occurrence",
        "label",
        "seconds",
        "network",
    ),
    "metrics",
)


def canonical_target(target: Any) -> Target:
    """A target as Python's own numbers: an id, or a pair of ids; in front of a label, where there
    is one.

    >>> canonical_target([4]), canonical_target([4, 7]), canonical_target([4, 7, 0])
    (4, (4, 7), (4, 7, 0))
    """
    if isinstance(target, (list, tuple)) and len(target) in (2, 3):
        return tuple(int(number) for number in target)
    if isinstance(target, (list, tuple)) and len(target) == 1:
        return int(target[0])
    if isinstance(target, (list, tuple, str)):
        raise BadExplanation(
            f"target must be one id or a pair of ids (or one of these and a label), but is {target!r}."
        )
    return int(target)


def target_tuple(target: Target) -> tuple[int, ...]:
    """A target as a tuple, whatever its form."""
    return target if isinstance(target, tuple) else (target,)


def _canonical_label(label: Any) -> int:
    """A class as Python's own number."""
    if isinstance(label, bool) or not hasattr(label, "__index__") or label.__index__() < 0:
        raise BadExplanation(
            f"label must be the number of a class, 0 or more, or None, but is {label!r}."
        )
    return int(label.__index__())


def _check_target_nodes(target_nodes: tuple[int, ...], nodes: Tensor) -> None:
    """Refuse a node or link target that is not among the nodes of its own explanation."""
    missing = set(target_nodes) - set(nodes.tolist())
    if missing:
        raise BadExplanation(
            f"target node {min(missing)} is not among the {len(nodes)} nodes of its explanation."
        )


def _check_ids(name: str, ids: Tensor, size: int) -> None:
    """Refuse ids that are not different whole numbers in [0, size)."""
    if not isinstance(ids, Tensor) or ids.dim() != 1 or ids.dtype != torch.int64:
        raise BadExplanation(f"{name} must be a list of int64 ids, but is {_type_and_shape(ids)}.")
    if not len(ids):
        return
    least, most, different = _id_range(ids)
    if not (least >= 0 and most < size):
        raise BadExplanation(f"{name} must lie in 0..{size - 1}, but reach from {least} to {most}.")
    if different < len(ids):
        raise BadExplanation(
            f"{name} must name each id once, but {len(ids) - different} come again."
        )


def _id_range(ids: Tensor) -> tuple[int, int, int]:
    """The least and the most of ids, and how many different ones there are; a short list is fastest
    in Python.

    >>> _id_range(torch.tensor([4, 1, 4]))
    (1, 4, 2)
    """
    if len(ids) <= _SHORT_LIST_LENGTH:
        listed = ids.tolist()
        return min(listed), max(listed), len(set(listed))
    ordered = ids.sort().values
    least, most, steps = torch.stack(
        [ordered[0], ordered[-1], (ordered[1:] != ordered[:-1]).sum()]
    ).tolist()
    return least, most, steps + 1


def _check_scores(name: str, score: Tensor | None, ids: Tensor, dims: int) -> None:
    """Refuse scores that are not real numbers, one row for each id. NaN passes: the Evaluator
    records it.
    """
    if score is None:
        return
    wanted = f"{len(ids)} rows of floats" if dims == 2 else f"{len(ids)} floats"
    if (
        not isinstance(score, Tensor)
        or not score.is_floating_point()
        or score.dim() != dims
        or len(score) != len(ids)
    ):
        raise BadExplanation(f"{name} must hold {wanted}, but is {_type_and_shape(score)}.")


def _type_and_shape(value: Any) -> str:
    """What a thing is, for people."""
    return (
        f"{value.dtype} of shape {tuple(value.shape)}"
        if isinstance(value, Tensor)
        else type(value).__name__
    )


def _shape_text(score: Tensor | None) -> str:
    """The shape for people: '12 x 7', '30' or 'none'."""
    return "none" if score is None else " x ".join(map(str, score.shape))


def _select_scores(name: str, score: Tensor | None, ids: Tensor) -> Tensor | None:
    """The scores of these ids; refuses ids that the whole graph does not have."""
    if score is not None and len(ids) and int(ids.max()) >= len(score):
        raise BadExplanation(
            f"graph names {name} up to {int(ids.max())}, but the explanation has {len(score)}: another graph's?"
        )
    return None if score is None else score[ids]


def _full_node_mask(explanation: "Explanation", num_nodes: int) -> Tensor | None:
    """PyG's node mask as (N, F): it may come with one column (whole nodes) or one row (one score
    per feature).
    """
    mask = explanation.get("node_mask")
    if mask is None:
        return None
    x = explanation.get("x")
    return mask.expand(num_nodes, mask.size(1) if x is None else x.size(1)).contiguous()


def _count_stored_edges(explanation: "Explanation") -> int:
    """Number of edges of the graph that a PyG explanation speaks of."""
    for name, axis in (("edge_mask", 0), ("edge_index", 1)):
        if explanation.get(name) is not None:
            return int(explanation[name].size(axis))
    return int(explanation.get("num_stored_edges") or 0)


def to_json_value(value: Any) -> Any:
    """``value`` as JSON. NumPy's and torch's numbers become Python's; NaN and infinities are kept
    under their names.
    """
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT_KEY: repr(value)}
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise BadExplanation(
                f"names in params and metrics must be texts, but are {list(value)!r}."
            )
        return {key: to_json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json_value(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise BadExplanation(
        f"params and metrics must hold numbers, texts and lists to be saved, but one is {type(value).__name__}."
    )


def _from_json_value(value: Any) -> Any:
    """What `to_json_value` made, with NaN and infinities as floats again."""
    if isinstance(value, dict):
        return (
            float(value[_FLOAT_KEY])
            if value.keys() == {_FLOAT_KEY}
            else {key: _from_json_value(item) for key, item in value.items()}
        )
    return [_from_json_value(item) for item in value] if isinstance(value, list) else value
