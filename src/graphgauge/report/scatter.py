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

from graphgauge.benchmark.pareto import Pair, front, known_pairs
from graphgauge.benchmark.study import Study
from graphgauge.core.errors import UndefinedScore
from graphgauge.report.pareto import axis_label

if TYPE_CHECKING:
    import pandas as pd

WIDTH, HEIGHT = 420.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 12.0, 46.0
RADIUS = 9.0
WIDER = 11.0  #: what each further number adds to a pill
DRAWS = 200


@dataclass(frozen=True)
class Axis:
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
        values = decades(self.low, self.high) if self.is_log else round_numbers(self.low, self.high)
        return [{"at": rounded(self(value)), "text": f"{value:g}"} for value in values]


def pairs_of(form: str) -> list[Pair]:
    """The paper's pairs of metrics, with the form of pertinence that is judged."""
    sides = ("feature", "edge")
    return [(f"{side}_{form}", f"{side}_ec") for side in sides] + [
        (f"{side}_{form}", "time") for side in sides
    ]


def drawings(
    study: Study, form: str, numbers: dict[str, int], baseline: str
) -> list[dict[str, Any]]:
    """A drawing for each pair that was measured by two explainers or more."""
    try:
        pairs = known_pairs(study, pairs_of(form))
    except UndefinedScore:
        return []
    tables = [(pair, front(study, pair, DRAWS)[0]) for pair in pairs]
    return [
        drawing(table, pair, numbers, baseline)
        for pair, table in tables
        if is_drawable(table, pair)
    ]


def is_drawable(table: "pd.DataFrame", pair: Pair) -> bool:
    """Whether there are two points, and a logarithm of each time."""
    return len(table) > 1 and (pair[1] != "time" or bool((table["second_low"] > 0).all()))


def drawing(
    table: "pd.DataFrame", pair: Pair, numbers: dict[str, int], baseline: str
) -> dict[str, Any]:
    """Axes, bars, the stepped front and the markers."""
    x = axis_of(table, "first", LEFT, WIDTH - RIGHT, is_log=False)
    y = axis_of(table, "second", HEIGHT - BOTTOM, TOP, is_log=pair[1] == "time")
    rows = table.to_dict("records")
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "frame": {"left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM},
        "x": {"label": axis_label(pair[0], "→", "←"), "ticks": x.ticks()},
        "y": {"label": axis_label(pair[1], "↑", "↓"), "ticks": y.ticks()},
        "bars": [bar(row, x, y) for row in rows],
        "steps": steps(rows, x, y),
        "markers": markers(rows, x, y, numbers, baseline),
        "points": [point(row, numbers) for row in rows],
    }


def axis_of(table: "pd.DataFrame", place: str, start: float, end: float, is_log: bool) -> Axis:
    """An axis with room around every bar; amounts that cannot be negative start at 0 or above."""
    reached = table[[f"{place}_low", f"{place}_mean", f"{place}_high"]].to_numpy()
    low, high = float(reached.min()), float(reached.max())
    if is_log:
        return Axis(low / 1.6, high * 1.6, True, start, end)
    room = 0.12 * (high - low) or 0.1 * abs(high) or 0.1
    return Axis(max(0.0, low - room) if low >= 0 else low - room, high + room, False, start, end)


def round_numbers(low: float, high: float, most: int = 5) -> list[float]:
    """At most so many round numbers in a range, evenly spaced.

    >>> round_numbers(0.0, 1.0), round_numbers(12.0, 95.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [20.0, 40.0, 60.0, 80.0])
    """
    raw = (high - low) / most
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * k for k in (1, 2, 5, 10) if size * k >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def decades(low: float, high: float) -> list[float]:
    """Powers of ten in a range, with 2 and 5 times them where there are few.

    >>> decades(0.008, 3.0), decades(0.012, 0.06)
    ([0.01, 0.1, 1.0], [0.02, 0.05])
    """
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    whole = [10.0**k for k in exponents if low <= 10.0**k <= high]
    fine = [float(f"{m}e{k}") for k in exponents for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    return whole if len(whole) > 2 else fine


def bar(row: dict[str, Any], x: Axis, y: Axis) -> dict[str, float]:
    """The intervals of one explainer."""
    ends = {
        "x1": x(row["first_low"]),
        "x2": x(row["first_high"]),
        "y1": y(row["second_low"]),
        "y2": y(row["second_high"]),
    }
    return {
        name: rounded(at)
        for name, at in {**ends, "x": x(row["first_mean"]), "y": y(row["second_mean"])}.items()
    }


def steps(rows: Sequence[dict[str, Any]], x: Axis, y: Axis) -> str:
    """The front as the points of a stepped line; '' for a front of one."""
    own = sorted((x(row["first_mean"]), y(row["second_mean"])) for row in rows if row["front"])
    corners = [own[0]] if own else []
    for (left, _), (right, now) in pairwise(own):
        corners += [(left, now), (right, now)]
    return " ".join(f"{rounded(a)},{rounded(b)}" for a, b in corners) if len(own) > 1 else ""


def markers(
    rows: Sequence[dict[str, Any]], x: Axis, y: Axis, numbers: dict[str, int], baseline: str
) -> list[dict[str, Any]]:
    """Discs, or pills where several explainers lie on one spot; those on the front on top."""
    groups: list[list[dict[str, Any]]] = []
    for row in rows:
        spot = {**row, "x": x(row["first_mean"]), "y": y(row["second_mean"])}
        near = next((group for group in groups if is_near(group[0], spot)), None)
        groups.append([spot]) if near is None else near.append(spot)
    return sorted(
        (marker(group, numbers, baseline) for group in groups), key=lambda own: bool(own["front"])
    )


def is_near(spot: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two discs would hide each other; one on the front and one that is not stay apart."""
    return (
        spot["front"] == other["front"]
        and math.dist((spot["x"], spot["y"]), (other["x"], other["y"])) < 1.5 * RADIUS
    )


def marker(
    group: Sequence[dict[str, Any]], numbers: dict[str, int], baseline: str
) -> dict[str, Any]:
    """One disc or pill."""
    half = RADIUS + WIDER * (len(group) - 1) / 2
    middle = sum(spot["x"] for spot in group) / len(group)
    return {
        "x": rounded(min(max(middle, LEFT + half), WIDTH - RIGHT - half)),
        "y": rounded(sum(spot["y"] for spot in group) / len(group)),
        "half": half,
        "radius": RADIUS,
        "text": " ".join(str(numbers[spot["explainer"]]) for spot in group),
        "told": "; ".join(
            f"{spot['explainer']}: {spot['first_mean']:.3g}, {spot['second_mean']:.3g}"
            for spot in group
        ),
        "front": any(spot["front"] for spot in group),
        "is_baseline": all(spot["explainer"] == baseline for spot in group),
    }


def point(row: dict[str, Any], numbers: dict[str, int]) -> dict[str, Any]:
    """One explainer as plain data."""
    kept = ("explainer", "first", "second", "first_mean", "second_mean", "front", "share")
    return {"number": numbers[row["explainer"]], **{name: row[name] for name in kept}}


def rounded(length: float) -> float:
    """A length with one digit after the point."""
    return round(length, 1)
