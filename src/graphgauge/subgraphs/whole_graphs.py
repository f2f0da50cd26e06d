"""Computation graphs of graph tasks: the whole graph of each target."""

import torch
from torch import Tensor

from graphgauge.subgraphs.adjacency import pointers_from_counts, ragged_ranges
from graphgauge.subgraphs.computation_graph import HALOS, ComputationGraphs
from graphgauge.subgraphs.input_data import InputGraphs


def build_whole_graphs(
    source: InputGraphs, index: Tensor, as_stored: bool = False
) -> ComputationGraphs:
    """Computation graphs of graph tasks: all nodes and edges of each graph.

    All edges are relevant except stored self-loops, which are listed last.

    Args:
        source: The input graphs.
        index: The graphs to take.  (T,)
        as_stored: Keep all edges in their order, self-loops among them.
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
        node_ptr=pointers_from_counts(source.node_ptr.diff()[index]),
        num_nodes=source.node_ptr.diff()[index],
        edge=edge,
        edge_index=source.edge_index[:, edge] - offset[edge_owner],
        edge_ptr=pointers_from_counts(source.edge_ptr.diff()[index]),
        num_edges=torch.bincount(edge_owner[~is_loop], minlength=len(index)),
        target_row=index.new_zeros(len(index), 0),
        halo=index.new_full((len(index),), HALOS.index("none")),
        offset=offset,
        edge_offset=source.edge_ptr[index],
    )
