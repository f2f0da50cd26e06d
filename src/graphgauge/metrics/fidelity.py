"""Fidelity: what the output loses when the top edits are made, and when all others are made.

For an output that starts at height s (probability of the class first predicted, or the value), with
S the top edits of an order,

    fidelity_plus     s - (height with the edits S made)             high: S is necessary
    fidelity_minus    s - (height with all edits but S made)         low: S is sufficient
    characterization  (w+ + w-) / (w+ / f+ + w- / (1 - f-))          both at once
                      f is cut to [0, 1]; 0 where a part is 0
    unfaithfulness    1 - exp(-KL(first prediction || prediction with all edits but S made))
                      KL(p || q) = Σ p ln(p / q)
    fidelity_plus_auc, fidelity_minus_auc
                      area under either fidelity where S is 10, 20 .. 90 % of the candidates,
                      divided by the width of 0.8

S is a hard set, the first `top` of the order, and an edit is made or not. `top` is a number of
edits, or a share of the candidates (0 < top < 1): the nearest number, at least one and fewer than
all. Where S holds all candidates, every explanation has the same S, also a random one, and there is
no value.

Other libraries multiply the scores into the input as they are, and one minus the scores for the
complement. With signed scores of any scale (a gradient, say, between -0.06 and 0.09) this is
neither removing nor keeping, and gave fidelities of (0, 0). What counts here is the order, so raw,
signed and scaled scores of one order have one fidelity.

`unfaithfulness` takes the direction of KL that its definition gives. PyG documents the same but
computes KL(kept || first), and takes a softmax over the single column of a binary model, which is
always 1, so that the result is always 0. Here a single column is refused.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import BadSetting, UndefinedScore
from graphgauge.metrics.base import Measurement, Metric, MetricSettings, mean_over_cases
from graphgauge.metrics.bundles import NUM_LEVELS, Curves
from graphgauge.metrics.top_edits import effective_top, selects_all, top_counts

_SUM_TOLERANCE = 1e-3


def fidelity_plus(start: Tensor, removed: Tensor) -> Tensor:
    """What the output loses when the top edits are made.  (Q,), (Q,) -> (Q,)

    Args:
        start: Height before any edit.
        removed: Height when the top edits are made.
    """
    return start - removed


def fidelity_minus(start: Tensor, kept: Tensor) -> Tensor:
    """What the output loses when all edits but the top ones are made.  (Q,), (Q,) -> (Q,)

    Args:
        start: Height before any edit.
        kept: Height when all edits but the top ones are made.
    """
    return start - kept


def fidelity_auc(fidelity: Tensor) -> Tensor:
    """Area under a fidelity at 10, 20 .. 90 % of the candidates.  (Q, 9) -> (Q,)

    The area is a sum of trapezoids, divided by the width of 0.8.

    >>> fidelity_auc(torch.tensor([[0.5] * 9]))
    tensor([0.5000], dtype=torch.float64)
    """
    return torch.trapezoid(fidelity.double(), dim=1) / (NUM_LEVELS - 1)


def characterization(
    plus: Tensor, minus: Tensor, plus_weight: float = 0.5, minus_weight: float = 0.5
) -> Tensor:
    """Weighted harmonic mean of fidelity_plus and 1 - fidelity_minus.  (Q,), (Q,) -> (Q,)

    Fidelities must be of probabilities. Below 0 a fidelity counts as 0: a class whose probability
    rises when its top edits are made has nothing necessary in them, and one whose probability rises
    when only they are left has lost nothing.

    Args:
        plus: Fidelity_plus, of probabilities.
        minus: Fidelity_minus for the same top edits.
        plus_weight: How much being necessary counts, above 0.
        minus_weight: How much being sufficient counts, above 0.

    >>> characterization(torch.tensor([1.0, 0.5]), torch.tensor([0.0, 0.5]), 0.2, 0.8)
    tensor([1.0000, 0.5000])
    """
    if not (plus_weight > 0 and minus_weight > 0):
        raise BadSetting(
            f"the weights of a characterization must be above 0, but are {plus_weight} and "
            f"{minus_weight}."
        )
    largest = torch.maximum(plus.abs(), minus.abs())
    if plus.numel() and float(largest.max()) > 1 + _SUM_TOLERANCE:
        raise UndefinedScore(
            "characterization is for probabilities, but a fidelity lies outside [-1, 1]: leave "
            "regression out."
        )
    necessary, sufficient = plus.clamp(0, 1), 1 - minus.clamp(0, 1)
    # where a part is 0, its weight is divided by 0 and the result is 1 / inf = 0
    return (plus_weight + minus_weight) / (plus_weight / necessary + minus_weight / sufficient)


def unfaithfulness(first: Tensor, kept: Tensor) -> Tensor:
    """1 - exp(-KL(first || kept)), with 0 ln 0 = 0.  (Q, C), (Q, C) -> (Q,)

    1 where ``kept`` excludes a class that was possible.

    Args:
        first: Class probabilities before any edit.
        kept: Class probabilities when all edits but the top ones are made.

    >>> first = torch.tensor([[0.5, 0.5], [1.0, 0.0]])
    >>> unfaithfulness(first, torch.tensor([[0.5, 0.5], [0.5, 0.5]]))
    tensor([0.0000, 0.5000], dtype=torch.float64)
    """
    for prob in (first, kept):
        _check_probabilities(prob)
    first, kept = first.double(), kept.double()
    divergence = (torch.xlogy(first, first) - torch.xlogy(first, kept)).sum(1)
    return -torch.expm1(-divergence.clamp(min=0))


def _check_probabilities(prob: Tensor) -> None:
    if prob.size(1) < 2:
        raise UndefinedScore(
            "unfaithfulness compares distributions over classes, but there is "
            f"{prob.size(1)} column: give both classes, (Q, 2)."
        )
    if bool((prob < 0).any()) or bool(((prob.sum(1) - 1).abs() > _SUM_TOLERANCE).any()):
        raise UndefinedScore(
            "unfaithfulness compares probabilities, but rows below 0 or with a sum other than 1 "
            "were given."
        )


# --- metrics --------------------------------------------------------------------------------------


def require_part(part: Tensor | None, name: str, metric: str) -> Tensor:
    """Return an optional part of `Curves`, or raise UndefinedScore where it was not measured."""
    if part is None:
        raise UndefinedScore(
            f"{metric} needs '{name}' of the curves, which was not measured; regression has no "
            "probabilities."
        )
    return part


def _height_with_top_removed(curves: Curves, top: int | float, metric: str) -> Tensor:
    """Height with the top edits made: measured, or a point of the curve.  (Q,)"""
    if curves.removed is not None and top == curves.top:
        return curves.removed
    if isinstance(top, int) and top <= curves.cap:
        return curves.curve.gather(1, curves.length.clamp(max=top)[:, None] - 1)[:, 0]
    if isinstance(top, int):
        raise BadSetting(
            f"{metric} asks for the top {top} edits, but the curves end at the cap of {curves.cap}."
        )
    raise UndefinedScore(
        f"{metric} asks for the top {top:.0%} of the edits: give curves with this 'top' and with "
        "'removed'."
    )


def _mean_unless_all_selected(value: Tensor, curves: Curves, top: int | float) -> Tensor:
    """Mean over cases; no value where the top edits are all there are.  (Q,) -> (T,)"""
    defined = value.double().masked_fill(selects_all(top, curves.candidates), torch.nan)
    return mean_over_cases(defined, curves.target, curves.num_targets)


@dataclass(frozen=True)
class FidelityPlus(Metric[Curves]):
    """What the output loses when its top edits are made; the mean over cases.

    Between -1 and 1 for probabilities.
    """

    name = "fidelity_plus"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = True
    chance = None
    needs = "curves"
    parts = ("removed",)
    top: int | float = 10

    @classmethod
    def from_settings(cls, settings: MetricSettings) -> "FidelityPlus":
        """With the number of top edits of an evaluation, within its cap, or their share."""
        return cls(effective_top(settings))

    def __post_init__(self) -> None:
        top_counts(self.top, torch.ones(0))  # raises for a top that is not possible

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        removed = _height_with_top_removed(bundle, self.top, self.name)
        plus = fidelity_plus(bundle.start, removed)
        return _mean_unless_all_selected(plus, bundle, self.top)


@dataclass(frozen=True)
class FidelityMinus(Metric[Curves]):
    """What the output loses when all edits but the top ones are made; the mean over cases.

    Between -1 and 1 for probabilities.
    """

    name = "fidelity_minus"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = False
    chance = None
    needs = "curves"
    parts = ("kept",)

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        minus = fidelity_minus(bundle.start, require_part(bundle.kept, "kept", self.name))
        return _mean_unless_all_selected(minus, bundle, bundle.top)


@dataclass(frozen=True)
class Characterization(Metric[Curves]):
    """Harmonic mean of fidelity_plus and 1 - fidelity_minus, for the same top edits.

    The value is the mean over cases.
    """

    name = "characterization"
    tasks = ("classification",)
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "curves"
    parts = ("kept", "removed")
    plus_weight: float = 0.5
    minus_weight: float = 0.5

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        minus = fidelity_minus(bundle.start, require_part(bundle.kept, "kept", self.name))
        top = min(bundle.top, bundle.cap)
        plus = fidelity_plus(bundle.start, _height_with_top_removed(bundle, top, self.name))
        value = characterization(plus, minus, self.plus_weight, self.minus_weight)
        return _mean_unless_all_selected(value, bundle, top)


@dataclass(frozen=True)
class Unfaithfulness(Metric[Curves]):
    """How far the prediction moves when all edits but the top ones are made (GraphXAI's GEF).

    The value is the mean over cases.
    """

    name = "unfaithfulness"
    tasks = ("classification",)
    bounds = (0.0, 1.0)
    higher_is_better = False
    chance = None
    needs = "curves"
    parts = ("kept_prob", "start_prob")

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        first = require_part(bundle.start_prob, "start_prob", self.name)
        value = unfaithfulness(first, require_part(bundle.kept_prob, "kept_prob", self.name))
        return _mean_unless_all_selected(value, bundle, bundle.top)


@dataclass(frozen=True)
class FidelityPlusAuc(Metric[Curves]):
    """Area under fidelity_plus where the top edits are 10 to 90 % of the candidates.

    No value for a target with a single candidate.
    """

    name = "fidelity_plus_auc"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = True
    chance = None
    needs = "curves"
    parts = ("removed_levels",)

    def levels(self, bundle: Curves) -> Tensor:
        """Fidelity_plus at 10, 20 .. 90 %.  (T, 9)"""
        return _loss_at_levels(
            require_part(bundle.removed_levels, "removed_levels", self.name), bundle
        )

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return self.measure(bundle).value

    def measure(self, bundle: Curves) -> Measurement:
        """The area of each target, with the fidelities that it is made of."""
        levels = self.levels(bundle)
        return Measurement(fidelity_auc(levels), levels=levels)


@dataclass(frozen=True)
class FidelityMinusAuc(Metric[Curves]):
    """Area under fidelity_minus where the top edits are 10 to 90 % of the candidates.

    No value for a target with a single candidate.
    """

    name = "fidelity_minus_auc"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = False
    chance = None
    needs = "curves"
    parts = ("kept_levels",)

    def levels(self, bundle: Curves) -> Tensor:
        """Fidelity_minus at 10, 20 .. 90 %.  (T, 9)"""
        return _loss_at_levels(require_part(bundle.kept_levels, "kept_levels", self.name), bundle)

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return self.measure(bundle).value

    def measure(self, bundle: Curves) -> Measurement:
        """The area of each target, with the fidelities that it is made of."""
        levels = self.levels(bundle)
        return Measurement(fidelity_auc(levels), levels=levels)


def _loss_at_levels(height: Tensor, curves: Curves) -> Tensor:
    """What the output loses at each level; the mean over cases.  (Q, 9) -> (T, 9)

    No value where there is a single candidate.
    """
    loss = (curves.start[:, None] - height).double()
    defined = loss.masked_fill(curves.candidates[:, None] < 2, torch.nan)
    return mean_over_cases(defined, curves.target, curves.num_targets)
