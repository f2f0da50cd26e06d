"""How alike repeated explanations are by chance: similarity after permuting one of each pair.

The permutations of a target come from a generator of its own, on the CPU, so that they depend on
nothing else. On a CPU each target is computed by the functions of `metrics.stability_by_chance`. On
a GPU that would cost some fifty launches a target; there, the same permutations are drawn, and the
distances of all targets with rows of about the same length are computed together.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from graphgauge.core import make_generator
from graphgauge.evaluation.repeated_scores import RepeatedScores
from graphgauge.metrics import (
    LONG_ROW,
    edge_stability_by_chance,
    feature_stability_by_chance,
    has_permutable_entries,
    score_blocks,
    unit_rows,
)


def similarities_by_chance(
    scores: RepeatedScores, first: Tensor, second: Tensor, permutations: int, seeds: Sequence[int]
) -> list[float]:
    """Mean similarity of pairs after permutations of one of each, over all pairs in turn.

    Args:
        scores: Scores of T targets.
        first: Numbers of the first explanation of each pair.  (P,)
        second: Numbers of the second, which is permuted.  (P,)
        permutations: How many there are of all pairs together.
        seeds: The seed of each target.

    Returns:
        One number for each target; NaN for targets that cannot be compared.
    """
    number = permutations if len(first) == 1 else 1
    chosen = torch.arange(permutations // number) % len(first)
    first, second = first[chosen], second[chosen]
    if _is_joint(scores):
        return _all_targets_by_chance(scores, first, second, number, seeds)
    return [
        torch.nan if why else _target_by_chance(scores, k, first, second, number, seed)
        for k, (why, seed) in enumerate(zip(scores.status, seeds, strict=True))
    ]


def _is_joint(scores: RepeatedScores) -> bool:
    """Whether all targets are computed together: on a GPU, if no row is so long that rows share one
    permutation.
    """
    if scores.value is None or scores.value.device.type == "cpu":
        return False
    return max(scores.row_lists[1], default=0) * scores.value.size(1) <= LONG_ROW


def _target_by_chance(
    scores: RepeatedScores, k: int, first: Tensor, second: Tensor, number: int, seed: int
) -> float:
    """The similarity by chance of target number k."""
    own, is_own = scores.of_target(k)
    one, two = own[first.to(own.device)], own[second.to(own.device)]
    if not any(
        bool(has_permutable_entries(one[:, part].flatten(1), two[:, part].flatten(1)))
        for part in score_blocks(is_own)
    ):
        return 1.0
    generator = make_generator(seed)
    if scores.side == "edge":
        alike = edge_stability_by_chance(one, two, generator, number)
    else:
        alike = feature_stability_by_chance(one, two, is_own, generator, number)
    return float(alike.double().mean())


def _all_targets_by_chance(
    scores: RepeatedScores, first: Tensor, second: Tensor, number: int, seeds: Sequence[int]
) -> list[float]:
    """The similarities by chance of all targets, block after block."""
    assert scores.value is not None
    device = scores.value.device
    first, second = first.to(device), second.to(device)
    total = scores.value.new_zeros(len(scores), len(first) * number)
    count = scores.value.new_zeros(len(scores), 1)
    is_permutable = torch.zeros(len(scores), dtype=torch.bool, device=device)
    generators = [make_generator(seed) for seed in seeds]
    for block in scores.blocks:
        for target, rows in scores.groups_of_rows(block):
            one, two = rows[:, first], rows[:, second]
            in_support = (one != 0) | (two != 0)
            size = in_support.sum(2)
            # entries of the joint support come first, in their order
            place = (~in_support).byte().argsort(dim=2, stable=True)
            one, two = unit_rows(one.gather(2, place)), unit_rows(two.gather(2, place))
            own = [generators[k] for k in target.tolist()]
            order = _draw_orders(size.tolist(), rows.size(2), number, own).to(device)
            permuted = two[:, :, None].expand(order.shape).gather(3, order.long())
            distance = (one[:, :, None] - permuted).norm(dim=3) / 2
            total[target] += distance.flatten(1)
            count[target] += 1
            is_permutable[target] |= (size > 1).any(1)
    alike = torch.where(is_permutable, (1 - total / count).double().mean(1), 1.0)
    values: list[float] = alike.tolist()
    return [torch.nan if why else value for why, value in zip(scores.status, values, strict=True)]


def _draw_orders(
    sizes: list[list[int]], width: int, number: int, generators: Sequence[torch.Generator]
) -> Tensor:
    """Orders that permute the first ``size`` entries of each row and leave the others in place.

    Rotations of one permutation serve where several are asked for, as in
    `metrics.stability_by_chance`.

    Args:
        sizes: How many entries of each row of each target are permuted.  (G, P)
        width: Length n of the rows.
        number: Permutations of each row; more than one for single rows only.
        generators: The generator of each target.

    Returns:
        Places to take entries from.  (G, P, number, n) int32
    """
    num_rows = len(sizes[0])
    order = torch.arange(width, dtype=torch.int32).repeat(len(sizes), num_rows, number, 1)
    for k, (of_target, generator) in enumerate(zip(sizes, generators, strict=True)):
        for row, size in enumerate(of_target):
            drawn = torch.randperm(size, generator=generator, dtype=torch.int32)
            if number == 1:
                order[k, row, 0, :size] = drawn
            elif size:
                steps = torch.randint(size, (1, number), generator=generator)[0]
                turned = (torch.arange(size) + steps[:, None]) % size
                order[k, row, :, :size] = drawn[turned]
    return order
