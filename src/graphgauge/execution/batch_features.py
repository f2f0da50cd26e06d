"""Features of a union of copies, in forms that need not be written out.

The first operation of most networks on x is a linear map, x W' + b. In a union of thousands of
copies of a few graphs, the rows of x repeat, or differ from each other in a few columns only. The
map of all rows then follows from the map of a few:

    rows that repeat            (x W')_i = (table W')_index[i]
    rows that are mostly 0      (x W')_i = Σ_e in row i  entry_e W_column[e]
                                (differentiable in the entries)

`LazyFeatureTensor` gives such features to a network.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor


class BatchFeatures(ABC):
    """The features of all rows of a union: how to write them out, and the short way to a linear map
    of them.
    """

    #: whether outputs are differentiated with respect to something in here
    has_gradient: ClassVar[bool] = False

    @property
    @abstractmethod
    def like(self) -> Tensor:
        """A tensor of the same type and device."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of rows and features."""

    @property
    @abstractmethod
    def written(self) -> Tensor:
        """The features as an ordinary tensor.  (rows, F)"""

    @abstractmethod
    def linear(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """``F.linear(self.written, weight, bias)``.  (H, F), (H,) -> (rows, H)"""


@dataclass(frozen=True)
class DenseFeatures(BatchFeatures):
    """Features as an ordinary tensor."""

    x: Tensor

    @property
    def like(self) -> Tensor:
        """The tensor itself."""
        return self.x

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and features."""
        return self.x.shape[0], self.x.shape[1]

    @property
    def written(self) -> Tensor:
        """The tensor itself."""
        return self.x

    def linear(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The ordinary linear map."""
        return F.linear(self.x, weight, bias)


@dataclass(frozen=True)
class TrackedFeatures(DenseFeatures):
    """Features as an ordinary tensor, with respect to which outputs are differentiated."""

    has_gradient: ClassVar[bool] = True


@dataclass(frozen=True)
class GatheredFeatures(BatchFeatures):
    """Rows ``table[index]`` of a table of rows ``source[node]``, or 0 where ``node`` is -1.

    Each graph of a union is in the table once. As in unions, its rows start at a multiple of 16 and
    filling is 0, so that their bits do not depend on what else is in the table.

    Args:
        source: Features of the data.  (N, F)
        node: Row of ``source`` for each row of the table.  (table rows,)
        index: Row of the table for each row of the union.  (rows,)
    """

    source: Tensor
    node: Tensor
    index: Tensor

    @property
    def like(self) -> Tensor:
        """The features of the data."""
        return self.source

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and features."""
        return len(self.index), self.source.size(1)

    @cached_property
    def written(self) -> Tensor:
        """Rows taken directly from the source."""
        return _gather_rows_or_zero(self.source, self.node[self.index])

    def linear_table(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The linear map of the table.  (table rows, H)"""
        return F.linear(_gather_rows_or_zero(self.source, self.node), weight, bias)

    def linear(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The linear map of the table, gathered."""
        return self.linear_table(weight, bias)[self.index]


@dataclass(frozen=True)
class ScatteredFeatures(BatchFeatures):
    """M entries at (row, column), sorted by row, and 0 elsewhere; differentiable in the entries.

    Args:
        entry: Values.  (M,)
        row: Row of each, in rising order.  (M,)
        column: Column of each.  (M,)
        size: Number of rows and columns.
    """

    has_gradient: ClassVar[bool] = True

    entry: Tensor
    row: Tensor
    column: Tensor
    size: tuple[int, int]

    @property
    def like(self) -> Tensor:
        """The entries."""
        return self.entry

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and features."""
        return self.size

    @property
    def written(self) -> Tensor:
        """A zero tensor with the entries."""
        return self.entry.new_zeros(self.size).index_put((self.row, self.column), self.entry)

    @cached_property
    def first(self) -> Tensor:
        """The first entry of each row.  (rows,)"""
        count = torch.bincount(self.row, minlength=self.size[0])
        return count.cumsum(0) - count

    def linear(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The weighted sum of columns of the weight over the entries of each row."""
        columns = weight.detach().t().contiguous()
        total = F.embedding_bag(
            self.column, columns, self.first, mode="sum", per_sample_weights=self.entry
        )
        return total if bias is None else total + bias.detach()


@dataclass(frozen=True)
class ProbedFeatures(BatchFeatures):
    """Other features, with a note in ``seen`` whenever they are written out."""

    watched: BatchFeatures
    seen: list[bool]

    @property
    def like(self) -> Tensor:
        """As the other features."""
        return self.watched.like

    @property
    def shape(self) -> tuple[int, int]:
        """As the other features."""
        return self.watched.shape

    @property
    def written(self) -> Tensor:
        """As the other features, and noted."""
        self.seen.append(True)
        return self.watched.written

    def linear(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        """As the other features."""
        return self.watched.linear(weight, bias)


def _gather_rows_or_zero(source: Tensor, node: Tensor) -> Tensor:
    """Rows ``source[node]``; zeros where ``node`` is -1.  (N, F), (rows,) -> (rows, F)"""
    if not len(source):
        return source.new_zeros(len(node), source.size(1))
    is_filling = node < 0
    return source[node.clamp(min=0)].masked_fill_(is_filling[:, None], 0)
