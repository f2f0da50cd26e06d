"""Pertinence: does the explanation's order of edits move the output more than random orders do?

A curve C(k) is the output after k edits. Against one random curve R, over k = 1..K with K the EC,

    p(C, R) = share of k with C(k) < R(k) - tol          the paper's: ties count as lost

averaged over random curves (and references). Random rankings do not reach 1/2 then: 0.40 on Cora's
edges, since ties are lost. The calibrated twins take K = min(cap, candidates), the same for all
curves:

    tied    share of k with C(k) < R(k) - tol, plus half the share of ties               a random ranking: exactly 1/2 on average
    rank    with T(C) = mean of C:  (number of R with T(R) > T(C), ties half) / N
    p       (1 + number of R with T(R) <= T(C)) / (N + 1)           by chance P(p <= x) = x for x = 1/(N + 1), 2/(N + 1), ...
    abs     tied, of the curves -|C - start|: which order moves the output more, either way

Over several references of a target, tied and abs are averaged. For rank and p, T is the mean over
the references: random order number n is the same order for all of them, so that an order that means
nothing is exchangeable with the random ones as a whole, and p is exact. All comparisons ask which
curve is *lower*; `absolute_change` turns curves so that lower means "moved further, either way".
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import UndefinedScore
from graphgauge.metrics.base import Curves, Metric, mean_over_cases, min_over_cases
from graphgauge.metrics.compactness import effective_compactness
from graphgauge.metrics.early_stopping import StoppingPoints, stop_early

_TOLERANCE = 1e-6


def step_mask(length: Tensor, size: int) -> Tensor:
    """Which of ``size`` steps are within each curve's length.  (...) -> (..., size) bool"""
    return torch.arange(1, size + 1, device=length.device) <= length[..., None]


def _check_curve_length(length: Tensor, size: int) -> None:
    """Refuse curves that are too short, or have no step."""
    if len(length) and not (int(length.min()) >= 1 and int(length.max()) <= size):
        raise UndefinedScore(
            f"curves are compared over 1 to {size} steps, but {int(length.min())} to {int(length.max())} were asked for."
        )


def win_share(
    curve: Tensor, random: Tensor, length: Tensor, tolerance: float = _TOLERANCE
) -> Tensor:
    """The paper's comparison with each random curve.  (T, K), (T, N, K), (T,) -> (T, N)

    >>> win_share(torch.tensor([[0.1, 0.5]]), torch.tensor([[[0.2, 0.5]]]), torch.tensor([2]))
    tensor([[0.5000]], dtype=torch.float64)
    """
    return _share_of_steps(curve[:, None] < random - tolerance, length)


def tied_win_share(
    curve: Tensor, random: Tensor, length: Tensor, tolerance: float = _TOLERANCE
) -> Tensor:
    """The comparison with half for ties.  (T, K), (T, N, K), (T,) -> (T, N)"""
    lost = _share_of_steps(curve[:, None] > random + tolerance, length)
    return (1 + win_share(curve, random, length, tolerance) - lost) / 2


def _share_of_steps(is_so: Tensor, length: Tensor) -> Tensor:
    """Share of the steps within each curve's length.  (T, N, K) bool, (T,) -> (T, N)"""
    _check_curve_length(length, is_so.size(2))
    return (is_so & step_mask(length, is_so.size(2))[:, None]).sum(2) / length[:, None].double()


def mean_height(curves: Tensor, length: Tensor) -> Tensor:
    """The mean of each curve within its length.  (T, N, K), (T,) -> (T, N)"""
    _check_curve_length(length, curves.size(2))
    return (
        torch.where(step_mask(length, curves.size(2))[:, None], curves.double(), 0).sum(2)
        / length[:, None]
    )


def rank_of_heights(height: Tensor, random: Tensor, tolerance: float = _TOLERANCE) -> Tensor:
    """Share of random mean heights above the explanation's, ties half; NaN stays.
    (T,), (T, N) -> (T,)
    """
    gap = random - height[:, None]
    found = ((gap > tolerance).double() + (gap.abs() <= tolerance).double() / 2).mean(1)
    return found.where(height.isfinite(), torch.nan)


def p_of_heights(height: Tensor, random: Tensor, tolerance: float = _TOLERANCE) -> Tensor:
    """Chance that a random order's mean height is as low as the explanation's; NaN stays.
    (T,), (T, N) -> (T,)
    """
    found = (1 + (random <= height[:, None] + tolerance).sum(1)).double() / (1 + random.size(1))
    return found.where(height.isfinite(), torch.nan)


def absolute_change(curve: Tensor, start: Tensor) -> Tensor:
    """Curves turned so that lower means further from the start, either way: -|C - start|.
    (T, ..., K), (T,) -> (T, ..., K)

    >>> absolute_change(torch.tensor([[1.5, 0.0]]), torch.tensor([1.0]))
    tensor([[-0.5000, -1.0000]])
    """
    return -(curve - unsqueeze_like(start, curve)).abs()


