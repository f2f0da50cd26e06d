"""Charts of metrics over time as hand-made SVG: the mean of each run, where chance lets it be, the
threshold, what was raised.

A chart is geometry only (points in a box of WIDTH x HEIGHT); the page's template draws it. Per run:
a thin line from the lower to the upper quartile, a dot at the mean: vermilion where the run raised
a trigger for this metric, a ring where the mean is outside the band and the tests called no drift.
A line with a triangle stands at every run that raised any trigger. The band shows the control
limits around the mean of the baseline that was in force.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from graphgauge.monitor import History, Snapshot, Threshold, control_limits

CHART_WIDTH, CHART_HEIGHT = 360.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 10.0, 10.0, 26.0
MAX_CHART_RUNS = 60  #: runs in a chart, the last ones
OUTSIDE_BAND = "the mean is outside the band, but no test calls it drift"


@dataclass(frozen=True)
class _RunDot:
    """One run."""

    x: float
    y: float
    low: float  #: y of the lower quartile
    high: float
    is_raised: bool
    is_outside: bool  #: of the band
    told: str


@dataclass(frozen=True)
class _MetricChart:
    """One metric, ready to be drawn."""

    metric: str
    dots: tuple[_RunDot, ...]
    band: str  #: points of a polygon; '' if there is none
    centre: str  #: points of a line: means of the baselines
    threshold: float | None  #: y
    told: str  #: for those who do not see it
    ticks: tuple[tuple[float, str], ...]  #: y, label
    dates: tuple[tuple[float, str, str], ...]  #: x, label, anchor
    marks: tuple[tuple[float, str], ...] = ()  #: x and words, of runs that raised any trigger


def build_charts(history: History) -> list[_MetricChart]:
    """A chart for each metric of the baseline in force that has values in some run."""
    if history.baseline is None:
        return []
    runs = list(history.runs[-MAX_CHART_RUNS:])
    metrics = [
        *history.baseline.sample.metrics,
        *(["time"] if "time" in history.baseline.sample.values else []),
    ]
    return [
        _build_chart(metric, runs, history)
        for metric in metrics
        if any(len(run.sample.known(metric)) for run in runs)
    ]


def _build_chart(metric: str, every: Sequence[Snapshot], history: History) -> _MetricChart:
    """The chart of one metric."""
    runs = [run for run in every if len(run.sample.known(metric))]
    bases = {own.number: own for own in history.baselines}
    limits = [band_limits(bases[run.body["baseline"]], metric, run) for run in runs]
    threshold = runs[-1].plan.thresholds.get(metric)
    spreads = [np.quantile(run.sample.known(metric), (0.25, 0.75)).tolist() for run in runs]
    means = [float(run.sample.known(metric).mean()) for run in runs]
    numbers = [
        *means,
        *(v for s in spreads for v in s),
        *(v for s in limits if s for v in s),
        *([threshold.value] if threshold else []),
    ]
    low, high = _pad_range(min(numbers), max(numbers))
    xs = [_time_position(run.at, runs[0].at, runs[-1].at) for run in runs]

    def up(value: float) -> float:
        return round(_TOP + (high - value) / (high - low) * (CHART_HEIGHT - _TOP - _BOTTOM), 1)

    outside = [
        own is not None and metric != "time" and not own[0] <= mean <= own[2]
        for own, mean in zip(limits, means, strict=True)
    ]
    dots = tuple(
        _RunDot(
            x,
            up(mean),
            up(spread[0]),
            up(spread[1]),
            has_raised_trigger(run, metric),
            is_out,
            _describe_dot(run, metric, mean, is_out),
        )
        for run, x, mean, spread, is_out in zip(runs, xs, means, spreads, outside, strict=True)
    )
    known = [(x, own) for x, own in zip(xs, limits, strict=True) if own is not None]
    upper, lower = ([(x, up(own[side])) for x, own in known] for side in (2, 0))
    middle = [(x, up(own[1])) for x, own in known]
    return _MetricChart(
        metric,
        dots,
        _polygon_points([*upper, *reversed(lower)]) if metric != "time" else "",
        _polygon_points(middle),
        up(threshold.value) if threshold else None,
        _describe_chart(metric, means, threshold, sum(bool(run.body["triggers"]) for run in runs)),
        tuple((up(value), f"{value:.3g}") for value in _round_ticks(low, high)),
        _date_labels(runs),
        tuple(
            (x, _describe_mark(run))
            for run, x in zip(runs, xs, strict=True)
            if run.body["triggers"]
        ),
    )


def band_limits(
    baseline: Snapshot, metric: str, run: Snapshot
) -> tuple[float, float, float] | None:
    """Lower control limit, mean of the baseline, upper limit; no limit lies where no value can."""
    found = control_limits(baseline.sample, metric, len(run.sample.known(metric)), run.plan)
    if found is None:
        return None
    highest = 1.0 if "pertinence" in metric or "stability" in metric else found[1]
    return max(0.0, found[0]), float(baseline.sample.known(metric).mean()), min(highest, found[1])


def has_raised_trigger(run: Snapshot, metric: str) -> bool:
    """Whether a run raised a trigger about a metric."""
    return any(own["subject"] == metric for own in run.body["triggers"])


def _describe_dot(run: Snapshot, metric: str, mean: float, is_outside: bool) -> str:
    """What a dot says when it is pointed at."""
    raised = [own["name"] for own in run.body["triggers"] if own["subject"] == metric]
    said = raised or ([OUTSIDE_BAND] if is_outside else [])
    return (
        f"run {run.number}, {run.at.date()}: mean {mean:.3g}, {len(run.sample.known(metric))} targets"
        + "".join(f"; {own}" for own in said)
    )


def _describe_mark(run: Snapshot) -> str:
    """What a run raised, with the metric where it is about one."""
    raised = [f"{own['name']} {own['subject']}".strip() for own in run.body["triggers"]]
    return f"run {run.number}, {run.at.date()} raised: {', '.join(raised)}"


def _describe_chart(
    metric: str, means: Sequence[float], threshold: Threshold | None, raised: int
) -> str:
    """A chart in a sentence."""
    limit = f", threshold {threshold}" if threshold else ""
    course = f"{len(means)} runs, first mean {means[0]:.3g}, last mean {means[-1]:.3g}"
    return f"{metric}: {course}{limit}; {raised} of the runs raised a trigger"


# --- geometry -------------------------------------------------------------------------------------


def _pad_range(low: float, high: float) -> tuple[float, float]:
    """A range with some room; also where all values are equal.

    >>> _pad_range(1.0, 1.0), _pad_range(0.0, 10.0)
    ((0.95, 1.05), (-0.5, 10.5))
    """
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    return low - room, high + room


def _time_position(at: datetime, first: datetime, last: datetime) -> float:
    """Where a time lies; in the middle if there is only one."""
    whole = (last - first).total_seconds()
    share = (at - first).total_seconds() / whole if whole else 0.5
    return round(_LEFT + 6 + share * (CHART_WIDTH - _LEFT - _RIGHT - 12), 1)


def _polygon_points(pairs: Sequence[tuple[float, float]]) -> str:
    """Points of a line or polygon.

    >>> _polygon_points([(1.0, 2.5), (3.0, 4.0)])
    '1.0,2.5 3.0,4.0'
    """
    return " ".join(f"{x},{y}" for x, y in pairs)


def _round_ticks(low: float, high: float) -> list[float]:
    """Three to six round numbers inside a range.

    >>> _round_ticks(0.0, 1.0), _round_ticks(3.2, 17.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [5.0, 10.0, 15.0])
    """
    rough = (high - low) / 5
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * 0.999)
    return [
        round(float(k * step), 12)
        for k in range(int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9)) + 1)
    ]


def _date_labels(runs: Sequence[Snapshot]) -> tuple[tuple[float, str, str], ...]:
    """The first and the last date."""
    first, last = runs[0].at, runs[-1].at
    if len(runs) == 1 or first.date() == last.date():
        return (
            (
                _time_position(first, first, last),
                str(first.date()),
                "start" if len(runs) > 1 else "middle",
            ),
        )
    return ((_LEFT, str(first.date()), "start"), (CHART_WIDTH - _RIGHT, str(last.date()), "end"))
