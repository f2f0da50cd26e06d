"""Stability corrected for chance: 0 is what permuted scores reach, 1 is equal up to scale.

The similarity of two independent explanations is not 0: independent scores reach 0.29 (normal),
0.65 (uniform) and 0.965 (σ(0.1 n), what the masks of GNNExplainer and GraphMask start from). The
corrected form puts chance at 0:

    (S - S0) / (1 - S0),   S0 = mean similarity after permuting b inside the joint support,
                                the entries where a or b is not 0

Features are permuted inside each block. Noise on fixed entries then scores 0. Scores that are
non-zero on *other* entries each time score below 0: they are less similar than chance on their
joint support. Where no permutation changes anything (one edge, equal scores) there is no value:
NaN, status "constant".
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import BadSetting
from graphgauge.metrics.base import Metric, stack_values
from graphgauge.metrics.bundles import Pairs
from graphgauge.metrics.stability import (
    NO_VALUE,
    check_has_edges,
    check_side_given,
    checked_score_blocks,
    edge_stability,
    feature_stability,
    score_blocks,
    unit_rows,
)

_CONSTANT_TOLERANCE = 1e-6
LONG_ROW = 2**16  #: rows of more scores share one permutation
_CELLS_AT_ONCE = 2**16  #: permuted scores that are held at a time, unless one pair has more


def edge_stability_by_chance(
    first: Tensor, second: Tensor, generator: torch.Generator, number: int = 1
) -> Tensor:
    """Similarity of edge scores after permutations, ``number`` for each pair.

    (R, E), (R, E) -> (R * number,)

    Args:
        first: Scores of R explanations.
        second: Those of the explanations to compare with; these are permuted.
        generator: The source of the permutations, on the CPU.
        number: Permutations of each pair.

    >>> scores = torch.tensor([[1.0, 1.0]])
    >>> edge_stability_by_chance(scores, 2 * scores, torch.Generator())
    tensor([1.])
    """
    check_has_edges(first)
    return 1 - _distance_by_chance(first, second, generator, number).flatten()


def feature_stability_by_chance(
    first: Tensor, second: Tensor, is_target: Tensor, generator: torch.Generator, number: int = 1
) -> Tensor:
    """Similarity of feature scores after permutations inside each block, ``number`` for each pair.

    The target's block of all pairs is permuted first, then the other nodes' block.

    (R, n, F), (R, n, F), (n,) -> (R * number,)

    Args:
        first: Scores of R explanations.
        second: Those of the explanations to compare with; these are permuted.
        is_target: Which nodes are the target's own.
        generator: The source of the permutations, on the CPU.
        number: Permutations of each pair.
    """
    distances = [
        _distance_by_chance(
            first[:, block].flatten(1), second[:, block].flatten(1), generator, number
        )
        for block in checked_score_blocks(first, is_target)
    ]
    return 1 - torch.stack(distances).mean(0).flatten()


def _distance_by_chance(
    first: Tensor, second: Tensor, generator: torch.Generator, number: int
) -> Tensor:
    """Distance of each pair after permuting the second inside the pair's joint support.

    Pairs that share their support, as those of a learned mask do, are computed together.

    (R, n), (R, n) -> (R, number)
    """
    in_support = (first != 0) | (second != 0)
    if bool((in_support == in_support[:1]).all()):
        return _distance_after_permutation(first, second, in_support[0], generator, number)
    return torch.cat(
        [
            _distance_after_permutation(a[None], b[None], inside, generator, number)
            for a, b, inside in zip(first, second, in_support, strict=True)
        ]
    )


def _distance_after_permutation(
    first: Tensor, second: Tensor, inside: Tensor, generator: torch.Generator, number: int
) -> Tensor:
    """Half the distance of unit vectors, the second permuted.

    A few pairs are computed at a time, so that copies of them take little memory. There are two or
    more of them: a single one would be summed in another order by several threads.

    (R, n), (R, n), (n,) bool -> (R, number)
    """
    place = inside.nonzero()[:, 0]
    orders, steps = _draw_permutations(len(first), len(place), generator, number)
    num_parts = len(first) * len(place) * number // _CELLS_AT_ONCE
    num_parts = max(1, min(len(first) // 2, num_parts))
    split = (rows.tensor_split(num_parts) for rows in (first, second, orders, steps))
    distances = []
    for one, two, *drawn in zip(*split, strict=True):
        permuted = _permute_rows(unit_rows(two[:, place]), *drawn)  # the length stays 1
        distances.append((unit_rows(one[:, place])[:, None] - permuted).norm(dim=-1) / 2)
    return torch.cat(distances)


def _draw_permutations(
    count: int, size: int, generator: torch.Generator, number: int
) -> tuple[Tensor, Tensor]:
    """Draw ``number`` permutations of each of R rows of n values, on the CPU.

    One permutation of each row is drawn; where several are asked for, it is rotated by random
    steps. A rotation of a uniform permutation is a uniform permutation, at a twentieth of the cost
    of twenty draws. Long rows share one permutation, rotated by steps of their own.

    Args:
        count: The number R of rows.
        size: The length n of the rows.
        generator: The source of the permutations, on the CPU.
        number: Permutations of each row.

    Returns:
        Orders (R, n), and steps of the rotations (R, number); without rotations (R, 0).
    """
    is_long = size > LONG_ROW
    orders = torch.empty(1 if is_long else count, size, dtype=torch.int32)
    for order in orders:
        torch.randperm(size, generator=generator, out=order)
    orders = orders.expand(count, size)
    if number == 1 and not is_long:
        return orders, torch.zeros(count, 0, dtype=torch.int64)
    if size == 0:
        return orders, torch.zeros(count, number, dtype=torch.int64)
    shape = (count if is_long else 1, number)
    return orders, torch.randint(size, shape, generator=generator).expand(count, number)


def _permute_rows(rows: Tensor, orders: Tensor, steps: Tensor) -> Tensor:
    """Permute and rotate each row.  (R, n), (R, n), (R, number) -> (R, number, n)"""
    size = rows.size(1)
    permuted = rows.gather(1, orders.to(rows.device, torch.int64))
    if not steps.size(1):
        return permuted[:, None]
    repeated = torch.cat([permuted, permuted], dim=1)
    rotated = [
        torch.stack([row[step : step + size] for step in steps_of_row])
        for row, steps_of_row in zip(repeated, steps.tolist(), strict=True)
    ]
    return torch.stack(rotated)


def has_permutable_entries(first: Tensor, second: Tensor) -> Tensor:
    """Whether the joint support of a pair has two entries or more.  (R, n), (R, n) -> () bool

    Args:
        first: Scores of R explanations.
        second: Those of the explanations to compare with.
    """
    return (((first != 0) | (second != 0)).sum(1) > 1).any()


def correct_for_chance(mean: Tensor, chance: Tensor) -> Tensor:
    """Stability with chance at 0 and 1 at 1: (S - S0) / (1 - S0).  (R,), (R,) -> (R,)

    NaN where chance is 1 (nothing can vary), or within 1e-6 of it: vectors of equal scores, scaled
    to unit length in single precision, differ by rounding, and rounding is not chance.

    Args:
        mean: Mean similarity of the pairs.
        chance: Mean similarity after permutations.

    >>> correct_for_chance(torch.tensor([0.75, 1.0]), torch.tensor([0.5, 1.0]))
    tensor([0.5000,    nan])
    """
    varies = 1 - chance > _CONSTANT_TOLERANCE
    return torch.where(varies, (mean - chance) / torch.where(varies, 1 - chance, 1), torch.nan)


def edge_stability_corrected(
    first: Tensor, second: Tensor, generator: torch.Generator, permutations: int = 20
) -> Tensor:
    """Mean similarity of R pairs with chance at 0.  (R, E), (R, E) -> ()

    NaN where nothing can be permuted.

    Args:
        first: Scores of R explanations.
        second: Those of the explanations to compare with; these are permuted.
        generator: The source of the permutations, on the CPU.
        permutations: Their number over all pairs.
    """
    pair = _pair_of_permutation(permutations, len(first)).to(first.device)
    chance = edge_stability_by_chance(first[pair], second[pair], generator).double().mean()
    corrected = correct_for_chance(edge_stability(first, second).double().mean(), chance)
    return torch.where(has_permutable_entries(first, second), corrected, torch.nan)


def feature_stability_corrected(
    first: Tensor,
    second: Tensor,
    is_target: Tensor,
    generator: torch.Generator,
    permutations: int = 20,
) -> Tensor:
    """Mean similarity of R pairs with chance at 0.  (R, n, F), (R, n, F), (n,) -> ()

    NaN where nothing can be permuted.

    Args:
        first: Scores of R explanations.
        second: Those of the explanations to compare with; these are permuted.
        is_target: Which nodes are the target's own.
        generator: The source of the permutations, on the CPU.
        permutations: Their number over all pairs.
    """
    pair = _pair_of_permutation(permutations, len(first)).to(first.device)
    chance = feature_stability_by_chance(first[pair], second[pair], is_target, generator)
    mean = feature_stability(first, second, is_target).double().mean()
    corrected = correct_for_chance(mean, chance.double().mean())
    is_permutable = [
        has_permutable_entries(first[:, block].flatten(1), second[:, block].flatten(1))
        for block in score_blocks(is_target)
    ]
    return torch.where(torch.stack(is_permutable).any(), corrected, torch.nan)


def _pair_of_permutation(number: int, num_pairs: int) -> Tensor:
    """Which pair each of ``number`` permutations is of: all pairs in turn.  (number,)"""
    if number < 1:
        raise BadSetting(f"chance needs one permutation or more, but {number} were asked for.")
    return torch.arange(number) % num_pairs


@dataclass(frozen=True)
class EdgeStabilityCorrected(Metric[Pairs]):
    """Edge stability with chance at 0; below 0 means less similar than chance.

    No value where nothing can be permuted ("constant").
    """

    name = "edge_stability_corrected"
    bounds = (-torch.inf, 1.0)
    higher_is_better = True
    chance = 0.0
    needs = "pairs"
    role = "calibrated"
    randomised = True
    permutations: int = 20

    def __call__(self, bundle: Pairs) -> Tensor:
        """(T,)"""
        check_side_given(bundle.first_edge, bundle, "edge")
        generators = bundle.generators(len(bundle.first_edge))
        targets = zip(bundle.first_edge, bundle.second_edge, generators, strict=True)
        return stack_values(
            [
                edge_stability_corrected(a, b, generator, self.permutations).cpu()
                if a.size(1)
                else NO_VALUE
                for a, b, generator in targets
            ]
        )


@dataclass(frozen=True)
class FeatureStabilityCorrected(Metric[Pairs]):
    """Feature stability with chance at 0; below 0 means less similar than chance.

    No value where nothing can be permuted ("constant").
    """

    name = "feature_stability_corrected"
    bounds = (-torch.inf, 1.0)
    higher_is_better = True
    chance = 0.0
    needs = "pairs"
    role = "calibrated"
    randomised = True
    permutations: int = 20

    def __call__(self, bundle: Pairs) -> Tensor:
        """(T,)"""
        check_side_given(bundle.first_feature, bundle, "feature")
        generators = bundle.generators(len(bundle.first_feature))
        parts = (bundle.first_feature, bundle.second_feature, bundle.is_target, generators)
        return stack_values(
            [
                feature_stability_corrected(a, b, is_target, generator, self.permutations).cpu()
                if a[0].numel()
                else NO_VALUE
                for a, b, is_target, generator in zip(*parts, strict=True)
            ]
        )
