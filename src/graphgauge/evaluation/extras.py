"""Metrics beside the paper's: fidelity and its relatives, and people's own.

They are `Metric` objects, called on what was measured anyway: full curves (`Curves`) or scores (`Vectors`). Fidelity- and
unfaithfulness ask for one point more: the prediction when every edit is made except the explanation's top ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from graphgauge.core.errors import BadSetting
from graphgauge.evaluation.settings import Settings
from graphgauge.evaluation.sides import Judged
from graphgauge.metrics import (
    Characterization,
    Curves,
    DeletionAuc,
    FidelityMinus,
    FidelityPlus,
    Metric,
    Sparsity,
    Unfaithfulness,
    Vectors,
)
from graphgauge.models import BaseModel
from graphgauge.perturbation import FeatureEdits, Lines, points
from graphgauge.perturbation.features import changed_only

Scores = Callable[[int, int], Tensor]  #: (number of the target, of the entry) -> its scores as one vector


def extra_metrics(given: Sequence[Any], task: str, settings: Settings) -> tuple[Metric[Any], ...]:
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
    shipped: list[Metric[Any]] = [FidelityPlus(min(settings.top, settings.cap)), FidelityMinus(), Sparsity(), DeletionAuc()]
    shipped += [Characterization(), Unfaithfulness()] if task == "classification" else []
    return (*shipped, *given)


def extra_values(
    model: BaseModel, found: Judged, metrics: Sequence[Metric[Any]], scores: Scores, settings: Settings
) -> dict[str, Tensor]:
    """Values of every metric for every target and entry; NaN where there are none.  name -> (T, E)"""
    values = {metric.name: torch.full(found.is_finite.shape, torch.nan, dtype=torch.float64) for metric in metrics}
    if not metrics:
        return values
    kept = kept_predictions(model, found, settings) if any(metric.needs == "curves" for metric in metrics) else None
    for e in range(found.is_finite.size(1)):
        (judged,) = found.is_finite[:, e].nonzero(as_tuple=True)
        if not len(judged):
            continue
        for metric in metrics:
            if kept is None or metric.needs == "scores":
                own = called(metric, Vectors([scores(t, e) for t in judged.tolist()]), len(judged))
            else:
                own = called(metric, bundle_of(model, found, e, kept, settings), len(found.ec))[judged.cpu()]
            values[metric.name][judged.cpu(), e] = own
    return values


def called(metric: Metric[Any], measured: Any, count: int) -> Tensor:
    """What a metric gives, one number for each of ``count`` targets, in float64.  (count,)"""
    own = metric(measured)
    if not isinstance(own, Tensor) or own.shape != (count,):
        given = f"a tensor of shape {tuple(own.shape)}" if isinstance(own, Tensor) else type(own).__name__
        raise BadSetting(f"{metric.name} must give a tensor of shape ({count},), a number for each target, but gave {given}.")
    return own.detach().cpu().double()


def bundle_of(model: BaseModel, found: Judged, e: int, kept: Tensor, settings: Settings) -> Curves:
    """What was measured for one entry, its judged cases only."""
    target = found.side.target
    (cases,) = found.is_finite[target, e].nonzero(as_tuple=True)
    own = target[cases]
    is_class = found.reading.label is not None
    return Curves(
        target=own,
        num_targets=len(found.ec),
        start=found.reading.first[own],
        curve=found.curve[cases, e],
        flips=found.flips[cases, e],
        random=found.random[cases, : settings.twin_trials],
        candidates=found.side.candidates[cases],
        tolerance=found.reading.tolerance,
        cap=settings.cap,
        top=settings.top,
        kept=found.reading.height(kept[cases, e], own),
        kept_prob=kept[cases, e] if is_class else None,
        start_prob=found.reading.prediction[own] if is_class else None,
    )


def kept_predictions(model: BaseModel, found: Judged, settings: Settings) -> Tensor:
    """Predictions with every edit made but the top ones of each explanation.  (Q, E, C) or (Q, E)"""
    side, first = found.side, found.reading.prediction
    case, e = found.is_finite[side.target].nonzero(as_tuple=True)
    order = others(found.order[side.target[case], e, : settings.top], side.candidates[case])
    count = (order >= 0).sum(1)
    edits = replace(side.edits, kind="all but some features") if isinstance(side.edits, FeatureEdits) else side.edits
    last = points(model, edits, Lines(case, order), (count - 1).clamp(min=0), count)
    own = first[side.target[case]].index_copy(0, last.line, last.prediction)
    full = first.new_full((len(side.target), found.is_finite.size(1), *first.shape[1:]), torch.nan)
    return full.index_put((case, e), own)


def others(top: Tensor, count: Tensor) -> Tensor:
    """All candidates but the top ones, in any order; -1 behind the last.  (M, top), (M,) -> (M, most)"""
    most = int(count.max()) if len(count) else 0
    every = torch.arange(most, device=top.device).expand(len(top), -1)
    is_other = (every < count[:, None]).clone()
    line, place = (top >= 0).nonzero(as_tuple=True)
    is_other[line, top[line, place]] = False
    return changed_only(every, is_other, most)
