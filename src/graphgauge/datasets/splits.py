"""Training, validation and test parts."""

import torch
from torch import Tensor

from graphgauge.core.seeds import generator

PARTS = ("train", "val", "test")


def stratified_split(y: Tensor, seed: int, val: float = 0.1, test: float = 0.1) -> tuple[Tensor, Tensor, Tensor]:
    """Training, validation and test masks with each class in the same shares.  (N,) -> three (N,) bool"""
    order = torch.randperm(len(y), generator=generator(seed))
    rank = torch.empty(len(y))
    for label in y.unique():
        members = order[y[order] == label]
        rank[members] = torch.arange(len(members)) / len(members)
    is_test, is_val = rank < test, (rank >= test) & (rank < test + val)
    return ~(is_test | is_val), is_val, is_test


def split_of(y: Tensor, seed: int = 0) -> dict[str, Tensor]:
    """80/10/10 masks, stratified if ``y`` holds classes (whole numbers).  (N,) -> train_mask, val_mask, test_mask (N,)"""
    classes = torch.zeros(len(y), dtype=torch.int64) if y.is_floating_point() else y
    return named_masks(*stratified_split(classes, seed))


def named_masks(train: Tensor, val: Tensor, test: Tensor) -> dict[str, Tensor]:
    """The masks under the names that PyG gives them."""
    return {"train_mask": train, "val_mask": val, "test_mask": test}
