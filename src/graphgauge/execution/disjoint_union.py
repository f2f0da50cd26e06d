"""Disjoint unions: many computation graphs, or many edited copies of a few, as one graph for one
call.

Copy k of a union is a copy of computation graph ``graph_index[k]``. The copies are laid out one
after another by tensor operations only. No message crosses between copies, so one call of the
network serves them all.

On a CPU, the last bits of a row of a matrix product depend on its position in memory and on the
number of rows, and those of a vectorised function (sigmoid, elu ...) on the distance to the end.
Every copy must get the same bits in every union. So its nodes, its edges, its link and its graph
each start at a multiple of ``ROW_ALIGNMENT`` = 16 rows, and all counts are filled up to multiples
of 64, at least 128. The filling consists of zero nodes without an edge to any copy, and of edges
among the last two of them. In graph tasks it forms graphs of its own.
"""

from torch import Tensor

from graphgauge.execution.aligned_layout import ROW_ALIGNMENT, AlignedLayout, place_rows
from graphgauge.execution.batch_features import GatheredFeatures
from graphgauge.execution.edge_replacement import replace_edges
from graphgauge.execution.graph_batch import GraphBatch
from graphgauge.subgraphs import ComputationGraphs, ragged_ranges


def build_batch(
    graphs: ComputationGraphs, of: Tensor, copy: Tensor, align: int = ROW_ALIGNMENT
) -> GraphBatch:
    """The union of unedited copies of ``graphs[of[0]], graphs[of[1]], ...``.

    Args:
        graphs: The graphs to copy.
        of: Which graph each copy is of.  (K,)
        copy: Numbers of these copies in the whole request.  (K,)
        align: Each copy starts at a multiple of this many rows; 1 for no filling.
    """
    node_copy, node_row = ragged_ranges(graphs.node_ptr[of], graphs.sizes[of])
    edge_copy, edge_row = ragged_ranges(graphs.edge_ptr[of], graphs.edge_sizes[of])
    layout = AlignedLayout.from_counts(graphs.sizes[of], align, spare=2)
    node_at = layout.start[node_copy] + node_row - graphs.node_ptr[of][node_copy]
    bare = build_edgeless_batch(graphs, of, copy, node_row, node_copy, node_at, layout, align)
    return replace_edges(bare, edge_row, edge_copy)


def build_edgeless_batch(
    graphs: ComputationGraphs,
    of: Tensor,
    copy: Tensor,
    node_row: Tensor,
    node_copy: Tensor,
    node_at: Tensor,
    layout: AlignedLayout,
    align: int,
) -> GraphBatch:
    """A union without edges, of pieces of computation graphs.

    Args:
        graphs: The graphs to copy.
        of: Which graph each piece is of.  (pieces,)
        copy: Numbers of these copies in the whole request.  (K,)
        node_row: Position of each node in ``graphs.node``.  (num_nodes,)
        node_copy: The piece that each node belongs to.  (num_nodes,)
        node_at: The row of the union that each node gets.  (num_nodes,)
        layout: First row of each piece, and the number of rows.
        align: Each piece starts at a multiple of this many rows; 1 for no filling.
    """
    others = {name: value for name, value in graphs.source.node_attrs.items() if name != "x"}
    return GraphBatch(
        graphs=graphs,
        copy=copy,
        graph_index=of,
        target_rows=graphs.target_row[of] + layout.start[:, None],
        align=align,
        features=_gather_features(graphs, of, node_copy, node_row, node_at, layout.size, align),
        node_attrs={
            name: place_rows(value, graphs.node[node_row], node_at, layout.size)
            for name, value in others.items()
        },
        edge_attrs={},
        edge_index=graphs.edge_index[:, :0],
        node_at=node_at,
        node_row=node_row,
        node_copy=node_copy,
        edge_at=node_row[:0],
        edge_row=node_row[:0],
        edge_copy=node_row[:0],
        node_start=layout.start,
    )


def _gather_features(
    graphs: ComputationGraphs,
    of: Tensor,
    node_copy: Tensor,
    node_row: Tensor,
    node_at: Tensor,
    size: int,
    align: int,
) -> GatheredFeatures:
    """Features of a union, gathered from a table with one copy of each distinct graph."""
    distinct, own = of.unique(return_inverse=True)
    table_copy, table_row = ragged_ranges(graphs.node_ptr[distinct], graphs.sizes[distinct])
    layout = AlignedLayout.from_counts(graphs.sizes[distinct], align, spare=2)
    place = layout.start[table_copy] + table_row - graphs.node_ptr[distinct][table_copy]
    node = graphs.node.new_full((layout.size,), -1).index_copy(0, place, graphs.node[table_row])
    position = node_row - graphs.node_ptr[of][node_copy]
    index = node_at.new_full((size,), max(layout.size - 1, 0)).index_copy(
        0, node_at, layout.start[own][node_copy] + position
    )
    return GatheredFeatures(graphs.source.x, node, index)
