"""Computation graphs: the part of the graph that decides one target's prediction, for many targets
in one batch.

Each computation graph lists, in this order,

    nodes   the n nodes within L hops of the target (the target itself first), then the halo
    edges   the E_rel relevant edges, then edges that only complete the model: self-loops, halo ...

Scores, neighbours and edits concern the first n nodes and the first E_rel edges. The others are
there because the prediction on the extracted graph must be the model's prediction on the whole
graph. The T graphs are packed into flat tensors: graph i owns ``node[node_ptr[i]:node_ptr[i+1]]``,
and likewise for edges.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core import BadTarget, Target, canonical_target
from graphgauge.subgraphs.adjacency import pointers_from_counts, ragged_ranges
from graphgauge.subgraphs.edge_weights import EdgeWeights
from graphgauge.subgraphs.input_data import InputGraphs
from graphgauge.subgraphs.targets import Targets

#: what an extracted graph holds beside the messages, from the least to everything
HALOS = ("none", "in", "in and out", "one ring more", "whole graph")


@dataclass(frozen=True)
class ComputationGraphs:
    """T packed computation graphs. ``len``, ``[i]`` and iteration give single graphs.

    Args:
        source: The input graphs they are cut from.
        target: Ids of node or graph (T, 1) or link (T, 2), and the label behind them if targets
            have one (see `ComputationGraphs.label`).
        node: Ids of the nodes in the whole graph.  (sum of nodes,)
        hop: Distance to the target in messages; L + 1 in the halo, 0 in graph tasks.
            (sum of nodes,)
        node_ptr: First node of each graph, and the number of all.  (T + 1,)
        num_nodes: Number n of nodes within L hops.  (T,)
        edge: Ids of the edges in the whole graph.  (sum of edges,)
        edge_index: Edges between positions in each graph's own list of nodes.  (2, sum of edges)
        edge_ptr: First edge of each graph, and the number of all.  (T + 1,)
        num_edges: Number E_rel of relevant edges.  (T,)
        target_row: Positions of the target's nodes, (T, 1) or (T, 2); (T, 0) in graph tasks.
        halo: Index into ``HALOS`` of what had to be added.  (T,)
        offset: Id of the first node of the graph that it is cut from; 0 except in graph tasks. (T,)
        edge_offset: Likewise for edges.  (T,)
        weights: Weights of the whole graph's edges, if edges that only set degrees were left out.
        chosen_class: The class to explain for each target; None for the predicted class.  (T,)
    """

    source: InputGraphs
    target: Tensor
    node: Tensor
    hop: Tensor
    node_ptr: Tensor
    num_nodes: Tensor
    edge: Tensor
    edge_index: Tensor
    edge_ptr: Tensor
    num_edges: Tensor
    target_row: Tensor
    halo: Tensor
    offset: Tensor
    edge_offset: Tensor
    weights: EdgeWeights | None = None
    chosen_class: Tensor | None = None

    def __len__(self) -> int:
        return len(self.num_nodes)

    def __repr__(self) -> str:
        return (
            f"ComputationGraphs({len(self)} graphs, {len(self.node)} nodes, {len(self.edge)} "
            f"edges, halo {self.notes()})"
        )

    def __getitem__(self, number: int) -> "ComputationGraph":
        if not isinstance(number, int):
            raise TypeError(
                "one computation graph is taken by its number; for several use take(tensor), not "
                f"[{number!r}]."
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
        """The label that each target asks about: a column of the network's output. None without
        labels.  (T,)
        """
        return self.targets.label

    @property
    def sizes(self) -> Tensor:
        """Number of nodes of each graph, with the halo.  (T,)"""
        return self.node_ptr.diff()

    @property
    def edge_sizes(self) -> Tensor:
        """Number of edges of each graph, relevant or not.  (T,)"""
        return self.edge_ptr.diff()

    @property
    def edge_owner(self) -> Tensor:
        """The number of each edge's graph.  (sum of edges,)"""
        return torch.repeat_interleave(self.edge_sizes)

    @property
    def edge_position(self) -> Tensor:
        """Position of each edge in its own graph; relevant edges are below ``num_edges``.  (sum of
        edges,)
        """
        return (
            torch.arange(len(self.edge), device=self.edge.device) - self.edge_ptr[self.edge_owner]
        )

    @cached_property
    def pointer_lists(self) -> tuple[list[int], list[int]]:
        """``node_ptr`` and ``edge_ptr`` as lists, read from the device once."""
        return self.node_ptr.tolist(), self.edge_ptr.tolist()

    @cached_property
    def count_lists(self) -> tuple[list[int], list[int]]:
        """``num_nodes`` and ``num_edges`` as lists."""
        return self.num_nodes.tolist(), self.num_edges.tolist()

    @cached_property
    def edges_by_head(self) -> Tensor:
        """Edges of each graph sorted by head, as positions in ``edge``.  (sum of edges,)"""
        return (self.edge_index[1] + self.node_ptr[:-1].repeat_interleave(self.edge_sizes)).argsort(
            stable=True
        )

    @cached_property
    def widest_halo(self) -> int:
        """The widest halo among the graphs, as an index into HALOS."""
        return int(self.halo.max()) if len(self) else 0

    @cached_property
    def target_ids(self) -> list[list[int]]:
        """``target`` as lists."""
        return self.target.tolist()

    def take(self, index: Tensor) -> "ComputationGraphs":
        """The graphs with these numbers, in this order; a number may be repeated."""
        _, node_row = ragged_ranges(self.node_ptr[index], self.sizes[index])
        _, edge_row = ragged_ranges(self.edge_ptr[index], self.edge_sizes[index])
        return ComputationGraphs(
            source=self.source,
            chosen_class=None if self.chosen_class is None else self.chosen_class[index],
            weights=self.weights,
            node=self.node[node_row],
            hop=self.hop[node_row],
            node_ptr=pointers_from_counts(self.sizes[index]),
            edge=self.edge[edge_row],
            edge_index=self.edge_index[:, edge_row],
            edge_ptr=pointers_from_counts(self.edge_sizes[index]),
            **{name: getattr(self, name)[index] for name in _PER_GRAPH_FIELDS},
        )

    @staticmethod
    def join(parts: Sequence["ComputationGraphs"]) -> "ComputationGraphs":
        """Concatenate several batches of graphs."""
        return ComputationGraphs(
            source=parts[0].source,
            chosen_class=_join_chosen_classes(parts),
            weights=parts[0].weights,
            node_ptr=pointers_from_counts(torch.cat([part.sizes for part in parts])),
            edge_ptr=pointers_from_counts(torch.cat([part.edge_sizes for part in parts])),
            edge_index=torch.cat([part.edge_index for part in parts], dim=1),
            **{
                name: torch.cat([getattr(part, name) for part in parts])
                for name in ("node", "hop", "edge", *_PER_GRAPH_FIELDS)
            },
        )

    def notes(self) -> dict[str, int]:
        """The number of graphs with each halo.

        ``{"in": 98, "whole graph": 2}`` says that two targets could not be cut out of the graph.
        """
        count = torch.bincount(self.halo, minlength=len(HALOS)).tolist()
        return {name: number for name, number in zip(HALOS, count, strict=True) if number}


