"""Support for explainers that can only explain one target at a time."""

from collections.abc import Callable

import torch
from torch import Tensor

from graphgauge.core.errors import BadExplanation
from graphgauge.core.progress import advance
from graphgauge.core.xplanation import Target
from graphgauge.explainers.base import Scores, empty_edges, empty_features
from graphgauge.models import BaseModel, ComputationGraph, ComputationGraphs
from graphgauge.models.guard import untouched

OBJECT = "object of "  #: prefix in params for an algorithm or function that cannot be imported
#: explains one target: (computation graph, seed) -> (feature scores, edge scores) of that graph
OneByOne = Callable[[ComputationGraph, int], tuple[Tensor | None, Tensor | None]]


def one_by_one(
    model: BaseModel, graphs: ComputationGraphs, seeds: list[int], explain: OneByOne
) -> Scores:
    """Explain graphs one after another and pack their scores.

    After each target the network is checked to be what it was before.
    """
    feature, edge = empty_features(graphs), empty_edges(graphs)
    has: set[tuple[bool, bool]] = set()
    for graph, seed in zip(graphs, seeds, strict=True):
        with untouched(model.net), torch.enable_grad():
            feature_score, edge_score = explain(graph, seed)
        has.add((feature_score is not None, edge_score is not None))
        check_same_sides(has, graph.target)
        if feature_score is not None:
            feature[graph.node_slice][: len(graph.nodes)] = feature_score.to(feature)
        if edge_score is not None:
            edge[graph.edge_slice][: len(graph.edges)] = edge_score.to(edge)
        advance(1)
    with_features, with_edges = next(iter(has), (True, True))
    return Scores(feature if with_features else None, edge if with_edges else None)


def check_same_sides(has: set[tuple[bool, bool]], target: Target) -> None:
    """Raise BadExplanation if only some targets have feature scores, or edge scores."""
    if len(has) > 1:
        raise BadExplanation(
            f"target {target} has scores of other kinds than the targets before it. Give feature "
            "scores for all targets or for none, and edge scores for all or for none."
        )
