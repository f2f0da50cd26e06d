"""The metrics of one side: shipped ones and users' own go the same way from curves to values.

    METRICS, users' own       ->  choose_curve_metrics   the metrics, with the settings' parameters
    MeasuredCurves            ->  Curves or Vectors      a bundle: what one explainer's scores gave
    metric.measure(bundle)    ->  Measurement            the values of all targets at once
    Measurement               ->  MetricValue            for each target, or why there is none

A target is left out where the network gave NaN in what the metric reads (``Metric.scope``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from graphgauge.core import BadSetting, JsonObject
from graphgauge.evaluation.curve_measurement import MeasuredCurves, select_random_curves
from graphgauge.evaluation.curve_parts import CurveParts, measure_curve_parts
from graphgauge.evaluation.metric_value import NOT_PREDICTED, MetricValue, missing_value
from graphgauge.evaluation.settings import Settings
from graphgauge.metrics import (
    METRICS,
    AnyMetric,
    Curves,
    CurveScope,
    Measurement,
    Metric,
    RandomComparison,
    Vectors,
    effective_top,
    step_mask,
)
from graphgauge.models import BaseModel

#: (number of the target, of the explainer) -> its scores as one vector
ScoreVectors = Callable[[int, int], Tensor]
#: number of the explainer -> all candidates of each case, best first.  (Q, most)
FullOrders = Callable[[int], Tensor]


def choose_curve_metrics(
    task: str, settings: Settings, own: Sequence[object] = ()
) -> tuple[AnyMetric, ...]:
    """The metrics that every side gets: the paper's, their calibrated forms, extras, users' own.

    Args:
        task: "classification" or "regression".
        settings: Whether there are calibrated forms (``twins``) and ``extras``, and the parameters.
        own: Users' metrics, on curves or on scores.

    Raises:
        BadSetting: If one of ``own`` is no such metric, or if curves are not measured in full.
    """
    chosen = [
        metric.from_settings(settings)
        for metric in METRICS.values()
        if metric.needs in ("curves", "scores")
        and task in metric.tasks
        and _is_wanted(metric, settings)
    ]
    for metric in own:
        if not isinstance(metric, Metric) or metric.needs not in ("curves", "scores"):
            raise BadSetting(
                "metrics= takes metrics on curves or scores (instances of gg.metrics.Metric), but "
                f"got {metric!r}. Metrics on pairs of explanations or on a known truth are called "
                "directly, on Pairs or Truths."
            )
        chosen.append(metric)
    if (own or settings.extras) and not settings.twins:
        raise BadSetting("metrics beside the paper's need full curves: leave twins=True.")
    return tuple(chosen)


def stability_metric_names(settings: Settings) -> list[str]:
    """The metrics of repeated explanations, of both sides.

    >>> stability_metric_names(Settings(twins=False))
    ['feature_stability', 'edge_stability']
    """
    if settings.stability == "none":
        return []
    return [
        name
        for name, metric in METRICS.items()
        if metric.needs == "pairs" and _is_wanted(metric, settings)
    ]


def _is_wanted(metric: type[AnyMetric], settings: Settings) -> bool:
    """Whether the settings ask for metrics of this role."""
    return {"paper": True, "calibrated": settings.twins, "extra": settings.extras}[metric.role]


@dataclass(frozen=True)
class SideValues:
    """The metrics of one side, with the curves behind them."""

    measured: MeasuredCurves
    values: list[dict[str, list[MetricValue]]]  #: E times: metric -> T values
    insertion: dict[int, Tensor]  #: e -> (Q, K) heights while edits are taken back, best first


def score_curves(
    model: BaseModel,
    measured: MeasuredCurves,
    metrics: Sequence[AnyMetric],
    scores: ScoreVectors,
    orders: FullOrders,
    settings: Settings,
) -> SideValues:
    """Every metric for every explanation of one side.

    Args:
        model: The wrapped network, for points that only some metrics read.
        measured: What was measured for all explainers.
        metrics: The metrics.
        scores: Gives the scores of an explanation.
        orders: Gives the full orders of an explainer.
        settings: The settings of the evaluation.
    """
    entries = []
    insertion: dict[int, Tensor] = {}
    parts = {part for metric in metrics if metric.needs == "curves" for part in metric.parts}
    for e in range(measured.is_valid.size(1)):
        entry = _EntryCurves(measured, e, settings)
        usable = entry.usable_targets("all")
        if parts and bool(usable.any()):
            entry.parts = measure_curve_parts(model, measured, e, usable, orders, parts, settings)
        if "insertion" in entry.parts:
            insertion[e] = entry.parts["insertion"].cpu()
        entries.append({metric.name: _score_metric(metric, entry, scores) for metric in metrics})
    return SideValues(measured, entries, insertion)


@dataclass
class _EntryCurves:
    """What was measured of one explainer's explanations, as bundles for metrics."""

    measured: MeasuredCurves
    e: int  #: number of the explainer
    settings: Settings
    parts: CurveParts = field(default_factory=dict)
    bundles: dict[tuple[str, tuple[str, ...]], tuple[Curves, Tensor]] = field(default_factory=dict)

    def bundle(self, metric: AnyMetric) -> tuple[Curves, Tensor]:
        """The curves that a metric reads, and which targets they are of.  (usable,)"""
        names = tuple(part for part in metric.parts if part in self.parts)
        key = (metric.scope, names)
        if key not in self.bundles:
            parts = {name: self.parts[name] for name in names}
            self.bundles[key] = self.make_bundle(metric.scope, parts)
        return self.bundles[key]

    def make_bundle(self, scope: CurveScope, parts: CurveParts) -> tuple[Curves, Tensor]:
        """Build a bundle without the targets that have a gap in what is read."""
        found, e = self.measured, self.e
        target = found.cases.target
        is_usable = self.usable_targets(scope)
        for part in parts.values():
            is_usable[target[(~part.isfinite()).view(len(part), -1).any(1)]] = False
        has_case = torch.zeros_like(is_usable).index_fill(0, target, True)
        cases = is_usable[target].nonzero()[:, 0]
        owner = target[cases]
        bundle = Curves(
            target=owner,
            num_targets=len(is_usable),
            start=found.baseline.first[owner],
            curve=found.curve[cases, e],
            flips=found.flips[cases, e],
            random=self.random_curves(scope)[cases],
            candidates=found.cases.candidates[cases],
            tolerance=found.baseline.tolerance,
            cap=self.settings.cap,
            top=effective_top(self.settings),
            reach=found.draws[cases, 0, e] if scope in ("flips", "comparison") else None,
            direction=found.baseline.direction,
            way=found.cases.way[cases],
        )
        bundle = _with_parts(bundle, {name: part[cases] for name, part in parts.items()})
        if scope == "flips":
            redrawn = found.redrawn_flips
            bundle = replace(
                bundle,
                redrawn_flips=None if redrawn is None else redrawn[cases, :, e],
            )
        if scope == "comparison":
            compared = found.compared
            bundle = replace(
                bundle,
                comparison=RandomComparison(
                    compared.score[cases, e],
                    compared.trials[cases, e],
                    [compared.reason[q][e] for q in cases.tolist()],
                ),
            )
        return bundle, (is_usable & has_case).nonzero()[:, 0]

    def random_curves(self, scope: CurveScope) -> Tensor:
        """The random curves that metrics of this scope read.  (Q, N, K)"""
        if scope in ("flips", "comparison"):
            return self.measured.curve.new_zeros(len(self.measured.curve), 0, self.num_steps)
        return select_random_curves(self.measured.twin, self.e)

    @property
    def num_steps(self) -> int:
        """K."""
        return self.measured.curve.size(2)

    def usable_targets(self, scope: CurveScope) -> Tensor:
        """Which targets have no gap in what metrics of this scope read.  (T,) bool"""
        if scope == "all":
            scopes: list[CurveScope] = ["flips", "comparison"]
            scopes += ["orders"] if self.settings.twins else []
            return torch.stack([self.usable_targets(each) for each in scopes]).all(0)
        has_gap = self.cases_with_gap(scope)
        is_usable = self.measured.is_valid[:, self.e].clone()
        is_usable[self.measured.cases.target[has_gap]] = False
        return is_usable

    def cases_with_gap(self, scope: CurveScope) -> Tensor:
        """Whether a prediction that is read is no number.  (Q,) bool"""
        found, e = self.measured, self.e
        upto = found.length if scope == "orders" else found.draws[:, 0, e]
        gaps = ~found.curve[:, e].isfinite()
        has_gap = (gaps & step_mask(upto, self.num_steps)).any(1)
        if scope == "flips":
            return has_gap | found.redrawn_gap[:, e]
        if scope == "orders":
            random = select_random_curves(found.twin, e)
            steps, trials = upto, torch.full_like(upto, random.size(1))
        else:
            random = select_random_curves(found.compared.random, e)
            steps, trials = found.steps[found.cases.target, e], found.compared.trials[:, e]
        number = torch.arange(random.size(1), device=upto.device)
        is_read = step_mask(steps, self.num_steps)[:, None]
        is_read = is_read & (number < trials[:, None])[:, :, None]
        return has_gap | (~random.isfinite() & is_read).any(2).any(1)


