"""Whether numbers are numbers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def all_finite(values: "Tensor") -> bool:
    """Whether there is no NaN and no infinity. Their sum shows either at once; one that is merely
    too large is looked into.

    >>> import torch
    >>> all_finite(torch.tensor([1.0, -2.0])), all_finite(torch.tensor([torch.inf, -torch.inf])), all_finite(torch.full((2,), 3e38))
    (True, False, True)
    """
    return bool(values.sum().isfinite()) or bool(values.isfinite().all())
