"""Disjoint unions: many computation graphs, or many edited copies of a few, as one graph for one call of the network.

Copy k of a union is a copy of computation graph ``of[k]``. All copies are laid out one after another by tensor operations
only. Messages never cross between copies, so one call of the network serves them all.

On a CPU, the last bits of a matrix product or of a vectorised function can depend on the number of rows and on where a row
stands. Unions are therefore padded, with isolated zero nodes and with edges among two of these, to multiples of 64 rows and
at least 128; then each copy gets the same bits in every union (measured: multiples of 16 are not enough for float64
products and for sigmoid, elu, silu and softplus). The padding forms graphs of its own behind the copies.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.models.arcs import ragged_ranges, starts
from graphgauge.models.computation import ComputationGraphs

STEP, LEAST = 64, 128


def padded_size(count: int) -> int:
    """The next size whose rows get the same bits in every union.

    >>> padded_size(5), padded_size(130)
    (128, 192)
    """
    return max(LEAST, -(-count // STEP) * STEP)


@dataclass(frozen=True)
class Union:
    """K copies as one graph. The first ``num_nodes`` rows of ``x`` and ``num_edges`` columns of ``edge_index`` are the copies',
    the rest is padding. Edits return a new union; they are given one number per real edge, or the whole padded ``x``.
    """

    graphs: ComputationGraphs
    copy: Tensor  #: (K,) numbers of these copies in the whole request
    of: Tensor  #: (K,) which computation graph each is a copy of
    node_attrs: dict[str, Tensor]  #: padded; "x" and what else the net takes
    edge_attrs: dict[str, Tensor]  #: padded
    edge_index: Tensor  #: (2, e), padded
    node_row: Tensor  #: (num_nodes,) position in ``graphs.node``
    edge_row: Tensor  #: (num_edges,) position in ``graphs.edge``
    node_copy: Tensor  #: (num_nodes,) the k of each node
    edge_copy: Tensor  #: (num_edges,) the k of each edge
    node_ptr: Tensor  #: (K + 1,) first node of each copy
    edge_mask: Tensor | None = None  #: (num_edges,) factor on each edge's messages

    def __len__(self) -> int:
        return len(self.of)

    @property
    def x(self) -> Tensor:
        """Features, padding included."""
        return self.node_attrs["x"]

    @property
    def num_nodes(self) -> int:
        """Nodes of the copies."""
        return len(self.node_row)

    @property
    def num_edges(self) -> int:
        """Edges of the copies."""
        return len(self.edge_row)

    @property
    def edge_position(self) -> Tensor:
        """Position of each edge in its own graph; relevant are those below ``graphs.num_edges[of]``.  (num_edges,)"""
        return self.edge_row - self.graphs.edge_ptr[self.of][self.edge_copy]

    @property
    def node_position(self) -> Tensor:
        """Position of each node in its own graph.  (num_nodes,)"""
        return self.node_row - self.graphs.node_ptr[self.of][self.node_copy]

    @property
    def target_rows(self) -> Tensor:
        """Rows of the copies' target nodes.  (K, 1), (K, 2), or (K, 0) in graph tasks"""
        return self.graphs.target_row[self.of] + self.node_ptr[:-1, None]

    def with_x(self, x: Tensor) -> "Union":
        """The same copies with other features (padding included)."""
        return replace(self, node_attrs={**self.node_attrs, "x": x})

    def with_mask(self, factor: Tensor) -> "Union":
        """The same copies with each edge's messages multiplied by ``factor`` (num_edges,); normalisation stays."""
        return replace(self, edge_mask=factor)

    def without_edges(self, gone: Tensor) -> "Union":
        """The same copies without the edges under ``gone`` (num_edges,) bool; degrees and attention change."""
        kept = (~gone).nonzero().squeeze(1)
        padding = torch.arange(self.num_edges, self.edge_index.size(1), device=gone.device)
        if len(padding):
            padding = padding[:1].expand(padded_size(len(kept) + 1) - len(kept))
        index = torch.cat([kept, padding])
        return replace(
            self,
            edge_index=self.edge_index[:, index],
            edge_attrs={name: value[index] for name, value in self.edge_attrs.items()},
            edge_row=self.edge_row[kept],
            edge_copy=self.edge_copy[kept],
            edge_mask=None if self.edge_mask is None else self.edge_mask[kept],
        )

    def data(self, with_batch: bool) -> Data:
        """What the network sees, with the pairs of link targets and, if asked for, which copy each node belongs to."""
        source = self.graphs.source
        g = Data(edge_index=self.edge_index, **self.node_attrs, **self.edge_attrs)
        for name, value in source.graph_attrs.items():
            g[name] = value if source.num_graphs == 1 else self.per_copy(value)
        if self.target_rows.size(1) == 2:
            g.edge_label_index = self.pairs()
        if with_batch:
            g.batch = self.batch()
        return g

    def per_copy(self, value: Tensor) -> Tensor:
        """One row of a graph attribute for each copy, and zeros for each graph of the padding."""
        rows = value[self.graphs.target[self.of, 0]]
        return torch.cat([rows, rows.new_zeros(self.num_padding_graphs, *rows.shape[1:])])

    def pairs(self) -> Tensor:
        """The copies' link targets, then pairs of padding nodes.  (2, P)"""
        pairs = self.target_rows.t()
        if self.is_padded:
            filler = torch.tensor([[self.num_nodes], [self.num_nodes + 1]], device=pairs.device)
            pairs = torch.cat([pairs, filler.expand(2, padded_size(len(self)) - len(self))], dim=1)
        return pairs

    def batch(self) -> Tensor:
        """Which copy each node belongs to; the padding's graphs come after the copies."""
        padding = torch.arange(self.x.size(0) - self.num_nodes, device=self.node_copy.device)
        return torch.cat([self.node_copy, len(self) + padding.clamp(max=max(self.num_padding_graphs - 1, 0))])

    @property
    def is_padded(self) -> bool:
        """Whether padding was added; a copy that runs alone has none."""
        return self.x.size(0) > self.num_nodes

    @property
    def num_padding_graphs(self) -> int:
        """Graphs behind the copies, each with at least one node: the row count of pooled outputs is padded too."""
        return padded_size(len(self)) - len(self) if self.is_padded else 0


