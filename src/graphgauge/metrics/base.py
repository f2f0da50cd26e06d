"""What a metric is, and how values of cases become values of targets.

A metric runs no model. What was measured arrives in a bundle (see `graphgauge.metrics.bundles`):

    Curves    outputs along edits, in the explanation's order and in random orders
    Pairs     scores of independent explanations of the same targets
    Vectors   the scores of one explanation per target
    Truths    the same, together with which of the scored things truly matter

A *case* is a target and, for features, one of its references; edges have one case per target. A
target without a case, or with nothing to compare, has no value: NaN. NaN inside the measured
outputs is an error and never becomes a score.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, get_args

import torch
from torch import Tensor

from graphgauge.metrics.bundles import AnyBundle

BundleKind = Literal["curves", "pairs", "scores", "truth"]
BUNDLE_KINDS: tuple[BundleKind, ...] = get_args(BundleKind)
BundleT = TypeVar("BundleT", bound=AnyBundle, contravariant=True)


@dataclass(frozen=True)
class Metric(ABC, Generic[BundleT]):
    """A metric says what its number means, and computes it for all targets of a bundle.

    Subclasses are frozen dataclasses; their fields are the metric's parameters. A metric of your
    own needs the class attributes below and ``__call__``; `graphgauge.check_metric` tests it.
    """

    #: lower-case identifier, as results and experiment files use it
    name: ClassVar[str]
    #: no value lies outside
    bounds: ClassVar[tuple[float, float]]
    higher_is_better: ClassVar[bool]
    #: mean value of meaningless scores; None where it depends on the case
    chance: ClassVar[float | None]
    #: the kind of bundle that the metric is called on
    needs: ClassVar[BundleKind]
    #: whether random curves, or pairs, are looked at one after the other, as early stopping does
    ordered_trials: ClassVar[bool] = False
    #: whether the metric draws random numbers from the seeds of its bundle
    randomised: ClassVar[bool] = False
    #: optional parts of `Curves` that the metric reads
    parts: ClassVar[tuple[str, ...]] = ("kept", "kept_prob", "start_prob")

    @abstractmethod
    def __call__(self, bundle: BundleT) -> Tensor:
        """Compute the value of each target, NaN where there is none.  (T,), float64"""


AnyMetric: TypeAlias = Metric[Any]  #: a metric on bundles of whatever kind


def mean_over_cases(value: Tensor, target: Tensor, num_targets: int) -> Tensor:
    """Mean of each target's cases, NaN for a target without a case.  (Q, ...), (Q,) -> (T, ...)

    Args:
        value: One value, or row of values, for each case.
        target: The number of each case's target, 0..T-1.
        num_targets: T.

    >>> mean_over_cases(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 2, 2]), 3)
    tensor([1., nan, 3.], dtype=torch.float64)
    """
    shape = (num_targets, *value.shape[1:])
    total = torch.zeros(shape, dtype=torch.float64, device=value.device)
    num_cases = target.bincount(minlength=num_targets).view(-1, *[1] * (value.dim() - 1))
    return total.index_add(0, target, value.double()) / num_cases


def min_over_cases(value: Tensor, target: Tensor, num_targets: int) -> Tensor:
    """Smallest value of each target's cases, NaN without a case.  (Q, ...), (Q,) -> (T, ...)

    >>> min_over_cases(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 2, 2]), 3)
    tensor([1., nan, 2.], dtype=torch.float64)
    """
    shape = (num_targets, *value.shape[1:])
    without = torch.full(shape, torch.nan, dtype=torch.float64, device=value.device)
    index = target.view(-1, *[1] * (value.dim() - 1)).expand_as(value)
    return without.scatter_reduce(0, index, value.double(), "amin", include_self=False)


def stack_values(values: Sequence[Tensor]) -> Tensor:
    """One value per target as one tensor.  T times () -> (T,), float64"""
    if not values:
        return torch.zeros(0, dtype=torch.float64)
    return torch.stack([value.double() for value in values])
