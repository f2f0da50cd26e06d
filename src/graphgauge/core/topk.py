"""Which values of a long list are the largest, without sorting it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def largest_positions(values: "Tensor", count: int) -> list[int]:
    """Positions of the ``count`` largest values (all, if there are fewer), the largest first; equal
    values keep their order.

    Only values that reach the smallest one wanted are sorted. NaN must not be among them.
    (n,) -> at most ``count``

    >>> import torch
    >>> largest_positions(torch.tensor([1.0, 3.0, 1.0, 5.0, 3.0]), 3)
    [3, 1, 4]
    """
    least = values.topk(min(count, len(values))).values[-1:]
    chosen = (values >= least).nonzero()[:, 0] if len(least) else least.long()
    order = values[chosen].sort(descending=True, stable=True).indices[:count]
    found: list[int] = chosen[order].tolist()
    return found
