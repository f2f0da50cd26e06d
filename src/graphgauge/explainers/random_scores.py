"""Random scores: what an explanation is worth that knows nothing."""

from dataclasses import dataclass

import torch

from graphgauge.core.progress import advance
from graphgauge.core.seeds import generator
from graphgauge.explainers.base import BaseExplainer, Scores, empty_edges, empty_features
from graphgauge.models import BaseModel, ComputationGraphs


@dataclass(frozen=True)
class RandomExplainer(BaseExplainer):
    """Independent normal scores for features and edges, drawn on the CPU from each target's own
    seed.

    The Evaluator ranks the feature candidates of this baseline at random, whatever the scores:
    pooled over the neighbours, random scores of nodes are no random order.
    """

    name = "random"
    signed = True
    deterministic = False
    explains_labels = True  # it knows as little of any class

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """No pass at all."""
        feature, edge = empty_features(graphs), empty_edges(graphs)
        for seed, graph in zip(seeds, graphs, strict=True):
            stream = generator(seed)
            feature[graph.node_slice] = torch.randn(
                feature[graph.node_slice].shape, generator=stream
            ).to(feature)
            edge[graph.edge_slice] = torch.randn(edge[graph.edge_slice].shape, generator=stream).to(
                edge
            )
            advance(1)
        return Scores(feature, edge)
