"""What every explainer is: a model and a list of targets in, a list of explanations out, one
batched pass.

A subclass is a frozen dataclass whose fields are its parameters, and implements one method,
`scores`, on a batch of computation graphs. A target named twice gets two explanations, each with a
seed of its own.
"""

import time
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from graphgauge.core.errors import BadExplanation, BadModel, BadSetting, GraphgaugeWarning
from graphgauge.core.numbers import all_finite
from graphgauge.core.progress import progress
from graphgauge.core.seeds import check_seed, derive_seed
from graphgauge.core.xplanation import Target, Xplanation, plain_target
from graphgauge.explainers.chosen_classes import chosen_classes
from graphgauge.models import BaseModel, ComputationGraphs
from graphgauge.models.fingerprints import digest_of_network
from graphgauge.models.guard import lent
from graphgauge.models.masking import WITHOUT_MASKS

_WARNS_OF_MISSING_EDGES: ContextVar[bool] = ContextVar(
    "whether explainers without edge scores say so", default=True
)


@dataclass(frozen=True)
class Scores:
    """Scores of a batch of computation graphs, packed as their nodes and edges are; None: the
    explainer has no such side.

    ``feature`` (sum of nodes, F), ``edge`` (sum of edges,); what stands at halo nodes and other
    edges is ignored.
    """

    feature: Tensor | None
    edge: Tensor | None