def _with_parts(bundle: Curves, parts: Mapping[str, Tensor]) -> Curves:
    """The same curves with optional parts; checked again."""
    changes: JsonObject = dict(parts)
    return replace(bundle, **changes) if changes else bundle


def _score_metric(
    metric: AnyMetric, entry: _EntryCurves, scores: ScoreVectors
) -> list[MetricValue]:
    """The values of one metric for the explanations of one explainer.  T of them"""
    values = [missing_value("nan_prediction")] * len(entry.measured.is_valid)
    if metric.needs == "scores":
        judged = entry.usable_targets("all").nonzero()[:, 0].tolist()
        if judged:
            bundle = Vectors([scores(t, entry.e) for t in judged])
            found = _call_metric(metric, bundle, len(judged))
            for t, value in zip(judged, found.value.tolist(), strict=True):
                values[t] = _as_metric_value(metric, value)
        return values
    curves, usable = entry.bundle(metric)
    if len(usable):
        found = _call_metric(metric, curves, len(values))
        cases = _cases_by_target(curves.target)
        for t in usable.tolist():
            values[t] = _value_of_target(metric, found, t, cases[t], entry)
    return values


def _call_metric(metric: AnyMetric, bundle: Curves | Vectors, count: int) -> Measurement:
    """What a metric gives, with one number for each of ``count`` targets, on the CPU."""
    found = metric.measure(bundle)
    own = found.value
    if not isinstance(own, Tensor) or own.shape != (count,):
        given = (
            f"a tensor of shape {tuple(own.shape)}"
            if isinstance(own, Tensor)
            else type(own).__name__
        )
        raise BadSetting(
            f"{metric.name} must give a tensor of shape ({count},), a number for each target, but "
            f"gave {given}."
        )
    return Measurement(
        own.detach().cpu().double(),
        per_case=_on_cpu(found.per_case),
        flipped=_on_cpu(found.flipped),
        draws=_on_cpu(found.draws),
        trials=_on_cpu(found.trials),
        stop_reasons=found.stop_reasons,
        levels=_on_cpu(found.levels),
    )


