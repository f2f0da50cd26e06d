"""Non-edges: sampled pairs of nodes that are not linked."""

import torch
from torch import Tensor

from graphgauge.core import derive_seed, make_generator


def sample_non_edges(stored: Tensor, num_nodes: int, wanted: int) -> Tensor:
    """``wanted`` different ordered pairs (u, v), u != v, that are not linked, or all there are.
    (<= wanted, 2)
    """
    random = make_generator(derive_seed(0, "population", "non-edges"))
    taken = (stored[:, 0] * num_nodes + stored[:, 1]).cpu().unique()
    if num_nodes**2 <= max(4 * wanted, 1_000_000):
        keys = torch.arange(num_nodes**2)
        keys = keys[_are_free_pairs(keys, taken, num_nodes)]
        found = keys[torch.randperm(len(keys), generator=random)[:wanted]]
    else:
        found = torch.zeros(0, dtype=torch.int64)
        while len(found) < wanted:
            keys = torch.randint(num_nodes**2, (2 * wanted,), generator=random)
            keys = torch.cat([found, keys[_are_free_pairs(keys, taken, num_nodes)]])
            found = _unique_in_order(keys)[:wanted]
    return torch.stack(
        [torch.div(found, num_nodes, rounding_mode="floor"), found % num_nodes], dim=1
    )


def _are_free_pairs(keys: Tensor, taken: Tensor, num_nodes: int) -> Tensor:
    """Which keys u * N + v join two different nodes that are not linked."""
    return (torch.div(keys, num_nodes, rounding_mode="floor") != keys % num_nodes) & ~torch.isin(
        keys, taken
    )


def _unique_in_order(keys: Tensor) -> Tensor:
    """Each key once, in the order of first appearance."""
    _, inverse = keys.unique(return_inverse=True)
    first = torch.full((int(inverse.max()) + 1 if len(keys) else 0,), len(keys)).scatter_reduce(
        0, inverse, torch.arange(len(keys)), "amin"
    )
    return keys[first.sort().values]