def _join_chosen_classes(parts: Sequence[ComputationGraphs]) -> Tensor | None:
    """Concatenate the chosen classes of several batches; None if none were chosen."""
    found = [part.chosen_class for part in parts if part.chosen_class is not None]
    return torch.cat(found) if len(found) == len(parts) else None


_PER_GRAPH_FIELDS = (
    "target",
    "num_nodes",
    "num_edges",
    "target_row",
    "halo",
    "offset",
    "edge_offset",
)


@dataclass(frozen=True)
class ComputationGraph:
    """One graph of a batch."""

    batch: ComputationGraphs
    number: int

    def __repr__(self) -> str:
        return (
            f"ComputationGraph(target={self.target}, nodes={len(self.nodes)}, "
            f"edges={len(self.edges)}, "
            f"halo={self.halo!r}: {len(self.all_nodes) - len(self.nodes)} nodes, "
            f"{len(self.all_edges) - len(self.edges)} edges)"
        )

    @property
    def target(self) -> Target:
        """The node id, pair of node ids or graph index, with its label if there is one."""
        return canonical_target(self.batch.target_ids[self.number])

    @property
    def nodes(self) -> Tensor:
        """Ids of the nodes within L hops.  (n,)"""
        return self.all_nodes[: self.batch.count_lists[0][self.number]]

    @property
    def edges(self) -> Tensor:
        """Ids of the relevant edges.  (E_rel,)"""
        return self.all_edges[: self.batch.count_lists[1][self.number]]

    @property
    def all_nodes(self) -> Tensor:
        """Ids of all nodes, with the halo: the rows of ``x``."""
        return self.batch.node[self.node_slice] - self.batch.offset[self.number]

    @property
    def all_edges(self) -> Tensor:
        """Ids of all edges; the columns of ``edge_index``."""
        return self.batch.edge[self.edge_slice] - self.batch.edge_offset[self.number]

    @property
    def hops(self) -> Tensor:
        """Distance of each of ``nodes`` to the target.  (n,)"""
        return self.batch.hop[self.node_slice][: self.batch.count_lists[0][self.number]]

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
        """Positions of the target's node(s) in ``nodes``."""
        return self.batch.target_row[self.number]

    @property
    def halo(self) -> str:
        """What was added so that the prediction stays that of the whole graph."""
        return HALOS[int(self.batch.halo[self.number])]

    @property
    def data(self) -> Data:
        """A PyG ``Data`` with every attribute that the network takes."""
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
        """Number of nodes of the graph that this one is cut from."""
        return self.size_of_source(self.batch.source.pointer_lists[0])

    @property
    def num_source_edges(self) -> int:
        """Number of edges of the graph that this one is cut from."""
        return self.size_of_source(self.batch.source.pointer_lists[1])

    def size_of_source(self, ptr: list[int]) -> int:
        """The size of the target's own graph in graph tasks, otherwise of the only graph."""
        graph = self.batch.target_ids[self.number][0] if self.batch.target_row.size(1) == 0 else 0
        return ptr[graph + 1] - ptr[graph]

    @property
    def node_slice(self) -> slice:
        """The positions of this graph's nodes in the batch."""
        return slice(*self.batch.pointer_lists[0][self.number : self.number + 2])

    @property
    def edge_slice(self) -> slice:
        """The positions of this graph's edges in the batch."""
        return slice(*self.batch.pointer_lists[1][self.number : self.number + 2])


def check_same_source(graphs: ComputationGraphs, source: InputGraphs) -> None:
    """Raise BadTarget for computation graphs that were cut from other data."""
    if graphs.source is not source:
        raise BadTarget(
            "these computation graphs were cut by another model: use this model's "
            "computation_graphs(targets)."
        )
