"""Support for explainers that can only explain one target at a time."""

from collections.abc import Callable

import torch
from torch import Tensor

from graphgauge.core import BadExplanation, Target, advance_progress
from graphgauge.explainers.base import zero_edge_scores, zero_feature_scores
from graphgauge.explainers.explanations import Scores
from graphgauge.models import BaseModel, preserve_network
from graphgauge.subgraphs import ComputationGraph, ComputationGraphs

OBJECT_PREFIX = (
    "object of "  #: prefix in params for an algorithm or function that cannot be imported
)
#: explains one target: (computation graph, seed) -> (feature scores, edge scores) of that graph
_ExplainTarget = Callable[[ComputationGraph, int], tuple[Tensor | None, Tensor | None]]


def explain_sequentially(
    model: BaseModel, graphs: ComputationGraphs, seeds: list[int], explain: _ExplainTarget
) -> Scores:
    """Explain graphs one after another and pack their scores.

    After each target the network is checked to be what it was before.
    """
    feature, edge = zero_feature_scores(graphs), zero_edge_scores(graphs)
    has: set[tuple[bool, bool]] = set()
    for graph, seed in zip(graphs, seeds, strict=True):
        with preserve_network(model.net), torch.enable_grad():
            feature_score, edge_score = explain(graph, seed)
        has.add((feature_score is not None, edge_score is not None))
        _check_same_score_kinds(has, graph.target)
        if feature_score is not None:
            feature[graph.node_slice][: len(graph.nodes)] = feature_score.to(feature)
        if edge_score is not None:
            edge[graph.edge_slice][: len(graph.edges)] = edge_score.to(edge)
        advance_progress(1)
    with_features, with_edges = next(iter(has), (True, True))
    return Scores(feature if with_features else None, edge if with_edges else None)


def _check_same_score_kinds(has: set[tuple[bool, bool]], target: Target) -> None:
    """Raise BadExplanation if only some targets have feature scores, or edge scores."""
    if len(has) > 1:
        raise BadExplanation(
            f"target {target} has scores of other kinds than the targets before it. Give feature "
            "scores for all targets or for none, and edge scores for all or for none."
        )
