"""The edges that a picture of an explanation shows, and what it leaves out.

The nodes of a group are drawn as one, and the scores of all edges from one drawn node u to another
node v add up,

    S(u, v) = sum of s over the edges from u to v

so an arrow is one edge, or all edges between two groups. The picture shows the ``top`` arrows with
the largest |S|; it counts the rest, in edges and as a share of the total:

    rest = sum of |S| over the arrows that are not drawn / sum of |S| over all arrows

The target is never part of a group; a node in several groups belongs to the first of them. An arrow
with S = 0 is not drawn.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from graphgauge.core import BadExplanation, BadSetting, Xplanation, largest_positions
from graphgauge.evaluation import check_same_graph
from graphgauge.models import BaseModel
from graphgauge.narrative import Names, edge_ends
from graphgauge.plots.drawing_graph import DrawnGraph, DrawnNode, group_of_nodes
from graphgauge.plots.text_labels import check_drawable, count_noun, share_text

#: where the ends of edges come from: a wrapped model, a graph with ``edge_index``, or a list of
#: graphs
GraphSource = object


@dataclass(frozen=True)
class Arrow:
    """All edges from one drawn node to another."""

    source: DrawnNode
    destination: DrawnNode
    score: float
    count: int  #: edges


@dataclass(frozen=True)
class TopEdges:
    """The arrows that are drawn, the strongest first, and the others as one."""

    drawn: tuple[Arrow, ...]
    rest: tuple[Arrow, ...]

    @property
    def strongest(self) -> float:
        """The largest absolute score; 0 if nothing is drawn."""
        return max((abs(arrow.score) for arrow in self.drawn), default=0.0)

    def share(self) -> float:
        """The share of the score that is drawn, between 0 and 1."""
        part, rest = (
            sum(abs(arrow.score) for arrow in arrows) for arrows in (self.drawn, self.rest)
        )
        return part / (part + rest)

    def caption(self) -> str:
        """Say what is drawn and what is left out.

        >>> others = (Arrow(2, 0, -0.25, 1), Arrow(3, 0, 0.0, 4))
        >>> TopEdges((Arrow(1, 0, 0.75, 1),), others).caption()
        '1 of 6 edges drawn, with 75 % of the score, and 5 further edges with 25 % of the score.'
        """
        num_drawn, num_left = (
            sum(arrow.count for arrow in arrows) for arrows in (self.drawn, self.rest)
        )
        if not self.drawn:
            return (
                f"None of {count_noun(num_left, 'edge')} has a score other than 0."
                if num_left
                else "No edge can reach the target."
            )
        if not self.rest:
            return (
                f"All {count_noun(num_drawn, 'edge')} drawn."
                if num_drawn > 1
                else "The only edge is drawn."
            )
        return (
            f"{num_drawn:,} of {count_noun(num_drawn + num_left, 'edge')} drawn, "
            f"with {share_text(self.share())} of the score, "
            f"and {count_noun(num_left, 'further edge')} "
            f"with {share_text(1 - self.share())} of the score."
        )


def select_top_edges(x: Xplanation, ways: DrawnGraph, top: int) -> TopEdges:
    """Return the ``top`` strongest arrows of an explanation, and the rest as one."""
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise BadSetting(f"top must be a whole number, 1 or more, but {top!r} was given.")
    check_drawable(x, "edge")
    first, score, count = _sum_scores_by_ends(ways.ends, x.need("edge_score").double().cpu())
    drawn = largest_positions(score.abs(), min(top, len(score.nonzero())))
    ends = ways.ends[:, first[drawn]].t().tolist()
    arrows = [
        Arrow(ways.node(source), ways.node(destination), *sums)
        for (source, destination), *sums in zip(
            ends, score[drawn].tolist(), count[drawn].tolist(), strict=True
        )
    ]
    return TopEdges(tuple(arrows), _merge_rest(score, count, drawn))


def _sum_scores_by_ends(ends: Tensor, score: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the first edge, the sum of scores and the number of edges of each pair of ends.

    Pairs keep the order in which they first appear. The sums run in the order of the edges, in
    Python: the bits of parallel sums would depend on the machine.

    >>> import torch
    >>> _sum_scores_by_ends(torch.tensor([[5, 2, 5], [0, 0, 0]]), torch.tensor([0.5, 1.0, 0.25]))
    (tensor([0, 1]), tensor([0.7500, 1.0000]), tensor([2, 1]))
    """
    pair, order = (ends[0] * (ends.max() + 1 if ends.numel() else 1) + ends[1]).sort(stable=True)
    count = pair.unique_consecutive(return_counts=True)[1]
    start = count.cumsum(0) - count
    first, several = order[start], count > 1
    ordered_scores = score[order].tolist() if several.any() else []
    spans = zip(start[several].tolist(), (start + count)[several].tolist(), strict=True)
    total = score[first].masked_scatter(
        several, score.new_tensor([sum(ordered_scores[begin:end]) for begin, end in spans])
    )
    first, order = first.sort()
    return first, total[order], count[order]


def _merge_rest(score: Tensor, count: Tensor, drawn: list[int]) -> tuple[Arrow, ...]:
    """Merge the arrows that are not drawn into one; return nothing if all are drawn.

    It has the number of their edges, and the sum of their absolute scores, the largest first.
    """
    if len(drawn) == len(score):
        return ()
    strengths = np.sort(score.abs().numpy())[::-1][len(drawn) :].tolist()
    return (Arrow("", "", sum(strengths), int(count.sum() - count[drawn].sum())),)


def node_strengths(x: Xplanation, names: Names) -> dict[DrawnNode, float]:
    """Add up the absolute feature scores of each drawn node; empty without feature scores."""
    if x.feature_score is None:
        return {}
    check_drawable(x, "feature")
    place, total = group_of_nodes(x, names), defaultdict[DrawnNode, float](float)
    for node, score in zip(
        x.nodes.tolist(), x.feature_score.double().abs().sum(1).tolist(), strict=True
    ):
        total[place.get(node, node)] += score
    return dict(total)


def find_edge_ends(x: Xplanation, data: GraphSource) -> Tensor:
    """Return source and destination of each edge of ``x``.  (2, E_rel)

    ``data`` is the wrapped model, the graph, or the list of graphs.
    """
    if isinstance(data, BaseModel):
        check_same_graph("edges", x.num_edges, _num_target_edges(x, data), x)
        return edge_ends(x, data)
    edge_index = _read_edge_index(x, data)
    check_same_graph("edges", x.num_edges, edge_index.size(1), x)
    return edge_index[:, x.edges.to(edge_index.device)].cpu().long()


def _num_target_edges(x: Xplanation, model: BaseModel) -> int:
    """Count the edges of the target's graph."""
    bounds = model.source.edge_ptr.tolist()
    number = x.target_ids[0] if x.level == "graph" else 0
    return int(bounds[number + 1] - bounds[number])


def _read_edge_index(x: Xplanation, data: GraphSource) -> Tensor:
    """Return the ``edge_index`` of the graph that was explained."""
    is_list = (
        x.level == "graph"
        and not hasattr(data, "keys")
        and hasattr(data, "__getitem__")
        and not isinstance(data, Tensor)
    )
    source: Any = data
    graph = source[x.target_ids[0]] if is_list else source
    edge_index = graph if isinstance(graph, Tensor) else getattr(graph, "edge_index", None)
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise BadExplanation(
            f"an explanation holds ids of edges, not their ends, and {type(data).__name__} has no "
            "edge_index (2, E). Give the data or the wrapped model: x.draw(data)."
        )
    return edge_index
