"""Disjoint unions: many computation graphs, or many edited copies of a few, as one graph for one
call of the network.

Copy k of a union is a copy of computation graph ``of[k]``. All copies are laid out one after
another by tensor operations only. Messages never cross between copies, so one call of the network
serves them all.

On a CPU, the last bits of a row of a matrix product depend on where the row lies in memory and on
how many rows there are, and those of a vectorised function (sigmoid, elu ...) on the distance to
the end. Every copy must get the same bits in every union, so its nodes, its edges, its link and its
graph each start at a multiple of ``ALIGN`` = 16 rows, and all counts are filled up to multiples of
64, at least 128. The filling is zero nodes without a tie to any copy, and edges among the last two
of them; in graph tasks it forms graphs of its own.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core.errors import BadSetting
from graphgauge.models.arcs import ragged_ranges
from graphgauge.models.computation import ComputationGraphs
from graphgauge.models.features import Features, Gathered, Written
from graphgauge.models.masking import Arrivals, EdgeUse
from graphgauge.models.normalisation import Looped, Normalised, prepared

ALIGN, STEP, LEAST = 16, 64, 128


def room(count: Tensor, align: int) -> Tensor:
    """``count`` rounded up to a multiple of ``align``."""
    return -(count.neg() // align) * align


@dataclass(frozen=True)
class Layout:
    """Where runs of ``count`` (K,) things go: run k starts at ``start[k]``, ``size`` places in all."""

    start: Tensor
    size: int

    @staticmethod
    def of(count: Tensor, align: int, spare: int) -> "Layout":
        """Runs one after another, each at a multiple of ``align``; with room for ``spare`` more
        where there is filling.

        >>> Layout.of(torch.tensor([3, 20]), align=16, spare=2)
        Layout(start=tensor([ 0, 16]), size=128)
        """
        taken = room(count, align)
        end = int(taken.sum())
        return Layout(
            taken.cumsum(0) - taken,
            end if align == 1 else max(LEAST, -(-(end + spare) // STEP) * STEP),
        )


@dataclass(frozen=True)
class Union:
    """K copies as one graph.

    A copy is one piece of the union, a whole computation graph. (In `versions` copies share pieces:
    there a piece is a graph or a single node of one, and each copy has target rows of its own.)

    ``x``, ``edge_index`` and all other attributes have filling between and behind the copies;
    ``node_at`` and ``edge_at`` say where the copies' own nodes and edges stand. Edits return a new
    union.
    """

    graphs: ComputationGraphs
    copy: Tensor  #: (K,) numbers of these copies in the whole request
    of: Tensor  #: (pieces,) which computation graph each is a copy of
    target_rows: Tensor  #: (K, 1) or (K, 2) rows of the copies' target nodes; (K, 0) in graph tasks
    align: int  #: 16, or 1 for a union without filling
    features: Features  #: x, written out when it is asked for
    node_attrs: dict[str, Tensor]  #: what else the net takes
    edge_attrs: dict[str, Tensor]
    edge_index: Tensor
    node_at: Tensor  #: (num_nodes,) row of each node
    node_row: Tensor  #: (num_nodes,) its position in ``graphs.node``
    node_copy: Tensor  #: (num_nodes,) its piece
    edge_at: Tensor  #: (num_edges,) column of each edge
    edge_row: Tensor  #: (num_edges,) its position in ``graphs.edge``
    edge_copy: Tensor  #: (num_edges,) its piece
    node_start: Tensor  #: (pieces,) first row of each
    edge_mask: Tensor | None = None  #: (num_edges,) factor on each edge's messages
    edge_use: EdgeUse = field(
        default_factory=dict, repr=False
    )  #: which edges the layers were seen to use, for the next pass
    arrivals: Arrivals = field(
        default_factory=dict, repr=False
    )  #: which messages can arrive, for the next pass
    entries: dict[Any, Any] = field(
        default_factory=dict, repr=False
    )  #: messages as entries of matrices (see `fused`), likewise
    normalised: Normalised = field(
        default_factory=Normalised, repr=False
    )  #: what GCN layers made of the edges, for the next pass
    looped: Looped = field(default_factory=Looped, repr=False)  #: what GAT layers made of them

    def __len__(self) -> int:
        return len(self.copy)

    def __repr__(self) -> str:
        return f"Union({len(self)} copies, {self.num_nodes} nodes, {self.num_edges} edges)"

    @property
    def x(self) -> Tensor:
        """Features, filling included."""
        return self.features.written

    @property
    def num_rows(self) -> int:
        """Nodes, filling included."""
        return self.features.shape[0]

    @property
    def num_nodes(self) -> int:
        """Nodes of the copies."""
        return len(self.node_at)

    @property
    def num_edges(self) -> int:
        """Edges of the copies."""
        return len(self.edge_at)

    @property
    def node_position(self) -> Tensor:
        """Position of each node in its own graph; scored are those below ``graphs.num_nodes[of]``.
        (num_nodes,)
        """
        return self.node_row - self.graphs.node_ptr[self.of][self.node_copy]

    @property
    def edge_position(self) -> Tensor:
        """Position of each edge in its own graph; relevant are those below
        ``graphs.num_edges[of]``.  (num_edges,)
        """
        return self.edge_row - self.graphs.edge_ptr[self.of][self.edge_copy]

    @property
    def is_scored(self) -> Tensor:
        """Which nodes are their target's, not of the halo.  (num_nodes,) bool"""
        return self.node_position < self.graphs.num_nodes[self.of][self.node_copy]

    @property
    def is_relevant(self) -> Tensor:
        """Which edges can carry a message to their target.  (num_edges,) bool"""
        return self.edge_position < self.graphs.num_edges[self.of][self.edge_copy]

    def with_x(self, x: Tensor) -> "Union":
        """The same copies with other features (a tensor like ``x``; rows at ``node_at``)."""
        check_shape("x", x, torch.Size(self.features.shape))
        if x.dtype != self.features.like.dtype:
            raise BadSetting(
                f"x must be {self.features.like.dtype} in this union, but is {x.dtype}."
            )
        return replace(self, features=Written(x))

    def with_features(self, features: Features) -> "Union":
        """The same copies with other features, which need not be written out."""
        return replace(self, features=features)

    def answering(self, target_rows: Tensor) -> "Union":
        """The same graph, asked for other rows."""
        return replace(self, target_rows=target_rows)

    def with_mask(self, factor: Tensor) -> "Union":
        """The same copies with each edge's messages multiplied by ``factor`` (num_edges,);
        normalisation stays.
        """
        check_shape("factor", factor, self.edge_at.shape)
        return replace(self, edge_mask=factor)

    def with_weight_factor(self, factor: Tensor) -> "Union":
        """The same copies with each edge's ``edge_weight`` multiplied by ``factor`` (num_edges,);
        normalisation follows.
        """
        check_shape("factor", factor, self.edge_at.shape)
        weight = self.edge_attrs["edge_weight"]
        full = factor.new_ones(len(weight)).index_copy(0, self.edge_at, factor).to(weight.dtype)
        return replace(
            self,
            edge_attrs={
                **self.edge_attrs,
                "edge_weight": weight * full.view(-1, *[1] * (weight.dim() - 1)),
            },
        )

    def without_edges(self, gone: Tensor) -> "Union":
        """The same copies without the edges under ``gone`` (num_edges,) bool; degrees and attention
        change.
        """
        check_shape("gone", gone, self.edge_at.shape)
        if self.graphs.weights is not None:
            raise BadSetting(
                "these graphs lack edges that set degrees, so none can be dropped: use those of model.computation_graphs(targets)."
            )
        if gone.dtype != torch.bool:
            raise BadSetting(f"gone must say yes or no for each edge (bool), but is {gone.dtype}.")
        kept = (~gone).nonzero().squeeze(1)
        mask = None if self.edge_mask is None else self.edge_mask[kept]
        return with_edges(replace(self, edge_mask=mask), self.edge_row[kept], self.edge_copy[kept])

    def full_mask(self) -> Tensor | None:
        """The factor of every column of ``edge_index``; 1 for the filling."""
        if self.edge_mask is None:
            return None
        return self.edge_mask.new_ones(self.edge_index.size(1)).index_copy(
            0, self.edge_at, self.edge_mask
        )

    def data(self, with_batch: bool, lazy: bool = False) -> Data:
        """What the network sees, with the pairs of link targets and, if asked for, which graph each
        node belongs to.

        ``lazy``: features may come as an `Unwritten` tensor, which is for networks without
        gradients.
        """
        source = self.graphs.source
        x = self.features.for_network() if lazy else self.x
        g = Data(x=x, edge_index=self.edge_index, **self.node_attrs, **self.edge_attrs)
        for name, value in source.graph_attrs.items():
            g[name] = self.per_graph(value) if self.target_rows.size(1) == 0 else copied(value)
        if self.target_rows.size(1) == 2:
            g.edge_label_index = self.pairs
        if with_batch:
            g.batch = self.batch
        return g

    def answers(self, rows: Tensor) -> Tensor:
        """Of the network's rows, those of the copies' targets.  (rows, columns) -> (K, columns)"""
        if self.target_rows.size(1) == 1:
            return rows.index_select(0, self.target_rows[:, 0])
        return rows.index_select(0, self.answer_at) if len(rows) == self.num_answers else rows

    @property
    def answer_at(self) -> Tensor:
        """Which of the links or graphs the network is asked for are the copies' own.  (K,)"""
        return torch.arange(len(self), device=self.of.device) * self.align

    @cached_property
    def num_answers(self) -> int:
        """How many links or graphs the network is asked for, filling included."""
        return Layout.of(torch.ones_like(self.copy), self.align, spare=1).size

    @cached_property
    def pairs(self) -> Tensor:
        """The copies' link targets, and pairs of two nodes of the filling.  (2, num_answers)"""
        filler = (
            self.edge_index.new_tensor([[self.num_rows - 2], [self.num_rows - 1]])
            .expand(2, self.num_answers)
            .clone()
        )
        filler[:, self.answer_at] = self.target_rows.t()
        return filler

    @cached_property
    def batch(self) -> Tensor:
        """The graph of each row, in rising order: copy k is graph ``align * k``, filling behind it
        the graph after that.
        """
        batch = torch.full((self.num_rows,), self.num_answers - 1, device=self.of.device)
        if len(self) and self.align > 1:
            gap = (
                torch.bucketize(
                    torch.arange(len(batch), device=batch.device), self.node_start, right=True
                )
                - 1
            )
            batch = torch.where(gap < len(self) - 1, gap * self.align + 1, batch)
        batch[self.node_at] = self.answer_at[self.node_copy]
        inner = self.node_attrs.get("batch")  # the data's own: a graph within each copy
        return (
            batch
            if inner is None
            else (batch * (int(inner.max()) + 1) + inner).unique(return_inverse=True)[1]
        )

    def per_graph(self, value: Tensor) -> Tensor:
        """The rows of a graph attribute (G, ...) as they belong to `batch`'s graphs; zeros for the
        filling.
        """
        rows = value.new_zeros(self.num_answers, *value.shape[1:])
        return rows.index_copy(0, self.answer_at, value[self.graphs.target[self.of, 0]])


