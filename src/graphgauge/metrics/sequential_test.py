"""A verdict that stays right however often one looks: is the mean of a series above or below τ? A
test by betting.

For trials x_i in [0, 1] a gambler stakes on "above τ", another on "below", each a share that
depends on earlier trials only:

    W+_i = Π_{j<=i} (1 + λ+_j (x_j - τ)),    W-_i = Π_{j<=i} (1 - λ-_j (x_j - τ)),
    λ±_i = min( sqrt(2 ln(2/α) / (v_{i-1} i ln(1+i))),  3/4 / τ  for "above",  3/4 / (1-τ)  for "below" )

with regularised means and variances  m_i = (1/2 + Σ_{j<=i} x_j) / (i+1),  v_i = (1/4 + Σ_{j<=i} (x_j - m_j)²) / (i+1),  v_0 = 1/4.
A series is decided once  max(W+, W-) / 2 >= 1/α.

While the mean is τ, (W+ + W-)/2 is a fair game that starts at 1, and a fair game ever reaches 1/α
with probability α at most (Ville). So at most 5 in 100 series without an effect are decided, for
every law on [0, 1] and every number of looks, from the first trial on; the paper's rule
(`stopping`) decides 37. The *verdict* is what stays right; the mean at the stop is still too far
from τ (by 0.024 where the truth is 0.60). Take verdicts from here and means from a fixed number of
trials.
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
    """Where series of trials (R, n), n >= most, are "decided", else "most". The side is that of the
    larger `log_wealth` there.

    >>> betting_test(torch.tensor([[1.0], [0.5]]).repeat(1, 100))
    Stopped(trials=tensor([  7, 100]), reason=['decided', 'most'])
    """
    _check_betting_input(values, tau, alpha, most)
    above, below = log_wealth(values[:, :most], tau, alpha)
    is_decided = torch.maximum(above, below) >= math.log(2 / alpha)
    ever = is_decided.any(1)
    trials = torch.where(ever, is_decided.int().argmax(1) + 1, most)
    return StoppingPoints(trials, ["decided" if so else "most" for so in ever.tolist()])


def log_wealth(values: Tensor, tau: float = 0.5, alpha: float = 0.05) -> tuple[Tensor, Tensor]:
    """Logarithms of W+ and W- after each trial.  (R, n) -> (R, n), (R, n)"""
    values = values.double()
    count = torch.arange(1, values.size(1) + 1, device=values.device)
    stake = (
        2 * math.log(2 / alpha) / (_variance_before(values) * count * count.double().log1p())
    ).sqrt()
    gain = values - tau
    above = (stake.clamp(max=_MAX_STAKE / tau) * gain).log1p().cumsum(1)
    below = (-stake.clamp(max=_MAX_STAKE / (1 - tau)) * gain).log1p().cumsum(1)
    return above, below


def _variance_before(values: Tensor) -> Tensor:
    """The regularised variance v_{i-1} of the trials before each one; 1/4 before the first.
    (R, n) -> (R, n)
    """
    count = torch.arange(1, values.size(1) + 1, device=values.device)
    mean = (0.5 + values.cumsum(1)) / (count + 1)
    variance = (0.25 + (values - mean).square().cumsum(1)) / (count + 1)
    return torch.cat([torch.full_like(variance[:, :1], 0.25), variance[:, :-1]], 1)


def _check_betting_input(values: Tensor, tau: float, alpha: float, most: int) -> None:
    """Refuse trials outside [0, 1] and levels outside (0, 1)."""
    check_trials(values, 1, most)
    if not (0 < tau < 1 and 0 < alpha < 1):
        raise BadSetting(
            f"betting needs tau and alpha between 0 and 1, but tau is {tau} and alpha is {alpha}."
        )
    if values.numel() and not (float(values.min()) >= 0 and float(values.max()) <= 1):
        raise BadSetting(
            f"betting needs trials in [0, 1], but they go from {float(values.min())} to {float(values.max())}."
        )
