"""When enough trials have been made: the paper's early stopping, for many series at once.

After i trials (30 at least, 100 at most) with mean m and standard error se = SD / sqrt(i), SD with
the divisor i, a series stops if

    |m - τ| / se > 1.645      the mean is on one side of τ               "decided"
    ε / se > 1.96             the mean is known to within ε              "precise"
    se = 0                    nothing varies                             "constant"

The rule is applied after every trial, as the paper writes it. Read as a test it errs far more often
than its constants say: on series whose true mean is τ it decides in 37 of 100 cases, not in 5. So
it saves trials; it makes no verdicts.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from graphgauge.core import BadSetting

_DECIDED_AT, _PRECISE_AT = 1.645, 1.96
_STOP_REASONS = ("decided", "precise", "constant", "most")


class StoppingPoints(NamedTuple):
    """Where each of R series stopped."""

    trials: Tensor  #: (R,) how many trials count
    reason: list[str]  #: of `_STOP_REASONS`, one per series

    def mean(self, values: Tensor) -> Tensor:
        """The mean of each series (R, n) over its own trials.  (R,)"""
        counts = torch.arange(values.size(1), device=values.device) < self.trials[:, None]
        return torch.where(counts, values, 0).sum(1) / self.trials


def stop_early(
    values: Tensor, least: int = 30, most: int = 100, tau: float | None = 0.5, epsilon: float = 0.05
) -> StoppingPoints:
    """Where series of trials (R, n), n >= most, stop; ``tau=None`` leaves the first rule out.

    >>> stop_early(torch.ones(1, 100)).reason, stop_early(torch.tensor([0.0, 1.0]).repeat(1, 50), tau=None).trials.tolist()
    (['constant'], [100])
    """
    kinds = _reasons_to_stop(values, least, most, tau, epsilon)
    trials = kinds.any(0).int().argmax(1)
    return StoppingPoints(trials + 1, _first_reasons(kinds, trials))


def stop_pairs_early(
    first: Tensor,
    second: Tensor,
    least: int = 30,
    most: int = 100,
    tau: float | None = 0.5,
    epsilon: float = 0.05,
) -> tuple[StoppingPoints, StoppingPoints]:
    """Where pairs of series (R, n) stop that go on until a rule holds for both after the same
    trial, as the paper's Stability.
    """
    kinds = [_reasons_to_stop(values, least, most, tau, epsilon) for values in (first, second)]
    trials = (kinds[0].any(0) & kinds[1].any(0)).int().argmax(1)
    one, other = (StoppingPoints(trials + 1, _first_reasons(kind, trials)) for kind in kinds)
    return one, other


def _reasons_to_stop(
    values: Tensor, least: int, most: int, tau: float | None, epsilon: float
) -> Tensor:
    """Which of `_STOP_REASONS` hold after each trial.  (R, n) -> (4, R, most) bool"""
    check_trials(values, least, most)
    count = torch.arange(1, most + 1, device=values.device, dtype=torch.float64)
    mean, error = _running_mean_and_error(values[:, :most].double(), count)
    is_constant = error == 0
    is_precise = epsilon > _PRECISE_AT * error
    is_decided = (
        (mean - tau).abs() > _DECIDED_AT * error
        if tau is not None
        else torch.zeros_like(is_precise)
    )
    is_last = (count == most).expand_as(is_precise)
    return torch.stack(
        [is_decided & ~is_constant, is_precise & ~is_constant, is_constant, is_last]
    ) & (count >= least)


def _first_reasons(kinds: Tensor, at: Tensor) -> list[str]:
    """The first reason that holds at trial ``at`` (R,), counted from 0, of each series."""
    reason = kinds.int().argmax(0).gather(1, at[:, None])[:, 0]
    return [_STOP_REASONS[k] for k in reason.tolist()]


def _running_mean_and_error(values: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard error after each trial.  (R, n), (n,) -> (R, n), (R, n)"""
    shifted = values - values[:, :1]  # equal values then have a variance of exactly 0
    mean = shifted.cumsum(1) / count
    variance = (shifted.square().cumsum(1) / count - mean.square()).clamp(min=0)
    return mean + values[:, :1], (variance / count).sqrt()


def check_trials(values: Tensor, least: int, most: int) -> None:
    """Refuse numbers of trials that cannot be, and series with gaps."""
    if not 1 <= least <= most <= values.size(1):
        raise BadSetting(
            f"trials must go from 1 or more to at most the {values.size(1)} that were made, but are {least}, {most}."
        )
    if not bool(values.isfinite().all()):
        raise BadSetting(
            "trials must be finite numbers: leave out targets that have NaN, with the reason, before averaging."
        )
