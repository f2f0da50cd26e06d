"""The base class of all explainers, which explain a list of targets of one model.

A subclass is a frozen dataclass whose fields are its parameters. It implements one method,
`scores`, for a batch of computation graphs, so that all targets share the passes through the
network. A target that is listed twice gets two explanations, each with a seed of its own.
"""

import time
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

from torch import Tensor

from graphgauge.core import (
    BadExplanation,
    BadSetting,
    GraphgaugeWarning,
    JsonObject,
    Target,
    Xplanation,
    all_finite,
    check_seed,
    derive_seed,
    progress_bar,
    warn_renamed,
)
from graphgauge.explainers.edge_score_warnings import warn_about_missing_edge_scores
from graphgauge.explainers.explained_class import LabelsLike, parse_labels
from graphgauge.explainers.explanations import (
    ExplanationOrigin,
    Explanations,
    Scores,
    check_ids_in_range,
)
from graphgauge.explainers.network_checks import check_wrapped_model
from graphgauge.models import BaseModel, borrow_network, digest_of_network
from graphgauge.subgraphs import ComputationGraphs, Targets, TargetsLike


@dataclass(frozen=True)
class BaseExplainer(ABC):
    """Explains the predictions of a model.

    A subclass sets three class attributes and implements `scores`: ``name``, under which
    explanations are stored; ``signed``, whether scores have a direction (negative ones speak
    against the prediction); ``deterministic``, whether the seed has no effect.

        >>> from dataclasses import dataclass
        >>> import torch, graphgauge as gg
        >>> from graphgauge.explainers import Scores
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import GCN
        >>> @dataclass(frozen=True)
        ... class FeatureSize(gg.BaseExplainer):
        ...     name, signed, deterministic = "feature_size", False, True
        ...     power: float = 1.0
        ...
        ...     def scores(self, model, graphs, seeds):
        ...         return Scores(graphs.source.x[graphs.node].abs() ** self.power, None)
        >>> data = Data(x=torch.rand(6, 4), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))
        >>> model = gg.NodeClassificationModel(GCN(4, 8, 2, 3), data, output="logits")
        >>> FeatureSize(power=2.0).explain(model, [2])[0].feature_score.shape
        torch.Size([3, 4])
    """

    name: ClassVar[str]
    signed: ClassVar[bool]
    deterministic: ClassVar[bool]

    @property
    def params(self) -> JsonObject:
        """The parameters that rebuild this explainer: ``type(explainer)(**explainer.params)``."""
        return asdict(self)

    @property
    def lean(self) -> bool:
        """Whether `scores` accepts computation graphs without the edges that only set node degrees.

        Such graphs are smaller. The explainer must neither score nor remove these edges.
        """
        return False

    @property
    def needs_masks(self) -> bool:
        """Whether edges get scores only if single messages of the network can be multiplied."""
        return False

    @property
    def explains_labels(self) -> bool:
        """Whether a class other than the predicted one can be explained.

        If so, `scores` explains ``graphs.chosen_class``.
        """
        return False

    def explain(
        self, model: BaseModel, targets: TargetsLike, seed: int = 0, label: LabelsLike = None
    ) -> Sequence[Xplanation]:
        """Explain the predictions for all targets in one batch.

        Args:
            model: The wrapped network.
            targets: What to explain: nodes, pairs of nodes for links, or graph numbers.
            seed: Seed of all random draws.
            label: The class whose probability is explained. By default, and with "predicted", the
                predicted class; with "true", the class in the data; a number or a name in
                ``data.class_names`` means that class; a list or tensor has one entry for each
                target.

        Returns:
            One explanation for each target, in the order of the targets; see `Explanations`.
            ``seconds`` of each is its share of the time of the batch, without the time to extract
            the computation graphs.

        Raises:
            BadModel: The network is not wrapped, or the explainer cannot handle it.
            BadTarget: A target does not exist.
            BadSetting: The seed or the label is not valid.
        """
        seed = check_seed(seed)
        with check_wrapped_model(model).session(), borrow_network(model, self.name):
            warn_about_missing_edge_scores(model, [self], stacklevel=3)
            targets = model.parse_targets(targets)
            chosen = parse_labels(model, targets, label)
            if chosen is None:
                return self.explain_in_session(model, targets, seed)
            return self.explain_in_session(
                model, targets, seed, self._check_label(model, targets, chosen)
            )

    def recompute(self, model: BaseModel, x: Xplanation) -> Xplanation:
        """Compute a stored explanation again; with the same model it has the same scores.

        Args:
            model: The wrapped network that was explained.
            x: The explanation. Its target, seed and class are used, and its number among the
                explanations of the same target in one call.
        """
        chosen = {} if x.label is None else {"label": x.label}
        return self.explain(model, [x.target] * (x.occurrence + 1), seed=x.seed or 0, **chosen)[-1]

    def again(self, model: BaseModel, x: Xplanation) -> Xplanation:
        """Do the same as `recompute`, which is this method's new name.

        Args:
            model: The wrapped network that was explained.
            x: The explanation.
        """
        warn_renamed("BaseExplainer.again", "recompute")
        return self.recompute(model, x)

    def _check_label(self, model: BaseModel, targets: Targets, label: Tensor) -> Tensor:
        """Return the classes to explain, or raise BadSetting if the explainer cannot. (T,) -> (T,)

        All explainers explain predicted classes; other classes need `explains_labels`.
        """
        other = (
            []
            if self.explains_labels
            else (label != model.pred_discrete(targets)).nonzero()[:, 0].tolist()
        )
        if other:
            (target,) = targets[other[:1]]
            raise BadSetting(
                f"{self.name} explains the predicted class only, but class {int(label[other[0]])} "
                f"was asked for target {target}, which is not predicted. Leave label out, or use "
                "an explainer that can, such as gg.Saliency()."
            )
        return label

    def explain_in_session(
        self, model: BaseModel, targets: TargetsLike, seed: int, label: Tensor | None = None
    ) -> Sequence[Xplanation]:
        """Do the work of `explain` for callers that have a model session open.

        Args:
            model: The wrapped network, in an open session.
            targets: The targets, already validated.
            seed: Seed of all random draws.
            label: The class to explain for each target (T,), or None for the predicted classes.
        """
        # Explainers share the graphs, so the time to extract them is not part of ``seconds``.
        graphs = model.computation_graphs(targets, lean=self.lean)
        network = digest_of_network(model)
        if label is not None:
            graphs = replace(graphs, chosen_class=label)
        start = time.perf_counter()
        numbered = number_occurrences([graph.target for graph in graphs])
        seeds = [derive_seed(seed, self.name, *entry) for entry in numbered]
        prediction = model.pred_continuous(targets)
        with progress_bar(len(graphs), self.name):
            scores = _check_packed_shapes(self.scores(model, graphs, seeds), graphs, self.name)
        share = (time.perf_counter() - start) / max(len(graphs), 1)
        check_ids_in_range(graphs)
        origin = ExplanationOrigin(model.level, self.name, self.params, seed, share, network)
        occurrence = [number for _, number in numbered]
        xs = Explanations(graphs, scores, prediction, occurrence, label, origin)
        _warn_about_nonfinite_scores(self.name, scores, xs)
        return xs

    @abstractmethod
    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Compute the scores of all graphs. This is the method that an explainer implements.

        Args:
            model: The wrapped network.
            graphs: The computation graphs of T targets.
            seeds: T seeds; random draws for graph k use ``seeds[k]`` only.
        """


def _check_packed_shapes(scores: object, graphs: ComputationGraphs, name: str) -> Scores:
    """Raise BadExplanation unless the scores have the shapes of the packed graphs."""
    if not isinstance(scores, Scores):
        raise BadExplanation(
            f"{name}.scores must return Scores(feature, edge), but returned "
            f"{type(scores).__name__}."
        )
    shapes = {"feature": (len(graphs.node), graphs.source.x.size(1)), "edge": (len(graphs.edge),)}
    for side, shape in shapes.items():
        score = getattr(scores, side)
        if score is not None and tuple(score.shape) != shape:
            raise BadExplanation(
                f"{name}.scores must give {side} scores of shape {shape}, a row for each of "
                f"graphs.node and graphs.edge, halo included, but gave {tuple(score.shape)}."
            )
    return scores


def number_occurrences(targets: list[Target]) -> list[tuple[Target, int]]:
    """Pair each target with the number of times that it occurs earlier in the list.

    >>> number_occurrences([5, 7, 5])
    [(5, 0), (7, 0), (5, 1)]
    """
    count: Counter[Target] = Counter()
    numbered = []
    for target in targets:
        numbered.append((target, count[target]))
        count[target] += 1
    return numbered


def _warn_about_nonfinite_scores(name: str, scores: Scores, xs: Explanations) -> None:
    """Warn about NaN and infinite scores."""
    if _all_scores_finite(scores.feature, scores.edge):
        return
    bad = [x.target for x in xs if not _all_scores_finite(x.feature_score, x.edge_score)]
    if bad:
        warnings.warn(
            f"{name} gives NaN or infinite scores for {len(bad)} of {len(xs)} targets, the first "
            f"is {bad[0]}. A common cause is a network whose gradient is NaN there, for example "
            "with log(softmax(x)) instead of log_softmax(x).",
            GraphgaugeWarning,
            stacklevel=5,
        )


def _all_scores_finite(*sides: Tensor | None) -> bool:
    """Whether all scores are finite."""
    return all(all_finite(side) for side in sides if side is not None)


def target_output(model: BaseModel, raw: Tensor, label: Tensor | None, what: str) -> Tensor:
    """The number that is explained, one for each copy of a graph. (K,)

    For regression this is the predicted value. For classification it is the probability or the
    logit of a class. If the network returns one column, that column is the logit of the second
    class, and its negative is the logit of the first class.

    Args:
        model: The wrapped network.
        raw: What the network returned for K copies (K, columns).
        label: The class to explain in each copy (K,); None for regression.
        what: "prob" or "logit".
    """
    if label is None:
        return model.interpret(raw)
    if what == "prob":
        return model.interpret(raw).gather(1, label[:, None])[:, 0]
    if raw.size(1) == 1:
        return raw[:, 0] * (2 * label - 1)
    return raw.gather(1, label[:, None])[:, 0]


def zero_feature_scores(graphs: ComputationGraphs) -> Tensor:
    """Packed feature scores of 0, to be filled. (sum of nodes, F)"""
    return graphs.source.x.new_zeros(len(graphs.node), graphs.source.x.size(1))


def zero_edge_scores(graphs: ComputationGraphs) -> Tensor:
    """Packed edge scores of 0, to be filled. (sum of edges,)"""
    return graphs.source.x.new_zeros(len(graphs.edge))
