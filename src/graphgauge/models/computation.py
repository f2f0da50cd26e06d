"""Computation graphs: the part of the graph that decides one target's prediction, for many targets
in one batch.

Each computation graph lists, in this order,

    nodes   the n nodes within L hops of the target (the target itself first), then the halo (often one stand-in node)
    edges   the E_rel relevant edges, then edges that only complete the model: stored self-loops, edges from the halo ...

Scores, neighbours and edits concern the first n nodes and the first E_rel edges. The rest is there
because the prediction on the extracted graph must be the model's prediction on the whole graph. T
graphs are packed into flat tensors; graph i owns ``node[node_ptr[i]:node_ptr[i+1]]``, and likewise
for edges.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core.errors import BadTarget
from graphgauge.core.xplanation import Target, plain_target
from graphgauge.models.arcs import ragged_ranges, starts
from graphgauge.models.edge_weights import Weights
from graphgauge.models.graphs import Graphs
from graphgauge.models.targets import Targets

#: what an extracted graph holds beside the messages, from the least to everything
HALOS = ("none", "in", "in and out", "one ring more", "whole graph")


@dataclass(frozen=True)
class ComputationGraphs:
    """T packed computation graphs. ``len``, ``[i]`` and iteration give single ones."""

    source: Graphs
    #: (T, 1) node or graph ids, (T, 2) links; one column more where targets have a label (see
    #: `label`)
    target: Tensor
    node: Tensor  #: (sum of nodes,) ids in the whole graph
    #: (sum of nodes,) distance to the target in messages; L + 1 in the halo, 0 in graph tasks
    hop: Tensor
    node_ptr: Tensor  #: (T + 1,)
    num_nodes: Tensor  #: (T,) n: nodes within L hops
    edge: Tensor  #: (sum of edges,) ids in the whole graph
    edge_index: Tensor  #: (2, sum of edges) positions inside each graph's own node list
    edge_ptr: Tensor  #: (T + 1,)
    num_edges: Tensor  #: (T,) E_rel: relevant edges
    target_row: Tensor  #: (T, 1) or (T, 2) positions of the target's nodes; (T, 0) in graph tasks
    halo: Tensor  #: (T,) index into HALOS: how much had to be taken along
    offset: (
        Tensor  #: (T,) id of the first node of the graph it is cut from (0 except in graph tasks)
    )
    edge_offset: Tensor  #: (T,) likewise for edges
    weights: Weights | None = (
        None  #: of the whole graph's edges, where some that set degrees were left out (see `lean`)
    )
    chosen_class: Tensor | None = (
        None  #: (T,) class to explain of each target; None: the predicted one
    )

    def __len__(self) -> int:
        return len(self.num_nodes)

    def __repr__(self) -> str:
        return f"ComputationGraphs({len(self)} graphs, {len(self.node)} nodes, {len(self.edge)} edges, halo {self.notes()})"

    def __getitem__(self, number: int) -> "ComputationGraph":
        if not isinstance(number, int):
            raise TypeError(
                f"one computation graph is taken by its number; for several use take(tensor), not [{number!r}]."
            )
        if not -len(self) <= number < len(self):
            raise IndexError(
                f"computation graph {number} was asked for, but there are {len(self)}."
            )
        return ComputationGraph(self, range(len(self))[number])

    def __iter__(self) -> Iterator["ComputationGraph"]:
        return (self[number] for number in range(len(self)))

    @property
    def targets(self) -> Targets:
        """``target`` as checked targets, which a model takes as they are."""
        source, level = self.source, ("graph", "node", "link")[self.target_row.size(1)]
        size = source.num_graphs if level == "graph" else source.num_nodes
        return Targets(level, size, self.target)

    @property
    def label(self) -> Tensor | None:
        """The label that is asked about, where targets have one: the column of the network's
        output.  (T,)
        """
        return self.targets.label

    @property
    def sizes(self) -> Tensor:
        """Nodes of each graph, halo included.  (T,)"""
        return self.node_ptr.diff()

    @property
    def edge_sizes(self) -> Tensor:
        """Edges of each graph, relevant or not.  (T,)"""
        return self.edge_ptr.diff()

    @property
    def edge_owner(self) -> Tensor:
        """The number of each edge's graph.  (sum of edges,)"""
        return torch.repeat_interleave(self.edge_sizes)

    @property
    def edge_place(self) -> Tensor:
        """The place of each edge in its own graph; relevant are those below ``num_edges``.
        (sum of edges,)
        """
        return (
            torch.arange(len(self.edge), device=self.edge.device) - self.edge_ptr[self.edge_owner]
        )

    @cached_property
    def bounds(self) -> tuple[list[int], list[int]]:
        """``node_ptr`` and ``edge_ptr`` as numbers, read from the device once."""
        return self.node_ptr.tolist(), self.edge_ptr.tolist()

    @cached_property
    def counts(self) -> tuple[list[int], list[int]]:
        """``num_nodes`` and ``num_edges`` as numbers."""
        return self.num_nodes.tolist(), self.num_edges.tolist()

    @cached_property
    def by_head(self) -> Tensor:
        """Edges of each graph in the order of the nodes they go to, as places in ``edge``.
        (sum of edges,)
        """
        return (self.edge_index[1] + self.node_ptr[:-1].repeat_interleave(self.edge_sizes)).argsort(
            stable=True
        )

    @cached_property
    def widest_halo(self) -> int:
        """The widest halo among the graphs, as an index into HALOS."""
        return int(self.halo.max()) if len(self) else 0

    @cached_property
    def target_ids(self) -> list[list[int]]:
        """``target`` as numbers."""
        return self.target.tolist()

    def take(self, index: Tensor) -> "ComputationGraphs":
        """The graphs with these numbers, in this order; a number may come twice."""
        _, node_row = ragged_ranges(self.node_ptr[index], self.sizes[index])
        _, edge_row = ragged_ranges(self.edge_ptr[index], self.edge_sizes[index])
        return ComputationGraphs(
            source=self.source,
            chosen_class=None if self.chosen_class is None else self.chosen_class[index],
            weights=self.weights,
            node=self.node[node_row],
            hop=self.hop[node_row],
            node_ptr=starts(self.sizes[index]),
            edge=self.edge[edge_row],
            edge_index=self.edge_index[:, edge_row],
            edge_ptr=starts(self.edge_sizes[index]),
            **{name: getattr(self, name)[index] for name in PER_GRAPH},
        )

    @staticmethod
    def join(parts: Sequence["ComputationGraphs"]) -> "ComputationGraphs":
        """The graphs of several batches, one after another."""
        return ComputationGraphs(
            source=parts[0].source,
            chosen_class=joined_classes(parts),
            weights=parts[0].weights,
            node_ptr=starts(torch.cat([part.sizes for part in parts])),
            edge_ptr=starts(torch.cat([part.edge_sizes for part in parts])),
            edge_index=torch.cat([part.edge_index for part in parts], dim=1),
            **{
                name: torch.cat([getattr(part, name) for part in parts])
                for name in ("node", "hop", "edge", *PER_GRAPH)
            },
        )

    def notes(self) -> dict[str, int]:
        """How many graphs carry which halo.

        ``{"in": 98, "whole graph": 2}`` says that two targets could not be cut out of the graph.
        """
        count = torch.bincount(self.halo, minlength=len(HALOS)).tolist()
        return {name: number for name, number in zip(HALOS, count, strict=True) if number}


