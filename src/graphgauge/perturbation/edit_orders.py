"""The order in which edits are made: by score, or at random.

Each target has a number of candidates (edges to remove, features to substitute). An order lists the
first K of them,

    order (K,)    candidate of the first edit, of the second ...; -1 behind the last

and the orders of many targets form one tensor (M, K).

A random order is the beginning of a uniformly drawn permutation, made by K swaps (Fisher and
Yates), so that its cost depends on K and not on the number of candidates. Random orders are drawn
in blocks of ten trials, each block from its own seed: trial 7 is the same however many trials there
are.

Features are ranked in blocks: the target's own features, and those of all other nodes, whose scores
are pooled. Pooling alone decides much of which block comes first, because the maximum of many
random scores is high. So a random order that is to tell whether an explanation ranks *features*
well keeps the blocks of its order, and permutes the features within each block:

    random order  =  the explanation's order with the features of each block renamed at random

The scores of an explanation that knows nothing are exchangeable with it, however they are
distributed, pooled and tied.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from graphgauge.core import derive_seed, make_generator
from graphgauge.subgraphs import pointers_from_counts

_TRIALS_AT_ONCE = 10
_MOST_PLACES = 2**22  #: largest number of entries of the table in which candidates are swapped


def orders_by_score(score: Tensor, count: Tensor, seeds: Sequence[int], size: int) -> Tensor:
    """Order candidates by falling score; ties are broken at random from the target's own seed.

    Args:
        score: Scores of the candidates of T targets, one target after the other (sum of count,).
        count: Number of candidates of each target (T,).
        seeds: One seed for each target.
        size: The number of places in an order.

    Returns:
        The best candidates of each target (T, size), then -1.

    >>> orders_by_score(torch.tensor([0.1, 0.7, -3.0, 5.0]), torch.tensor([3, 1]), [0, 1], 2)
    tensor([[ 1,  0],
            [ 0, -1]])
    """
    drawn = [
        draw_uniform(derive_seed(seed, "ties"), number)
        for number, seed in zip(count.tolist(), seeds, strict=True)
    ]
    owner = torch.repeat_interleave(torch.arange(len(count), device=score.device), count)
    by_chance = torch.cat([*drawn, torch.zeros(0, dtype=torch.float64)]).to(score.device).argsort()
    by_score = by_chance[score[by_chance].argsort(descending=True, stable=True)]
    listed = by_score[owner[by_score].argsort(stable=True)]
    first = pointers_from_counts(count)[:-1]
    return _first_of_each_run(listed - first[owner[listed]], count, size)


def _first_of_each_run(listed: Tensor, count: Tensor, size: int) -> Tensor:
    """The first ``size`` items of each run of ``count`` items, then -1. (sum of count,), (T,) ->
    (T, size)
    """
    place = torch.arange(size, device=count.device)
    at = pointers_from_counts(count)[:-1, None] + place
    is_there = place < count[:, None]
    items = listed[at.clamp(max=max(len(listed) - 1, 0))] if len(listed) else -1
    return torch.where(is_there, items, -1)


def random_orders(count: Tensor, seeds: Sequence[int], size: int, first: int, last: int) -> Tensor:
    """Random orders number ``first`` to ``last`` - 1 of Q cases.

    They depend on the case's seed, its number of candidates and ``size`` only, and are the same for
    every explainer.

    Args:
        count: Number of candidates of each case (Q,).
        seeds: One seed for each case.
        size: The number of places in an order.
        first: Number of the first order, from 0 on.
        last: One more than the number of the last order.

    Returns:
        Candidates (Q, last - first, size), then -1.

    >>> random_orders(torch.tensor([3]), [7], 5, 0, 1).sort().values
    tensor([[[-1, -1,  0,  1,  2]]])
    """
    number = last - first
    draws = torch.zeros(0, number, size)
    if seeds:
        draws = torch.stack([_draw_trials(seed, size, first, last) for seed in seeds])
    orders = _partial_permutations(draws.flatten(0, 1), count.cpu().repeat_interleave(number))
    return orders.view(len(count), number, size).to(count.device)


def random_orders_within_blocks(
    order: Tensor, count: Tensor, block: int, seeds: Sequence[int], number: int
) -> Tensor:
    """Random orders that keep the blocks of given orders.

    A trial draws one renaming for each target from the target's seed, and applies it to all M
    orders: what two orders share, their random versions share too.

    Args:
        order: M orders of each of T targets (T, M, K), with -1 behind the last candidate.
        count: Number of candidates of each target (T,), a multiple of ``block``.
        block: Number of consecutive candidates in each block.
        seeds: One seed for each target.
        number: The number of trials.

    Returns:
        Random versions of each order (T, M, number, K).

    >>> orders, counts = torch.tensor([[[2, 0, 3]]]), torch.tensor([4])
    >>> random_orders_within_blocks(orders, counts, 2, [7], 1)[0, 0, 0] // 2
    tensor([1, 0, 1])
    """
    orders = order.new_full((*order.shape[:2], number, order.size(2)), -1)
    sizes = count.tolist()
    for size in sorted(set(sizes)):  # targets with as many candidates are renamed together
        targets = [target for target, own in enumerate(sizes) if own == size]
        drawn = [
            draw_uniform(derive_seed(seeds[target], "within blocks", n), size // block, block)
            for target in targets
            for n in range(number)
        ]
        start = torch.arange(0, size, block)[:, None]
        names = (torch.stack(drawn).argsort(2) + start).view(len(targets), number, size)
        place = torch.tensor(targets, device=order.device)
        original = order[place][:, :, None]  # (targets, M, 1, K)
        name_of = names.to(order.device)[:, None].expand(-1, order.size(1), -1, -1)
        at = original.clamp(min=0).expand(-1, -1, number, -1)
        orders[place] = torch.where(original < 0, -1, name_of.gather(3, at))
    return orders


def _draw_trials(seed: int, size: int, first: int, last: int) -> Tensor:
    """Uniform numbers of trials ``first`` to ``last`` - 1, drawn on the CPU as float64. (R,
    size)
    """
    blocks = range(first // _TRIALS_AT_ONCE, -(-last // _TRIALS_AT_ONCE))
    drawn = [
        draw_uniform(derive_seed(seed, "orders", block), _TRIALS_AT_ONCE, size) for block in blocks
    ]
    rows = torch.cat([*drawn, torch.zeros(0, size, dtype=torch.float64)])
    start = blocks.start * _TRIALS_AT_ONCE
    return rows[first - start : last - start]


def _partial_permutations(draw: Tensor, count: Tensor) -> Tensor:
    """The beginning of a permutation of 0..count-1 for each row of uniform draws. (M, K), (M,) ->
    (M, K)
    """
    widest = int(count.max()) if len(count) else 0
    if widest == 0:
        return torch.full(draw.shape, -1, dtype=torch.int64)
    table = torch.arange(widest, dtype=torch.int32).repeat(
        min(len(draw), max(1, _MOST_PLACES // widest)), 1
    )
    parts = zip(draw.split(len(table)), count.split(len(table)), strict=True)
    return torch.cat([_permute_in_table(table, lines, each) for lines, each in parts])


def _permute_in_table(table: Tensor, draw: Tensor, count: Tensor) -> Tensor:
    """Permute the rows of ``table``, which holds 0, 1, 2 ... in each row and is restored at the
    end.

    At step k, entry k is swapped with one of the entries k..count-1.
    """
    start, flat = torch.arange(len(draw)) * table.size(1), table.view(-1)
    step = torch.arange(draw.size(1))[:, None]
    here = torch.minimum(step, (count - 1).clamp(min=0))
    chosen = here + (draw.t() * (count - step).clamp(min=0)).long()
    here, there = here + start, chosen + start
    order = torch.empty(there.shape, dtype=torch.int32)
    for k in range(len(there)):
        order[k] = flat[there[k]]
        flat[there[k]] = flat[here[k]]
    flat[there] = chosen.int()
    return torch.where(step < count, order, -1).t().long().contiguous()


def draw_uniform(seed: int, *shape: int) -> Tensor:
    """Numbers from U(0, 1), drawn on the CPU as float64."""
    return torch.rand(shape, generator=make_generator(seed), dtype=torch.float64)
