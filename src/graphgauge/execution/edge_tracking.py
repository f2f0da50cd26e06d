"""Track which stored edge each column of an edge list comes from, through a network's operations.

Some layers do not run on all edges of the graph: RGCNConv runs on the edges of one relation after
another, and layers behind TopKPooling on the edges between the remaining nodes, with new numbers.
Such lists are made of ``edge_index`` by selecting, reordering and renumbering columns. The
operations show where the columns come from, whoever wrote the network:

    selecting       edge_index[:, kept], row[kept], index_select, slices     the selected columns
    reordering      edge_index[:, order], flip                               in another order
    renumbering     number[row], row + offset                                the same columns
    joining         stack, cat, with self-loops for example                  -1 for added columns

The result of any other operation (a product of adjacency matrices, a search for neighbours) belongs
to no edge.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

#: along which dimension the edges lie, and the number of each; -1: none of the graph's
_ColumnOrigin = tuple[int, Tensor]
_OriginLookup = Callable[[Any], _ColumnOrigin | None]

_aten = torch.ops.aten


class EdgeTracker(TorchDispatchMode):
    """While active, tracks the columns of ``edge_index`` (2, E) through all operations."""

    def __init__(self, edge_index: Tensor) -> None:
        super().__init__()
        self.origins: dict[tuple[Any, ...], _ColumnOrigin] = {}
        self.held: list[
            Tensor
        ] = []  # so that no other tensor gets the memory of one that is followed
        self.note(edge_index, (1, torch.arange(edge_index.size(1), device=edge_index.device)))

    def columns(self, edges: Any) -> Tensor | None:
        """The number of the stored edge behind each column, -1 if there is none.  (2, M) -> (M,)

        None if nothing in ``edges`` comes from the graph's edges.
        """
        origin = self.origin(edges)
        return None if origin is None or edges.dim() != 2 or origin[0] != 1 else origin[1]

    def origin(self, value: Any) -> _ColumnOrigin | None:
        """The origin of a tensor's entries; None if it is unknown."""
        return self.origins.get(_memory_location(value)) if _is_plain_tensor(value) else None

    def note(self, value: Any, origin: _ColumnOrigin | None) -> None:
        """Remember the origin of a tensor's entries."""
        if (
            origin is not None
            and _is_plain_tensor(value)
            and value.size(origin[0]) == len(origin[1])
        ):
            self.origins[_memory_location(value)] = origin
            self.held.append(value)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the operation and note the origin of its outputs."""
        out = func(*args, **(kwargs or {}))
        if func._schema.is_mutable:
            self.forget(args)
        rule = _ORIGIN_RULES.get(func.overloadpacket)
        if rule is not None:
            origin = rule(self.origin, *args, **(kwargs or {}))
            for part in out if isinstance(out, (tuple, list)) else [out]:
                self.note(part, origin)
        return out

    def forget(self, args: tuple[Any, ...]) -> None:
        """Forget the origin of tensors that are written into."""
        for value in tree_leaves(args[:1]):
            if _is_plain_tensor(value):
                memory = value.untyped_storage()._cdata
                self.origins = {
                    place: origin for place, origin in self.origins.items() if place[0] != memory
                }


def _is_plain_tensor(value: Any) -> bool:
    """Whether something is a tensor with memory of its own."""
    return isinstance(value, Tensor) and value.layout == torch.strided and type(value) is Tensor


def _memory_location(value: Tensor) -> tuple[Any, ...]:
    """The location of a tensor's entries in memory; two views of the same entries have the same
    location.
    """
    return (
        value.untyped_storage()._cdata,
        value.storage_offset(),
        tuple(value.shape),
        tuple(value.stride()),
    )


# --- where the entries of a result come from ------------------------------------------------------


def _index_origin(
    of: _OriginLookup, values: Tensor, indices: list[Tensor | None]
) -> _ColumnOrigin | None:
    origin, used = (
        of(values),
        [(dim, index) for dim, index in enumerate(indices) if index is not None],
    )
    if len(used) != 1:
        return None
    ((dim, index),) = used
    if origin is None:  # looking up nodes: the result has a row for each index
        return of(index) if dim == 0 and index.dtype != torch.bool else None
    if index.dim() != 1:
        return None
    return (origin[0], origin[1][index]) if dim == origin[0] else origin


def _index_select_origin(
    of: _OriginLookup, values: Tensor, dim: int, index: Tensor
) -> _ColumnOrigin | None:
    return _index_origin(of, values, [*[None] * (dim % values.dim()), index])


def _masked_select_origin(of: _OriginLookup, values: Tensor, mask: Tensor) -> _ColumnOrigin | None:
    return (
        _index_origin(of, values, [mask])
        if values.shape == mask.shape and values.dim() == 1
        else None
    )


def _select_origin(of: _OriginLookup, values: Tensor, dim: int, index: int) -> _ColumnOrigin | None:
    return _unbind_origin(of, values, dim)


def _unbind_origin(of: _OriginLookup, values: Tensor, dim: int = 0) -> _ColumnOrigin | None:
    origin, dim = of(values), dim % values.dim()
    return (
        None if origin is None or origin[0] == dim else (origin[0] - (dim < origin[0]), origin[1])
    )


def _slice_origin(
    of: _OriginLookup,
    values: Tensor,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
) -> _ColumnOrigin | None:
    origin = of(values)
    if origin is None or origin[0] != dim % values.dim():
        return origin
    return origin[0], origin[1][slice(start, end, step)]


def _flip_origin(of: _OriginLookup, values: Tensor, dims: list[int]) -> _ColumnOrigin | None:
    origin = of(values)
    is_turned = origin is not None and origin[0] in [dim % values.dim() for dim in dims]
    return (origin[0], origin[1].flip(0)) if origin is not None and is_turned else origin


def _transpose_origin(
    of: _OriginLookup, values: Tensor, first: int = 0, second: int = 1
) -> _ColumnOrigin | None:
    origin, dims = of(values), list(range(values.dim()))
    if origin is None or values.dim() < 2:
        return origin
    dims[first], dims[second] = dims[second], dims[first]
    return dims.index(origin[0]), origin[1]


def _stack_origin(of: _OriginLookup, parts: list[Tensor], dim: int = 0) -> _ColumnOrigin | None:
    origin = _common_origin([of(part) for part in parts])
    return (
        None
        if origin is None
        else (origin[0] + (dim % (parts[0].dim() + 1) <= origin[0]), origin[1])
    )


def _cat_origin(of: _OriginLookup, parts: list[Tensor], dim: int = 0) -> _ColumnOrigin | None:
    origins = [of(part) for part in parts]
    known = [origin for origin in origins if origin is not None]
    dim = dim % parts[0].dim()
    if not known or any(origin[0] != dim for origin in known):
        return _common_origin(origins)
    none = known[0][1]
    pairs = zip(parts, origins, strict=True)
    return dim, torch.cat(
        [
            none.new_full((part.size(dim),), -1) if origin is None else origin[1]
            for part, origin in pairs
        ]
    )


def _elementwise_origin(of: _OriginLookup, *values: Any, **_: Any) -> _ColumnOrigin | None:
    """The origin of an elementwise result: that of its operands of the same shape, if all agree."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    if not tensors or any(tensor.dim() > tensors[0].dim() for tensor in tensors):
        return None
    origins = [of(tensor) for tensor in tensors]
    return _common_origin([origin for origin in origins if origin is not None])


