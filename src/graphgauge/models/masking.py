"""Changing the messages of single edges, in every message-passing layer of a network.

With its messages multiplied by 0 an edge is silenced while degrees and attention stay as they were
(``edge_removal="mask"``). Layers may drop stored self-loops and append their own before they send
messages. Which message belongs to which edge is read off the edges that each layer really uses,
never guessed from their number (where every node stores a self-loop, the numbers agree and the
order does not). Messages of self-loops keep their strength.

Layers that run on other edges than these make a pass stop (`OtherEdges`); the next one follows the
edges through the network's operations (`edge_tracking`). Messages along some of the graph's edges,
those of one relation or those that a pooling layer has left, are then told apart by their edges.
Messages along edges of another kind (to a node that stands for the graph, between atoms that are
near) belong to no edge and stay as they are. Whether that leaves the edges another way to act is
tried out (`probing`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import FastRGCNConv, MessagePassing

from graphgauge.core.errors import BadModel
from graphgauge.models.arcs import same_edges
from graphgauge.models.depth import message_layers
from graphgauge.models.edge_tracking import EdgeTracker

#: aggregations under which a message times 0 adds nothing
FAITHFUL_AGGREGATIONS = ("sum", "add", "mean", "SumAggregation()", "MeanAggregation()")

#: layers that sum or average by a routine of their own
FAITHFUL_ROUTINES = (MessagePassing.aggregate, FastRGCNConv.aggregate)


#: what gives edge scores, and measures them, where messages cannot be masked
WITHOUT_MASKS = "use Occlusion or RandomExplainer with edge_removal='drop'"


class OtherEdges(BadModel):
    """A layer sends its messages along other edges than all of the graph's and self-loops."""


@dataclass(frozen=True)
class Messages:
    """What one layer sends at one time: ``value`` (..., messages, ...), along the edges ``used[:,
    at]``.

    The first of ``used`` belong to the graph's edges (all, or those under ``kept``), the last
    ``num_loops`` to self-loops that the layer appended; or ``column`` says for each which edge it
    belongs to.
    """

    number: int  #: which messages of the pass these are, from 0
    layer: MessagePassing
    value: Tensor
    used: Tensor
    kept: Tensor | None  #: (E,) bool; None: all
    num_loops: int
    inputs: dict[str, Any]  #: what `propagate` was given
    at: Tensor | None = None  #: (messages,) which of those along ``used`` are sent; None: all
    column: Tensor | None = (
        None  #: (used,) the edge that each goes along, -1: none of the graph's; None: as said above
    )

    def factors(self, factor: Tensor, loop_factor: float) -> Tensor:
        """Factors of the graph's edges (E,) as they belong to the messages.  (messages,)"""
        if self.column is not None:
            is_loop = (self.used[0] == self.used[1]).long()
            place = torch.where(self.column >= 0, self.column, len(factor) + is_loop)
            own = torch.cat([factor, factor.new_tensor([1.0, loop_factor])]).index_select(0, place)
        else:
            own = factor if self.kept is None else factor[self.kept]
            own = (
                torch.cat([own, own.new_full((self.num_loops,), loop_factor)])
                if self.num_loops
                else own
            )
        return own if self.at is None else own.index_select(0, self.at)

    def columns(self) -> Tensor:
        """The edge that each of ``used`` goes along; -1: none of the graph's.  (used,)"""
        if self.column is not None:
            return self.column
        num_own = self.used.size(1) - self.num_loops
        own = (
            torch.arange(num_own, device=self.used.device)
            if self.kept is None
            else self.kept.nonzero()[:, 0]
        )
        return torch.cat([own, own.new_full((self.num_loops,), -1)])

    def rows_of(self, column: Tensor) -> Tensor:
        """Which message goes along each of some edges; -1: none does.  (n,) -> (n,)"""
        used = self.columns() if self.at is None else self.columns()[self.at]
        row = column.new_full(
            (max(int(value.max()) if len(value) else 0 for value in (used, column)) + 1,), -1
        )
        is_own = used >= 0
        row[used[is_own]] = torch.arange(len(used), device=used.device)[is_own]
        return row[column]

    def times(self, factor: Tensor) -> Tensor:
        """The messages multiplied by ``factor`` (messages,)."""
        shape = [1] * self.value.dim()
        shape[self.layer.node_dim] = -1
        return self.value * factor.to(self.value.dtype).view(shape)


