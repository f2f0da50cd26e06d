"""Charts of metrics over time: the mean of each run, the band that chance explains, the threshold.

For each run a thin line reaches from the lower to the upper quartile, with a dot at the mean. The
dot is vermilion where the run raised a trigger for this metric, and a ring where the mean lies
outside the band although the tests called no drift. A line with a triangle stands at every run that
raised any trigger. The band shows the control limits around the mean of the baseline that was in
force.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from graphgauge.monitor import History, Snapshot, Threshold, control_limits
from graphgauge.plots.colours import BLUE, GRID, GROUP, SOFT, VERMILION
from graphgauge.plots.svg import svg_of, with_tooltips

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_CHART_RUNS = 60  #: a chart shows the last ones
OUTSIDE_BAND = "the mean is outside the band, but no test calls it drift"
_WIDTH, _HEIGHT = 360, 190  # points
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 10, 26
_INK = "#1D2733"


@dataclass(frozen=True)
class RunPoint:
    """One metric in one run."""

    number: int
    at: datetime
    mean: float
    num_targets: int
    quartiles: tuple[float, float]
    baseline: float | None  #: mean of the baseline that was in force
    band: tuple[float, float] | None  #: control limits around it
    threshold: float | None  #: that the run was held against
    triggers: tuple[str, ...]  #: what the run raised about this metric
    all_triggers: tuple[str, ...]  #: what it raised about anything

    @property
    def is_outside(self) -> bool:
        """Whether the mean lies outside the band."""
        return self.band is not None and not self.band[0] <= self.mean <= self.band[1]

    @property
    def description(self) -> str:
        """The run in words, for those who point at it."""
        numbers = f"mean {self.mean:.3g}, {self.num_targets} targets"
        remarks = self.triggers or ((OUTSIDE_BAND,) if self.is_outside else ())
        return "; ".join([f"run {self.number}, {self.at.date()}: {numbers}", *remarks])


@dataclass(frozen=True)
class MetricChart:
    """What a chart of one metric shows."""

    metric: str
    points: tuple[RunPoint, ...]
    threshold: Threshold | None

    @property
    def description(self) -> str:
        """The chart in a sentence, for those who do not see it."""
        means = [point.mean for point in self.points]
        limit = f", threshold {self.threshold}" if self.threshold else ""
        raised = sum(bool(point.all_triggers) for point in self.points)
        return (
            f"{self.metric}: {len(means)} runs, first mean {means[0]:.3g}, "
            f"last mean {means[-1]:.3g}{limit}; {raised} of the runs raised a trigger"
        )

    def svg(self) -> str:
        """Draw the chart as SVG; who points at a run is told its numbers."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72), dpi=72)  # a pixel is a point
        figure.patch.set_visible(False)
        width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        axes = figure.add_axes(
            (_LEFT / _WIDTH, _BOTTOM / _HEIGHT, width / _WIDTH, height / _HEIGHT)
        )
        tooltips = draw_chart(self, axes)
        for artist in figure.findobj():
            artist.set_clip_on(False)  # nothing leaves the axes but the triangles
        return with_tooltips(svg_of(figure), tooltips)


def build_charts(history: History) -> list[MetricChart]:
    """Return a chart for each metric of the baseline in force that has values in some run."""
    if history.baseline is None:
        return []
    sample = history.baseline.sample
    metrics = [*sample.metrics, *(["time"] if "time" in sample.values else [])]
    runs = list(history.runs[-_MAX_CHART_RUNS:])
    charts = (_build_chart(metric, runs, history) for metric in metrics)
    return [chart for chart in charts if chart.points]


def _build_chart(metric: str, runs: Sequence[Snapshot], history: History) -> MetricChart:
    """The chart of one metric, of the runs in which it has values."""
    baselines = {baseline.number: baseline for baseline in history.baselines}
    known = [run for run in runs if len(run.sample.known(metric))]
    points = tuple(_run_point(run, metric, baselines[run.body["baseline"]]) for run in known)
    return MetricChart(metric, points, known[-1].plan.thresholds.get(metric) if known else None)


def _run_point(run: Snapshot, metric: str, baseline: Snapshot) -> RunPoint:
    """One run. Times of day say nothing about the limits of a time, so it has no band."""
    values = run.sample.known(metric)
    lower, upper = np.quantile(values, (0.25, 0.75)).tolist()
    low, centre, high = band_limits(baseline, metric, run) or (None, None, None)
    threshold = run.plan.thresholds.get(metric)
    triggers = run.body["triggers"]
    return RunPoint(
        number=run.number,
        at=run.at,
        mean=float(values.mean()),
        num_targets=len(values),
        quartiles=(lower, upper),
        baseline=centre,
        band=None if low is None or high is None or metric == "time" else (low, high),
        threshold=threshold.value if threshold else None,
        triggers=tuple(entry["name"] for entry in triggers if entry["subject"] == metric),
        all_triggers=tuple(f"{entry['name']} {entry['subject']}".strip() for entry in triggers),
    )


