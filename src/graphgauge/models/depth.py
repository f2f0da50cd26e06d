"""How far a network looks: its message-passing depth, the direction of its messages, and the halo its layers need.

The depth is counted on a running network: each call of `propagate` moves information by one hop, so K of SGConv, APPNP and
TAGConv, K - 1 of ChebConv, num_layers of GatedGraphConv and layers that are called twice count by themselves. Layers side by
side are counted twice; the support of the gradient then shows the true, smaller depth.
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
from graphgauge.models.masking import message_layers
from graphgauge.models.union import Union

#: layers of torch_geometric.nn whose messages depend on their two ends and on the receiver's incoming messages only
LOCAL = set(
    """AGNNConv CGConv EdgeConv FeaStConv FiLMConv GATConv GATv2Conv GENConv GINConv GINEConv GatedGraphConv GeneralConv
    GraphConv LEConv MFConv NNConv PNAConv RGATConv RGCNConv ResGatedGraphConv SAGEConv SuperGATConv TransformerConv""".split()
)
#: layers of torch_geometric.nn that divide a message by its sender's in-degree, unless told not to normalise
DEGREE_NORMALISED = set("APPNP ARMAConv ClusterGCNConv FAConv GCN2Conv GCNConv LGConv MixHopConv SGConv SSGConv TAGConv".split())


@dataclass(frozen=True)
class Trace:
    """What one forward pass showed: how often `propagate` ran, and in which directions."""

    calls: int
    flows: frozenset[str]

    @property
    def flow(self) -> str:
        """The direction of all messages, or "both"."""
        return next(iter(self.flows)) if len(self.flows) == 1 else "both" if self.flows else "source_to_target"


def trace(net: Module, run: Callable[[], Any]) -> Trace:
    """Run the network once and watch its message-passing layers."""
    flows: list[str] = []

    def note(layer: MessagePassing, inputs: tuple[Any, ...]) -> None:
        flows.append(layer.flow)

    with ExitStack() as stack:
        for layer in message_layers(net):
            stack.callback(layer.register_propagate_forward_pre_hook(note).remove)
        run()
    return Trace(len(flows), frozenset(flows))


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


def depth_from(seen: Tensor, counted: int, least_evidence: int) -> int:
    """The depth that gradients show: ``counted``, or less if enough graphs have nodes further out and none was reached.

    ``seen`` (K, rings) as of `gradient_by_hop`.
    """
    reached = (seen == 2).any(0).nonzero()
    furthest = int(reached.max()) if len(reached) else counted
    silent = int((seen[:, furthest + 1 : counted + 1] == 1).any(1).sum())
    return furthest if furthest < counted and silent >= least_evidence else counted
