"""Pareto fronts as small drawings for a page: geometry only, the page's template draws it.

Pertinence to the right, what it costs upwards, so that the bottom right corner is the best.
Explainers are numbers in discs, so that no colour has to be told from another: full discs are on
the front, empty ones are beaten, and those that lie on one spot share a pill. Thin bars are 95 %
intervals of the means. Lengths are in units of the drawing; pages scale it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from graphgauge.benchmark import MetricPair, Study, available_pairs, pareto_front
from graphgauge.core import UndefinedScore
from graphgauge.plots.pareto_plot import axis_label

if TYPE_CHECKING:
    import pandas as pd

_FRONT_WIDTH, _FRONT_HEIGHT = 420.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 14.0, 12.0, 46.0
_MARKER_RADIUS = 9.0
_PILL_STEP = 11.0  #: what each further number adds to a pill
FRONT_DRAWS = 200


@dataclass(frozen=True)
class _DrawingAxis:
    """Where values lie on one side of the drawing."""

    low: float
    high: float
    is_log: bool
    start: float  #: where ``low`` is drawn
    end: float

    def __call__(self, value: float) -> float:
        low, high, own = (math.log10(v) if self.is_log else v for v in (self.low, self.high, value))
        return self.start + (own - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[dict[str, Any]]:
        """Places and texts of a few round numbers."""
        values = (
            _decade_ticks(self.low, self.high)
            if self.is_log
            else _round_axis_numbers(self.low, self.high)
        )
        return [{"at": _round_length(self(value)), "text": f"{value:g}"} for value in values]


def judged_pairs(form: str) -> list[MetricPair]:
    """The paper's pairs of metrics, with the form of pertinence that is judged."""
    sides = ("feature", "edge")
    return [(f"{side}_{form}", f"{side}_ec") for side in sides] + [
        (f"{side}_{form}", "time") for side in sides
    ]


def front_drawings(
    study: Study, form: str, numbers: dict[str, int], baseline: str
) -> list[dict[str, Any]]:
    """A drawing for each pair that was measured by two explainers or more."""
    try:
        pairs = available_pairs(study, judged_pairs(form))
    except UndefinedScore:
        return []
    tables = [(pair, pareto_front(study, pair, FRONT_DRAWS)[0]) for pair in pairs]
    return [
        _front_drawing(table, pair, numbers, baseline)
        for pair, table in tables
        if is_front_drawable(table, pair)
    ]


def is_front_drawable(table: "pd.DataFrame", pair: MetricPair) -> bool:
    """Whether there are two points, and a logarithm of each time."""
    return len(table) > 1 and (pair[1] != "time" or bool((table["second_low"] > 0).all()))


def _front_drawing(
    table: "pd.DataFrame", pair: MetricPair, numbers: dict[str, int], baseline: str
) -> dict[str, Any]:
    """Axes, bars, the stepped front and the markers."""
    x = _fit_axis(table, "first", _LEFT, _FRONT_WIDTH - _RIGHT, is_log=False)
    y = _fit_axis(table, "second", _FRONT_HEIGHT - _BOTTOM, _TOP, is_log=pair[1] == "time")
    rows = table.to_dict("records")
    return {
        "width": _FRONT_WIDTH,
        "height": _FRONT_HEIGHT,
        "frame": {
            "left": _LEFT,
            "right": _FRONT_WIDTH - _RIGHT,
            "top": _TOP,
            "bottom": _FRONT_HEIGHT - _BOTTOM,
        },
        "x": {"label": axis_label(pair[0], "→", "←"), "ticks": x.ticks()},
        "y": {"label": axis_label(pair[1], "↑", "↓"), "ticks": y.ticks()},
        "bars": [_interval_bars(row, x, y) for row in rows],
        "steps": _front_steps(rows, x, y),
        "markers": _front_markers(rows, x, y, numbers, baseline),
        "points": [_point_record(row, numbers) for row in rows],
    }


def _fit_axis(
    table: "pd.DataFrame", place: str, start: float, end: float, is_log: bool
) -> _DrawingAxis:
    """An axis with room around every bar; amounts that cannot be negative start at 0 or above."""
    reached = table[[f"{place}_low", f"{place}_mean", f"{place}_high"]].to_numpy()
    low, high = float(reached.min()), float(reached.max())
    if is_log:
        return _DrawingAxis(low / 1.6, high * 1.6, True, start, end)
    room = 0.12 * (high - low) or 0.1 * abs(high) or 0.1
    return _DrawingAxis(
        max(0.0, low - room) if low >= 0 else low - room, high + room, False, start, end
    )


