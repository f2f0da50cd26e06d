"""Where the nodes and labels of a picture stand. Nothing is random.

For a node, the target stands in the middle, and a node that is h steps away on the h-th ring. The
nodes of a ring are branches of a tree on the nodes of the ring inside it, and every branch has a
sector as wide as its number of leaves. A link has two such trees side by side, one for each end,
each with half of the circle. A graph has no centre: a force layout starts from fixed positions.

Rings with more nodes are wider. Positions lie between -1 and 1, and are stretched to the axes.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from graphgauge.plots.drawing_graph import DrawnGraph, DrawnNode
from graphgauge.plots.top_edges import Arrow

Position = tuple[float, float]
_Rectangle = tuple[float, float, float, float]  #: left, bottom, right, top
_LINK_END_OFFSET = 0.22  #: of the two ends of a link from the middle
_MIN_RING_WIDTH = 0.6  #: the width of an almost empty ring, that of the fullest being 1


def _assign_rings(
    drawn: Sequence[Arrow], steps: Mapping[DrawnNode, int], targets: Sequence[DrawnNode]
) -> dict[DrawnNode, int]:
    """Return the ring of each drawn node: its hops along all edges.

    Nodes that cannot reach the target stand on a ring outside all others.
    """
    outside = max(steps.values()) + 1
    nodes = dict.fromkeys(
        [*targets, *(node for arrow in drawn for node in (arrow.source, arrow.destination))]
    )
    return {node: steps.get(node, outside) for node in nodes}


def ring_layout(
    drawn: Sequence[Arrow], ways: DrawnGraph, targets: Sequence[int]
) -> tuple[dict[DrawnNode, Position], list[float]]:
    """Return positions around the targets, and the radii of the rings, from 0 to 1."""
    steps = ways.hops(targets)
    ring = _assign_rings(drawn, steps, targets)
    branches = _RingTree(drawn, ways, steps, ring, targets).branches()
    radius = _ring_radii(ring)
    span = 2 * math.pi / len(targets)
    angle: dict[DrawnNode, float] = {}
    for k, target in enumerate(targets):
        start = math.pi / 2 if len(targets) == 1 else (1.5 * math.pi if k == 0 else math.pi / 2)
        _spread_branches(target, start, span, branches, angle)
    side = {
        node: (-_LINK_END_OFFSET if math.cos(angle[node]) < 0 else _LINK_END_OFFSET)
        if len(targets) == 2
        else 0.0
        for node in ring
    }
    side.update(
        dict(zip(targets, (-_LINK_END_OFFSET, _LINK_END_OFFSET), strict=False))
        if len(targets) == 2
        else {}
    )
    place = {
        node: (
            side[node] + (1 - abs(side[node])) * radius[r] * math.cos(angle[node]),
            radius[r] * math.sin(angle[node]),
        )
        for node, r in ring.items()
    }
    return place, radius


def _ring_radii(ring: Mapping[DrawnNode, int]) -> list[float]:
    """Return the radius of each ring, that of the target first.

    A ring is as wide as it is full, but at least `_MIN_RING_WIDTH` times as wide as the fullest.

    >>> _ring_radii({0: 0, 1: 1, 2: 2})
    [0.0, 0.5, 1.0]
    """
    counts = [list(ring.values()).count(number) for number in range(1, max(ring.values()) + 1)]
    sums = [0.0, *accumulate(max(count / max(counts), _MIN_RING_WIDTH) for count in counts)]
    return [part / (sums[-1] or 1.0) for part in sums]


@dataclass(frozen=True)
class _RingTree:
    """How drawn nodes branch; ``steps`` holds all nodes' hops, ``ring`` those of drawn ones."""

    drawn: Sequence[Arrow]
    ways: DrawnGraph
    steps: Mapping[DrawnNode, int]
    ring: Mapping[DrawnNode, int]
    targets: Sequence[DrawnNode]

    def branches(self) -> dict[DrawnNode, list[DrawnNode]]:
        """Return the branches of each node: drawn nodes further out."""
        branches: dict[DrawnNode, list[DrawnNode]] = defaultdict(list)
        for node in self.ring:
            if node not in self.targets:
                branches[self.inner(node)].append(node)
        return branches

    def inner(self, node: DrawnNode) -> DrawnNode:
        """Return the drawn node that ``node`` branches from, by the strongest arrow if possible."""
        while node in self.steps:
            closer = self.closer(node)
            drawn = [other for other in closer if other in self.ring]
            if drawn:
                return drawn[0]
            node = closer[0]
        return self.targets[0]

    def closer(self, node: DrawnNode) -> list[DrawnNode]:
        """Return the next nodes on paths to the target, those of arrows first."""
        others = [
            *(arrow.destination for arrow in self.drawn if arrow.source == node),
            *self.ways.successors(node),
        ]
        return [
            other for other in others if self.steps.get(other, self.steps[node]) < self.steps[node]
        ]


def _count_leaves(node: DrawnNode, branches: Mapping[DrawnNode, Sequence[DrawnNode]]) -> int:
    """Count the leaves of a branch."""
    return sum(_count_leaves(other, branches) for other in branches.get(node, ())) or 1


