"""Unordered pairs of nodes, each once and with the smaller node first; memory grows with the number
of pairs only.

A pair (u, v) of N nodes has the code  u N + v,  so that sets of pairs are sorted lists of whole
numbers.
"""

import torch
from torch import Tensor

from graphgauge.core import BadSetting


def _pair_codes(pairs: Tensor, num_nodes: int) -> Tensor:
    """One number for each unordered pair, whichever node comes first.  (2, P) -> (P,)"""
    low, high = pairs.sort(dim=0).values
    return low * num_nodes + high


def decode_pairs(codes: Tensor, num_nodes: int) -> Tensor:
    """The pairs of some codes.  (P,) -> (2, P)"""
    return torch.stack([codes // num_nodes, codes % num_nodes])


def undirected_pairs(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Every linked pair once, sorted.  (2, E) -> (2, P)

    >>> undirected_pairs(torch.tensor([[2, 0, 1], [0, 2, 2]]), 3)
    tensor([[0, 1],
            [2, 2]])
    """
    return decode_pairs(_pair_codes(edge_index, num_nodes).unique(), num_nodes)


def both_directions(pairs: Tensor, num_nodes: int) -> Tensor:
    """Two directed edges for each pair, sorted by source, then target.  (2, P) -> (2, 2 P)

    >>> both_directions(torch.tensor([[0, 1], [2, 2]]), 3)
    tensor([[0, 1, 2, 2],
            [2, 2, 0, 1]])
    """
    one, other = pairs
    return decode_pairs(
        torch.cat([one * num_nodes + other, other * num_nodes + one]).sort().values, num_nodes
    )


def random_pairs(
    num_nodes: int, number: int, generator: torch.Generator, without: Tensor | None = None
) -> Tensor:
    """Draw different pairs, uniformly among those that are not in ``without``, in random order.
    (2, number)

    Args:
        num_nodes: Number of nodes.
        number: How many pairs to draw.
        generator: Source of the random numbers.
        without: Pairs that must not be drawn.  (2, Q)
    """
    excluded = (
        _pair_codes(without, num_nodes).unique()
        if without is not None
        else torch.empty(0, dtype=torch.int64)
    )
    num_free = num_nodes * (num_nodes - 1) // 2 - len(excluded)
    if number > num_free:
        raise BadSetting(
            f"{number} pairs of {num_nodes} nodes were requested, but only {num_free} are free. "
            "Request fewer."
        )
    chosen = torch.empty(0, dtype=torch.int64)
    while len(chosen) < number:
        candidates = torch.randint(num_nodes, (2, 2 * number + 16), generator=generator)
        codes = _pair_codes(candidates[:, candidates[0] != candidates[1]], num_nodes)
        chosen = _first_occurrences(torch.cat([chosen, codes[~torch.isin(codes, excluded)]]))[
            :number
        ]
    return decode_pairs(chosen, num_nodes)


def _first_occurrences(values: Tensor) -> Tensor:
    """The different values in the order in which they first appear.

    >>> _first_occurrences(torch.tensor([7, 3, 7, 1, 3]))
    tensor([7, 3, 1])
    """
    ordered, position = values.sort(stable=True)
    is_first = torch.ones_like(ordered, dtype=torch.bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return values[position[is_first].sort().values]
