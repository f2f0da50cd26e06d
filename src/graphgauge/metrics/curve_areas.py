"""Areas under curves, and the share of negligible scores.

deletion_auc      mean height after 1..K edits, K = min(cap, candidates); low is good
insertion_auc     all edits are made, then taken back best first: mean height with 1..K taken
                  back; high is good
sparsity          1 - share of scores whose magnitude exceeds 1 % of the largest
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import UndefinedScore
from graphgauge.metrics.base import Metric, mean_over_cases, stack_values
from graphgauge.metrics.bundles import Curves, Vectors
from graphgauge.metrics.curve_comparison import mean_height
from graphgauge.metrics.fidelity import require_part

_NEGLIGIBLE = 0.01


def deletion_auc(curve: Tensor, length: Tensor) -> Tensor:
    """Mean height of each curve within its length.  (Q, K), (Q,) -> (Q,)

    Args:
        curve: Heights after 1..K edits in the explanation's order.
        length: How many of the K steps count, 1 or more.
    """
    return mean_height(curve[:, None], length)[:, 0]


def insertion_auc(insertion: Tensor, length: Tensor) -> Tensor:
    """Mean height while all edits are taken back, best first.  (Q, K), (Q,) -> (Q,)

    Args:
        insertion: Heights with all edits made but the first 1..K.
        length: How many of the K steps count, 1 or more.
    """
    return mean_height(insertion[:, None], length)[:, 0]


def sparsity(score: Tensor) -> Tensor:
    """1 - share of scores whose magnitude exceeds 1 % of the largest; 1 where all are 0.

    (E,) -> ()

    >>> sparsity(torch.tensor([1.0, -0.5, 0.009, 0.0])).item()
    0.5
    """
    if len(score) == 0:
        raise UndefinedScore(
            "sparsity is a share of the scores, but there are none: record the target as 'empty'."
        )
    magnitude = score.abs()
    return 1 - (magnitude > _NEGLIGIBLE * magnitude.max()).double().mean()


@dataclass(frozen=True)
class DeletionAuc(Metric[Curves]):
    """Mean height of the explanation's curve; the mean over cases.

    Between 0 and 1 for probabilities.
    """

    name = "deletion_auc"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = False
    chance = None
    needs = "curves"
    parts = ()

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        area = deletion_auc(bundle.curve, bundle.length)
        return mean_over_cases(area, bundle.target, bundle.num_targets)


@dataclass(frozen=True)
class InsertionAuc(Metric[Curves]):
    """Mean height while edits are taken back, best first, after all were made.

    The value is the mean over cases; between 0 and 1 for probabilities.
    """

    name = "insertion_auc"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = True
    chance = None
    needs = "curves"
    parts = ("insertion",)

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        insertion = require_part(bundle.insertion, "insertion", self.name)
        area = insertion_auc(insertion, bundle.length)
        return mean_over_cases(area, bundle.target, bundle.num_targets)


@dataclass(frozen=True)
class Sparsity(Metric[Vectors]):
    """Share of scores that are negligible; no value where there are no scores."""

    name = "sparsity"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "scores"

    def __call__(self, bundle: Vectors) -> Tensor:
        """(T,)"""
        without = torch.tensor(torch.nan)
        return stack_values(
            [sparsity(score).cpu() if len(score) else without for score in bundle.score]
        )
