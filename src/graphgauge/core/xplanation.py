"""One explanation: scores of the nodes' features and of the edges that can reach a target.

Scores live on the target's computation graph only, together with the ids of its nodes and edges in the whole graph:

    feature_score (n, F)   for   nodes (n,)        edge_score (E_rel,)   for   edges (E_rel,)

so a two-hop explanation in a graph of a million nodes stays small. `feature_matrix` and `edge_vector` are the same
scores seen in the whole graph, zero elsewhere.
"""

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor

from graphgauge.core.errors import BadExplanation, BadFile
from graphgauge.core.registry import lookup

if TYPE_CHECKING:
    from torch_geometric.explain import Explanation

Target = int | tuple[int, int]

POOLINGS = {
    "max": lambda rows: rows.amax(0),
    "sum": lambda rows: rows.sum(0),
    "mean": lambda rows: rows.mean(0),
    "abs_max": lambda rows: rows.abs().amax(0),
}


class Scope(Protocol):
    """What `from_pyg` needs to know of a computation graph."""

    @property
    def nodes(self) -> Tensor: ...
    @property
    def edges(self) -> Tensor: ...


class TargetView(NamedTuple):
    """Feature scores as seen from the target: its own row(s), and all other nodes pooled into one row."""

    target: Tensor  #: (1, F) for a node, (2, F) for a link, (0, F) for a graph
    neighbours: Tensor  #: (1, F), or (0, F) when the target stands alone


