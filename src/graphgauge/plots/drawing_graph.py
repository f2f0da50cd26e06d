"""The graph behind a picture: the layout uses all edges, also those that are not drawn.

The nodes of a group are drawn as one. A drawn node has a number: a node its id, the k-th group
N + k for N nodes. So a graph with many edges stays a tensor, and only what is drawn becomes Python
objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import Xplanation
from graphgauge.narrative import Names
from graphgauge.subgraphs import pointers_from_counts, ragged_ranges

DrawnNode = int | str  #: the id of a node, or the name of a group


@dataclass(frozen=True)
class DrawnGraph:
    """All edges as pairs of drawn nodes.

    >>> graph = DrawnGraph(torch.tensor([[1, 2, 0, 4], [0, 1, 3, 0]]), 4, ("friends",))
    >>> graph.hops([0]), graph.successors("friends"), graph.edges_among([0, 1, 3])
    ({0: 0, 1: 1, 2: 2, 'friends': 1}, [0], [(1, 0), (0, 3)])
    """

    ends: Tensor  #: (2, E) numbers of the source and the destination of each edge
    num_nodes: int
    groups: tuple[str, ...] = ()

    def node(self, number: int) -> DrawnNode:
        """Return the drawn node with a number."""
        return number if number < self.num_nodes else self.groups[number - self.num_nodes]

    def number(self, node: DrawnNode) -> int:
        """Return the number of a drawn node."""
        return node if isinstance(node, int) else self.num_nodes + self.groups.index(node)

    def successors(self, node: DrawnNode) -> list[DrawnNode]:
        """Return the nodes that the edges of a node lead to, in the order of the edges."""
        return [
            self.node(number) for number in self.ends[1, self.ends[0] == self.number(node)].tolist()
        ]

    def edges_among(self, nodes: Sequence[DrawnNode]) -> list[tuple[DrawnNode, DrawnNode]]:
        """Return the edges between these nodes."""
        inside = torch.isin(self.ends, torch.tensor([self.number(node) for node in nodes])).all(0)
        return [
            (self.node(source), self.node(destination))
            for source, destination in self.ends[:, inside].t().tolist()
        ]

    def hops(self, targets: Sequence[int]) -> dict[DrawnNode, int]:
        """Return the steps along the edges from each node to the nearest target.

        Nodes without a path to a target are left out.
        """
        order, size = self.ends[1].argsort(), self.num_nodes + len(self.groups)
        source, first = (
            self.ends[0, order],
            pointers_from_counts(self.ends[1].bincount(minlength=size)),
        )
        steps, front, number = torch.full((size,), -1), torch.tensor(targets), 0
        while len(front):
            steps[front], number = number, number + 1
            behind = source[ragged_ranges(first[front], first.diff()[front])[1]]
            front = behind[steps[behind] < 0].unique()
        reached = (steps >= 0).nonzero()[:, 0]
        return {
            self.node(number): step
            for number, step in zip(reached.tolist(), steps[reached].tolist(), strict=True)
        }


def build_drawn_graph(x: Xplanation, ends: Tensor, names: Names) -> DrawnGraph:
    """Return the graph of an explanation whose edges have these ends (2, E)."""
    place = group_of_nodes(x, names)
    size, groups = (
        max(x.num_nodes, int(ends.max()) + 1 if ends.numel() else 0),
        tuple(dict.fromkeys(place.values())),
    )
    number = torch.arange(size)
    number[list(place)] = torch.tensor(
        [size + groups.index(group) for group in place.values()], dtype=torch.int64
    )
    return DrawnGraph(number[ends] if place else ends, size, groups)


def group_of_nodes(x: Xplanation, names: Names) -> dict[int, str]:
    """Return the group of each node that is drawn as part of one.

    The target is part of none, another node of its first group.
    """
    group_by_node: dict[int, str] = {}
    for (_, plural), members in names.groups.items():
        group_by_node.update(
            {
                node: plural
                for node in sorted(members)
                if node not in group_by_node and node not in x.target_nodes
            }
        )
    return group_by_node
