"""GPU kernels for products with the sparse matrix of a union's messages (Triton, optional).

A computation graph has many rows with one or two entries and a hub with thousands. cuSPARSE takes a
row at a time, so that a union waits for its hub. Here, rows are cut into parts of at most 32
entries, which are computed at the same time:

    out_v = Σ_u w_uv x_u          one program for each part of a row; the sums of a row with several
                                  parts are added up by a second kernel, always in the same order
    dots_e = first_v · second_u   one program for 16 entries

The same numbers come out in every run, since no sum depends on which program is first. Without
Triton, and on a CPU, `fused_messages` takes torch's sparse matrices.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# arguments of a kernel are pointers and numbers of Triton, which has no types for them

from dataclasses import dataclass

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl

    _HAS_TRITON = True
except ImportError:
    _HAS_TRITON = False

_PART = 32  #: most entries of a row that one program adds up
_ENTRIES_AT_ONCE = 4  #: of these, read together
_DOTS_AT_ONCE = 16  #: entries of which one program computes the scalar products
_WIDEST_BLOCK = 128  #: columns that one program computes


@dataclass(frozen=True)
class RowParts:
    """The entries of a matrix, cut into parts of rows.

    Args:
        start: The first entry of each part.  (parts,)
        end: One behind its last entry.  (parts,)
        place: Where its sum goes: -1 - r for row r of the result, or a row of the sums that are
            added up afterwards.  (parts,)
        long_row: Rows with several parts.  (long,)
        long_start: The first sum of each of them, and the number of all sums.  (long + 1,)
        num_sums: The number of all sums.
    """

    start: Tensor
    end: Tensor
    place: Tensor
    long_row: Tensor
    long_start: Tensor
    num_sums: int

    @staticmethod
    def from_rows(start: Tensor) -> "RowParts":
        """Cut rows whose entries start at ``start`` (rows + 1,); an empty row has one part."""
        first, size = start[:-1].long(), start.diff().long()
        parts = ((size + _PART - 1) // _PART).clamp(min=1)
        row = torch.repeat_interleave(parts)
        rank = torch.arange(len(row), device=row.device) - (parts.cumsum(0) - parts)[row]
        part_start = first[row] + rank * _PART
        is_long = parts > 1
        (long_row,) = is_long.nonzero(as_tuple=True)
        sums_before = torch.cat([parts.new_zeros(1), parts[long_row].cumsum(0)])
        first_sum = torch.zeros_like(parts).index_copy(0, long_row, sums_before[:-1])
        return RowParts(
            part_start,
            torch.minimum(part_start + _PART, first[row] + size[row]),
            torch.where(is_long[row], first_sum[row] + rank, -1 - row),
            long_row,
            sums_before,
            int(sums_before[-1]),
        )


def sparse_times_rows(parts: RowParts, column: Tensor, value: Tensor, x: Tensor) -> Tensor:
    """The product W x.  (entries,), (entries,), (rows, H) -> (rows, H)

    Args:
        parts: The rows of W.
        column: Column of each entry.
        value: The entries.
        x: What W is multiplied with.
    """
    width = x.size(1)
    block = min(_WIDEST_BLOCK, triton.next_power_of_2(width))
    out, sums = torch.empty_like(x), x.new_empty(parts.num_sums, width)
    blocks = triton.cdiv(width, block)
    _sum_parts_kernel[(len(parts.start), blocks)](
        parts.start, parts.end, parts.place, column, value, x, out, sums, width,
        _ENTRIES_AT_ONCE, block, num_warps=1,
    )  # fmt: skip
    if parts.num_sums:
        _add_sums_kernel[(len(parts.long_row), blocks)](
            parts.long_row, parts.long_start, sums, out, width, _DOTS_AT_ONCE, block, num_warps=4
        )
    return out


def entry_dots(row: Tensor, column: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """The scalar product of two rows for each entry.  (entries,) twice, (rows, H) twice ->
    (entries,)

    Args:
        row: The row of ``first``.
        column: The row of ``second``.
        first: Rows.
        second: Rows.
    """
    width, found = first.size(1), first.new_empty(len(row))
    block = min(_WIDEST_BLOCK, triton.next_power_of_2(width))
    if len(row):
        _dots_kernel[(triton.cdiv(len(row), _DOTS_AT_ONCE),)](
            row, column, first, second, found, len(row), width, _DOTS_AT_ONCE, block, num_warps=4
        )
    return found


if _HAS_TRITON:

    @triton.jit
    def _sum_parts_kernel(
        part_start,
        part_end,
        part_place,
        column,
        value,
        x,
        out,
        sums,
        width,
        AT_ONCE: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """One part of a row and some columns."""
        part = tl.program_id(0).to(tl.int64)
        place_in_row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        is_column = place_in_row < width
        start = tl.load(part_start + part)
        end = tl.load(part_end + part)
        total = tl.zeros([BLOCK], dtype=x.dtype.element_ty)
        for first in range(start, end, AT_ONCE):
            entry = first + tl.arange(0, AT_ONCE)
            is_entry = entry < end
            source = tl.load(column + entry, mask=is_entry, other=0).to(tl.int64)
            factor = tl.load(value + entry, mask=is_entry, other=0.0)
            rows = tl.load(
                x + source[:, None] * width + place_in_row[None, :],
                mask=is_entry[:, None] & is_column[None, :],
                other=0.0,
            )
            total += tl.sum(factor[:, None] * rows, axis=0)
        place = tl.load(part_place + part)
        if place < 0:
            tl.store(out + (-1 - place) * width + place_in_row, total, mask=is_column)
        else:
            tl.store(sums + place * width + place_in_row, total, mask=is_column)

    @triton.jit
    def _add_sums_kernel(
        long_row, long_start, sums, out, width, AT_ONCE: tl.constexpr, BLOCK: tl.constexpr
    ):
        """One row with several parts, and some columns."""
        number = tl.program_id(0).to(tl.int64)
        place_in_row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        is_column = place_in_row < width
        start = tl.load(long_start + number)
        end = tl.load(long_start + number + 1)
        total = tl.zeros([BLOCK], dtype=sums.dtype.element_ty)
        for first in range(start, end, AT_ONCE):
            place = first + tl.arange(0, AT_ONCE)
            rows = tl.load(
                sums + place[:, None] * width + place_in_row[None, :],
                mask=(place < end)[:, None] & is_column[None, :],
                other=0.0,
            )
            total += tl.sum(rows, axis=0)
        row = tl.load(long_row + number)
        tl.store(out + row * width + place_in_row, total, mask=is_column)

    @triton.jit
    def _dots_kernel(
        row,
        column,
        first,
        second,
        found,
        num_entries,
        width,
        AT_ONCE: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """Some entries."""
        entry = tl.program_id(0).to(tl.int64) * AT_ONCE + tl.arange(0, AT_ONCE)
        is_entry = entry < num_entries
        left = tl.load(row + entry, mask=is_entry, other=0).to(tl.int64)
        right = tl.load(column + entry, mask=is_entry, other=0).to(tl.int64)
        total = tl.zeros([AT_ONCE], dtype=first.dtype.element_ty)
        for start in range(0, width, BLOCK):
            place = start + tl.arange(0, BLOCK)
            is_there = is_entry[:, None] & (place < width)[None, :]
            ours = tl.load(first + left[:, None] * width + place[None, :], mask=is_there, other=0.0)
            others = tl.load(
                second + right[:, None] * width + place[None, :], mask=is_there, other=0.0
            )
            total += tl.sum(ours * others, axis=1)
        tl.store(found + entry, total, mask=is_entry)