Edit = Callable[[Messages], Tensor | None]


class Scaling(ABC):
    """Edits that need not see the messages: each m becomes z m + (1 - z) b, or z m where there is
    no b.
    """

    @abstractmethod
    def of(self, number: int, column: Tensor) -> tuple[Tensor, Tensor | None] | None:
        """Numbers z of a round's messages, which go along ``column`` of ``edge_index`` (-1: a
        self-loop), and b; None: as they are.

        (messages,) -> (messages,), (width,)
        """

    @abstractmethod
    def __call__(self, sent: Messages) -> Tensor | None:
        """The same on messages that are written out."""


@dataclass(frozen=True)
class Factors(Scaling):
    """The messages of edge e times ``factor[e]`` (E,)."""

    factor: Tensor

    def of(self, number: int, column: Tensor) -> tuple[Tensor, Tensor | None]:
        """Self-loops keep their strength."""
        with_one = torch.cat([self.factor, self.factor.new_ones(1)])
        return with_one.index_select(0, torch.where(column < 0, len(self.factor), column)), None

    def __call__(self, sent: Messages) -> Tensor:
        """Likewise."""
        return sent.times(sent.factors(self.factor, 1.0))


#: number of a call of `propagate` -> which edges it used (see `kept_edges`), how many, and how many
#: columns there were
EdgeUse = dict[int, tuple[Tensor | None, int, int]]
#: number of a call of `propagate` -> which of its messages can arrive (see `reach`), and how many
#: there were
Arrivals = dict[int, tuple[Tensor, int]]


@contextmanager
def masked_messages(
    net: Module,
    edge_index: Tensor,
    factor: Tensor | None,
    loop_factor: float = 1.0,
    memo: EdgeUse | None = None,
    reach: Any = None,
    tracker: EdgeTracker | None = None,
) -> Iterator[None]:
    """Multiply the messages of edge e by ``factor[e]`` (E,), and those of self-loops that layers
    append by ``loop_factor``.
    """
    if factor is None:
        yield
        return
    with edited_messages(
        net,
        edge_index,
        lambda sent: sent.times(sent.factors(factor, loop_factor)),
        memo,
        reach,
        tracker,
    ):
        yield


@contextmanager
def edited_messages(
    net: Module,
    edge_index: Tensor,
    edit: Edit,
    memo: EdgeUse | None = None,
    reach: Any = None,
    tracker: EdgeTracker | None = None,
) -> Iterator[None]:
    """Let ``edit`` see, and replace, all messages that are sent along ``edge_index`` (2, E).

    ``memo`` keeps what was seen of the edges for further passes over the same graph; ``reach`` (a
    `Reach`, whose hooks come after these) says which messages are sent; an active ``tracker`` tells
    where a layer's edges come from.
    """
    editor = Editor(edge_index, edit, {} if memo is None else memo, reach, tracker)
    with ExitStack() as stack:
        for layer in message_layers(net):
            stack.callback(layer.register_propagate_forward_pre_hook(editor.see_edges).remove)
            stack.callback(layer.register_message_forward_hook(editor.see_messages).remove)
        yield


