"""The paper's early stopping: when enough trials have been made, for many series at once.

After i trials with mean m and standard error se = SD / sqrt(i), SD with the divisor i, a series
stops for one of these reasons:

    decided     |m - τ| / se > 1.645      the mean is on one side of τ
    precise     ε / se > 1.96             the mean is known to within ε
    constant    se = 0                    the trials do not vary
    most        i = most                  no more trials are allowed

At least ``least`` trials are made (30 by default), at most ``most`` (100). The rule is applied
after every trial, as the paper writes it. Read as a test it errs far more often than its constants
suggest: of series whose true mean is τ it decides 37 %, not 5 %. So it saves trials, but its
verdicts cannot be trusted; `betting_test` gives verdicts.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from graphgauge.core import BadSetting

_DECIDED_AT, _PRECISE_AT = 1.645, 1.96
_STOP_REASONS = ("decided", "precise", "constant", "most")


class StoppingPoints(NamedTuple):
    """Where each of R series stopped, and why."""

    trials: Tensor  #: (R,) how many trials count
    reason: list[str]  #: (R,) "decided", "precise", "constant" or "most"

    def mean(self, values: Tensor) -> Tensor:
        """Mean of each series over the trials that count.  (R, n) -> (R,)"""
        counts = torch.arange(values.size(1), device=values.device) < self.trials[:, None]
        return torch.where(counts, values, 0).sum(1) / self.trials


class RandomComparison(NamedTuple):
    """How each of Q cases compared with random orders, until the comparison was stopped."""

    score: Tensor  #: (Q,) mean over the trials that count, float64
    trials: Tensor  #: (Q,) how many trials count
    reason: list[str]  #: (Q,) why there were no more


def stop_early(
    values: Tensor, least: int = 30, most: int = 100, tau: float | None = 0.5, epsilon: float = 0.05
) -> StoppingPoints:
    """Find where each series of trials stops by the paper's rule.  (R, n)

    Args:
        values: The trials, n of them in each series, at least ``most``.
        least: The smallest number of trials.
        most: The largest number of trials.
        tau: The value that "decided" compares the mean with; None leaves this reason out.
        epsilon: The precision at which "precise" stops.

    >>> stop_early(torch.ones(1, 100)).reason
    ['constant']
    >>> stop_early(torch.tensor([0.0, 1.0]).repeat(1, 50), tau=None).trials.tolist()
    [100]
    """
    reasons = _reasons_to_stop(values, least, most, tau, epsilon)
    place = reasons.any(0).int().argmax(1)
    return StoppingPoints(place + 1, _first_reasons(reasons, place))


def stop_pairs_early(
    first: Tensor,
    second: Tensor,
    least: int = 30,
    most: int = 100,
    tau: float | None = 0.5,
    epsilon: float = 0.05,
) -> tuple[StoppingPoints, StoppingPoints]:
    """Find where two lists of series (R, n) stop together, as the paper's Stability does.

    Series number r of both lists go on until a reason holds for each after the same trial.

    Args:
        first: The trials of the first list, n of them in each series, at least ``most``.
        second: The trials of the second list.
        least: The smallest number of trials.
        most: The largest number of trials.
        tau: The value that "decided" compares the mean with; None leaves this reason out.
        epsilon: The precision at which "precise" stops.
    """
    reasons = [_reasons_to_stop(values, least, most, tau, epsilon) for values in (first, second)]
    place = (reasons[0].any(0) & reasons[1].any(0)).int().argmax(1)
    points = [StoppingPoints(place + 1, _first_reasons(own, place)) for own in reasons]
    return points[0], points[1]


def _reasons_to_stop(
    values: Tensor, least: int, most: int, tau: float | None, epsilon: float
) -> Tensor:
    """Which of `_STOP_REASONS` hold after each trial.  (R, n) -> (4, R, most) bool"""
    check_trials(values, least, most)
    count = torch.arange(1, most + 1, device=values.device, dtype=torch.float64)
    mean, error = _running_mean_and_error(values[:, :most].double(), count)
    is_constant = error == 0
    is_precise = epsilon > _PRECISE_AT * error
    is_decided = torch.zeros_like(is_precise)
    if tau is not None:
        is_decided = (mean - tau).abs() > _DECIDED_AT * error
    is_last = (count == most).expand_as(is_precise)
    reasons = [is_decided & ~is_constant, is_precise & ~is_constant, is_constant, is_last]
    return torch.stack(reasons) & (count >= least)


def _first_reasons(reasons: Tensor, place: Tensor) -> list[str]:
    """The first reason that holds for each series at its ``place``, counted from 0.  (R,)"""
    number = reasons.int().argmax(0).gather(1, place[:, None])[:, 0]
    return [_STOP_REASONS[k] for k in number.tolist()]


def _running_mean_and_error(values: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard error after each trial.  (R, n), (n,) -> (R, n), (R, n)"""
    shifted = values - values[:, :1]  # equal values then have a variance of exactly 0
    mean = shifted.cumsum(1) / count
    variance = (shifted.square().cumsum(1) / count - mean.square()).clamp(min=0)
    return mean + values[:, :1], (variance / count).sqrt()


def check_trials(values: Tensor, least: int, most: int) -> None:
    """Raise BadSetting for numbers of trials that are not possible, and for series with gaps.

    Args:
        values: Series of n trials.  (R, n)
        least: The smallest number of trials that may count, 1 or more.
        most: The largest one, at most n.
    """
    if not 1 <= least <= most <= values.size(1):
        raise BadSetting(
            f"trials must go from 1 or more to at most the {values.size(1)} that were made, but "
            f"are {least}, {most}."
        )
    if not bool(values.isfinite().all()):
        raise BadSetting(
            "trials must be finite numbers: leave out targets that have NaN, and record the "
            "reason, before averaging."
        )
