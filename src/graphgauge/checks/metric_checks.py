"""The promises of a metric, one small function each, named for what must be true; on bundles made
for the purpose.

A function returns nothing (kept), returns a remark (kept, but people should know), raises
`InapplicableCheck` (says nothing about this metric) or an AssertionError with the reason (broken).
"""

import math
import pickle
import random
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphgauge.checks.bundle_rewrites import (
    copy_bundle,
    gap_places,
    has_case,
    in_precision,
    is_identical,
    number_of_targets,
    same_bits,
    take_targets,
    with_cases_turned,
    with_edges_shuffled,
    with_gap,
    with_nodes_renumbered,
    with_scores_scaled,
    with_trials_shuffled,
    with_value_behind,
)
from graphgauge.checks.metric_bundles import (
    empty_bundle,
    example_bundles,
    graded_bundles,
    meaningless_bundles,
)
from graphgauge.checks.metric_trial import (
    ROUNDING_TOLERANCE,
    MetricTrial,
    describe_fault,
    ensure_invariant,
    ensure_values_close,
    values_are_close,
)
from graphgauge.checks.model_checks import InapplicableCheck, fail_unless
from graphgauge.core import GraphgaugeError, UndefinedScore, preserve_rng_state, save_rng_state
from graphgauge.metrics import BUNDLE_KINDS, Curves

_NUM_BUNDLES = 6  #: seeds of the bundles on which values must lie in the bounds
#: how many standard errors the mean of meaningless explanations may lie from the declared chance
_CHANCE_ERRORS = 4.5
_SINGLE_PRECISION_TOLERANCE = 1e-5  #: what single precision may change
_GAP_VALUES = (torch.nan, torch.inf, -torch.inf)

# --- what a metric is -----------------------------------------------------------------------------


def name_can_be_typed(trial: MetricTrial) -> None:
    """A lower-case identifier, as results and experiment files use it."""
    name = getattr(trial.metric, "name", None)
    fail_unless(
        isinstance(name, str) and name.isidentifier() and name == name.lower(),
        f"name is {name!r}, not like 'my_metric'",
    )


def metric_says_what_its_number_means(trial: MetricTrial) -> None:
    """Which way is better, what it is called on, and what its checks have to know."""
    flags = [
        (name, getattr(trial.metric, name, None))
        for name in ("higher_is_better", "ordered_trials", "randomised")
    ]
    for name, flag in flags:
        fail_unless(isinstance(flag, bool), f"{name} is {flag!r}, not True or False")
    needs = getattr(trial.metric, "needs", None)
    fail_unless(needs in BUNDLE_KINDS, f"needs is {needs!r}, not one of {', '.join(BUNDLE_KINDS)}")


def bounds_are_an_interval(trial: MetricTrial) -> None:
    """A lower number and a higher one; infinity where there is no bound."""
    bounds = getattr(trial.metric, "bounds", None)
    fail_unless(
        isinstance(bounds, tuple) and len(bounds) == 2 and all(map(_is_real_number, bounds)),
        f"bounds are {bounds!r}, not two numbers",
    )
    low, high = bounds  # type: ignore[misc]  # the line above makes sure that there are two
    fail_unless(low < high, f"bounds are {bounds}: the lower one is not below the upper one")


def chance_lies_in_the_bounds(trial: MetricTrial) -> None:
    """A finite number that a value can be; None where it depends on the case."""
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
    """It is frozen, and can be a key of a dictionary."""
    hash(trial.metric)
    try:
        trial.metric.not_a_field = None  # type: ignore[attr-defined]
    except FrozenInstanceError:
        return
    del trial.metric.not_a_field  # type: ignore[attr-defined]
    raise AssertionError("attributes can be set: write @dataclass(frozen=True) above the class")


def metric_can_travel(trial: MetricTrial) -> None:
    """To a worker process and back."""
    try:
        text = pickle.dumps(trial.metric)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(
            f"it cannot be sent to worker processes, define it at the top of a module: {error}"
        ) from error
    fail_unless(
        pickle.loads(text) == trial.metric, "it comes back from a worker process as another one"
    )


# --- the form of values ---------------------------------------------------------------------------


def some_targets_have_a_value(trial: MetricTrial) -> str | None:
    """The metric accepts bundles and finds numbers in them."""
    found = trial.values_by_kind
    reasons = [f"'{kind}' ({reason})" for kind, reason in trial.refusals.items()]
    fail_unless(bool(found), f"it refuses every bundle: {', '.join(reasons[:1])}")
    fail_unless(
        any(bool(value.isfinite().any()) for value in found.values()),
        "no target of any bundle gets a number",
    )
    return f"it refuses {', '.join(reasons)}" if reasons else None


