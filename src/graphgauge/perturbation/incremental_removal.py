"""Edge curves on one graph for each target, instead of one copy for each step.

A network with L rounds of messages cannot distinguish two nodes that have the same features and
receive the same messages, L rounds back. So following a target while edges are removed one after
another needs no copies of its graph, only a new *version* of each node that receives something else
than before:

    (line, v, k) is a version of v  if step k removes an edge into v,
                                    or v receives from a node that has a version of step k,
                                    and the change can still arrive: its round and the hops
                                    left to the target are at most L

A version has the same incoming edges as v, each from the latest version of its tail up to step k,
or from the tail in the unedited graph. Edges that were removed by then are masked ("mask") or
missing ("drop"). The prediction at step k is that of the target's latest version.

A removal changes what a node receives in round 1. If messages are divided by their sender's degree,
dropping an edge into v also changes what v sends in round 1, so its receivers get new versions too:
the change begins at round 0.

With L = 2 a step costs the edges into one neighbour of the target and into the target, while a copy
costs all edges within two hops: on a graph of 1,180 nodes and 226,272 edges about 500 times as
many. The sums are those of the copy, in the same order.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from graphgauge.execution import (
    AlignedLayout,
    CopySizes,
    GraphBatch,
    GraphCopies,
    build_edgeless_batch,
    replace_edge_ends,
    round_up_to_multiple,
)
from graphgauge.perturbation.deletion_curves import CurveLines, group_equal_keys
from graphgauge.subgraphs import (
    Adjacency,
    ComputationGraphs,
    pointers_from_counts,
    ragged_ranges,
    sort_arcs,
)


@dataclass(frozen=True)
class RemovalRoutes:
    """Lookup tables for the edges of packed computation graphs.

    Nodes are rows of ``graphs.node``, edges are positions in ``graphs.edge``.
    """

    graphs: ComputationGraphs
    unit_of: Tensor  #: (sum of edges,) number of each edge's unit in its own graph; -1: none
    num_units: Tensor  #: (T,)

    @cached_property
    def ends(self) -> Tensor:
        """Rows of tails and heads. (2, sum of edges)"""
        return self.graphs.edge_index + self.graphs.node_ptr[:-1].repeat_interleave(
            self.graphs.edge_sizes
        )

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

    @cached_property
    def known(self) -> dict[Any, Any]:
        """Cache of `out_of` and `bounds`."""
        return {}

    def out_of(self, most_hops: int) -> Adjacency:
        """Edges by their tail, if their head is at most ``most_hops`` from the target; cached."""
        if most_hops not in self.known:
            (edge,) = (self.graphs.hop[self.ends[1]] <= most_hops).nonzero(as_tuple=True)
            self.known[most_hops] = sort_arcs(
                self.ends[0, edge], self.ends[1, edge], edge, len(self.graphs.node)
            )
        arcs: Adjacency = self.known[most_hops]
        return arcs

    def bounds(self, hops: int, begins: int, align: int) -> tuple[Tensor, Tensor]:
        """Upper bounds on the nodes and edges of the versions that each unit's removal makes;
        cached.

        A change is followed along all walks; nodes that several walks reach are counted once for
        each. (sum of units,), (sum of units,)
        """
        key = (hops, begins, align)
        if key not in self.known:
            degree = self.into.ptr.diff()
            sizes = (
                round_up_to_multiple(torch.ones_like(degree), align),
                round_up_to_multiple(degree, align),
            )
            self.known[key] = tuple(self.per_unit(self.reached(own, hops, begins)) for own in sizes)
        nodes, edges = self.known[key]
        return nodes, edges

    def reached(self, own: Tensor, hops: int, begins: int) -> Tensor:
        """Sum ``own`` over all nodes that a change of each node reaches in time, itself
        included.
        """
        out = self.out_of(hops - begins - 1)
        tail, total = torch.repeat_interleave(out.ptr.diff()), torch.zeros_like(own)
        for level in range(hops, begins - 1, -1):
            further = torch.zeros_like(own).index_add(0, tail, total[out.other])
            total = torch.where(self.graphs.hop <= hops - level, own + further, 0)
        return total

    def per_unit(self, value: Tensor) -> Tensor:
        """Sum a value over the heads of each unit's edges. (sum of nodes,) -> (sum of units,)"""
        unit = torch.repeat_interleave(self.by_unit.ptr.diff())
        return value.new_zeros(len(self.by_unit.ptr) - 1).index_add(
            0, unit, value[self.by_unit.other]
        )


