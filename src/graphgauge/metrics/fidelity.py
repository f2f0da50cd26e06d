"""Fidelity and its relatives: what the output loses with the top edits made, and what it keeps with
only them left unedited.

For an output that starts at height s (probability of the class first predicted, or the value), with
S the top edits of an order,

    fidelity_plus     s - (height with the edits S made)                    high: what S names is necessary
    fidelity_minus    s - (height with all edits but S made)                low: what S names is sufficient
    characterization  (w+ + w-) / (w+ / f+ + w- / (1 - f-))                 both at once; f cut to [0, 1], 0 where a part is 0
    unfaithfulness    1 - exp(-KL(first prediction || prediction with all edits but S made)),   KL(p || q) = Σ p ln(p / q)
    deletion_auc      mean height over 1..K edits, K = min(cap, candidates): low is good
    insertion_auc     all edits are made, then taken back best first: mean height with 1..K taken back, high is good
    fidelity_plus_auc, fidelity_minus_auc
                      area under either fidelity where S is 10, 20 .. 90 % of the candidates,
                      divided by the width of 0.8
    sparsity          1 - share of scores whose magnitude exceeds 1 % of the largest

S is always a hard set, the first `top` of the order, and edits are made or not. `top` is a number
of edits, or a share of the candidates (0 < top < 1): the nearest number, at least one and fewer
than all. Where S holds all candidates, every explanation has the same S, a random one too, so that
the numbers on S say nothing: there they have no value.

Peers multiply scores into the input as they are, and one minus the scores for the complement. With
signed scores of any scale (a gradient, say, between -0.06 and 0.09) that is neither the one nor the
other, and gave fidelities of (0, 0). What counts here is the order, so raw, signed and scaled
scores of one order have one fidelity.

`unfaithfulness` takes the direction of KL that its definition gives. PyG documents the same but
computes KL(kept || first), and takes a softmax over the single column of a binary model, which is 1
whatever the model says: 0 always. Here one column is refused.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import BadSetting, UndefinedScore
from graphgauge.metrics.base import (
    NUM_LEVELS,
    Curves,
    Metric,
    Vectors,
    is_valid_top,
    mean_over_cases,
    stack_values,
)
from graphgauge.metrics.pertinence import mean_height

_NEGLIGIBLE = 0.01
_SUM_TOLERANCE = 1e-3


def fidelity_plus(start: Tensor, curve: Tensor, length: Tensor, top: int = 10) -> Tensor:
    """What the output loses with its top edits made, all of them where there are fewer.
    (Q,), (Q, K), (Q,) -> (Q,)

    >>> fidelity_plus(torch.tensor([0.75]), torch.tensor([[0.5, 0.25]]), torch.tensor([2]), top=1)
    tensor([0.2500])
    """
    if top < 1:
        raise BadSetting(f"top must be 1 or more, but is {top}.")
    return start - curve.gather(1, length.clamp(max=top)[:, None] - 1)[:, 0]


def fidelity_minus(start: Tensor, kept: Tensor) -> Tensor:
    """What the output loses with all edits but the top ones made.  (Q,), (Q,) -> (Q,)"""
    return start - kept


def top_counts(top: int | float, candidates: Tensor) -> Tensor:
    """How many edits are the top ones: ``top``, or the number nearest to that share, at least one
    and fewer than all.  (Q,) -> (Q,)

    >>> top_counts(10, torch.tensor([7, 30])), top_counts(0.2, torch.tensor([7, 30]))
    (tensor([ 7, 10]), tensor([1, 6]))
    """
    if not is_valid_top(top):
        raise BadSetting(f"top must be 1 or more, or a share between 0 and 1, but is {top!r}.")
    if isinstance(top, int):
        return candidates.clamp(max=top)
    return _clamp_top_count((top * candidates.double() + 0.5).long(), candidates)


def selects_all(top: int | float, candidates: Tensor) -> Tensor:
    """Whether all candidates are the top ones, so that every explanation has the same.
    (Q,) -> (Q,) bool
    """
    return top_counts(top, candidates) >= candidates


def level_counts(candidates: Tensor) -> Tensor:
    """The numbers nearest to 10, 20 .. 90 % of the candidates, at least one and fewer than all.
    (Q,) -> (Q, 9)

    >>> level_counts(torch.tensor([7, 50]))
    tensor([[ 1,  1,  2,  3,  4,  4,  5,  6,  6],
            [ 5, 10, 15, 20, 25, 30, 35, 40, 45]])
    """
    tenths = torch.arange(1, NUM_LEVELS + 1, device=candidates.device)
    return _clamp_top_count((candidates[:, None] * tenths + 5) // 10, candidates[:, None])


def _clamp_top_count(count: Tensor, candidates: Tensor) -> Tensor:
    """At least one, and fewer than all where there are several."""
    return torch.minimum(count.clamp(min=1), (candidates - 1).clamp(min=1))


def fidelity_auc(fidelity: Tensor) -> Tensor:
    """Area under a fidelity at 10, 20 .. 90 % of the candidates by trapezoids, divided by the width
    of 0.8.  (Q, 9) -> (Q,)

    >>> fidelity_auc(torch.tensor([[0.5] * 9]))
    tensor([0.5000], dtype=torch.float64)
    """
    return torch.trapezoid(fidelity.double(), dim=1) / (NUM_LEVELS - 1)


def insertion_auc(insertion: Tensor, length: Tensor) -> Tensor:
    """The mean height with 1..K edits taken back, best first, of all.  (Q, K), (Q,) -> (Q,)"""
    return mean_height(insertion[:, None], length)[:, 0]


def characterization(
    plus: Tensor, minus: Tensor, plus_weight: float = 0.5, minus_weight: float = 0.5
) -> Tensor:
    """The weighted harmonic mean of fidelity_plus and 1 - fidelity_minus, of probabilities.
    (Q,), (Q,) -> (Q,)

    Below 0 a fidelity counts as 0: a class that gains when its top edits are made has nothing
    necessary in them, and one that gains when only they are left has lost nothing.

    >>> characterization(torch.tensor([1.0, 0.5]), torch.tensor([0.0, 0.5]), 0.2, 0.8)
    tensor([1.0000, 0.5000])
    """
    if not (plus_weight > 0 and minus_weight > 0):
        raise BadSetting(
            f"the weights of a characterization must be above 0, but are {plus_weight} and {minus_weight}."
        )
    if plus.numel() and float(torch.maximum(plus.abs(), minus.abs()).max()) > 1 + _SUM_TOLERANCE:
        raise UndefinedScore(
            "characterization is for probabilities, but a fidelity lies outside [-1, 1]: leave regression out."
        )
    needed, enough = plus.clamp(0, 1), 1 - minus.clamp(0, 1)
    return (plus_weight + minus_weight) / (
        plus_weight / needed + minus_weight / enough
    )  # 1 / (w / 0) is 0, as it should be


def unfaithfulness(first: Tensor, kept: Tensor) -> Tensor:
    """1 - exp(-KL(first || kept)), 0 ln 0 being 0; 1 where ``kept`` excludes a class that was
    possible.  (Q, C), (Q, C) -> (Q,)

    >>> unfaithfulness(torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([[0.5, 0.5], [0.5, 0.5]]))
    tensor([0.0000, 0.5000], dtype=torch.float64)
    """
    for prob in (first, kept):
        _check_probabilities(prob)
    first, kept = first.double(), kept.double()
    divergence = (torch.xlogy(first, first) - torch.xlogy(first, kept)).sum(1)
    return -torch.expm1(-divergence.clamp(min=0))


def _check_probabilities(prob: Tensor) -> None:
    """Refuse what is no distribution over two classes or more.  (Q, C)"""
    if prob.size(1) < 2:
        raise UndefinedScore(
            f"unfaithfulness compares distributions over classes, but found {prob.size(1)} column: give both classes, (Q, 2)."
        )
    if bool((prob < 0).any()) or bool(((prob.sum(1) - 1).abs() > _SUM_TOLERANCE).any()):
        raise UndefinedScore(
            "unfaithfulness compares probabilities, but rows below 0 or with a sum other than 1 were given."
        )


def deletion_auc(curve: Tensor, length: Tensor) -> Tensor:
    """The mean height within the length.  (Q, K), (Q,) -> (Q,)"""
    return mean_height(curve[:, None], length)[:, 0]


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
    size = score.abs()
    return 1 - (size > _NEGLIGIBLE * size.max()).double().mean()


def _require_part(found: Tensor | None, what: str, metric: str) -> Tensor:
    """What was measured, or say that it is missing."""
    if found is None:
        raise UndefinedScore(
            f"{metric} needs '{what}' of the curves, which was not measured; regression has no probabilities."
        )
    return found


def _mean_over_targets(value: Tensor, curves: Curves) -> Tensor:
    """The mean over each target's cases.  (Q,) -> (T,)"""
    return mean_over_cases(value, curves.target, curves.num_targets)


