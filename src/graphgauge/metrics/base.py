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
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

import torch
from torch import Tensor

from graphgauge.metrics.bundles import AnyBundle

BundleKind = Literal["curves", "pairs", "scores", "truth"]
BUNDLE_KINDS: tuple[BundleKind, ...] = get_args(BundleKind)
#: what of `Curves` a metric reads; a prediction that is no number elsewhere does not matter.
#: "flips": the explanation's curve up to its first flip; "comparison": the paper's comparison with
#: random orders; "orders": the whole curve and its random orders; "all": whatever was measured
CurveScope = Literal["flips", "comparison", "orders", "all"]
#: when an Evaluator measures a shipped metric: always, with ``twins=True``, or with ``extras=True``
MetricRole = Literal["paper", "calibrated", "extra"]
MetricT = TypeVar("MetricT", bound="AnyMetric")
BundleT = TypeVar("BundleT", bound=AnyBundle, contravariant=True)


class MetricSettings(Protocol):
    """What metrics take from the settings of an evaluation."""

    @property
    def trials(self) -> tuple[int, int]: ...
    @property
    def tau(self) -> float | None: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def early_stop(self) -> Literal["paper", "betting", "none"]: ...
    @property
    def top(self) -> int | float: ...
    @property
    def cap(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Measurement:
    """What a metric gives for T targets, and what is worth knowing of their Q cases.

    Args:
        value: The value of each target, NaN where there is none.  (T,), float64
        per_case: The value of each case.  (Q,)
        flipped: Whether the prediction of each target changed.  (T,) bool
        draws: The values under each draw of what is random in the target's case.  (T, D)
        trials: How many random curves count in each case.  (Q,)
        stop_reasons: Why there were no more.  (Q,)
        levels: The values at 10, 20 .. 90 % of the candidates.  (T, 9)
    """

    value: Tensor
    per_case: Tensor | None = None
    flipped: Tensor | None = None
    draws: Tensor | None = None
    trials: Tensor | None = None
    stop_reasons: Sequence[str] | None = None
    levels: Tensor | None = None


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
    #: what else of `Curves` it reads
    scope: ClassVar[CurveScope] = "all"
    #: when an Evaluator measures it by itself
    role: ClassVar[MetricRole] = "extra"
    #: the tasks that it has a meaning for
    tasks: ClassVar[tuple[str, ...]] = ("classification", "regression")

    @classmethod
    def from_settings(cls: type[MetricT], settings: MetricSettings) -> MetricT:
        """The metric with the parameters that the settings of an evaluation give it."""
        return cls()

    @abstractmethod
    def __call__(self, bundle: BundleT) -> Tensor:
        """Compute the value of each target, NaN where there is none.  (T,), float64"""

    def measure(self, bundle: BundleT) -> Measurement:
        """Compute the values, and whatever else the results should hold of them.

        The Evaluator calls this. Metrics that know more than a value for each target override it.
        """
        return Measurement(self(bundle))


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

    Args:
        value: One value, or row of values, for each case.
        target: The number of each case's target, 0..T-1.
        num_targets: T.

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
