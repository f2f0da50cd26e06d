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

import torch
from torch import Tensor

from graphgauge.execution import (
    CopySizes,
    GraphBatch,
    GraphCopies,
    build_edgeless_batch,
    replace_edge_ends,
    round_up_to_multiple,
)
from graphgauge.perturbation.deletion_curves import CurveLines, group_equal_keys
from graphgauge.perturbation.node_versions import KeyEncoding, NodeVersions, VersionLayout
from graphgauge.perturbation.removal_routes import RemovalRoutes
from graphgauge.subgraphs import ragged_ranges


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
            self._sum_per_point(bound).index_add(
                0, first, round_up_to_multiple(size[self.graph_index[first]], align)
            )
            for bound, size in zip(bounds, whole, strict=True)
        )
        return nodes, edges, edges

    def _sum_per_point(self, per_unit: Tensor) -> Tensor:
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
        versions = self._find_versions(distinct, line, step)
        layout = VersionLayout.from_graphs(graphs, of.unique(), versions, align)
        copy = torch.arange(start, end, device=of.device)
        bare = build_edgeless_batch(
            graphs,
            torch.cat([layout.whole, self.lines.case[distinct][versions.line]]),
            copy,
            *layout.nodes,
            align,
        )
        rows = graphs.target_row[of] + graphs.node_ptr[of][:, None]
        answers = layout.locate(line[:, None].expand_as(rows), rows, step[:, None].expand_as(rows))
        return self._add_edges(bare.with_target_rows(answers), layout)

    def _add_edges(self, bare: GraphBatch, layout: VersionLayout) -> GraphBatch:
        """Add the edges of the graphs, and those into versions."""
        graphs, versions = self.graphs, layout.versions
        edge_copy, edge_row = ragged_ranges(
            graphs.edge_ptr[layout.whole], graphs.edge_sizes[layout.whole]
        )
        owner, tail, edge = self.routes.into.at_nodes(versions.row)
        stays = ~versions.is_removed(versions.line[owner], edge, versions.step[owner])
        if self.drops:
            owner, tail, edge = owner[stays], tail[stays], edge[stays]
        sent = torch.stack(
            [
                layout.locate(versions.line[owner], tail, versions.step[owner]),
                layout.version_at[owner],
            ]
        )
        ends = torch.cat([layout.base_of[self.routes.ends[:, edge_row]], sent], 1)
        union = replace_edge_ends(
            bare,
            ends,
            torch.cat([edge_row, edge]),
            torch.cat([edge_copy, len(layout.whole) + owner]),
        )
        if self.drops:
            return union
        like = union.features.like
        return union.with_mask(torch.cat([like.new_ones(len(edge_row)), stays.to(like.dtype)]))

    def _find_versions(self, distinct: Tensor, line_of_point: Tensor, step: Tensor) -> NodeVersions:
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
        encoding = KeyEncoding(len(self.graphs.node), order.size(1) + 1, len(self.graphs.edge))
        removed, sorting = (line * encoding.edges + edge).sort()
        key = self._find_changed_nodes(line, head, torch.maximum(turn, first[line]), encoding)
        return NodeVersions(*encoding.decode(key), key, removed, turn[sorting], encoding)

    def _find_changed_nodes(
        self, line: Tensor, row: Tensor, step: Tensor, encoding: KeyEncoding
    ) -> Tensor:
        """Keys of all nodes that a change of ``row`` at ``step`` reaches in time, sorted."""
        keys, out = [], self.routes.out_of(self.hops - self.begins - 1)
        for level in range(self.begins, self.hops + 1):
            if level > self.begins:
                owner, row, _ = out.at_nodes(row)
                line, step = line[owner], step[owner]
            in_time = self.graphs.hop[row] <= self.hops - level
            key = encoding.encode(line[in_time], row[in_time], step[in_time]).unique()
            line, row, step = encoding.decode(key)
            keys.append(key)
        return torch.cat(keys).unique()
