"""Cut the computation graphs of many nodes or links out of one graph.

The cost is that of what is cut, not of the whole graph. All targets walk backwards along the
messages at the same time. A place in the walk is the pair (target number t, node v), stored as one
integer t * N + v, so that one search in one sorted list finds the places that were visited before.
With d(v) the number of messages from v to the target along the shortest route:

    nodes                               d(v) <= L
    relevant edges, scope "messages"    head at d <= L - 1  (each carries a message that can arrive)
    relevant edges, scope "induced"     both ends at d <= L
    halo "in"                           all edges into nodes with d <= L  (they set the degrees)
    halo "in and out"                   also all edges out of these nodes
    halo "one ring more"                the same for the nodes of that halo
    halo "whole graph"                    everything

No message from beyond the L hops can arrive in time, so the node at the far end of a halo edge does
not matter. The first two halos therefore have one node, which represents all nodes outside and
shows the lowest of their ids. This keeps the extracted graphs of hubs small. Stored self-loops are
kept but never relevant.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from graphgauge.subgraphs.adjacency import (
    Adjacency,
    incoming_arcs,
    message_routes,
    outgoing_arcs,
    pointers_from_counts,
)
from graphgauge.subgraphs.backward_walk import (
    BackwardWalk,
    LocalIndex,
    WalkedArcs,
    is_in_sorted,
    key_quotient,
    key_remainder,
    lowest_places,
)
from graphgauge.subgraphs.computation_graph import HALOS, ComputationGraphs
from graphgauge.subgraphs.input_data import InputGraphs

EDGE_SCOPES = ("messages", "induced")


@dataclass(frozen=True)
class Extractor:
    """Cuts computation graphs out of ``source``. Its adjacency lists are built on first use."""

    source: InputGraphs
    flow: str = "source_to_target"

    @cached_property
    def into(self) -> Adjacency:
        """Who sends to a node."""
        return incoming_arcs(self.source.edge_index, self.source.num_nodes, self.flow)

    @cached_property
    def out_of(self) -> Adjacency:
        """Who receives from a node."""
        return outgoing_arcs(self.source.edge_index, self.source.num_nodes, self.flow)

    def extract(
        self, target: Tensor, hops: int, halo: int = 0, scope: str = "messages"
    ) -> ComputationGraphs:
        """Extract computation graphs.

        Args:
            target: Nodes (T, 1) or links (T, 2).
            hops: Number of hops L.
            halo: Index into ``HALOS`` of what is added around each graph.
            scope: "messages" or "induced": which edges are relevant.
        """
        walk = self.walk(target, hops)
        relevant, rest = self.edges_of(walk, halo, scope)
        return self.pack(target, walk, relevant, rest, halo)

    def walk(self, target: Tensor, hops: int) -> "BackwardWalk":
        """Walk ``hops`` messages back from all targets at once."""
        number = torch.arange(len(target), device=target.device)[:, None]
        frontier = (number * self.source.num_nodes + target).unique()
        rings, seen, messages = [frontier], frontier, [WalkedArcs.none(target)]
        for _ in range(hops):
            step = self.arcs_into(frontier)
            found = step.tail.unique()
            frontier = found[~is_in_sorted(seen, found)]
            seen = torch.cat([seen, frontier]).sort().values
            rings.append(frontier)
            messages.append(step)
        return BackwardWalk(rings, seen, WalkedArcs.join(messages))

    def arcs_into(self, places: Tensor) -> "WalkedArcs":
        """All arcs whose head is one of ``places``."""
        owner, other, edge_key = self.arcs_at(places, self.into)
        return WalkedArcs(other, places[owner], edge_key)

    def arcs_out_of(self, places: Tensor) -> "WalkedArcs":
        """All arcs whose tail is one of ``places``."""
        owner, other, edge_key = self.arcs_at(places, self.out_of)
        return WalkedArcs(places[owner], other, edge_key)

    def arcs_at(self, places: Tensor, arcs: Adjacency) -> tuple[Tensor, Tensor, Tensor]:
        """Arcs at ``places``: position in ``places``, place of the other end, key t * E + e of the
        edge.
        """
        size = self.source.num_nodes
        owner, other, edge = arcs.at_nodes(places % size)
        number = key_quotient(places, size)[owner]
        return owner, number * size + other, number * self.source.num_edges + edge

    def edges_of(
        self, walk: "BackwardWalk", halo: int, scope: str
    ) -> tuple["WalkedArcs", "WalkedArcs"]:
        """The relevant edges, and the other edges of the extracted graph; no edge is in both or
        twice.

        Args:
            walk: The walk back from all targets.
            halo: Index into ``HALOS`` of what is added around each graph.
            scope: "messages" or "induced": which edges are relevant.
        """
        relevant = walk.messages
        border = (
            self.arcs_into(walk.frontier)
            if scope == "induced" or halo > 0
            else relevant.where(slice(0))
        )
        is_inner = is_in_sorted(walk.sorted_places, border.tail) & (scope == "induced")
        relevant = WalkedArcs.join([relevant, border.where(is_inner)])
        is_loop = relevant.tail == relevant.head
        rest = WalkedArcs.join(
            [relevant.where(is_loop), *self.halo_arcs(walk, border.where(~is_inner), halo)]
        )
        relevant = relevant.where(~is_loop)
        if self.flow == "both" or halo > HALOS.index(
            "in"
        ):  # an edge can be met from both of its ends
            relevant, rest = relevant.distinct(), rest.distinct()
            rest = rest.where(~is_in_sorted(relevant.edge_key, rest.edge_key))
        return relevant, rest

    def halo_arcs(
        self, walk: "BackwardWalk", border: "WalkedArcs", halo: int
    ) -> list["WalkedArcs"]:
        """The arcs of a halo; some may be relevant, or listed twice.

        Args:
            walk: The walk back from all targets.
            border: The arcs into the nodes at distance L, without relevant ones.
            halo: Index into ``HALOS`` of what is added around each graph.
        """
        if HALOS[halo] == "whole graph":
            return [self.all_arcs(walk)]
        if HALOS[halo] in ("none", "in"):
            return [border] if halo else []
        around = [border, self.arcs_out_of(walk.sorted_places)]
        if HALOS[halo] == "one ring more":
            joined = WalkedArcs.join(around)
            ends = torch.cat([joined.tail, joined.head]).unique()
            around += [self.arcs_into(ends), self.arcs_out_of(ends)]
        return around

    def all_arcs(self, walk: "BackwardWalk") -> "WalkedArcs":
        """Every edge of the graph, for every target."""
        number = torch.arange(
            walk.num_targets(self.source.num_nodes), device=walk.sorted_places.device
        )[:, None]
        one_way = self.flow if self.flow != "both" else "source_to_target"
        *ends, edge = message_routes(self.source.edge_index, one_way)
        tail, head = (number * self.source.num_nodes + end[None] for end in ends)
        return WalkedArcs(
            tail.reshape(-1), head.reshape(-1), (number * self.source.num_edges + edge).reshape(-1)
        )

    def pack(
        self,
        target: Tensor,
        walk: "BackwardWalk",
        relevant: "WalkedArcs",
        rest: "WalkedArcs",
        halo: int,
    ) -> ComputationGraphs:
        """Number the nodes of each graph (by hop, then id, the halo last) and translate its
        edges.

        Args:
            target: Nodes (T, 1) or links (T, 2).
            walk: The walk back from all targets.
            relevant: Arcs of the relevant edges, each once.
            rest: Arcs of the other edges of the graphs, each once.
            halo: Index into ``HALOS`` of what was added around each graph.
        """
        size, count, hops = self.source.num_nodes, len(target), len(walk.rings) - 1
        rings = [*walk.rings, self.outer_places(walk, rest, halo)]
        place = torch.cat(rings)
        hop = torch.repeat_interleave(
            torch.tensor([len(ring) for ring in rings], device=place.device)
        )
        order = (key_quotient(place, size) * len(rings) + hop).argsort(stable=True)
        place, hop = place[order], hop[order]
        number = key_quotient(place, size)
        num_nodes = torch.bincount(number[hop <= hops], minlength=count)
        rows = LocalIndex(
            place, pointers_from_counts(torch.bincount(number, minlength=count)), num_nodes, size
        )
        steps, edge_number, edge = self.ordered(relevant, rest)
        return ComputationGraphs(
            source=self.source,
            target=target,
            node=place % size,
            hop=hop,
            node_ptr=rows.node_ptr,
            num_nodes=num_nodes,
            edge=edge,
            edge_index=self.stored(steps, edge_number, edge, rows),
            edge_ptr=pointers_from_counts(torch.bincount(edge_number, minlength=count)),
            num_edges=torch.bincount(
                key_quotient(relevant.edge_key, self.source.num_edges), minlength=count
            ),
            target_row=rows(torch.arange(count, device=target.device)[:, None] * size + target),
            halo=target.new_full((count,), halo),
            offset=target.new_zeros(count),
            edge_offset=target.new_zeros(count),
        )

    def outer_places(self, walk: "BackwardWalk", rest: "WalkedArcs", halo: int) -> Tensor:
        """The places of the halo.

        This is one representative of all nodes that edges reach outside, or all of these nodes, or
        all nodes of the whole graph.

        Args:
            walk: The walk back from all targets, whose places are not in the halo.
            rest: Arcs of the edges that are not relevant, some of which lead outside.
            halo: Index into ``HALOS`` of what is added around each graph.
        """
        if HALOS[halo] == "whole graph":
            ends = torch.arange(
                walk.num_targets(self.source.num_nodes) * self.source.num_nodes,
                device=rest.tail.device,
            )
            return ends[~is_in_sorted(walk.sorted_places, ends)]
        ends = torch.cat([rest.tail, rest.head] if halo > HALOS.index("in") else [rest.tail])
        outer = ends[~is_in_sorted(walk.sorted_places, ends)]
        return (
            outer.unique()
            if HALOS[halo] == "one ring more"
            else lowest_places(outer, self.source.num_nodes)
        )

    def ordered(
        self, relevant: "WalkedArcs", rest: "WalkedArcs"
    ) -> tuple["WalkedArcs", Tensor, Tensor]:
        """All edges sorted by graph, relevant ones first, then by id; with their graph's number and
        their id.
        """
        steps, size = WalkedArcs.join([relevant, rest]), self.source.num_edges
        is_rest = torch.arange(len(steps.edge_key), device=steps.edge_key.device) >= len(
            relevant.edge_key
        )
        number = key_quotient(steps.edge_key, size)
        order = (steps.edge_key + (number + is_rest) * size).argsort()  # = (2 t + is_rest) E + e
        return steps.where(order), number[order], key_remainder(steps.edge_key, size)[order]

    def stored(
        self, steps: "WalkedArcs", number: Tensor, edge: Tensor, rows: "LocalIndex"
    ) -> Tensor:
        """Arcs in the direction in which their edge is stored, as positions in their graph.
        (2, S)

        Args:
            steps: S arcs.
            number: Number of the graph of each arc.  (S,)
            edge: The stored edge of each arc.  (S,)
            rows: Finds the position of a node in its graph.
        """
        if self.flow == "both":
            return rows(number * self.source.num_nodes + self.source.edge_index[:, edge])
        ends = (
            [steps.tail, steps.head]
            if self.flow == "source_to_target"
            else [steps.head, steps.tail]
        )
        return rows(torch.stack(ends))
