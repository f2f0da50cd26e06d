"""Message masking: change the messages of single edges in every message-passing layer of a network.

An edge whose messages are multiplied by 0 is silent, but degrees and attention stay as they were
(``edge_removal="mask"``). Layers may drop stored self-loops and add their own before they send
messages. Which message belongs to which edge is found from the edges that each layer really uses,
never guessed from their number: if every node stores a self-loop, the numbers agree and the order
does not. Messages of self-loops keep their strength.

Layers that run on other edges stop a pass with `UnmatchedEdges`, and the next pass tracks the edges
through the network's operations (`edge_tracking`). Messages along some of the graph's edges, those
of one relation or those that a pooling layer keeps, are then matched to their edges. Messages along
edges of another kind (to a virtual node, between atoms that are near) belong to no edge and stay
unchanged. Whether edges can still act in another way is tested by a probe.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import MessagePassing

from graphgauge.core import BadModel
from graphgauge.execution.edge_tracking import EdgeTracker
from graphgauge.subgraphs import is_same_up_to_loops, message_layers


class UnmatchedEdges(BadModel):
    """A layer sends its messages along other edges than all edges of the graph and self-loops."""


@dataclass(frozen=True)
class LayerMessages:
    """The messages that one layer sends at one time, along the edges ``used[:, at]``.

    The first of ``used`` belong to the graph's edges (all, or those under ``kept``), the last
    ``num_loops`` to self-loops that the layer added; or ``column`` says for each which edge it
    belongs to.

    Args:
        number: Number of these messages in the pass, from 0.
        layer: The layer that sends them.
        value: The messages.  (..., messages, ...)
        used: The edges that the layer uses.  (2, used)
        kept: Which of the graph's edges these are; None for all.  (E,) bool
        num_loops: Number of self-loops that the layer added.
        inputs: What `propagate` was given.
        at: Which of the messages along ``used`` are sent; None for all.  (messages,)
        column: The edge of each of ``used``, -1 for none of the graph's; None: as said above.
            (used,)
    """

    number: int
    layer: MessagePassing
    value: Tensor
    used: Tensor
    kept: Tensor | None
    num_loops: int
    inputs: dict[str, Any]
    at: Tensor | None = None
    column: Tensor | None = None

    def factors(self, factor: Tensor, loop_factor: float) -> Tensor:
        """Factors of the graph's edges (E,) for the messages, with ``loop_factor`` for self-loops.
        (messages,)
        """
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
        """The edge of each of ``used``; -1 for none of the graph's.  (used,)"""
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
        """The message along each of some edges; -1 for none.  (n,) -> (n,)"""
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


MessageEdit = Callable[[LayerMessages], Tensor | None]


class MessageScaling(ABC):
    """Edits that need not see the messages: each m becomes z m + (1 - z) b, or z m without a b."""

    @abstractmethod
    def scaling_of_round(self, number: int, column: Tensor) -> tuple[Tensor, Tensor | None] | None:
        """The factors z of a round's messages, and b; None to leave them unchanged.

        Args:
            number: Number of the round.
            column: The column of ``edge_index`` of each message; -1 for a self-loop.  (messages,)

        Returns:
            z (messages,), and b (width,) or None.
        """

    @abstractmethod
    def __call__(self, sent: LayerMessages) -> Tensor | None:
        """The same edit of messages that are written out."""


@dataclass(frozen=True)
class EdgeFactors(MessageScaling):
    """Multiplies the messages of edge e by ``factor[e]`` (E,)."""

    factor: Tensor

    def scaling_of_round(self, number: int, column: Tensor) -> tuple[Tensor, Tensor | None]:
        """The factors of the messages; self-loops keep their strength."""
        with_one = torch.cat([self.factor, self.factor.new_ones(1)])
        return with_one.index_select(0, torch.where(column < 0, len(self.factor), column)), None

    def __call__(self, sent: LayerMessages) -> Tensor:
        """Multiply messages that are written out."""
        return sent.times(sent.factors(self.factor, 1.0))


#: number of a call of `propagate` -> which edges it used (see `_match_layer_edges`), how many, and
#: how many columns there were
EdgeUse = dict[int, tuple[Tensor | None, int, int]]
#: number of a call of `propagate` -> which of its messages can arrive (see `message_pruning`), and
#: how many there were
Arrivals = dict[int, tuple[Tensor, int]]


@contextmanager
def mask_messages(
    net: Module,
    edge_index: Tensor,
    factor: Tensor | None,
    loop_factor: float = 1.0,
    memo: EdgeUse | None = None,
    reach: Any = None,
    tracker: EdgeTracker | None = None,
) -> Iterator[None]:
    """Multiply the messages of edge e by ``factor[e]`` (E,), and those of added self-loops by
    ``loop_factor``.
    """
    if factor is None:
        yield
        return
    with edit_messages(
        net,
        edge_index,
        lambda sent: sent.times(sent.factors(factor, loop_factor)),
        memo,
        reach,
        tracker,
    ):
        yield


