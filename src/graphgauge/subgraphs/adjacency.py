"""Adjacency lists of a graph: who sends messages to whom.

The neighbours of a few nodes are found without a look at the other nodes.

An arc is a message route, tail -> head, along a stored edge. With PyG's default flow each stored
edge is one arc. Layers with ``flow="target_to_source"`` turn it around, and a network with both
kinds of layer has both arcs of each edge. Arcs are sorted by the node they are looked up by
(compressed sparse columns) and built once per model.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Adjacency:
    """The arcs of each node: those of node v are ``ptr[v]..ptr[v+1]-1``.

    Args:
        ptr: First arc of each node, and the number of arcs A.  (N + 1,)
        other: The node at the other end of each arc.  (A,)
        edge: The stored edge of each arc.  (A,)
    """

    ptr: Tensor
    other: Tensor
    edge: Tensor

    def at_nodes(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All arcs of ``nodes`` (M,): position in ``nodes``, other end and stored edge, each
        (S,).
        """
        start = self.ptr[nodes]
        owner, arc = ragged_ranges(start, self.ptr[nodes + 1] - start)
        return owner, self.other[arc], self.edge[arc]


def incoming_arcs(edge_index: Tensor, num_nodes: int, flow: str) -> Adjacency:
    """Adjacency lists by the head of each arc: who sends to a node."""
    tail, head, edge = message_routes(edge_index, flow)
    return sort_arcs(head, tail, edge, num_nodes)


def outgoing_arcs(edge_index: Tensor, num_nodes: int, flow: str) -> Adjacency:
    """Adjacency lists by the tail of each arc: who receives from a node."""
    tail, head, edge = message_routes(edge_index, flow)
    return sort_arcs(tail, head, edge, num_nodes)


def message_routes(edge_index: Tensor, flow: str) -> tuple[Tensor, Tensor, Tensor]:
    """Tail, head and stored edge of every arc, each (A,).

    Args:
        edge_index: The stored edges.  (2, E)
        flow: "source_to_target", "target_to_source" or "both".
    """
    source, target = edge_index
    edge = torch.arange(edge_index.size(1), device=edge_index.device)
    if flow == "both":
        return torch.cat([source, target]), torch.cat([target, source]), torch.cat([edge, edge])
    return (source, target, edge) if flow == "source_to_target" else (target, source, edge)


def sort_arcs(key: Tensor, other: Tensor, edge: Tensor, num_nodes: int) -> Adjacency:
    """Sort arcs by ``key``; those of one node keep their order.

    Args:
        key: The node that each arc is looked up by: its head or its tail.  (A,)
        other: The node at the other end of each arc.  (A,)
        edge: The stored edge of each arc.  (A,)
        num_nodes: Number of nodes N of the graph, also those without an arc.
    """
    order = key.argsort(stable=True)
    ptr = torch.zeros(num_nodes + 1, dtype=torch.int64, device=key.device)
    ptr[1:] = torch.bincount(key, minlength=num_nodes).cumsum(0)
    return Adjacency(ptr, other[order], edge[order])


def ragged_ranges(start: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Concatenate the ranges ``start[i] .. start[i] + count[i] - 1``.

    Returns:
        The range i that each number belongs to, and the numbers, each (sum of count,).

    >>> ragged_ranges(torch.tensor([10, 50]), torch.tensor([2, 3]))
    (tensor([0, 0, 1, 1, 1]), tensor([10, 11, 50, 51, 52]))
    """
    owner = torch.repeat_interleave(count)
    first = count.cumsum(0) - count
    position = torch.arange(len(owner), device=owner.device)
    return owner, position + (start - first)[owner]


def pointers_from_counts(count: Tensor) -> Tensor:
    """Pointers of consecutive runs: where each run begins, and where the last one ends.  (M,) -> (M
    + 1,)

    >>> pointers_from_counts(torch.tensor([2, 0, 3]))
    tensor([0, 2, 2, 5])
    """
    ptr = count.new_zeros(len(count) + 1)
    ptr[1:] = count.cumsum(0)
    return ptr


def is_same_up_to_loops(used: Tensor, edges: Tensor) -> bool:
    """Whether ``used`` is ``edges`` followed by nothing but self-loops."""
    count = edges.size(1)
    if used.size(1) < count or not torch.equal(used[:, :count], edges):
        return False
    return bool((used[0, count:] == used[1, count:]).all())
