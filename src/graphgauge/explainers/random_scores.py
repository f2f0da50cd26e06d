"""Random scores: the baseline of an explanation that knows nothing."""

from dataclasses import dataclass

import torch

from graphgauge.core import advance_progress
from graphgauge.explainers.base import BaseExplainer
from graphgauge.explainers.explanations import Scores
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
        width = graphs.source.x.size(1)
        node_ptr, edge_ptr = graphs.pointer_lists
        feature, edge = torch.empty(node_ptr[-1], width), torch.empty(edge_ptr[-1])
        stream = torch.Generator()
        for k, seed in enumerate(seeds):
            stream.manual_seed(seed)
            torch.randn(
                (node_ptr[k + 1] - node_ptr[k], width),
                generator=stream,
                out=feature[node_ptr[k] : node_ptr[k + 1]],
            )
            torch.randn(
                edge_ptr[k + 1] - edge_ptr[k],
                generator=stream,
                out=edge[edge_ptr[k] : edge_ptr[k + 1]],
            )
            advance_progress(1)
        return Scores(feature.to(graphs.source.x), edge.to(graphs.source.x))
