"""What every explainer is: a model and a list of targets in, a list of explanations out, one batched pass.

A subclass is a frozen dataclass whose fields are its parameters, and implements one method, `scores`, on a batch of
computation graphs. A target named twice gets two explanations, each with a seed of its own.
"""

import time
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from torch import Tensor

from graphgauge.core.errors import BadSetting
from graphgauge.core.progress import progress
from graphgauge.core.seeds import check_seed, derive_seed
from graphgauge.core.xplanation import Target, Xplanation
from graphgauge.models import BaseModel, ComputationGraphs


@dataclass(frozen=True)
class Scores:
    """Scores of a batch of computation graphs, packed as their nodes and edges are; None: the explainer has no such side.

    ``feature`` (sum of nodes, F), ``edge`` (sum of edges,); what stands at halo nodes and other edges is ignored.
    """

    feature: Tensor | None
    edge: Tensor | None


@dataclass(frozen=True)
class BaseExplainer(ABC):
    """Explains predictions of a model. ``signed``: do scores carry direction? ``deterministic``: is the seed without effect?"""

    name: ClassVar[str]
    signed: ClassVar[bool]
    deterministic: ClassVar[bool]

    @property
    def params(self) -> dict[str, Any]:
        """What rebuilds this explainer: ``type(explainer)(**explainer.params)``."""
        return asdict(self)

    def explain(self, model: BaseModel, targets: Any, seed: int = 0) -> list[Xplanation]:
        """One explanation per target, all in one batch. ``seconds`` of each is its share of the batch."""
        check_seed(seed)
        with model.session():
            return self.explanations(model, targets, seed)

    def explanations(self, model: BaseModel, targets: Any, seed: int) -> list[Xplanation]:
        """The same, by whoever has a session open."""
        start = time.perf_counter()
        graphs = model.computation_graphs(targets)
        seeds = [derive_seed(seed, self.name, *entry) for entry in occurrences([graph.target for graph in graphs])]
        with progress(len(graphs), self.name):
            scores = self.scores(model, graphs, seeds)
        prediction = model.pred_continuous(targets)
        shared = {"explainer": self.name, "params": self.params, "level": model.level}
        share = (time.perf_counter() - start) / max(len(graphs), 1)
        return [
            unpacked(graphs, k, scores, prediction=prediction[k], seed=seeds[k], seconds=share, **shared)
            for k in range(len(graphs))
        ]

    @abstractmethod
    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """Scores of all graphs; graph k draws from ``seeds[k]`` only."""


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
    return Xplanation(
        target=graph.target,
        nodes=graph.nodes,
        edges=graph.edges,
        num_nodes=graph.num_source_nodes,
        num_edges=graph.num_source_edges,
        feature_score=None if scores.feature is None else scores.feature[graph.node_slice][: len(graph.nodes)].clone(),
        edge_score=None if scores.edge is None else scores.edge[graph.edge_slice][: len(graph.edges)].clone(),
        **fields,
    )


def explained(model: BaseModel, raw: Tensor, label: Tensor | None, what: str) -> Tensor:
    """The number that is explained, one per copy.  raw (K, columns), label (K,) -> (K,)

    Regression: the value. Classification: the probability of the class ``label``, or with ``what="logit"`` its raw output
    (of a network with one column: the logit of the second class, turned around for the first).
    """
    if label is None:
        return model.interpret(raw)
    if what == "prob":
        return model.interpret(raw).gather(1, label[:, None])[:, 0]
    if raw.size(1) == 1:
        return raw[:, 0] * (2 * label - 1)
    return raw.gather(1, label[:, None])[:, 0]


def predicted(model: BaseModel, graphs: ComputationGraphs) -> Tensor | None:
    """The class first predicted for each graph's target, on the whole graph; None for regression.  (T,)"""
    if model.task == "regression":
        return None
    return model.pred_discrete(graphs.target if model.level == "link" else graphs.target[:, 0])


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
