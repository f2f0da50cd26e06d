"""The receptive field of a network: depth and direction of its messages, and the halo its layers
need.

Each call of `propagate` moves information by one hop. So K of SGConv, APPNP and TAGConv, K - 1 of
ChebConv, num_layers of GatedGraphConv and layers that are called twice count by themselves.
Parallel layers do not add up: the depth is the longest chain of propagations, which is tracked from
operation to operation. It does not depend on weights and features, and passes places where
gradients end (frozen layers under `no_grad`, ``h.detach()``, ``x > 0``). Only operations outside
torch, such as a step in NumPy, break the chain. Afterwards the number of hops is verified on real
targets.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch_geometric.nn import MessagePassing

from graphgauge.subgraphs.adjacency import is_same_up_to_loops
from graphgauge.subgraphs.computation_graph import HALOS

#: layers of torch_geometric.nn whose messages depend on their two ends and on the receiver's
#: incoming messages only
_LOCAL_LAYERS = set(
    """AGNNConv CGConv EdgeConv FeaStConv FiLMConv GATConv GATv2Conv GENConv GINConv GINEConv
    GatedGraphConv GeneralConv GraphConv LEConv MFConv NNConv PNAConv RGATConv RGCNConv
    ResGatedGraphConv SAGEConv SuperGATConv TransformerConv""".split()
)
#: layers of torch_geometric.nn that divide a message by its sender's in-degree, unless told not to
#: normalise
_DEGREE_NORMALISED_LAYERS = set(
    (
        "APPNP ARMAConv ClusterGCNConv FAConv GCN2Conv GCNConv LGConv MixHopConv SGConv SSGConv "
        "TAGConv"
    ).split()
)


class _DepthTracker(TorchDispatchMode):
    """Tracks the depth of tensors: the output of an operation is as deep as its deepest input.

    Depths belong to memory, which views share and in-place operations write to. ``held`` keeps that
    memory from being reused.
    """

    def __init__(self) -> None:
        super().__init__()
        self.depth: dict[int, int] = {}
        self.held: list[Tensor] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the operation and note the depth of its outputs."""
        out = func(*args, **(kwargs or {}))
        deepest = self.deepest((args, kwargs))
        for tensor in _list_tensors(out):
            self.set(tensor, max(deepest, self.of(tensor)))
        return out

    def deepest(self, values: Any) -> int:
        """The largest depth of the tensors in nested values."""
        return max(map(self.of, _list_tensors(values)), default=0)

    def of(self, tensor: Tensor) -> int:
        """The number of propagations behind a tensor."""
        return self.depth.get(_memory_id(tensor), 0)

    def set(self, tensor: Tensor, depth: int) -> None:
        """Note the number of propagations behind a tensor."""
        self.depth[_memory_id(tensor)] = depth
        self.held.append(tensor)

    def further(self, values: Any) -> Any:
        """Copies of the values, one propagation deeper; later layers may write into them in
        place.
        """
        own = tree_map_only(Tensor, torch.clone, values)
        for tensor in _list_tensors(own):
            self.set(tensor, self.of(tensor) + 1)
        return own


def _list_tensors(values: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists and dictionaries."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def _memory_id(tensor: Tensor) -> int:
    """An identifier of the memory of a tensor, also under `vmap`; of the tensor itself if it is
    sparse.
    """
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else id(tensor)


_OPPOSITE_FLOW = {"source_to_target": "target_to_source", "target_to_source": "source_to_target"}


@dataclass(frozen=True)
class MessageTrace:
    """The messages of one forward pass.

    Args:
        calls: How often `propagate` ran.
        flows: The directions of the messages along the stored edges.
        chain: Length of the longest chain of propagations.
    """

    calls: int
    flows: frozenset[str]
    chain: int

    @property
    def flow(self) -> str:
        """The direction of all messages along the stored edges, or "both"."""
        return (
            next(iter(self.flows))
            if len(self.flows) == 1
            else "both"
            if self.flows
            else "source_to_target"
        )


def message_layers(net: Module) -> list[MessagePassing]:
    """The message-passing layers of a network."""
    return [module for module in net.modules() if isinstance(module, MessagePassing)]


def trace_messages(net: Module, run: Callable[[], Tensor], edge_index: Tensor) -> MessageTrace:
    """Run the network once and observe its message-passing layers.

    Args:
        net: The network, whose layers are observed.
        run: Calls the network once on the graph and returns its output.
        edge_index: The stored edges of the graph, with which the edges that each layer gets are
            compared to find the direction of its messages.  (2, E)
    """
    flows: list[str] = []
    depths = _DepthTracker()

    def note(layer: MessagePassing, inputs: tuple[Any, ...]) -> None:
        flows.append(_message_direction(layer.flow, edge_index, inputs[0]))

    def mark(layer: MessagePassing, inputs: tuple[Any, ...], out: Any) -> Any:
        return depths.further(out)

    with ExitStack() as stack, torch.no_grad():
        for layer in message_layers(net):
            stack.callback(layer.register_propagate_forward_pre_hook(note).remove)
            stack.callback(layer.register_propagate_forward_hook(mark).remove)
        with depths:
            out = run()
    return MessageTrace(len(flows), frozenset(flows), depths.of(out) or len(flows))


def _message_direction(flow: str, edge_index: Tensor, used: Any) -> str:
    """The direction of messages along the stored edges, if a layer with ``flow`` runs on the edges
    ``used``.
    """
    if not isinstance(used, Tensor) or used.layout != torch.strided:
        return "both"
    for flipped in (False, True):
        edges = edge_index.flip(0) if flipped else edge_index
        if is_same_up_to_loops(used, edges) or is_same_up_to_loops(
            used, edges[:, edges[0] != edges[1]]
        ):
            return _OPPOSITE_FLOW[flow] if flipped else flow
    size = int(max(edge_index.max(), used.max())) + 1 if edge_index.numel() and used.numel() else 1
    stored, links = _pair_keys(edge_index, size), used[:, used[0] != used[1]]
    if bool(torch.isin(_pair_keys(links, size), stored).all()):
        return flow
    return (
        _OPPOSITE_FLOW[flow]
        if bool(torch.isin(_pair_keys(links.flip(0), size), stored).all())
        else "both"
    )


def _pair_keys(edge_index: Tensor, size: int) -> Tensor:
    """One integer for the two ends of each edge.  (E,)"""
    return edge_index[0] * size + edge_index[1]


def needed_halo(net: Module) -> int:
    """The smallest halo that the network's layers are known to need; unknown layers need edges in
    and out.
    """
    layers = message_layers(net)
    return max((layer_halo(layer) for layer in layers), default=HALOS.index("in and out"))


def layer_halo(layer: MessagePassing) -> int:
    """The halo that one layer needs, by its exact class, since a subclass may normalise in its own
    way.
    """
    name, is_ours = type(layer).__name__, type(layer).__module__.startswith("torch_geometric.nn.")
    if is_ours and (
        name in _LOCAL_LAYERS
        or (name in _DEGREE_NORMALISED_LAYERS and getattr(layer, "normalize", True) is False)
    ):
        return HALOS.index("none")
    return (
        HALOS.index("in")
        if is_ours and name in _DEGREE_NORMALISED_LAYERS
        else HALOS.index("in and out")
    )
