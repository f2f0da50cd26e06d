"""Targets of a loaded task: node ids, or pairs of node ids."""

from itertools import zip_longest

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core import derive_seed, lookup, make_generator
from graphgauge.datasets.link_tasks import is_existence_task
from graphgauge.datasets.splits import SPLIT_PARTS, part_mask

_DatasetTarget = int | tuple[int, int]


def targets_of(data: Data, part: str = "test") -> list[_DatasetTarget]:
    """The labelled nodes or pairs of a part.

    Args:
        data: A loaded task.
        part: "train", "val", "test" or "all" (also those in no part).

    >>> from graphgauge.datasets.loading import load
    >>> len(targets_of(load("BA-Shapes", "link"), "all"))
    1971
    """
    return _row_targets(data, _part_rows(data, part))


def _part_rows(data: Data, part: str) -> Tensor:
    """The positions of a part in the labels.  (T,)"""
    part = lookup({name: name for name in (*SPLIT_PARTS, "all")}, part, "part")
    return part_mask(data, part).nonzero()[:, 0].cpu()


def _row_targets(data: Data, rows: Tensor) -> list[_DatasetTarget]:
    """The nodes, or the pairs of nodes, at some positions of the labels.  (T,)"""
    if data.level == "node":
        return rows.tolist()
    source, target = data.edge_label_index.cpu()[:, rows].tolist()
    return list(zip(source, target, strict=True))


def benchmark_targets(data: Data, number: int = 100, seed: int = 0) -> list[_DatasetTarget]:
    """Draw targets from the test part, without replacement and each equally likely.

    If the test part has fewer targets, all are drawn. A smaller number gives the first targets of a
    larger one. In existence tasks links and non-edges alternate, links first.

    Args:
        data: A loaded task.
        number: How many targets to draw.
        seed: Seed of the draw.
    """
    rows = _part_rows(data, "test")
    chosen_rows = rows[
        torch.randperm(
            len(rows),
            generator=make_generator(derive_seed(seed, data.name, data.level, "benchmark targets")),
        )
    ]
    if is_existence_task(data):
        chosen_rows = _alternate_kinds(chosen_rows, data.edge_label.cpu()[chosen_rows] == 1)
    return _row_targets(data, chosen_rows[:number])


def _alternate_kinds(rows: Tensor, is_link: Tensor) -> Tensor:
    """A link, a non-edge, a link ..., followed by what is left of one kind.  (T,), (T,) bool ->
    (T,)
    """
    link_and_other = zip_longest(rows[is_link].tolist(), rows[~is_link].tolist())
    return torch.tensor(
        [row for pair in link_and_other for row in pair if row is not None], dtype=torch.int64
    )
