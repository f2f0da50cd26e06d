"""Effective Compactness (EC): how many edits, in the order of the explanation, change the
prediction.

    EC = min({ k >= 1 : prediction after k edits differs } ∪ { cap, number of candidates })

Low is good. A target that never flips gets the bound, so a failure with 3 edges looks better than a
flip at 5: `flipped` says which it is, and the *flip curve* F(k) = share of targets flipped within k
edits (`Results.flip_curve`) has no such fault. With the bound at the cap for all,

    mean of min(T, cap) = 1 + Σ_{k=1}^{cap-1} (1 - F(k)).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from graphgauge.core import BadSetting, UndefinedScore
from graphgauge.metrics.base import Curves, Metric, min_over_cases

_TOLERANCE = 1e-6


class Compactness(NamedTuple):
    """The paper's number for each of T targets, and whether the prediction changed."""

    ec: Tensor  #: (T,) int64
    flipped: Tensor  #: (T,) bool


def class_flips(prob: Tensor, label: Tensor, tolerance: float = _TOLERANCE) -> Tensor:
    """Whether another class exceeds the first one by more than the tolerance.
    (T, K, C), (T,) -> (T, K) bool
    """
    own = prob.gather(2, label[:, None, None].expand(-1, prob.size(1), 1))[..., 0]
    others = prob.scatter(2, label[:, None, None].expand(-1, prob.size(1), 1), -torch.inf).amax(2)
    return others - own > tolerance


def value_flips(value: Tensor, first: Tensor, width: float) -> Tensor:
    """Whether a value moved by more than ``width``, either way.  (T, K), (T,) -> (T, K) bool"""
    return (value - first[:, None]).abs() > width


def effective_compactness(flips: Tensor, candidates: Tensor, cap: int = 100) -> Compactness:
    """From "has flipped after k edits" for k = 1..K (T, K), and the number of candidates (T,), 1 or
    more.

    >>> effective_compactness(torch.tensor([[False, True, False], [False, False, False]]), torch.tensor([3, 2]))
    Compactness(ec=tensor([2, 2]), flipped=tensor([ True, False]))
    """
    if cap < 1:
        raise BadSetting(f"cap must be 1 or more, but is {cap}.")
    if bool((candidates < 1).any()):
        raise UndefinedScore(
            "EC counts edits, but a target has none to make: record it as 'empty'."
        )
    bound = candidates.clamp(max=cap)
    steps = torch.arange(1, flips.size(1) + 1, device=flips.device)
    counts = flips & (steps <= bound[:, None])
    flipped = counts.any(1)
    return Compactness(torch.where(flipped, counts.int().argmax(1) + 1, bound), flipped)


@dataclass(frozen=True)
class EffectiveCompactness(Metric[Curves]):
    """Smallest number of edits that changes the prediction, the least over a target's cases; at
    most min(cap, candidates).
    """

    name = "ec"
    bounds = (1.0, torch.inf)
    higher_is_better = False
    chance = None
    needs = "curves"

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        ec = effective_compactness(bundle.flips, bundle.candidates, bundle.cap).ec
        return min_over_cases(ec, bundle.target, bundle.num_targets)