def _round_axis_numbers(low: float, high: float, most: int = 5) -> list[float]:
    """At most so many round numbers in a range, evenly spaced.

    >>> _round_axis_numbers(0.0, 1.0), _round_axis_numbers(12.0, 95.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [20.0, 40.0, 60.0, 80.0])
    """
    raw = (high - low) / most
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * k for k in (1, 2, 5, 10) if size * k >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _decade_ticks(low: float, high: float) -> list[float]:
    """Powers of ten in a range, with 2 and 5 times them where there are few.

    >>> _decade_ticks(0.008, 3.0), _decade_ticks(0.012, 0.06)
    ([0.01, 0.1, 1.0], [0.02, 0.05])
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    whole = [10.0**k for k in exponents if low <= 10.0**k <= high]
    fine = [float(f"{m}e{k}") for k in exponents for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    return whole if len(whole) > 2 else fine


def _interval_bars(row: dict[str, Any], x: _DrawingAxis, y: _DrawingAxis) -> dict[str, float]:
    """The intervals of one explainer."""
    ends = {
        "x1": x(row["first_low"]),
        "x2": x(row["first_high"]),
        "y1": y(row["second_low"]),
        "y2": y(row["second_high"]),
    }
    return {
        name: _round_length(at)
        for name, at in {**ends, "x": x(row["first_mean"]), "y": y(row["second_mean"])}.items()
    }


def _front_steps(rows: Sequence[dict[str, Any]], x: _DrawingAxis, y: _DrawingAxis) -> str:
    """The front as the points of a stepped line; '' for a front of one."""
    own = sorted((x(row["first_mean"]), y(row["second_mean"])) for row in rows if row["front"])
    corners = [own[0]] if own else []
    for (left, _), (right, now) in pairwise(own):
        corners += [(left, now), (right, now)]
    return (
        " ".join(f"{_round_length(a)},{_round_length(b)}" for a, b in corners)
        if len(own) > 1
        else ""
    )


def _front_markers(
    rows: Sequence[dict[str, Any]],
    x: _DrawingAxis,
    y: _DrawingAxis,
    numbers: dict[str, int],
    baseline: str,
) -> list[dict[str, Any]]:
    """Discs, or pills where several explainers lie on one spot; those on the front on top."""
    groups: list[list[dict[str, Any]]] = []
    for row in rows:
        spot = {**row, "x": x(row["first_mean"]), "y": y(row["second_mean"])}
        near = next((group for group in groups if _is_near_marker(group[0], spot)), None)
        groups.append([spot]) if near is None else near.append(spot)
    return sorted(
        (_front_marker(group, numbers, baseline) for group in groups),
        key=lambda own: bool(own["front"]),
    )


def _is_near_marker(spot: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two discs would hide each other; one on the front and one that is not stay apart."""
    return (
        spot["front"] == other["front"]
        and math.dist((spot["x"], spot["y"]), (other["x"], other["y"])) < 1.5 * _MARKER_RADIUS
    )


def _front_marker(
    group: Sequence[dict[str, Any]], numbers: dict[str, int], baseline: str
) -> dict[str, Any]:
    """One disc or pill."""
    half = _MARKER_RADIUS + _PILL_STEP * (len(group) - 1) / 2
    middle = sum(spot["x"] for spot in group) / len(group)
    return {
        "x": _round_length(min(max(middle, _LEFT + half), _FRONT_WIDTH - _RIGHT - half)),
        "y": _round_length(sum(spot["y"] for spot in group) / len(group)),
        "half": half,
        "radius": _MARKER_RADIUS,
        "text": " ".join(str(numbers[spot["explainer"]]) for spot in group),
        "told": "; ".join(
            f"{spot['explainer']}: {spot['first_mean']:.3g}, {spot['second_mean']:.3g}"
            for spot in group
        ),
        "front": any(spot["front"] for spot in group),
        "is_baseline": all(spot["explainer"] == baseline for spot in group),
    }


def _point_record(row: dict[str, Any], numbers: dict[str, int]) -> dict[str, Any]:
    """One explainer as plain data."""
    kept = ("explainer", "first", "second", "first_mean", "second_mean", "front", "share")
    return {"number": numbers[row["explainer"]], **{name: row[name] for name in kept}}


def _round_length(length: float) -> float:
    """A length with one digit after the point."""
    return round(length, 1)