def _mean_unless_all_selected(value: Tensor, curves: Curves, top: int | float) -> Tensor:
    """The same; no value where the top edits are all there are.  (Q,) -> (T,)"""
    return _mean_over_targets(
        value.double().masked_fill(selects_all(top, curves.candidates), torch.nan), curves
    )


def _height_with_top_removed(curves: Curves, top: int | float, metric: str) -> Tensor:
    """Height with the top edits made: what was measured there, or a point of the curve.  (Q,)"""
    if curves.removed is not None and top == curves.top:
        return curves.removed
    if isinstance(top, int) and top <= curves.cap:
        return curves.curve.gather(1, curves.length.clamp(max=top)[:, None] - 1)[:, 0]
    if isinstance(top, int):
        raise BadSetting(
            f"{metric} asks for the top {top} edits, but the curves end at the cap of {curves.cap}."
        )
    raise UndefinedScore(
        f"{metric} asks for the top {top:.0%} of the edits: give curves with this 'top' and with 'removed'."
    )


@dataclass(frozen=True)
class FidelityPlus(Metric[Curves]):
    """What the output loses with its top edits made, the mean over cases. Between -1 and 1 for
    probabilities.
    """

    name = "fidelity_plus"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = True
    chance = None
    needs = "curves"
    parts = ("removed",)
    top: int | float = 10

    def __post_init__(self) -> None:
        top_counts(self.top, torch.ones(0))

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return _mean_unless_all_selected(
            bundle.start - _height_with_top_removed(bundle, self.top, self.name), bundle, self.top
        )


