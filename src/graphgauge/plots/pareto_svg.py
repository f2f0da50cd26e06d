"""Pareto fronts as small pictures for a page, with a number for each explainer.

The picture is that of `pareto_plot`: pertinence to the right, what it costs upwards, so that the
bottom right corner is the best. Explainers are numbers in discs, so that nobody has to tell colours
apart: full discs are on the front, empty ones are beaten, and discs that would hide each other
share a pill. Thin bars are 95 % intervals of the means.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphgauge.benchmark import MetricPair, Study, available_pairs, pareto_front
from graphgauge.core import UndefinedScore
from graphgauge.plots.colours import ACCENT, BLUE, GRID, SOFT
from graphgauge.plots.pareto_plot import Floats, axis_label, draw_front_line, front_corners
from graphgauge.plots.svg import svg_of, with_tooltips

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.path import Path

#: plain data that JSON can hold
Drawing = dict[str, Any]
_FRONT_DRAWS = 200
_WIDTH, _HEIGHT = 420.0, 300.0  #: points
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 14.0, 12.0, 46.0
_DISC_RADIUS = 9.0
_PILL_STEP = 11.0  #: what each further number adds to the width of a pill


def _judged_pairs(form: str) -> list[MetricPair]:
    """Return the paper's pairs of metrics, with the form of pertinence that is judged."""
    sides = ("feature", "edge")
    return [(f"{side}_{form}", f"{side}_ec") for side in sides] + [
        (f"{side}_{form}", "time") for side in sides
    ]


def measured_fronts(study: Study, form: str) -> "list[tuple[MetricPair, pd.DataFrame]]":
    """Return the front of each judged pair that was measured for two explainers or more."""
    try:
        pairs = available_pairs(study, _judged_pairs(form))
    except UndefinedScore:
        return []
    fronts = [(pair, pareto_front(study, pair, _FRONT_DRAWS)[0]) for pair in pairs]
    return [(pair, table) for pair, table in fronts if _is_front_drawable(table, pair)]


def _is_front_drawable(table: "pd.DataFrame", pair: MetricPair) -> bool:
    """Whether there are two points, and a logarithm of each time."""
    return len(table) > 1 and (pair[1] != "time" or bool((table["second_low"] > 0).all()))


def front_drawings(
    study: Study, form: str, numbers: Mapping[str, int], baseline: str
) -> list[Drawing]:
    """Draw the front of each judged pair of metrics.

    Args:
        study: The results of one task.
        form: The form of pertinence that is judged.
        numbers: The number of each explainer.
        baseline: The explainer whose disc is dashed.

    Returns:
        For each pair: labels, ticks, bars, markers and points as plain data, lengths in points from
        the top left; and the picture as SVG.
    """
    return [
        _draw_front(table, pair, numbers, baseline) for pair, table in measured_fronts(study, form)
    ]


