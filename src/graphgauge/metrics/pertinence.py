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
from graphgauge.metrics.bundles import Curves
from graphgauge.metrics.compactness import effective_compactness
from graphgauge.metrics.curve_comparison import (
    mean_height,
    p_of_heights,
    rank_of_heights,
    tied_win_share,
    win_share,
)
from graphgauge.metrics.early_stopping import RandomComparison, StoppingPoints, stop_early
from graphgauge.metrics.sequential_test import betting_test


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
