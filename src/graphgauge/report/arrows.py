"""What a picture of an explanation shows: the strongest arrows, and what is left.

Nodes of a group count as one, and the scores of all edges from one drawn node u to another v add up,

    S(u, v) = sum of s over the edges from u to v

so that an arrow is one edge, or all edges between two groups. The ``top`` arrows with the largest |S| are drawn. The rest is
counted, in edges and as a share of the total:

    rest = sum of |S| over the arrows that are not drawn / sum of |S| over all arrows          drawn share + rest = 1

The target is never part of a group; a node in several groups belongs to the first of them. S = 0 is not drawn.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from graphgauge.core.errors import BadExplanation, BadSetting
from graphgauge.core.xplanation import Xplanation
from graphgauge.evaluation.alignment import check_same_graph
from graphgauge.models import BaseModel
from graphgauge.narrative import Names
from graphgauge.narrative.facts import edge_ends
from graphgauge.report.labels import check_drawable, counted, percent

Node = int | str  #: the id of a node, or the name of a group


@dataclass(frozen=True)
class Arrow:
    """All edges from one drawn node to another."""

    source: Node
    destination: Node
    score: float
    count: int  #: edges


@dataclass(frozen=True)
class Shown:
    """The arrows that are drawn, the strongest first, and those that are not."""

    drawn: tuple[Arrow, ...]
    rest: tuple[Arrow, ...]

    @property
    def strongest(self) -> float:
        """The largest absolute score; 0 if nothing is drawn."""
        return max((abs(arrow.score) for arrow in self.drawn), default=0.0)

    def share(self) -> float:
        """Share of the score that is drawn, between 0 and 1."""
        part, rest = (sum(abs(arrow.score) for arrow in arrows) for arrows in (self.drawn, self.rest))
        return part / (part + rest)

    def caption(self) -> str:
        """The counts in words.

        >>> Shown((Arrow(1, 0, 0.75, 1),), (Arrow(2, 0, -0.25, 1), Arrow(3, 0, 0.0, 4))).caption()
        '1 of 6 edges drawn, with 75 % of the score, and 5 further edges with 25 % of the score.'
        """
        shown, left = (sum(arrow.count for arrow in arrows) for arrows in (self.drawn, self.rest))
        if not self.drawn:
            return f"None of {counted(left, 'edge')} has a score other than 0." if left else "No edge can reach the target."
        if not self.rest:
            return f"All {counted(shown, 'edge')} drawn." if shown > 1 else "The only edge is drawn."
        return (
            f"{shown:,} of {counted(shown + left, 'edge')} drawn, with {percent(self.share())} of the score, "
            f"and {counted(left, 'further edge')} with {percent(1 - self.share())} of the score."
        )


def shown_arrows(x: Xplanation, ends: Sequence[tuple[int, int]], names: Names, top: int) -> Shown:
    """The ``top`` strongest arrows of an explanation whose edges have these ends."""
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise BadSetting(f"top must be a whole number, 1 or more, but {top!r} was given.")
    check_drawable(x, "edge")
    place = folded_nodes(x, names)
    scores: dict[tuple[Node, Node], list[float]] = defaultdict(list)
    for (source, destination), score in zip(ends, x.need("edge_score").double().tolist(), strict=True):
        scores[place.get(source, source), place.get(destination, destination)].append(score)
    arrows = [Arrow(*pair, sum(own), len(own)) for pair, own in scores.items()]
    arrows.sort(key=lambda arrow: -abs(arrow.score))
    number = min(top, sum(arrow.score != 0 for arrow in arrows))
    return Shown(tuple(arrows[:number]), tuple(arrows[number:]))


def folded_nodes(x: Xplanation, names: Names) -> dict[int, str]:
    """The group of each node that is drawn as part of one."""
    found: dict[int, str] = {}
    for (_, plural), members in names.groups.items():
        found.update({node: plural for node in sorted(members) if node not in found and node not in x.target_nodes})
    return found


def node_strength(x: Xplanation, names: Names) -> dict[Node, float]:
    """Sum of the absolute feature scores of each drawn node (of all members of a group); empty without feature scores."""
    if x.feature_score is None:
        return {}
    check_drawable(x, "feature")
    place, total = folded_nodes(x, names), defaultdict[Node, float](float)
    for node, score in zip(x.nodes.tolist(), x.feature_score.double().abs().sum(1).tolist(), strict=True):
        total[place.get(node, node)] += score
    return dict(total)


def hops(pairs: Sequence[tuple[Node, Node]], targets: Sequence[Node]) -> dict[Node, int]:
    """Steps along the arrows from each node to the nearest target; nodes without a way there are not listed.

    >>> hops([(1, 0), (2, 1), (0, 3)], [0])
    {0: 0, 1: 1, 2: 2}
    """
    sources: dict[Node, list[Node]] = defaultdict(list)
    for source, destination in pairs:
        sources[destination].append(source)
    found: dict[Node, int] = dict.fromkeys(targets, 0)
    queue = list(found)
    for node in queue:
        new = [source for source in dict.fromkeys(sources[node]) if source not in found]
        found.update(dict.fromkeys(new, found[node] + 1))
        queue += new
    return found


def ends_of_edges(x: Xplanation, data: Any) -> list[tuple[int, int]]:
    """Source and destination of each edge of ``x``; ``data`` is the wrapped model, the graph, or the list of graphs."""
    if isinstance(data, BaseModel):
        check_same_graph("edges", x.num_edges, num_edges_of(x, data), x)
        return edge_ends(x, data)
    edge_index = edge_index_of(x, data)
    check_same_graph("edges", x.num_edges, edge_index.size(1), x)
    return [(int(u), int(v)) for u, v in edge_index[:, x.edges.to(edge_index.device)].t().tolist()]


def num_edges_of(x: Xplanation, model: BaseModel) -> int:
    """Edges of the target's graph."""
    bounds = model.source.edge_ptr.tolist()
    number = int(x.target) if x.level == "graph" else 0  # type: ignore[arg-type]
    return int(bounds[number + 1] - bounds[number])


def edge_index_of(x: Xplanation, data: Any) -> Tensor:
    """The ``edge_index`` of the graph that was explained."""
    is_list = x.level == "graph" and not hasattr(data, "keys") and hasattr(data, "__getitem__") and not isinstance(data, Tensor)
    graph = data[x.target] if is_list else data
    found = graph if isinstance(graph, Tensor) else getattr(graph, "edge_index", None)
    if not isinstance(found, Tensor) or found.dim() != 2 or found.size(0) != 2:
        raise BadExplanation(
            f"an explanation holds ids of edges, not their ends, and {type(data).__name__} has no edge_index (2, E). "
            "Give the data or the wrapped model: x.draw(data)."
        )
    return found


def folded_pairs(ends: Sequence[tuple[int, int]], place: Mapping[int, str]) -> list[tuple[Node, Node]]:
    """The ends as drawn nodes, each pair once."""
    return list(dict.fromkeys((place.get(source, source), place.get(destination, destination)) for source, destination in ends))
