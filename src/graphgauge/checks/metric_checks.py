"""The checks of a metric, one function each, named for what must be true.

They try the metric on bundles made for the purpose; see `graphgauge.checks.suite` for what a check
returns and raises. What values may depend on is checked in `graphgauge.checks.metric_invariances`.
"""

import math
import pickle
from dataclasses import FrozenInstanceError

import torch
from torch import Tensor

from graphgauge.checks.bundle_rewrites import has_case
from graphgauge.checks.metric_bundles import empty_bundle, example_bundles
from graphgauge.checks.metric_grades import GradedBundles, graded_bundles, meaningless_bundles
from graphgauge.checks.metric_invariances import INVARIANCE_CHECKS
from graphgauge.checks.metric_trial import (
    ROUNDING_TOLERANCE,
    MetricCheck,
    MetricTrial,
    describe_fault,
    values_are_close,
)
from graphgauge.checks.suite import InapplicableCheck, fail_unless
from graphgauge.core import GraphgaugeError
from graphgauge.metrics import BUNDLE_KINDS, AnyBundle

_NUM_BUNDLES = 6  #: seeds of the bundles on which values must lie in the bounds
#: standard errors that the mean of meaningless explanations may be away from the declared chance
_CHANCE_ERRORS = 4.5

# --- what a metric is -----------------------------------------------------------------------------


def name_can_be_typed(trial: MetricTrial) -> None:
    """The name is a lower-case identifier, as results and experiment files use it."""
    name = getattr(trial.metric, "name", None)
    fail_unless(
        isinstance(name, str) and name.isidentifier() and name == name.lower(),
        f"name is {name!r}, not like 'my_metric'",
    )


def metric_says_what_its_number_means(trial: MetricTrial) -> None:
    """The metric says which way is better, what it is called on, and what its checks must know."""
    for name in ("higher_is_better", "ordered_trials", "randomised"):
        flag = getattr(trial.metric, name, None)
        fail_unless(isinstance(flag, bool), f"{name} is {flag!r}, not True or False")
    needs = getattr(trial.metric, "needs", None)
    fail_unless(needs in BUNDLE_KINDS, f"needs is {needs!r}, not one of {', '.join(BUNDLE_KINDS)}")


def bounds_are_an_interval(trial: MetricTrial) -> None:
    """The bounds are a lower number and a higher one; infinity where there is no bound."""
    bounds = getattr(trial.metric, "bounds", None)
    if not isinstance(bounds, tuple) or len(bounds) != 2 or not all(map(_is_real_number, bounds)):
        raise AssertionError(f"bounds are {bounds!r}, not two numbers")
    fail_unless(
        bounds[0] < bounds[1], f"bounds are {bounds}: the lower one is not below the upper one"
    )


def chance_lies_in_the_bounds(trial: MetricTrial) -> None:
    """Chance is a finite number that a value can be, or None where it depends on the case."""
    fail_unless(
        hasattr(trial.metric, "chance"),
        "chance is missing: the mean value of scores that mean nothing, or None",
    )
    chance, bounds = trial.metric.chance, _declared_bounds(trial)
    if chance is None:
        return
    fail_unless(
        _is_real_number(chance) and math.isfinite(chance),
        f"chance is {chance!r}, not a number or None",
    )
    fail_unless(
        bounds[0] <= chance <= bounds[1], f"chance is {chance}, outside of the bounds {bounds}"
    )


def metric_cannot_be_changed(trial: MetricTrial) -> None:
    """The metric is frozen, and can be a key of a dictionary."""
    hash(trial.metric)
    try:
        trial.metric.not_a_field = None  # type: ignore[attr-defined]
    except FrozenInstanceError:
        return
    del trial.metric.not_a_field  # type: ignore[attr-defined]
    raise AssertionError("attributes can be set: write @dataclass(frozen=True) above the class")


def metric_can_travel(trial: MetricTrial) -> None:
    """The metric can be sent to a worker process and back."""
    try:
        text = pickle.dumps(trial.metric)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(
            "the metric cannot be sent to worker processes, define it at the top of a module: "
            f"{error}"
        ) from error
    fail_unless(
        pickle.loads(text) == trial.metric,
        "the metric comes back from a worker process as another one",
    )


# --- the form of values ---------------------------------------------------------------------------


def some_targets_have_a_value(trial: MetricTrial) -> str | None:
    """The metric accepts bundles, and finds numbers in them."""
    values = trial.values_by_kind
    reasons = [f"'{kind}' ({reason})" for kind, reason in trial.refusals.items()]
    fail_unless(bool(values), f"the metric refuses every bundle: {', '.join(reasons[:1])}")
    fail_unless(
        any(bool(value.isfinite().any()) for value in values.values()),
        "no target of any bundle gets a number",
    )
    return f"the metric refuses {', '.join(reasons)}" if reasons else None


def one_value_per_target(trial: MetricTrial) -> None:
    """The metric returns a tensor of floating-point numbers, (T,)."""
    for kind, bundle in trial.bundles.items():
        try:
            fault = describe_fault(trial.call_on_copy(bundle), bundle)
        except GraphgaugeError:
            continue  # `some_targets_have_a_value` reports it
        fail_unless(not fault, f"{fault} ('{kind}')")


def no_targets_give_no_values(trial: MetricTrial) -> None:
    """An empty bundle is a valid question."""
    bundle = empty_bundle(trial.needs)
    fault = describe_fault(trial.call_on_copy(bundle), bundle)
    fail_unless(not fault, fault)