def _on_cpu(part: Tensor | None) -> Tensor | None:
    """A part that may not be there, on the CPU."""
    return None if part is None else part.detach().cpu()


def _cases_by_target(target: Tensor) -> Mapping[int, list[int]]:
    """The numbers of each target's cases.  (Q,)"""
    cases: dict[int, list[int]] = {}
    for q, t in enumerate(target.tolist()):
        cases.setdefault(t, []).append(q)
    return cases


def _as_metric_value(metric: AnyMetric, value: float) -> MetricValue:
    """A value, or why a metric that could read everything gave none."""
    if value == value:
        return MetricValue(value)
    return missing_value("all_selected" if type(metric) in METRICS.values() else "undefined")


def _value_of_target(
    metric: AnyMetric, found: Measurement, t: int, cases: Sequence[int], entry: _EntryCurves
) -> MetricValue:
    """The value of one target, with what the metric knows of its cases."""
    value = _as_metric_value(metric, float(found.value[t]))
    if value.value is None:
        return value
    if metric.scope == "flips" and not entry.measured.baseline.is_predicted(t):
        return missing_value(NOT_PREDICTED)
    chosen = list(cases)
    if found.per_case is not None:
        value = replace(value, per_reference=tuple(found.per_case[chosen].tolist()))
    if found.flipped is not None:
        value = replace(value, flipped=bool(found.flipped[t]))
    if found.draws is not None:
        draws = found.draws[t].double()
        error = float(draws.std() / len(draws) ** 0.5)
        value = replace(value, draws=tuple(draws.tolist()), error=error)
    if found.trials is not None:
        value = replace(value, trials=tuple(found.trials[chosen].tolist()))
    if found.stop_reasons is not None:
        value = replace(value, stop=tuple(found.stop_reasons[q] for q in chosen))
    if found.levels is not None:
        value = replace(value, per_level=tuple(found.levels[t].tolist()))
    return value
