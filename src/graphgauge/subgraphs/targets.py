"""Targets: node ids, pairs of node ids or graph indices, each with a label if the network has
several.

`parse_targets` checks them once and raises `BadTarget`, naming the target, for one that is wrong.
Everything behind that door takes `Targets`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphgauge.core import IDS_PER_LEVEL, BadTarget, Target, canonical_target

_TARGET_FORMS = {
    "node": "a list of node ids, such as [0, 5]",
    "link": "a list of pairs, such as [(0, 5)]",
    "graph": "a list of graph indices",
}
_LABELLED_TARGET_FORMS = {
    "node": "a list of pairs (node, label), such as [(0, 2)]",
    "link": "a list of (node, node, label), such as [(0, 5, 2)]",
    "graph": "a list of pairs (graph, label), such as [(0, 2)]",
}


@dataclass(frozen=True)
class Targets:
    """Targets that were checked.

    Methods of models take them as they are, without another check. ``len``, iteration (over node
    ids, pairs and so on, as users write them) and ``[index]`` (a slice, a list, a mask or
    positions) work as for a list.

    Args:
        level: "node", "link" or "graph".
        size: How many nodes, or graphs, an id can name.
        rows: The ids of each target, followed by its label if there is one.  (T, 1) or (T, 2), or
            with one column more
    """

    level: str
    size: int
    rows: Tensor

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Target]:
        return map(canonical_target, self.to_user().tolist())

    def __getitem__(self, index: slice | list[int] | Tensor) -> "Targets":
        return self.with_rows(self.rows[index])

    @property
    def ids(self) -> Tensor:
        """The targets without their labels.  (T, 1) or (T, 2)"""
        return self.rows[:, : IDS_PER_LEVEL[self.level]]

    @property
    def label(self) -> Tensor | None:
        """The label of each target; None where targets have none.  (T,)"""
        return self.rows[:, -1] if self.rows.size(1) > IDS_PER_LEVEL[self.level] else None

    @property
    def device(self) -> torch.device:
        """Where the tensor is."""
        return self.rows.device

    def with_rows(self, rows: Tensor) -> "Targets":
        """Other targets of the same model. They are not checked."""
        return Targets(self.level, self.size, rows)

    def to_user(self) -> Tensor:
        """The targets as users give them: nodes or graphs (T,), links (T, 2), with labels the
        rows.
        """
        return self.rows if self.rows.size(1) > 1 else self.rows[:, 0]


#: a target as users write it: an id, a pair of ids, with the number or name of a label behind
TargetLike: TypeAlias = int | str | Sequence[int | str]
#: targets as users give them: a list, an array, a tensor, or targets that were checked before
TargetsLike: TypeAlias = Targets | Tensor | NDArray[np.generic] | Iterable[TargetLike]


@dataclass(frozen=True)
class LabelSet:
    """The labels of a network whose labels do not exclude each other.

    Args:
        count: Number of labels.
        names: What they are called, if that is known.
    """

    count: int
    names: Sequence[str] | None = None

    def parse_label(self, value: Any, item: Any) -> int:
        """The number of a label given by number or name. Raises BadTarget, naming the target."""
        if isinstance(value, str):
            if self.names is not None and value in self.names:
                return list(self.names).index(value)
            close = get_close_matches(value, self.names or (), n=1)
            known = (
                f" Did you mean {close[0]!r}?"
                if close
                else ""
                if self.names
                else " data.class_names, which would say, is missing."
            )
            raise BadTarget(
                f"target {item!r}: no label is called {value!r}.{known} Labels are "
                f"0..{self.count - 1}."
            )
        number = as_whole_number(value)
        if number is None:
            raise BadTarget(
                f"target {item!r}: the label {value!r} is neither a whole number nor a name."
            )
        if not 0 <= number < self.count:
            raise BadTarget(
                f"target {item!r}: there is no label {number}, the {self.count} labels are "
                f"0..{self.count - 1}."
            )
        return number


def parse_targets(
    targets: TargetsLike, level: str, size: int, labels: LabelSet | None = None
) -> Targets:
    """Check a list of targets.

    Args:
        targets: Node ids, pairs of node ids or graph indices, as a list, array or tensor. With
            labels each is a tuple that ends with the number or name of a label. Targets may be
            repeated.
        level: "node", "link" or "graph".
        size: Ids must be in [0, size).
        labels: The labels of the network, if a target names one of them.

    Raises:
        BadTarget: If a target is none; the message names it.

    >>> parse_targets([(0, 3), (2, 1)], "link", 4).rows
    tensor([[0, 3],
            [2, 1]])
    >>> parse_targets([(0, 1), (3, "cat")], "node", 4, LabelSet(2, ["cat", "dog"])).rows
    tensor([[0, 1],
            [3, 0]])
    """
    if (
        isinstance(targets, (str, bytes, dict))
        or not isinstance(targets, Iterable)
        or _is_scalar_array(targets)
    ):
        raise BadTarget(
            f"targets must be {_expected_target_form(level, labels)}, but {targets!r} was given."
        )
    if isinstance(targets, np.ndarray) and targets.dtype.kind in "iu":
        targets = torch.from_numpy(targets.astype(np.int64))
    width = IDS_PER_LEVEL[level] + (labels is not None)
    if isinstance(targets, Tensor) and _is_valid_tensor(targets, level, size, labels):
        rows = targets.detach().to(torch.int64).reshape(len(targets), width)
        return Targets(level, size, rows)
    items = targets.tolist() if isinstance(targets, (Tensor, np.ndarray)) else list(targets)
    numbers = [
        _parse_plain_target(item, level, size)
        if labels is None
        else _parse_labelled_target(item, level, size, labels)
        for item in items
    ]
    rows = torch.tensor(numbers, dtype=torch.int64).reshape(len(numbers), width)
    return Targets(level, size, rows)


def _expected_target_form(level: str, labels: LabelSet | None) -> str:
    """The expected form of targets, for error messages."""
    return _TARGET_FORMS[level] if labels is None else _LABELLED_TARGET_FORMS[level]


def _is_valid_tensor(
    targets: Tensor, level: str, size: int, labels: LabelSet | None = None
) -> bool:
    """Whether a tensor of targets is valid as a whole; otherwise each target is parsed to find the
    wrong one.
    """
    width = IDS_PER_LEVEL[level] + (labels is not None)
    shape_fits = targets.dim() == min(width, 2) and (width == 1 or targets.size(1) == width)
    if not shape_fits or targets.dtype not in (torch.int64, torch.int32) or not len(targets):
        return False
    ids = targets.reshape(len(targets), width)[:, : IDS_PER_LEVEL[level]]
    inside = bool(((ids >= 0) & (ids < size)).all())
    known = labels is None or bool(((targets[:, -1] >= 0) & (targets[:, -1] < labels.count)).all())
    return inside and known and (level != "link" or bool((ids[:, 0] != ids[:, 1]).all()))


def _is_scalar_array(value: Any) -> bool:
    """Whether ``value`` is an array or tensor without dimensions."""
    return isinstance(value, (Tensor, np.ndarray)) and value.ndim == 0


def _parse_labelled_target(item: Any, level: str, size: int, labels: LabelSet) -> list[int]:
    """Parse one target with a label into two or three numbers."""
    parts = item.tolist() if isinstance(item, (Tensor, np.ndarray)) else item
    if not isinstance(parts, (tuple, list)) or len(parts) != IDS_PER_LEVEL[level] + 1:
        raise BadTarget(
            f"target {item!r} has no label: this network gives {labels.count} labels, each "
            "evaluated on its own, so targets must "
            f"be {_LABELLED_TARGET_FORMS[level]}."
        )
    *ids, label = parts
    own = (
        _parse_link_ends(ids, level, size, item)
        if level == "link"
        else [_parse_target_id(ids[0], level, size, item)]
    )
    return [*own, labels.parse_label(label, item)]


def _parse_plain_target(item: Any, level: str, size: int) -> list[int]:
    """Parse one target into one or two ids."""
    if level == "link":
        pair = item.tolist() if isinstance(item, (Tensor, np.ndarray)) else item
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise BadTarget(
                f"target {item!r} is not a link: targets must be {_TARGET_FORMS[level]}."
            )
        return _parse_link_ends(pair, level, size, item)
    return [_parse_target_id(item, level, size, item)]


def _parse_link_ends(pair: Sequence[Any], level: str, size: int, item: Any) -> list[int]:
    """Parse both ends of a link."""
    ids = [_parse_target_id(end, level, size, item) for end in pair]
    if ids[0] == ids[1]:
        raise BadTarget(
            f"target {item!r} links node {ids[0]} to itself: a link target joins two different "
            "nodes."
        )
    return ids


def _parse_target_id(value: Any, level: str, size: int, item: Any) -> int:
    """Parse one id in [0, size). Raises BadTarget, naming the target."""
    number = as_whole_number(value)
    if number is None:
        value = (
            value.item() if isinstance(value, (Tensor, np.generic)) and value.ndim == 0 else value
        )
        mask = " Of a mask take mask.nonzero()[:, 0]." if isinstance(value, bool) else ""
        raise BadTarget(
            f"target {item!r} is not a whole number: targets must be {_TARGET_FORMS[level]}.{mask}"
        )
    kind = "graph" if level == "graph" else "node"
    if not 0 <= number < size:
        raise BadTarget(
            f"target {item!r} is not in this data: its {size} {kind}s are 0..{size - 1}."
        )
    return number


def as_whole_number(value: Any) -> int | None:
    """``value`` as a Python int, or None if it is not a whole number."""
    if isinstance(value, (Tensor, np.generic)) and value.ndim == 0:
        value = value.item()
    return None if isinstance(value, bool) or not isinstance(value, int) else int(value)