def joined_classes(parts: Sequence[ComputationGraphs]) -> Tensor | None:
    """The chosen classes of several batches; None if none were chosen."""
    found = [part.chosen_class for part in parts if part.chosen_class is not None]
    return torch.cat(found) if len(found) == len(parts) else None


PER_GRAPH = ("target", "num_nodes", "num_edges", "target_row", "halo", "offset", "edge_offset")


@dataclass(frozen=True)
class ComputationGraph:
    """One graph of a batch, as people look at it."""

    batch: ComputationGraphs
    number: int

    def __repr__(self) -> str:
        return (
            f"ComputationGraph(target={self.target}, nodes={len(self.nodes)}, edges={len(self.edges)}, "
            f"halo={self.halo!r}: {len(self.all_nodes) - len(self.nodes)} nodes, {len(self.all_edges) - len(self.edges)} edges)"
        )

    @property
    def target(self) -> Target:
        """The node id, pair of node ids, or graph index; with its label where there is one."""
        return plain_target(self.batch.target_ids[self.number])

    @property
    def nodes(self) -> Tensor:
        """Ids of the nodes within L hops.  (n,)"""
        return self.all_nodes[: self.batch.counts[0][self.number]]

    @property
    def edges(self) -> Tensor:
        """Ids of the relevant edges.  (E_rel,)"""
        return self.all_edges[: self.batch.counts[1][self.number]]

    @property
    def all_nodes(self) -> Tensor:
        """Ids of all nodes, halo included; the rows of ``x``."""
        return self.batch.node[self.node_slice] - self.batch.offset[self.number]

    @property
    def all_edges(self) -> Tensor:
        """Ids of all edges; the columns of ``edge_index``."""
        return self.batch.edge[self.edge_slice] - self.batch.edge_offset[self.number]

    @property
    def hops(self) -> Tensor:
        """Distance of each of ``nodes`` to the target.  (n,)"""
        return self.batch.hop[self.node_slice][: self.batch.counts[0][self.number]]

    @property
    def x(self) -> Tensor:
        """Features of all nodes, those of ``nodes`` first."""
        return self.batch.source.x[self.batch.node[self.node_slice]]

    @property
    def edge_index(self) -> Tensor:
        """All edges as positions in ``all_nodes``, those of ``edges`` first."""
        return self.batch.edge_index[:, self.edge_slice]

    @property
    def target_rows(self) -> Tensor:
        """Where the target's node(s) stand in ``nodes``."""
        return self.batch.target_row[self.number]

    @property
    def halo(self) -> str:
        """What was taken along so that the prediction stays the model's."""
        return HALOS[int(self.batch.halo[self.number])]

    @property
    def data(self) -> Data:
        """As a PyG ``Data`` with every attribute the net takes."""
        source, node, edge = (
            self.batch.source,
            self.batch.node[self.node_slice],
            self.batch.edge[self.edge_slice],
        )
        attrs: dict[str, Any] = {name: value[node] for name, value in source.node_attrs.items()}
        attrs |= {name: value[edge] for name, value in source.edge_attrs.items()}
        return Data(edge_index=self.edge_index, **attrs)

    @property
    def num_source_nodes(self) -> int:
        """Nodes of the graph it is cut from."""
        return self.size_of_source(self.batch.source.bounds[0])

    @property
    def num_source_edges(self) -> int:
        """Edges of the graph it is cut from."""
        return self.size_of_source(self.batch.source.bounds[1])

    def size_of_source(self, ptr: list[int]) -> int:
        """In graph tasks of the target's own graph, else of the only one."""
        graph = self.batch.target_ids[self.number][0] if self.batch.target_row.size(1) == 0 else 0
        return ptr[graph + 1] - ptr[graph]

    @property
    def node_slice(self) -> slice:
        """Where this graph's nodes stand in the batch."""
        return slice(*self.batch.bounds[0][self.number : self.number + 2])

    @property
    def edge_slice(self) -> slice:
        """Where this graph's edges stand in the batch."""
        return slice(*self.batch.bounds[1][self.number : self.number + 2])


