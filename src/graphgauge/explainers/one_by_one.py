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

OBJECT = "object of "  #: how params name an algorithm or function that was handed over as an object
#: how one target is explained: its computation graph and its seed in, its sides out, cut to the
#: computation graph
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
    """Raise BadExplanation if only some targets have feature scores, or edge scores."""
    if len(has) > 1:
        raise BadExplanation(
            f"target {target} got other sides than the targets before it: features and edges for all, or for none."
        )
