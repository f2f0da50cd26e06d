"""Pertinence: does the explanation's order of edits move the output more than random orders do?

A curve C(k) is the output after k edits. Against one random curve R, over k = 1..K with K the EC,
the paper's comparison counts ties as lost:

    p(C, R) = share of k with C(k) < R(k) - tol

Pertinence is its mean over random curves (and references). Random rankings do not reach 1/2 then,
but 0.40 on Cora's edges. The calibrated forms take K = min(cap, candidates), the same for all
curves:

    tied    share of k with C(k) < R(k) - tol, plus half the share of ties
            a random ranking reaches exactly 1/2 on average
    rank    with T(C) = mean of C: (number of R with T(R) > T(C), ties half) / N
    p       (1 + number of R with T(R) <= T(C)) / (N + 1)
            by chance P(p <= x) = x for x = 1/(N + 1), 2/(N + 1), ...
    abs     tied, of the curves -|C - start|: which order moves the output more, either way

Over several references of a target, tied and abs are averaged. For rank and p, T is the mean over
the references: random order number n is the same order for all of them, so that a meaningless order
is exchangeable with the random ones as a whole, and p is exact. All comparisons ask which curve is
*lower*; `absolute_change` turns curves so that lower means "moved further, up or down".
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from graphgauge.core import UndefinedScore
from graphgauge.metrics.base import (
    Measurement,
    Metric,
    MetricSettings,
    mean_over_cases,
    min_over_cases,
)
from graphgauge.metrics.bundles import TOLERANCE, Curves
from graphgauge.metrics.compactness import effective_compactness
from graphgauge.metrics.curve_direction import turn_curves
from graphgauge.metrics.early_stopping import RandomComparison, StoppingPoints, stop_early
from graphgauge.metrics.sequential_test import betting_test


def step_mask(length: Tensor, size: int) -> Tensor:
    """Which of ``size`` steps are within each curve's length.  (...) -> (..., size) bool"""
    return torch.arange(1, size + 1, device=length.device) <= length[..., None]


def win_share(
    curve: Tensor, random: Tensor, length: Tensor, tolerance: float = TOLERANCE
) -> Tensor:
    """Share of steps where the curve is lower than each random curve, as in the paper.

    (T, K), (T, N, K), (T,) -> (T, N)

    >>> win_share(torch.tensor([[0.1, 0.5]]), torch.tensor([[[0.2, 0.5]]]), torch.tensor([2]))
    tensor([[0.5000]], dtype=torch.float64)
    """
    return _share_of_steps(curve[:, None] < random - tolerance, length)


def tied_win_share(
    curve: Tensor, random: Tensor, length: Tensor, tolerance: float = TOLERANCE
) -> Tensor:
    """Share of steps where the curve is lower than each random curve; ties count half.

    (T, K), (T, N, K), (T,) -> (T, N)

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
    """Mean of each curve within its length.  (T, N, K), (T,) -> (T, N), float64"""
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

    >>> rank_of_heights(torch.tensor([0.2]), torch.tensor([[0.1, 0.2, 0.3, 0.4]]))
    tensor([0.6250], dtype=torch.float64)
    """
    gap = random - height[:, None]
    share = ((gap > tolerance).double() + (gap.abs() <= tolerance).double() / 2).mean(1)
    return share.where(height.isfinite(), torch.nan)