def one_value_per_target(trial: MetricTrial) -> None:
    """A tensor of floating-point numbers, (T,)."""
    for kind, bundle in trial.bundles.items():
        try:
            found = trial.call_on_copy(bundle)
        except GraphgaugeError:
            continue  # `some_targets_have_a_value` says so
        fail_unless(
            not describe_fault(found, bundle), f"{describe_fault(found, bundle)} ('{kind}')"
        )


def no_targets_give_no_values(trial: MetricTrial) -> None:
    """An empty bundle is a valid question."""
    bundle = empty_bundle(trial.needs)
    found = trial.call_on_copy(bundle)
    fail_unless(not describe_fault(found, bundle), describe_fault(found, bundle))


def targets_without_a_case_have_no_value(trial: MetricTrial) -> None:
    """NaN: never 0, never what another target has."""
    for kind, (bundle, value) in trial.answered.items():
        wrong = (~has_case(bundle) & ~value.isnan()).nonzero()[:, 0].tolist()
        for t in wrong[:1]:
            raise AssertionError(
                f"target {t} of '{kind}' has nothing to measure, but gets {value[t]:.6g} instead of NaN"
            )


def values_lie_in_the_bounds(trial: MetricTrial) -> None:
    """Over many bundles of every kind, up to rounding."""
    low, high = _declared_bounds(trial)
    for seed in range(_NUM_BUNDLES):
        for kind, bundle in example_bundles(trial.needs, seed).items():
            if kind in trial.answered:
                value = trial.values(bundle)
                wrong = value[
                    (value < low - ROUNDING_TOLERANCE) | (value > high + ROUNDING_TOLERANCE)
                ].tolist()
                fail_unless(
                    not wrong,
                    f"values such as {wrong[:1]} ('{kind}') lie outside of the bounds {low, high}",
                )


# --- what values mean -----------------------------------------------------------------------------


def better_explanations_are_not_worse(trial: MetricTrial) -> str | None:
    """The ideal explanation is at least as good as a mediocre one, and that as the worst."""
    found = {
        kind: values
        for kind, grades in graded_bundles(trial.needs).items()
        if (values := _graded_values(trial, grades)) is not None
    }
    if not found:
        raise InapplicableCheck("it has no value for explanations that are known to be good or bad")
    wrong = [
        reason
        for kind, values in found.items()
        if (reason := _describe_wrong_order(trial, kind, values))
    ]
    if wrong and trial.needs == "scores":
        return f"{wrong[0]}; scores alone may be read in another way"
    fail_unless(not wrong, "".join(wrong[:1]))
    is_blind = all(
        bool(
            values_are_close(values[0], values[2]).all()
            and values_are_close(values[0], values[1]).all()
        )
        for values in found.values()
    )
    return (
        "it gives the ideal, a mediocre and the worst explanation the same value"
        if is_blind
        else None
    )


def _graded_values(trial: MetricTrial, grades: tuple[Any, Any, Any]) -> Tensor | None:
    """Values of targets that have one for each grade; None where there are none.  (3, number)"""
    try:
        values = torch.stack([trial.values(bundle) for bundle in grades])
    except GraphgaugeError:
        return None
    usable = values[:, ~values.isnan().any(0)]
    return usable if usable.numel() else None


