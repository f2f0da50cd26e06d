"""Sparse products for K networks at once: one matrix with K blocks on its diagonal, whose entries
have the same positions in every block.

Entries e = 1..E sit at (row_e, col_e) of an (R, C) matrix; network k has its own values v_ke there.
With dense h and g,

    weighted_sums(v, h)_kr = sum over e with row_e = r of  v_ke h_k,col_e
    dots(g, h)_ke          = g_k,row_e . h_k,col_e

The shapes are (K, E), (K, C, D) -> (K, R, D) and (K, R, D), (K, C, D) -> (K, E).

Each is the derivative of the other, so both stay sparse in the backward pass: no tensor of size E x
D is written.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.autograd import Function

LARGEST_INDEX = 2**31 - 1  #: entries and rows are counted in 32 bits
#: warnings of torch about every sparse matrix; 2.11 and 2.12 give the second one even where the
#: checks are switched off
_KNOWN_WARNINGS = (
    "Sparse CSR tensor support is in beta state",
    "Sparse invariant checks are implicitly disabled",
)


@contextmanager
def _without_known_warnings() -> Iterator[None]:
    """Ignore the two known warnings of torch, and no others. The switch of torch for its checks
    keeps its value.
    """
    with warnings.catch_warnings():
        for message in _KNOWN_WARNINGS:
            warnings.filterwarnings("ignore", message, UserWarning)
        yield


@dataclass(frozen=True)
class SparsePattern:
    """The positions of the entries, sorted by row, then column. ``order`` leads from the given
    order to the sorted one.
    """

    row: Tensor  #: (E,)
    col: Tensor  #: (E,)
    num_rows: int
    num_cols: int
    order: Tensor  #: (E,)

    def __len__(self) -> int:
        return len(self.row)


def sort_pattern(row: Tensor, col: Tensor, num_rows: int, num_cols: int) -> SparsePattern:
    """Sort the positions (row, col) of the entries."""
    order = (row * num_cols + col).argsort(stable=True)
    return SparsePattern(row[order], col[order], num_rows, num_cols, order)


class BlockDiagonal:
    """A pattern repeated for ``count`` networks, and its transpose."""

    def __init__(self, places: SparsePattern, count: int) -> None:
        self.places, self.count = places, count
        # the transposed order of entries
        self.turn = (places.col * places.num_rows + places.row).argsort(stable=True)
        self.shape = (count * places.num_rows, count * places.num_cols)
        self.index = _repeat_index(places.row, places.col, places.num_rows, places.num_cols, count)
        turned = (places.col[self.turn], places.row[self.turn], places.num_cols, places.num_rows)
        self.turned_index = _repeat_index(*turned, count)

    @_without_known_warnings()
    def times(self, value: Tensor, h: Tensor) -> Tensor:
        """Weighted sums of rows of h.  (K, E), (K, C, D) -> (K, R, D)"""
        product = _csr_matrix(self.index, value, self.shape) @ h.reshape(self.shape[1], -1)
        return product.view(self.count, self.places.num_rows, -1)

    @_without_known_warnings()
    def turned_times(self, value: Tensor, g: Tensor) -> Tensor:
        """The same sums with the transposed matrix.  (K, E), (K, R, D) -> (K, C, D)"""
        product = _csr_matrix(self.turned_index, value[:, self.turn], self.shape[::-1]) @ g.reshape(
            self.shape[0], -1
        )
        return product.view(self.count, self.places.num_cols, -1)

    @_without_known_warnings()
    def dots(self, g: Tensor, h: Tensor) -> Tensor:
        """Inner products of rows of g with rows of h.  (K, R, D), (K, C, D) -> (K, E)"""
        left, right = g.reshape(self.shape[0], -1), h.reshape(self.shape[1], -1)
        empty = _csr_matrix(self.index, left.new_zeros(self.count * len(self.places)), self.shape)
        return (
            torch.sparse.sampled_addmm(empty, left, right.t(), beta=0.0)
            .values()
            .view(self.count, -1)
        )


def _repeat_index(
    row: Tensor, col: Tensor, num_rows: int, num_cols: int, count: int
) -> tuple[Tensor, Tensor]:
    """Row pointers and columns of a matrix with ``count`` equal blocks on its diagonal."""
    ends = row.bincount(minlength=num_rows).cumsum(0)
    block = torch.arange(count, device=row.device)[:, None]
    pointer = torch.cat([ends.new_zeros(1), (ends + block * len(row)).flatten()])
    return pointer.int(), (col + block * num_cols).flatten().int()


def _csr_matrix(index: tuple[Tensor, Tensor], value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A sparse matrix in the CSR format."""
    return torch.sparse_csr_tensor(*index, value.reshape(-1), shape, check_invariants=False)


class _ProductContext(Protocol):
    """What the two functions below keep for their backward pass, as autograd's ``ctx``."""

    blocks: BlockDiagonal
    saved_tensors: tuple[Tensor, Tensor]
    needs_input_grad: tuple[bool, bool, bool]

    def save_for_backward(self, *tensors: Tensor) -> None:
        """Keep tensors."""


#: the derivatives by the pattern (always None), by the values or rows g, and by the rows h
_InputGradients = tuple[None, Tensor | None, Tensor | None]


class _WeightedSumsFunction(Function):
    """`BlockDiagonal.times` with its derivatives."""

    @staticmethod
    def forward(ctx: _ProductContext, blocks: BlockDiagonal, value: Tensor, h: Tensor) -> Tensor:
        """(K, E), (K, C, D) -> (K, R, D)"""
        ctx.blocks = blocks
        ctx.save_for_backward(value, h)
        return blocks.times(value, h)

    @staticmethod
    def backward(ctx: _ProductContext, *outer: Tensor) -> _InputGradients:
        """The derivative by the values is an inner product, the derivative by h a sum with the
        transposed matrix.
        """
        value, h = ctx.saved_tensors
        _, to_value, to_h = ctx.needs_input_grad
        by_value = ctx.blocks.dots(outer[0], h) if to_value else None
        return None, by_value, ctx.blocks.turned_times(value, outer[0]) if to_h else None


class _EdgeDotsFunction(Function):
    """`BlockDiagonal.dots` with its derivatives."""

    @staticmethod
    def forward(ctx: _ProductContext, blocks: BlockDiagonal, g: Tensor, h: Tensor) -> Tensor:
        """(K, R, D), (K, C, D) -> (K, E)"""
        ctx.blocks = blocks
        ctx.save_for_backward(g, h)
        return blocks.dots(g, h)

    @staticmethod
    def backward(ctx: _ProductContext, *outer: Tensor) -> _InputGradients:
        """Sums of the rows of the other side, weighted by the incoming gradient."""
        g, h = ctx.saved_tensors
        return None, ctx.blocks.times(outer[0], h), ctx.blocks.turned_times(outer[0], g)


def weighted_sums(blocks: BlockDiagonal, value: Tensor, h: Tensor) -> Tensor:
    """The sum over the entries e of row r of  v_ke h_k,col_e.  (K, E), (K, C, D) -> (K, R, D)"""
    return _WeightedSumsFunction.apply(blocks, value, h)


def edge_dots(blocks: BlockDiagonal, g: Tensor, h: Tensor) -> Tensor:
    """The inner products g_k,row_e . h_k,col_e.  (K, R, D), (K, C, D) -> (K, E)"""
    return _EdgeDotsFunction.apply(blocks, g, h)
