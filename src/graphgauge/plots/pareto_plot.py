"""Plots of Pareto fronts.

Pertinence runs to the right and what it costs upwards, so the bottom right corner is the best.
Every explainer has its own marker and colour, which readers can tell apart with any kind of colour
vision. Those on the front are filled and named, and a stepped line joins them: whatever lies above
and left of it is beaten. Bars are 95 % intervals of the means.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphgauge.benchmark import (
    BASELINE_EXPLAINERS,
    METRIC_PAIRS,
    PAPER_EXPLAINERS,
    MetricPair,
    Study,
    as_study,
    available_pairs,
    explainer_title,
    kind_title,
    pareto_front,
    sort_as_in_paper,
)
from graphgauge.evaluation import Results, higher_is_better
from graphgauge.metrics import MetricName
from graphgauge.plots.colours import GREY, SERIES
from graphgauge.plots.text_labels import letters_that_fit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox, BboxBase

Floats = NDArray[np.float64]
_SERIES_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h")
_AXIS_WORDS = {"ec": "EC, edits", "time": "seconds", "time_batched": "seconds in a batch"}
#: where a name may stand, in points from its marker
_NAME_OFFSETS = [(x, y) for y in (8, -14, 20, -26, 32, -38) for x in (8, -8)]
_NAME_BOX = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.6}
_LEADER_LINE = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6}
_LEADER_DISTANCE = 14  #: points above or below the marker from which a line leads to the name
_SAME_SPOT_PIXELS = 3.0  #: pixels within which markers are named together
_NAME_FONT_SIZE = 8  #: of the letters of a name
#: of the width of a panel that a name may take: less than half, so that it fits on one side of its
#: marker
_NAME_WIDTH_SHARE = 0.4
_MAX_NAME_LINES = 6  #: of names that stand together; the legend has them all


def plot_pareto(
    results: Results | Study,
    first: str = "feature_pertinence",
    second: str = "feature_ec",
    ax: "Axes | None" = None,
    draws: int = 500,
    seed: int = 0,
) -> "Axes":
    """Draw the Pareto front of two metrics over all tasks of the results.

    Args:
        results: What an evaluator or a benchmark measured.
        first: The metric to the right.
        second: The metric upwards.
        ax: Axes to draw into; by default new ones, with a legend.
        draws: Bootstrap draws for the intervals.
        seed: Seed of these draws.

    Returns:
        The axes.

    Raises:
        UndefinedScore: Fewer than two of the metrics were measured.

    >>> from matplotlib.figure import Figure
    >>> ax = Figure().subplots()
    >>> axes = gg.plot_pareto(results, "edge_pertinence", "edge_ec", ax=ax, draws=50)
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('edge pertinence (higher is better →)', 'edge EC, edits (fewer is better ↓)')
    """
    import matplotlib.pyplot as plt

    study = as_study(results)
    axes = ax if ax is not None else plt.subplots(figsize=(7, 4.5), layout="constrained")[1]
    table = _draw_panel(axes, study, available_pairs(study, [(first, second)])[0], draws, seed)
    if ax is None:
        axes.legend(
            handles=_legend_handles(study.explainers),
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            frameon=False,
            fontsize=8,
        )
    _compute_layout(axes.figure)
    _label_front(axes, table)
    return axes


def plot_fronts(
    results: Results | Study,
    title: str = "",
    pairs: Sequence[MetricPair] = METRIC_PAIRS,
    draws: int = 500,
    seed: int = 0,
) -> "Figure":
    """Draw one figure with the Pareto front of each pair of metrics.

    Args:
        results: The results of one task, or of one kind of task.
        title: Title of the figure; by default the kind of task.
        pairs: Pairs of metrics, the first to the right, the second upwards.
        draws: Bootstrap draws for the intervals.
        seed: Seed of these draws.

    Returns:
        The figure, with a panel for each pair of which both metrics were measured.

    Raises:
        UndefinedScore: No pair of metrics was measured.

    >>> import matplotlib.pyplot as plt
    >>> figure = gg.plot_fronts(results, pairs=[("edge_pertinence", "edge_ec")], draws=50)
    >>> figure.axes[0].get_xlabel()
    'edge pertinence (higher is better →)'
    >>> plt.close(figure)
    """
    import matplotlib.pyplot as plt

    study = as_study(results)
    wanted = available_pairs(study, pairs)
    rows = (len(wanted) + 1) // 2
    figure, panels = plt.subplots(
        rows,
        min(2, len(wanted)),
        figsize=(10, 0.8 + 3.9 * rows),
        squeeze=False,
        layout="constrained",
    )
    for axes in panels.ravel()[len(wanted) :]:
        axes.set_visible(False)
    entries = _legend_handles(study.explainers)
    figure.legend(
        handles=entries,
        loc="outside lower center",
        ncols=min(9, (len(entries) + 1) // 2),
        frameon=False,
        fontsize=9,
    )
    figure.suptitle(title or ", ".join(map(kind_title, study.kinds)))
    drawn = [
        (axes, _draw_panel(axes, study, pair, draws, seed))
        for axes, pair in zip(panels.ravel(), wanted, strict=False)
    ]
    _compute_layout(figure)
    figure.set_layout_engine("none")  # names are placed for this layout
    for axes, table in drawn:
        _label_front(axes, table)
    return figure


def _compute_layout(figure: Any) -> None:
    """Compute the layout; only then can names be placed."""
    figure.draw_without_rendering()


def _draw_panel(
    axes: "Axes", study: Study, pair: MetricPair, draws: int, seed: int
) -> "pd.DataFrame":
    """Draw everything but names and legend; return the front."""
    table = pareto_front(study, pair, draws, seed)[0]
    draw_front_line(axes, table, pair)
    _draw_points(axes, table, explainer_styles(study.explainers))
    _draw_axes(axes, pair)
    return table


def explainer_styles(labels: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return colour and marker of each explainer.

    The paper's methods always have the same ones; baselines are grey.
    """
    chosen = [*PAPER_EXPLAINERS, *(label for label in labels if label not in PAPER_EXPLAINERS)]
    numbered = {
        label: k
        for k, label in enumerate(label for label in chosen if label not in BASELINE_EXPLAINERS)
    }
    own = {
        label: (
            SERIES[k % len(SERIES)],
            _SERIES_MARKERS[k % len(_SERIES_MARKERS)],
        )
        for label, k in numbered.items()
    }
    return {**own, **dict.fromkeys(BASELINE_EXPLAINERS, (GREY, "x"))}


