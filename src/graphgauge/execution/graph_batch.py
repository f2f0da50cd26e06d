"""The batch of copies that a network is called on, and its edits.

A copy usually is a copy of a whole computation graph. `disjoint_union` lays copies out; here they
are masked, given other features, and made into the input of the network. Edits return a new batch.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core import BadSetting
from graphgauge.execution.aligned_layout import AlignedLayout
from graphgauge.execution.batch_features import BatchFeatures, DenseFeatures
from graphgauge.execution.edge_replacement import replace_edges
from graphgauge.execution.lazy_features import LazyFeatureTensor
from graphgauge.execution.message_masking import Arrivals, EdgeUse
from graphgauge.execution.norm_cache import NormalisedEdges, SelfLoopEdges
from graphgauge.subgraphs import ComputationGraphs

if TYPE_CHECKING:
    from graphgauge.execution.fused_messages import MatrixEntries


@dataclass(frozen=True)
class GraphBatch:
    """K copies of computation graphs as one graph. Edits return a new batch.

    A copy usually is one piece: a whole computation graph. Incremental removal shares pieces
    between copies: there a piece is a graph or a single node of one, and each copy has target rows
    of its own.

    ``x``, ``edge_index`` and all other attributes have filling between and behind the copies.
    ``node_at`` and ``edge_at`` hold the positions of the copies' own nodes and edges.

    Args:
        graphs: The computation graphs.
        copy: Numbers of these copies in the whole request.  (K,)
        graph_index: Which computation graph each piece is a copy of.  (pieces,)
        target_rows: Rows of the copies' target nodes, (K, 1) or (K, 2); (K, 0) in graph tasks.
        align: 16, or 1 for no filling.
        features: x, written out when it is needed.
        node_attrs: Other node attributes that the network takes.
        edge_attrs: Edge attributes that the network takes.
        edge_index: Edges, with filling.
        node_at: Row of each node.  (num_nodes,)
        node_row: Its position in ``graphs.node``.  (num_nodes,)
        node_copy: Its piece.  (num_nodes,)
        edge_at: Column of each edge.  (num_edges,)
        edge_row: Its position in ``graphs.edge``.  (num_edges,)
        edge_copy: Its piece.  (num_edges,)
        node_start: First row of each piece.  (pieces,)
        edge_mask: Factor on each edge's messages.  (num_edges,)
        edge_use: The edges that layers use, stored for the next pass.
        arrivals: The messages that can arrive, stored for the next pass.
        entries: Messages as matrix entries, stored for the next pass.
        normalised: Normalised edges of GCN layers, stored for the next pass.
        looped: Edges with self-loops of GAT layers, stored for the next pass.
    """

    graphs: ComputationGraphs
    copy: Tensor
    graph_index: Tensor
    target_rows: Tensor
    align: int
    features: BatchFeatures
    node_attrs: dict[str, Tensor]
    edge_attrs: dict[str, Tensor]
    edge_index: Tensor
    node_at: Tensor
    node_row: Tensor
    node_copy: Tensor
    edge_at: Tensor
    edge_row: Tensor
    edge_copy: Tensor
    node_start: Tensor
    edge_mask: Tensor | None = None
    edge_use: EdgeUse = field(default_factory=dict, repr=False)
    arrivals: Arrivals = field(default_factory=dict, repr=False)
    entries: dict[tuple[int, int], "MatrixEntries"] = field(default_factory=dict, repr=False)
    normalised: NormalisedEdges = field(default_factory=NormalisedEdges, repr=False)
    looped: SelfLoopEdges = field(default_factory=SelfLoopEdges, repr=False)

    def __len__(self) -> int:
        return len(self.copy)

    def __repr__(self) -> str:
        return f"GraphBatch({len(self)} copies, {self.num_nodes} nodes, {self.num_edges} edges)"

    @property
    def x(self) -> Tensor:
        """Features, with filling."""
        return self.features.written

    @property
    def num_rows(self) -> int:
        """Number of nodes, with filling."""
        return self.features.shape[0]

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the copies."""
        return len(self.node_at)

    @property
    def num_edges(self) -> int:
        """Number of edges of the copies."""
        return len(self.edge_at)

    @property
    def node_position(self) -> Tensor:
        """Position of each node in its own graph.  (num_nodes,)

        Nodes below ``graphs.num_nodes[graph_index]`` are scored.
        """
        return self.node_row - self.graphs.node_ptr[self.graph_index][self.node_copy]

    @property
    def edge_position(self) -> Tensor:
        """Position of each edge in its own graph.  (num_edges,)

        Edges below ``graphs.num_edges[graph_index]`` are relevant.
        """
        return self.edge_row - self.graphs.edge_ptr[self.graph_index][self.edge_copy]

    @property
    def is_scored(self) -> Tensor:
        """Which nodes are within the hops of their target, not in the halo.  (num_nodes,) bool"""
        return self.node_position < self.graphs.num_nodes[self.graph_index][self.node_copy]

    @property
    def is_relevant(self) -> Tensor:
        """Which edges can carry a message to their target.  (num_edges,) bool"""
        return self.edge_position < self.graphs.num_edges[self.graph_index][self.edge_copy]

    def with_x(self, x: Tensor) -> "GraphBatch":
        """The same copies with other features: a tensor like ``x``, with the nodes' rows at
        ``node_at``.
        """
        _check_edit_shape("x", x, torch.Size(self.features.shape))
        if x.dtype != self.features.like.dtype:
            raise BadSetting(
                f"x must be {self.features.like.dtype} in this union, but is {x.dtype}."
            )
        return replace(self, features=DenseFeatures(x))

    def with_features(self, features: BatchFeatures) -> "GraphBatch":
        """The same copies with other features, which need not be written out."""
        return replace(self, features=features)

    def with_target_rows(self, target_rows: Tensor) -> "GraphBatch":
        """The same graph with other target rows."""
        return replace(self, target_rows=target_rows)

    def with_mask(self, factor: Tensor) -> "GraphBatch":
        """The same copies with each edge's messages multiplied by ``factor`` (num_edges,).

        Normalisation stays as it is.
        """
        _check_edit_shape("factor", factor, self.edge_at.shape)
        return replace(self, edge_mask=factor)

    def with_weight_factor(self, factor: Tensor) -> "GraphBatch":
        """The same copies with each edge's ``edge_weight`` multiplied by ``factor`` (num_edges,).

        Normalisation follows the weights.
        """
        _check_edit_shape("factor", factor, self.edge_at.shape)
        weight = self.edge_attrs["edge_weight"]
        full = factor.new_ones(len(weight)).index_copy(0, self.edge_at, factor).to(weight.dtype)
        return replace(
            self,
            edge_attrs={
                **self.edge_attrs,
                "edge_weight": weight * full.view(-1, *[1] * (weight.dim() - 1)),
            },
        )

    def without_edges(self, gone: Tensor) -> "GraphBatch":
        """The same copies without the edges under ``gone`` (num_edges,) bool; degrees and attention
        change.
        """
        _check_edit_shape("gone", gone, self.edge_at.shape)
        if self.graphs.weights is not None:
            raise BadSetting(
                "these graphs lack edges that set degrees, so none can be dropped: use those of "
                "model.computation_graphs(targets)."
            )
        if gone.dtype != torch.bool:
            raise BadSetting(f"gone must say yes or no for each edge (bool), but is {gone.dtype}.")
        kept = (~gone).nonzero().squeeze(1)
        mask = None if self.edge_mask is None else self.edge_mask[kept]
        return replace_edges(
            replace(self, edge_mask=mask), self.edge_row[kept], self.edge_copy[kept]
        )

    def full_mask(self) -> Tensor | None:
        """The factor of every column of ``edge_index``, 1 for the filling; None if there is no
        mask.
        """
        if self.edge_mask is None:
            return None
        return self.edge_mask.new_ones(self.edge_index.size(1)).index_copy(
            0, self.edge_at, self.edge_mask
        )

    def data(self, with_batch: bool, lazy: bool = False) -> Data:
        """The input of the network, with the pairs of link targets.

        Args:
            with_batch: Also say which graph each node belongs to.
            lazy: Features may be a `LazyFeatureTensor`, for passes without gradients.
        """
        source = self.graphs.source
        x = LazyFeatureTensor(self.features) if lazy else self.x
        g = Data(x=x, edge_index=self.edge_index, **self.node_attrs, **self.edge_attrs)
        for name, value in source.graph_attrs.items():
            g[name] = (
                self._per_graph(value) if self.target_rows.size(1) == 0 else copy_if_tensor(value)
            )
        if self.target_rows.size(1) == 2:
            g.edge_label_index = self.pairs
        if with_batch:
            g.batch = self.batch
        return g

    def select_target_rows(self, rows: Tensor) -> Tensor:
        """The rows of the copies' targets among the network's rows.  (rows, columns) -> (K,
        columns)
        """
        if self.target_rows.size(1) == 1:
            return rows.index_select(0, self.target_rows[:, 0])
        return rows.index_select(0, self.output_row) if len(rows) == self.num_outputs else rows

    @property
    def output_row(self) -> Tensor:
        """Which of the links or graphs in the network's output are the copies' own.  (K,)"""
        return torch.arange(len(self), device=self.graph_index.device) * self.align

    @cached_property
    def num_outputs(self) -> int:
        """Number of links or graphs in the network's output, with filling."""
        return AlignedLayout.from_counts(torch.ones_like(self.copy), self.align, spare=1).size

    @cached_property
    def pairs(self) -> Tensor:
        """The copies' link targets, with pairs of filling nodes.  (2, num_outputs)"""
        filler = (
            self.edge_index.new_tensor([[self.num_rows - 2], [self.num_rows - 1]])
            .expand(2, self.num_outputs)
            .clone()
        )
        filler[:, self.output_row] = self.target_rows.t()
        return filler

    @cached_property
    def batch(self) -> Tensor:
        """The graph of each row, in rising order: copy k is graph ``align * k``, and filling the
        one after it.
        """
        batch = torch.full((self.num_rows,), self.num_outputs - 1, device=self.graph_index.device)
        if len(self) and self.align > 1:
            gap = (
                torch.bucketize(
                    torch.arange(len(batch), device=batch.device), self.node_start, right=True
                )
                - 1
            )
            batch = torch.where(gap < len(self) - 1, gap * self.align + 1, batch)
        batch[self.node_at] = self.output_row[self.node_copy]
        inner = self.node_attrs.get("batch")  # the data's own: a graph within each copy
        return (
            batch
            if inner is None
            else (batch * (int(inner.max()) + 1) + inner).unique(return_inverse=True)[1]
        )

    def _per_graph(self, value: Tensor) -> Tensor:
        """The rows of a graph attribute (G, ...) for the graphs of `batch`; zeros for the
        filling.
        """
        rows = value.new_zeros(self.num_outputs, *value.shape[1:])
        return rows.index_copy(0, self.output_row, value[self.graphs.target[self.graph_index, 0]])


def _check_edit_shape(name: str, values: Tensor, shape: torch.Size) -> None:
    """Raise BadSetting unless an edit fits its union."""
    if values.shape != shape:
        raise BadSetting(
            f"{name} must have shape {tuple(shape)} in this union, but has {tuple(values.shape)}."
        )


def copy_if_tensor(value: object) -> object:
    """A copy of a tensor, so that a network may write into its input; anything else unchanged."""
    return value.clone() if isinstance(value, Tensor) else value
