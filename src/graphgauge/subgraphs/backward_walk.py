"""Walks backwards along messages from many targets at once."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class WalkedArcs:
    """Arcs passed in a walk: the places of tail and head, and the key t * E + e of the edge, each
    (S,).
    """

    tail: Tensor
    head: Tensor
    edge_key: Tensor

    def where(self, index: Tensor | slice) -> "WalkedArcs":
        """The arcs selected by ``index``: a mask, positions or a slice."""
        return WalkedArcs(self.tail[index], self.head[index], self.edge_key[index])

    def distinct(self) -> "WalkedArcs":
        """Each edge once, sorted by key."""
        key, order = self.edge_key.sort(stable=True)
        is_first = torch.ones_like(key, dtype=torch.bool)
        is_first[1:] = key[1:] != key[:-1]
        return self.where(order[is_first])

    @staticmethod
    def none(like: Tensor) -> "WalkedArcs":
        """No arcs, on the device of ``like``."""
        nothing = like.new_zeros(0)
        return WalkedArcs(nothing, nothing, nothing)

    @staticmethod
    def join(parts: "list[WalkedArcs]") -> "WalkedArcs":
        """Concatenate arcs."""
        tail, head, edge_key = (
            torch.cat([getattr(part, name) for part in parts])
            for name in ("tail", "head", "edge_key")
        )
        return WalkedArcs(tail, head, edge_key)


@dataclass(frozen=True)
class BackwardWalk:
    """The result of a walk: places by distance, all places sorted, and the arcs passed on the
    way.
    """

    rings: list[Tensor]
    sorted_places: Tensor
    messages: WalkedArcs

    @property
    def frontier(self) -> Tensor:
        """The places at distance L."""
        return self.rings[-1]

    def num_targets(self, num_nodes: int) -> int:
        """Number of targets T; each target has a place of its own."""
        return (
            int(key_quotient(self.sorted_places[-1:], num_nodes)) + 1
            if len(self.sorted_places)
            else 0
        )


class LocalIndex:
    """Finds the position of a place in its own graph's list of nodes.

    A place that is not listed is that of the halo's representative node, behind the n nodes.
    """

    def __init__(self, place: Tensor, node_ptr: Tensor, num_nodes: Tensor, size: int) -> None:
        self.sorted_place, self.order = place.sort()
        self.node_ptr, self.num_nodes, self.size = node_ptr, num_nodes, size

    def __call__(self, places: Tensor) -> Tensor:
        """Positions of ``places`` (any shape), counted from each graph's first node."""
        number = key_quotient(places, self.size)
        found = torch.searchsorted(self.sorted_place, places.contiguous()).clamp(
            max=max(len(self.order) - 1, 0)
        )
        row = self.order[found] - self.node_ptr[number]
        return torch.where(self.sorted_place[found] == places, row, self.num_nodes[number])


def lowest_places(places: Tensor, size: int) -> Tensor:
    """The lowest place of each graph that has one."""
    places = places.sort().values
    number = key_quotient(places, size)
    is_first = torch.ones_like(number, dtype=torch.bool)
    is_first[1:] = number[1:] != number[:-1]
    return places[is_first]


def is_in_sorted(sorted_values: Tensor, values: Tensor) -> Tensor:
    """Which of ``values`` are in ``sorted_values``.  (M,) bool"""
    if len(sorted_values) == 0:
        return torch.zeros_like(values, dtype=torch.bool)
    found = torch.searchsorted(sorted_values, values).clamp(max=len(sorted_values) - 1)
    return sorted_values[found] == values


def key_quotient(keys: Tensor, size: int) -> Tensor:
    """The target number t of keys t * size + i."""
    return torch.div(keys, max(size, 1), rounding_mode="floor")


def key_remainder(keys: Tensor, size: int) -> Tensor:
    """The index i of keys t * size + i."""
    return keys % max(size, 1)
