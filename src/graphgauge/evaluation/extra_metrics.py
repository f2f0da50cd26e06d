"""Metrics beside the paper's: fidelity and its relatives, and people's own.

They are `Metric` objects, called on what was measured anyway: full curves (`Curves`) or scores
(`Vectors`). Those of the fidelity family ask for more points, which are measured here for the
explanations alone, each of n candidates in the order of the scores:

    kept            all edits but the top ones
    removed         the top ones; only where they are a share, else the curve has it
    kept_levels     all edits but the first 10, 20 .. 90 %                     removed_levels      the first 10, 20 .. 90 %
    insertion       all edits but the first 1 .. min(cap, n): the reversed order after n - 1 .. n - min(cap, n) steps
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from graphgauge.core import BadSetting
from graphgauge.evaluation.curve_scoring import CurveScores, select_random_curves
from graphgauge.evaluation.settings import Settings
from graphgauge.execution import DenseFeatures, GraphBatch
from graphgauge.metrics import (
    METRICS,
    Characterization,
    Curves,
    DeletionAuc,
    FidelityMinus,
    FidelityMinusAuc,
    FidelityPlus,
    FidelityPlusAuc,
    InsertionAuc,
    Metric,
    Sparsity,
    Unfaithfulness,
    Vectors,
    level_counts,
    top_counts,
)
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
_CurveParts = dict[
    str, Tensor
]  #: optional parts of `Curves` of one entry, a row for each case; NaN where nothing was measured
_ScoreVectors = Callable[
    [int, int], Tensor
]  #: (number of the target, of the entry) -> its scores as one vector
_FullOrders = Callable[
    [int], Tensor
]  #: number of the entry -> all candidates of each case, best first.  (Q, most)


def choose_extra_metrics(
    given: Sequence[Any], task: str, settings: Settings
) -> tuple[Metric[Any], ...]:
    """The metrics to add: those that ``extras`` stands for, and people's own."""
    for metric in given:
        if not isinstance(metric, Metric) or metric.needs not in ("curves", "scores"):
            raise BadSetting(
                f"metrics= takes metrics on curves or scores (instances of gg.metrics.Metric), but got {metric!r}. "
                "Metrics on pairs of explanations or on a known truth are called directly, on Pairs or Truths."
            )
    if (given or settings.extras) and not settings.twins:
        raise BadSetting("metrics beside the paper's need full curves: leave twins=True.")
    if not settings.extras:
        return tuple(given)
    shipped: list[Metric[Any]] = [
        FidelityPlus(effective_top(settings)),
        FidelityMinus(),
        Sparsity(),
        DeletionAuc(),
    ]
    shipped += [InsertionAuc(), FidelityPlusAuc(), FidelityMinusAuc()]
    shipped += [Characterization(), Unfaithfulness()] if task == "classification" else []
    return (*shipped, *given)


def effective_top(settings: Settings) -> int | float:
    """The number of top edits, within the cap, or their share."""
    return min(settings.top, settings.cap) if isinstance(settings.top, int) else settings.top


def add_extra_values(
    model: BaseModel,
    found: CurveScores,
    metrics: Sequence[Metric[Any]],
    scores: _ScoreVectors,
    orders: _FullOrders,
    settings: Settings,
) -> None:
    """Values of every metric for every target and entry; NaN where there are none, with the reason
    in ``found.gaps``.
    """
    for metric in metrics:
        found.values[metric.name] = torch.full(
            found.is_finite.shape, torch.nan, dtype=torch.float64
        )
    wanted = {part for metric in metrics if metric.needs == "curves" for part in metric.parts}
    for e in range(found.is_finite.size(1)):
        if not bool(found.is_finite[:, e].any()):
            continue
        parts = _measure_parts(model, found, e, orders, wanted, settings)
        if "insertion" in parts:
            found.insertion[e] = parts["insertion"].cpu()
        for metric in metrics:
            if metric.needs == "scores":
                (judged,) = found.is_finite[:, e].nonzero(as_tuple=True)
                own = _call_metric(
                    metric, Vectors([scores(t, e) for t in judged.tolist()]), len(judged)
                )
            else:
                cases, judged = _usable_cases(
                    found, e, [parts[part] for part in metric.parts if part in parts]
                )
                if not len(judged):
                    continue
                bundle = _make_curves(
                    found,
                    e,
                    cases,
                    {part: parts[part] for part in metric.parts if part in parts},
                    settings,
                )
                own = _call_metric(metric, bundle, len(found.ec))[judged.cpu()]
                if isinstance(metric, (FidelityPlusAuc, FidelityMinusAuc)):
                    _add_fidelity_levels(found, metric, metric.levels(bundle), e)
            found.values[metric.name][judged.cpu(), e] = own
            reason = "all_selected" if type(metric) in METRICS.values() else "undefined"
            found.gaps.update(
                {(metric.name, t, e): reason for t in judged.cpu()[own.isnan()].tolist()}
            )


def _add_fidelity_levels(found: CurveScores, metric: Metric[Any], levels: Tensor, e: int) -> None:
    """Keep the fidelities that an area is made of.  (T, 9)"""
    shape = (*found.is_finite.shape, levels.size(1))
    found.levels.setdefault(metric.name, torch.full(shape, torch.nan, dtype=torch.float64))[
        :, e
    ] = levels.cpu()


