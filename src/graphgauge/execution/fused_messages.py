"""Fused messages: sums of numbers times rows, computed as sparse products without writing messages
out.

A layer whose message along an edge (u, v) is w_uv x_u, and which adds messages up, computes the
product with a sparse matrix,

    out_v = Σ_u w_uv x_u        out = W x,    W (rows, rows), w_uv in row v and column u

PyG writes all messages out first, (edges, H) numbers, three times forwards and again backwards. On
a GPU the product is computed here instead: the layer gets no edge for its `propagate`, and the
product replaces the zeros that it returns. With g = dL/d out the gradients are products too,

    dL/dx = W' g                dL/dw_uv = g_v · x_u                for the entries of W only

Self-loops that a layer adds are the last entries of their rows. If messages are scaled on their way
to z m + (1 - z) b, with a number z for each and one vector b for all (`MessageScaling`), the sum is
that of z w_uv x_u, and (Σ_u 1 - z_uv) b.

A sparse matrix needs its entries row by row. The edges of each computation graph are sorted by head
once, and the order of a union's edges follows from that without sorting.
"""

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import GATConv, GCNConv, MessagePassing
from torch_geometric.utils.sparse import index2ptr

from graphgauge.core import can_run_kernels
from graphgauge.execution.graph_batch import GraphBatch
from graphgauge.execution.message_masking import MessageScaling
from graphgauge.execution.message_pruning import MessagePruner
from graphgauge.execution.triton_products import RowParts, entry_dots, sparse_times_rows
from graphgauge.subgraphs import message_layers

#: what `propagate` is given: edges, size, and inputs by name
_PropagateInputs = tuple[Tensor, object, dict[str, Any]]

#: layers whose messages are rows times numbers, and the name under which `propagate` gets the
#: numbers
_WEIGHT_ARGUMENTS = {GCNConv: "edge_weight", GATConv: "alpha"}


class NotFusable(Exception):
    """A layer sends its messages along other edges than the graph's and one self-loop per row."""


def can_be_fused(net: Module) -> bool:
    """Whether all layers add up rows times numbers, and no hook looks at their messages."""
    layers = message_layers(net)
    return bool(layers) and all(_is_fusable_layer(layer) for layer in layers)


def _is_fusable_layer(layer: MessagePassing) -> bool:
    """Whether a layer adds up rows times numbers, and no hook looks at its messages."""
    is_plain = (
        type(layer) in _WEIGHT_ARGUMENTS
        and layer.flow == "source_to_target"
        and layer.aggr in ("add", "sum", "SumAggregation()")
    )
    is_seen = (
        layer._message_forward_pre_hooks
        or layer._message_forward_hooks
        or layer._aggregate_forward_pre_hooks
    )
    return is_plain and not is_seen and not layer._aggregate_forward_hooks and not layer.explain


@contextmanager
def fuse_messages(net: Module, fused: "MessageFusion") -> Iterator[None]:
    """Make the layers of ``net`` compute products.

    Args:
        net: The network.
        fused: The hooks of one pass. Enter `prune_messages` before, so that its hooks come first.
    """
    with ExitStack() as stack:
        for layer in message_layers(net):
            stack.callback(layer.register_propagate_forward_pre_hook(fused.replace_inputs).remove)
            stack.callback(layer.register_propagate_forward_hook(fused.replace_output).remove)
        yield


class MessageFusion:
    """The hooks around `propagate` for one pass over a union.

    Args:
        union: The copies.
        reach: The pruning of messages that cannot arrive.
        scaling: A change of the messages on their way.
    """

    def __init__(
        self, union: GraphBatch, reach: MessagePruner | None, scaling: MessageScaling | None = None
    ) -> None:
        self.union, self.reach, self.scaling = union, reach, scaling
        self.calls = 0
        self.product: Tensor | None = None

    def replace_inputs(self, layer: MessagePassing, inputs: _PropagateInputs) -> _PropagateInputs:
        """Compute the product and leave the layer no edge."""
        used, size, given = inputs
        name = _WEIGHT_ARGUMENTS[type(layer)]
        x = given["x"][0] if isinstance(given["x"], tuple) else given["x"]
        heads = x.view(len(x), -1, x.size(-1))
        weight = given[name] if given[name] is not None else x.new_ones(used.size(1))
        entries = self._entries(used)
        change = (
            None
            if self.scaling is None
            else self.scaling.scaling_of_round(self.calls, entries.messages)
        )
        self.calls += 1
        if change is None:
            self.product = entries.times(weight.view(len(weight), -1), heads).view(x.shape)
        else:
            z, baseline = change
            self.product = entries.times(z[:, None] * weight.view(len(weight), -1), heads).view(
                x.shape
            )
            if baseline is not None:
                closed = x.new_zeros(len(x)).index_add(0, used[1], 1 - z)
                self.product = self.product + (closed[:, None] * baseline).view(x.shape)
        return used[:, :0], size, {**given, name: None if given[name] is None else given[name][:0]}

    def replace_output(
        self, layer: MessagePassing, inputs: _PropagateInputs, out: Tensor
    ) -> Tensor | None:
        """Replace the sum of no messages by the product."""
        product, self.product = self.product, None
        return product

    def _entries(self, used: Tensor) -> "MatrixEntries":
        """The messages of the running call as matrix entries, computed once per union and number of
        messages.
        """
        at = None if self.reach is None else self.reach.at
        key = (self.calls if at is not None else -1, used.size(1))
        if key not in self.union.entries:
            self.union.entries[key] = _build_entries(self.union, used, at)
        return self.union.entries[key]


