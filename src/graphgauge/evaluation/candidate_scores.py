"""Scores of explanations as the orders of edits need them: one number per candidate, in the model's
own listing.

Explanations made elsewhere may list other nodes and edges (the whole graph, say). What they do not
list has score 0; what the computation graph does not have is left out.
"""

import torch
from torch import Tensor

from graphgauge.core import POOLINGS, BadExplanation, Xplanation, all_finite
from graphgauge.subgraphs import ComputationGraph

NO_SCORES, NAN_ATTRIBUTION, EMPTY = "no_scores", "nan_attribution", "empty"


def _align_rows(score: Tensor, ids: Tensor, wanted: Tensor) -> Tensor:
    """The rows of ``score`` (m, ...) that belong to ``wanted`` (n,); 0 where ``ids`` (m,) does not
    have them.  (n, ...)

    >>> _align_rows(torch.tensor([0.5, 0.7]), torch.tensor([9, 4]), torch.tensor([4, 5]))
    tensor([0.7000, 0.0000])
    """
    if torch.equal(ids, wanted) or not len(ids):
        return score if len(ids) == len(wanted) else score.new_zeros(len(wanted), *score.shape[1:])
    order = ids.argsort()
    place = torch.searchsorted(ids[order], wanted).clamp(max=len(ids) - 1)
    row = order[place]
    is_there = (ids[row] == wanted).view(-1, *[1] * (score.dim() - 1))
    return torch.where(is_there, score[row], 0)


def score_status(score: Tensor | None, count: int) -> str:
    """Why scores cannot be judged: 'empty', 'no_scores', 'nan_attribution'; '' if they can."""
    if count == 0:
        return EMPTY
    if score is None:
        return NO_SCORES
    return "" if all_finite(score) else NAN_ATTRIBUTION


def edge_scores(x: Xplanation, graph: ComputationGraph) -> Tensor:
    """Scores of the relevant edges.  (E_rel,)"""
    check_same_graph("edges", x.num_edges, graph.num_source_edges, x)
    score = x.need("edge_score").to(graph.edges.device, torch.float64)
    return _align_rows(score, x.edges.to(graph.edges), graph.edges)


def feature_scores(x: Xplanation, graph: ComputationGraph) -> Tensor:
    """Scores of the features of all nodes within reach.  (n, F)"""
    check_same_graph("nodes", x.num_nodes, graph.num_source_nodes, x)
    score = x.need("feature_score").to(graph.nodes.device, torch.float64)
    check_same_graph("features", score.size(1), graph.batch.source.x.size(1), x)
    return _align_rows(score, x.nodes.to(graph.nodes), graph.nodes)


def check_same_graph(what: str, found: int, wanted: int, x: Xplanation) -> None:
    """Raise BadExplanation for scores of another graph.

    Args:
        what: What is counted, for the message: "nodes", "edges" or "features".
        found: How many of them the graph of the explanation has.
        wanted: How many of them the model's graph has.
        x: The explanation.
    """
    if found != wanted:
        raise BadExplanation(
            f"an explanation of target {x.target} by {x.explainer or 'an unnamed explainer'} is "
            f"of a graph with {found} {what}, but the model's has {wanted}: evaluate it with the "
            "model that it explains."
        )


def priority_vector(score: Tensor, target_rows: Tensor, pooling: str) -> Tensor:
    """The paper's priority vector: the target's own scores, and those of all other nodes pooled.

    Args:
        score: Scores of the features of all n nodes within reach (n, F).
        target_rows: Rows of the target's own nodes: one for a node, two for a link, none for a
            graph.
        pooling: How the scores of the other nodes become one row: a name in `POOLINGS`.

    Returns:
        Scores (candidates,): F for each of the target's own nodes, then F for all other nodes, if
        there are any.
    """
    is_end = torch.zeros(len(score), dtype=torch.bool, device=score.device).index_fill(
        0, target_rows, True
    )
    others = score[~is_end]
    pooled = [POOLINGS[pooling](others)] if len(others) else []
    return torch.cat([score[target_rows].flatten(), *pooled])
