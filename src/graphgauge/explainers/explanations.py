"""Explanations of many targets, packed as the explainer made them.

`BaseExplainer.explain` returns `Explanations`: a sequence of `Xplanation`, in which the scores of
all targets are one tensor for features and one for edges. A single explanation is made when it is
asked for. So a thousand repeated explanations, whose scores are only compared with each other, cost
no thousand objects.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import torch
from torch import Tensor

from graphgauge.core import BadExplanation, JsonObject, Target, Xplanation
from graphgauge.subgraphs import ComputationGraphs, ragged_ranges


@dataclass(frozen=True)
class Scores:
    """Scores of a batch of computation graphs, packed in the order of their nodes and edges.

    Values for halo nodes, and for edges that cannot affect the target, are ignored.

    Args:
        feature: Score of each feature of each node (sum of nodes, F), or None if the explainer does
            not score features.
        edge: Score of each edge (sum of edges,), or None if the explainer does not score edges.
    """

    feature: Tensor | None
    edge: Tensor | None


@dataclass(frozen=True)
class ExplanationOrigin:
    """What all explanations of one call have in common.

    Args:
        level: What the targets are: "node", "link" or "graph".
        explainer: Name of the explainer.
        params: Settings of the explainer.
        seed: Seed of the call.
        seconds: The share of one explanation in the time of the call.
        network: Digest of the network.
    """

    level: str
    explainer: str
    params: JsonObject
    seed: int
    seconds: float
    network: str


class Explanations(Sequence[Xplanation]):
    """The explanations of one call, in the order of its targets.

    It is used like a list: ``xs[0]``, ``xs[-3:]``, ``len(xs)``, ``for x in xs``, ``xs + ys``. Each
    explanation is made once, so that metrics that the Evaluator writes into it stay there.

    Args:
        graphs: The computation graphs of the targets.
        scores: Their packed scores.
        prediction: What the model predicted for each target.  (T, C) or (T,)
        occurrence: How often each target stands earlier in the list.
        label: The classes that were asked for; None for the predicted ones.  (T,)
        origin: What all of them have in common.

    >>> xs = gg.Saliency().explain(model, [302, 510, 302])
    >>> xs
    Explanations(3 targets, explainer='saliency')
    >>> xs[2].occurrence, len(xs[:2])
    (1, 2)
    """

    def __init__(
        self,
        graphs: ComputationGraphs,
        scores: Scores,
        prediction: Tensor,
        occurrence: Sequence[int],
        label: Tensor | None,
        origin: ExplanationOrigin,
    ) -> None:
        self.graphs, self.packed, self.origin = graphs, scores, origin
        self._prediction, self._occurrence = prediction, occurrence
        self._label = None if label is None else label.tolist()
        self._made: dict[int, Xplanation] = {}

    def __len__(self) -> int:
        return len(self.graphs)

    def __repr__(self) -> str:
        return f"Explanations({len(self)} targets, explainer={self.origin.explainer!r})"

    @overload
    def __getitem__(self, number: int) -> Xplanation: ...

    @overload
    def __getitem__(self, number: slice) -> list[Xplanation]: ...

    def __getitem__(self, number: int | slice) -> Xplanation | list[Xplanation]:
        places = range(len(self))[number]
        if isinstance(places, range):
            return [self._explanation(k) for k in places]
        return self._explanation(places)

    def __iter__(self) -> Iterator[Xplanation]:
        return (self._explanation(k) for k in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Whether the other sequence holds the same objects, as lists compare."""
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Sequence[Xplanation]) -> list[Xplanation]:
        return [*self, *other]

    def __radd__(self, other: Sequence[Xplanation]) -> list[Xplanation]:
        return [*other, *self]

    @property
    def targets(self) -> list[Target]:
        """The targets, without making explanations."""
        return [graph.target for graph in self.graphs]

    @cached_property
    def feature_score(self) -> Tensor | None:
        """Scores of all nodes within reach, target after target.  (sum of n, F)"""
        graphs, score = self.graphs, self.packed.feature
        return None if score is None else _without_rest(score, graphs.node_ptr, graphs.num_nodes)

    @cached_property
    def edge_score(self) -> Tensor | None:
        """Scores of all relevant edges, target after target.  (sum of E_rel,)"""
        graphs, score = self.graphs, self.packed.edge
        return None if score is None else _without_rest(score, graphs.edge_ptr, graphs.num_edges)

    def _explanation(self, k: int) -> Xplanation:
        """Explanation number k, made when it is asked for the first time."""
        if k not in self._made:
            graph, origin = self.graphs[k], self.origin
            num_nodes, num_edges = self.graphs.count_lists
            self._made[k] = Xplanation(
                target=graph.target,
                nodes=graph.nodes,
                edges=graph.edges,
                num_nodes=graph.num_source_nodes,
                num_edges=graph.num_source_edges,
                feature_score=_of_graph(self.packed.feature, graph.node_slice, num_nodes[k]),
                edge_score=_of_graph(self.packed.edge, graph.edge_slice, num_edges[k]),
                level=origin.level,
                prediction=self._prediction[k],
                explainer=origin.explainer,
                params=origin.params,
                seed=origin.seed,
                occurrence=self._occurrence[k],
                seconds=origin.seconds,
                network=origin.network,
                label=None if self._label is None else self._label[k],
            )
        return self._made[k]


def check_ids_in_range(graphs: ComputationGraphs) -> None:
    """Raise BadExplanation if an explainer has changed the ids of the graphs that it was shown.

    Args:
        graphs: The computation graphs of all targets.
    """
    source = graphs.source
    for name, ids, size in (
        ("nodes", graphs.node, source.num_nodes),
        ("edges", graphs.edge, source.num_edges),
    ):
        if len(ids):
            least, most = torch.stack(torch.aminmax(ids)).tolist()
            if least < 0 or most >= size:
                raise BadExplanation(
                    f"{name} must lie in 0..{size - 1}, but reach from {least} to {most}."
                )


def _of_graph(packed: Tensor | None, part: slice, count: int) -> Tensor | None:
    """Copy the scores of one graph's ``count`` nodes or edges, without those of its halo."""
    return None if packed is None else packed[part][:count].clone()


def _without_rest(packed: Tensor, ptr: Tensor, count: Tensor) -> Tensor:
    """The first ``count`` (T,) rows of each graph, whose rows begin at ``ptr`` (T + 1,)."""
    if torch.equal(ptr.diff(), count):
        return packed
    return packed[ragged_ranges(ptr[:-1], count)[1]]
