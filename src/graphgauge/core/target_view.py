"""Feature scores as seen from the target of an explanation."""

from typing import NamedTuple

from torch import Tensor

#: how the rows of several nodes become one.  (n, F) -> (F,)
POOLINGS = {
    "max": lambda rows: rows.amax(0),
    "sum": lambda rows: rows.sum(0),
    "mean": lambda rows: rows.mean(0),
    "abs_max": lambda rows: rows.abs().amax(0),
}


class TargetView(NamedTuple):
    """The target's own row(s) of feature scores, and those of all other nodes pooled into one."""

    target: Tensor  #: (1, F) for a node, (2, F) for a link, (0, F) for a graph
    neighbours: Tensor  #: (1, F), or (0, F) when there is no other node
