"""Messages that are numbers times rows, added up without being written out.

A layer whose message along an edge (u, v) is w_uv x_u, and which adds them up, takes the product with a sparse matrix,

    out_v = Σ_u w_uv x_u        out = W x,    W (rows, rows), w_uv in row v and column u

PyG writes all messages out first, (edges, H) numbers, three times over. On a GPU, where no gradient and no mask asks for single
messages, the product is taken here instead: the layer is left no edge for its `propagate`, and the product is put in place of the
zeros that come out. Self-loops that a layer appends, one for each row, are a diagonal: w_vv x_v.

A sparse matrix wants its entries row by row. The edges of each computation graph are sorted by their heads once; the order of
those of a union follows from that without sorting.
"""

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import GATConv, GCNConv, MessagePassing
from torch_geometric.utils.sparse import index2ptr

from graphgauge.models.masking import message_layers
from graphgauge.models.reach import Reach
from graphgauge.models.union import Union

Inputs = tuple[Tensor, Any, dict[str, Any]]

#: layers whose messages are rows times numbers, and the name under which `propagate` gets the numbers
WEIGHTS = {GCNConv: "edge_weight", GATConv: "alpha"}


@contextmanager
def fused_messages(net: Module, fused: "Fused | None") -> Iterator[None]:
    """Let layers of ``net`` take products where they can; with None, none does. To be entered after all other hooks."""
    with ExitStack() as stack:
        for layer in [] if fused is None else message_layers(net):
            if is_product(layer):
                stack.callback(layer.register_propagate_forward_pre_hook(fused.before).remove)  # type: ignore[union-attr]
                stack.callback(layer.register_propagate_forward_hook(fused.after).remove)  # type: ignore[union-attr]
        yield


def is_product(layer: MessagePassing) -> bool:
    """Whether a layer adds up rows times numbers, and nobody looks at its messages."""
    is_plain = type(layer) in WEIGHTS and layer.flow == "source_to_target" and layer.aggr in ("add", "sum", "SumAggregation()")
    is_seen = layer._message_forward_pre_hooks or layer._message_forward_hooks or layer._aggregate_forward_pre_hooks
    return is_plain and not is_seen and not layer._aggregate_forward_hooks and not layer.explain


class Fused:
    """The hooks around `propagate`, for one pass over a union."""

    def __init__(self, union: Union, reach: Reach | None) -> None:
        self.union, self.reach = union, reach
        self.product: Tensor | None = None

    def before(self, layer: MessagePassing, inputs: Inputs) -> Inputs | None:
        """Take the product and leave the layer no edge; or leave all to the layer, where its edges are not the graph's."""
        used, size, given = inputs
        name = WEIGHTS[type(layer)]
        weight, x = given[name], given["x"][0] if isinstance(given["x"], tuple) else given["x"]
        self.product = None
        at = None if self.reach is None else self.reach.at
        entries = None if weight is None or size is not None else entries_of(self.union, used, at)
        if entries is None:
            return None
        self.product = entries.times(weight.view(len(weight), -1), x.reshape(len(x), *x.shape[1:-1] or (1,), x.size(-1))).view(
            x.shape
        )
        return used[:, :0], size, {**given, name: weight[:0]}

    def after(self, layer: MessagePassing, inputs: Inputs, out: Tensor) -> Tensor | None:
        """The product in place of the sum of no messages."""
        product, self.product = self.product, None
        return product


@dataclass(frozen=True)
class Entries:
    """Messages as entries of a sparse matrix, row by row, and of a diagonal."""

    place: Tensor  #: (entries,) which message each is
    start: Tensor  #: (rows + 1,) the first entry of each row
    column: Tensor  #: (entries,)
    loop: Tensor  #: (loops,) messages of appended self-loops
    loop_row: Tensor  #: (loops,)

    def times(self, weight: Tensor, x: Tensor) -> Tensor:
        """W x for each head.  (messages, heads), (rows, heads, H) -> (rows, heads, H)"""
        rows, heads = x.shape[:2]
        found = [self.product(weight[self.place, head], x[:, head].contiguous(), rows) for head in range(heads)]
        return torch.stack(found, 1).index_add_(0, self.loop_row, weight[self.loop, :, None] * x[self.loop_row])

    def product(self, value: Tensor, x: Tensor, rows: int) -> Tensor:
        """Without the diagonal.  (entries,), (rows, H) -> (rows, H)"""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
            return torch.sparse_csr_tensor(self.start, self.column, value, (rows, rows), check_invariants=False) @ x


def entries_of(union: Union, used: Tensor, at: Tensor | None) -> Entries | None:
    """Messages along ``used``, of which those at ``at`` are sent (None: all), where these are the graph's edges and then loops.

    ``used`` is what a layer uses, after it was cut down to ``at`` (see `reach`).  (2, messages)
    """
    edges, rows = union.edge_index, union.num_rows
    place = torch.arange(used.size(1), device=used.device) if at is None else at
    is_edge = place < edges.size(1)
    whole = place.where(is_edge, 0)
    loop_row = place - edges.size(1)
    wanted = torch.where(is_edge, edges[:, whole], loop_row)
    if not edges.size(1) or not torch.equal(used, wanted):
        return None
    order = by_head(union)
    if at is not None:
        rank = torch.full((edges.size(1) + rows,), -1, device=used.device).index_copy(
            0, at, torch.arange(len(at), device=at.device)
        )
        order = rank[order]
        order = order[order >= 0]
    (loop,) = (~is_edge).nonzero(as_tuple=True)
    narrow = torch.int32 if max(used.size(1), rows) < 2**31 else torch.int64
    start = index2ptr(used[1, order], rows)
    return Entries(order, start.to(narrow), used[0, order].to(narrow), loop, loop_row[loop])


def by_head(union: Union) -> Tensor:
    """Columns of ``edge_index`` in the order of their heads.  (edges,)"""
    graphs, of, copy = union.graphs, union.of, union.edge_copy
    size = graphs.edge_sizes[of]
    if union.align > 1 or union.num_edges != int(size.sum()):
        return union.edge_index[1].argsort(stable=True)
    first = size.cumsum(0) - size - graphs.edge_ptr[of]
    return graphs.by_head[union.edge_row] + first[copy]
