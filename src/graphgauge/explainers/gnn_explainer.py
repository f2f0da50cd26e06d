"""GNNExplainer (Ying et al., 2019): learns masks on features and messages that keep a prediction.

For one target with prediction y and features x, let a be the logits of the feature mask and b the
logits of the edge mask. With the entropy H(p) = -p log p - (1 - p) log(1 - p), the loss is

    misfit(f(x σ(a), messages σ(b)), y)
        + c₁ mean σ(a) + c₂ mean H(σ(a))
        + c₃ sum σ(b) + c₄ mean H(σ(b))

    misfit    -log p of the explained class, or the squared error of a regression
    c₁, c₂    node_feat_size, node_feat_ent
    c₃, c₄    edge_size, edge_ent

Adam minimises it from a ~ N(0, 0.1²), b ~ N(0, 2/N). This is the objective of PyG, with PyG's
defaults. Means and sums run over the features and edges that had a gradient in the first step; all
others get the score 0.

Masks of different targets share no term of the loss, and Adam treats each number separately. So
optimising a batch of targets gives the same result as optimising each target alone. The gradient of
the penalties is computed in closed form: d/da [p σ(a) + q H(σ(a))] = σ'(a) (p - q a).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import advance_progress
from graphgauge.execution import GraphBatch
from graphgauge.explainers.base import BaseExplainer
from graphgauge.explainers.cuda_graphs import ReplayedStep
from graphgauge.explainers.explained_class import classes_to_explain
from graphgauge.explainers.explanations import Scores
from graphgauge.explainers.mask_optimisation import (
    LearnedMask,
    LearnedScores,
    MaskedBatch,
    collect_learned_scores,
    original_predictions,
    prediction_loss,
)
from graphgauge.explainers.mask_steps import MaskSteps
from graphgauge.explainers.network_checks import can_mask_messages
from graphgauge.explainers.parameter_checks import check_finite_parameters, check_positive_integer
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraphs

_FEATURE_STD = 0.1


@dataclass(frozen=True)
class GNNExplainer(BaseExplainer):
    """Masks on features and edges, learned to keep the prediction while they become small and hard.

    The parameters have the names and default values of PyG's GNNExplainer. Scores are mask values
    in [0, 1].

    Args:
        epochs: Steps of the optimisation.
        lr: Learning rate of Adam.
        edge_size: Weight of the sum of the edge mask.
        edge_ent: Weight of the mean entropy of the edge mask.
        node_feat_size: Weight of the mean of the feature mask.
        node_feat_ent: Weight of the mean entropy of the feature mask.

    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> explanation = gg.GNNExplainer(epochs=10).explain(model, [2], seed=1)[0]
    >>> explanation.feature_score.shape, explanation.edge_score.shape  # (n, F), (E_rel,)
    (torch.Size([3, 4]), torch.Size([2]))
    """

    name = "gnn_explainer"
    signed = False
    deterministic = False
    lean = True
    explains_labels = True
    epochs: int = 100
    lr: float = 0.01
    edge_size: float = 0.005
    edge_ent: float = 1.0
    node_feat_size: float = 1.0
    node_feat_ent: float = 0.1

    def __post_init__(self) -> None:
        check_positive_integer("epochs", self.epochs)
        check_finite_parameters(
            self, "lr", "edge_size", "edge_ent", "node_feat_size", "node_feat_ent"
        )

    @property
    def needs_masks(self) -> bool:
        """True: edge scores are learned as factors on messages."""
        return True

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Optimise the masks of all targets together.

        Args:
            model: The wrapped network.
            graphs: The computation graphs of T targets.
            seeds: T seeds; the masks of graph k start at random numbers from ``seeds[k]``.
        """
        optimise = self._optimiser(model, graphs, seeds)
        return collect_learned_scores(
            model,
            graphs,
            lambda union: optimise(union, self.epochs),
            lambda union: optimise(union, 1),
            self.name,
        )

    def _optimiser(
        self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]
    ) -> Callable[[GraphBatch, int], LearnedScores]:
        """Return a function that learns the masks of a batch in a given number of epochs."""
        label, value = classes_to_explain(model, graphs), original_predictions(model, graphs)
        std, with_edges = _initial_edge_std(model, graphs), can_mask_messages(model)

        def optimise(union: GraphBatch, epochs: int) -> LearnedScores:
            copies = MaskedBatch(model, union, with_edges)
            masks = self._masks(
                copies, [seeds[k] for k in union.graph_index.tolist()], std[union.graph_index]
            )
            steps = MaskSteps(copies, masks, self.lr)
            target_label = None if label is None else label[union.graph_index]
            target_value = value[union.graph_index]

            def step() -> None:
                steps.write_gates()
                with torch.enable_grad():
                    raw = model.executor.outputs(copies.edited)
                    loss = prediction_loss(model, raw, target_label, target_value).sum()
                    gradients = copies.leaf_gradients(loss)
                steps.update(gradients)

            replay = ReplayedStep(step, copies.value.device)
            for _ in range(epochs):
                replay()
                advance_progress(len(union) / self.epochs)
            return copies.scores(*(mask.score() for mask in masks))

        return optimise

    def _masks(self, copies: MaskedBatch, seeds: list[int], std: Tensor) -> list[LearnedMask]:
        """The randomly initialised masks of features and, if messages can be masked, of edges."""
        features, edges, like = copies.features, copies.edges, copies.value
        start = _FEATURE_STD * features.drawn(seeds, "features", like)
        masks = [
            LearnedMask(features, start, self.node_feat_size, self.node_feat_ent, mean_size=True)
        ]
        if edges is not None:
            start = std.to(like)[edges.copy] * edges.drawn(seeds, "edges", like)
            masks.append(LearnedMask(edges, start, self.edge_size, self.edge_ent, mean_size=False))
        return masks


def _initial_edge_std(model: BaseModel, graphs: ComputationGraphs) -> Tensor:
    """Standard deviation sqrt(2 / N) of PyG's initial edge logits. (T,)

    N is the number of nodes of the whole graph.
    """
    num_nodes = graphs.num_nodes
    if model.level != "graph":
        num_nodes = torch.full_like(num_nodes, graphs.source.num_nodes)
    return (2 / num_nodes.double()).sqrt()