def band_limits(
    baseline: Snapshot, metric: str, run: Snapshot
) -> tuple[float, float, float] | None:
    """Return the lower control limit, the mean of the baseline and the upper control limit.

    No limit lies where no value can.

    Args:
        baseline: The baseline that the run is compared with.
        metric: Name of the metric.
        run: The run. The more targets have a value in it, the closer the limits; its plan sets the
            level.

    Returns:
        The three numbers; None if the baseline has too few values.
    """
    limits = control_limits(baseline.sample, metric, len(run.sample.known(metric)), run.plan)
    if limits is None:
        return None
    highest = 1.0 if "pertinence" in metric or "stability" in metric else limits[1]
    mean = float(baseline.sample.known(metric).mean())
    return max(0.0, limits[0]), mean, min(highest, limits[1])


def draw_chart(chart: MetricChart, axes: "Axes") -> dict[str, str]:
    """Draw a chart into axes of ``_WIDTH`` times ``_HEIGHT`` points.

    Returns:
        What each run says when it is pointed at, by the id of its artist.
    """
    points = chart.points
    _draw_frame(axes, points)
    banded = [(point.at.timestamp(), *point.band) for point in points if point.band is not None]
    if banded:
        width = 10 if len(points) == 1 else 0
        at, low, high = np.array(banded).T
        axes.fill_between(at, low, high, color=GROUP, alpha=0.75, linewidth=width)
    times = [point.at.timestamp() for point in points]
    baselines = [math.nan if point.baseline is None else point.baseline for point in points]
    axes.plot(times, baselines, color=SOFT, linewidth=1)
    if chart.threshold is not None:
        dashes: dict[str, Any] = {"linestyle": (0, (3.3, 2)), "linewidth": 1.5}
        axes.axhline(chart.threshold.value, color=VERMILION, **dashes)
    means = [point.mean for point in points]
    axes.plot(times, means, color=BLUE, alpha=0.6, linewidth=1)
    tooltips: dict[str, str] = {}
    for point in points:
        if point.all_triggers:
            tooltips |= _draw_trigger(axes, point)
    for point in points:
        tooltips |= _draw_run(axes, point)
    return tooltips


def _draw_frame(axes: "Axes", points: Sequence[RunPoint]) -> None:
    """Draw a few round numbers upwards, and the first and the last date."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axes.tick_params(length=0, pad=6, labelsize=11, labelcolor=SOFT)
    axes.grid(axis="y", color=GRID, linewidth=1)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.patch.set_visible(False)
    axes.set_xticks([])
    axes.set_ymargin(0.05)
    axes.set_xmargin(6 / (_WIDTH - _LEFT - _RIGHT - 12))
    first, last = str(points[0].at.date()), str(points[-1].at.date())
    labels = [(0.5, "center", first)] if len(points) == 1 else [(0.0, "left", first)]
    labels += [(1.0, "right", last)] if last != first else []
    for x, side, text in labels:
        axes.annotate(
            text,
            (x, 0),
            (0, 6 - _BOTTOM),
            xycoords="axes fraction",
            textcoords="offset points",
            ha=side,
            fontsize=11,
            color=SOFT,
        )


def _draw_trigger(axes: "Axes", point: RunPoint) -> dict[str, str]:
    """Draw a line with a triangle on top, for a run that raised any trigger."""
    gid = f"trigger-{point.number}"
    style: dict[str, Any] = {"color": _INK, "gid": gid}
    top = axes.get_xaxis_transform()
    axes.plot(
        [point.at.timestamp()] * 2,
        [0, 1],
        transform=top,
        alpha=0.35,
        linewidth=1,
        linestyle=(0, (2, 3)),
        zorder=3,
        **style,
    )
    axes.plot(
        [point.at.timestamp()],
        [1 + 5 / (_HEIGHT - _TOP - _BOTTOM)],
        transform=top,
        marker="v",
        markersize=7,
        markeredgewidth=0,
        linestyle="none",
        zorder=3,
        **style,
    )
    return {gid: f"run {point.number}, {point.at.date()} raised: {', '.join(point.all_triggers)}"}


def _draw_run(axes: "Axes", point: RunPoint) -> dict[str, str]:
    """Draw the middle half of the targets as a line, and the mean as a dot."""
    gid = f"run-{point.number}"
    axes.plot(
        [point.at.timestamp()] * 2,
        point.quartiles,
        color=BLUE,
        alpha=0.4,
        linewidth=2,
        zorder=4,
        gid=gid,
    )
    colour = VERMILION if point.triggers else BLUE
    is_ring = point.is_outside and not point.triggers
    axes.plot(
        [point.at.timestamp()],
        [point.mean],
        marker="o",
        markersize=10 if point.triggers else 6.4,
        color=colour,
        markerfacecolor="white" if is_ring else colour,
        markeredgecolor=colour if is_ring else "white",
        markeredgewidth=2 if is_ring else 1,
        linestyle="none",
        zorder=5,
        gid=gid,
    )
    return {gid: point.description}
