"""Normalised edges, and edges with self-loops, computed once for each union of copies.

PyG's GCNConv normalises ``edge_index`` before it sends messages, in every layer and every pass. The
result depends only on the edges, their weights, the number of nodes and three options. So the
layers of one network, and the many passes of one optimisation, share it here. Only results from the
very same tensors are shared, unchanged since and without a gradient, never results from equal
tensors. The numbers are the layer's own: its attributes ``cached`` and ``_cached_edge_index`` carry
them in and out of its forward pass, and are restored afterwards.

GATConv and GATv2Conv drop stored self-loops and add one for each node, in every pass. They are
given edges for which PyG's own functions have done so, with ``add_self_loops`` off during the call.
(On a GPU, looking for stored self-loops means waiting.)

If edges that set degrees were left out (see `EdgeWeights`), normalised edges are prepared from
those of the whole graph, and a layer that would make its own raises an error.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops, remove_self_loops

from graphgauge.core import BadModel
from graphgauge.subgraphs import EdgeWeights, NormalisationOptions

_EdgesAndValues = tuple[Tensor, Tensor | None]  #: edges, and their weights or attributes


@dataclass
class _EdgeMemo:
    """Results computed from the edges seen last; ``source`` holds these tensors, so that no other
    tensor can take their memory.
    """

    source: list[Any] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    made: dict[tuple[Any, ...], _EdgesAndValues] = field(default_factory=dict)

    def remember(self, source: list[Any]) -> None:
        """Forget results that were computed from other tensors."""
        written = [item._version for item in source if item is not None]
        if (
            not self.source
            or any(new is not old for new, old in zip(source, self.source, strict=True))
            or written != self.written
        ):
            self.source, self.written, self.made = source, written, {}


@dataclass
class NormalisedEdges(_EdgeMemo):
    """Edges and weights as GCN layers use them."""

    def before(self, layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Give the layer what another layer, or another pass, computed from the same tensors."""
        found = dict(zip(("x", "edge_index", "edge_weight"), args, strict=False)) | kwargs
        source = [found.get("edge_index"), found.get("edge_weight")]
        if not isinstance(found.get("x"), Tensor) or not all(
            _is_shareable(item) for item in source
        ):
            return
        self.remember(source)
        layer.cached = True  # type: ignore[assignment]
        made = self.made.get(self.key(layer, found["x"]))
        layer._cached_edge_index = made  # type: ignore[assignment]

    def after(self, layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        """Store what the layer computed."""
        if layer.cached:
            x = args[0] if args else kwargs["x"]
            self.made[self.key(layer, x)] = layer._cached_edge_index  # type: ignore[assignment]
        _switch_off_cache(layer)

    @staticmethod
    def key(layer: Any, x: Tensor) -> tuple[Any, ...]:
        """What the normalised edges depend on besides the edges."""
        return x.size(layer.node_dim), x.dtype, *_normalisation_options(layer)


class _UnpreparedEdges(BadModel):
    """A layer would have to normalise edges of which some were left out."""


class _PreparedEdges(NormalisedEdges):
    """Prepared normalised edges of a union in which edges were left out; no others may be
    computed.
    """

    def before(self, layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Give the layer what was prepared."""
        super().before(layer, args, kwargs)
        if layer._cached_edge_index is None:
            raise _UnpreparedEdges(
                f"{type(layer).__name__} was given other edges than the graph's, unlike when the "
                "network was first tried. "
                "Where a network changes its edges only sometimes, give it the changed ones in "
                "data."
            )


def compute_edge_weights(net: Module, edge_index: Tensor, x: Tensor) -> EdgeWeights:
    """The normalised weights of a whole graph, by PyG's own function, for edges without weights.

    Args:
        net: The network. Its GCN layers that normalise edges set which options are needed.
        edge_index: Edges of the whole graph.  (2, E)
        x: Features of the nodes, of which only the number N and the type of float matter.  (N, F)

    Returns:
        Weights of the edges (E,) and of the added self-loops (N,), for each set of options.
    """
    is_link, found = edge_index[0] != edge_index[1], EdgeWeights({}, {})
    for way in {
        _normalisation_options(layer) for layer in net.modules() if normalises_edges(layer)
    }:
        improved, adds_loops, flow = way
        _, weight = gcn_norm(edge_index, None, len(x), improved, adds_loops, flow, x.dtype)
        found.edge[way] = weight
        if adds_loops:
            found.edge[way] = x.new_ones(len(is_link)).masked_scatter(is_link, weight)
            found.loop[way] = weight[len(weight) - len(x) :]
    return found


def prepare_edges(
    weights: EdgeWeights,
    edge_index: Tensor,
    edge: Tensor,
    edge_at: Tensor,
    node: Tensor,
    node_at: Tensor,
    rows: int,
) -> _PreparedEdges:
    """Normalised edges of a union of ``rows`` nodes, from the weights of the whole graph.

    Args:
        weights: Weights of the whole graph.
        edge_index: Edges of the union, with filling.
        edge: Which edge of the whole graph each edge is.
        edge_at: Its column in ``edge_index``.
        node: Which node of the whole graph each node is.
        node_at: Its row in the union. The filling has weight 1.
        rows: Number of rows.
    """
    found = _PreparedEdges()
    found.remember([edge_index, None])
    (kept,) = (edge_index[0] != edge_index[1]).nonzero(as_tuple=True)
    every = torch.arange(rows, device=edge_index.device)
    for way, weight in weights.edge.items():
        used, value = (
            edge_index,
            weight.new_ones(edge_index.size(1)).index_copy(0, edge_at, weight[edge]),
        )
        if way in weights.loop:
            own = weight.new_ones(rows).index_copy(0, node_at, weights.loop[way][node])
            used, value = (
                torch.cat([edge_index[:, kept], every.expand(2, -1)], 1),
                torch.cat([value[kept], own]),
            )
        key = (rows, weight.dtype, *way)
        found.made[key] = used, value
    return found


def _is_shareable(item: Any) -> bool:
    """Whether a tensor (or None) stays the same as long as its version does, and takes no
    gradient.
    """
    return item is None or (
        isinstance(item, Tensor) and not item.requires_grad and not item.is_inference()
    )


def _normalisation_options(layer: Any) -> NormalisationOptions:
    """How a GCN layer normalises."""
    return layer.improved, layer.add_self_loops, layer.flow


def normalises_edges(layer: Any) -> bool:
    """Whether a layer normalises edges."""
    return type(layer) is GCNConv and layer.normalize


def _switch_off_cache(layer: Module) -> None:
    """Switch the cache of a layer off, as other layers do."""
    layer.cached, layer._cached_edge_index = False, None  # type: ignore[assignment]


# --- self-loops -----------------------------------------------------------------------------------

_ATTENTION_LAYERS = (GATConv, GATv2Conv)


@dataclass
class SelfLoopEdges(_EdgeMemo):
    """Edges, and their attributes, with the self-loops that attention layers add."""

    def before(
        self, layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Give the layer edges that have their self-loops already, and tell it to add none."""
        found = dict(zip(("x", "edge_index", "edge_attr"), args, strict=False)) | kwargs
        source = [found.get("edge_index"), found.get("edge_attr")]
        is_plain = (
            isinstance(found.get("x"), Tensor)
            and isinstance(source[0], Tensor)
            and len(args) <= 3
            and not found.get("size")
        )
        if not is_plain or not all(_is_shareable(item) for item in source):
            return None
        self.remember(source)
        key = (found["x"].size(0), str(layer.fill_value))
        if key not in self.made:
            bare = remove_self_loops(*source)
            self.made[key] = add_self_loops(
                *bare, fill_value=layer.fill_value, num_nodes=found["x"].size(0)
            )
        layer.add_self_loops = False  # type: ignore[assignment]
        edge_index, edge_attr = self.made[key]
        rest = {
            name: value
            for name, value in kwargs.items()
            if name not in ("x", "edge_index", "edge_attr")
        }
        return (found["x"], edge_index, edge_attr), rest


def _restore_self_loops(layer: Module, *_: Any) -> None:
    """Let the layer add self-loops again."""
    layer.add_self_loops = True  # type: ignore[assignment]


@contextmanager
def share_self_loops(net: Module, memo: SelfLoopEdges) -> Iterator[None]:
    """Let the attention layers of ``net`` share their edges with self-loops through ``memo``."""
    layers = [
        layer
        for layer in net.modules()
        if type(layer) in _ATTENTION_LAYERS and layer.add_self_loops
    ]
    with ExitStack() as stack:
        for layer in layers:
            stack.callback(_restore_self_loops, layer)
            stack.callback(layer.register_forward_pre_hook(memo.before, with_kwargs=True).remove)
            stack.callback(layer.register_forward_hook(_restore_self_loops).remove)
        yield


# --- normalised edges -----------------------------------------------------------------------------


@contextmanager
def share_normalisation(net: Module, memo: NormalisedEdges) -> Iterator[None]:
    """Let the GCNConv layers of ``net``, whose caches are off, share their normalised edges through
    ``memo``.
    """
    layers = [layer for layer in net.modules() if normalises_edges(layer) and not layer.cached]
    with ExitStack() as stack:
        for layer in layers:
            stack.callback(_switch_off_cache, layer)
            stack.callback(layer.register_forward_pre_hook(memo.before, with_kwargs=True).remove)
            stack.callback(layer.register_forward_hook(memo.after, with_kwargs=True).remove)
        yield