def _draw_front(
    table: "pd.DataFrame", pair: MetricPair, numbers: Mapping[str, int], baseline: str
) -> Drawing:
    """Draw one front; who points at a disc is told whose it is, and its means."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH / 72, _HEIGHT / 72), dpi=72)  # a pixel is a point, as in SVG
    figure.patch.set_visible(False)
    size = (_WIDTH - _LEFT - _RIGHT) / _WIDTH, (_HEIGHT - _TOP - _BOTTOM) / _HEIGHT
    axes = figure.add_axes((_LEFT / _WIDTH, _BOTTOM / _HEIGHT, *size))
    _draw_frame(axes, table, pair)
    draw_front_line(axes, table, pair, color=BLUE, linewidth=1.5, linestyle=(0, (3.3, 2)))
    bars: dict[str, Any] = {"colors": SOFT, "linewidth": 1, "alpha": 0.55}
    axes.hlines(table["second_mean"], table["first_low"], table["first_high"], **bars)
    axes.vlines(table["first_mean"], table["second_low"], table["second_high"], **bars)
    markers = _markers(axes, table, numbers, baseline)
    for marker in markers:
        _draw_disc(axes, marker)
    tooltips = {_disc_id(marker): marker["told"] for marker in markers}
    corners = _places(axes, front_corners(table, pair).T) if table["front"].sum() > 1 else []
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "frame": {
            "left": _LEFT,
            "right": _WIDTH - _RIGHT,
            "top": _TOP,
            "bottom": _HEIGHT - _BOTTOM,
        },
        **_axis_records(axes, pair),
        "bars": _bar_records(axes, table),
        "steps": " ".join(f"{x},{y}" for x, y in corners),
        "markers": markers,
        "points": [_point_record(row, numbers) for row in table.to_dict("records")],
        "pictures": {"front": with_tooltips(svg_of(figure), tooltips)},
    }


def _draw_frame(axes: "Axes", table: "pd.DataFrame", pair: MetricPair) -> None:
    """Draw axes with a few round numbers, their labels and a grid."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

    axes.set_xlim(_limits(table, "first", is_log=False))
    axes.set_ylim(_limits(table, "second", is_log=pair[1] == "time"))
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    if pair[1] == "time":
        low, high = axes.get_ylim()
        axes.set_yscale("log")
        powers = math.floor(math.log10(high)) - math.ceil(math.log10(low)) + 1
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if powers > 2 else (1.0, 2.0, 5.0)))
        axes.minorticks_off()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.tick_params(length=0, pad=6, labelsize=11, labelcolor=SOFT)
    axes.grid(color=GRID, linewidth=1)
    axes.set_axisbelow(True)
    axes.patch.set_visible(False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(SOFT)
    label: dict[str, Any] = {"fontsize": 12, "color": SOFT, "ha": "center", "va": "baseline"}
    middle = (_WIDTH + _LEFT - _RIGHT) / 2 / _WIDTH, (_HEIGHT + _BOTTOM - _TOP) / 2 / _HEIGHT
    figure: Any = axes.figure
    figure.text(middle[0], 8 / _HEIGHT, axis_label(pair[0], "→", "←"), **label)
    label |= {"rotation": 90, "rotation_mode": "anchor"}
    figure.text(13 / _WIDTH, middle[1], axis_label(pair[1], "↑", "↓"), **label)


def _limits(table: "pd.DataFrame", place: str, is_log: bool) -> tuple[float, float]:
    """A range with room around every bar; amounts that cannot be negative start at 0 or above."""
    values = table[[f"{place}_low", f"{place}_mean", f"{place}_high"]].to_numpy()
    low, high = float(values.min()), float(values.max())
    if is_log:
        return low / 1.6, high * 1.6
    room = 0.12 * (high - low) or 0.1 * abs(high) or 0.1
    return max(0.0, low - room) if low >= 0 else low - room, high + room


def _places(axes: "Axes", points: Floats) -> list[list[float]]:
    """Where points (n, 2) are drawn, from the top left, to a tenth of a point."""
    places = axes.transData.transform(points) * (1, -1) + (0, _HEIGHT)
    return [[round(x, 1), round(y, 1)] for x, y in places.tolist()]


def _axis_records(axes: "Axes", pair: MetricPair) -> Drawing:
    """The labels and ticks of both axes as plain data."""
    records = {}
    for k, (name, label) in enumerate(
        (("x", axis_label(pair[0], "→", "←")), ("y", axis_label(pair[1], "↑", "↓")))
    ):
        axis, (low, high) = (
            (axes.xaxis, axes.get_xlim()) if k == 0 else (axes.yaxis, axes.get_ylim())
        )
        values = [value for value in axis.get_majorticklocs().tolist() if low <= value <= high]
        origin = axes.get_xlim()[0], axes.get_ylim()[0]
        points = [(value, origin[1]) if k == 0 else (origin[0], value) for value in values]
        ticks = [
            {"at": place[k], "text": f"{value:g}"}
            for value, place in zip(values, _places(axes, np.reshape(points, (-1, 2))), strict=True)
        ]
        records[name] = {"label": label, "ticks": ticks}
    return records


def _bar_records(axes: "Axes", table: "pd.DataFrame") -> list[dict[str, float]]:
    """The intervals of each explainer as plain data."""
    low, high, mean = (
        _places(axes, table[[f"first_{part}", f"second_{part}"]].to_numpy())
        for part in ("low", "high", "mean")
    )
    return [
        {"x1": start[0], "x2": end[0], "y1": start[1], "y2": end[1], "x": place[0], "y": place[1]}
        for start, end, place in zip(low, high, mean, strict=True)
    ]


def _point_record(row: Drawing, numbers: Mapping[str, int]) -> Drawing:
    """One explainer as plain data."""
    columns = ("explainer", "first", "second", "first_mean", "second_mean", "front", "share")
    return {"number": numbers[row["explainer"]], **{name: row[name] for name in columns}}


def _markers(
    axes: "Axes", table: "pd.DataFrame", numbers: Mapping[str, int], baseline: str
) -> list[Drawing]:
    """Discs, or pills where several explainers lie on one spot; those on the front come last."""
    rows = table.to_dict("records")
    means = table[["first_mean", "second_mean"]].to_numpy()
    spots = (axes.transData.transform(means) * (1, -1) + (0, _HEIGHT)).tolist()
    markers = []
    for group in _group_discs(table["front"].tolist(), spots):
        members = [rows[k] for k in group]
        half = _DISC_RADIUS + _PILL_STEP * (len(group) - 1) / 2
        x, y = (sum(spots[k][axis] for k in group) / len(group) for axis in (0, 1))
        marker = {
            "x": round(min(max(x, _LEFT + half), _WIDTH - _RIGHT - half), 1),
            "y": round(y, 1),
            "half": half,
            "radius": _DISC_RADIUS,
            "text": " ".join(str(numbers[row["explainer"]]) for row in members),
            "told": "; ".join(
                f"{row['explainer']}: {row['first_mean']:.3g}, {row['second_mean']:.3g}"
                for row in members
            ),
            "front": any(row["front"] for row in members),
            "is_baseline": all(row["explainer"] == baseline for row in members),
        }
        markers.append(marker)
    return sorted(markers, key=lambda marker: bool(marker["front"]))


def _group_discs(on_front: Sequence[bool], spots: Sequence[Sequence[float]]) -> list[list[int]]:
    """Positions of discs that would hide each other; the front and the others stay apart.

    >>> _group_discs([True, True, False], [(0.0, 0.0), (5.0, 0.0), (0.0, 0.0)])
    [[0, 1], [2]]
    """
    groups: list[list[int]] = []
    for k, spot in enumerate(spots):
        for group in groups:
            first = group[0]
            is_near = math.dist(spots[first], spot) < 1.5 * _DISC_RADIUS
            if is_near and on_front[first] == on_front[k]:
                group.append(k)
                break
        else:
            groups.append([k])
    return groups


def _disc_id(marker: Drawing) -> str:
    """The id of a disc in the picture."""
    return f"disc-{marker['text'].replace(' ', '-')}"


def _draw_disc(axes: "Axes", marker: Drawing) -> None:
    """Draw a disc, or a pill for several numbers."""
    from matplotlib.patches import PathPatch
    from matplotlib.transforms import IdentityTransform

    x, y = marker["x"], _HEIGHT - marker["y"]
    edge = SOFT if marker["is_baseline"] else BLUE
    axes.add_patch(
        PathPatch(
            _pill(x, y, marker["half"]),
            facecolor=BLUE if marker["front"] else "white",
            edgecolor=edge,
            linewidth=1.5,
            linestyle=(0, (2, 1.3)) if marker["is_baseline"] else "solid",
            transform=IdentityTransform(),
            clip_on=False,
            zorder=4,
            gid=_disc_id(marker),
        )
    )
    colour = "white" if marker["front"] else SOFT if marker["is_baseline"] else ACCENT
    style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "weight": "bold", "size": 11}
    transform = IdentityTransform()
    axes.text(x, y, marker["text"], color=colour, transform=transform, zorder=5, **style)


def _pill(x: float, y: float, half: float) -> "Path":
    """The outline of a disc that is drawn out to a width of ``2 * half``."""
    from matplotlib.path import Path

    left, right = Path.arc(90, 270), Path.arc(270, 450)
    reach = np.array([half - _DISC_RADIUS, 0.0])
    first, second = (_DISC_RADIUS * np.asarray(arc.vertices) for arc in (left, right))
    vertices = np.concatenate([first - reach, second + reach, first[:1] - reach])
    codes = np.concatenate([np.asarray(left.codes), np.asarray(right.codes), [Path.CLOSEPOLY]])
    codes[len(first)] = Path.LINETO
    return Path(vertices + np.array([x, y]), codes)
