"""Row expressions: what a network does to whole rows of features before it maps them linearly.

GCN maps features linearly and then sends messages. GraphSAGE, GIN, GraphConv, ChebConv, SGConv and
APPNP send messages first: they select rows, multiply each by a number, and add rows up. Such steps
are linear in the rows, so they commute with the linear map that follows,

    (P x) W' + b = P (x W') + b        P: selections, multiples and sums of rows

The left side has F columns in every message, the right side as many as W has rows. With 3,703
features and 32 hidden units that is a hundredth. So the steps are not carried out but written down,
as an expression over the features. When its linear map is asked for, the features are mapped first
and the steps are made with the result. Any other operation carries the steps out with all columns,
as the network asked.

The order of sums differs from the network's own. Before expressions are used for a network, a probe
tests that its outputs stay the same (`models.capability_probes.find_feature_use`).
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeGuard

import torch
from torch import Tensor

from graphgauge.execution.batch_features import BatchFeatures

#: a number for all rows, or one for each (rows, 1)
RowFactor: TypeAlias = Tensor | float
#: an argument of a torch function, with features in the place of tensors that stand for them
Argument: TypeAlias = BatchFeatures | Tensor | Sequence[int] | float | None


@dataclass(frozen=True, eq=False)
class ZeroRows(BatchFeatures):
    """Rows of zeros, to which a network will add others."""

    pattern: Tensor  #: a tensor of the same type and device
    size: tuple[int, int]  #: number of rows and features

    @property
    def like(self) -> Tensor:
        """A tensor of the same type and device."""
        return self.pattern

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and features."""
        return self.size

    @property
    def written(self) -> Tensor:
        """The zeros as an ordinary tensor."""
        return self.pattern.new_zeros(self.size)

    def linear(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The bias in every row."""
        rows = self.pattern.new_zeros(self.size[0], weight.size(0))
        return rows if bias is None else rows + bias


@dataclass(frozen=True, eq=False)
class JoinedColumns(BatchFeatures):
    """Several features side by side: those of a node, and the mean of its neighbours'.

    A linear map of them is the sum of linear maps, each with its own columns of the weight.
    """

    parts: tuple[BatchFeatures, ...]

    @property
    def like(self) -> Tensor:
        """A tensor of the same type and device."""
        return self.parts[0].like

    @property
    def shape(self) -> tuple[int, int]:
        """The rows of each part, and the columns of all."""
        return self.parts[0].shape[0], sum(part.shape[1] for part in self.parts)

    @cached_property
    def written(self) -> Tensor:
        """The columns of all parts."""
        return torch.cat([part.written for part in self.parts], 1)

    def linear(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The sum of the parts' linear maps."""
        columns = weight.split([part.shape[1] for part in self.parts], 1)
        maps = zip(self.parts, columns, strict=True)
        rows = torch.stack([part.linear(own, None) for part, own in maps]).sum(0)
        return rows if bias is None else rows + bias


class RowExpression(BatchFeatures):
    """A linear function of the rows of other features."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[BatchFeatures, ...]:
        """The other features."""

    @abstractmethod
    def apply(self, *rows: Tensor) -> Tensor:
        """The function, of rows with any number of columns.  (rows, H) -> (rows, H)"""

    @property
    def like(self) -> Tensor:
        """A tensor of the same type and device."""
        return self.inputs[0].like

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and features; most functions keep both."""
        return self.inputs[0].shape

    @cached_property
    def written(self) -> Tensor:
        """The function of all columns."""
        return self.apply(*(features.written for features in self.inputs))

    def linear(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The function of the mapped features.  (H, F), (H,) -> (rows, H)"""
        rows = _project_rows(self, weight, {})
        return rows if bias is None else rows + bias


def _project_rows(features: BatchFeatures, weight: Tensor, known: dict[int, Tensor]) -> Tensor:
    """The linear map of an expression; features that come twice are mapped once."""
    if id(features) not in known:
        known[id(features)] = (
            features.apply(*(_project_rows(one, weight, known) for one in features.inputs))
            if isinstance(features, RowExpression)
            else features.linear(weight, None)
        )
    return known[id(features)]


@dataclass(frozen=True, eq=False)
class SelectedRows(RowExpression):
    """Rows ``index`` (n,) of the source, as the messages along edges are."""

    source: BatchFeatures
    index: Tensor

    @property
    def inputs(self) -> tuple[BatchFeatures, ...]:
        """The source."""
        return (self.source,)

    @property
    def shape(self) -> tuple[int, int]:
        """As many rows as the index has entries."""
        return len(self.index), self.source.shape[1]

    def apply(self, *rows: Tensor) -> Tensor:
        """Select."""
        return rows[0].index_select(0, self.index)


@dataclass(frozen=True, eq=False)
class ScaledRows(RowExpression):
    """Rows times, or divided by, one number or a number for each."""

    source: BatchFeatures
    factor: RowFactor
    divides: bool = False

    @property
    def inputs(self) -> tuple[BatchFeatures, ...]:
        """The source."""
        return (self.source,)

    def apply(self, *rows: Tensor) -> Tensor:
        """Multiply or divide."""
        return rows[0] / self.factor if self.divides else rows[0] * self.factor


@dataclass(frozen=True, eq=False)
class AddedRows(RowExpression):
    """The sum of two features of the same shape, or their difference."""

    first: BatchFeatures
    second: BatchFeatures
    subtracts: bool = False

    @property
    def inputs(self) -> tuple[BatchFeatures, ...]:
        """Both."""
        return self.first, self.second

    def apply(self, *rows: Tensor) -> Tensor:
        """Add or subtract."""
        first, second = rows
        return first - second if self.subtracts else first + second


@dataclass(frozen=True, eq=False)
class ScatteredRows(RowExpression):
    """Rows of ``base``, to each of which the rows of ``source`` with this ``index`` (n,) are
    added, as messages are to the node that receives them.
    """

    base: BatchFeatures
    source: BatchFeatures
    index: Tensor

    @property
    def inputs(self) -> tuple[BatchFeatures, ...]:
        """The source, and the base unless it is zero."""
        return (self.source,) if isinstance(self.base, ZeroRows) else (self.source, self.base)

    @property
    def shape(self) -> tuple[int, int]:
        """That of the base."""
        return self.base.shape

    def apply(self, *rows: Tensor) -> Tensor:
        """Add up, with the operation that PyG uses."""
        source = rows[0]
        base = rows[1] if len(rows) > 1 else source.new_zeros(self.shape[0], source.size(1))
        index = self.index[:, None].expand_as(source)
        return (
            base.scatter_add(0, index, source)
            if len(rows) > 1
            else base.scatter_add_(0, index, source)
        )


# --- from torch functions to expressions ----------------------------------------------------------


def express_function(name: str, args: Sequence[Argument]) -> BatchFeatures | None:
    """What a torch function of features is as an expression; None if it is none.

    Args:
        name: Name of the function, such as "index_select" or "__mul__".
        args: Its positional arguments.

    >>> from graphgauge.execution import DenseFeatures
    >>> x = DenseFeatures(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> express_function("index_select", [x, 0, torch.tensor([1, 1])]).written
    tensor([[3., 4.],
            [3., 4.]])
    >>> express_function("relu", [x]) is None
    True
    """
    build = _EXPRESSIONS.get(name)
    try:
        return None if build is None else build(*args)
    except TypeError:  # called in a way that is not known here
        return None


def join_columns(parts: Sequence[BatchFeatures], dim: int) -> BatchFeatures | None:
    """What ``torch.cat(parts, dim)`` is as features; None if it joins no columns.

    Args:
        parts: The features.
        dim: The dimension along which they are joined.
    """
    shapes = {part.shape[0] for part in parts}
    types = {part.like.dtype for part in parts}
    is_known = dim in (1, -1) and len(shapes) == 1 and len(types) == 1
    return JoinedColumns(tuple(parts)) if is_known else None


def _select_rows(x: Argument, dim: Argument, index: Argument) -> BatchFeatures | None:
    """``x.index_select(dim, index)``."""
    if isinstance(x, BatchFeatures) and dim in (0, -2) and _is_index(index):
        return SelectedRows(x, index)
    return None


def _get_item(x: Argument, index: Argument) -> BatchFeatures | None:
    """``x[index]``."""
    return _select_rows(x, 0, index)


def _multiply_rows(x: Argument, other: Argument) -> BatchFeatures | None:
    """``x * other``, in either order."""
    if not isinstance(x, BatchFeatures):
        x, other = other, x
    if isinstance(x, BatchFeatures) and (factor := _row_factor(x, other)) is not None:
        return ScaledRows(x, factor)
    return None


def _divide_rows(x: Argument, other: Argument) -> BatchFeatures | None:
    """``x / other``."""
    if isinstance(x, BatchFeatures) and (factor := _row_factor(x, other)) is not None:
        return ScaledRows(x, factor, divides=True)
    return None


def _add_rows(x: Argument, other: Argument) -> BatchFeatures | None:
    """``x + other``."""
    if isinstance(x, BatchFeatures) and _is_alike(other, x):
        return AddedRows(x, other)
    return None


def _subtract_rows(x: Argument, other: Argument) -> BatchFeatures | None:
    """``x - other``."""
    if isinstance(x, BatchFeatures) and _is_alike(other, x):
        return AddedRows(x, other, subtracts=True)
    return None


def _negate_rows(x: Argument) -> BatchFeatures | None:
    """``-x``."""
    return ScaledRows(x, -1.0) if isinstance(x, BatchFeatures) else None


def _scatter_add(
    base: Argument, dim: Argument, index: Argument, source: Argument
) -> BatchFeatures | None:
    """``base.scatter_add(dim, index, source)`` with the same index for all columns."""
    if not (isinstance(base, BatchFeatures) and isinstance(source, BatchFeatures)):
        return None
    if dim not in (0, -2) or not isinstance(index, Tensor) or index.shape != source.shape:
        return None
    return ScatteredRows(base, source, index[:, 0]) if _has_equal_columns(index) else None


def _index_add(
    base: Argument, dim: Argument, index: Argument, source: Argument
) -> BatchFeatures | None:
    """``base.index_add(dim, index, source)``."""
    if not (isinstance(base, BatchFeatures) and isinstance(source, BatchFeatures)):
        return None
    return ScatteredRows(base, source, index) if dim in (0, -2) and _is_index(index) else None


_EXPRESSIONS: dict[str, Callable[..., BatchFeatures | None]] = {
    "index_select": _select_rows,
    "__getitem__": _get_item,
    **dict.fromkeys(("mul", "__mul__", "__rmul__", "multiply", "mul_", "__imul__"), _multiply_rows),
    **dict.fromkeys(
        ("div", "__div__", "__truediv__", "true_divide", "divide", "div_"), _divide_rows
    ),
    **dict.fromkeys(("add", "__add__", "__radd__", "add_", "__iadd__"), _add_rows),
    **dict.fromkeys(("sub", "__sub__", "subtract", "sub_", "__isub__"), _subtract_rows),
    **dict.fromkeys(("neg", "__neg__", "negative"), _negate_rows),
    **dict.fromkeys(("scatter_add", "scatter_add_"), _scatter_add),
    **dict.fromkeys(("index_add", "index_add_"), _index_add),
}


def _is_index(index: Argument) -> TypeGuard[Tensor]:
    """Whether it holds numbers of rows."""
    return isinstance(index, Tensor) and index.dim() == 1 and index.dtype == torch.int64


def _is_alike(other: Argument, x: BatchFeatures) -> TypeGuard[BatchFeatures]:
    """Whether ``other`` are features of the same shape and type as ``x``."""
    return (
        isinstance(other, BatchFeatures)
        and x.shape == other.shape
        and x.like.dtype == other.like.dtype
    )


def _row_factor(x: BatchFeatures, other: Argument) -> RowFactor | None:
    """``other`` as a factor of the rows of ``x``; None if it differs between columns."""
    if isinstance(other, (int, float)):
        return None if isinstance(other, bool) else other
    if not isinstance(other, Tensor) or other.dim() > 2 or other.is_complex():
        return None
    if torch.promote_types(other.dtype, x.like.dtype) != x.like.dtype:
        return None
    if other.numel() == 1:
        return other.reshape(())
    if other.dim() < 2 or len(other) != x.shape[0]:
        return None
    is_column = other.size(1) == 1
    is_same = other.size(1) == x.shape[1] and _has_equal_columns(other)
    return other[:, :1] if is_column or is_same else None


def _has_equal_columns(value: Tensor) -> bool:
    """Whether all columns are one column in memory, as after `expand`."""
    return value.dim() == 2 and (value.size(1) == 1 or value.stride(1) == 0)
