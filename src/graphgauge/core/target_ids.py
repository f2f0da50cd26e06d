"""Targets as plain numbers: a node, a link (a pair of nodes) or a graph, and perhaps a label."""

from typing import SupportsIndex, SupportsInt

from graphgauge.core.errors import BadExplanation

#: a node or graph, (u, v) a link; with labels (node, label), (u, v, label), (graph, label)
Target = int | tuple[int, ...]

#: how many ids name a target of each level
IDS_PER_LEVEL = {"node": 1, "link": 2, "graph": 1}


def canonical_target(target: SupportsInt | tuple[SupportsInt, ...] | list[int]) -> Target:
    """A target as Python's own numbers: one id, or a tuple of ids with the label behind them.

    Raises:
        BadExplanation: It is a text, or a list of no or of more than three numbers.

    >>> canonical_target([4]), canonical_target([4, 7]), canonical_target([4, 7, 0])
    (4, (4, 7), (4, 7, 0))
    """
    if isinstance(target, (list, tuple)) and len(target) in (2, 3):
        return tuple(int(number) for number in target)
    if isinstance(target, (list, tuple)) and len(target) == 1:
        return int(target[0])
    if isinstance(target, (list, tuple, str)):
        raise BadExplanation(
            "target must be one id or a pair of ids (or one of these and a label), "
            f"but is {target!r}."
        )
    return int(target)


def target_tuple(target: Target) -> tuple[int, ...]:
    """A target as a tuple, whatever its form."""
    return target if isinstance(target, tuple) else (target,)


def canonical_label(label: SupportsIndex) -> int:
    """The number of a class as Python's own number.

    Raises:
        BadExplanation: It is no whole number, or negative.
    """
    if isinstance(label, bool) or not hasattr(label, "__index__") or label.__index__() < 0:
        raise BadExplanation(
            f"label must be the number of a class, 0 or more, or None, but is {label!r}."
        )
    return int(label.__index__())
