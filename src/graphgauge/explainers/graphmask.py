"""GraphMask (Schlichtkrull et al., 2021): gates that drop messages while the prediction stays.

For one target with prediction f, let z_r,e be the gate on the message of edge e in round r (see
`gates`), which replaces the message by a learned baseline when it closes, and a the logits of a
feature mask. Over the gates, a and a multiplier λ, GraphMask solves

    max over λ, min over gates and a:

        c₀ Σ_r mean_e P(z_r,e > 0)
          + softplus(λ) (D(f, f gated) / D₀ - allowance)
          + c₁ mean σ(a) + c₂ mean H(σ(a))

    c₀        penalty_scaling
    c₁, c₂    node_feat_size, node_feat_ent
    H         the entropy of a coin

D is the divergence KL(f || f gated) of class probabilities, or for regression the squared
difference in standard deviations of the predictions. If a class is explained that is not predicted,
D compares the probability of that class and the probability of all others together. D₀ is D with
all gates closed and no features, so that the allowance has the same meaning for certain and
uncertain predictions.

Gates are learned from the last round of messages to the first, ``epochs`` steps for each round;
gates of later rounds continue to be learned, and λ lasts for the whole optimisation. Means run over
the gates and features with a nonzero gradient. The score of an edge is its mean open probability
over the rounds in which it matters: a number between 0 and 1 that ranks edges, not a count of open
gates.

The feature mask is an addition of PyG. Explaining one target at a time has two consequences. The
gates are free numbers, which is the paper's variant without amortisation. And the baselines, which
the paper shares between all examples, must not be learned on the target alone: there they take over
the prediction and every gate closes (on BA-Shapes the mean gate is 0.00 while D < 0.1 for all
targets). So they are learned once for a network, on a sample of its population, with gates closed
at random.

``variant="pyg"`` does what PyG's code does, in which nothing is trained; see `graphmask_pyg`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from graphgauge.core import BadSetting, advance_progress
from graphgauge.execution import GraphBatch
from graphgauge.explainers.base import BaseExplainer, target_output
from graphgauge.explainers.cuda_graphs import ReplayedStep
from graphgauge.explainers.explained_class import classes_to_explain
from graphgauge.explainers.explanations import Scores
from graphgauge.explainers.graphmask_baselines import learn_baselines
from graphgauge.explainers.graphmask_divergence import prediction_divergence, unpredicted_labels
from graphgauge.explainers.graphmask_pyg import check_gates_are_untrained, score_with_random_gates
from graphgauge.explainers.mask_optimisation import (
    LearnedMask,
    LearnedScores,
    MaskedBatch,
    collect_learned_scores,
    original_predictions,
    relevant_edge_entries,
)
from graphgauge.explainers.mask_steps import MaskSteps
from graphgauge.explainers.message_gates import (
    GatedMessages,
    GateNoise,
    open_probability,
    record_message_rounds,
    sample_hard_concrete,
)
from graphgauge.explainers.network_checks import can_mask_messages, check_precision
from graphgauge.explainers.parameter_checks import check_finite_parameters, check_positive_integer
from graphgauge.models import (
    BaseModel,
)
from graphgauge.subgraphs import ComputationGraphs

_FEATURE_STD, _FEATURE_LR = 0.1, 0.01
_GATE_START = 2.0
_LAMBDA_RANGE = (-2.0, 30.0)


@dataclass(frozen=True)
class GraphMask(BaseExplainer):
    """Learns gates on messages and a mask on features; parameters have the names that PyG uses.

    The default values of the Lagrangian differ from PyG's (5, 0.55, 0.01), with which the penalty
    wins before λ has grown: on BA-Shapes D then ends above 0.1 for all of 50 targets, with the
    values here for none.

    Args:
        epochs: Steps for each round of messages.
        lr: Learning rate of the gates.
        penalty_scaling: Weight of the open gates.
        allowance: Divergence that is allowed, as a share of D₀.
        init_lambda: Initial multiplier.
        lambda_optimizer_lr: Learning rate of the multiplier.
        node_feat_size: Weight of the mean of the feature mask.
        node_feat_ent: Weight of the mean entropy of the feature mask.
        variant: "default", or "pyg" for comparison with results of PyG's implementation.

    >>> import torch, graphgauge as gg
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
    >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
    >>> explanation = gg.GraphMask(epochs=10).explain(model, [2], seed=1)[0]
    >>> explanation.feature_score.shape, explanation.edge_score.shape  # (n, F), (E_rel,)
    (torch.Size([3, 4]), torch.Size([2]))
    """

    name = "graphmask"
    signed = False
    deterministic = False
    epochs: int = 100
    lr: float = 0.05
    penalty_scaling: float = 1.0
    allowance: float = 0.03
    init_lambda: float = 3.0
    lambda_optimizer_lr: float = 0.05
    node_feat_size: float = 1.0
    node_feat_ent: float = 0.1
    variant: Literal["default", "pyg"] = "default"

    def __post_init__(self) -> None:
        check_positive_integer("epochs", self.epochs)
        check_finite_parameters(
            self,
            "lr",
            "penalty_scaling",
            "allowance",
            "lambda_optimizer_lr",
            "node_feat_size",
            "node_feat_ent",
        )
        check_finite_parameters(self, "init_lambda", least=_LAMBDA_RANGE[0])
        if self.variant not in ("default", "pyg"):
            raise BadSetting(f"variant must be 'default' or 'pyg', but {self.variant!r} was given.")

    @property
    def lean(self) -> bool:
        """False for PyG's variant, which looks at all messages."""
        return self.variant == "default"

    @property
    def explains_labels(self) -> bool:
        """False for PyG's variant, which looks at no class."""
        return self.variant == "default"

    @property
    def needs_masks(self) -> bool:
        """True: edge scores are learned as gates on messages."""
        return True

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Optimise the gates and masks of all targets together."""
        check_precision("GraphMask", model)
        if self.variant == "pyg":
            check_gates_are_untrained(model)

            def work(union: GraphBatch) -> LearnedScores:
                return score_with_random_gates(
                    model, union, [seeds[k] for k in union.graph_index.tolist()]
                )

            return collect_learned_scores(model, graphs, work, work, f"{self.name}, pyg")
        optimise = self.optimiser(model, graphs, seeds)
        return collect_learned_scores(
            model,
            graphs,
            lambda union: optimise(union, self.epochs),
            lambda union: optimise(union, 0),
            self.name,
        )

    def optimiser(
        self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]
    ) -> Callable[[GraphBatch, int], LearnedScores]:
        """Return a function that learns the gates of a batch in a given number of epochs per round.

        With 0 epochs the function takes one step with the gates of all rounds.

        Args:
            model: The wrapped network.
            graphs: The computation graphs of T targets, of which batches are made.
            seeds: T seeds, one for each target: of the start of its feature mask and of the noise
                of its gates.
        """
        label, first = classes_to_explain(model, graphs), original_predictions(model, graphs)
        chosen = (
            None if graphs.chosen_class is None else unpredicted_labels(first, graphs.chosen_class)
        )
        baselines: list[Tensor] = []
        if can_mask_messages(model):
            baselines = model.cached_fact("graphmask baselines", lambda: learn_baselines(model))

        def optimise(union: GraphBatch, epochs: int) -> LearnedScores:
            copy_seeds = [seeds[k] for k in union.graph_index.tolist()]
            optimisation = _GraphMaskOptimisation(self, model, union, copy_seeds, baselines)
            optimisation.find_alive(None if label is None else label[union.graph_index])
            optimisation.chosen = None if chosen is None else chosen[union.graph_index]
            optimisation.learn(first[union.graph_index], epochs)
            return optimisation.scores()

        return optimise


class _GraphMaskOptimisation:
    """The optimisation of the gates and feature masks of one batch.

    ``chosen`` holds the classes that are explained though others are predicted; see
    `prediction_divergence`.
    """

    chosen: Tensor | None = None

    def __init__(
        self,
        settings: GraphMask,
        model: BaseModel,
        union: GraphBatch,
        seeds: list[int],
        baselines: list[Tensor],
    ) -> None:
        self.settings, self.model, self.union = settings, model, union
        self.seeds, self.baselines = seeds, baselines
        self.copies = MaskedBatch(model, union, with_edges=False)
        start = _FEATURE_STD * self.copies.features.drawn(seeds, "features", self.copies.value)
        self.mask = LearnedMask(
            self.copies.features,
            start,
            settings.node_feat_size,
            settings.node_feat_ent,
            mean_size=True,
        )
        self.edges = relevant_edge_entries(union, union.align)
        self.rounds = (
            record_message_rounds(model, self.copies.edited, self.edges) if baselines else []
        )
        self.logits = [
            self.copies.value.new_full((self.edges.size,), _GATE_START).requires_grad_(True)
            for _ in self.rounds
        ]
        self.is_alive: list[Tensor] = []
        self.shares: list[Tensor] = []

    def run(self, gates: dict[int, Tensor]) -> Tensor:
        """Raw outputs with masked features, and with gates (size,) in the given rounds. (K,
        columns)
        """
        of_edges = {number: gate.index_select(0, self.edges.slot) for number, gate in gates.items()}
        edit = GatedMessages(self.rounds, of_edges, self.baselines) if of_edges else None
        return self.model.executor.outputs(self.copies.edited, edit)

    def find_alive(self, label: Tensor | None) -> None:
        """Find the gates and features that matter: those with a nonzero gradient."""
        self.copies.set_gates(self.mask.gates())
        with torch.enable_grad():
            opened = [torch.ones_like(logit, requires_grad=True) for logit in self.logits]
            output = target_output(
                self.model, self.run(dict(enumerate(opened))), label, "logit"
            ).sum()
            for_x, *for_gates = torch.autograd.grad(
                output, [self.copies.leaf, *opened], materialize_grads=True
            )
        self.mask.start_penalties(self.copies.at_places(for_x) != 0)
        self.is_alive = [gradient != 0 for gradient in for_gates]

    def learn(self, first: Tensor, epochs: int) -> None:
        """Learn from the last round to the first, ``epochs`` steps each."""
        settings = self.settings
        self.worst = self.divergence_of_nothing(first)
        self.shares = [self.share(is_alive) for is_alive in self.is_alive]
        stages = [
            stage for stage in reversed(range(max(len(self.rounds), 1))) for _ in range(epochs)
        ] or [0]
        # A padded shape, so that the optimiser gives the same bits for any number of copies.
        padded = (-(-len(self.union) // 8) * 8, 16)
        multiplier = self.copies.value.new_full(padded, settings.init_lambda).requires_grad_(True)
        on_gpu = multiplier.is_cuda
        self.mask_steps = MaskSteps(self.copies, [self.mask], _FEATURE_LR)
        adams = []
        if self.logits:
            adams = [torch.optim.Adam(self.logits, lr=settings.lr, fused=True, capturable=on_gpu)]
        ascent = torch.optim.RMSprop(
            [multiplier],
            lr=settings.lambda_optimizer_lr,
            centered=True,
            maximize=True,
            capturable=on_gpu,
        )
        noise = GateNoise(self.edges, self.seeds, len(self.rounds), self.copies.value)

        def step(stage: int) -> None:
            noise.draw(stage)
            self.set_gradients(first, stage, noise.uniform, multiplier)
            for adam in adams:
                adam.step()
            ascent.step()
            with torch.no_grad():
                multiplier.clamp_(*_LAMBDA_RANGE)

        replays = {stage: ReplayedStep(partial(step, stage), multiplier.device) for stage in stages}
        for number, stage in enumerate(stages):
            noise.step.fill_(number)
            replays[stage]()
            advance_progress(len(self.union) / len(stages))

    def set_gradients(self, first: Tensor, stage: int, uniform: Tensor, multiplier: Tensor) -> None:
        """Take the step of the feature mask, and compute all other gradients of one step, in which
        rounds from ``stage`` on have gates.
        """
        self.mask_steps.write_gates()
        learning = dict(enumerate(self.logits[stage:], start=stage))
        with torch.enable_grad():
            raw = self.run(
                {
                    number: sample_hard_concrete(logit, uniform[number])
                    for number, logit in learning.items()
                }
            )
            excess = (
                prediction_divergence(self.model, first, raw, self.chosen) / self.worst
                - self.settings.allowance
            )
            loss = (softplus(multiplier)[: len(excess), 0] * excess).sum()
            for number, logit in learning.items():
                loss = (
                    loss
                    + self.settings.penalty_scaling
                    * (open_probability(logit) * self.shares[number]).sum()
                )
            leaves = [self.copies.leaf, multiplier, *learning.values()]
            for_x, *others = torch.autograd.grad(loss, leaves, materialize_grads=True)
        self.mask_steps.update([for_x])
        for leaf, gradient in zip(leaves[1:], others, strict=True):
            leaf.grad = gradient

    @torch.no_grad()
    def divergence_of_nothing(self, first: Tensor) -> Tensor:
        """D₀: the divergence with all features 0 and all gates closed. (K,)

        It is replaced by 1 where it is 0 up to rounding.
        """
        self.copies.set_gates(torch.zeros_like(self.mask.logit))
        nothing = self.run({k: torch.zeros_like(logit) for k, logit in enumerate(self.logits)})
        worst = prediction_divergence(self.model, first, nothing, self.chosen)
        return torch.where(worst > torch.finfo(worst.dtype).eps, worst, 1)

    def share(self, is_alive: Tensor) -> Tensor:
        """Weight of each gate in the mean over its copy's gates that matter. (size,)"""
        return (
            is_alive
            / self.edges.counted(is_alive).clamp(min=1).to(self.copies.value)[self.edges.copy]
        )

    @torch.no_grad()
    def scores(self) -> LearnedScores:
        """Scores of the features and edges of the batch."""
        union, at, feature, edge = self.copies.scores(self.mask.score())
        if self.rounds:
            is_alive = torch.stack(self.is_alive).to(edge)
            opened = torch.stack([open_probability(logit) for logit in self.logits]) * is_alive
            edge[self.edges.at] = (opened.sum(0) / is_alive.sum(0).clamp(min=1))[self.edges.slot]
        return union, at, feature, edge
