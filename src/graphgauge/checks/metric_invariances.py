"""Checks of what the values of a metric may depend on, and of what a call may touch."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphgauge.checks.bundle_rewrites import (
    copy_bundle,
    gap_places,
    in_precision,
    is_identical,
    number_of_targets,
    same_bits,
    take_targets,
    with_cases_reversed,
    with_edges_shuffled,
    with_gap,
    with_nodes_renumbered,
    with_scores_scaled,
    with_trials_shuffled,
    with_value_behind,
)
from graphgauge.checks.metric_trial import (
    MetricCheck,
    MetricTrial,
    ensure_invariant,
    ensure_values_close,
    values_are_close,
)
from graphgauge.checks.suite import InapplicableCheck, fail_unless
from graphgauge.core import GraphgaugeError, UndefinedScore, preserve_rng_state, save_rng_state
from graphgauge.metrics import AnyBundle, Curves

_SINGLE_PRECISION_TOLERANCE = 1e-5
_GAP_VALUES = (torch.nan, torch.inf, -torch.inf)


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
    ensure_invariant(trial, with_cases_reversed, "values depend on the order of the cases")


def order_of_trials_does_not_matter(trial: MetricTrial) -> str | None:
    """Random curves, or pairs, in another order give the same value.

    The check is skipped for metrics with ``ordered_trials``. Random curves that the metric does not
    look at do not count.
    """
    if trial.needs not in ("curves", "pairs"):
        raise InapplicableCheck("there are no trials")
    if trial.metric.ordered_trials:
        raise InapplicableCheck("ordered_trials is True: they are looked at one after the other")
    number = _num_curves_used(trial) if trial.needs == "curves" else None
    ensure_invariant(
        trial,
        lambda bundle: with_trials_shuffled(bundle, number),
        "values depend on the order of the trials; if the metric stops early, say "
        "ordered_trials = True",
    )
    return f"the metric looks at the first {number} random curves only" if number else None


def _num_curves_used(trial: MetricTrial) -> int | None:
    """How many random curves, fewer than all, already give the values; None where all count."""
    for bundle, value in trial.answered.values():
        if isinstance(bundle, Curves) and not bool(
            values_are_close(trial.values(with_trials_shuffled(bundle)), value).all()
        ):
            numbers = range(1, bundle.random.size(1))
            return next((n for n in numbers if _first_suffice(trial, bundle, value, n)), None)
    return None


def _first_suffice(trial: MetricTrial, curves: Curves, value: Tensor, number: int) -> bool:
    """Whether the first ``number`` random curves alone give the values."""
    try:
        values = trial.values(replace(curves, random=curves.random[:, :number]))
    except GraphgaugeError:
        return False
    return bool(values_are_close(values, value).all())


def numbers_of_nodes_do_not_matter(trial: MetricTrial) -> None:
    """Nodes, or scored things and their truth, in another order give the same value."""
    if trial.needs == "curves":
        raise InapplicableCheck("curves know no nodes")
    reason = f"values depend on the order of nodes or entries{_randomised_hint(trial)}"
    ensure_invariant(trial, with_nodes_renumbered, reason)


def order_of_edges_does_not_matter(trial: MetricTrial) -> None:
    """Edges in another order give the same value."""
    if trial.needs != "pairs":
        raise InapplicableCheck("there are no edge scores apart from others")
    reason = f"values depend on the order of the edges{_randomised_hint(trial)}"
    ensure_invariant(trial, with_edges_shuffled, reason)


def _randomised_hint(trial: MetricTrial) -> str:
    if trial.metric.randomised:
        return ""
    return "; if the metric draws from the seeds of the bundle, say randomised = True"


def scale_of_scores_does_not_matter(trial: MetricTrial) -> None:
    """All scores of a target times one positive number, tiny or huge, give the same value."""
    if trial.needs == "curves":
        raise InapplicableCheck("curves are made of outputs, not of scores")
    reason = "values depend on the scale of the scores (is an epsilon added somewhere?)"
    ensure_invariant(trial, with_scores_scaled, reason)


def precision_does_not_matter(trial: MetricTrial) -> None:
    """The same numbers in single and in double precision give the same value within 1e-5."""
    for kind, (bundle, _) in trial.answered.items():
        single = in_precision(bundle, torch.float32)
        ensure_values_close(
            trial.values(single),
            trial.values(in_precision(single, torch.float64)),
            kind,
            "values depend on the precision",
            _SINGLE_PRECISION_TOLERANCE,
        )


def gaps_never_become_a_score(trial: MetricTrial) -> None:
    """NaN and infinity inside what was measured are refused or give NaN.

    Behind a curve's length nothing counts.
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
                values = trial.values(with_value_behind(bundle, filler))
                reason = f"{filler} behind the length of a curve counts"
                ensure_values_close(values, value, kind, reason)


def _has_no_value(
    trial: MetricTrial, bundle: AnyBundle, place: tuple[str, int], gap: float
) -> bool:
    """Whether a gap is refused, by the bundle or the metric, or leaves its target without value."""
    try:
        values = trial.values(with_gap(bundle, place, gap))
    except UndefinedScore:
        return True
    return not bool(values[place[1]].isfinite())


# --- what a call may touch ------------------------------------------------------------------------


def bundles_are_left_as_they_were(trial: MetricTrial) -> None:
    """A call changes not a bit of its input."""
    for kind, (bundle, _) in trial.answered.items():
        copy = copy_bundle(bundle)
        trial.metric(copy)
        fail_unless(same_bits(copy, bundle), f"the metric writes into its input ('{kind}')")


def same_bundle_gives_the_same_values(trial: MetricTrial) -> None:
    """A second call gives the same values to the last bit."""
    for kind, (bundle, value) in trial.answered.items():
        fail_unless(
            is_identical(trial.values(bundle), value),
            f"a second call gives other values ('{kind}')",
        )


def global_random_states_play_no_role(trial: MetricTrial) -> None:
    """The random states of torch, NumPy and Python are neither moved nor used."""
    for kind, (bundle, value) in trial.answered.items():
        with preserve_rng_state():
            torch.manual_seed(12345)
            np.random.seed(12345)
            random.seed(12345)
            before = save_rng_state()
            values = trial.values(bundle)
            fail_unless(
                _same_random_states(before, save_rng_state()),
                f"a global random state moves ('{kind}')",
            )
        ensure_values_close(values, value, kind, "values depend on a global random state")


def _same_random_states(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether two records of the random states agree."""
    same_torch = torch.equal(first[0], second[0]) and is_identical(first[1], second[1])
    return same_torch and str(first[2]) == str(second[2]) and bool(first[3] == second[3])


INVARIANCE_CHECKS: tuple[MetricCheck, ...] = (
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
