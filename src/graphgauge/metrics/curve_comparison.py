"""How one curve compares with random ones: step by step, or by mean height.

A curve is the output after 1..K edits, and lower is better (`turn_curves` turns curves so that it
is). Only the steps within a curve's length count. What the shares mean for an explanation is the
matter of `graphgauge.metrics.pertinence`.
"""

import torch
from torch import Tensor

from graphgauge.core import UndefinedScore
from graphgauge.metrics.bundles import TOLERANCE
from graphgauge.metrics.curve_direction import turn_curves


def step_mask(length: Tensor, size: int) -> Tensor:
    """Which of ``size`` steps are within each curve's length.  (...) -> (..., size) bool

    Args:
        length: How many steps of each curve count.
        size: Number of steps of the result.
    """
    return torch.arange(1, size + 1, device=length.device) <= length[..., None]


def win_share(
    curve: Tensor, random: Tensor, length: Tensor, tolerance: float = TOLERANCE
) -> Tensor:
    """Share of steps where the curve is lower than each random curve, as in the paper.

    (T, K), (T, N, K), (T,) -> (T, N)

    Args:
        curve: Heights in the explanation's order.
        random: Heights in N random orders.
        length: How many of the K steps count, 1 or more.
        tolerance: Heights that differ by at most this are tied, and a tie is lost.

    >>> win_share(torch.tensor([[0.1, 0.5]]), torch.tensor([[[0.2, 0.5]]]), torch.tensor([2]))
    tensor([[0.5000]], dtype=torch.float64)
    """
    return _share_of_steps(curve[:, None] < random - tolerance, length)


def tied_win_share(
    curve: Tensor, random: Tensor, length: Tensor, tolerance: float = TOLERANCE
) -> Tensor:
    """Share of steps where the curve is lower than each random curve; ties count half.

    (T, K), (T, N, K), (T,) -> (T, N)

    Args:
        curve: Heights in the explanation's order.
        random: Heights in N random orders.
        length: How many of the K steps count, 1 or more.
        tolerance: Heights that differ by at most this are tied.

    >>> tied_win_share(torch.tensor([[0.1, 0.5]]), torch.tensor([[[0.2, 0.5]]]), torch.tensor([2]))
    tensor([[0.7500]], dtype=torch.float64)
    """
    lost = _share_of_steps(curve[:, None] > random + tolerance, length)
    return (1 + win_share(curve, random, length, tolerance) - lost) / 2


def _share_of_steps(is_counted: Tensor, length: Tensor) -> Tensor:
    """Share of the steps within each curve's length.  (T, N, K) bool, (T,) -> (T, N)"""
    _check_curve_length(length, is_counted.size(2))
    is_inside = step_mask(length, is_counted.size(2))[:, None]
    return (is_counted & is_inside).sum(2) / length[:, None].double()


def mean_height(curves: Tensor, length: Tensor) -> Tensor:
    """Mean of each curve within its length.  (T, N, K), (T,) -> (T, N), float64

    Args:
        curves: Heights along N orders.
        length: How many of the K steps count, 1 or more.
    """
    _check_curve_length(length, curves.size(2))
    is_inside = step_mask(length, curves.size(2))[:, None]
    return torch.where(is_inside, curves.double(), 0).sum(2) / length[:, None]


def _check_curve_length(length: Tensor, size: int) -> None:
    if len(length) and not (int(length.min()) >= 1 and int(length.max()) <= size):
        raise UndefinedScore(
            f"curves are compared over 1 to {size} steps, but {int(length.min())} to "
            f"{int(length.max())} were asked for."
        )


def rank_of_heights(height: Tensor, random: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """Share of random mean heights above the explanation's; ties count half.  (T,), (T, N) -> (T,)

    The value is NaN where the height is not finite.

    Args:
        height: Mean height of the explanation's curve.
        random: Mean heights of N random curves.
        tolerance: Mean heights that differ by at most this are tied.

    >>> rank_of_heights(torch.tensor([0.2]), torch.tensor([[0.1, 0.2, 0.3, 0.4]]))
    tensor([0.6250], dtype=torch.float64)
    """
    gap = random - height[:, None]
    share = ((gap > tolerance).double() + (gap.abs() <= tolerance).double() / 2).mean(1)
    return share.where(height.isfinite(), torch.nan)


def p_of_heights(height: Tensor, random: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """Chance that a random order's mean height is as low as the explanation's (p-value).

    The value is NaN where the height is not finite.  (T,), (T, N) -> (T,)

    Args:
        height: Mean height of the explanation's curve.
        random: Mean heights of N random curves.
        tolerance: Mean heights that differ by at most this are tied; a tie counts as low.

    >>> p_of_heights(torch.tensor([0.2]), torch.tensor([[0.1, 0.3, 0.4]]))
    tensor([0.5000], dtype=torch.float64)
    """
    num_as_low = (random <= height[:, None] + tolerance).sum(1)
    p = (1 + num_as_low).double() / (1 + random.size(1))
    return p.where(height.isfinite(), torch.nan)


def absolute_change(curve: Tensor, start: Tensor) -> Tensor:
    """Curves turned so that lower means further from the start, up or down: -|C - start|.

    (T, ..., K), (T,) -> (T, ..., K)

    Args:
        curve: Heights after each edit.
        start: The height before the first edit.

    >>> absolute_change(torch.tensor([[1.5, 0.0]]), torch.tensor([1.0]))
    tensor([[-0.5000, -1.0000]])
    """
    return turn_curves(curve, start, "abs")
