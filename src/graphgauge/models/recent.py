"""The computation graphs that were asked for last.

A comparison asks for the graphs of the same targets for each explainer, for its repetitions and for the curves: some fifty times.
Cutting and checking ten of them takes 5 ms on a CPU, and 15 on a GPU, as long as most explainers take. So the last few are kept,
until the network or the data change, unless they are large or somebody has written into them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING

from torch import Tensor

from graphgauge.core.memory import budget_bytes
from graphgauge.models.computation import ComputationGraphs
from graphgauge.models.probing import checked_graphs

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel

Kept = dict[tuple[str, tuple[int, ...], bytes], tuple[ComputationGraphs, list[int]]]
MOST = 4  #: lists of targets whose graphs are kept
SHARE = 64  #: of the memory budget that one of them may take: 1 / 64


def recent_graphs(model: "BaseModel", target: Tensor, scope: str) -> ComputationGraphs:
    """`checked_graphs`, or the same of a call before."""
    kept = kept_graphs(model)
    key = (scope, tuple(target.shape), target.cpu().numpy().tobytes())
    graphs, versions = kept.pop(key, (None, []))
    if graphs is None or versions != versions_of(graphs):
        graphs = checked_graphs(model, target, scope)
    if sum(part.nbytes for part in parts_of(graphs)) * SHARE <= budget_bytes(model.engine.budget, model.source.device):
        kept[key] = graphs, versions_of(graphs)
    for oldest in list(kept)[:-MOST]:
        del kept[oldest]
    return graphs


def kept_graphs(model: "BaseModel") -> Kept:
    """Graphs by scope and targets, the latest last, and the versions of their tensors."""
    return model.known("recent graphs", dict)


@contextmanager
def no_recent_graphs(model: "BaseModel") -> Iterator[None]:
    """Graphs are cut anew inside, as in a first call; afterwards the same are kept as before."""
    kept = kept_graphs(model)
    before = dict(kept)
    kept.clear()
    try:
        yield
    finally:
        kept.clear()
        kept.update(before)


def versions_of(graphs: ComputationGraphs) -> list[int]:
    """Numbers that rise when somebody writes into the tensors."""
    return [part._version for part in parts_of(graphs)]


def parts_of(graphs: ComputationGraphs) -> list[Tensor]:
    """The tensors that graphs consist of, the data they are cut from aside."""
    return [part for entry in fields(graphs) if isinstance(part := getattr(graphs, entry.name), Tensor)]
