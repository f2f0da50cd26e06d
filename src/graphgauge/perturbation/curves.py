"""Deletion curves: the prediction after each of the first k edits of an order, for many targets and
orders at once.

A *case* is a target together with the kind of edits made to it (removed edges; features substituted
from one reference). A *line* is a case and an order of its candidates. Each point (line, step k) is
a copy of the target's computation graph with the first k edits made; all points are one stream of
disjoint unions inside the memory budget. A step that changes nothing in the graph (a feature that
is the same in the reference) is not run again: its prediction is that of the step before. Where
edges are dropped, a point that the network cannot answer, such as a graph without edges, is NaN.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core.errors import GraphgaugeError
from graphgauge.models import BaseModel, ComputationGraphs, Union
from graphgauge.models.engine import Copies, Engine, Work, is_out_of_memory
from graphgauge.models.probing import FORWARD_ERRORS


@dataclass(frozen=True)
class Lines:
    """Orders of edits."""

    case: Tensor  #: (M,) which case each line is of
    order: Tensor  #: (M, K) candidates in the order of their edits; -1 behind the last

    def __len__(self) -> int:
        return len(self.case)


@dataclass(frozen=True)
class Points:
    """Predictions along lines."""

    line: Tensor  #: (P,)
    step: Tensor  #: (P,) from 1
    prediction: Tensor  #: (P, C) or (P,)


class Edits(ABC):
    """Edits of one side: of edges, or of features."""

    graphs: ComputationGraphs  #: of the targets
    graph: Tensor  #: (Q,) the number of each case's target
    kind: str  #: for the memory plan
    drops: bool = False  #: whether graphs lose edges, which not every network can answer

    @property
    @abstractmethod
    def candidates(self) -> Tensor:
        """How many edits each case has.  (Q,)"""

    @abstractmethod
    def changes(self, lines: Lines) -> Tensor:
        """Whether a step changes anything.  (M, K) bool"""

    @abstractmethod
    def edit(self, union: Union, lines: Lines, line: Tensor, step: Tensor) -> Union:
        """The union with the first ``step`` (copies,) edits of ``line`` (copies,) made in each
        copy; lines come in rising order.
        """

    def unfolded(self, model: BaseModel, lines: Lines, line: Tensor, step: Tensor) -> Copies | None:
        """The same points without copies of whole graphs, where that can be done (see `versions`)."""
        return None


def points(model: BaseModel, edits: Edits, lines: Lines, after: Tensor, upto: Tensor) -> Points:
    """Predictions at the steps after[m] + 1 .. upto[m] of each line m.  (M,), (M,)"""
    return points_at(model, edits, lines, *steps_between(after, upto))


def points_at(model: BaseModel, edits: Edits, lines: Lines, line: Tensor, step: Tensor) -> Points:
    """Predictions after the first ``step`` edits of ``line``, for any pairs of the two; step 0 is
    unedited.  (P,), (P,)
    """
    changes = edits.changes(lines)
    latest = torch.where(step > 0, latest_change(changes)[line, (step - 1).clamp(min=0)], 0)
    graph = edits.graph[lines.case]
    key = torch.where(
        latest > 0, (len(edits.graphs) + line) * (changes.size(1) + 1) + latest, graph[line]
    )
    which, one = grouped(key)
    run_line, run_step = line[one], latest[one]

    def edit(union: Union) -> Union:
        return edits.edit(union, lines, run_line[union.copy], run_step[union.copy])

    unfolded = edits.unfolded(model, lines, run_line, run_step)
    if unfolded is not None:
        found = model.pred_rows(model.engine.outputs, unfolded, kind=f"{edits.kind}, unfolded")
    elif edits.drops:
        copies = Copies(edits.graphs, graph[run_line])
        found = model.pred_rows(rows_or_nan(model.engine, copies, edit), copies, edits.kind)
    else:
        found = model.pred_copies(edits.graphs, graph[run_line], edit, kind=edits.kind)
    return Points(line, step, found[which])


def rows_or_nan(engine: Engine, copies: Copies, edit: Callable[[Union], Union]) -> Work:
    """Raw rows of the network for edited copies; NaN for a copy that it fails on once edited, but
    not before.

    A union that it fails on is halved. Running out of memory is left to the engine.
    """

    def rows(union: Union) -> Tensor:
        edited = edit(union)
        try:
            return engine.outputs(edited)
        except FORWARD_ERRORS as error:
            if isinstance(error, GraphgaugeError) or is_out_of_memory(error):
                raise
        if len(union) == 1:
            return torch.full_like(engine.outputs(union), torch.nan)
        start, end = int(union.copy[0]), int(union.copy[-1]) + 1
        middle = (start + end) // 2
        return torch.cat(
            [rows(engine.union(copies, *half)) for half in ((start, middle), (middle, end))]
        )

    return rows


def grouped(key: Tensor) -> tuple[Tensor, Tensor]:
    """Which group of equal keys each belongs to, groups in rising order, and a member of each.
    (P,) -> (P,), (groups,)
    """
    distinct, which = key.unique(return_inverse=True)
    place = torch.arange(len(key), device=key.device)
    return which, torch.zeros_like(distinct).scatter_reduce(
        0, which, place, "amin", include_self=False
    )


def steps_between(after: Tensor, upto: Tensor) -> tuple[Tensor, Tensor]:
    """Line and step of every point, line by line.  (M,), (M,) -> (P,), (P,)"""
    count = (upto - after).clamp(min=0)
    line = torch.repeat_interleave(torch.arange(len(count), device=count.device), count)
    within = torch.arange(len(line), device=count.device) - (count.cumsum(0) - count)[line]
    return line, after[line] + within + 1


def latest_change(changes: Tensor) -> Tensor:
    """For each step the last step up to it that changed something; 0: none.  (M, K) bool -> (M, K)"""
    step = torch.arange(1, changes.size(1) + 1, device=changes.device)
    return (
        torch.where(changes, step, 0).cummax(1).values
        if changes.size(1)
        else torch.zeros_like(changes, dtype=torch.int64)
    )


def when_edited(order: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """At which step each candidate of each line is edited, packed; 0: never.
    (M, K), (M,) -> (sum of count,), first (M,)
    """
    first = count.cumsum(0) - count
    step = torch.arange(1, order.size(1) + 1, device=order.device).expand_as(order)
    when = torch.zeros(int(count.sum()), dtype=torch.int64, device=order.device)
    is_there = order >= 0
    when[(first[:, None] + order)[is_there]] = step[is_there]
    return when, first
