"""What-if analysis: how verdicts and recommendation change with other thresholds.

A slider moves one threshold. It starts where the requirements put the threshold, or has no start if
they give none (the paper prescribes no edge EC). Scores run from 0 to 1, EC from 0 to the cap, and
time to twice its threshold or to the slowest mean.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from graphgauge.core import UndefinedScore, Verdict
from graphgauge.guidelines.aggregation import AggregatedScores
from graphgauge.guidelines.explainer_verdicts import judge_mean
from graphgauge.guidelines.recommendation import recommend_for
from graphgauge.guidelines.reference_data import metric_family, threshold_entry
from graphgauge.guidelines.requirements import Requirements
from graphgauge.guidelines.thresholds import Limit, find_limit, metric_title
from graphgauge.metrics import MetricName


@dataclass(frozen=True)
class ThresholdSlider:
    """A threshold that can be moved between 0 and ``most``; ``start`` None: there is none yet."""

    metric: str  #: as `Requirements.limits` names it
    title: str
    direction: str
    start: float | None
    most: float
    step: float


@dataclass(frozen=True)
class WhatIfResult:
    """Verdicts on all explainers of a task before and after, and the recommended one ('': none)."""

    before: tuple[Verdict, ...]
    after: tuple[Verdict, ...]
    chosen_before: str
    chosen_after: str

    @property
    def changed(self) -> list[tuple[Verdict, Verdict]]:
        """Pairs of verdicts whose outcomes differ."""
        return [
            pair
            for pair in zip(self.before, self.after, strict=True)
            if pair[0].outcome != pair[1].outcome
        ]


def list_threshold_sliders(
    found: AggregatedScores, task: str, wanted: Requirements
) -> list[ThresholdSlider]:
    """List the thresholds of a task that can be moved, in the order of the tables.

    Args:
        found: The aggregated scores.
        task: Name of the task, as the scores have it.
        wanted: The requirements that say where each slider starts.
    """
    return [
        _make_threshold_slider(found, task, metric, wanted) for metric in found.judged_metrics()
    ]


def _make_threshold_slider(
    found: AggregatedScores, task: str, metric: str, wanted: Requirements
) -> ThresholdSlider:
    """Build the slider of one threshold."""
    limit = find_limit(metric, found.kinds.get(task), wanted)
    start = limit.value if isinstance(limit, Limit) else None
    most, step = _slider_range(found, task, metric, start)
    name = str(MetricName.parse(metric).as_paper())
    return ThresholdSlider(
        name, metric_title(metric), str(threshold_entry(metric)["direction"]), start, most, step
    )


def _slider_range(
    found: AggregatedScores, task: str, metric: str, start: float | None
) -> tuple[float, float]:
    """Return how far a threshold can be moved, and in which steps."""
    family = metric_family(metric)
    if family == "ec":
        return max(float(found.cap), start or 0.0), 0.5
    if family != "time":
        return max(1.0, start or 0.0), 0.01
    means = [
        own.mean
        for subject in found.subjects(task)
        if (own := found.get(subject, metric)) and own.mean is not None
    ]
    return float(math.ceil(max([2 * (start or 0.0), 1.0, *means]))), 0.01


def simulate_thresholds(
    found: AggregatedScores, task: str, wanted: Requirements, limits: Mapping[str, float]
) -> WhatIfResult:
    """Compute what moving some thresholds to ``limits`` changes; the others stay.

    Args:
        found: The aggregated scores.
        task: Name of the task, as the scores have it.
        wanted: The requirements that hold before the thresholds move.
        limits: The new thresholds by metric, as `ThresholdSlider.metric` names it.
    """
    moved = replace(wanted, limits={**wanted.limits, **limits})
    before, after = (_judge_task(found, task, own) for own in (wanted, moved))
    return WhatIfResult(
        before,
        after,
        _recommended_explainer(found, task, wanted),
        _recommended_explainer(found, task, moved),
    )


def _judge_task(found: AggregatedScores, task: str, wanted: Requirements) -> tuple[Verdict, ...]:
    """Judge every explainer of a task."""
    return tuple(
        judge_mean(found, subject, metric, wanted)
        for subject in found.subjects(task)
        for metric in found.judged_metrics()
    )


def _recommended_explainer(found: AggregatedScores, task: str, wanted: Requirements) -> str:
    """Return the recommended explainer; '' if nothing was measured."""
    try:
        return recommend_for(found, task, wanted).chosen
    except UndefinedScore:
        return ""
