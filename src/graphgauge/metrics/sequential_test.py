"""A sequential test by betting: is the mean of a series above or below τ?

The verdict stays right however often one looks. For trials x_i in [0, 1] one gambler stakes on
"above τ", another on "below τ", each a share that depends on earlier trials only:

    W+_i = Π_{j<=i} (1 + λ+_j (x_j - τ)),    W-_i = Π_{j<=i} (1 - λ-_j (x_j - τ))
    λ±_i = min( sqrt(2 ln(2/α) / (v_{i-1} i ln(1+i))),  bound )

where the bound is 3/4 / τ for "above" and 3/4 / (1-τ) for "below". Means and variances are
regularised:

    m_i = (1/2 + Σ_{j<=i} x_j) / (i+1),  v_i = (1/4 + Σ_{j<=i} (x_j - m_j)²) / (i+1),  v_0 = 1/4.

A series is decided once max(W+, W-) / 2 >= 1/α.

While the mean is τ, (W+ + W-)/2 is a fair game that starts at 1, and a fair game ever reaches 1/α
with probability at most α (Ville's inequality). So at most 5 % of series without an effect are
decided, for every distribution on [0, 1] and every number of looks, from the first trial on; the
paper's rule (`stop_early`) decides 37 %. Only the *verdict* stays right: the mean at the stop is
still too far from τ (by 0.024 where the truth is 0.60). Take verdicts from here, and means from a
fixed number of trials.
"""

import math

import torch
from torch import Tensor

from graphgauge.core import BadSetting
from graphgauge.metrics.early_stopping import StoppingPoints, check_trials

_MAX_STAKE = 0.75


def betting_test(
    values: Tensor, tau: float = 0.5, alpha: float = 0.05, most: int = 100
) -> StoppingPoints:
    """Find where series of trials are "decided"; the reason of all others is "most".  (R, n)

    The side of a decision is that of the larger `log_wealth` at the stop.

    Args:
        values: The trials, numbers from 0 to 1, n of them in each series, at least ``most``.
        tau: The value that the mean is compared with.
        alpha: The chance of a decision where the mean is ``tau`` is at most this.
        most: The largest number of trials.

    >>> betting_test(torch.tensor([[1.0], [0.5]]).repeat(1, 100))
    StoppingPoints(trials=tensor([  7, 100]), reason=['decided', 'most'])
    """
    _check_betting_input(values, tau, alpha, most)
    above, below = log_wealth(values[:, :most], tau, alpha)
    is_decided = torch.maximum(above, below) >= math.log(2 / alpha)
    ever_decided = is_decided.any(1)
    trials = torch.where(ever_decided, is_decided.int().argmax(1) + 1, most)
    return StoppingPoints(trials, ["decided" if yes else "most" for yes in ever_decided.tolist()])


def log_wealth(values: Tensor, tau: float = 0.5, alpha: float = 0.05) -> tuple[Tensor, Tensor]:
    """Logarithms of W+ and W- after each trial.  (R, n) -> (R, n), (R, n)

    Args:
        values: The trials, numbers from 0 to 1, n of them in each series.
        tau: The value that the mean is compared with.
        alpha: The stakes are those for a decision at this level.
    """
    values = values.double()
    count = torch.arange(1, values.size(1) + 1, device=values.device)
    variance = _variance_before(values)
    stake = (2 * math.log(2 / alpha) / (variance * count * count.double().log1p())).sqrt()
    gain = values - tau
    above = (stake.clamp(max=_MAX_STAKE / tau) * gain).log1p().cumsum(1)
    below = (-stake.clamp(max=_MAX_STAKE / (1 - tau)) * gain).log1p().cumsum(1)
    return above, below


def _variance_before(values: Tensor) -> Tensor:
    """Regularised variance v_{i-1} before each trial, 1/4 before the first.  (R, n) -> (R, n)"""
    count = torch.arange(1, values.size(1) + 1, device=values.device)
    mean = (0.5 + values.cumsum(1)) / (count + 1)
    variance = (0.25 + (values - mean).square().cumsum(1)) / (count + 1)
    return torch.cat([torch.full_like(variance[:, :1], 0.25), variance[:, :-1]], 1)


def _check_betting_input(values: Tensor, tau: float, alpha: float, most: int) -> None:
    check_trials(values, 1, most)
    if not (0 < tau < 1 and 0 < alpha < 1):
        raise BadSetting(
            f"betting needs tau and alpha between 0 and 1, but tau is {tau} and alpha is {alpha}."
        )
    if values.numel() and not (float(values.min()) >= 0 and float(values.max()) <= 1):
        raise BadSetting(
            f"betting needs trials in [0, 1], but they go from {float(values.min())} to "
            f"{float(values.max())}."
        )
