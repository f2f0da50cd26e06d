"""Copies of computation graphs: their sizes, and unions of some of them."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from graphgauge.core import BadSetting
from graphgauge.execution.aligned_layout import round_up_to_multiple
from graphgauge.execution.disjoint_union import build_batch
from graphgauge.execution.graph_batch import GraphBatch
from graphgauge.subgraphs import ComputationGraphs

CopySizes = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class GraphCopies:
    """K copies of computation graphs: their sizes, and unions of some of them.

    Args:
        graphs: The graphs to copy.
        graph_index: Which graph each copy is of.  (K,)
    """

    graphs: ComputationGraphs
    graph_index: Tensor

    @staticmethod
    def of_graphs(graphs: ComputationGraphs, of: Tensor | None) -> "GraphCopies":
        """Copies of ``graphs[of]``; by default each graph once."""
        return GraphCopies(
            graphs,
            torch.arange(len(graphs), device=graphs.node.device)
            if of is None
            else _check_graph_index(of, graphs),
        )

    def __len__(self) -> int:
        return len(self.graph_index)

    def sizes(self, align: int) -> CopySizes:
        """Nodes, edges and relevant edges of each copy, with filling, each (K,)."""
        graphs = self.graphs
        nodes, edges, relevant = (
            round_up_to_multiple(size[self.graph_index], align)
            for size in (graphs.sizes, graphs.edge_sizes, graphs.num_edges)
        )
        return nodes, edges, relevant

    @cached_property
    def latest(self) -> dict[int, GraphBatch]:
        """The union that was built last, by its alignment."""
        return {}

    def union(self, start: int, end: int, align: int) -> GraphBatch:
        """The union of copies start..end-1. If it has the same graphs as the last one, that one is
        reused.

        Args:
            start: Number of the first copy.
            end: One past the number of the last copy.
            align: Multiple at which the rows of each copy start; 1 for no filling between copies.
        """
        of, copy = (
            self.graph_index[start:end],
            torch.arange(start, end, device=self.graph_index.device),
        )
        known = self.latest.get(align)
        if known is None or not torch.equal(known.graph_index, of):
            self.latest.clear()
            known = self.latest[align] = build_batch(self.graphs, of, copy, align)
        return replace(known, copy=copy)

    def single_sizes(self, union: GraphBatch, number: int) -> tuple[int, int, int]:
        """The same sizes for a union of copy ``number`` alone."""
        relevant = round_up_to_multiple(
            self.graphs.num_edges[self.graph_index[number]], union.align
        )
        return union.num_rows, union.edge_index.size(1), int(relevant)


def _check_graph_index(of: Tensor, graphs: ComputationGraphs) -> Tensor:
    """Raise BadSetting unless ``of`` holds numbers of graphs."""
    if not isinstance(of, Tensor) or of.dtype != torch.int64 or of.dim() != 1:
        raise BadSetting(
            f"of must be a list of graph numbers as an int64 tensor (K,), but is {of!r}."
        )
    if len(of) and not (int(of.min()) >= 0 and int(of.max()) < len(graphs)):
        raise BadSetting(
            f"of must name graphs 0..{len(graphs) - 1}, but reaches from {int(of.min())} to "
            f"{int(of.max())}."
        )
    return of
