"""Normalised edges, worked out once for each union that a network is run on.

PyG's GCNConv turns ``edge_index`` into normalised edges before it sends messages, in every layer and every pass. The result
depends on nothing but the edges, their weights, the number of nodes and three options, so the layers of one network, and the
many passes of one optimisation, share it here. Shared is only what was made from the very same tensors, unchanged since, and
without a gradient: never what was made from equal ones. The numbers are the layer's own: its attributes ``cached`` and
``_cached_edge_index`` carry them in and out of its forward pass, and are put back after each.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import GCNConv

Made = tuple[Tensor, Tensor]  #: normalised edges and their weights


@dataclass
class Normalised:
    """What was made of the last edges seen; ``source`` holds those tensors, so that no other can take their place."""

    source: list[Any] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    made: dict[tuple[Any, ...], Made] = field(default_factory=dict)

    def before(self, layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Hand the layer what another layer, or another pass, has made of the same tensors."""
        found = dict(zip(("x", "edge_index", "edge_weight"), args, strict=False)) | kwargs
        source = [found.get("edge_index"), found.get("edge_weight")]
        if not isinstance(found.get("x"), Tensor) or not all(can_be_shared(item) for item in source):
            return
        self.remember(source)
        layer.cached = True  # type: ignore[assignment]
        layer._cached_edge_index = self.made.get(self.key(layer, found["x"]))  # type: ignore[assignment]

    def after(self, layer: Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        """Keep what the layer has made."""
        if layer.cached:
            x = args[0] if args else kwargs["x"]
            self.made[self.key(layer, x)] = layer._cached_edge_index  # type: ignore[assignment]
        without_cache(layer)

    def remember(self, source: list[Any]) -> None:
        """Forget what was made of other tensors."""
        written = [item._version for item in source if item is not None]
        if not self.source or any(new is not old for new, old in zip(source, self.source, strict=True)) or written != self.written:
            self.source, self.written, self.made = source, written, {}

    @staticmethod
    def key(layer: Any, x: Tensor) -> tuple[Any, ...]:
        """What else the normalised edges depend on."""
        return x.size(layer.node_dim), x.dtype, layer.improved, layer.add_self_loops, layer.flow


def can_be_shared(item: Any) -> bool:
    """Whether a tensor (or the lack of one) stays what it is as long as its version does, and takes no gradient."""
    return item is None or (isinstance(item, Tensor) and not item.requires_grad and not item.is_inference())


def without_cache(layer: Module) -> None:
    """As `untouched` has set it."""
    layer.cached, layer._cached_edge_index = False, None  # type: ignore[assignment]


@contextmanager
def shared_normalisation(net: Module, memo: Normalised) -> Iterator[None]:
    """Let the GCNConv layers of ``net``, whose caches are off, share their normalised edges through ``memo``."""
    layers = [layer for layer in net.modules() if type(layer) is GCNConv and layer.normalize and not layer.cached]
    with ExitStack() as stack:
        for layer in layers:
            stack.callback(without_cache, layer)
            stack.callback(layer.register_forward_pre_hook(memo.before, with_kwargs=True).remove)
            stack.callback(layer.register_forward_hook(memo.after, with_kwargs=True).remove)
        yield