def _view_origin(
    of: _OriginLookup, values: Tensor, size: list[int], *_: Any, **__: Any
) -> _ColumnOrigin | None:
    keeps_shape = len(size) == values.dim() and all(
        new in (old, -1) for new, old in zip(size, values.shape, strict=True)
    )
    return of(values) if keeps_shape else None


def _common_origin(origins: list[_ColumnOrigin | None]) -> _ColumnOrigin | None:
    """The origin that all have; None if they differ."""
    if not origins or origins[0] is None:
        return None
    first = origins[0]
    agree = (
        other is not None and other[0] == first[0] and torch.equal(other[1], first[1])
        for other in origins[1:]
    )
    return first if all(agree) else None


_ORIGIN_RULES: dict[Any, Callable[..., _ColumnOrigin | None]] = {
    _aten.index: _index_origin,
    _aten.index_select: _index_select_origin,
    _aten.masked_select: _masked_select_origin,
    _aten.select: _select_origin,
    _aten.unbind: _unbind_origin,
    _aten.slice: _slice_origin,
    _aten.flip: _flip_origin,
    _aten.t: _transpose_origin,
    _aten.transpose: _transpose_origin,
    _aten.stack: _stack_origin,
    _aten.cat: _cat_origin,
    _aten.view: _view_origin,
    _aten.reshape: _view_origin,
    _aten._unsafe_view: _view_origin,
    _aten.expand: _view_origin,
    **dict.fromkeys(
        (
            _aten.clone,
            _aten.detach,
            _aten.alias,
            _aten._to_copy,
            _aten.contiguous,
            _aten.add,
            _aten.sub,
            _aten.mul,
        ),
        _elementwise_origin,
    ),
}
