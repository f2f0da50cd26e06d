"""Checks for NaN and infinity."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def all_finite(values: "Tensor") -> bool:
    """Check that there is no NaN and no infinity.

    A finite sum shows this at once. If the sum is not finite, each value is checked, because the
    sum of large finite values can overflow.

    >>> import torch
    >>> all_finite(torch.tensor([1.0, -2.0])), all_finite(torch.tensor([torch.inf, -torch.inf]))
    (True, False)
    >>> all_finite(torch.full((2,), 3e38))
    True
    """
    return bool(values.sum().isfinite()) or bool(values.isfinite().all())