def check_shape(name: str, values: Tensor, shape: torch.Size) -> None:
    """Refuse an edit that does not fit its union."""
    if values.shape != shape:
        raise BadSetting(
            f"{name} must have shape {tuple(shape)} in this union, but has {tuple(values.shape)}."
        )


def assemble(graphs: ComputationGraphs, of: Tensor, copy: Tensor, align: int = ALIGN) -> Union:
    """The union of copies of ``graphs[of[0]], graphs[of[1]], ...``, unedited."""
    node_copy, node_row = ragged_ranges(graphs.node_ptr[of], graphs.sizes[of])
    edge_copy, edge_row = ragged_ranges(graphs.edge_ptr[of], graphs.edge_sizes[of])
    layout = Layout.of(graphs.sizes[of], align, spare=2)
    node_at = layout.start[node_copy] + node_row - graphs.node_ptr[of][node_copy]
    bare = without_edges(graphs, of, copy, node_row, node_copy, node_at, layout, align)
    return with_edges(bare, edge_row, edge_copy)


def without_edges(
    graphs: ComputationGraphs,
    of: Tensor,
    copy: Tensor,
    node_row: Tensor,
    node_copy: Tensor,
    node_at: Tensor,
    layout: Layout,
    align: int,
) -> Union:
    """The union of pieces of ``graphs[of]`` that hold the nodes ``node_row`` at the rows
    ``node_at``, before it has edges.
    """
    others = {name: value for name, value in graphs.source.node_attrs.items() if name != "x"}
    return Union(
        graphs=graphs,
        copy=copy,
        of=of,
        target_rows=graphs.target_row[of] + layout.start[:, None],
        align=align,
        features=gathered(graphs, of, node_copy, node_row, node_at, layout.size, align),
        node_attrs={
            name: placed(value, graphs.node[node_row], node_at, layout.size)
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


def gathered(
    graphs: ComputationGraphs,
    of: Tensor,
    node_copy: Tensor,
    node_row: Tensor,
    node_at: Tensor,
    size: int,
    align: int,
) -> Gathered:
    """Features of a union: those of its distinct graphs, laid out as in a union of one copy of
    each, and where each row is.
    """
    distinct, own = of.unique(return_inverse=True)
    table_copy, table_row = ragged_ranges(graphs.node_ptr[distinct], graphs.sizes[distinct])
    layout = Layout.of(graphs.sizes[distinct], align, spare=2)
    place = layout.start[table_copy] + table_row - graphs.node_ptr[distinct][table_copy]
    node = graphs.node.new_full((layout.size,), -1).index_copy(0, place, graphs.node[table_row])
    position = node_row - graphs.node_ptr[of][node_copy]
    index = node_at.new_full((size,), max(layout.size - 1, 0)).index_copy(
        0, node_at, layout.start[own][node_copy] + position
    )
    return Gathered(graphs.source.x, node, index)


def with_edges(union: Union, edge_row: Tensor, edge_copy: Tensor) -> Union:
    """``union`` with these edges of its graphs, given in the order of their copies, instead of its
    own.
    """
    return with_ends(
        union,
        union.graphs.edge_index[:, edge_row] + union.node_start[edge_copy],
        edge_row,
        edge_copy,
    )


def with_ends(union: Union, ends: Tensor, edge_row: Tensor, edge_copy: Tensor) -> Union:
    """Likewise, with edges between the rows ``ends`` (2, num_edges) of the union."""
    graphs, num_rows = union.graphs, union.num_rows
    edge_at, num_links, size = edge_places(
        edge_copy, ends[0] == ends[1], len(union.of), union.align
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
            name: placed(value, edge, edge_at, size)
            for name, value in graphs.source.edge_attrs.items()
        },
        edge_at=edge_at,
        edge_row=edge_row,
        edge_copy=edge_copy,
        edge_use={},
        arrivals={},
        entries={},
        normalised=Normalised() if weights is None else prepared(weights, *places),
        looped=Looped(),
    )


def copied(value: Any) -> Any:
    """A copy of a tensor, so that a network that writes into its input does no harm; anything else
    as it is.
    """
    return value.clone() if isinstance(value, Tensor) else value


def edge_places(
    edge_copy: Tensor, is_loop: Tensor, num_copies: int, align: int
) -> tuple[Tensor, int, int]:
    """Where edges go that come in the order of their copies; the places before all self-loops, and
    those in all.

    Stored self-loops, and a filling of self-loops, go behind everything else: many layers drop them
    and append their own, and no other edge may move by that. Without filling the edges stay as they
    come.
    """
    if align == 1:
        return torch.arange(len(edge_copy), device=edge_copy.device), len(edge_copy), len(edge_copy)
    edge_at, sizes = torch.empty_like(edge_copy), [0]
    for kind in (~is_loop, is_loop):
        copy = edge_copy[kind]
        count = torch.bincount(copy, minlength=num_copies)
        layout = Layout.of(count, align, spare=1)
        rank = torch.arange(len(copy), device=copy.device) - (count.cumsum(0) - count)[copy]
        edge_at[kind] = sizes[-1] + layout.start[copy] + rank
        sizes.append(sizes[-1] + layout.size)
    return edge_at, sizes[1], sizes[2] if bool(is_loop.any()) else sizes[1]


def placed(values: Tensor, index: Tensor, at: Tensor, size: int) -> Tensor:
    """``size`` rows, zero but for ``values[index]`` at the rows ``at``; written once."""
    if not len(values):
        return values.new_zeros(size, *values.shape[1:])
    if size == len(index):
        return values[index]
    source = torch.zeros(size, dtype=torch.int64, device=at.device).index_copy(0, at, index)
    filling = torch.ones(size, dtype=torch.bool, device=at.device)
    filling[at] = False
    return values[source].masked_fill_(filling.view(-1, *[1] * (values.dim() - 1)), 0)