class _ProductContext(Protocol):
    """What `torch.autograd` keeps of a product between its two passes."""

    entries: "MatrixEntries"
    saved_tensors: tuple[Tensor, Tensor]
    needs_input_grad: tuple[bool, bool, bool]

    def save_for_backward(self, *tensors: Tensor) -> None: ...


class _SparseProduct(torch.autograd.Function):
    """The product W x, differentiable in the entries of W and in x; see above."""

    @staticmethod
    def forward(ctx: _ProductContext, value: Tensor, x: Tensor, entries: "MatrixEntries") -> Tensor:
        """(entries,), (rows, H) -> (rows, H)"""
        ctx.save_for_backward(value, x)
        ctx.entries = entries
        return entries.product(value, x)

    @staticmethod
    def backward(ctx: _ProductContext, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """Compute the gradients that are needed."""
        (value, x), entries, grad = ctx.saved_tensors, ctx.entries, grads[0].contiguous()
        wants_value, wants_x, _ = ctx.needs_input_grad
        for_value = entries.dots(grad, x) if wants_value else None
        return for_value, entries.turned_product(value, grad) if wants_x else None, None


@dataclass(frozen=True)
class MatrixEntries:
    """Messages as the entries of a sparse matrix, sorted by row.

    Args:
        messages: The column of ``edge_index`` of each message, -1 for an added self-loop.
            (entries,)
        place: Which message each entry is.  (entries,)
        start: First entry of each row, and the number of entries.  (rows + 1,)
        column: Column of each entry.  (entries,)
    """

    messages: Tensor
    place: Tensor
    start: Tensor
    column: Tensor

    @property
    def rows(self) -> int:
        """Number of rows and columns of the matrix."""
        return len(self.start) - 1

    @cached_property
    def row(self) -> Tensor:
        """Row of each entry.  (entries,)"""
        size = self.start.diff().long()
        return torch.repeat_interleave(size, output_size=len(self.column)).to(self.start)

    @cached_property
    def by_column(self) -> tuple[Tensor, Tensor, Tensor]:
        """The transposed matrix: start of each column, row of each entry, and which entry it is."""
        order = self.column.argsort(stable=True)
        start = index2ptr(self.column[order].long(), self.rows).to(self.start)
        return start, self.row[order], order

    @cached_property
    def row_parts(self) -> RowParts:
        """The rows of W, for the kernels."""
        return RowParts.from_rows(self.start)

    @cached_property
    def column_parts(self) -> RowParts:
        """The rows of W', for the kernels."""
        return RowParts.from_rows(self.by_column[0])

    def times(self, weight: Tensor, x: Tensor) -> Tensor:
        """W x for each head.  (messages, heads), (rows, heads, H) -> (rows, heads, H)"""
        value = weight.index_select(0, self.place)
        products: list[Tensor] = [
            _SparseProduct.apply(value[:, head], x[:, head].contiguous(), self)
            for head in range(x.size(1))
        ]
        return products[0][:, None] if len(products) == 1 else torch.stack(products, 1)

    def product(self, value: Tensor, x: Tensor) -> Tensor:
        """W x.  (entries,), (rows, H) -> (rows, H)"""
        if can_run_kernels(x):
            return sparse_times_rows(self.row_parts, self.column, value.contiguous(), x)
        return _matrix_times_rows(self.start, self.column, value, x)

    def turned_product(self, value: Tensor, x: Tensor) -> Tensor:
        """W' x.  (entries,), (rows, H) -> (rows, H)"""
        start, row, order = self.by_column
        turned = value.index_select(0, order)
        if can_run_kernels(x):
            return sparse_times_rows(self.column_parts, row, turned, x)
        return _matrix_times_rows(start, row, turned, x)

    def dots(self, first: Tensor, second: Tensor) -> Tensor:
        """The scalar product first_v · second_u for each entry (v, u).  (rows, H) twice ->
        (entries,)
        """
        if can_run_kernels(first):
            return entry_dots(self.row, self.column, first, second)
        with _without_sparse_warnings():
            pattern = _sparse_matrix(self.start, self.column, first.new_zeros(len(self.column)))
            return torch.sparse.sampled_addmm(pattern, first, second.t(), beta=0.0).values()


def _matrix_times_rows(start: Tensor, column: Tensor, value: Tensor, x: Tensor) -> Tensor:
    """The product of a square matrix in compressed sparse rows with rows."""
    with _without_sparse_warnings():
        return _sparse_matrix(start, column, value) @ x


def _sparse_matrix(start: Tensor, column: Tensor, value: Tensor) -> Tensor:
    """A square matrix in compressed sparse rows."""
    size = (len(start) - 1, len(start) - 1)
    return torch.sparse_csr_tensor(start, column, value, size, check_invariants=False)


@contextmanager
def _without_sparse_warnings() -> Iterator[None]:
    """Hide torch's warnings that sparse tensors are in beta state and not checked."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Sparse (CSR tensor support|invariant checks)", UserWarning
        )
        yield


def _build_entries(union: GraphBatch, used: Tensor, at: Tensor | None) -> MatrixEntries:
    """The matrix entries of the messages along ``used`` (2, messages), which a layer uses.

    ``at`` says which of the layer's messages these are; None for all.
    """
    edges, rows = union.edge_index, union.num_rows
    place = torch.arange(used.size(1), device=used.device) if at is None else at
    loop_row, is_edge = place - edges.size(1), place < edges.size(1)
    has_all = edges.size(1) > 0 and (at is not None or used.size(1) >= edges.size(1))
    if not has_all or not torch.equal(
        used, torch.where(is_edge, edges[:, place.where(is_edge, 0)], loop_row)
    ):
        raise NotFusable
    order = _edges_by_head(union)
    if at is not None:
        rank = torch.full((edges.size(1) + rows,), -1, device=used.device)
        order = rank.index_copy(0, at, torch.arange(len(at), device=at.device))[order]
        order = order[order >= 0]
    if used.size(1) > rows * rows:  # cuSPARSE takes no more entries than the matrix has places
        raise NotFusable
    (loop,) = (~is_edge).nonzero(as_tuple=True)
    start, order = _append_loops(index2ptr(used[1, order], rows), order, loop, loop_row[loop])
    narrow = torch.int32 if max(used.size(1), rows) < 2**31 else torch.int64
    return MatrixEntries(
        place.where(is_edge, -1), order, start.to(narrow), used[0, order].to(narrow)
    )


def _append_loops(
    start: Tensor, order: Tensor, loop: Tensor, loop_row: Tensor
) -> tuple[Tensor, Tensor]:
    """Put each self-loop behind the other entries of its row.

    Args:
        start: First entry of each row, without self-loops.  (rows + 1,)
        order: The message of each entry.  (entries,)
        loop: Messages of self-loops: one for a row, but several where rows are filling.  (loops,)
        loop_row: Row of each of them.  (loops,)

    Returns:
        Start and order with the self-loops.
    """
    num_loops = torch.bincount(loop_row, minlength=len(start) - 1)
    before = torch.cat([num_loops.new_zeros(1), num_loops.cumsum(0)])
    row = torch.repeat_interleave(start.diff(), output_size=len(order))
    place = torch.arange(len(order), device=order.device) + before[row]
    by_row = loop_row.argsort(stable=True)
    loop_place = start[loop_row[by_row] + 1] + torch.arange(len(loop), device=order.device)
    merged = order.new_empty(len(order) + len(loop))
    merged[torch.cat([place, loop_place])] = torch.cat([order, loop[by_row]])
    return start + before, merged


def _edges_by_head(union: GraphBatch) -> Tensor:
    """Columns of ``edge_index`` sorted by head.  (edges,)"""
    graphs, of, copy = union.graphs, union.graph_index, union.edge_copy
    size = graphs.edge_sizes[of]
    if union.align > 1 or union.num_edges != int(size.sum()):
        return union.edge_index[1].argsort(stable=True)
    first = size.cumsum(0) - size - graphs.edge_ptr[of]
    return graphs.edges_by_head[union.edge_row] + first[copy]
