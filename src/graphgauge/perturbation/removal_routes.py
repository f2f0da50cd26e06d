"""Lookup tables for edge removal: which nodes a removed edge can affect, and how many versions that
makes (see `incremental_removal`).
"""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from graphgauge.execution import round_up_to_multiple
from graphgauge.subgraphs import Adjacency, ComputationGraphs, pointers_from_counts, sort_arcs


@dataclass(frozen=True)
class RemovalRoutes:
    """Lookup tables for the edges of packed computation graphs.

    Nodes are rows of ``graphs.node``, edges are positions in ``graphs.edge``.
    """

    graphs: ComputationGraphs
    unit_of: Tensor  #: (sum of edges,) number of each edge's unit in its own graph; -1: none
    num_units: Tensor  #: (T,)
    _out_of: dict[int, Adjacency] = field(default_factory=dict)  #: cache of `out_of`
    _bounds: dict[tuple[int, int, int], tuple[Tensor, Tensor]] = field(default_factory=dict)

    @cached_property
    def ends(self) -> Tensor:
        """Rows of tails and heads. (2, sum of edges)"""
        first_row = self.graphs.node_ptr[:-1].repeat_interleave(self.graphs.edge_sizes)
        return self.graphs.edge_index + first_row

    @cached_property
    def into(self) -> Adjacency:
        """Edges by their head."""
        order = self.graphs.edges_by_head
        count = torch.bincount(self.ends[1], minlength=len(self.graphs.node))
        return Adjacency(pointers_from_counts(count), self.ends[0, order], order)

    @cached_property
    def first_unit(self) -> Tensor:
        """Where the units of each graph begin. (T,)"""
        return self.num_units.cumsum(0) - self.num_units

    @cached_property
    def by_unit(self) -> Adjacency:
        """Heads and edges by their unit."""
        (edge,) = (self.unit_of >= 0).nonzero(as_tuple=True)
        unit = (self.first_unit.repeat_interleave(self.graphs.edge_sizes) + self.unit_of)[edge]
        return sort_arcs(unit, self.ends[1, edge], edge, int(self.num_units.sum()))

    def out_of(self, most_hops: int) -> Adjacency:
        """Edges by their tail, if their head is at most ``most_hops`` from the target; cached."""
        if most_hops not in self._out_of:
            (edge,) = (self.graphs.hop[self.ends[1]] <= most_hops).nonzero(as_tuple=True)
            self._out_of[most_hops] = sort_arcs(
                self.ends[0, edge], self.ends[1, edge], edge, len(self.graphs.node)
            )
        return self._out_of[most_hops]

    def bounds(self, hops: int, begins: int, align: int) -> tuple[Tensor, Tensor]:
        """Upper bounds on the nodes and edges of the versions that the removal of each unit makes.

        A change is followed along all walks; nodes that several walks reach are counted once for
        each. Results are cached.

        Args:
            hops: Number of rounds of messages L.
            begins: The first round in which a removal changes something, 0 or 1.
            align: Sizes are rounded up to a multiple of this number.

        Returns:
            Nodes (sum of units,) and edges (sum of units,).
        """
        key = (hops, begins, align)
        if key not in self._bounds:
            degree = self.into.ptr.diff()
            nodes, edges = (
                self._sum_per_unit(self._sum_over_reached(size, hops, begins))
                for size in (
                    round_up_to_multiple(torch.ones_like(degree), align),
                    round_up_to_multiple(degree, align),
                )
            )
            self._bounds[key] = nodes, edges
        return self._bounds[key]

    def _sum_over_reached(self, value: Tensor, hops: int, begins: int) -> Tensor:
        """Sum ``value`` over the nodes that a change of each node reaches in time, and itself."""
        out = self.out_of(hops - begins - 1)
        tail, total = torch.repeat_interleave(out.ptr.diff()), torch.zeros_like(value)
        for level in range(hops, begins - 1, -1):
            further = torch.zeros_like(value).index_add(0, tail, total[out.other])
            total = torch.where(self.graphs.hop <= hops - level, value + further, 0)
        return total

    def _sum_per_unit(self, value: Tensor) -> Tensor:
        """Sum a value over the heads of each unit's edges. (sum of nodes,) -> (sum of units,)"""
        unit = torch.repeat_interleave(self.by_unit.ptr.diff())
        return value.new_zeros(len(self.by_unit.ptr) - 1).index_add(
            0, unit, value[self.by_unit.other]
        )