def p_of_heights(height: Tensor, random: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """Chance that a random order's mean height is as low as the explanation's (p-value).

    The value is NaN where the height is not finite.  (T,), (T, N) -> (T,)

    >>> p_of_heights(torch.tensor([0.2]), torch.tensor([[0.1, 0.3, 0.4]]))
    tensor([0.5000], dtype=torch.float64)
    """
    num_as_low = (random <= height[:, None] + tolerance).sum(1)
    p = (1 + num_as_low).double() / (1 + random.size(1))
    return p.where(height.isfinite(), torch.nan)


def absolute_change(curve: Tensor, start: Tensor) -> Tensor:
    """Curves turned so that lower means further from the start, up or down: -|C - start|.

    (T, ..., K), (T,) -> (T, ..., K)

    >>> absolute_change(torch.tensor([[1.5, 0.0]]), torch.tensor([1.0]))
    tensor([[-0.5000, -1.0000]])
    """
    return turn_curves(curve, start, "abs")


def _paper_length(curves: Curves) -> Tensor:
    """The paper's K: the EC of each case's target, the smallest over its cases.  (Q,)"""
    ec = effective_compactness(curves.flips, curves.candidates, curves.cap).ec
    return min_over_cases(ec, curves.target, curves.num_targets)[curves.target].long()


def _first_curves(random: Tensor, trials: int | None) -> Tensor:
    """The first ``trials`` random curves, all of them for None.  (Q, trials, K)"""
    num_measured = random.size(1)
    num_wanted = num_measured if trials is None else trials
    if not 1 <= num_wanted <= num_measured:
        raise UndefinedScore(
            f"pertinence compares with 1 random curve or more, but {num_wanted} of {num_measured} "
            "measured were asked for."
        )
    return random[:, :num_wanted]


def _mean_heights_of_targets(curves: Curves, trials: int | None) -> tuple[Tensor, Tensor]:
    """Mean heights of each target's curve and random ones, over all its cases.  (T,), (T, N)"""
    curve, random = curves.turned()
    height = mean_height(curve[:, None], curves.length)[:, 0]
    heights = mean_height(_first_curves(random, trials), curves.length)
    return (
        mean_over_cases(height, curves.target, curves.num_targets),
        mean_over_cases(heights, curves.target, curves.num_targets),
    )


@dataclass(frozen=True)
class Pertinence(Metric[Curves]):
    """The paper's: share of steps up to the EC where the curve is below a random one.

    Ties count as lost. Each case stops early, after ``least`` to ``most`` random curves; the value
    is the mean over cases. Chance is below 1/2 by half the share of ties, and K depends on the
    explanation's own curve; `PertinenceTied` has neither fault.

    Args:
        least: The smallest number of random curves.
        most: The largest number of random curves.
        tau: The mean that the rule tests; None leaves this test out.
        epsilon: The precision at which the paper's rule stops.
        rule: "paper": the paper's rule; "betting": a valid sequential test; "none": all curves.
    """

    name = "pertinence"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "curves"
    ordered_trials = True
    parts = ()
    scope = "comparison"
    role = "paper"
    least: int = 30
    most: int = 100
    tau: float | None = 0.5
    epsilon: float = 0.05
    rule: Literal["paper", "betting", "none"] = "paper"

    @classmethod
    def from_settings(cls, settings: MetricSettings) -> "Pertinence":
        """With the stopping rule of an evaluation."""
        least, most = settings.trials
        return cls(least, most, settings.tau, settings.epsilon, settings.early_stop)

    def compare_and_stop(self, bundle: Curves) -> tuple[Tensor, StoppingPoints]:
        """Compare each case with random curves (Q, most), and find where the comparisons stop."""
        curve, random = bundle.turned()
        random = _first_curves(random, self.most)
        won = win_share(curve, random, _paper_length(bundle), bundle.tolerance)
        return won, self.stop(won, self.most)

    def stop(self, won: Tensor, end: int) -> StoppingPoints:
        """Apply the rule to series of trials of which ``end`` were made.  (R, n)

        Args:
            won: The share of steps that was won against each random curve.
            end: How many trials were made; a series that goes on has the reason "most".
        """
        end = min(end, self.most)
        if self.rule == "paper":
            return stop_early(won, min(self.least, end), end, self.tau, self.epsilon)
        if self.rule == "betting":
            return betting_test(won[:, :end], 0.5 if self.tau is None else self.tau, most=end)
        trials = torch.full((len(won),), end, device=won.device)
        return StoppingPoints(trials, ["most"] * len(won))

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return self.measure(bundle).value

    def measure(self, bundle: Curves) -> Measurement:
        """The pertinence of each target, with that of each case, its trials and why they ended."""
        found = bundle.comparison
        if found is None:
            won, stop = self.compare_and_stop(bundle)
            found = RandomComparison(stop.mean(won), *stop)
        value = mean_over_cases(found.score, bundle.target, bundle.num_targets)
        return Measurement(
            value, per_case=found.score, trials=found.trials, stop_reasons=found.reason
        )


@dataclass(frozen=True)
class PertinenceTied(Metric[Curves]):
    """Share of all steps where the curve is below a random one, ties half; the mean over cases."""

    name = "pertinence_tied"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = 0.5
    needs = "curves"
    parts = ()
    scope = "orders"
    role = "calibrated"
    trials: int | None = None

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return _tied_wins_of_targets(bundle, self.trials)


@dataclass(frozen=True)
class PertinenceRank(Metric[Curves]):
    """Share of random orders whose mean height is above the explanation's; ties count half.

    Heights are averaged over a target's cases; random curve number n belongs to the same order in
    all of them.
    """

    name = "pertinence_rank"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = 0.5
    needs = "curves"
    parts = ()
    scope = "orders"
    role = "calibrated"
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
    parts = ()
    scope = "orders"
    role = "calibrated"
    trials: int | None = None

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return p_of_heights(*_mean_heights_of_targets(bundle, self.trials), bundle.tolerance)


@dataclass(frozen=True)
class PertinenceAbs(Metric[Curves]):
    """Share of all steps where the order moved the output further than a random one, ties half.

    Movements up and down count alike.
    """

    name = "pertinence_abs"
    tasks = ("regression",)
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = 0.5
    needs = "curves"
    parts = ()
    scope = "orders"
    role = "calibrated"
    trials: int | None = None

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return _tied_wins_of_targets(replace(bundle, direction="abs"), self.trials)


def _tied_wins_of_targets(curves: Curves, trials: int | None) -> Tensor:
    """Share of steps below a random curve, ties half; the mean over curves and cases.  (T,)"""
    curve, random = curves.turned()
    won = tied_win_share(curve, _first_curves(random, trials), curves.length, curves.tolerance)
    return mean_over_cases(won.mean(1), curves.target, curves.num_targets)