@dataclass(frozen=True)
class BaseExplainer(ABC):
    """Explains predictions of a model. ``signed``: do scores carry direction? ``deterministic``: is
    the seed without effect?
    """

    name: ClassVar[str]
    signed: ClassVar[bool]
    deterministic: ClassVar[bool]

    @property
    def params(self) -> dict[str, Any]:
        """What rebuilds this explainer: ``type(explainer)(**explainer.params)``."""
        return asdict(self)

    @property
    def lean(self) -> bool:
        """Whether it may be given graphs without the edges that only set degrees (see `lean`): it
        looks at none, and drops none.
        """
        return False

    @property
    def needs_masks(self) -> bool:
        """Whether it gives edges scores only where single messages can be multiplied."""
        return False

    @property
    def explains_labels(self) -> bool:
        """Whether it can explain a class that is not the predicted one: `scores` looks at
        ``graphs.chosen_class``.
        """
        return False

    def explain(
        self, model: BaseModel, targets: Any, seed: int = 0, label: Any = None
    ) -> list[Xplanation]:
        """One explanation per target, all in one batch. ``seconds`` of each is its share of the
        batch, its graph being there.

        ``label`` chooses the class whose probability is explained: by default, and with
        "predicted", the predicted one; "true" is that of the data; a number or a name in
        ``data.class_names`` is that class; a list or tensor has one for each target.
        """
        seed = check_seed(seed)
        with check_wrapped(model).session(), lent(model, self.name):
            warn_of_missing_edges(model, [self], stacklevel=3)
            rows = model.read(targets)
            chosen = chosen_classes(model, rows, label)
            if chosen is None:
                return self.explanations(model, model.asked(rows), seed)
            return self.explanations(
                model, model.asked(rows), seed, self.check_label(model, rows, chosen)
            )

    def again(self, model: BaseModel, x: Xplanation) -> Xplanation:
        """A stored explanation, made anew: with the same model, the same scores."""
        chosen = {} if x.label is None else {"label": x.label}
        return self.explain(model, [x.target] * (x.occurrence + 1), seed=x.seed or 0, **chosen)[-1]

    def check_label(self, model: BaseModel, targets: Tensor, label: Tensor) -> Tensor:
        """Refuse classes that are not predicted, if the explainer cannot explain them.  (T, 1) or (T, 2), (T,) -> (T,)"""
        other = (
            []
            if self.explains_labels
            else (label != model.pred_discrete(model.asked(targets))).nonzero()[:, 0].tolist()
        )
        if other:
            target = plain_target(model.asked(targets)[other[0]].tolist())
            raise BadSetting(
                f"{self.name} explains the predicted class only, but class {int(label[other[0]])} was asked for target {target}, "
                "which is not predicted. Leave label out, or use an explainer that can, such as gg.Saliency()."
            )
        return label

    def explanations(
        self, model: BaseModel, targets: Any, seed: int, label: Tensor | None = None
    ) -> list[Xplanation]:
        """What `explain` gives, by whoever has a session open; ``label`` (T,) are the classes to
        explain.
        """
        graphs = model.computation_graphs(
            targets, lean=self.lean
        )  # explainers share them, so they are in nobody's seconds
        network = digest_of_network(model)
        if label is not None:
            graphs = replace(graphs, chosen_class=label)
        start = time.perf_counter()
        named = occurrences([graph.target for graph in graphs])
        seeds = [derive_seed(seed, self.name, *entry) for entry in named]
        prediction = model.pred_continuous(targets)
        with progress(len(graphs), self.name):
            scores = check_packed(self.scores(model, graphs, seeds), graphs, self.name)
        shared = {
            "explainer": self.name,
            "params": self.params,
            "level": model.level,
            "seed": seed,
            "network": network,
        }
        share = (time.perf_counter() - start) / max(len(graphs), 1)
        classes = [None] * len(graphs) if label is None else label.tolist()
        xs = [
            unpacked(
                graphs,
                k,
                scores,
                prediction=prediction[k],
                occurrence=named[k][1],
                seconds=share,
                label=classes[k],
                **shared,
            )
            for k in range(len(graphs))
        ]
        tell_gaps(self.name, scores, xs)
        return xs

    @abstractmethod
    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Scores of all graphs; graph k draws from ``seeds[k]`` only."""


def check_wrapped(model: Any) -> BaseModel:
    """Refuse a network that is not wrapped."""
    if not isinstance(model, BaseModel):
        raise BadModel(
            f"explain needs a wrapped network, but got {type(model).__name__}. Wrap it with its data, for example "
            "gg.NodeClassificationModel(net, data)."
        )
    return model


def check_packed(scores: Any, graphs: ComputationGraphs, name: str) -> Scores:
    """Refuse scores that are not packed as the graphs are."""
    if not isinstance(scores, Scores):
        raise BadExplanation(
            f"{name}.scores must return Scores(feature, edge), but returned {type(scores).__name__}."
        )
    wanted = {"feature": (len(graphs.node), graphs.source.x.size(1)), "edge": (len(graphs.edge),)}
    for side, shape in wanted.items():
        found = getattr(scores, side)
        if found is not None and tuple(found.shape) != shape:
            raise BadExplanation(
                f"{name}.scores must give {side} scores of shape {shape}, a row for each of graphs.node and graphs.edge, halo "
                f"included, but gave {tuple(found.shape)}."
            )
    return scores


def occurrences(targets: list[Target]) -> list[tuple[Target, int]]:
    """Each target with how often it came before.

    >>> occurrences([5, 7, 5])
    [(5, 0), (7, 0), (5, 1)]
    """
    seen: Counter[Target] = Counter()
    numbered = []
    for target in targets:
        numbered.append((target, seen[target]))
        seen[target] += 1
    return numbered


def unpacked(graphs: ComputationGraphs, k: int, scores: Scores, **fields: Any) -> Xplanation:
    """The explanation of graph k, cut out of the packed scores."""
    graph = graphs[k]
    nodes, edges = graph.nodes, graph.edges
    return Xplanation(
        target=graph.target,
        nodes=nodes,
        edges=edges,
        num_nodes=graph.num_source_nodes,
        num_edges=graph.num_source_edges,
        feature_score=None
        if scores.feature is None
        else scores.feature[graph.node_slice][: len(nodes)].clone(),
        edge_score=None
        if scores.edge is None
        else scores.edge[graph.edge_slice][: len(edges)].clone(),
        **fields,
    )


def warn_of_missing_edges(
    model: BaseModel, explainers: Iterable[BaseExplainer], stacklevel: int = 2
) -> None:
    """Say, before anything is run, which explainers will score features only, and what gives edges
    scores instead.
    """
    names = sorted({explainer.name for explainer in explainers if explainer.needs_masks})
    if not names or not _WARNS_OF_MISSING_EDGES.get() or can_mask(model):
        return
    reason = model.mask_support.rstrip(".")
    gives = "gives" if len(names) == 1 else "give"
    told = f"there are no edge scores: {reason}. So {', '.join(names)} {gives} features only; for edges {WITHOUT_MASKS}."
    warnings.warn(told, GraphgaugeWarning, stacklevel=stacklevel + 1)


@contextmanager
def missing_edges_told() -> Iterator[None]:
    """For a run that has said so for all its explainers."""
    token = _WARNS_OF_MISSING_EDGES.set(False)
    try:
        yield
    finally:
        _WARNS_OF_MISSING_EDGES.reset(token)


def tell_gaps(name: str, scores: Scores, xs: list[Xplanation]) -> None:
    """Warn of scores that are no numbers."""
    if is_finite(scores.feature, scores.edge):
        return
    bad = [x.target for x in xs if not is_finite(x.feature_score, x.edge_score)]
    if bad:
        warnings.warn(
            f"{name} gives NaN or infinite scores for {len(bad)} of {len(xs)} targets, the first is {bad[0]}. A network whose own "
            "gradient is none there is a common cause, such as log(softmax(x)) instead of log_softmax(x).",
            GraphgaugeWarning,
            stacklevel=5,
        )


def is_finite(*sides: Tensor | None) -> bool:
    """Whether all scores are numbers."""
    return all(all_finite(side) for side in sides if side is not None)


def explained(model: BaseModel, raw: Tensor, label: Tensor | None, what: str) -> Tensor:
    """The number that is explained, one per copy.  raw (K, columns), label (K,) -> (K,)

    Regression: the value. Classification: the probability of the class ``label``, or with
    ``what="logit"`` its raw output (of a network with one column: the logit of the second class,
    turned around for the first).
    """
    if label is None:
        return model.interpret(raw)
    if what == "prob":
        return model.interpret(raw).gather(1, label[:, None])[:, 0]
    if raw.size(1) == 1:
        return raw[:, 0] * (2 * label - 1)
    return raw.gather(1, label[:, None])[:, 0]


def check_explained(what: str) -> str:
    """Refuse an unknown quantity."""
    if what not in ("prob", "logit"):
        raise BadSetting(f"explain_output must be 'prob' or 'logit', but {what!r} was given.")
    return what


def empty_features(graphs: ComputationGraphs) -> Tensor:
    """Packed feature scores to be filled.  (sum of nodes, F)"""
    return graphs.source.x.new_zeros(len(graphs.node), graphs.source.x.size(1))


def empty_edges(graphs: ComputationGraphs) -> Tensor:
    """Packed edge scores to be filled.  (sum of edges,)"""
    return graphs.source.x.new_zeros(len(graphs.edge))


def can_mask(model: BaseModel) -> bool:
    """Whether single messages can be scaled, so that edges can have scores."""
    return not model.mask_support.startswith("refused")


def check_visible_operations(name: str, model: BaseModel) -> None:
    """Refuse a network whose operations cannot be followed: compiled by `torch.jit`, or in lower
    precision than its features.
    """
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.net.modules()):
        raise BadModel(
            f"{name} follows the network's operations, which torch.jit hides: wrap the module that was compiled, or use "
            "IntegratedGradients."
        )
    check_precision(name, model)


def check_precision(name: str, model: BaseModel) -> None:
    """Refuse layers that compute in lower precision than the features have."""
    low = {
        weight.dtype
        for weight in model.net.parameters()
        if weight.dtype in (torch.float16, torch.bfloat16)
    }
    if low:
        raise BadModel(
            f"{name} mixes what layers compute with its own numbers, but {type(model.net).__name__} computes in "
            f"{str(low.pop()).removeprefix('torch.')}: use net.float(), or another explainer such as IntegratedGradients."
        )


def check_count(name: str, value: int) -> None:
    """Refuse what is no number of things."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise BadSetting(f"{name} must be a whole number, 1 or more, but {value!r} was given.")


def check_numbers(explainer: Any, *names: str, least: float = 0.0) -> None:
    """Refuse parameters that are not finite numbers, ``least`` or more."""
    for name in names:
        value = getattr(explainer, name)
        is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if not is_number or not least <= value < float("inf"):
            raise BadSetting(
                f"{name} must be a finite number, {least:g} or more, but {value!r} was given."
            )