def _legend_handles(labels: Sequence[str]) -> "list[Line2D]":
    """Return the entries of the legend."""
    from matplotlib.lines import Line2D

    look, names = explainer_styles(labels), sort_as_in_paper(list(labels))
    return [
        Line2D(
            [],
            [],
            color=look[name][0],
            marker=look[name][1],
            label=explainer_title(name),
            linestyle="none",
            markersize=7,
        )
        for name in names
    ]


def _draw_points(axes: "Axes", table: "pd.DataFrame", look: dict[str, tuple[str, str]]) -> None:
    """Draw every explainer with its bars; those on the front are filled."""
    for row in table.itertuples(index=False):
        colour, marker = look[row.explainer]
        axes.errorbar(
            row.first_mean,
            row.second_mean,
            xerr=_error_bar_lengths(row.first_mean, row.first_low, row.first_high),
            yerr=_error_bar_lengths(row.second_mean, row.second_low, row.second_high),
            color=colour,
            marker=marker,
            markersize=8 if row.front else 7,
            markerfacecolor=colour if row.front else "none",
            ecolor=(colour, 0.45),
            elinewidth=0.9,
            linestyle="none",
            label=explainer_title(row.explainer),
            zorder=4 if row.front else 3,
        )


def _error_bar_lengths(mean: float, low: float, high: float) -> Floats:
    """Return the lengths of a bar to both sides; 0 without draws.  (2, 1)"""
    lengths = np.array([[mean - low], [high - mean]])
    return np.nan_to_num(lengths).clip(min=0)


def front_corners(table: "pd.DataFrame", pair: MetricPair) -> Floats:
    """Return the corners of the front's stepped line, from left to right.  (2, 2 n - 1)"""
    rows = table[table["front"]].sort_values("first_mean", ascending=higher_is_better(pair[0]))
    x, y = rows["first_mean"].to_numpy(), rows["second_mean"].to_numpy()
    if not len(rows):
        return np.zeros((2, 0))
    return np.stack([np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]])


def draw_front_line(axes: "Axes", table: "pd.DataFrame", pair: MetricPair, **style: Any) -> None:
    """Draw the front as a stepped line, from the best in the second metric to that in the first."""
    options = {"color": GREY, "linewidth": 1.2, "zorder": 1, **style}
    axes.plot(*front_corners(table, pair), **options)


def _draw_axes(axes: "Axes", pair: MetricPair) -> None:
    """Label the axes, and say which way is better."""
    axes.set_xlabel(axis_label(pair[0], "→", "←"))
    axes.set_ylabel(axis_label(pair[1], "↑", "↓"))
    vertical = MetricName.parse(pair[1])
    if vertical.family == "time":
        axes.set_yscale("log")
    axes.margins(0.1)
    if vertical.family == "ec":
        axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)


def axis_label(metric: str, more: str, less: str) -> str:
    """Return the name of a metric with the direction in which it is better.

    Args:
        metric: Name of the metric, such as "edge_ec".
        more: Arrow that points to larger values on this axis: "→" or "↑".
        less: Arrow that points to smaller values on this axis: "←" or "↓".

    >>> axis_label("edge_ec", "↑", "↓"), axis_label("time", "↑", "↓")
    ('edge EC, edits (fewer is better ↓)', 'seconds (less is better ↓)')
    >>> axis_label("edge_pertinence", "→", "←")
    'edge pertinence (higher is better →)'
    """
    parsed = MetricName.parse(metric)
    form = parsed.without_side
    name = f"{parsed.side} {_AXIS_WORDS.get(form, form.replace('_', ' '))}".strip()
    if higher_is_better(metric):
        return f"{name} (higher is better {more})"
    return f"{name} ({'fewer' if parsed.family == 'ec' else 'less'} is better {less})"


