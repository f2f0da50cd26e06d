"""What the checks of metrics share: a metric tried on specimens, and how two sets of values are
compared.

A metric that draws from the seeds of its bundle gets other values where the bundle is written in
another way. Its values are then compared over seeds: with means m, m' and standard errors se, se'
over 12 seeds each, |m - m'| <= 6 sqrt(se² + se'²).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from graphgauge.checks.bundle_rewrites import copy_bundle, number_of_targets, with_seeds
from graphgauge.checks.metric_bundles import example_bundles
from graphgauge.checks.model_checks import InapplicableCheck
from graphgauge.core import GraphgaugeError
from graphgauge.metrics import BUNDLE_KINDS, Metric

ROUNDING_TOLERANCE = 1e-9  #: values this close, absolutely or relatively, differ by rounding only
_NUM_SEEDS, _STANDARD_ERRORS = 12, 6.0


@dataclass(frozen=True)
class MetricTrial:
    """A metric, and bundles of its kind to try it on."""

    metric: Metric[Any]
    refusals: dict[str, str] = field(
        default_factory=dict
    )  #: kind of bundle -> why the metric has no values there
    averages: dict[str, tuple[Tensor, Tensor]] = field(
        default_factory=dict
    )  #: kind of bundle -> mean and error over seeds

    @property
    def needs(self) -> str:
        """The kind of bundle; skips the check where the metric does not say it."""
        needs = getattr(self.metric, "needs", None)
        if needs not in BUNDLE_KINDS:
            raise InapplicableCheck(f"needs is {needs!r}, which is no kind of bundle")
        return str(needs)

    @cached_property
    def bundles(self) -> dict[str, Any]:
        """Specimens of every kind."""
        return example_bundles(self.needs)

    @cached_property
    def values_by_kind(self) -> dict[str, Tensor]:
        """The values of every specimen that the metric does not refuse; `refusals` says why it
        does.
        """
        return {
            kind: value for kind in self.bundles if (value := self.unless_refused(kind)) is not None
        }

    def unless_refused(self, kind: str) -> Tensor | None:
        """The values of a specimen, or None and a note of the refusal."""
        try:
            return self.values(self.bundles[kind])
        except GraphgaugeError as error:
            self.refusals[kind] = str(error)
            return None

    @property
    def answered(self) -> dict[str, tuple[Any, Tensor]]:
        """Specimens and their values; skips the check where there are none."""
        if not self.values_by_kind:
            raise InapplicableCheck("it refuses every bundle")
        return {kind: (self.bundles[kind], value) for kind, value in self.values_by_kind.items()}

    def call_on_copy(self, bundle: Any) -> Any:
        """What the metric returns; it gets a copy, so that nothing it does to its input reaches
        another check.
        """
        return self.metric(copy_bundle(bundle))

    def values(self, bundle: Any) -> Tensor:
        """The same, where it is one number per target; else skips the check.  (T,), float64"""
        found = self.call_on_copy(bundle)
        if describe_fault(found, bundle):
            raise InapplicableCheck(
                f"it does not give one value per target: {describe_fault(found, bundle)}"
            )
        return found.detach().double().cpu()

    def mean_over_seeds(self, bundle: Any) -> tuple[Tensor, Tensor]:
        """Mean and standard error of the values over seeds.  (T,), (T,)"""
        drawn = torch.stack([self.values(with_seeds(bundle, draw)) for draw in range(_NUM_SEEDS)])
        return drawn.mean(0), drawn.std(0) / _NUM_SEEDS**0.5


def describe_fault(found: Any, bundle: Any) -> str:
    """What is wrong with values of a bundle; '' if nothing is."""
    number = number_of_targets(bundle)
    if not isinstance(found, Tensor):
        return f"a {type(found).__name__} is returned, not a tensor"
    if found.shape != (number,):
        return f"{number} targets gave values of shape {tuple(found.shape)}"
    return "" if found.is_floating_point() else f"values are {found.dtype}, which has no NaN"


def ensure_invariant(
    trial: MetricTrial,
    rewrite: Callable[[Any], Any],
    reason: str,
    close: float = ROUNDING_TOLERANCE,
) -> None:
    """Fail with ``reason`` where rewriting a specimen moves a value."""
    for kind, (bundle, expected) in trial.answered.items():
        other = rewrite(bundle)
        found = trial.values(other)
        if trial.metric.randomised and not bool(values_are_close(found, expected, close).all()):
            _ensure_close_over_seeds(trial, kind, bundle, other, reason, close)
        else:
            ensure_values_close(found, expected, kind, reason, close)


def values_are_close(found: Tensor, expected: Tensor, close: float = ROUNDING_TOLERANCE) -> Tensor:
    """Equal up to rounding, NaN at the same targets.  (T,), (T,) -> (T,) bool"""
    return torch.isclose(found, expected, rtol=close, atol=close, equal_nan=True)


def ensure_values_close(
    found: Tensor, expected: Tensor, kind: str, reason: str, close: float = ROUNDING_TOLERANCE
) -> None:
    """Fail with ``reason`` and the first target whose value differs."""
    moved = (~values_are_close(found, expected, close)).nonzero()[:, 0].tolist()
    for t in moved[:1]:
        raise AssertionError(
            f"{reason}: target {t} of '{kind}' gets {found[t]:.6g} instead of {expected[t]:.6g}"
        )


def _ensure_close_over_seeds(
    trial: MetricTrial, kind: str, bundle: Any, other: Any, reason: str, close: float
) -> None:
    """The same for a metric that draws: the means over seeds agree."""
    if trial.needs != "pairs":
        raise InapplicableCheck("it draws at random, and only pairs carry seeds to draw from")
    if kind not in trial.averages:
        trial.averages[kind] = trial.mean_over_seeds(bundle)
    (mean, error), (other_mean, other_error) = trial.averages[kind], trial.mean_over_seeds(other)
    allowed = _STANDARD_ERRORS * (error.square() + other_error.square()).sqrt() + close
    same = (mean.isnan() & other_mean.isnan()) | ((mean - other_mean).abs() <= allowed)
    for t in (~same).nonzero()[:1, 0].tolist():
        means = f"{other_mean[t]:.6g} on average over seeds instead of {mean[t]:.6g}"
        raise AssertionError(f"{reason}: target {t} of '{kind}' gets {means}")