def unsqueeze_like(value: Tensor, curve: Tensor) -> Tensor:
    """One value per target, shaped so that it meets each of its curves.  (T,) -> (T, 1, ..., 1)"""
    return value.reshape(-1, *[1] * (curve.dim() - 1))


def _pertinence_length(curves: Curves) -> Tensor:
    """The paper's K: the EC of each case's target, the least over its cases.  (Q,)"""
    ec = effective_compactness(curves.flips, curves.candidates, curves.cap).ec
    return min_over_cases(ec, curves.target, curves.num_targets)[curves.target].long()


def _first_random_curves(curves: Curves, trials: int | None) -> Tensor:
    """The first ``trials`` random curves (None: all), or say that there are too few.
    (Q, trials, K)
    """
    found = curves.random.size(1)
    wanted = found if trials is None else trials
    if not 1 <= wanted <= found:
        raise UndefinedScore(
            f"pertinence compares with 1 random curve or more, but {wanted} of {found} measured were asked for."
        )
    return curves.random[:, :wanted]


def _mean_heights_of_targets(curves: Curves, trials: int | None) -> tuple[Tensor, Tensor]:
    """Mean height of each target's curve and of its random ones, over all its cases.  (T,), (T, N)"""
    parts = (
        mean_height(curves.curve[:, None], curves.length)[:, 0],
        mean_height(_first_random_curves(curves, trials), curves.length),
    )
    own, random = (mean_over_cases(part, curves.target, curves.num_targets) for part in parts)
    return own, random


@dataclass(frozen=True)
class Pertinence(Metric[Curves]):
    """The paper's: share of steps up to the EC where the explanation's curve lies below a random
    one; ties count as lost.

    Each case stops early by the paper's rule (``least`` to ``most`` random curves); the mean over
    cases. Chance is below 1/2 by half the share of ties, and K depends on the explanation's own
    curve: `PertinenceTied` is the fair one.
    """

    name = "pertinence"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "curves"
    ordered_trials = True
    least: int = 30
    most: int = 100
    tau: float | None = 0.5
    epsilon: float = 0.05

    def compare_and_stop(self, bundle: Curves) -> tuple[Tensor, StoppingPoints]:
        """The comparisons of each case (Q, most), and where they stop."""
        random = _first_random_curves(bundle, self.most)
        won = win_share(bundle.curve, random, _pertinence_length(bundle), bundle.tolerance)
        return won, stop_early(won, self.least, self.most, self.tau, self.epsilon)

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        won, stop = self.compare_and_stop(bundle)
        return mean_over_cases(stop.mean(won), bundle.target, bundle.num_targets)


@dataclass(frozen=True)
class PertinenceTied(Metric[Curves]):
    """Share of all steps where the explanation's curve lies below a random one, ties half; the mean
    over cases.
    """

    name = "pertinence_tied"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = 0.5
    needs = "curves"
    trials: int | None = None

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        won = tied_win_share(
            bundle.curve, _first_random_curves(bundle, self.trials), bundle.length, bundle.tolerance
        )
        return mean_over_cases(won.mean(1), bundle.target, bundle.num_targets)


@dataclass(frozen=True)
class PertinenceRank(Metric[Curves]):
    """Share of random orders whose mean height, over a target's cases, is above the explanation's,
    ties half.

    Random curve number n belongs to the same order in all cases of a target.
    """

    name = "pertinence_rank"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = 0.5
    needs = "curves"
    trials: int | None = None

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return rank_of_heights(*_mean_heights_of_targets(bundle, self.trials), bundle.tolerance)


@dataclass(frozen=True)
class PertinenceP(Metric[Curves]):
    """Chance that a random order does as well (p-value), by the mean height over a target's cases.

    Random curve number n belongs to the same order in all cases of a target.
    """

    name = "pertinence_p"
    bounds = (0.0, 1.0)
    higher_is_better = False
    chance = None
    needs = "curves"
    trials: int | None = None

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return p_of_heights(*_mean_heights_of_targets(bundle, self.trials), bundle.tolerance)


@dataclass(frozen=True)
class PertinenceAbs(Metric[Curves]):
    """Share of all steps where the explanation's order has moved the output further than a random
    one, either way; ties half.
    """

    name = "pertinence_abs"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = 0.5
    needs = "curves"
    trials: int | None = None

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        moved, others = (
            absolute_change(part, bundle.start)
            for part in (bundle.curve, _first_random_curves(bundle, self.trials))
        )
        won = tied_win_share(moved, others, bundle.length, bundle.tolerance)
        return mean_over_cases(won.mean(1), bundle.target, bundle.num_targets)
