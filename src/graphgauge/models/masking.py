"""Multiplying the messages of single edges by a factor, in every message-passing layer of a network.

With factor 0 an edge is silenced while degrees and attention stay as they were (``edge_removal="mask"``).
Layers may drop stored self-loops and append their own before they send messages. Which message belongs to which edge is
read off the edges that each layer really uses, never guessed from their number (where every node stores a self-loop, the
numbers agree and the order does not). Messages of self-loops keep their strength.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import MessagePassing

from graphgauge.core.errors import BadModel

#: aggregations under which a message times 0 adds nothing
FAITHFUL_AGGREGATIONS = ("sum", "add", "mean", "SumAggregation()", "MeanAggregation()")


@contextmanager
def masked_messages(net: Module, edge_index: Tensor, factor: Tensor | None, loop_factor: float = 1.0) -> Iterator[None]:
    """Multiply the messages of edge e by ``factor[e]`` (E,), and those of self-loops that layers append by ``loop_factor``."""
    if factor is None:
        yield
        return
    with ExitStack() as stack:
        for layer in message_layers(net):
            mask = LayerMask(layer, edge_index, factor, loop_factor)
            stack.callback(layer.register_propagate_forward_pre_hook(mask.see_edges).remove)
            stack.callback(layer.register_message_forward_hook(mask.scale).remove)
        yield


def message_layers(net: Module) -> list[MessagePassing]:
    """The message-passing layers of a network."""
    return [module for module in net.modules() if isinstance(module, MessagePassing)]


class LayerMask:
    """The factors of one layer, aligned with the edges of its running `propagate`."""

    def __init__(self, layer: MessagePassing, edge_index: Tensor, factor: Tensor, loop_factor: float) -> None:
        self.name, self.edge_index, self.factor, self.loop_factor = (
            type(layer).__name__,
            edge_index,
            factor,
            loop_factor,
        )
        self.aligned = factor

    def see_edges(self, layer: MessagePassing, inputs: tuple[Any, ...]) -> None:
        """Before `propagate`: align the factors with its edges."""
        self.aligned = aligned_factor(self.name, self.edge_index, self.factor, self.loop_factor, inputs[0])

    def scale(self, layer: MessagePassing, inputs: tuple[Any, ...], message: Tensor) -> Tensor:
        """After `message`: multiply."""
        shape = [1] * message.dim()
        shape[layer.node_dim] = -1
        return message * self.aligned.to(message.dtype).view(shape)


def aligned_factor(layer: str, edge_index: Tensor, factor: Tensor, loop_factor: float, used: Any) -> Tensor:
    """Factors for the edges ``used`` by a layer: the graph's (or these turned around; or without loops), then new self-loops."""
    if isinstance(used, Tensor) and used.layout == torch.strided:
        is_link = edge_index[0] != edge_index[1]
        for kept in (torch.ones_like(is_link), is_link):
            edges = edge_index[:, kept]
            if same_edges(used, edges) or same_edges(used, edges.flip(0)):
                return with_loops(factor[kept], used, loop_factor)
    raise BadModel(
        f"edges cannot be masked in {layer}: it sends its messages along other edges than the graph's. Use edge_removal='drop'."
    )


def same_edges(used: Tensor, edges: Tensor) -> bool:
    """Whether ``used`` is ``edges`` followed by nothing but self-loops."""
    count = edges.size(1)
    if used.size(1) < count or not torch.equal(used[:, :count], edges):
        return False
    return bool((used[0, count:] == used[1, count:]).all())


def with_loops(factor: Tensor, used: Tensor, loop_factor: float) -> Tensor:
    """Factors followed by those of the appended self-loops."""
    return torch.cat([factor, factor.new_full((used.size(1) - len(factor),), loop_factor)])


def doubtful_aggregations(net: Module) -> list[str]:
    """Layers under whose aggregation a silenced message can still win (max), or that aggregate in a way of their own."""
    return sorted({f"{type(layer).__name__}(aggr={layer.aggr!r})" for layer in message_layers(net) if not is_faithful(layer)})


def is_faithful(layer: MessagePassing) -> bool:
    """Whether a layer sums or averages its messages by PyG's own routine."""
    return layer.aggr in FAITHFUL_AGGREGATIONS and type(layer).aggregate is MessagePassing.aggregate