@contextmanager
def edit_messages(
    net: Module,
    edge_index: Tensor,
    edit: MessageEdit,
    memo: EdgeUse | None = None,
    reach: Any = None,
    tracker: EdgeTracker | None = None,
) -> Iterator[None]:
    """Let ``edit`` see, and replace, all messages that are sent along ``edge_index`` (2, E).

    Args:
        net: The network.
        edge_index: The edges of the graph.
        edit: Receives `LayerMessages`; returns other messages or None.
        memo: Stores which edges the layers use, for further passes over the same graph.
        reach: A `MessagePruner`, whose hooks come after these: which messages are sent.
        tracker: An active tracker, which knows where a layer's edges come from.
    """
    editor = _MessageEditor(edge_index, edit, {} if memo is None else memo, reach, tracker)
    with ExitStack() as stack:
        for layer in message_layers(net):
            stack.callback(layer.register_propagate_forward_pre_hook(editor.see_edges).remove)
            stack.callback(layer.register_message_forward_hook(editor.see_messages).remove)
        yield


class _MessageEditor:
    """The hooks: look at the edges before `propagate`, and edit the messages after `message`."""

    def __init__(
        self,
        edge_index: Tensor,
        edit: MessageEdit,
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
        """Find out before `propagate` which edges the layer uses."""
        self.inputs, self.column, self.is_foreign = inputs, None, False
        known = self.memo.get(self.calls)
        if self.tracker is not None:
            self.follow_edges(layer, inputs[0], self.tracker)
        elif known is None or not isinstance(inputs[0], Tensor) or known[2] != inputs[0].size(1):
            kept = _match_layer_edges(type(layer).__name__, self.edge_index, inputs[0])
            count = self.edge_index.size(1) if kept is None else int(kept.sum())
            self.memo[self.calls] = (kept, count, inputs[0].size(1))
        self.calls += 1

    def follow_edges(self, layer: MessagePassing, used: Any, tracker: EdgeTracker) -> None:
        """Find the edge behind each column of ``used``; edges that are none of the graph's are left
        alone.
        """
        name = type(layer).__name__
        if not isinstance(used, Tensor) or used.layout != torch.strided:
            raise UnmatchedEdges(_explain_unmaskable(name))
        self.column = tracker.columns(used)
        if self.column is not None:
            _check_tracked_edges(name, self.edge_index, used, self.column)
            return
        try:  # edges that were made in an earlier pass
            kept = _match_layer_edges(name, self.edge_index, used)
        except UnmatchedEdges:
            self.is_foreign = True
            return
        count = self.edge_index.size(1) if kept is None else int(kept.sum())
        self.memo[self.calls] = (kept, count, used.size(1))

    def see_messages(
        self, layer: MessagePassing, inputs: tuple[Any, ...], message: Tensor
    ) -> Tensor | None:
        """Edit the messages after `message`."""
        if self.is_foreign:
            return None
        used, number = self.inputs[0], self.number
        self.number += 1
        at = None if self.reach is None else self.reach.at
        if self.column is not None:
            return self.edit(
                LayerMessages(
                    number, layer, message, used, None, 0, self.inputs[2], at, self.column
                )
            )
        kept, num_own, _ = self.memo[self.calls - 1]
        return self.edit(
            LayerMessages(
                number, layer, message, used, kept, used.size(1) - num_own, self.inputs[2], at
            )
        )


def _match_layer_edges(layer: str, edge_index: Tensor, used: Any) -> Tensor | None:
    """Which of the graph's edges, in either direction, a layer uses before added self-loops.

    Returns:
        None for all edges, or a mask (E,) bool.
    """
    if isinstance(used, Tensor) and used.layout == torch.strided:
        if _matches_edges(used, edge_index):
            return None
        is_link = edge_index[0] != edge_index[1]
        if _matches_edges(used, edge_index[:, is_link]):
            return is_link
    raise UnmatchedEdges(_explain_unmaskable(layer))


def _explain_unmaskable(layer: str) -> str:
    """The message of the error for a layer whose messages cannot be matched to edges."""
    return (
        f"edges cannot be masked in {layer}: it sends its messages along other edges than the "
        "graph's. Use edge_removal='drop'."
    )


def _check_tracked_edges(layer: str, edge_index: Tensor, used: Tensor, column: Tensor) -> None:
    """Raise BadModel unless tracked edges are a selection of the graph's edges.

    Each edge may occur once, all in one direction, with their nodes consistently renumbered.
    """
    is_own = column >= 0
    edge, sent = column[is_own], used[:, is_own]
    ends = edge_index[:, edge]
    number = edge.new_full((int(edge_index.max()) + 1 if edge_index.numel() else 0,), -1)
    for way in (sent, sent.flip(0)):
        number[ends[0]], number[ends[1]] = way[0], way[1]
        if torch.equal(number[ends], way) and len(edge.unique()) == len(edge):
            return
    raise BadModel(_explain_unmaskable(layer))


def _matches_edges(used: Tensor, edges: Tensor) -> bool:
    """Whether ``used`` is ``edges``, in either direction, followed by nothing but self-loops."""
    return is_same_up_to_loops(used, edges) or is_same_up_to_loops(used, edges.flip(0))
