"""Memory of copies: what one costs, and whether a union of many fits."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from graphgauge.core import OutOfMemory
from graphgauge.execution.lazy_features import LazyFeatureTensor, materialise_features

_ALLOCATION_FAILED = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "cannot allocate memory",
)


@dataclass(frozen=True)
class CopyCost:
    """The bytes that one copy allocated, and its size.

    Args:
        total: Bytes.
        nodes: Number of nodes.
        edges: Number of edges.
        relevant: Number of relevant edges.
        joined: Size, in copies like this one, of the largest union that is known to take no more
            than its copies one by one.
        square: If unions take more than their copies: bytes of a union of n such copies over n * n;
            else 0.
    """

    total: int
    nodes: int
    edges: int
    relevant: int
    joined: float = 1.0
    square: float = 0.0

    @property
    def size(self) -> int:
        """Nodes, edges and relevant edges together."""
        return self.nodes + self.edges + self.relevant

    def max_copies_worst_case(self, budget: int) -> float:
        """How many such copies fit even if bytes grow with the square of the union's size from here
        on.
        """
        return (
            sqrt(budget / self.square)
            if self.square
            else sqrt(self.joined * budget / max(self.total, 1))
        )

    def allowance(self, budget: int) -> float:
        """The sum of costs that a union may have."""
        return (
            min(budget, self.total * self.max_copies_worst_case(budget)) if self.square else budget
        )

    def upper_bounds(self, nodes: Tensor, edges: Tensor, relevant: Tensor) -> Tensor:
        """An upper bound of the cost of copies of other sizes.  (K,)

        It holds for any costs a * nodes + b * edges + c * relevant with a, b, c >= 0.
        """
        sizes = zip((nodes, edges, relevant), (self.nodes, self.edges, self.relevant), strict=True)
        return self.total * torch.stack([size / max(own, 1) for size, own in sizes]).amax(0)


class AllocationCounter(TorchDispatchMode):
    """Adds up the bytes of all new tensors: an upper bound of the memory in use at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and count its outputs, unless they are views of its inputs or written
        into them.
        """
        kwargs = kwargs or {}
        if LazyFeatureTensor in types:
            with self:  # what is written out for this operation counts too
                args, kwargs = tree_map(materialise_features, (args, kwargs))
        out = func(*args, **kwargs)
        known = dict(_storage_sizes((args, *kwargs.values())))
        self.bytes += sum(size for key, size in _storage_sizes(out) if key not in known)
        return out


def _storage_sizes(value: Any) -> Iterator[tuple[Any, int]]:
    """Identity and size of the storages of an operation's tensors; layouts without storage have
    none.
    """
    if isinstance(value, Tensor) and value.layout == torch.strided:
        storage = value.untyped_storage()
        yield storage._cdata, storage.nbytes()
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _storage_sizes(item)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a GPU or a CPU."""
    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return not isinstance(error, OutOfMemory)
    return isinstance(error, RuntimeError) and any(
        words in str(error).lower() for words in _ALLOCATION_FAILED
    )


def release_memory() -> None:
    """Release the memory that the failed attempt held."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