def _describe_wrong_order(trial: MetricTrial, kind: str, values: Tensor) -> str:
    """Where a worse explanation gets a better value; '' if none does."""
    turned = values if trial.metric.higher_is_better else -values
    wrong = (
        ((turned[:2] < turned[1:] - ROUNDING_TOLERANCE) & ~values_are_close(turned[:2], turned[1:]))
        .any(0)
        .nonzero()[:, 0]
        .tolist()
    )
    shown = [f"{value:.6g}" for value in values[:, wrong[0]].tolist()] if wrong else []
    said = f"but higher_is_better is {trial.metric.higher_is_better}"
    return (
        f"the ideal, a mediocre and the worst explanation ('{kind}') get {', '.join(shown)}, {said}"
        if wrong
        else ""
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
        raise InapplicableCheck("whether scores alone mean something cannot be told")
    have_value = [_reaches_chance(trial, kind, bundle) for kind, bundle in bundles.items()]
    fail_unless(
        any(have_value), "chance is declared, but explanations that mean nothing have no value"
    )


def _reaches_chance(trial: MetricTrial, kind: str, bundle: Any) -> bool:
    """Fail where the mean over the targets is not the declared chance; False where there is no
    mean.
    """
    try:
        value = trial.values(bundle)
    except GraphgaugeError:
        return False
    value = value[~value.isnan()]
    if len(value) < 2:
        return False
    mean, error = float(value.mean()), float(value.std()) / len(value) ** 0.5
    is_near = (
        abs(mean - float(trial.metric.chance or 0.0)) <= _CHANCE_ERRORS * error + ROUNDING_TOLERANCE
    )
    fail_unless(
        is_near,
        f"explanations that mean nothing ('{kind}') get {mean:.4f} ± {error:.4f}, but chance is {trial.metric.chance}",
    )
    return True


# --- what values may depend on --------------------------------------------------------------------


def order_of_targets_does_not_matter(trial: MetricTrial) -> None:
    """Reversed targets get reversed values."""
    for kind, (bundle, value) in trial.answered.items():
        order = list(range(number_of_targets(bundle)))[::-1]
        ensure_values_close(
            trial.values(take_targets(bundle, order)),
            value.flip(0),
            kind,
            "values depend on the order of the targets",
        )


def other_targets_do_not_matter(trial: MetricTrial) -> None:
    """Each target alone gets the value it has among others."""
    for kind, (bundle, value) in trial.answered.items():
        for t in range(number_of_targets(bundle)):
            alone = trial.values(take_targets(bundle, [t]))
            ensure_values_close(
                alone, value[t : t + 1], kind, f"alone the value of target {t} differs"
            )


def order_of_cases_does_not_matter(trial: MetricTrial) -> None:
    """References of a target in another order give the same value."""
    if trial.needs != "curves":
        raise InapplicableCheck("there is one case per target")
    ensure_invariant(trial, with_cases_turned, "values depend on the order of the cases")


def order_of_trials_does_not_matter(trial: MetricTrial) -> str | None:
    """Random curves, or pairs, in another order give the same value; unless the metric says that it
    goes through them in turn.
    """
    if trial.needs not in ("curves", "pairs"):
        raise InapplicableCheck("there are no trials")
    if trial.metric.ordered_trials:
        raise InapplicableCheck("ordered_trials is True: they are looked at one after the other")
    hint = "; if it stops early, say ordered_trials = True"
    number = _num_curves_used(trial) if trial.needs == "curves" else None
    ensure_invariant(
        trial,
        lambda bundle: with_trials_shuffled(bundle, number),
        f"values depend on the order of the trials{hint}",
    )
    return f"it looks at the first {number} random curves only" if number is not None else None


def _num_curves_used(trial: MetricTrial) -> int | None:
    """How many random curves, fewer than all, give the values already; None where all take part."""
    for bundle, value in trial.answered.values():
        if not bool(values_are_close(trial.values(with_trials_shuffled(bundle)), value).all()):
            return next(
                (
                    n
                    for n in range(1, bundle.random.size(1))
                    if _first_curves_suffice(trial, bundle, value, n)
                ),
                None,
            )
    return None


def _first_curves_suffice(trial: MetricTrial, curves: Curves, value: Tensor, number: int) -> bool:
    """Whether the first random curves alone give the values."""
    try:
        found = trial.values(replace(curves, random=curves.random[:, :number]))
    except GraphgaugeError:
        return False
    return bool(values_are_close(found, value).all())


def numbers_of_nodes_do_not_matter(trial: MetricTrial) -> None:
    """Nodes, or scored things and their truth, in another order give the same value."""
    if trial.needs == "curves":
        raise InapplicableCheck("curves know no nodes")
    ensure_invariant(
        trial,
        with_nodes_renumbered,
        f"values depend on the order of nodes or entries{_randomised_hint(trial)}",
    )


def order_of_edges_does_not_matter(trial: MetricTrial) -> None:
    """Edges in another order give the same value."""
    if trial.needs != "pairs":
        raise InapplicableCheck("there are no edge scores apart from others")
    ensure_invariant(
        trial,
        with_edges_shuffled,
        f"values depend on the order of the edges{_randomised_hint(trial)}",
    )


def _randomised_hint(trial: MetricTrial) -> str:
    """What a metric that draws has to say."""
    return (
        ""
        if trial.metric.randomised
        else "; if it draws from the seeds of the bundle, say randomised = True"
    )


def scale_of_scores_does_not_matter(trial: MetricTrial) -> None:
    """All scores of a target times one positive number, tiny or huge, give the same value."""
    if trial.needs == "curves":
        raise InapplicableCheck("curves are made of outputs, not of scores")
    ensure_invariant(
        trial,
        with_scores_scaled,
        "values depend on the scale of the scores (is an epsilon added somewhere?)",
    )


def precision_does_not_matter(trial: MetricTrial) -> None:
    """The same numbers in single and in double precision give the same value within 1e-5."""
    for kind, (bundle, _) in trial.answered.items():
        single = in_precision(bundle, torch.float32)
        expected = trial.values(in_precision(single, torch.float64))
        ensure_values_close(
            trial.values(single),
            expected,
            kind,
            "values depend on the precision",
            _SINGLE_PRECISION_TOLERANCE,
        )


def gaps_never_become_a_score(trial: MetricTrial) -> None:
    """NaN and infinity: inside what was measured they are refused or give NaN; behind a curve's
    length nothing counts.
    """
    for kind, (bundle, value) in trial.answered.items():
        for place in gap_places(bundle):
            for gap in _GAP_VALUES:
                fail_unless(
                    _has_no_value(trial, bundle, place, gap),
                    f"{gap} in '{place[0]}' ('{kind}') becomes a finite score",
                )
        if isinstance(bundle, Curves):
            for filler in (*_GAP_VALUES, -5.0, 50.0):
                found = trial.values(with_value_behind(bundle, filler))
                ensure_values_close(
                    found, value, kind, f"{filler} behind the length of a curve counts"
                )


def _has_no_value(trial: MetricTrial, bundle: Any, place: tuple[str, int], gap: float) -> bool:
    """Whether a gap is refused, by the bundle or by the metric, or leaves its target without a
    finite value.
    """
    try:
        found = trial.values(with_gap(bundle, place, gap))
    except UndefinedScore:
        return True
    return not bool(found[place[1]].isfinite())


# --- what a call may touch ------------------------------------------------------------------------


def bundles_are_left_as_they_were(trial: MetricTrial) -> None:
    """Not a bit of the input changes."""
    for kind, (bundle, _) in trial.answered.items():
        given = copy_bundle(bundle)
        trial.metric(given)
        fail_unless(same_bits(given, bundle), f"the metric writes into its input ('{kind}')")


def same_bundle_gives_the_same_values(trial: MetricTrial) -> None:
    """To the last bit."""
    for kind, (bundle, value) in trial.answered.items():
        fail_unless(
            is_identical(trial.values(bundle), value),
            f"a second call gives other values ('{kind}')",
        )


def global_random_states_play_no_role(trial: MetricTrial) -> None:
    """Those of torch, NumPy and Python are neither moved nor used."""
    for kind, (bundle, value) in trial.answered.items():
        with preserve_rng_state():
            torch.manual_seed(12345)
            np.random.seed(12345)
            random.seed(12345)
            before = save_rng_state()
            found = trial.values(bundle)
            fail_unless(
                _same_random_states(before, save_rng_state()),
                f"a global random state moves ('{kind}')",
            )
        ensure_values_close(found, value, kind, "values depend on a global random state")


def _same_random_states(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether two records of the random states agree."""
    same_torch = torch.equal(first[0], second[0]) and is_identical(first[1], second[1])
    return same_torch and str(first[2]) == str(second[2]) and bool(first[3] == second[3])


# --- helpers --------------------------------------------------------------------------------------


def _is_real_number(value: Any) -> bool:
    """A number that is not NaN, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def _declared_bounds(trial: MetricTrial) -> tuple[float, float]:
    """The bounds; skips the check where they are none."""
    try:
        bounds_are_an_interval(trial)
    except AssertionError as reason:
        raise InapplicableCheck(str(reason)) from reason
    return trial.metric.bounds


_MetricCheck = Callable[[MetricTrial], str | None]

#: every promise, by name
METRIC_CHECKS: dict[str, _MetricCheck] = {
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
        order_of_targets_does_not_matter,
        other_targets_do_not_matter,
        order_of_cases_does_not_matter,
        order_of_trials_does_not_matter,
        numbers_of_nodes_do_not_matter,
        order_of_edges_does_not_matter,
        scale_of_scores_does_not_matter,
        precision_does_not_matter,
        gaps_never_become_a_score,
        bundles_are_left_as_they_were,
        same_bundle_gives_the_same_values,
        global_random_states_play_no_role,
    )
}
