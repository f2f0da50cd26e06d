"""Training, validation and test parts, drawn with seed 0.

Labels are split 80/10/10, with the same shares for each class. In existence tasks, 10 % of the P
linked pairs are held out for validation and 10 % for tests, as PyG's ``RandomLinkSplit(0.1, 0.1,
is_undirected=True)`` does; the rest carries messages.
"""

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core import make_generator

SPLIT_PARTS = ("train", "val", "test")
SPLIT_SEED = 0


def stratified_split(
    y: Tensor, seed: int, val: float = 0.1, test: float = 0.1
) -> tuple[Tensor, Tensor, Tensor]:
    """Training, validation and test masks with the same shares for each class.  (N,) -> three (N,)
    bool

    Args:
        y: Class of each row.  (N,)
        seed: Seed of the split.
        val: Share of the validation part.
        test: Share of the test part.
    """
    order = torch.randperm(len(y), generator=make_generator(seed))
    rank = torch.empty(len(y))
    for label in y.unique():
        members = order[y[order] == label]
        rank[members] = torch.arange(len(members)) / len(members)
    is_test, is_val = rank < test, (rank >= test) & (rank < test + val)
    return ~(is_test | is_val), is_val, is_test


def split_labels(y: Tensor, seed: int = SPLIT_SEED) -> dict[str, Tensor]:
    """80/10/10 masks, stratified if ``y`` holds classes (whole numbers).  (N,) -> train_mask,
    val_mask, test_mask (N,)
    """
    classes = torch.zeros(len(y), dtype=torch.int64) if y.is_floating_point() else y
    return named_masks(*stratified_split(classes, seed))


def split_links(edge_index: Tensor) -> list[Tensor]:
    """The linked pairs of the three parts, each pair once, smaller node first.  (2, E) in both
    directions -> three (2, P_part)
    """
    pairs = edge_index[:, edge_index[0] < edge_index[1]]
    order = torch.randperm(pairs.shape[1], generator=make_generator(SPLIT_SEED))
    held_out = int(0.1 * len(order))
    return list(pairs[:, order].split([len(order) - 2 * held_out, held_out, held_out], dim=1))


def message_edges(edge_index: Tensor) -> Tensor:
    """The training links, first in one direction, then in the other.  (2, E) -> (2, E_train)"""
    train = split_links(edge_index)[0]
    return torch.cat([train, train.flip(0)], dim=1)


def named_masks(train: Tensor, val: Tensor, test: Tensor) -> dict[str, Tensor]:
    """The masks under PyG's names."""
    return {"train_mask": train, "val_mask": val, "test_mask": test}


def part_mask(data: Data, part: str) -> Tensor:
    """Which labelled rows belong to a part; "all" is every row, also those in no part.  (N,) or
    (L,) bool
    """
    return torch.ones_like(data.test_mask) if part == "all" else data[f"{part}_mask"]