def _label_front(axes: "Axes", table: "pd.DataFrame") -> None:
    """Write the names of those on the front, where no other name or marker stands.

    Markers on one spot share a label.
    """
    places = {
        row.explainer: axes.transData.transform((row.first_mean, row.second_mean)).tolist()
        for row in table.itertuples(index=False)
    }
    written: list[Bbox] = []
    for names in _group_overlapping(
        {name: places[name] for name in table[table["front"]]["explainer"]}
    ):
        text = _wrap_names(
            map(explainer_title, names), letters_that_fit(axes, _NAME_FONT_SIZE, _NAME_WIDTH_SHARE)
        )
        own, *others = (
            _marker_box(places[name]) for name in sorted(places, key=lambda name: name != names[0])
        )
        row = table[table["explainer"] == names[0]].iloc[0]
        written.append(
            _place_name(axes, text, (row["first_mean"], row["second_mean"]), own, others, written)
        )


def _wrap_names(names: Iterable[str], width: int) -> str:
    r"""Wrap names into a few lines; the rest becomes "…".

    >>> _wrap_names(["Saliency", "IntGrad", "LRP"], 20)
    'Saliency, IntGrad,\nLRP'
    """
    return textwrap.fill(
        ", ".join(names), width, max_lines=_MAX_NAME_LINES, placeholder=" …", break_on_hyphens=False
    )


def _marker_box(place: Sequence[float], size: float = 5.0) -> "Bbox":
    """Return the box of a marker."""
    from matplotlib.transforms import Bbox

    return Bbox([[place[0] - size, place[1] - size], [place[0] + size, place[1] + size]])


def _group_overlapping(places: Mapping[str, Sequence[float]]) -> list[list[str]]:
    """Group names whose markers lie on one spot.

    >>> _group_overlapping({"a": (0, 0), "b": (50, 0), "c": (1, 1)})
    [['a', 'c'], ['b']]
    """
    groups: list[list[str]] = []
    for name, place in places.items():
        groups_near = (
            group
            for group in groups
            if np.hypot(*np.subtract(places[group[0]], place)) <= _SAME_SPOT_PIXELS
        )
        group = next(groups_near, None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return groups


def _place_name(
    axes: "Axes",
    text: str,
    point: tuple[float, float],
    own: "Bbox",
    others: "list[Bbox]",
    written: "list[Bbox]",
) -> "Bbox":
    """Write one name at the best offset; return its box.

    ``own`` and ``others`` are boxes of markers, ``written`` those of names.
    """
    note = axes.annotate(
        text,
        point,
        xytext=_NAME_OFFSETS[0],
        textcoords="offset points",
        fontsize=_NAME_FONT_SIZE,
        zorder=6,
        bbox=_NAME_BOX,
    )
    boxes = {offset: _move_name(note, offset) for offset in _NAME_OFFSETS}
    panel, whole = axes.get_window_extent(), axes.figure.bbox

    def cost(offset: tuple[int, int]) -> int:
        """Leaving the figure is worst; then leaving the panel, a wrong marker, overlap."""
        box = boxes[offset]
        is_astray = abs(offset[1]) <= _LEADER_DISTANCE and any(
            _box_distance(box, other) < _box_distance(box, own) for other in others
        )
        covered = sum(map(box.overlaps, [own, *others, *written]))
        return (
            100 * _extends_beyond(whole, box)
            + 3 * _extends_beyond(panel, box)
            + 2 * is_astray
            + covered
        )

    chosen = min(_NAME_OFFSETS, key=cost)
    _move_name(note, chosen)
    if abs(chosen[1]) > _LEADER_DISTANCE:
        axes.annotate(
            "", point, xytext=chosen, textcoords="offset points", arrowprops=_LEADER_LINE, zorder=2
        )
    return boxes[chosen]


def _move_name(note: "Annotation", offset: tuple[int, int]) -> "Bbox":
    """Move a name, and return its box; several lines below a marker hang down from there."""
    note.set_horizontalalignment("left" if offset[0] > 0 else "right")
    note.set_verticalalignment("top" if offset[1] < 0 and "\n" in note.get_text() else "baseline")
    note.xyann = offset
    return note.get_window_extent()


def _box_distance(first: "Bbox", second: "Bbox") -> float:
    """Return the pixels between two boxes; 0 if they meet."""
    across = max(first.x0 - second.x1, second.x0 - first.x1, 0.0)
    return float(np.hypot(across, max(first.y0 - second.y1, second.y0 - first.y1, 0.0)))


def _extends_beyond(panel: "BboxBase", box: "Bbox") -> bool:
    """Whether a box reaches beyond the panel."""
    return bool(box.x0 < panel.x0 or box.x1 > panel.x1 or box.y0 < panel.y0 or box.y1 > panel.y1)
