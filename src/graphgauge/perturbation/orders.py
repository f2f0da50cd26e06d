"""In which order edits are made: by their scores, or at random.

Each target has a number of candidates (edges to remove, features to substitute). An order lists the first K of them,

    order (K,)    candidate of the first edit, of the second ...; -1 behind the last

and orders of many targets are one tensor (M, K). Random orders are the first K of a uniformly drawn permutation, by K swaps
(Fisher and Yates), so that 3,000 candidates cost no more than K. They are drawn in blocks of ten trials, each from a seed of its
own: trial 7 is the same however many trials there are.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from graphgauge.core.seeds import derive_seed, generator
from graphgauge.models.arcs import starts

TRIALS_AT_ONCE = 10
MOST_PLACES = 2**24  #: of the tables in which candidates are swapped, at a time


def orders_by_score(score: Tensor, count: Tensor, seeds: Sequence[int], size: int) -> Tensor:
    """Highest score first; equal scores in an order drawn from the target's own seed.  (sum of count,), (T,) -> (T, size)

    >>> orders_by_score(torch.tensor([0.1, 0.7, -3.0, 5.0]), torch.tensor([3, 1]), [0, 1], 2)
    tensor([[ 1,  0],
            [ 0, -1]])
    """
    drawn = [uniform(derive_seed(seed, "ties"), number) for number, seed in zip(count.tolist(), seeds, strict=True)]
    owner = torch.repeat_interleave(torch.arange(len(count), device=score.device), count)
    by_chance = torch.cat([*drawn, torch.zeros(0, dtype=torch.float64)]).to(score.device).argsort()
    by_score = by_chance[score[by_chance].argsort(descending=True, stable=True)]
    listed = by_score[owner[by_score].argsort(stable=True)]
    first = starts(count)[:-1]
    return listed_first(listed - first[owner[listed]], count, size)


def listed_first(listed: Tensor, count: Tensor, size: int) -> Tensor:
    """The first ``size`` of each run of ``count`` things; -1 where a run is shorter.  (sum of count,), (T,) -> (T, size)"""
    place = torch.arange(size, device=count.device)
    at = starts(count)[:-1, None] + place
    is_there = place < count[:, None]
    return torch.where(is_there, listed[at.clamp(max=max(len(listed) - 1, 0))] if len(listed) else -1, -1)


def random_orders(count: Tensor, seeds: Sequence[int], size: int, first: int, last: int) -> Tensor:
    """Random orders number ``first`` to ``last`` - 1 of each of Q cases with ``count`` candidates.  (Q,) -> (Q, R, size)

    They depend on the case's seed, its number of candidates and ``size`` only, and serve every explainer.
    """
    draws = torch.stack([trials(seed, size, first, last) for seed in seeds]) if seeds else torch.zeros(0, last - first, size)
    lines, each = draws.flatten(0, 1), count.cpu().repeat_interleave(last - first)
    parts = (each.cumsum(0) // MOST_PLACES).unique_consecutive(return_counts=True)[1].tolist()
    found = [swapped(a, b) for a, b in zip(lines.split(parts), each.split(parts), strict=True)]
    return torch.cat([*found, torch.zeros(0, size, dtype=torch.int64)]).view(len(count), last - first, size).to(count.device)


def trials(seed: int, size: int, first: int, last: int) -> Tensor:
    """Uniform numbers of trials ``first`` to ``last`` - 1, drawn on the CPU and in double precision.  (R, size)"""
    blocks = range(first // TRIALS_AT_ONCE, -(-last // TRIALS_AT_ONCE))
    drawn = [uniform(derive_seed(seed, "orders", block), TRIALS_AT_ONCE, size) for block in blocks]
    start = blocks.start * TRIALS_AT_ONCE
    return torch.cat([*drawn, torch.zeros(0, size, dtype=torch.float64)])[first - start : last - start]


def swapped(draw: Tensor, count: Tensor) -> Tensor:
    """The first entries of a permutation of 0..count-1 for each line of uniform draws.  (M, K), (M,) -> (M, K)

    At step k entry k is exchanged with one of the entries k..count-1.
    """
    start = starts(count)[:-1]
    table = torch.arange(int(count.sum())) - start.repeat_interleave(count)
    order = torch.full(draw.shape, -1, dtype=torch.int64)
    for k in range(draw.size(1)):
        is_left = count > k
        here = start[is_left] + k
        there = here + (draw[is_left, k] * (count[is_left] - k)).long()
        order[is_left, k] = table[there]
        table[there] = table[here]
    return order


def uniform(seed: int, *shape: int) -> Tensor:
    """U(0, 1), on the CPU and in double precision."""
    return torch.rand(shape, generator=generator(seed), dtype=torch.float64)