@dataclass(frozen=True)
class _KeyEncoding:
    """Encodes triples as numbers; each field is one more than the largest value."""

    rows: int
    steps: int
    edges: int

    def key(self, line: Tensor, row: Tensor, step: Tensor) -> Tensor:
        """Keys in the order of lines, rows, steps."""
        return (line * self.rows + row) * self.steps + step

    def read(self, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Line, row and step of a key."""
        node = key // self.steps
        return node // self.rows, node % self.rows, key % self.steps


@dataclass(frozen=True)
class _NodeVersions:
    """Versions of nodes along some lines, and when edges are removed there. Keys are sorted."""

    line: Tensor  #: (V,)
    row: Tensor  #: (V,) the node
    step: Tensor  #: (V,)
    key: Tensor  #: (V,) of (line, row, step)
    removed: Tensor  #: (R,) key of (line, edge)
    turn: Tensor  #: (R,) the step that removes it
    radix: _KeyEncoding

    def latest(self, line: Tensor, row: Tensor, step: Tensor) -> Tensor:
        """Number of the latest version of nodes up to a step; -1 for none: the node is unedited."""
        if not len(self.key):
            return torch.full_like(row, -1)
        key, steps = self.radix.key(line, row, step), self.radix.steps
        number = torch.searchsorted(self.key, key, right=True) - 1
        is_same_node = (number >= 0) & (self.key[number.clamp(min=0)] // steps == key // steps)
        return torch.where(is_same_node, number, -1)

    def is_removed(self, line: Tensor, edge: Tensor, step: Tensor) -> Tensor:
        """Whether edges are removed by a step."""
        if not len(self.removed):
            return torch.zeros_like(edge, dtype=torch.bool)
        key = line * self.radix.edges + edge
        at = torch.searchsorted(self.removed, key).clamp(max=len(self.removed) - 1)
        return (self.removed[at] == key) & (self.turn[at] <= step)


@dataclass(frozen=True)
class VersionedCopies(GraphCopies):
    """Points (line, step) as copies that consist of the versions that their step makes.

    A batch contains each graph only once.
    """

    lines: CurveLines
    line: Tensor  #: (K,) of each point
    step: Tensor  #: (K,) 0: nothing is removed
    routes: RemovalRoutes
    hops: int
    begins: int  #: the round in which a removal changes what a node receives, or 0
    drops: bool

    def sizes(self, align: int) -> CopySizes:
        """Upper bounds on the nodes and edges of each point's versions.

        The graph itself is counted with its first point.
        """
        _, first = group_equal_keys(self.graph_index)
        whole = (self.graphs.sizes, self.graphs.edge_sizes)
        bounds = self.routes.bounds(self.hops, self.begins, align)
        nodes, edges = (
            self.per_point(bound).index_add(
                0, first, round_up_to_multiple(size[self.graph_index[first]], align)
            )
            for bound, size in zip(bounds, whole, strict=True)
        )
        return nodes, edges, edges

    def per_point(self, per_unit: Tensor) -> Tensor:
        """Sum over the units removed since the previous point of the same line, if there is one.
        (K,)
        """
        order = self.lines.order
        unit = self.routes.first_unit[self.lines.case][:, None] + order
        value = per_unit[unit.clamp(min=0)] if len(per_unit) else 0
        total = torch.where(order >= 0, value, 0).cumsum(1)
        upto = torch.cat([torch.zeros_like(total[:, :1]), total], 1)[self.line, self.step]
        is_first = self.line.new_zeros(1, dtype=torch.bool)
        follows = torch.cat([is_first, self.line[1:] == self.line[:-1]])[: len(self)]
        return upto - torch.where(follows, upto.roll(1), 0).clamp(max=upto)

    def single_sizes(self, union: GraphBatch, number: int) -> tuple[int, int, int]:
        """All rows and edges take part in every operation."""
        return union.num_rows, union.edge_index.size(1), union.edge_index.size(1)

    def union(self, start: int, end: int, align: int) -> GraphBatch:
        """A batch with the graphs of points start..end-1, each once, and the versions of their
        nodes.
        """
        graphs, of, step = self.graphs, self.graph_index[start:end], self.step[start:end]
        distinct, line = self.line[start:end].unique(return_inverse=True)
        versions = self.versions(distinct, line, step)
        sheet = _VersionLayout.from_graphs(graphs, of.unique(), versions, align)
        copy = torch.arange(start, end, device=of.device)
        bare = build_edgeless_batch(
            graphs,
            torch.cat([sheet.whole, self.lines.case[distinct][versions.line]]),
            copy,
            *sheet.nodes,
            align,
        )
        rows = graphs.target_row[of] + graphs.node_ptr[of][:, None]
        answers = sheet.place(line[:, None].expand_as(rows), rows, step[:, None].expand_as(rows))
        return self.joined(bare.with_target_rows(answers), sheet)

    def joined(self, bare: GraphBatch, sheet: "_VersionLayout") -> GraphBatch:
        """Add the edges of the graphs, and those into versions."""
        graphs, versions = self.graphs, sheet.versions
        edge_copy, edge_row = ragged_ranges(
            graphs.edge_ptr[sheet.whole], graphs.edge_sizes[sheet.whole]
        )
        owner, tail, edge = self.routes.into.at_nodes(versions.row)
        stays = ~versions.is_removed(versions.line[owner], edge, versions.step[owner])
        if self.drops:
            owner, tail, edge = owner[stays], tail[stays], edge[stays]
        sent = torch.stack(
            [sheet.place(versions.line[owner], tail, versions.step[owner]), sheet.version_at[owner]]
        )
        ends = torch.cat([sheet.base_of[self.routes.ends[:, edge_row]], sent], 1)
        union = replace_edge_ends(
            bare,
            ends,
            torch.cat([edge_row, edge]),
            torch.cat([edge_copy, len(sheet.whole) + owner]),
        )
        if self.drops:
            return union
        like = union.features.like
        return union.with_mask(torch.cat([like.new_ones(len(edge_row)), stays.to(like.dtype)]))

    def versions(self, distinct: Tensor, line_of_point: Tensor, step: Tensor) -> _NodeVersions:
        """The versions that points at ``step`` of lines ``distinct[line_of_point]`` need.

        Lines are numbered as in ``distinct``.
        """
        order = self.lines.order[distinct]
        first, last = (
            torch.zeros_like(distinct).scatter_reduce(
                0, line_of_point, step, how, include_self=False
            )
            for how in ("amin", "amax")
        )
        turn = torch.arange(1, order.size(1) + 1, device=step.device)
        line, place = ((order >= 0) & (turn <= last[:, None])).nonzero(as_tuple=True)
        unit = self.routes.first_unit[self.lines.case[distinct]][line] + order[line, place]
        owner, head, edge = self.routes.by_unit.at_nodes(unit)
        line, turn = line[owner], turn[place[owner]]
        radix = _KeyEncoding(len(self.graphs.node), order.size(1) + 1, len(self.graphs.edge))
        removed, sorting = (line * radix.edges + edge).sort()
        key = self.changed(line, head, torch.maximum(turn, first[line]), radix)
        return _NodeVersions(*radix.read(key), key, removed, turn[sorting], radix)

    def changed(self, line: Tensor, row: Tensor, step: Tensor, radix: _KeyEncoding) -> Tensor:
        """Keys of all nodes that a change of ``row`` at ``step`` reaches in time, sorted."""
        keys, out = [], self.routes.out_of(self.hops - self.begins - 1)
        for level in range(self.begins, self.hops + 1):
            if level > self.begins:
                owner, row, _ = out.at_nodes(row)
                line, step = line[owner], step[owner]
            in_time = self.graphs.hop[row] <= self.hops - level
            key = radix.key(line[in_time], row[in_time], step[in_time]).unique()
            line, row, step = radix.read(key)
            keys.append(key)
        return torch.cat(keys).unique()


@dataclass(frozen=True)
class _VersionLayout:
    """Rows of the nodes of a batch: whole graphs first, then versions, each as a separate piece.

    On a CPU a version is as far behind a multiple of 16 as its node, so that its row of a matrix
    product gets the same bits.
    """

    whole: Tensor  #: (W,) numbers of the graphs that are in the batch as a whole
    versions: _NodeVersions
    #: for each node its row in ``graphs.node``, its piece and its row in the batch; and the layout
    nodes: tuple[Tensor, Tensor, Tensor, AlignedLayout]
    base_of: Tensor  #: (sum of nodes,) row in the batch of each node of a graph in the batch, or -1
    version_at: Tensor  #: (V,) row in the batch

    @staticmethod
    def from_graphs(
        graphs: ComputationGraphs, whole: Tensor, versions: _NodeVersions, align: int
    ) -> "_VersionLayout":
        """Lay out graphs and versions."""
        piece, row = ragged_ranges(graphs.node_ptr[whole], graphs.sizes[whole])
        position = row - graphs.node_ptr[whole][piece]
        version_piece = torch.arange(len(versions.row), device=whole.device) + len(whole)
        shift = torch.zeros_like(graphs.node).index_copy(0, row, position % align)[versions.row]
        layout = AlignedLayout.from_counts(
            torch.cat([graphs.sizes[whole], shift + 1]), align, spare=2
        )
        base_at = layout.start[piece] + position
        version_at = layout.start[version_piece] + shift
        nodes = (
            torch.cat([row, versions.row]),
            torch.cat([piece, version_piece]),
            torch.cat([base_at, version_at]),
            layout,
        )
        base_of = torch.full_like(graphs.node, -1).index_copy(0, row, base_at)
        return _VersionLayout(whole, versions, nodes, base_of, version_at)

    def place(self, line: Tensor, row: Tensor, step: Tensor) -> Tensor:
        """Row in the batch of the latest version of a node up to a step, or of the node itself."""
        if not len(self.version_at):
            return self.base_of[row]
        number = self.versions.latest(line, row, step)
        return torch.where(number >= 0, self.version_at[number.clamp(min=0)], self.base_of[row])