def assemble(graphs: ComputationGraphs, of: Tensor, copy: Tensor, padded: bool = True) -> Union:
    """The union of copies of ``graphs[of[0]], graphs[of[1]], ...``, unedited."""
    node_copy, node_row = ragged_ranges(graphs.node_ptr[of], graphs.sizes[of])
    edge_copy, edge_row = ragged_ranges(graphs.edge_ptr[of], graphs.edge_sizes[of])
    node_ptr = starts(graphs.sizes[of])
    nodes, edges = len(node_row), len(edge_row)
    # two padding nodes hold the padding edges; in graph tasks each padding graph needs a node
    full = padded_size(nodes + 1 + padded_size(len(of)) - len(of)) if graphs.target_row.size(1) == 0 else padded_size(nodes + 2)
    more_nodes, more_edges = (full - nodes, padded_size(edges + 1) - edges) if padded else (0, 0)
    source = graphs.source
    edge_index = graphs.edge_index[:, edge_row] + node_ptr[edge_copy]
    return Union(
        graphs=graphs,
        copy=copy,
        of=of,
        node_attrs={name: gather(value, graphs.node[node_row], more_nodes) for name, value in source.node_attrs.items()},
        edge_attrs={name: gather(value, graphs.edge[edge_row], more_edges) for name, value in source.edge_attrs.items()},
        edge_index=torch.cat([edge_index, padding_edges(nodes + more_nodes, more_edges, edge_index)], dim=1),
        node_row=node_row,
        edge_row=edge_row,
        node_copy=node_copy,
        edge_copy=edge_copy,
        node_ptr=node_ptr,
    )


def gather(values: Tensor, index: Tensor, more: int) -> Tensor:
    """Rows of ``values``, then ``more`` rows of zeros, written once."""
    out = values.new_empty(len(index) + more, *values.shape[1:])
    torch.index_select(values, 0, index, out=out[: len(index)])
    out[len(index) :] = 0
    return out


def padding_edges(num_nodes: int, count: int, like: Tensor) -> Tensor:
    """``count`` edges between the last two nodes of the padding.  (2, count)"""
    return like.new_tensor([[num_nodes - 2], [num_nodes - 1]]).expand(2, count)
