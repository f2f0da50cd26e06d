"""A metric tried on example bundles, and how two sets of values are compared.

A metric that draws from the seeds of its bundle gives other values where the bundle is written in
another way. Its values are then compared over seeds: with means m, m' and standard errors se, se'
over 12 seeds each, |m - m'| <= 6 sqrt(se² + se'²).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from graphgauge.checks.bundle_rewrites import copy_bundle, number_of_targets, with_seeds
from graphgauge.checks.metric_bundles import example_bundles
from graphgauge.checks.suite import InapplicableCheck
from graphgauge.core import GraphgaugeError
from graphgauge.metrics import BUNDLE_KINDS, AnyBundle, AnyMetric, BundleKind, Pairs

ROUNDING_TOLERANCE = 1e-9  #: absolute and relative difference that rounding explains
_NUM_SEEDS, _STANDARD_ERRORS = 12, 6.0


@dataclass(frozen=True)
class MetricTrial:
    """A metric, and bundles of its kind to try it on."""

    metric: AnyMetric
    #: kind of bundle -> why the metric has no values there
    refusals: dict[str, str] = field(default_factory=dict)
    #: kind of bundle -> mean and standard error of its values over seeds
    averages: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @property
    def needs(self) -> BundleKind:
        """The kind of bundle; skips the check where the metric does not name one."""
        needs: object = getattr(self.metric, "needs", None)
        for kind in BUNDLE_KINDS:
            if needs == kind:
                return kind
        raise InapplicableCheck(f"needs is {needs!r}, which is no kind of bundle")

    @cached_property
    def bundles(self) -> dict[str, AnyBundle]:
        """Example bundles of every kind."""
        return example_bundles(self.needs)

    @cached_property
    def values_by_kind(self) -> dict[str, Tensor]:
        """Values of each example bundle that the metric accepts; `refusals` holds the others."""
        values = {kind: self._values_unless_refused(kind) for kind in self.bundles}
        return {kind: value for kind, value in values.items() if value is not None}

    def _values_unless_refused(self, kind: str) -> Tensor | None:
        try:
            return self.values(self.bundles[kind])
        except GraphgaugeError as error:
            self.refusals[kind] = str(error)
            return None

    @property
    def answered(self) -> dict[str, tuple[AnyBundle, Tensor]]:
        """Example bundles with their values; skips the check where there are none."""
        if not self.values_by_kind:
            raise InapplicableCheck("the metric refuses every bundle")
        return {kind: (self.bundles[kind], value) for kind, value in self.values_by_kind.items()}

    def call_on_copy(self, bundle: AnyBundle) -> object:
        """What the metric returns for a copy, so that nothing it does to its input has effects."""
        return self.metric(copy_bundle(bundle))

    def values(self, bundle: AnyBundle) -> Tensor:
        """Values of the targets; skips the check where there is not one number for each.

        (T,), float64
        """
        values = self.call_on_copy(bundle)
        fault = describe_fault(values, bundle)
        if fault or not isinstance(values, Tensor):
            raise InapplicableCheck(f"the metric does not give one value per target: {fault}")
        return values.detach().double().cpu()

    def mean_over_seeds(self, bundle: Pairs) -> tuple[Tensor, Tensor]:
        """Mean and standard error of the values over seeds.  (T,), (T,)"""
        drawn = torch.stack([self.values(with_seeds(bundle, draw)) for draw in range(_NUM_SEEDS)])
        return drawn.mean(0), drawn.std(0) / _NUM_SEEDS**0.5


MetricCheck = Callable[[MetricTrial], str | None]


def describe_fault(values: object, bundle: AnyBundle) -> str:
    """What is wrong with the form of a bundle's values; '' if nothing is."""
    num_targets = number_of_targets(bundle)
    if not isinstance(values, Tensor):
        return f"a {type(values).__name__} is returned, not a tensor"
    if values.shape != (num_targets,):
        return f"{num_targets} targets gave values of shape {tuple(values.shape)}"
    return "" if values.is_floating_point() else f"values are {values.dtype}, which has no NaN"


def ensure_invariant(
    trial: MetricTrial, rewrite: Callable[[AnyBundle], AnyBundle], reason: str
) -> None:
    """Fail with ``reason`` where rewriting an example bundle changes a value."""
    for kind, (bundle, expected) in trial.answered.items():
        rewritten = rewrite(bundle)
        values = trial.values(rewritten)
        if trial.metric.randomised and not bool(values_are_close(values, expected).all()):
            _ensure_close_over_seeds(trial, kind, bundle, rewritten, reason)
        else:
            ensure_values_close(values, expected, kind, reason)


def values_are_close(
    values: Tensor, expected: Tensor, tolerance: float = ROUNDING_TOLERANCE
) -> Tensor:
    """Equal up to rounding, with NaN at the same targets.  (T,), (T,) -> (T,) bool"""
    return torch.isclose(values, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def ensure_values_close(
    values: Tensor,
    expected: Tensor,
    kind: str,
    reason: str,
    tolerance: float = ROUNDING_TOLERANCE,
) -> None:
    """Fail with ``reason`` and the first target whose value differs."""
    differing = (~values_are_close(values, expected, tolerance)).nonzero()[:, 0].tolist()
    for t in differing[:1]:
        raise AssertionError(
            f"{reason}: target {t} of '{kind}' gets {values[t]:.6g} instead of {expected[t]:.6g}"
        )


def _ensure_close_over_seeds(
    trial: MetricTrial, kind: str, bundle: AnyBundle, rewritten: AnyBundle, reason: str
) -> None:
    """Fail with ``reason`` where the means over seeds differ; for metrics that draw."""
    if not isinstance(bundle, Pairs) or not isinstance(rewritten, Pairs):
        raise InapplicableCheck("the metric draws at random, and only pairs carry seeds")
    if kind not in trial.averages:
        trial.averages[kind] = trial.mean_over_seeds(bundle)
    (mean, error), (new_mean, new_error) = trial.averages[kind], trial.mean_over_seeds(rewritten)
    allowed = _STANDARD_ERRORS * (error.square() + new_error.square()).sqrt() + ROUNDING_TOLERANCE
    is_same = (mean.isnan() & new_mean.isnan()) | ((mean - new_mean).abs() <= allowed)
    for t in (~is_same).nonzero()[:1, 0].tolist():
        raise AssertionError(
            f"{reason}: target {t} of '{kind}' gets {new_mean[t]:.6g} on average over seeds "
            f"instead of {mean[t]:.6g}"
        )
