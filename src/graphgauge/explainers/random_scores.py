"""Random scores: the baseline of an explanation that knows nothing."""

from dataclasses import dataclass

import torch

from graphgauge.core import advance_progress, make_generator
from graphgauge.explainers.base import BaseExplainer, Scores, zero_edge_scores, zero_feature_scores
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraphs


@dataclass(frozen=True)
class RandomExplainer(BaseExplainer):
    """Independent normal scores for features and edges, drawn on the CPU from each target's own
    seed.

    The Evaluator ranks the feature candidates of this baseline at random instead of by its scores,
    because pooling random scores over the neighbours would not give a random order.

    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> explanation = gg.RandomExplainer().explain(model, [2], seed=1)[0]
    >>> explanation.feature_score.shape, explanation.edge_score.shape  # (n, F), (E_rel,)
    (torch.Size([3, 4]), torch.Size([2]))
    """

    name = "random"
    signed = True
    deterministic = False
    explains_labels = True  # its scores do not depend on the class

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Draw scores without running the network."""
        feature, edge = zero_feature_scores(graphs), zero_edge_scores(graphs)
        for seed, graph in zip(seeds, graphs, strict=True):
            stream = make_generator(seed)
            for score, rows in ((feature, graph.node_slice), (edge, graph.edge_slice)):
                score[rows] = torch.randn(score[rows].shape, generator=stream).to(score)
            advance_progress(1)
        return Scores(feature, edge)