def _usable_cases(found: CurveScores, e: int, parts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Cases and targets of one entry whose predictions are all numbers, in these parts too.
    (cases,), (targets,)
    """
    target, is_good = found.side.target, found.is_finite[:, e].clone()
    for part in parts:
        is_gap = (~part.isfinite()).view(len(part), -1).any(1)
        is_good[target[is_gap]] = False
    has_case = torch.zeros_like(is_good).index_fill(0, target, True)
    return is_good[target].nonzero()[:, 0], (is_good & has_case).nonzero()[:, 0]


def _call_metric(metric: Metric[Any], measured: Any, count: int) -> Tensor:
    """What a metric gives, one number for each of ``count`` targets, in float64.  (count,)"""
    own = metric(measured)
    if not isinstance(own, Tensor) or own.shape != (count,):
        given = (
            f"a tensor of shape {tuple(own.shape)}"
            if isinstance(own, Tensor)
            else type(own).__name__
        )
        raise BadSetting(
            f"{metric.name} must give a tensor of shape ({count},), a number for each target, but gave {given}."
        )
    return own.detach().cpu().double()


def _make_curves(
    found: CurveScores, e: int, cases: Tensor, parts: _CurveParts, settings: Settings
) -> Curves:
    """What was measured for some cases of one entry; behind the length of a curve ``insertion``
    holds no numbers that count.
    """
    own = found.side.target[cases]
    return Curves(
        target=own,
        num_targets=len(found.ec),
        start=found.reading.first[own],
        curve=found.curve[cases, e],
        flips=found.flips[cases, e],
        random=select_random_curves(found.twin, e)[cases],
        candidates=found.side.candidates[cases],
        tolerance=found.reading.tolerance,
        cap=settings.cap,
        top=effective_top(settings),
        **{name: part[cases] for name, part in parts.items()},
    )


def _measure_parts(
    model: BaseModel,
    found: CurveScores,
    e: int,
    orders: _FullOrders,
    wanted: set[str],
    settings: Settings,
) -> _CurveParts:
    """The parts of `Curves` that the metrics read, for one entry's judged cases; NaN for the
    others.
    """
    side, reading, top = found.side, found.reading, effective_top(settings)
    (cases,) = found.is_finite[side.target, e].nonzero(as_tuple=True)
    order = (
        orders(e)
        if wanted & {"insertion", "kept_levels", "removed_levels"} or isinstance(top, float)
        else found.order[:, e]
    )
    parts: _CurveParts = {}

    def write(name: str, part: Tensor, some: Tensor) -> None:
        whole = parts.setdefault(
            name, reading.first.new_full((len(side.target), *part.shape[1:]), torch.nan).to(part)
        )
        whole[some] = part

    for some in cases.split(max(1, _MOST_PLACES // max(order.size(1), 1))):
        own, count, target = order[some], side.candidates[some], side.target[some]
        chosen = top_counts(top, count)
        if wanted & {"kept", "kept_prob"}:
            prediction = _predict_with_only_top(model, found, some, _first_candidates(own, chosen))
            write("kept", reading.height(prediction, target), some)
            if reading.label is not None:
                write("kept_prob", prediction, some)
        if reading.label is not None and "start_prob" in wanted:
            write("start_prob", reading.prediction[target], some)
        if "removed" in wanted and isinstance(top, float):
            write(
                "removed", _heights_at_steps(model, found, some, own, chosen[:, None])[:, 0], some
            )
        if "removed_levels" in wanted:
            write(
                "removed_levels",
                _heights_at_steps(model, found, some, own, level_counts(count)),
                some,
            )
        if "kept_levels" in wanted:
            write(
                "kept_levels",
                _heights_at_steps(
                    model,
                    found,
                    some,
                    _reverse_orders(own, count),
                    count[:, None] - level_counts(count),
                ),
                some,
            )
        if "insertion" in wanted:
            number = torch.arange(1, found.curve.size(2) + 1, device=count.device)
            step = count[:, None] - torch.minimum(
                number, count[:, None]
            )  # behind the length: none is left to take back
            write(
                "insertion",
                _heights_at_steps(model, found, some, _reverse_orders(own, count), step),
                some,
            )
    return {name: part for name, part in parts.items() if name in wanted}


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
    model: BaseModel, found: CurveScores, case: Tensor, order: Tensor, step: Tensor
) -> Tensor:
    """Heights after the first ``step`` edits of each order.  (M,), (M, K), (M, S) -> (M, S)"""
    side, size = found.side, step.size(1)
    line = torch.arange(len(case), device=case.device).repeat_interleave(size)
    lines = CurveLines(case, order)
    prediction = predict_curve_points(
        model, _edits_written_out(side.edits), lines, line, step.flatten()
    ).prediction
    return found.reading.height(prediction, side.target[case][line]).view(len(case), size)


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
    model: BaseModel, found: CurveScores, case: Tensor, top: Tensor
) -> Tensor:
    """Predictions with every edit made but the ``top`` ones.  (M,), (M, most) -> (M, C) or (M,)"""
    side = found.side
    order = _complement_order(top, side.candidates[case])
    count = (order >= 0).sum(1)
    last = predict_curves(
        model,
        _relabel_long_edits(side.edits),
        CurveLines(case, order),
        (count - 1).clamp(min=0),
        count,
    )
    return found.reading.prediction[side.target[case]].index_copy(0, last.line, last.prediction)


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
