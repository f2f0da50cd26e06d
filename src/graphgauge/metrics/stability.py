"""Stability: how much two explanations of one target, made independently, are alike.

For score vectors a, b with â = a / |a| (Euclidean),

    likeness(a, b) = 1 - |â - b̂| / 2          1: equal up to scale; 0: opposite

Edges: over E_rel. Features: the target's own scores (A) and those of all other nodes (B) apart,

    likeness = 1 - (d_A + d_B) / 2,   d_X = |f̂_X,1 - f̂_X,2| / 2          graphs have no A, lonely targets no B: the other alone

As in the paper, but: a vector of zeros counts as one that nothing changes (both zero: 1; one zero:
1/2), and B leaves the target out (the paper's text does, its algorithm does not). 0 is not chance:
independent scores reach 0.29 (normal), 0.65 (uniform) and 0.965 (σ(0.1 n), what GNNExplainer's and
GraphMask's masks start from). `correct_for_chance` puts chance at 0:

    (S - S0) / (1 - S0),   S0 = mean likeness after permuting b inside the joint support, the entries where a or b is not 0

for features in each of the two blocks on its own. Noise on fixed entries then scores 0. Scores that
are non-zero on *other* entries each time score below 0: they are less alike than chance on their
joint support. Where no permutation changes anything (one edge, equal scores) there is no value:
NaN, "constant".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from graphgauge.core import BadSetting, UndefinedScore
from graphgauge.metrics.base import Metric, Pairs, stack_values

_CONSTANT_TOLERANCE = 1e-6
_LONG_ROW = 2**16  #: scores of an explanation, from which on permutations are shared


def _unit_rows(rows: Tensor) -> Tensor:
    """Rows of length 1, whatever their scale; rows of zeros stay.  (R, n)"""
    if rows.size(-1) == 0:
        return rows
    largest = rows.abs().amax(-1, keepdim=True)
    scaled = rows / torch.where(
        largest > 0, largest, 1
    )  # squares of very large or small scores would not be numbers
    size = scaled.norm(dim=-1, keepdim=True)
    return scaled / torch.where(size > 0, size, 1)


def _half_distance(first: Tensor, second: Tensor) -> Tensor:
    """Half the distance of the unit vectors; 0 where both are zero, 1/2 where one is.
    (R, n), (R, n) -> (R,)
    """
    return (_unit_rows(first) - _unit_rows(second)).norm(dim=-1) / 2


def edge_stability(first: Tensor, second: Tensor) -> Tensor:
    """Likeness of edge scores (the paper's StabilityPairEdge).  (R, E_rel), (R, E_rel) -> (R,)

    >>> edge_stability(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 0.0]]))
    tensor([1.])
    """
    if first.size(-1) == 0:
        raise UndefinedScore(
            "edge stability compares scores of edges, but there is no edge: record the target as 'empty'."
        )
    return 1 - _half_distance(first, second)


def feature_stability(first: Tensor, second: Tensor, is_target: Tensor) -> Tensor:
    """Likeness of feature scores (the paper's StabilityPairFeature).  (R, n, F), (R, n, F), (n,) bool -> (R,)"""
    parts = score_blocks(is_target)
    if not parts or first.size(-1) == 0:
        raise UndefinedScore("feature stability compares scores of features, but there are none.")
    apart = [
        _half_distance(first[:, part].flatten(1), second[:, part].flatten(1)) for part in parts
    ]
    return 1 - torch.stack(apart).mean(0)


def score_blocks(is_target: Tensor) -> list[Tensor]:
    """The target's rows and the others', where there are any.  (n,) bool -> up to two (n,) bool"""
    return [part for part in (is_target, ~is_target) if bool(part.any())]


class JackknifeEstimate(NamedTuple):
    """The mean over all pairs of M explanations, and its standard error by the jackknife over
    explanations.
    """

    mean: Tensor
    error: Tensor


def jackknife_over_pairs(likeness: Tensor) -> JackknifeEstimate:
    """From the likeness of all pairs of M explanations, a symmetric matrix.  (M, M) -> (), ()

    Pairs share explanations, so the error is taken over explanations left out one at a time: with M
    = 15 the interval of two errors then covers the truth in 95 % of cases, with the naive error in
    53 %.
    """
    count = likeness.size(0)
    if count < 3:
        raise UndefinedScore(
            f"the binomial form needs 3 explanations or more for its error, but there are {count}."
        )
    off = likeness.double() * (1 - torch.eye(count, dtype=torch.float64, device=likeness.device))
    total = off.sum() / 2
    without = (total - off.sum(1)) / ((count - 1) * (count - 2) / 2)
    error = ((count - 1) / count * (without - without.mean()).square().sum()).sqrt()
    return JackknifeEstimate(total / (count * (count - 1) / 2), error)


def _distance_by_chance(
    first: Tensor, second: Tensor, generator: torch.Generator, number: int
) -> Tensor:
    """Distance of each pair after permuting the second inside the pair's joint support, ``number``
    times; pair by pair.

    Pairs that share their support, as those of a learned mask do, are worked out together.
    (R, n), (R, n) -> (R, number)
    """
    is_inside = (first != 0) | (second != 0)
    if bool((is_inside == is_inside[:1]).all()):
        place = is_inside[0].nonzero()[:, 0]
        return _distance_after_permutation(first[:, place], second[:, place], generator, number)
    rows = zip(first, second, is_inside, strict=True)
    return torch.cat(
        [
            _distance_after_permutation(a[None, inside], b[None, inside], generator, number)
            for a, b, inside in rows
        ]
    )


def _distance_after_permutation(
    first: Tensor, second: Tensor, generator: torch.Generator, number: int
) -> Tensor:
    """Likewise, where all entries count.  (R, n), (R, n) -> (R, number)"""
    moved = _permute_rows(
        _unit_rows(second), generator, number
    )  # a permutation does not change the length
    return (_unit_rows(first)[:, None] - moved).norm(dim=-1) / 2


def _permute_rows(rows: Tensor, generator: torch.Generator, number: int) -> Tensor:
    """``number`` permutations of each row, drawn on the CPU: one at random, or for more than one
    this one turned by random steps.

    Turning a uniformly drawn permutation gives a uniformly drawn permutation, at a twentieth of the
    cost of twenty draws. Long rows share one permutation, turned by steps of their own.

    (R, n) -> (R, number, n)
    """
    size, is_long = rows.size(1), rows.size(1) > _LONG_ROW
    orders = [
        torch.randperm(size, generator=generator, dtype=torch.int32)
        for _ in (rows[:1] if is_long else rows)
    ]
    drawn = rows.gather(1, torch.stack(orders).to(rows.device, torch.int64).expand_as(rows))
    if size == 0 or (number == 1 and not is_long):
        return drawn[:, None].expand(-1, number, -1)
    steps = torch.randint(size, (len(rows) if is_long else 1, number), generator=generator).expand(
        len(rows), number
    )
    twice = torch.cat([drawn, drawn], dim=1)
    turned = [
        [row[step : step + size] for step in own]
        for row, own in zip(twice, steps.tolist(), strict=True)
    ]
    return torch.stack([torch.stack(own) for own in turned])


def edge_stability_by_chance(
    first: Tensor, second: Tensor, generator: torch.Generator, number: int = 1
) -> Tensor:
    """Likeness of edge scores by chance, ``number`` permutations per pair.
    (R, E), (R, E) -> (R * number,)

    >>> edge_stability_by_chance(torch.tensor([[1.0, 1.0]]), torch.tensor([[2.0, 2.0]]), torch.Generator())
    tensor([1.])
    """
    if first.size(-1) == 0:
        raise UndefinedScore(
            "edge stability compares scores of edges, but there is no edge: record the target as 'empty'."
        )
    return 1 - _distance_by_chance(first, second, generator, number).flatten()


def feature_stability_by_chance(
    first: Tensor, second: Tensor, is_target: Tensor, generator: torch.Generator, number: int = 1
) -> Tensor:
    """Likeness of feature scores by chance, each block permuted on its own, first all pairs' target
    block, then the others'.

    (R, n, F), (R, n, F), (n,) -> (R * number,)
    """
    parts = score_blocks(is_target)
    if not parts or first.size(-1) == 0:
        raise UndefinedScore("feature stability compares scores of features, but there are none.")
    apart = [
        _distance_by_chance(
            first[:, part].flatten(1), second[:, part].flatten(1), generator, number
        )
        for part in parts
    ]
    return 1 - torch.stack(apart).mean(0).flatten()


def _pair_of_permutation(number: int, pairs: int) -> Tensor:
    """Which pair each of ``number`` permutations is of: all in turn.  (number,)"""
    if number < 1:
        raise BadSetting(f"chance needs one permutation or more, but {number} were asked for.")
    return torch.arange(number) % pairs


def edge_stability_corrected(
    first: Tensor, second: Tensor, generator: torch.Generator, permutations: int = 20
) -> Tensor:
    """Mean likeness of R pairs with chance at 0; NaN where nothing can be permuted.
    (R, E), (R, E) -> ()
    """
    which = _pair_of_permutation(permutations, len(first)).to(first.device)
    chance = edge_stability_by_chance(first[which], second[which], generator).double().mean()
    found = correct_for_chance(edge_stability(first, second).double().mean(), chance)
    return torch.where(has_permutable_entries(first, second), found, torch.nan)


def feature_stability_corrected(
    first: Tensor,
    second: Tensor,
    is_target: Tensor,
    generator: torch.Generator,
    permutations: int = 20,
) -> Tensor:
    """Mean likeness of R pairs with chance at 0; NaN where nothing can be permuted.
    (R, n, F), (R, n, F), (n,) -> ()
    """
    which = _pair_of_permutation(permutations, len(first)).to(first.device)
    chance = (
        feature_stability_by_chance(first[which], second[which], is_target, generator)
        .double()
        .mean()
    )
    found = correct_for_chance(feature_stability(first, second, is_target).double().mean(), chance)
    movable = [
        has_permutable_entries(first[:, part].flatten(1), second[:, part].flatten(1))
        for part in score_blocks(is_target)
    ]
    return torch.where(torch.stack(movable).any(), found, torch.nan)


def has_permutable_entries(first: Tensor, second: Tensor) -> Tensor:
    """Whether a pair has two entries or more to permute.  (R, n), (R, n) -> () bool"""
    return (((first != 0) | (second != 0)).sum(1) > 1).any()


def correct_for_chance(mean: Tensor, chance: Tensor) -> Tensor:
    """Stability with chance at 0 and 1 at 1:  (S - S0) / (1 - S0).  (R,), (R,) -> (R,)

    NaN where chance is 1 (nothing can vary), or less by 1e-6 or less: vectors of equal scores, made
    unit in single precision, differ by rounding, and rounding is not chance.
    """
    varies = 1 - chance > _CONSTANT_TOLERANCE
    return torch.where(varies, (mean - chance) / torch.where(varies, 1 - chance, 1), torch.nan)


def _check_side_given(first: Sequence[Tensor], pairs: Pairs, side: str) -> None:
    """Refuse pairs that hold only the other side."""
    if pairs.present_parts and not len(first):
        raise UndefinedScore(
            f"{side} stability was asked for, but the pairs hold no {side} scores: the explainer gives none."
        )


_NO_VALUE = torch.tensor(torch.nan, dtype=torch.float64)


@dataclass(frozen=True)
class EdgeStability(Metric[Pairs]):
    """The paper's: mean likeness of edge scores over pairs. For the binomial form, give all pairs
    of M explanations.
    """

    name = "edge_stability"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "pairs"

    def __call__(self, bundle: Pairs) -> Tensor:
        """(T,)"""
        _check_side_given(bundle.first_edge, bundle, "edge")
        both = zip(bundle.first_edge, bundle.second_edge, strict=True)
        return stack_values(
            [
                edge_stability(a, b).double().mean().cpu() if a.size(1) else _NO_VALUE
                for a, b in both
            ]
        )


@dataclass(frozen=True)
class FeatureStability(Metric[Pairs]):
    """The paper's: mean likeness of feature scores over pairs, the target's own and all others'
    apart.
    """

    name = "feature_stability"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "pairs"

    def __call__(self, bundle: Pairs) -> Tensor:
        """(T,)"""
        _check_side_given(bundle.first_feature, bundle, "feature")
        parts = zip(bundle.first_feature, bundle.second_feature, bundle.is_target, strict=True)
        return stack_values(
            [
                feature_stability(*part).double().mean().cpu() if part[0][0].numel() else _NO_VALUE
                for part in parts
            ]
        )


@dataclass(frozen=True)
class EdgeStabilityCorrected(Metric[Pairs]):
    """Edge stability with chance at 0. Below 0: less alike than chance. No value where nothing can
    be permuted ("constant").
    """

    name = "edge_stability_corrected"
    bounds = (-torch.inf, 1.0)
    higher_is_better = True
    chance = 0.0
    needs = "pairs"
    randomised = True
    permutations: int = 20

    def __call__(self, bundle: Pairs) -> Tensor:
        """(T,)"""
        _check_side_given(bundle.first_edge, bundle, "edge")
        parts = zip(
            bundle.first_edge,
            bundle.second_edge,
            bundle.generators(len(bundle.first_edge)),
            strict=True,
        )
        return stack_values(
            [
                edge_stability_corrected(*part, self.permutations).cpu()
                if part[0].size(1)
                else _NO_VALUE
                for part in parts
            ]
        )


@dataclass(frozen=True)
class FeatureStabilityCorrected(Metric[Pairs]):
    """Feature stability with chance at 0. Below 0: less alike than chance. No value where nothing
    can be permuted ("constant").
    """

    name = "feature_stability_corrected"
    bounds = (-torch.inf, 1.0)
    higher_is_better = True
    chance = 0.0
    needs = "pairs"
    randomised = True
    permutations: int = 20

    def __call__(self, bundle: Pairs) -> Tensor:
        """(T,)"""
        _check_side_given(bundle.first_feature, bundle, "feature")
        generators = bundle.generators(len(bundle.first_feature))
        parts = zip(
            bundle.first_feature, bundle.second_feature, bundle.is_target, generators, strict=True
        )
        return stack_values(
            [
                feature_stability_corrected(*part, self.permutations).cpu()
                if part[0][0].numel()
                else _NO_VALUE
                for part in parts
            ]
        )