@dataclass(frozen=True)
class FidelityMinus(Metric[Curves]):
    """What the output loses with all edits but the top ones made, the mean over cases. Between -1
    and 1 for probabilities.
    """

    name = "fidelity_minus"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = False
    chance = None
    needs = "curves"
    parts = ("kept",)

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        minus = fidelity_minus(bundle.start, _require_part(bundle.kept, "kept", self.name))
        return _mean_unless_all_selected(minus, bundle, bundle.top)


@dataclass(frozen=True)
class Characterization(Metric[Curves]):
    """The harmonic mean of fidelity_plus and 1 - fidelity_minus, for the same top edits, the mean
    over cases.
    """

    name = "characterization"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "curves"
    parts = ("kept", "removed")
    plus_weight: float = 0.5
    minus_weight: float = 0.5

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        minus = fidelity_minus(bundle.start, _require_part(bundle.kept, "kept", self.name))
        top = min(bundle.top, bundle.cap)
        plus = bundle.start - _height_with_top_removed(bundle, top, self.name)
        return _mean_unless_all_selected(
            characterization(plus, minus, self.plus_weight, self.minus_weight), bundle, top
        )


@dataclass(frozen=True)
class Unfaithfulness(Metric[Curves]):
    """How far the prediction moves with all edits but the top ones made (GraphXAI's GEF), the mean
    over cases.
    """

    name = "unfaithfulness"
    bounds = (0.0, 1.0)
    higher_is_better = False
    chance = None
    needs = "curves"
    parts = ("kept_prob", "start_prob")

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        first = _require_part(bundle.start_prob, "start_prob", self.name)
        moved = unfaithfulness(first, _require_part(bundle.kept_prob, "kept_prob", self.name))
        return _mean_unless_all_selected(moved, bundle, bundle.top)


@dataclass(frozen=True)
class DeletionAuc(Metric[Curves]):
    """The mean height of the explanation's curve, the mean over cases. Between 0 and 1 for
    probabilities.
    """

    name = "deletion_auc"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = False
    chance = None
    needs = "curves"
    parts = ()

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return _mean_over_targets(deletion_auc(bundle.curve, bundle.length), bundle)


@dataclass(frozen=True)
class InsertionAuc(Metric[Curves]):
    """The mean height while edits are taken back best first, all being made before; the mean over
    cases.
    """

    name = "insertion_auc"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = True
    chance = None
    needs = "curves"
    parts = ("insertion",)

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return _mean_over_targets(
            insertion_auc(_require_part(bundle.insertion, "insertion", self.name), bundle.length),
            bundle,
        )


@dataclass(frozen=True)
class FidelityPlusAuc(Metric[Curves]):
    """Area under fidelity_plus where the top edits are 10 to 90 % of the candidates; no value where
    there is one candidate.
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
            _require_part(bundle.removed_levels, "removed_levels", self.name), bundle
        )

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return fidelity_auc(self.levels(bundle))


@dataclass(frozen=True)
class FidelityMinusAuc(Metric[Curves]):
    """Area under fidelity_minus where the top edits are 10 to 90 % of the candidates; no value
    where there is one candidate.
    """

    name = "fidelity_minus_auc"
    bounds = (-torch.inf, torch.inf)
    higher_is_better = False
    chance = None
    needs = "curves"
    parts = ("kept_levels",)

    def levels(self, bundle: Curves) -> Tensor:
        """Fidelity_minus at 10, 20 .. 90 %.  (T, 9)"""
        return _loss_at_levels(_require_part(bundle.kept_levels, "kept_levels", self.name), bundle)

    def __call__(self, bundle: Curves) -> Tensor:
        """(T,)"""
        return fidelity_auc(self.levels(bundle))


def _loss_at_levels(height: Tensor, curves: Curves) -> Tensor:
    """What the output loses at each level, the mean over cases; no value where there is one
    candidate.  (Q, 9) -> (T, 9)
    """
    lost = (
        (curves.start[:, None] - height)
        .double()
        .masked_fill(curves.candidates[:, None] < 2, torch.nan)
    )
    return mean_over_cases(lost, curves.target, curves.num_targets)


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
        return stack_values(
            [
                sparsity(score).cpu() if len(score) else torch.tensor(torch.nan)
                for score in bundle.score
            ]
        )
