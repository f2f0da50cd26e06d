"""Effective Compactness (EC): how many edits, in the explanation's order, change the prediction.

    EC = min({ k >= 1 : prediction after k edits differs } ∪ { cap, number of candidates })

Low is good. A target whose prediction never changes gets the bound, so a failure with 3 edges looks
better than a change after 5 edits. `flipped` says which of the two happened. The *flip curve*
F(k), the share of targets whose prediction changed within k edits (`Results.flip_curve`), does not
have this fault. With the bound at the cap for all targets,

    mean of min(EC, cap) = 1 + Σ_{k=1}^{cap-1} (1 - F(k)).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from graphgauge.core import BadSetting, UndefinedScore
from graphgauge.metrics.base import Measurement, Metric, min_over_cases
from graphgauge.metrics.bundles import TOLERANCE, Curves


class Compactness(NamedTuple):
    """EC of each of T targets, and whether the prediction changed."""

    ec: Tensor  #: (T,) int64
    flipped: Tensor  #: (T,) bool


def class_flips(prob: Tensor, label: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """Whether another class exceeds the first one by more than ``tolerance``.

    (T, K, C), (T,) -> (T, K) bool

    Args:
        prob: Class probabilities after each of K edits.
        label: The class to compare with, usually the one first predicted.
        tolerance: Differences up to this are ties, and a tie is no flip.

    >>> class_flips(torch.tensor([[[0.9, 0.1], [0.4, 0.6]]]), torch.tensor([0]))
    tensor([[False,  True]])
    """
    index = label[:, None, None].expand(-1, prob.size(1), 1)
    first = prob.gather(2, index)[..., 0]
    best_other = prob.scatter(2, index, -torch.inf).amax(2)
    return best_other - first > tolerance


def value_flips(value: Tensor, first: Tensor, width: float) -> Tensor:
    """Whether a value moved by more than ``width``, up or down.  (T, K), (T,) -> (T, K) bool

    Args:
        value: Predicted values after each of K edits.
        first: The value before any edit.
        width: The largest movement that does not count as a change.
    """
    return (value - first[:, None]).abs() > width


def effective_compactness(flips: Tensor, candidates: Tensor, cap: int = 100) -> Compactness:
    """Count the edits until the prediction changes.  (T, K) bool, (T,) -> (T,), (T,)

    Args:
        flips: Whether the prediction differs after k edits, k = 1..K.
        candidates: How many edits are possible, 1 or more.
        cap: The largest number of edits that counts.

    >>> flips = torch.tensor([[False, True, False], [False, False, False]])
    >>> effective_compactness(flips, candidates=torch.tensor([3, 2]))
    Compactness(ec=tensor([2, 2]), flipped=tensor([ True, False]))
    """
    if cap < 1:
        raise BadSetting(f"cap must be 1 or more, but is {cap}.")
    if bool((candidates < 1).any()):
        raise UndefinedScore(
            "EC counts edits, but a target has none to make: record it as 'empty'."
        )
    bound = candidates.clamp(max=cap)
    step = torch.arange(1, flips.size(1) + 1, device=flips.device)
    counted_flips = flips & (step <= bound[:, None])
    flipped = counted_flips.any(1)
    return Compactness(torch.where(flipped, counted_flips.int().argmax(1) + 1, bound), flipped)


@dataclass(frozen=True)
class EffectiveCompactness(Metric[Curves]):
    """Smallest number of edits that changes the prediction; at most min(cap, candidates).

    Of a target with several cases it is the smallest one. Where the edits of a case were drawn
    several times, its EC is the mean over the draws.
    """

    name = "ec"
    bounds = (1.0, torch.inf)
    higher_is_better = False
    chance = None
    needs = "curves"
    parts = ()
    scope = "flips"
    role = "paper"

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return self.measure(bundle).value

    def measure(self, bundle: Curves) -> Measurement:
        """The EC of each target, with that of each case and draw, and whether predictions flip."""
        draws, has_flipped = _compactness_of_draws(bundle)
        per_case = draws.double().mean(1)
        ec = min_over_cases(per_case, bundle.target, bundle.num_targets)
        is_least = per_case == ec[bundle.target]
        flips = (has_flipped.double().mean(1) >= 0.5) & is_least
        num_flips = torch.zeros_like(ec).index_add(0, bundle.target, flips.to(ec))
        return Measurement(ec, per_case, num_flips > 0, _draws_of_targets(draws, is_least, bundle))


def _compactness_of_draws(bundle: Curves) -> tuple[Tensor, Tensor]:
    """EC of each case and draw, and whether the prediction changed.  (Q, D), (Q, D) bool"""
    flips = bundle.flips[:, None]
    if bundle.redrawn_flips is not None:
        flips = torch.cat([flips, bundle.redrawn_flips], 1)
    num_draws = flips.size(1)
    candidates = bundle.candidates.repeat_interleave(num_draws)
    found = effective_compactness(flips.flatten(0, 1), candidates, bundle.cap)
    return found.ec.view(-1, num_draws), found.flipped.view(-1, num_draws)


def _draws_of_targets(draws: Tensor, is_least: Tensor, bundle: Curves) -> Tensor | None:
    """Of each target, the ECs of the first case with the least mean; None for a single draw.

    (Q, D) -> (T, D), float64; NaN for a target without a case
    """
    if draws.size(1) == 1:
        return None
    case = torch.arange(len(draws), device=draws.device).where(is_least, len(draws))
    first = min_over_cases(case, bundle.target, bundle.num_targets)
    chosen = draws[first.nan_to_num(0).long()].double()
    return chosen.where(first.isfinite()[:, None], torch.nan)
