"""The promises of a metric, one small function each, named for what must be true; on bundles made
for the purpose.

A function returns nothing (kept), returns a remark (kept, but people should know), raises
`Inapplicable` (says nothing about this metric) or an AssertionError with the reason (broken).
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

from graphgauge.core.errors import GraphgaugeError, UndefinedScore
from graphgauge.core.randomness import preserved_randomness, random_states
from graphgauge.metrics.base import NEEDS, Curves
from graphgauge.metrics.rewriting import (
    copied,
    gap_places,
    has_case,
    in_precision,
    is_identical,
    number_of_targets,
    picked,
    same_bits,
    with_cases_turned,
    with_edges_shuffled,
    with_gap,
    with_nodes_renumbered,
    with_scores_scaled,
    with_trials_shuffled,
    with_value_behind,
)
from graphgauge.metrics.specimens import empty, graded, meaningless, specimens
from graphgauge.metrics.trials import CLOSE, Trial, ensure_close, ensure_unmoved, fault, is_close
from graphgauge.models.promises import Inapplicable, ensure

NUM_BUNDLES = 6  #: seeds of the bundles on which values must lie in the bounds
#: how many standard errors the mean of meaningless explanations may lie from the declared chance
CHANCE_ERRORS = 4.5
SINGLE = 1e-5  #: what single precision may change
GAPS = (torch.nan, torch.inf, -torch.inf)

# --- what a metric is -----------------------------------------------------------------------------


def name_can_be_typed(trial: Trial) -> None:
    """A lower-case identifier, as results and experiment files use it."""
    name = getattr(trial.metric, "name", None)
    ensure(
        isinstance(name, str) and name.isidentifier() and name == name.lower(),
        f"name is {name!r}, not like 'my_metric'",
    )


def metric_says_what_its_number_means(trial: Trial) -> None:
    """Which way is better, what it is called on, and what its checks have to know."""
    flags = [
        (name, getattr(trial.metric, name, None))
        for name in ("higher_is_better", "ordered_trials", "randomised")
    ]
    for name, flag in flags:
        ensure(isinstance(flag, bool), f"{name} is {flag!r}, not True or False")
    needs = getattr(trial.metric, "needs", None)
    ensure(needs in NEEDS, f"needs is {needs!r}, not one of {', '.join(NEEDS)}")


def bounds_are_an_interval(trial: Trial) -> None:
    """A lower number and a higher one; infinity where there is no bound."""
    bounds = getattr(trial.metric, "bounds", None)
    ensure(
        isinstance(bounds, tuple) and len(bounds) == 2 and all(map(is_number, bounds)),
        f"bounds are {bounds!r}, not two numbers",
    )
    ensure(bounds[0] < bounds[1], f"bounds are {bounds}: the lower one is not below the upper one")  # type: ignore[index]


def chance_lies_in_the_bounds(trial: Trial) -> None:
    """A finite number that a value can be; None where it depends on the case."""
    ensure(
        hasattr(trial.metric, "chance"),
        "chance is missing: the mean value of scores that mean nothing, or None",
    )
    chance, bounds = trial.metric.chance, limits(trial)
    if chance is None:
        return
    ensure(
        is_number(chance) and math.isfinite(chance), f"chance is {chance!r}, not a number or None"
    )
    ensure(bounds[0] <= chance <= bounds[1], f"chance is {chance}, outside of the bounds {bounds}")


def metric_cannot_be_changed(trial: Trial) -> None:
    """It is frozen, and can be a key of a dictionary."""
    hash(trial.metric)
    try:
        trial.metric.not_a_field = None  # type: ignore[attr-defined]
    except FrozenInstanceError:
        return
    del trial.metric.not_a_field  # type: ignore[attr-defined]
    raise AssertionError("attributes can be set: write @dataclass(frozen=True) above the class")


def metric_can_travel(trial: Trial) -> None:
    """To a worker process and back."""
    try:
        text = pickle.dumps(trial.metric)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(
            f"it cannot be sent to worker processes, define it at the top of a module: {error}"
        ) from error
    ensure(pickle.loads(text) == trial.metric, "it comes back from a worker process as another one")


# --- the form of values ---------------------------------------------------------------------------


def some_targets_have_a_value(trial: Trial) -> str | None:
    """The metric accepts bundles and finds numbers in them."""
    found = trial.found
    reasons = [f"'{kind}' ({reason})" for kind, reason in trial.refusals.items()]
    ensure(bool(found), f"it refuses every bundle: {', '.join(reasons[:1])}")
    ensure(
        any(bool(value.isfinite().any()) for value in found.values()),
        "no target of any bundle gets a number",
    )
    return f"it refuses {', '.join(reasons)}" if reasons else None


def one_value_per_target(trial: Trial) -> None:
    """A tensor of floating-point numbers, (T,)."""
    for kind, bundle in trial.bundles.items():
        try:
            found = trial.raw(bundle)
        except GraphgaugeError:
            continue  # `some_targets_have_a_value` says so
        ensure(not fault(found, bundle), f"{fault(found, bundle)} ('{kind}')")


def no_targets_give_no_values(trial: Trial) -> None:
    """An empty bundle is a valid question."""
    bundle = empty(trial.needs)
    found = trial.raw(bundle)
    ensure(not fault(found, bundle), fault(found, bundle))


def targets_without_a_case_have_no_value(trial: Trial) -> None:
    """NaN: never 0, never what another target has."""
    for kind, (bundle, value) in trial.answered.items():
        wrong = (~has_case(bundle) & ~value.isnan()).nonzero()[:, 0].tolist()
        for t in wrong[:1]:
            raise AssertionError(
                f"target {t} of '{kind}' has nothing to measure, but gets {value[t]:.6g} instead of NaN"
            )


def values_lie_in_the_bounds(trial: Trial) -> None:
    """Over many bundles of every kind, up to rounding."""
    low, high = limits(trial)
    for seed in range(NUM_BUNDLES):
        for kind, bundle in specimens(trial.needs, seed).items():
            if kind in trial.answered:
                value = trial.values(bundle)
                wrong = value[(value < low - CLOSE) | (value > high + CLOSE)].tolist()
                ensure(
                    not wrong,
                    f"values such as {wrong[:1]} ('{kind}') lie outside of the bounds {low, high}",
                )


# --- what values mean -----------------------------------------------------------------------------


def better_explanations_are_not_worse(trial: Trial) -> str | None:
    """The ideal explanation is at least as good as a mediocre one, and that as the worst."""
    found = {
        kind: values
        for kind, grades in graded(trial.needs).items()
        if (values := graded_values(trial, grades)) is not None
    }
    if not found:
        raise Inapplicable("it has no value for explanations that are known to be good or bad")
    wrong = [
        reason for kind, values in found.items() if (reason := wrong_order(trial, kind, values))
    ]
    if wrong and trial.needs == "scores":
        return f"{wrong[0]}; scores alone may be read in another way"
    ensure(not wrong, "".join(wrong[:1]))
    is_blind = all(
        bool(is_close(values[0], values[2]).all() and is_close(values[0], values[1]).all())
        for values in found.values()
    )
    return (
        "it gives the ideal, a mediocre and the worst explanation the same value"
        if is_blind
        else None
    )


def graded_values(trial: Trial, grades: tuple[Any, Any, Any]) -> Tensor | None:
    """Values of targets that have one for each grade; None where there are none.  (3, number)"""
    try:
        values = torch.stack([trial.values(bundle) for bundle in grades])
    except GraphgaugeError:
        return None
    usable = values[:, ~values.isnan().any(0)]
    return usable if usable.numel() else None


def wrong_order(trial: Trial, kind: str, values: Tensor) -> str:
    """Where a worse explanation gets a better value; '' if none does."""
    turned = values if trial.metric.higher_is_better else -values
    wrong = (
        ((turned[:2] < turned[1:] - CLOSE) & ~is_close(turned[:2], turned[1:]))
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


def meaningless_explanations_reach_the_chance(trial: Trial) -> None:
    """The mean over many targets lies within 4.5 standard errors of the declared chance."""
    chance = getattr(trial.metric, "chance", None)
    if not is_number(chance):
        raise Inapplicable(
            "chance is None: it depends on the case" if chance is None else f"chance is {chance!r}"
        )
    bundles = meaningless(trial.needs)
    if not bundles:
        raise Inapplicable("whether scores alone mean something cannot be told")
    have_value = [reaches_chance(trial, kind, bundle) for kind, bundle in bundles.items()]
    ensure(any(have_value), "chance is declared, but explanations that mean nothing have no value")


def reaches_chance(trial: Trial, kind: str, bundle: Any) -> bool:
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
    is_near = abs(mean - float(trial.metric.chance or 0.0)) <= CHANCE_ERRORS * error + CLOSE
    ensure(
        is_near,
        f"explanations that mean nothing ('{kind}') get {mean:.4f} ± {error:.4f}, but chance is {trial.metric.chance}",
    )
    return True


# --- what values may depend on --------------------------------------------------------------------


def order_of_targets_does_not_matter(trial: Trial) -> None:
    """Reversed targets get reversed values."""
    for kind, (bundle, value) in trial.answered.items():
        order = list(range(number_of_targets(bundle)))[::-1]
        ensure_close(
            trial.values(picked(bundle, order)),
            value.flip(0),
            kind,
            "values depend on the order of the targets",
        )


def other_targets_do_not_matter(trial: Trial) -> None:
    """Each target alone gets the value it has among others."""
    for kind, (bundle, value) in trial.answered.items():
        for t in range(number_of_targets(bundle)):
            alone = trial.values(picked(bundle, [t]))
            ensure_close(alone, value[t : t + 1], kind, f"alone the value of target {t} differs")


def order_of_cases_does_not_matter(trial: Trial) -> None:
    """References of a target in another order give the same value."""
    if trial.needs != "curves":
        raise Inapplicable("there is one case per target")
    ensure_unmoved(trial, with_cases_turned, "values depend on the order of the cases")


def order_of_trials_does_not_matter(trial: Trial) -> str | None:
    """Random curves, or pairs, in another order give the same value; unless the metric says that it
    goes through them in turn.
    """
    if trial.needs not in ("curves", "pairs"):
        raise Inapplicable("there are no trials")
    if trial.metric.ordered_trials:
        raise Inapplicable("ordered_trials is True: they are looked at one after the other")
    hint = "; if it stops early, say ordered_trials = True"
    number = looks_at(trial) if trial.needs == "curves" else None
    ensure_unmoved(
        trial,
        lambda bundle: with_trials_shuffled(bundle, number),
        f"values depend on the order of the trials{hint}",
    )
    return f"it looks at the first {number} random curves only" if number is not None else None


def looks_at(trial: Trial) -> int | None:
    """How many random curves, fewer than all, give the values already; None where all take part."""
    for bundle, value in trial.answered.values():
        if not bool(is_close(trial.values(with_trials_shuffled(bundle)), value).all()):
            return next(
                (n for n in range(1, bundle.random.size(1)) if is_enough(trial, bundle, value, n)),
                None,
            )
    return None


def is_enough(trial: Trial, curves: Curves, value: Tensor, number: int) -> bool:
    """Whether the first random curves alone give the values."""
    try:
        found = trial.values(replace(curves, random=curves.random[:, :number]))
    except GraphgaugeError:
        return False
    return bool(is_close(found, value).all())


def numbers_of_nodes_do_not_matter(trial: Trial) -> None:
    """Nodes, or scored things and their truth, in another order give the same value."""
    if trial.needs == "curves":
        raise Inapplicable("curves know no nodes")
    ensure_unmoved(
        trial,
        with_nodes_renumbered,
        f"values depend on the order of nodes or entries{said_if_drawn(trial)}",
    )


def order_of_edges_does_not_matter(trial: Trial) -> None:
    """Edges in another order give the same value."""
    if trial.needs != "pairs":
        raise Inapplicable("there are no edge scores apart from others")
    ensure_unmoved(
        trial, with_edges_shuffled, f"values depend on the order of the edges{said_if_drawn(trial)}"
    )


def said_if_drawn(trial: Trial) -> str:
    """What a metric that draws has to say."""
    return (
        ""
        if trial.metric.randomised
        else "; if it draws from the seeds of the bundle, say randomised = True"
    )


def scale_of_scores_does_not_matter(trial: Trial) -> None:
    """All scores of a target times one positive number, tiny or huge, give the same value."""
    if trial.needs == "curves":
        raise Inapplicable("curves are made of outputs, not of scores")
    ensure_unmoved(
        trial,
        with_scores_scaled,
        "values depend on the scale of the scores (is an epsilon added somewhere?)",
    )


def precision_does_not_matter(trial: Trial) -> None:
    """The same numbers in single and in double precision give the same value within 1e-5."""
    for kind, (bundle, _) in trial.answered.items():
        single = in_precision(bundle, torch.float32)
        expected = trial.values(in_precision(single, torch.float64))
        ensure_close(trial.values(single), expected, kind, "values depend on the precision", SINGLE)


def gaps_never_become_a_score(trial: Trial) -> None:
    """NaN and infinity: inside what was measured they are refused or give NaN; behind a curve's
    length nothing counts.
    """
    for kind, (bundle, value) in trial.answered.items():
        for place in gap_places(bundle):
            for gap in GAPS:
                ensure(
                    has_no_value(trial, bundle, place, gap),
                    f"{gap} in '{place[0]}' ('{kind}') becomes a finite score",
                )
        if isinstance(bundle, Curves):
            for filler in (*GAPS, -5.0, 50.0):
                found = trial.values(with_value_behind(bundle, filler))
                ensure_close(found, value, kind, f"{filler} behind the length of a curve counts")


def has_no_value(trial: Trial, bundle: Any, place: tuple[str, int], gap: float) -> bool:
    """Whether a gap is refused, by the bundle or by the metric, or leaves its target without a
    finite value.
    """
    try:
        found = trial.values(with_gap(bundle, place, gap))
    except UndefinedScore:
        return True
    return not bool(found[place[1]].isfinite())


# --- what a call may touch ------------------------------------------------------------------------


def bundles_are_left_as_they_were(trial: Trial) -> None:
    """Not a bit of the input changes."""
    for kind, (bundle, _) in trial.answered.items():
        given = copied(bundle)
        trial.metric(given)
        ensure(same_bits(given, bundle), f"the metric writes into its input ('{kind}')")


def same_bundle_gives_the_same_values(trial: Trial) -> None:
    """To the last bit."""
    for kind, (bundle, value) in trial.answered.items():
        ensure(
            is_identical(trial.values(bundle), value),
            f"a second call gives other values ('{kind}')",
        )


def global_random_states_play_no_role(trial: Trial) -> None:
    """Those of torch, NumPy and Python are neither moved nor used."""
    for kind, (bundle, value) in trial.answered.items():
        with preserved_randomness():
            torch.manual_seed(12345)
            np.random.seed(12345)
            random.seed(12345)
            before = random_states()
            found = trial.values(bundle)
            ensure(same_states(before, random_states()), f"a global random state moves ('{kind}')")
        ensure_close(found, value, kind, "values depend on a global random state")


def same_states(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether two records of the random states agree."""
    same_torch = torch.equal(first[0], second[0]) and is_identical(first[1], second[1])
    return same_torch and str(first[2]) == str(second[2]) and bool(first[3] == second[3])


# --- helpers --------------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    """A number that is not NaN, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)


def limits(trial: Trial) -> tuple[float, float]:
    """The bounds; skips the check where they are none."""
    try:
        bounds_are_an_interval(trial)
    except AssertionError as reason:
        raise Inapplicable(str(reason)) from reason
    return trial.metric.bounds


Check = Callable[[Trial], str | None]

#: every promise, by name
METRIC_CHECKS: dict[str, Check] = {
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
