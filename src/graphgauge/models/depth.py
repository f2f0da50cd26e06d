"""How far a network looks: its message-passing depth, the direction of its messages, and the halo its layers need.

Each call of `propagate` moves information by one hop, so K of SGConv, APPNP and TAGConv, K - 1 of ChebConv, num_layers of
GatedGraphConv and layers that are called twice count by themselves. Layers side by side do not add up: what counts is the
longest chain of propagations in the graph that autograd records, which is there whatever the weights and features are.
That gradients of features come no further is then verified on real targets.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import MessagePassing

from graphgauge.models.computation import HALOS
from graphgauge.models.masking import message_layers, same_edges
from graphgauge.models.union import Union

#: layers of torch_geometric.nn whose messages depend on their two ends and on the receiver's incoming messages only
LOCAL = set(
    """AGNNConv CGConv EdgeConv FeaStConv FiLMConv GATConv GATv2Conv GENConv GINConv GINEConv GatedGraphConv GeneralConv
    GraphConv LEConv MFConv NNConv PNAConv RGATConv RGCNConv ResGatedGraphConv SAGEConv SuperGATConv TransformerConv""".split()
)
#: layers of torch_geometric.nn that divide a message by its sender's in-degree, unless told not to normalise
DEGREE_NORMALISED = set("APPNP ARMAConv ClusterGCNConv FAConv GCN2Conv GCNConv LGConv MixHopConv SGConv SSGConv TAGConv".split())


class Hop(torch.autograd.Function):
    """Does nothing, but leaves a mark in autograd's graph behind each propagation."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        """The same values, in memory of their own: layers may go on in place."""
        return values.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """The same gradient."""
        return grads[0]


TURNED = {"source_to_target": "target_to_source", "target_to_source": "source_to_target"}


@dataclass(frozen=True)
class Trace:
    """What one forward pass showed: how often `propagate` ran, in which directions, and the longest chain of runs."""

    calls: int
    flows: frozenset[str]
    chain: int

    @property
    def flow(self) -> str:
        """The direction of all messages along the stored edges, or "both"."""
        return next(iter(self.flows)) if len(self.flows) == 1 else "both" if self.flows else "source_to_target"


def trace(net: Module, run: Callable[[], Tensor], edge_index: Tensor) -> Trace:
    """Run the network once, recording gradients, on a graph with ``edge_index`` and watch its message-passing layers."""
    flows: list[str] = []

    def note(layer: MessagePassing, inputs: tuple[Any, ...]) -> None:
        flows.append(direction(layer.flow, edge_index, inputs[0]))

    def mark(layer: MessagePassing, inputs: tuple[Any, ...], out: Any) -> Any:
        return Hop.apply(out) if isinstance(out, Tensor) and out.requires_grad else out

    with ExitStack() as stack, torch.enable_grad():
        for layer in message_layers(net):
            stack.callback(layer.register_propagate_forward_pre_hook(note).remove)
            stack.callback(layer.register_propagate_forward_hook(mark).remove)
        out = run()
    chain = longest_chain(out.grad_fn) if out.grad_fn is not None else 0
    return Trace(len(flows), frozenset(flows), chain or len(flows))


def longest_chain(root: Any) -> int:
    """The most `Hop` marks on any way from ``root`` back through autograd's graph."""
    depth: dict[Any, int] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        parents = [parent for parent, _ in node.next_functions if parent is not None]
        waiting = [parent for parent in parents if parent not in depth]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        depth[node] = max((depth[parent] for parent in parents), default=0) + ("HopBackward" in node.name())
    return depth[root]


def direction(flow: str, edge_index: Tensor, used: Any) -> str:
    """Which way messages go along the stored edges when a layer with ``flow`` runs on the edges ``used``."""
    if not isinstance(used, Tensor) or used.layout != torch.strided:
        return "both"
    for flipped in (False, True):
        edges = edge_index.flip(0) if flipped else edge_index
        if same_edges(used, edges) or same_edges(used, edges[:, edges[0] != edges[1]]):
            return TURNED[flow] if flipped else flow
    size = int(max(edge_index.max(), used.max())) + 1 if edge_index.numel() and used.numel() else 1
    stored, links = pair_keys(edge_index, size), used[:, used[0] != used[1]]
    if bool(torch.isin(pair_keys(links, size), stored).all()):
        return flow
    return TURNED[flow] if bool(torch.isin(pair_keys(links.flip(0), size), stored).all()) else "both"


def pair_keys(edge_index: Tensor, size: int) -> Tensor:
    """One number for each edge's pair of ends.  (E,)"""
    return edge_index[0] * size + edge_index[1]


def needed_halo(net: Module) -> int:
    """The smallest halo that the network's layers are known to need; unknown layers get edges in and out."""
    layers = message_layers(net)
    return max((layer_halo(layer) for layer in layers), default=HALOS.index("in and out"))


def layer_halo(layer: MessagePassing) -> int:
    """The halo of one layer, by its exact class; a subclass may normalise in its own way."""
    name, is_ours = type(layer).__name__, type(layer).__module__.startswith("torch_geometric.nn.")
    if is_ours and (name in LOCAL or (name in DEGREE_NORMALISED and getattr(layer, "normalize", True) is False)):
        return HALOS.index("none")
    return HALOS.index("in") if is_ours and name in DEGREE_NORMALISED else HALOS.index("in and out")


def gradient_by_hop(outputs: Callable[[Union], Tensor], union: Union, x: Tensor, num_rings: int) -> Tensor:
    """For each copy and each distance d: is there a node (1), and does the output's gradient reach one (2)?  (K, num_rings)

    The gradient is that of a random combination of the output's columns, since probabilities add up to a constant.
    """
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        rows = outputs(union.with_x(x))
        weight = torch.rand(rows.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(rows)
        (grad,) = torch.autograd.grad((rows * weight).sum(), x, allow_unused=True) if rows.requires_grad else (None,)
    reached = torch.ones(union.num_nodes, dtype=torch.int64, device=x.device)
    if grad is not None:
        reached += (grad[union.node_at] != 0).any(1)
    key = union.node_copy * num_rings + union.graphs.hop[union.node_row]
    seen = torch.zeros(len(union) * num_rings, dtype=torch.int64, device=x.device)
    return seen.scatter_reduce(0, key, reached, "amax").view(len(union), num_rings)


def is_reached(seen: Tensor, ring: int) -> bool | None:
    """Whether a gradient reaches any node of this ring; None if no graph has such a node.  ``seen`` (K, rings)"""
    column = seen[:, ring]
    return None if bool((column == 0).all()) else bool((column == 2).any())
