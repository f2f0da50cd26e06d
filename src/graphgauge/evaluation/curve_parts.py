"""Points of curves that only some metrics read, measured for the explanations alone.

Metrics of the fidelity family ask for heights beside the curve, each of n candidates in the order
of the scores:

    kept            all edits but the top ones
    removed         the top ones; only where they are a share, else the curve has it
    kept_levels     all edits but the first 10, 20 .. 90 %
    removed_levels  the first 10, 20 .. 90 %
    insertion       all edits but the first 1 .. min(cap, n): the reversed order after n - 1 ..
                    n - min(cap, n) steps
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import torch
from torch import Tensor

from graphgauge.evaluation.curve_measurement import MeasuredCurves
from graphgauge.evaluation.settings import Settings
from graphgauge.execution import DenseFeatures, GraphBatch
from graphgauge.metrics import effective_top, level_counts, top_counts
from graphgauge.models import BaseModel
from graphgauge.perturbation import (
    CurveLines,
    FeatureEdits,
    GraphEdits,
    SubstitutedFeatures,
    keep_changing_steps,
    predict_curve_points,
    predict_curves,
)

_MOST_PLACES = 2**22  #: candidates in the lines that are followed at a time
#: optional parts of `Curves` of one explainer, a row for each case; NaN where nothing was measured
CurveParts: TypeAlias = dict[str, Tensor]


def measure_curve_parts(
    model: BaseModel,
    measured: MeasuredCurves,
    e: int,
    usable: Tensor,
    orders: Callable[[int], Tensor],
    wanted: set[str],
    settings: Settings,
) -> CurveParts:
    """Measure the parts of `Curves` that metrics read, for one explainer.

    Args:
        model: The wrapped network.
        measured: The curves.
        e: Number of the explainer.
        usable: Which targets are measured; parts of the others are NaN.  (T,) bool
        orders: Gives all candidates of each case, best first, for the number of an explainer.
        wanted: Names of the parts.
        settings: The settings of the evaluation.
    """
    cases, baseline, top = measured.cases, measured.baseline, effective_top(settings)
    (chosen,) = usable[cases.target].nonzero(as_tuple=True)
    needs_all = bool(wanted & {"insertion", "kept_levels", "removed_levels"})
    order = orders(e) if needs_all or isinstance(top, float) else measured.order[:, e]
    num_steps = measured.curve.size(2)
    parts: CurveParts = {}

    def write(name: str, part: Tensor, some: Tensor) -> None:
        if name not in parts:
            shape = (len(cases.target), *part.shape[1:])
            parts[name] = baseline.first.new_full(shape, torch.nan).to(part)
        parts[name][some] = part

    for some in chosen.split(max(1, _MOST_PLACES // max(order.size(1), 1))):
        own, count, target = order[some], cases.candidates[some], cases.target[some]
        num_top = top_counts(top, count)
        heights: dict[str, Tensor] = {}
        if wanted & {"kept", "kept_prob"}:
            prediction = _predict_with_only_top(
                model, measured, some, _first_candidates(own, num_top)
            )
            heights["kept"] = baseline.height(prediction, target)
            if baseline.label is not None:
                heights["kept_prob"] = prediction
        if baseline.label is not None:
            heights["start_prob"] = baseline.prediction[target]
        steps = _steps_of_parts(wanted, count, num_top, num_steps, isinstance(top, float))
        for name, step in steps.items():
            is_backwards = name in ("kept_levels", "insertion")
            line = _reverse_orders(own, count) if is_backwards else own
            heights[name] = _heights_at_steps(model, measured, some, line, step)
        if "removed" in heights:
            heights["removed"] = heights["removed"][:, 0]
        for name, part in heights.items():
            if name in wanted:
                write(name, part, some)
    return parts


def _steps_of_parts(
    wanted: set[str], count: Tensor, num_top: Tensor, num_steps: int, is_share: bool
) -> dict[str, Tensor]:
    """After how many edits the parts with heights along an order are measured.  (M,) -> (M, S)"""
    steps = {}
    if "removed" in wanted and is_share:
        steps["removed"] = num_top[:, None]
    if "removed_levels" in wanted:
        steps["removed_levels"] = level_counts(count)
    if "kept_levels" in wanted:
        steps["kept_levels"] = count[:, None] - level_counts(count)
    if "insertion" in wanted:
        number = torch.arange(1, num_steps + 1, device=count.device)
        # behind the length of a curve no edit is left to take back
        steps["insertion"] = count[:, None] - torch.minimum(number, count[:, None])
    return steps


def _first_candidates(order: Tensor, count: Tensor) -> Tensor:
    """The first ``count`` of each order; -1 behind them.  (M, K), (M,) -> (M, most)"""
    most = int(count.max()) if len(count) else 0
    return order[:, :most].where(torch.arange(most, device=order.device) < count[:, None], -1)


def _reverse_orders(order: Tensor, count: Tensor) -> Tensor:
    """Orders of ``count`` candidates from the last to the first; -1 behind them.
    (M, K), (M,) -> (M, K)
    """
    place = count[:, None] - 1 - torch.arange(order.size(1), device=order.device)
    return torch.where(place >= 0, order.gather(1, place.clamp(min=0)), -1)


def _heights_at_steps(
    model: BaseModel, measured: MeasuredCurves, case: Tensor, order: Tensor, step: Tensor
) -> Tensor:
    """Heights after the first ``step`` edits of each order.  (M,), (M, K), (M, S) -> (M, S)"""
    cases, size = measured.cases, step.size(1)
    line = torch.arange(len(case), device=case.device).repeat_interleave(size)
    lines = CurveLines(case, order)
    prediction = predict_curve_points(
        model, _edits_written_out(cases.edits), lines, line, step.flatten()
    ).prediction
    return measured.baseline.height(prediction, cases.target[case][line]).view(len(case), size)


def _relabel_long_edits(edits: GraphEdits) -> GraphEdits:
    """The same edits; those of many features are planned apart from those of a few."""
    return (
        replace(edits, kind="all but some features") if isinstance(edits, FeatureEdits) else edits
    )


class _WrittenOutFeatureEdits(FeatureEdits):
    """Substitutions whose features are written out: with hundreds of edits a copy, that is faster
    than following each of them.
    """

    def edit(self, union: GraphBatch, lines: CurveLines, line: Tensor, step: Tensor) -> GraphBatch:
        """With the features substituted whose turn has come."""
        return union.with_features(
            DenseFeatures(SubstitutedFeatures.from_edits(self, union, lines, line, step).written)
        )


def _edits_written_out(edits: GraphEdits) -> GraphEdits:
    """The same edits, for many of them at a time."""
    if not isinstance(edits, FeatureEdits):
        return edits
    return _WrittenOutFeatureEdits(
        edits.graphs, edits.graph, edits.donor, edits.donor_ptr, "many features, written out"
    )


def _predict_with_only_top(
    model: BaseModel, measured: MeasuredCurves, case: Tensor, top: Tensor
) -> Tensor:
    """Predictions with every edit made but the ``top`` ones.  (M,), (M, most) -> (M, C) or (M,)"""
    cases = measured.cases
    order = _complement_order(top, cases.candidates[case])
    count = (order >= 0).sum(1)
    last = predict_curves(
        model,
        _relabel_long_edits(cases.edits),
        CurveLines(case, order),
        (count - 1).clamp(min=0),
        count,
    )
    return measured.baseline.prediction[cases.target[case]].index_copy(
        0, last.line, last.prediction
    )


def _complement_order(top: Tensor, count: Tensor) -> Tensor:
    """All candidates but the top ones, in any order; -1 behind the last.

    (M, top), (M,) -> (M, most)
    """
    most = int(count.max()) if len(count) else 0
    every = torch.arange(most, device=top.device).expand(len(top), -1)
    is_other = (every < count[:, None]).clone()
    line, place = (top >= 0).nonzero(as_tuple=True)
    is_other[line, top[line, place]] = False
    return keep_changing_steps(every, is_other, most)
