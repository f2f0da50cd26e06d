"""Which way a curve should go: curves are turned so that lower is better, whatever was asked.

A curve of probabilities falls where important edits are made, so it stays as it is. Predicted
values can move either way, and there are four readings of what is a good movement:

    raw        the value falls (the paper's reading)
    towards    it moves towards the value of the reference: up where that lies above
    abs        it moves away from where it was, up or down
    moved      it moves the way that is asked for, or either way where none is
"""

from typing import Literal, TypeAlias

import torch
from torch import Tensor

CurveDirection: TypeAlias = Literal["raw", "towards", "abs", "moved"]


def turn_curves(
    curve: Tensor, start: Tensor, direction: CurveDirection, way: Tensor | None = None
) -> Tensor:
    """Turn curves so that lower is better.  (Q, ..., K) -> (Q, ..., K)

    Args:
        curve: Heights after each edit.
        start: The height before the first edit.  (Q,)
        direction: Which movement is a good one.
        way: +1 / -1: the value is to rise / fall; 0: either will do, as without it.  (Q,)

    >>> curve, start = torch.tensor([[1.5, 0.0]]), torch.tensor([1.0])
    >>> turn_curves(curve, start, "abs")
    tensor([[-0.5000, -1.0000]])
    >>> turn_curves(curve, start, "moved", way=torch.tensor([1]))
    tensor([[-0.5000,  1.0000]])
    """
    if direction == "raw":
        return curve
    way = unsqueeze_like(torch.zeros_like(start) if way is None else way, curve)
    if direction == "towards":
        return torch.where(way > 0, -1, 1) * curve
    start = unsqueeze_like(start, curve)
    is_either = direction == "abs" or way == 0
    return -torch.where(
        torch.as_tensor(is_either, device=curve.device),
        (curve - start).abs(),
        way * (curve - start),
    )


def unsqueeze_like(value: Tensor, curve: Tensor) -> Tensor:
    """One value per target, with as many axes as the target's curves.  (T,) -> (T, 1, ..., 1)

    Args:
        value: One value for each target.
        curve: A tensor with the axes that are wanted; its first one is that of targets.
    """
    return value.reshape(-1, *[1] * (curve.dim() - 1))