class Editor:
    """The hooks: before `propagate` its edges are seen, after `message` its messages are edited."""

    def __init__(
        self,
        edge_index: Tensor,
        edit: Edit,
        memo: EdgeUse,
        reach: Any = None,
        tracker: EdgeTracker | None = None,
    ) -> None:
        self.edge_index, self.edit, self.memo, self.reach, self.tracker = (
            edge_index,
            edit,
            memo,
            reach,
            tracker,
        )
        self.calls, self.number = 0, 0
        self.inputs: tuple[Any, ...] = ()
        self.column: Tensor | None = None
        self.is_foreign = False

    def see_edges(self, layer: MessagePassing, inputs: tuple[Any, ...]) -> None:
        """Before `propagate`."""
        self.inputs, self.column, self.is_foreign = inputs, None, False
        known = self.memo.get(self.calls)
        if self.tracker is not None:
            self.follow_edges(layer, inputs[0], self.tracker)
        elif known is None or not isinstance(inputs[0], Tensor) or known[2] != inputs[0].size(1):
            kept = kept_edges(type(layer).__name__, self.edge_index, inputs[0])
            count = self.edge_index.size(1) if kept is None else int(kept.sum())
            self.memo[self.calls] = (kept, count, inputs[0].size(1))
        self.calls += 1

    def follow_edges(self, layer: MessagePassing, used: Any, tracker: EdgeTracker) -> None:
        """Find the edge behind each column of ``used``; edges that are none of the graph's are left
        alone.
        """
        name = type(layer).__name__
        if not isinstance(used, Tensor) or used.layout != torch.strided:
            raise OtherEdges(cannot_be_masked(name))
        self.column = tracker.columns(used)
        if self.column is not None:
            check_followed(name, self.edge_index, used, self.column)
            return
        try:  # edges that were made in an earlier pass
            kept = kept_edges(name, self.edge_index, used)
        except OtherEdges:
            self.is_foreign = True
            return
        count = self.edge_index.size(1) if kept is None else int(kept.sum())
        self.memo[self.calls] = (kept, count, used.size(1))

    def see_messages(
        self, layer: MessagePassing, inputs: tuple[Any, ...], message: Tensor
    ) -> Tensor | None:
        """After `message`."""
        if self.is_foreign:
            return None
        used, number = self.inputs[0], self.number
        self.number += 1
        at = None if self.reach is None else self.reach.at
        if self.column is not None:
            return self.edit(
                Messages(number, layer, message, used, None, 0, self.inputs[2], at, self.column)
            )
        kept, num_own, _ = self.memo[self.calls - 1]
        return self.edit(
            Messages(number, layer, message, used, kept, used.size(1) - num_own, self.inputs[2], at)
        )


def kept_edges(layer: str, edge_index: Tensor, used: Any) -> Tensor | None:
    """Which of the graph's edges (or these turned around) a layer uses before new self-loops: all
    (None), or those under a mask.

    (E,) bool
    """
    if isinstance(used, Tensor) and used.layout == torch.strided:
        if follows(used, edge_index):
            return None
        is_link = edge_index[0] != edge_index[1]
        if follows(used, edge_index[:, is_link]):
            return is_link
    raise OtherEdges(cannot_be_masked(layer))


def cannot_be_masked(layer: str) -> str:
    """Why a layer's messages cannot be told apart by their edges."""
    return f"edges cannot be masked in {layer}: it sends its messages along other edges than the graph's. Use edge_removal='drop'."


def check_followed(layer: str, edge_index: Tensor, used: Tensor, column: Tensor) -> None:
    """Refuse edges that are more than a selection of the graph's: each at most once, all one way,
    their nodes renumbered as one.
    """
    is_own = column >= 0
    edge, sent = column[is_own], used[:, is_own]
    ends = edge_index[:, edge]
    number = edge.new_full((int(edge_index.max()) + 1 if edge_index.numel() else 0,), -1)
    for way in (sent, sent.flip(0)):
        number[ends[0]], number[ends[1]] = way[0], way[1]
        if torch.equal(number[ends], way) and len(edge.unique()) == len(edge):
            return
    raise BadModel(cannot_be_masked(layer))


def follows(used: Tensor, edges: Tensor) -> bool:
    """Whether ``used`` is ``edges``, one way or the other, followed by nothing but self-loops."""
    return same_edges(used, edges) or same_edges(used, edges.flip(0))


def doubtful_aggregations(net: Module) -> list[str]:
    """Layers under whose aggregation a silenced message can still win (max), or that aggregate in a
    way of their own.
    """
    return sorted(
        {
            f"{type(layer).__name__}(aggr={layer.aggr!r})"
            for layer in message_layers(net)
            if not is_faithful(layer)
        }
    )


def is_faithful(layer: MessagePassing) -> bool:
    """Whether a layer sums or averages its messages, by a routine that is known."""
    return layer.aggr in FAITHFUL_AGGREGATIONS and type(layer).aggregate in FAITHFUL_ROUTINES


def edge_score_sources(mask_support: str, uses_edges: bool) -> str:
    """Which explainers give edges scores, and how these can be measured, for people."""
    if not uses_edges:
        return "none that mean anything: no edge changes a prediction, since the network does not use the graph's edges"
    if mask_support == "exact":
        return "every explainer"
    if mask_support.startswith("refused"):
        return f"only explainers that need no masks: {WITHOUT_MASKS}"
    return "every explainer; evaluate with edge_removal='drop'"
