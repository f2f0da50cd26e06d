"""Deletion curves: the prediction after each of the first k edits, for many targets and orders at
once.

A *case* is a target together with the kind of edits made to it: removed edges, or features
substituted from one reference. A *line* is a case and an order of its candidates. Each point (line,
step k) is a copy of the target's computation graph with the first k edits made. All points run as
batches of disjoint copies that fit the memory budget.

A step that changes nothing in the graph (a feature that is equal in the reference) is not run
again; its prediction is that of the step before. If edges are dropped, a point on which the network
fails, such as a graph without edges, is NaN.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import GraphgaugeError
from graphgauge.execution import BatchFunction, Executor, GraphBatch, GraphCopies, is_out_of_memory
from graphgauge.models import FORWARD_ERRORS, BaseModel
from graphgauge.subgraphs import ComputationGraphs


@dataclass(frozen=True)
class CurveLines:
    """Orders of edits, one for each curve."""

    case: Tensor  #: (M,) the case of each line
    order: Tensor  #: (M, K) candidates in the order of their edits, then -1

    def __len__(self) -> int:
        return len(self.case)


@dataclass(frozen=True)
class CurvePoints:
    """Predictions at points of curves."""

    line: Tensor  #: (P,)
    step: Tensor  #: (P,) number of edits
    prediction: Tensor  #: (P, C) or (P,)


class GraphEdits(ABC):
    """Base class of the edits to edges or to features."""

    graphs: ComputationGraphs  #: computation graphs of the targets
    graph: Tensor  #: (Q,) number of the target of each case
    kind: str  #: name of the edits in the memory plan
    drops: bool = False  #: whether edits remove edges, after which some networks fail

    @property
    @abstractmethod
    def candidates(self) -> Tensor:
        """Number of possible edits of each case. (Q,)"""

    @abstractmethod
    def changes(self, lines: CurveLines) -> Tensor:
        """Whether a step changes anything. (M, K) bool"""

    @abstractmethod
    def edit(self, union: GraphBatch, lines: CurveLines, line: Tensor, step: Tensor) -> GraphBatch:
        """Make the first edits of a line in each copy of a batch.

        Args:
            union: A batch of K unedited copies of the targets' computation graphs.
            lines: The lines.
            line: The line of each copy (K,), in rising order.
            step: The number of edits that each copy gets (K,).

        Returns:
            The batch with its edits made.
        """

    def incremental_copies(
        self, model: BaseModel, lines: CurveLines, line: Tensor, step: Tensor
    ) -> GraphCopies | None:
        """Return the same points without copies of whole graphs, or None if that is impossible.

        `incremental_removal` explains how it works.

        Args:
            model: The wrapped network.
            lines: The lines.
            line: The line of each point (P,).
            step: The number of edits of each point (P,); 0 is the unedited graph.
        """
        return None


def predict_curves(
    model: BaseModel, edits: GraphEdits, lines: CurveLines, after: Tensor, upto: Tensor
) -> CurvePoints:
    """Predict at the steps after[m] + 1 .. upto[m] of each line m.

    Args:
        model: The wrapped network.
        edits: The edits of Q cases.
        lines: M lines of these cases.
        after: The step after which to begin (M,); 0 begins with the first edit.
        upto: The last step (M,). A line with ``upto`` <= ``after`` has no points.

    Returns:
        The predictions, sorted by line and step.
    """
    return predict_curve_points(model, edits, lines, *steps_between(after, upto))


def predict_curve_points(
    model: BaseModel, edits: GraphEdits, lines: CurveLines, line: Tensor, step: Tensor
) -> CurvePoints:
    """Predict after the first edits of lines, for any pairs of a line and a number of edits.

    Args:
        model: The wrapped network.
        edits: The edits of Q cases.
        lines: M lines of these cases.
        line: The line of each point (P,).
        step: The number of edits of each point (P,); 0 is the unedited graph.

    Returns:
        The prediction at each point, in the order of the points.
    """
    changes = edits.changes(lines)
    latest = torch.where(step > 0, _latest_changing_step(changes)[line, (step - 1).clamp(min=0)], 0)
    graph = edits.graph[lines.case]
    key = torch.where(
        latest > 0, (len(edits.graphs) + line) * (changes.size(1) + 1) + latest, graph[line]
    )
    which, one = group_equal_keys(key)
    run_line, run_step = line[one], latest[one]

    def edit(union: GraphBatch) -> GraphBatch:
        return edits.edit(union, lines, run_line[union.copy], run_step[union.copy])

    versioned = edits.incremental_copies(model, lines, run_line, run_step)
    if versioned is not None:
        prediction = model.pred_rows(
            model.executor.outputs, versioned, kind=f"{edits.kind}, unfolded"
        )
    elif edits.drops:
        copies = GraphCopies(edits.graphs, graph[run_line])
        prediction = model.pred_rows(
            _predict_rows_or_nan(model.executor, copies, edit), copies, edits.kind
        )
    else:
        prediction = model.pred_copies(edits.graphs, graph[run_line], edit, kind=edits.kind)
    return CurvePoints(line, step, prediction[which])


def _predict_rows_or_nan(
    engine: Executor, copies: GraphCopies, edit: Callable[[GraphBatch], GraphBatch]
) -> BatchFunction:
    """Return a function that gives the raw outputs of edited copies, and NaN for copies that fail.

    A copy fails if the network raises an error for the edited copy but not for the unedited one. A
    batch with an error is halved until the copies that fail are found. Errors about memory are left
    to the engine.
    """

    def rows(union: GraphBatch) -> Tensor:
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
        halves = ((start, middle), (middle, end))
        return torch.cat([rows(engine.union(copies, *half)) for half in halves])

    return rows


def group_equal_keys(key: Tensor) -> tuple[Tensor, Tensor]:
    """Group equal keys. (P,) -> (P,), (groups,)

    Returns:
        The group of each key, with groups in rising order of their keys, and one member of each
        group.
    """
    distinct, which = key.unique(return_inverse=True)
    place = torch.arange(len(key), device=key.device)
    return which, torch.zeros_like(distinct).scatter_reduce(
        0, which, place, "amin", include_self=False
    )


def steps_between(after: Tensor, upto: Tensor) -> tuple[Tensor, Tensor]:
    """Line and step of every point, sorted by line. (M,), (M,) -> (P,), (P,)"""
    count = (upto - after).clamp(min=0)
    line = torch.repeat_interleave(torch.arange(len(count), device=count.device), count)
    within = torch.arange(len(line), device=count.device) - (count.cumsum(0) - count)[line]
    return line, after[line] + within + 1


def _latest_changing_step(changes: Tensor) -> Tensor:
    """For each step, the last step up to it that changed something, or 0. (M, K) bool -> (M, K)"""
    if not changes.size(1):
        return torch.zeros_like(changes, dtype=torch.int64)
    step = torch.arange(1, changes.size(1) + 1, device=changes.device)
    return torch.where(changes, step, 0).cummax(1).values


def steps_of_edits(order: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """The step at which each candidate of each line is edited, packed; 0 for never.

    order (M, K), count (M,) -> (sum of count,), first position of each line (M,)
    """
    first = count.cumsum(0) - count
    step = torch.arange(1, order.size(1) + 1, device=order.device).expand_as(order)
    when = torch.zeros(int(count.sum()), dtype=torch.int64, device=order.device)
    is_there = order >= 0
    when[(first[:, None] + order)[is_there]] = step[is_there]
    return when, first
