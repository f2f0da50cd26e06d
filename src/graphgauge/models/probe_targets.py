"""Probes: the few targets on which facts about a network are tested."""

from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from graphgauge.subgraphs import (
    Targets,
)

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel


_Rows = TypeVar("_Rows", Tensor, Targets)


_NUM_PROBES = {"node": 12, "link": 12, "graph": 32}


def find_probes(model: "BaseModel", everything: Targets) -> Targets:
    """Evenly spaced targets: half of them among all, half among those at the end of the longest
    walks of messages.
    """
    count = _NUM_PROBES[model.level]
    if model.level == "graph":
        return evenly_spaced_rows(everything, count)
    deep = everything[
        _find_deep_nodes(model.source.edge_index, model.source.num_nodes)[everything.ids].any(1)
    ]
    probes = torch.cat(
        [
            evenly_spaced_rows(everything, count // 2).rows,
            evenly_spaced_rows(deep, count - count // 2).rows,
        ]
    )
    return everything.with_rows(probes.unique(dim=0))


def _find_deep_nodes(edge_index: Tensor, num_nodes: int, steps: int = 4) -> Tensor:
    """The nodes at the end of the longest walks along (or against) up to ``steps`` edges.  (N,)
    bool
    """
    ends = [torch.ones(num_nodes, dtype=torch.bool, device=edge_index.device) for _ in range(2)]
    for _ in range(steps):
        for way, (source, target) in enumerate((edge_index, edge_index.flip(0))):
            further = torch.zeros_like(ends[way])
            further[target[ends[way][source] & (source != target)]] = True
            ends[way] = further if bool(further.any()) else ends[way]
    return ends[0] | ends[1]


def evenly_spaced_rows(targets: _Rows, count: int) -> _Rows:
    """Up to ``count`` rows of ``targets``, evenly spread."""
    steps = torch.linspace(0, len(targets) - 1, count, dtype=torch.float64, device=targets.device)
    return targets[steps.round().long().unique()] if len(targets) else targets