def whole_graphs(source: Graphs, index: Tensor, as_stored: bool = False) -> ComputationGraphs:
    """For graph tasks: all nodes and edges of each graph; relevant are all edges but stored
    self-loops, which come last.

    ``as_stored``: all edges in their order, self-loops among them.
    """
    _, node = ragged_ranges(source.node_ptr[index], source.node_ptr.diff()[index])
    edge_owner, edge = ragged_ranges(source.edge_ptr[index], source.edge_ptr.diff()[index])
    is_loop = (source.edge_index[0, edge] == source.edge_index[1, edge]) & (not as_stored)
    order = (edge_owner * 2 + is_loop).argsort(stable=True)
    edge, offset = edge[order], source.node_ptr[index]
    return ComputationGraphs(
        source=source,
        target=index[:, None],
        node=node,
        hop=torch.zeros_like(node),
        node_ptr=starts(source.node_ptr.diff()[index]),
        num_nodes=source.node_ptr.diff()[index],
        edge=edge,
        edge_index=source.edge_index[:, edge] - offset[edge_owner],
        edge_ptr=starts(source.edge_ptr.diff()[index]),
        num_edges=torch.bincount(edge_owner[~is_loop], minlength=len(index)),
        target_row=index.new_zeros(len(index), 0),
        halo=index.new_full((len(index),), HALOS.index("none")),
        offset=offset,
        edge_offset=source.edge_ptr[index],
    )


def refuse_foreign(graphs: ComputationGraphs, source: Graphs) -> None:
    """Refuse computation graphs that were cut from other data."""
    if graphs.source is not source:
        raise BadTarget(
            "these computation graphs were cut by another model: use this model's computation_graphs(targets)."
        )
