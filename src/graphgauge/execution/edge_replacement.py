"""Replacing the edges of a batch of copies, with the filling that keeps bits the same."""

from dataclasses import replace
from typing import TYPE_CHECKING

from torch import Tensor

from graphgauge.execution.aligned_layout import assign_edge_columns, place_rows
from graphgauge.execution.norm_cache import NormalisedEdges, SelfLoopEdges, prepare_edges

if TYPE_CHECKING:
    from graphgauge.execution.graph_batch import GraphBatch


def replace_edges(union: "GraphBatch", edge_row: Tensor, edge_copy: Tensor) -> "GraphBatch":
    """Replace the edges of ``union`` by these edges of its graphs.

    Args:
        union: The copies.
        edge_row: Position of each edge in ``union.graphs.edge``.  (num_edges,)
        edge_copy: The piece that each edge belongs to, in rising order.  (num_edges,)
    """
    return replace_edge_ends(
        union,
        union.graphs.edge_index[:, edge_row] + union.node_start[edge_copy],
        edge_row,
        edge_copy,
    )


def replace_edge_ends(
    union: "GraphBatch", ends: Tensor, edge_row: Tensor, edge_copy: Tensor
) -> "GraphBatch":
    """Replace the edges of ``union`` by edges between given rows.

    Args:
        union: The copies.
        ends: Rows of the union that each edge joins.  (2, num_edges)
        edge_row: Position of each edge in ``union.graphs.edge``, for its attributes.  (num_edges,)
        edge_copy: The piece that each edge belongs to, in rising order.  (num_edges,)
    """
    graphs, num_rows = union.graphs, union.num_rows
    edge_at, num_links, size = assign_edge_columns(
        edge_copy, ends[0] == ends[1], len(union.graph_index), union.align
    )
    edge_index = ends.new_full((2, size), num_rows - 1)
    edge_index[0, :num_links] = num_rows - 2
    edge_index[:, edge_at] = ends
    edge, weights = graphs.edge[edge_row], graphs.weights
    places = (edge_index, edge, edge_at, graphs.node[union.node_row], union.node_at, num_rows)
    return replace(
        union,
        edge_index=edge_index,
        edge_attrs={
            name: place_rows(value, edge, edge_at, size)
            for name, value in graphs.source.edge_attrs.items()
        },
        edge_at=edge_at,
        edge_row=edge_row,
        edge_copy=edge_copy,
        edge_use={},
        arrivals={},
        entries={},
        normalised=NormalisedEdges() if weights is None else prepare_edges(weights, *places),
        looped=SelfLoopEdges(),
    )