@dataclass(eq=False)
class Xplanation:
    """Scores of one target, with what is needed to make them again.

    ``feature_score`` or ``edge_score`` is None when the explainer gives only the other side.
    ``explainer`` and ``params`` rebuild the explainer; ``metrics`` is filled by the Evaluator.

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
    seed: int | None = None
    seconds: float | None = None
    metrics: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_ids("nodes", self.nodes, self.num_nodes)
        check_ids("edges", self.edges, self.num_edges)
        check_scores("feature_score", self.feature_score, self.nodes, dims=2)
        check_scores("edge_score", self.edge_score, self.edges, dims=1)

    def __repr__(self) -> str:
        return (
            f"Xplanation(target={self.target}, explainer={self.explainer!r}, features={shape_of(self.feature_score)}, "
            f"edges={shape_of(self.edge_score)}, metrics={len(self.metrics)})"
        )

    @property
    def target_nodes(self) -> tuple[int, ...]:
        """Ids of the node or the two ends of the link; none for a graph."""
        if self.level == "graph":
            return ()
        return self.target if isinstance(self.target, tuple) else (self.target,)

    def feature_matrix(self) -> Tensor:
        """Feature scores in the whole graph, zero outside the computation graph.  (N, F)"""
        score = self.need("feature_score")
        return score.new_zeros(self.num_nodes, score.size(1)).index_copy(0, self.nodes, score)

    def edge_vector(self) -> Tensor:
        """Edge scores in the whole graph, zero outside the computation graph.  (E,)"""
        score = self.need("edge_score")
        return score.new_zeros(self.num_edges).index_copy(0, self.edges, score)

    def target_view(self, pooling: str = "max") -> TargetView:
        """The target's own feature scores, and those of all other nodes pooled per feature."""
        score = self.need("feature_score")
        order = [int((self.nodes == node).nonzero()) for node in self.target_nodes]
        others = torch.ones(len(self.nodes), dtype=torch.bool)
        others[order] = False
        rows = score[others.to(score.device)]
        pooled = lookup(POOLINGS, pooling, "pooling")(rows)[None] if len(rows) else rows
        return TargetView(score[order], pooled)

    def need(self, side: str) -> Tensor:
        """The scores of one side, or an error that says which explainer did not give them."""
        score: Tensor | None = getattr(self, side)
        if score is None:
            raise BadExplanation(
                f"{side} of target {self.target} was asked for, but {self.explainer or 'its explainer'} gave none. "
                f"Use the other side, or an explainer that scores both."
            )
        return score

    def to_pyg(self) -> "Explanation":
        """As a PyG ``Explanation`` over the whole graph (``node_mask`` (N, F), ``edge_mask`` (E,))."""
        from torch_geometric.explain import Explanation

        masks: dict[str, Any] = {}
        if self.feature_score is not None:
            masks["node_mask"] = self.feature_matrix()
        if self.edge_score is not None:
            masks["edge_mask"] = self.edge_vector()
        return Explanation(**masks, index=torch.tensor(self.target), prediction=self.prediction)

    @classmethod
    def from_pyg(cls, explanation: "Explanation", target: Target, graph: Scope | None = None, **fields: Any) -> "Xplanation":
        """From a PyG ``Explanation`` over the whole graph, cut to ``graph`` (a computation graph) where one is given."""
        feature_score, edge_score = full_node_mask(explanation), explanation.get("edge_mask")
        num_nodes, num_edges = sizes(explanation, feature_score, edge_score)
        nodes = torch.arange(num_nodes) if graph is None else graph.nodes
        edges = torch.arange(num_edges) if graph is None else graph.edges
        return cls(
            target=target,
            nodes=nodes,
            edges=edges,
            num_nodes=num_nodes,
            num_edges=num_edges,
            feature_score=None if feature_score is None else feature_score[nodes],
            edge_score=None if edge_score is None else edge_score[edges],
            **{"prediction": explanation.get("prediction"), **fields},
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file: the tensors, and the rest as JSON in its header. Never half a file."""
        from safetensors.torch import save_file

        tensors = {name: getattr(self, name) for name in TENSORS if getattr(self, name) is not None}
        header = {name: getattr(self, name) for name in PLAIN}
        text = json.dumps(without_nan(header), allow_nan=False)
        whole, part = Path(path), Path(f"{os.fspath(path)}.part")
        contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        save_file(contiguous, part, metadata={"graphgauge.xplanation": text})
        part.replace(whole)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Xplanation":
        """Read what `save` wrote. Nothing in the file is executed."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(os.fspath(path), "pt") as file:
                header = json.loads((file.metadata() or {})["graphgauge.xplanation"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
            target = header.pop("target")
            return cls(target=tuple(target) if isinstance(target, list) else target, **header, **tensors)
        except (OSError, SafetensorError, LookupError, ValueError, TypeError, AttributeError) as error:
            raise BadFile(f"{os.fspath(path)} is not an explanation that graphgauge saved: {error}.") from error


TENSORS = ("nodes", "edges", "feature_score", "edge_score", "prediction")
PLAIN = ("target", "num_nodes", "num_edges", "level", "explainer", "params", "seed", "seconds", "metrics")


def check_ids(name: str, ids: Tensor, size: int) -> None:
    """Refuse ids that are not whole numbers in [0, size)."""
    if ids.dim() != 1 or ids.dtype != torch.int64:
        raise BadExplanation(f"{name} must be a list of int64 ids, but is {ids.dtype} of shape {tuple(ids.shape)}.")
    if len(ids) and not (int(ids.min()) >= 0 and int(ids.max()) < size):
        raise BadExplanation(f"{name} must lie in 0..{size - 1}, but reach from {int(ids.min())} to {int(ids.max())}.")


def check_scores(name: str, score: Tensor | None, ids: Tensor, dims: int) -> None:
    """Refuse scores that are not real numbers, one row for each id. NaN passes: the Evaluator records it."""
    if score is None:
        return
    wanted = f"{len(ids)} rows of floats" if dims == 2 else f"{len(ids)} floats"
    if not score.is_floating_point() or score.dim() != dims or len(score) != len(ids):
        raise BadExplanation(f"{name} must hold {wanted}, but is {score.dtype} of shape {tuple(score.shape)}.")


def shape_of(score: Tensor | None) -> str:
    """The shape for people: '12 x 7', '30' or 'none'."""
    return "none" if score is None else " x ".join(map(str, score.shape))


def full_node_mask(explanation: "Explanation") -> Tensor | None:
    """PyG's node mask as (N, F): it may come with one column (whole nodes) or one row (one score per feature)."""
    mask = explanation.get("node_mask")
    if mask is None:
        return None
    x = explanation.get("x")
    return mask if x is None else mask.expand(x.size(0), x.size(1)).contiguous()


def sizes(explanation: "Explanation", feature_score: Tensor | None, edge_score: Tensor | None) -> tuple[int, int]:
    """Number of nodes and edges of the graph that a PyG explanation speaks of."""
    edge_index = explanation.get("edge_index")
    num_nodes = explanation.num_nodes if feature_score is None else len(feature_score)
    num_edges = (0 if edge_index is None else edge_index.size(1)) if edge_score is None else len(edge_score)
    return int(num_nodes or 0), int(num_edges)


def without_nan(value: Any) -> Any:
    """``value`` with NaN and infinities as None, which is what JSON has for "no number"."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    return [without_nan(item) for item in value] if isinstance(value, (list, tuple)) else value
