"""Message pruning: messages that cannot arrive are not sent.

In a network of L rounds of messages, one after another, a message of round r = 1..L reaches the
target only if its head is at most L - r messages away from it. In the last round that is the
target's own neighbourhood. Halo edges, which set degrees, carry no message that arrives in any
round. The network's output for all other nodes is never used.

So before each call of `propagate` its edges, and its inputs per edge, are reduced to the messages
that can arrive. Degrees and attention are computed before, on all edges. Before anything relies on
this, the rounds are traced, and a probe tests that the network's rows stay the same.

On a CPU each copy's messages still start at a multiple of 16, with messages between filling nodes
in the gaps (`GraphBatch`). Yet with far fewer rows a matrix product may take another path and
change its last bits. So on a CPU only layers are pruned whose messages are numbers times rows, in
which no bit depends on its place.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import (
    APPNP,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    LEConv,
    MessagePassing,
    SAGEConv,
    SGConv,
    TAGConv,
)

from graphgauge.execution.aligned_layout import AlignedLayout
from graphgauge.execution.graph_batch import GraphBatch
from graphgauge.subgraphs import ComputationGraphs, message_layers

#: layers whose messages are rows of x, some times a number of their edge
SCALED_ROW_LAYERS = (
    GCNConv,
    GATConv,
    GATv2Conv,
    SAGEConv,
    GraphConv,
    GINConv,
    SGConv,
    TAGConv,
    APPNP,
    LEConv,
)


class MessagePruner:
    """The hook before `propagate`, for one pass. ``at`` holds the messages of the running call;
    None for all.
    """

    def __init__(self, union: GraphBatch, cuts: tuple[bool, ...]) -> None:
        self.union, self.cuts, self.calls = union, cuts, 0
        self.at: Tensor | None = None

    def cut(self, layer: MessagePassing, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The inputs of `propagate` without messages that cannot arrive."""
        used, size, given = inputs
        self.calls, self.at = self.calls + 1, None
        if not self.cuts[self.calls - 1] or not self.can_be_cut(layer, used):
            return None
        known = self.union.arrivals.get(self.calls)
        if known is None or known[1] != used.size(1):
            head = used[1 if layer.flow == "source_to_target" else 0]
            known = self.union.arrivals[self.calls] = (
                self.arriving(head, len(self.cuts) - self.calls),
                used.size(1),
            )
        self.at = at = known[0]
        return (
            used[:, at],
            size,
            {name: _select_messages(value, at, used.size(1)) for name, value in given.items()},
        )

    def can_be_cut(self, layer: MessagePassing, used: Any) -> bool:
        """Whether bits stay equal and inputs per message can be recognised: there must not be as
        many nodes as messages.
        """
        if self.union.align > 1 and type(layer) not in SCALED_ROW_LAYERS:
            return False
        return (
            isinstance(used, Tensor)
            and used.layout == torch.strided
            and used.size(1) != self.union.num_rows
        )

    def arriving(self, head: Tensor, left: int) -> Tensor:
        """Positions of the messages whose ``head`` is at most ``left`` hops from its target.  (M,)

        There is filling between the copies.
        """
        union, beyond = self.union, len(self.cuts) + 2
        hop = head.new_full((union.num_rows,), beyond).index_copy(
            0, union.node_at, union.graphs.hop[union.node_row]
        )[head]
        (place,) = (hop <= left).nonzero(as_tuple=True)
        if union.align == 1:
            return place
        owner = head.new_zeros(union.num_rows).index_copy(0, union.node_at, union.node_copy)[
            head[place]
        ]
        place, count = (
            place[owner.argsort(stable=True)],
            torch.bincount(owner, minlength=len(union.graph_index)),
        )
        layout = AlignedLayout.from_counts(count, union.align, spare=1)
        rank = torch.arange(len(place), device=place.device) - (
            count.cumsum(0) - count
        ).repeat_interleave(count)
        filling = (hop == beyond).nonzero()[-1]
        return filling.repeat(layout.size).index_copy(
            0, layout.start.repeat_interleave(count) + rank, place
        )


def arriving_shares(graphs: ComputationGraphs, rounds: int) -> list[float]:
    """The share of the messages of each round that can arrive, counting a self-loop for every
    node.
    """
    owner = torch.repeat_interleave(graphs.node_ptr[:-1], graphs.edge_sizes)
    head = graphs.hop[graphs.edge_index[1] + owner]
    hop = torch.cat([head, graphs.hop])
    return [
        float((hop <= left).double().mean()) if len(hop) else 1.0
        for left in reversed(range(rounds))
    ]


def _select_messages(value: Any, at: Tensor, count: int) -> Any:
    """The entries at ``at`` of an input per message; any other input unchanged."""
    return (
        value.index_select(0, at)
        if isinstance(value, Tensor) and value.dim() and value.size(0) == count
        else value
    )


@contextmanager
def prune_messages(net: Module, reach: MessagePruner | None) -> Iterator[None]:
    """Make the layers of ``net`` send no messages that cannot arrive; None changes nothing."""
    with ExitStack() as stack:
        if reach is not None:
            for layer in message_layers(net):
                stack.callback(layer.register_propagate_forward_pre_hook(reach.cut).remove)
        yield
