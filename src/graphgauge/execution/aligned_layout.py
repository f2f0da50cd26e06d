"""Positions of copies in a union.

Each copy starts at a multiple of 16 rows. The rows between copies are filling.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

ROW_ALIGNMENT, _SIZE_STEP, _MIN_SIZE = 16, 64, 128


def round_up_to_multiple(count: Tensor, align: int) -> Tensor:
    """``count`` rounded up to a multiple of ``align``."""
    return -(count.neg() // align) * align


@dataclass(frozen=True)
class AlignedLayout:
    """Positions of K runs of things: run k starts at ``start[k]``, and there are ``size``
    positions.
    """

    start: Tensor
    size: int

    @staticmethod
    def from_counts(count: Tensor, align: int, spare: int) -> "AlignedLayout":
        """Place runs of things one after another, each at a multiple of ``align``.

        Args:
            count: Number of things in each run.  (K,)
            align: Multiple at which each run starts. With 1 there is no filling; otherwise the
                number of positions is rounded up to a multiple of 64, and is at least 128.
            spare: Number of further things for which filling is left. With ``align`` 1 it has no
                effect.

        >>> AlignedLayout.from_counts(torch.tensor([3, 20]), align=16, spare=2)
        AlignedLayout(start=tensor([ 0, 16]), size=128)
        """
        taken = round_up_to_multiple(count, align)
        end = int(taken.sum())
        return AlignedLayout(
            taken.cumsum(0) - taken,
            end if align == 1 else max(_MIN_SIZE, -(-(end + spare) // _SIZE_STEP) * _SIZE_STEP),
        )


def assign_edge_columns(
    edge_copy: Tensor, is_loop: Tensor, num_copies: int, align: int
) -> tuple[Tensor, int, int]:
    """The columns of edges that are given in the order of their copies.

    Stored self-loops, and a filling of self-loops, come last: many layers drop them and add their
    own, and no other edge may move by that. Without filling, edges keep their order.

    Returns:
        The column of each edge, the number of columns before the self-loops, and the number of all.
    """
    if align == 1:
        return torch.arange(len(edge_copy), device=edge_copy.device), len(edge_copy), len(edge_copy)
    edge_at, sizes = torch.empty_like(edge_copy), [0]
    for kind in (~is_loop, is_loop):
        copy = edge_copy[kind]
        count = torch.bincount(copy, minlength=num_copies)
        layout = AlignedLayout.from_counts(count, align, spare=1)
        rank = torch.arange(len(copy), device=copy.device) - (count.cumsum(0) - count)[copy]
        edge_at[kind] = sizes[-1] + layout.start[copy] + rank
        sizes.append(sizes[-1] + layout.size)
    return edge_at, sizes[1], sizes[2] if bool(is_loop.any()) else sizes[1]


def place_rows(values: Tensor, index: Tensor, at: Tensor, size: int) -> Tensor:
    """``size`` rows of zeros, but for ``values[index]`` at the rows ``at``; written once."""
    if not len(values):
        return values.new_zeros(size, *values.shape[1:])
    if size == len(index):
        return values[index]
    source = torch.zeros(size, dtype=torch.int64, device=at.device).index_copy(0, at, index)
    filling = torch.ones(size, dtype=torch.bool, device=at.device)
    filling[at] = False
    return values[source].masked_fill_(filling.view(-1, *[1] * (values.dim() - 1)), 0)
