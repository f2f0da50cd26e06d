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
    """The labelled nodes or pairs of a part: "train", "val", "test" or "all" (also those that are
    in no part).

    >>> from graphgauge.datasets.loading import load
    >>> len(targets_of(load("BA-Shapes", "link"), "all"))
    1971
    """
    return targets_at(data, rows_of(data, part))


def rows_of(data: Data, part: str) -> Tensor:
    """Row numbers in the labels.  (T,)"""
    part = lookup({name: name for name in (*PARTS, "all")}, part, "part")
    return part_mask(data, part).nonzero()[:, 0].cpu()


def targets_at(data: Data, rows: Tensor) -> list[Target]:
    """The nodes, or the pairs of nodes, that rows of the labels belong to.  (T,)"""
    if data.level == "node":
        return rows.tolist()
    source, target = data.edge_label_index.cpu()[:, rows].tolist()
    return list(zip(source, target, strict=True))


def benchmark_targets(data: Data, number: int = 100, seed: int = 0) -> list[Target]:
    """Targets drawn from the test part without replacement, all if there are fewer; fewer targets
    are the first of more.

    Each is equally likely; where the task is whether a link exists, links and non-edges take turns,
    links first.
    """
    rows = rows_of(data, "test")
    drawn = rows[
        torch.randperm(
            len(rows),
            generator=generator(derive_seed(seed, data.name, data.level, "benchmark targets")),
        )
    ]
    if is_existence(data):
        drawn = taking_turns(drawn, data.edge_label.cpu()[drawn] == 1)
    return targets_at(data, drawn[:number])


def taking_turns(rows: Tensor, is_link: Tensor) -> Tensor:
    """A link, a non-edge, a link ..., and at the end what is left of one kind.  (T,), (T,) bool -> (T,)"""
    both = zip_longest(rows[is_link].tolist(), rows[~is_link].tolist())
    return torch.tensor(
        [row for turn in both for row in turn if row is not None], dtype=torch.int64
    )
