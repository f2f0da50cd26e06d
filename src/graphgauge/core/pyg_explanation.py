"""Scores out of an ``Explanation`` of PyG, whose masks run over the whole graph."""

from typing import TYPE_CHECKING, Protocol, TypedDict

import torch
from torch import Tensor

from graphgauge.core.errors import BadExplanation

if TYPE_CHECKING:
    from torch_geometric.explain import Explanation


class SubgraphIds(Protocol):
    """What is needed of a computation graph: the ids of its nodes and edges in the whole graph."""

    @property
    def nodes(self) -> Tensor: ...
    @property
    def edges(self) -> Tensor: ...


class SubgraphScores(TypedDict):
    """The fields of an `Xplanation` that say which nodes and edges are scored, and how."""

    nodes: Tensor
    edges: Tensor
    num_nodes: int
    num_edges: int
    feature_score: Tensor | None
    edge_score: Tensor | None


def cut_pyg_masks(explanation: "Explanation", graph: SubgraphIds | None) -> SubgraphScores:
    """The masks of a PyG explanation, cut to a computation graph.

    Args:
        explanation: With ``node_mask``, ``edge_mask`` or both, over the whole graph.
        graph: The computation graph of the target; None keeps all nodes and edges.
    """
    edge_score, num_edges = explanation.get("edge_mask"), _count_stored_edges(explanation)
    num_nodes = int(explanation.num_nodes or 0)
    feature_score = _full_node_mask(explanation, num_nodes)
    nodes = torch.arange(num_nodes) if graph is None else graph.nodes
    edges = torch.arange(num_edges) if graph is None else graph.edges
    return SubgraphScores(
        nodes=nodes,
        edges=edges,
        num_nodes=num_nodes,
        num_edges=num_edges,
        feature_score=_select_scores("nodes", feature_score, nodes),
        edge_score=_select_scores("edges", edge_score, edges),
    )


def _select_scores(name: str, score: Tensor | None, ids: Tensor) -> Tensor | None:
    """The scores of these ids; refuses ids that the whole graph does not have."""
    if score is not None and len(ids) and int(ids.max()) >= len(score):
        raise BadExplanation(
            f"graph names {name} up to {int(ids.max())}, "
            f"but the explanation has {len(score)}: another graph's?"
        )
    return None if score is None else score[ids]


def _full_node_mask(explanation: "Explanation", num_nodes: int) -> Tensor | None:
    """PyG's node mask as (N, F).

    It may come with one column (whole nodes) or one row (one score per feature).
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
