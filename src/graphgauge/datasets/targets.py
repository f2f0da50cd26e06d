"""Targets of a loaded task: node ids, or pairs of node ids."""

from itertools import zip_longest

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core.registry import lookup
from graphgauge.core.seeds import derive_seed, generator
from graphgauge.datasets.links import is_existence
from graphgauge.datasets.splits import PARTS, part_mask

Target = int | tuple[int, int]


def targets_of(data: Data, part: str = "test") -> list[Target]:
    """The labelled nodes or pairs of a part.

    Args:
        data: A loaded task.
        part: "train", "val", "test" or "all" (also those in no part).

    >>> from graphgauge.datasets.loading import load
    >>> len(targets_of(load("BA-Shapes", "link"), "all"))
    1971
    """
    return targets_at(data, rows_of(data, part))


def rows_of(data: Data, part: str) -> Tensor:
    """The positions of a part in the labels.  (T,)"""
    part = lookup({name: name for name in (*PARTS, "all")}, part, "part")
    return part_mask(data, part).nonzero()[:, 0].cpu()


def targets_at(data: Data, rows: Tensor) -> list[Target]:
    """The nodes, or the pairs of nodes, at some positions of the labels.  (T,)"""
    if data.level == "node":
        return rows.tolist()
    source, target = data.edge_label_index.cpu()[:, rows].tolist()
    return list(zip(source, target, strict=True))


def benchmark_targets(data: Data, number: int = 100, seed: int = 0) -> list[Target]:
    """Draw targets from the test part, without replacement and each equally likely.

    If the test part has fewer targets, all are drawn. A smaller number gives the first targets of a
    larger one. In existence tasks links and non-edges alternate, links first.

    Args:
        data: A loaded task.
        number: How many targets to draw.
        seed: Seed of the draw.
    """
    rows = rows_of(data, "test")
    chosen_rows = rows[
        torch.randperm(
            len(rows),
            generator=generator(derive_seed(seed, data.name, data.level, "benchmark targets")),
        )
    ]
    if is_existence(data):
        chosen_rows = taking_turns(chosen_rows, data.edge_label.cpu()[chosen_rows] == 1)
    return targets_at(data, chosen_rows[:number])


def taking_turns(rows: Tensor, is_link: Tensor) -> Tensor:
    """A link, a non-edge, a link ..., followed by what is left of one kind.  (T,), (T,) bool ->
    (T,)
    """
    link_and_other = zip_longest(rows[is_link].tolist(), rows[~is_link].tolist())
    return torch.tensor(
        [row for pair in link_and_other for row in pair if row is not None], dtype=torch.int64
    )
