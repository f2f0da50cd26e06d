"""Graph cache: the computation graphs that were requested last.

A comparison needs the graphs of the same targets for each explainer, for its repetitions and for
the curves: about fifty times. Extracting and checking ten of them takes 5 ms on a CPU, and 15 on a
GPU, as long as most explainers take. So the last few are cached until the network or the data
change, unless they are large. Callers get copies, so their changes do not reach the cache.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from graphgauge.core import budget_bytes
from graphgauge.models.checked_extraction import extract_checked_graphs
from graphgauge.subgraphs import ComputationGraphs, Targets

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel

_CachedGraphs = dict[tuple[str, tuple[int, ...], bytes], ComputationGraphs]
_MAX_CACHED_LISTS = 4  #: lists of targets whose graphs are kept
_BUDGET_FRACTION = 64  #: of the memory budget that one of them may take: 1 / 64


def find_recent_graphs(model: "BaseModel", target: Targets, scope: str) -> ComputationGraphs:
    """`extract_checked_graphs`, or a copy of the result of an earlier call."""
    kept = _cached_graphs_of_model(model)
    key = (scope, tuple(target.rows.shape), target.rows.cpu().numpy().tobytes())
    graphs = kept.pop(key) if key in kept else extract_checked_graphs(model, target, scope)
    parts: dict[str, Any] = {
        entry.name: part
        for entry in fields(graphs)
        if isinstance(part := getattr(graphs, entry.name), Tensor)
    }
    if sum(part.nbytes for part in parts.values()) * _BUDGET_FRACTION > budget_bytes(
        model.executor.budget, model.source.device
    ):
        return graphs
    kept[key] = graphs
    for oldest in list(kept)[:-_MAX_CACHED_LISTS]:
        del kept[oldest]
    return replace(graphs, **{name: part.clone() for name, part in parts.items()})


def _cached_graphs_of_model(model: "BaseModel") -> _CachedGraphs:
    """Cached graphs by scope and targets, the latest last."""
    return model.cached_fact("recent graphs", dict)


@contextmanager
def without_cached_graphs(model: "BaseModel") -> Iterator[None]:
    """Extract graphs anew inside, as in a first call; afterwards the cache is as before."""
    with model.session():
        kept = _cached_graphs_of_model(model)
        before = dict(kept)
        kept.clear()
        try:
            yield
        finally:
            kept.clear()
            kept.update(before)
