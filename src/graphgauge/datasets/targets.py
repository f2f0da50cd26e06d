"""Targets of a loaded task: node ids, or pairs of node ids."""

from itertools import zip_longest

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core.registry import lookup
from graphgauge.core.seeds import derive_seed, generator
from graphgauge.datasets.links import is_existence
from graphgauge.datasets.splits import PARTS

Target = int | tuple[int, int]


def targets_of(data: Data, part: str = "test") -> list[Target]:
    """The labelled nodes or pairs of a part: "train", "val", "test" or "all" (also those that are in no part).

    >>> from graphgauge.datasets.loading import load
    >>> len(targets_of(load("BA-Shapes", "link"), "all"))
    1971
    """
    return [target_at(data, row) for row in rows_of(data, part).tolist()]


def rows_of(data: Data, part: str) -> Tensor:
    """Row numbers in the labels.  (T,)"""
    part = lookup({name: name for name in (*PARTS, "all")}, part, "part")
    mask = torch.ones_like(data.test_mask) if part == "all" else data[f"{part}_mask"]
    return mask.nonzero()[:, 0].cpu()


def target_at(data: Data, row: int) -> Target:
    """The node, or the pair of nodes, that a row of the labels belongs to."""
    if data.level == "node":
        return row
    source, target = data.edge_label_index[:, row].tolist()
    return source, target


def benchmark_targets(data: Data, number: int = 100, seed: int = 0) -> list[Target]:
    """Targets drawn from the test part without replacement, all if there are fewer; fewer targets are the first of more.

    Each is equally likely; where the task is whether a link exists, links and non-edges take turns, links first.
    """
    rows = rows_of(data, "test")
    drawn = rows[torch.randperm(len(rows), generator=generator(derive_seed(seed, data.name, data.level, "benchmark targets")))]
    if is_existence(data):
        drawn = taking_turns(drawn, data.edge_label.cpu()[drawn] == 1)
    return [target_at(data, row) for row in drawn[:number].tolist()]


def taking_turns(rows: Tensor, is_link: Tensor) -> Tensor:
    """A link, a non-edge, a link ..., and at the end what is left of one kind.  (T,), (T,) bool -> (T,)"""
    both = zip_longest(rows[is_link].tolist(), rows[~is_link].tolist())
    return torch.tensor([row for turn in both for row in turn if row is not None], dtype=torch.int64)