def targets_without_a_case_have_no_value(trial: MetricTrial) -> None:
    """A target without a case gets NaN: never 0, never what another target has."""
    for kind, (bundle, value) in trial.answered.items():
        wrong = (~has_case(bundle) & ~value.isnan()).nonzero()[:, 0].tolist()
        for t in wrong[:1]:
            raise AssertionError(
                f"target {t} of '{kind}' has nothing to measure, but gets {value[t]:.6g} instead "
                "of NaN"
            )


def values_lie_in_the_bounds(trial: MetricTrial) -> None:
    """No value of many bundles of every kind lies outside of the bounds, up to rounding."""
    low, high = _declared_bounds(trial)
    least, most = low - ROUNDING_TOLERANCE, high + ROUNDING_TOLERANCE
    for seed in range(_NUM_BUNDLES):
        for kind, bundle in example_bundles(trial.needs, seed).items():
            if kind in trial.answered:
                value = trial.values(bundle)
                outside = value[(value < least) | (value > most)].tolist()
                fail_unless(
                    not outside,
                    f"values such as {outside[:1]} ('{kind}') lie outside of the bounds "
                    f"{low, high}",
                )


# --- what values mean -----------------------------------------------------------------------------


def better_explanations_are_not_worse(trial: MetricTrial) -> str | None:
    """The ideal explanation is at least as good as a mediocre one, and that as the worst."""
    graded = {
        kind: values
        for kind, grades in graded_bundles(trial.needs).items()
        if (values := _graded_values(trial, grades)) is not None
    }
    if not graded:
        raise InapplicableCheck(
            "the metric has no value for explanations that are known to be good or bad"
        )
    for kind, values in graded.items():
        wrong_order = _describe_wrong_order(trial, kind, values)
        if wrong_order and trial.needs == "scores":
            return f"{wrong_order}; scores alone may be read in another way"
        fail_unless(not wrong_order, wrong_order)
    if all(
        bool(values_are_close(values[0], values[2]).all())
        and bool(values_are_close(values[0], values[1]).all())
        for values in graded.values()
    ):
        return "the ideal, a mediocre and the worst explanation get the same value"
    return None


def _graded_values(trial: MetricTrial, grades: GradedBundles) -> Tensor | None:
    """Values of targets that have one for each grade; None where there are none.  (3, number)"""
    try:
        values = torch.stack([trial.values(bundle) for bundle in grades])
    except GraphgaugeError:
        return None
    usable = values[:, ~values.isnan().any(0)]
    return usable if usable.numel() else None


def _describe_wrong_order(trial: MetricTrial, kind: str, values: Tensor) -> str:
    """Where a worse explanation gets a better value; '' if none does."""
    higher_is_better = trial.metric.higher_is_better
    quality = values if higher_is_better else -values
    better, worse = quality[:2], quality[1:]
    is_wrong = (better < worse - ROUNDING_TOLERANCE) & ~values_are_close(better, worse)
    wrong = is_wrong.any(0).nonzero()[:, 0].tolist()
    if not wrong:
        return ""
    numbers = ", ".join(f"{value:.6g}" for value in values[:, wrong[0]].tolist())
    return (
        f"the ideal, a mediocre and the worst explanation ('{kind}') get {numbers}, but "
        f"higher_is_better is {higher_is_better}"
    )


def meaningless_explanations_reach_the_chance(trial: MetricTrial) -> None:
    """The mean over many targets lies within 4.5 standard errors of the declared chance."""
    chance = getattr(trial.metric, "chance", None)
    if not _is_real_number(chance):
        raise InapplicableCheck(
            "chance is None: it depends on the case" if chance is None else f"chance is {chance!r}"
        )
    bundles = meaningless_bundles(trial.needs)
    if not bundles:
        raise InapplicableCheck("scores alone do not show whether they mean something")
    have_mean = [_reaches_chance(trial, kind, bundle) for kind, bundle in bundles.items()]
    fail_unless(
        any(have_mean), "chance is declared, but explanations that mean nothing have no value"
    )


def _reaches_chance(trial: MetricTrial, kind: str, bundle: AnyBundle) -> bool:
    """Fail where the mean over targets is not the declared chance; False where there is no mean."""
    try:
        value = trial.values(bundle)
    except GraphgaugeError:
        return False
    value = value[~value.isnan()]
    if len(value) < 2:
        return False
    chance = trial.metric.chance
    mean, error = float(value.mean()), float(value.std()) / len(value) ** 0.5
    fail_unless(
        abs(mean - float(chance or 0.0)) <= _CHANCE_ERRORS * error + ROUNDING_TOLERANCE,
        f"explanations that mean nothing ('{kind}') get {mean:.4f} ± {error:.4f}, but chance is "
        f"{chance}",
    )
    return True


def _is_real_number(value: object) -> bool:
    """Whether a value is a number, but not NaN and not a truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def _declared_bounds(trial: MetricTrial) -> tuple[float, float]:
    """The bounds; skips the check where they are none."""
    try:
        bounds_are_an_interval(trial)
    except AssertionError as reason:
        raise InapplicableCheck(str(reason)) from reason
    return trial.metric.bounds


#: every check of a metric, by name
METRIC_CHECKS: dict[str, MetricCheck] = {
    check.__name__: check
    for check in (
        name_can_be_typed,
        metric_says_what_its_number_means,
        bounds_are_an_interval,
        chance_lies_in_the_bounds,
        metric_cannot_be_changed,
        metric_can_travel,
        some_targets_have_a_value,
        one_value_per_target,
        no_targets_give_no_values,
        targets_without_a_case_have_no_value,
        values_lie_in_the_bounds,
        better_explanations_are_not_worse,
        meaningless_explanations_reach_the_chance,
        *INVARIANCE_CHECKS,
    )
}