def _spread_branches(
    node: DrawnNode,
    start: float,
    span: float,
    branches: Mapping[DrawnNode, Sequence[DrawnNode]],
    angle: dict[DrawnNode, float],
) -> None:
    """Give each branch of ``node`` a sector, clockwise from ``start``, and each node its middle."""
    angle[node] = start - span / 2
    whole = _count_leaves(node, branches)
    for other in branches.get(node, ()):
        share = span * _count_leaves(other, branches) / whole
        _spread_branches(other, start, share, branches, angle)
        start -= share


def force_layout(drawn: Sequence[Arrow], ways: DrawnGraph) -> dict[DrawnNode, Position]:
    """Return positions without a centre: edges pull nodes together, all others push apart."""
    import networkx as nx

    nodes = list(
        dict.fromkeys(node for arrow in drawn for node in (arrow.source, arrow.destination))
    )
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((u, v) for u, v in ways.edges_among(nodes) if u != v)
    rows = _circle_layout(nodes)
    positions = (
        nx.spring_layout(graph, k=2 / math.sqrt(len(nodes)), pos=rows, iterations=300, seed=0)
        if len(nodes) > 2
        else rows
    )
    low, high = (
        [pick(place[k] for place in positions.values()) for k in (0, 1)] for pick in (min, max)
    )
    return {
        node: (
            2 * _relative_position(place[0], low[0], high[0]) - 1,
            2 * _relative_position(place[1], low[1], high[1]) - 1,
        )
        for node, place in positions.items()
    }


def _relative_position(value: float, low: float, high: float) -> float:
    """Return where a value lies between two others, from 0 to 1; 0.5 if they are equal."""
    return float((value - low) / (high - low)) if high > low else 0.5


def _circle_layout(nodes: Sequence[DrawnNode]) -> dict[DrawnNode, Position]:
    """Put all nodes on one circle."""
    turn = 2 * math.pi / max(len(nodes), 1)
    return {node: (math.cos(k * turn), math.sin(k * turn)) for k, node in enumerate(nodes)}


@dataclass(frozen=True)
class Disc:
    """A drawn node, in points."""

    x: float
    y: float
    radius: float

    def box(self) -> _Rectangle:
        """The square around it."""
        return (
            self.x - self.radius,
            self.y - self.radius,
            self.x + self.radius,
            self.y + self.radius,
        )


def _overlap_area(first: _Rectangle, second: _Rectangle) -> float:
    """Return the common area of two boxes.

    >>> _overlap_area((0, 0, 2, 2), (1, 1, 5, 5)), _overlap_area((0, 0, 1, 1), (2, 0, 3, 1))
    (1, 0)
    """
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    return width * height if width > 0 and height > 0 else 0


def place_labels(
    sizes: Mapping[DrawnNode, Position],
    discs: Mapping[DrawnNode, Disc],
    lines: Sequence[tuple[Disc, Disc]],
    room: _Rectangle,
) -> dict[DrawnNode, Position]:
    """Return the middle of each label, beside its node.

    A label stands where it hides the least of nodes, earlier labels and lines.
    """
    points = [
        (a.x + (b.x - a.x) * k / 24, a.y + (b.y - a.y) * k / 24)
        for a, b in lines
        for k in range(1, 24)
    ]
    taken = [disc.box() for disc in discs.values()]
    middles: dict[DrawnNode, Position] = {}
    for node, (width, height) in sizes.items():
        boxes = [
            _label_box(middle, width, height)
            for middle in _label_candidates(discs[node], width, height)
        ]
        cost = [_hiding_cost(box, taken, points, room) for box in boxes]
        best = boxes[cost.index(min(cost))]
        taken.append(best)
        middles[node] = ((best[0] + best[2]) / 2, (best[1] + best[3]) / 2)
    return middles


def _label_candidates(disc: Disc, width: float, height: float) -> list[Position]:
    """Return possible middles of a label around a disc, near ones first."""
    places = []
    for gap in (2.0, 10.0, 20.0):
        across, up = disc.radius + gap + width / 2, disc.radius + gap + height / 2
        near = disc.radius * 0.7 + gap
        corners = [
            (sx * (near + width / 2), sy * (near + height / 2)) for sy in (-1, 1) for sx in (1, -1)
        ]
        places += [
            (disc.x + dx, disc.y + dy)
            for dx, dy in ((0, -up), (0, up), (across, 0), (-across, 0), *corners)
        ]
    return places


def _label_box(middle: Position, width: float, height: float) -> _Rectangle:
    """The box of a label."""
    return (
        middle[0] - width / 2,
        middle[1] - height / 2,
        middle[0] + width / 2,
        middle[1] + height / 2,
    )


def _hiding_cost(
    box: _Rectangle, taken: Sequence[_Rectangle], points: Sequence[Position], room: _Rectangle
) -> float:
    """Measure what a label would hide: areas, lines, and its own parts outside the room."""
    area = (box[2] - box[0]) * (box[3] - box[1])
    crossed = sum(box[0] <= x <= box[2] and box[1] <= y <= box[3] for x, y in points)
    return (
        sum(_overlap_area(box, other) for other in taken)
        + 10 * crossed
        + 5 * (area - _overlap_area(box, room))
    )
