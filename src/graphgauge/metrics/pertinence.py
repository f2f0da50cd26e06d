"""Pertinence: does the explanation's order of edits move the output more than random orders do?

A curve C(k) is the output after k edits. Against one random curve R, over k = 1..K with K the EC,

    p(C, R) = share of k with C(k) < R(k) - tol          the paper's: ties count as lost

averaged over random curves (and references). Random rankings do not reach 1/2 then: 0.40 on Cora's edges, since ties are lost. The
calibrated twins take K = min(cap, candidates), the same for all curves:

    tied    share of k with C(k) < R(k) - tol, plus half the share of ties               a random ranking: exactly 1/2 on average
    rank    with T(C) = mean of C:  (number of R with T(R) > T(C), ties half) / N
    p       (1 + number of R with T(R) <= T(C)) / (N + 1)                    under chance P(p <= x) <= x, whatever N
"""

import torch
from torch import Tensor

from graphgauge.core.errors import UndefinedScore

TOLERANCE = 1e-6


def inside(length: Tensor, size: int) -> Tensor:
    """Which of ``size`` steps are within each curve's length.  (T,) -> (T, size) bool"""
    return torch.arange(1, size + 1, device=length.device) <= length[:, None]


def check_length(length: Tensor, size: int) -> None:
    """Refuse curves that are too short, or have no step."""
    if len(length) and not (int(length.min()) >= 1 and int(length.max()) <= size):
        raise UndefinedScore(
            f"curves are compared over 1 to {size} steps, but {int(length.min())} to {int(length.max())} were asked for."
        )


def wins(curve: Tensor, random: Tensor, length: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """The paper's comparison with each random curve.  (T, K), (T, N, K), (T,) -> (T, N)

    >>> wins(torch.tensor([[0.1, 0.5]]), torch.tensor([[[0.2, 0.5]]]), torch.tensor([2]))
    tensor([[0.5000]], dtype=torch.float64)
    """
    return share(curve[:, None] < random - tolerance, length)


def tied_wins(curve: Tensor, random: Tensor, length: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """The comparison with half for ties.  (T, K), (T, N, K), (T,) -> (T, N)"""
    lost = share(curve[:, None] > random + tolerance, length)
    return (1 + wins(curve, random, length, tolerance) - lost) / 2


def share(is_so: Tensor, length: Tensor) -> Tensor:
    """Share of the steps within each curve's length.  (T, N, K) bool, (T,) -> (T, N)"""
    check_length(length, is_so.size(2))
    return (is_so & inside(length, is_so.size(2))[:, None]).sum(2) / length[:, None].double()


def mean_height(curves: Tensor, length: Tensor) -> Tensor:
    """The mean of each curve within its length.  (T, N, K), (T,) -> (T, N)"""
    check_length(length, curves.size(2))
    return torch.where(inside(length, curves.size(2))[:, None], curves.double(), 0).sum(2) / length[:, None]


def rank(curve: Tensor, random: Tensor, length: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """Share of random curves that stay above the explanation's, ties half.  (T, K), (T, N, K), (T,) -> (T,)"""
    gap = mean_height(random, length) - mean_height(curve[:, None], length)
    return ((gap > tolerance).double() + (gap.abs() <= tolerance).double() / 2).mean(1)


def p_value(curve: Tensor, random: Tensor, length: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """Chance that a random order does as well.  (T, K), (T, N, K), (T,) -> (T,)"""
    as_good = mean_height(random, length) <= mean_height(curve[:, None], length) + tolerance
    return (1 + as_good.sum(1)).double() / (1 + random.size(1))
