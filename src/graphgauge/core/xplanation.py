"""One explanation: scores of the nodes' features and of the edges that can reach a target.

Scores live on the target's computation graph only, together with the ids of its nodes and edges in
the whole graph:

    feature_score (n, F)   for   nodes (n,)        edge_score (E_rel,)   for   edges (E_rel,)

so a two-hop explanation in a graph of a million nodes stays small. `feature_matrix` and
`edge_vector` are the same scores seen in the whole graph, zero elsewhere.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphgauge.core.errors import BadExplanation
from graphgauge.core.explanation_checks import check_ids, check_scores, check_target_nodes
from graphgauge.core.explanation_file import read_explanation_file, write_explanation_file
from graphgauge.core.json_types import JsonObject
from graphgauge.core.pyg_explanation import SubgraphIds, cut_pyg_masks
from graphgauge.core.registry import lookup
from graphgauge.core.target_ids import (
    IDS_PER_LEVEL,
    Target,
    canonical_label,
    canonical_target,
    target_tuple,
)
from graphgauge.core.target_view import POOLINGS, TargetView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from torch_geometric.data import Data
    from torch_geometric.explain import Explanation as PyGExplanation

    from graphgauge.models import BaseModel
    from graphgauge.narrative import Names


@dataclass(eq=False)
class Xplanation:
    """Scores of one target, with what is needed to make them again.

    The tensors are checked when it is built. Fields that say how it was made are filled by the
    explainer, ``metrics`` by the Evaluator.

    Args:
        target: Id of the node or graph, or (u, v) of a link, followed by the number of a label
            where the network gives several.
        nodes: Ids of the n scored nodes in the whole graph.  (n,) int64
        edges: Ids of the scored edges in the whole graph.  (E_rel,) int64
        num_nodes: Number N of nodes in the whole graph.
        num_edges: Number E of edges in the whole graph.
        feature_score: Scores of the features of ``nodes``, (n, F); None when the explainer scores
            edges only.
        edge_score: Scores of ``edges``, (E_rel,); None when the explainer scores features only.
        level: What the target is: "node", "link" or "graph".
        prediction: What the model predicted for the target: probabilities (C,), or a value (1,).
        explainer: Name of the explainer; with ``params`` it can be built again.
        params: Settings of the explainer.
        seed: Seed of the call that made the explanation.
        occurrence: How often that call had named the same target before; repeated targets differ
            in their random numbers.
        seconds: How long it took to explain.
        network: Digest of the network that is explained (`models.fingerprints`); "" if not known.
        metrics: Values of metrics by name.
        outcome: What an explainer without scores found (see `OtherTaskExplainer`). It can be
            anything, so `save` leaves it out.
        label: The class that was asked for; None is the predicted one.

    Raises:
        BadExplanation: The target does not fit its level, ids come twice or are out of range, or
            scores do not fit their ids.

    >>> x = Xplanation(
    ...     target=4,
    ...     nodes=torch.tensor([4, 1]),
    ...     feature_score=torch.tensor([[0.5, 0.0], [0.1, 0.2]]),
    ...     edges=torch.tensor([7]),
    ...     edge_score=torch.tensor([0.3]),
    ...     num_nodes=6,
    ...     num_edges=9,
    ... )
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
    params: JsonObject = field(default_factory=dict)
    seed: int | None = None
    occurrence: int = 0
    seconds: float | None = None
    network: str = ""
    metrics: JsonObject = field(default_factory=dict)
    outcome: Any = None
    label: int | None = None

    def __post_init__(self) -> None:
        lookup(dict.fromkeys(("node", "link", "graph")), self.level, "level of targets")
        self.target = canonical_target(self.target)
        if not 0 <= len(target_tuple(self.target)) - IDS_PER_LEVEL[self.level] <= 1:
            raise BadExplanation(
                f"target {self.target} is not a {self.level}: a pair of ids is a link, one id a "
                "node or a graph; where a network gives several labels, with the number of a "
                "label behind."
            )
        self.label = None if self.label is None else canonical_label(self.label)
        check_ids("nodes", self.nodes, self.num_nodes)
        check_target_nodes(self.target_nodes, self.nodes)
        check_ids("edges", self.edges, self.num_edges)
        check_scores("feature_score", self.feature_score, self.nodes, dims=2)
        check_scores("edge_score", self.edge_score, self.edges, dims=1)

    def __repr__(self) -> str:
        chosen = "" if self.label is None else f"label={self.label}, "
        return (
            f"Xplanation(target={self.target}, {chosen}explainer={self.explainer!r}, "
            f"features={_shape_text(self.feature_score)}, edges={_shape_text(self.edge_score)}, "
            f"metrics={len(self.metrics)})"
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
        """The same explanation with its tensors on another device.

        Args:
            device: Where to, such as "cuda" or "cpu".
        """
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

    def target_view(self, pooling: str = "max") -> TargetView:
        """The target's own feature scores, and those of all other nodes pooled per feature.

        Args:
            pooling: How the other nodes become one row: "max", "sum", "mean" or "abs_max" (the
                largest absolute value).

        Returns:
            ``target``, (1, F) for a node, (2, F) for a link, (0, F) for a graph, and
            ``neighbours``, (1, F), or (0, F) when there is no other node.
        """
        score = self.need("feature_score")
        order = [int((self.nodes == node).nonzero()) for node in self.target_nodes]
        others = torch.ones(len(self.nodes), dtype=torch.bool)
        others[order] = False
        rows = score[others.to(score.device)]
        pooled = lookup(POOLINGS, pooling, "pooling")(rows)[None] if len(rows) else rows
        return TargetView(score[order], pooled)

    def need(self, side: str) -> Tensor:
        """The scores of one side.

        Args:
            side: "feature_score" or "edge_score".

        Raises:
            BadExplanation: The explainer does not score this side.
        """
        score: Tensor | None = getattr(self, side)
        if score is None:
            raise BadExplanation(
                f"{side} of target {self.target} was asked for, but "
                f"{self.explainer or 'its explainer'} gave none. Use the other side, an explainer "
                "that scores both, or a network whose messages can be masked (model.record())."
            )
        return score

    def draw(
        self,
        data: "BaseModel | Data | Sequence[Data] | None" = None,
        names: "Names | Mapping[str, object] | None" = None,
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

    def to_pyg(self) -> "PyGExplanation":
        """As an ``Explanation`` of PyG, whose masks run over the whole graph.

        Returns:
            An explanation with ``node_mask`` (N, F) and ``edge_mask`` (E,), as far as there are
            scores.
        """
        from torch_geometric.explain import Explanation as PyGExplanation

        masks: JsonObject = {}
        if self.feature_score is not None:
            masks["node_mask"] = self.feature_matrix()
        if self.edge_score is not None:
            masks["edge_mask"] = self.edge_vector()
        sizes: JsonObject = {"num_nodes": self.num_nodes, "num_stored_edges": self.num_edges}
        if self.label is not None:
            sizes["explained_label"] = self.label
        return PyGExplanation(
            **masks, **sizes, index=torch.tensor(self.target), prediction=self.prediction
        )

    @classmethod
    def from_pyg(
        cls,
        explanation: "PyGExplanation",
        target: Target,
        graph: SubgraphIds | None = None,
        **fields: object,
    ) -> "Xplanation":
        """From an ``Explanation`` of PyG, whose masks run over the whole graph.

        Args:
            explanation: With ``node_mask``, ``edge_mask`` or both.
            target: What is explained: an id, or a pair of ids.
            graph: The target's computation graph, to which the scores are cut; None keeps all
                nodes and edges.
            **fields: Other fields of the explanation, such as ``explainer`` or ``seconds``. A pair
                of ids is taken for a link; say ``level`` where it is something else.

        Returns:
            The scores of the computation graph.
        """
        # others keep in ``prediction`` the network's raw rows, of all nodes
        is_ours = explanation.get("num_stored_edges") is not None
        details: JsonObject = {
            "prediction": explanation.get("prediction") if is_ours else None,
            "label": explanation.get("explained_label"),
            "level": "link" if isinstance(target, (list, tuple)) else "node",
            **fields,
        }
        return cls(target=target, **cut_pyg_masks(explanation, graph), **details)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file: the tensors, and the rest but ``outcome`` as JSON in its
        header. The file is complete, or it is not there.

        Args:
            path: The file.

        Raises:
            BadExplanation: ``params`` or ``metrics`` hold something that JSON cannot hold.
            BadFile: The file could not be written.
        """
        tensors = {
            name: getattr(self, name) for name in _TENSOR_FIELDS if getattr(self, name) is not None
        }
        header = {name: getattr(self, name) for name in _HEADER_FIELDS}
        write_explanation_file(path, tensors, header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Xplanation":
        """Read what `save` wrote. Nothing in the file is executed.

        Args:
            path: The file.

        Raises:
            BadFile: There is no such file, or it is not an explanation.
        """
        return read_explanation_file(path, cls)


_TENSOR_FIELDS = ("nodes", "edges", "feature_score", "edge_score", "prediction")
_HEADER_FIELDS = (
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
    "metrics",
)


def save_explanations(xs: Sequence[Xplanation], path: str | os.PathLike[str]) -> None:
    """Write several explanations into one file, as `Xplanation.save` writes one.

    Args:
        xs: The explanations.
        path: The file.

    Raises:
        BadExplanation: ``params`` or ``metrics`` hold something that JSON cannot hold.
        BadFile: The file could not be written.
    """
    tensors = {
        f"{k}/{name}": getattr(x, name)
        for k, x in enumerate(xs)
        for name in _TENSOR_FIELDS
        if getattr(x, name) is not None
    }
    headers = [{name: getattr(x, name) for name in _HEADER_FIELDS} for x in xs]
    write_explanation_file(path, tensors, {"explanations": headers})


def load_explanations(path: str | os.PathLike[str]) -> list[Xplanation]:
    """Read what `save_explanations` wrote. Nothing in the file is executed.

    Args:
        path: The file.

    Raises:
        BadFile: There is no such file, or it does not hold explanations.
    """

    def build(explanations: list[JsonObject], **tensors: Tensor) -> list[Xplanation]:
        fields: list[JsonObject] = [dict(header) for header in explanations]
        for place, tensor in tensors.items():
            number, name = place.split("/")
            fields[int(number)][name] = tensor
        return [Xplanation(**own) for own in fields]

    return read_explanation_file(path, build)


def _shape_text(score: Tensor | None) -> str:
    """The shape for people: '12 x 7', '30' or 'none'."""
    return "none" if score is None else " x ".join(map(str, score.shape))


#: the same class under the name that people expect
Explanation = Xplanation
