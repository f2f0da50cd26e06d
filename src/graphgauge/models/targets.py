"""Reading a list of targets: node ids, pairs of node ids, or graph indices. A wrong one is refused by name."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphgauge.core.errors import BadTarget

WIDTH = {"node": 1, "link": 2, "graph": 1}
FORM = {
    "node": "a list of node ids, such as [0, 5]",
    "link": "a list of pairs, such as [(0, 5)]",
    "graph": "a list of graph indices",
}


def read_targets(targets: Any, level: str, size: int) -> Tensor:
    """Targets as (T, 1) or (T, 2) whole numbers in [0, size). Repeated ones are kept.

    >>> read_targets([(0, 3), (2, 1)], "link", 4)
    tensor([[0, 3],
            [2, 1]])
    """
    if isinstance(targets, (str, bytes, dict)) or not isinstance(targets, Iterable) or is_scalar(targets):
        raise BadTarget(f"targets must be {FORM[level]}, but {targets!r} was given.")
    if isinstance(targets, np.ndarray) and targets.dtype.kind in "iu":
        targets = torch.from_numpy(targets.astype(np.int64))
    if isinstance(targets, Tensor) and is_well_formed(targets, level, size):
        return targets.detach().to(torch.int64).reshape(len(targets), WIDTH[level])
    items = targets.tolist() if isinstance(targets, (Tensor, np.ndarray)) else list(targets)
    rows = [read_one(item, level, size) for item in items]
    return torch.tensor(rows, dtype=torch.int64).reshape(len(rows), WIDTH[level])


def is_well_formed(targets: Tensor, level: str, size: int) -> bool:
    """Whether a tensor can be taken as it is; if not, reading it item by item finds what is wrong."""
    shape_fits = targets.dim() == WIDTH[level] and (level != "link" or targets.size(1) == 2)
    if not shape_fits or targets.dtype not in (torch.int64, torch.int32) or not len(targets):
        return False
    inside = bool(((targets >= 0) & (targets < size)).all())
    return inside and (level != "link" or bool((targets[:, 0] != targets[:, 1]).all()))


def is_scalar(value: Any) -> bool:
    """Whether ``value`` is an array or tensor without dimensions."""
    return isinstance(value, (Tensor, np.ndarray)) and value.ndim == 0


def read_one(item: Any, level: str, size: int) -> list[int]:
    """One target as a list of one or two ids."""
    if level == "link":
        pair = item.tolist() if isinstance(item, (Tensor, np.ndarray)) else item
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise BadTarget(f"target {item!r} is not a link: targets must be {FORM[level]}.")
        ids = [read_id(end, level, size, item) for end in pair]
        if ids[0] == ids[1]:
            raise BadTarget(f"target {item!r} links node {ids[0]} to itself: a link target joins two different nodes.")
        return ids
    return [read_id(item, level, size, item)]


def read_id(value: Any, level: str, size: int, item: Any) -> int:
    """A whole number in [0, size), or an error that names the target."""
    if isinstance(value, (Tensor, np.generic)) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int):
        mask = " Of a mask take mask.nonzero()[:, 0]." if isinstance(value, bool) else ""
        raise BadTarget(f"target {item!r} is not a whole number: targets must be {FORM[level]}.{mask}")
    kind = "graph" if level == "graph" else "node"
    if not 0 <= value < size:
        raise BadTarget(f"target {item!r} is not in this data: its {size} {kind}s are 0..{size - 1}.")
    return int(value)
