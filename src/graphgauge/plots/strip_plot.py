"""Strip plots: a row for each explainer, a thin mark for each value, a dot for the mean.

For stability the values are similarities of repeated explanations, between 0 (opposite) and 1
(equal). A mean hides whether all repetitions are a little similar, or some are equal and some are
not; a strip shows it. Chance does not give 0: a diamond marks the similarity of permuted scores, if
it is known.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphgauge.core import UndefinedScore
from graphgauge.plots import colours
from graphgauge.plots.text_labels import PLAIN_TEXT, cut_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_stability_strips(
    likeness: Mapping[str, Sequence[float]],
    chance: Mapping[str, float] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw how similar the repetitions of each explainer are.

    Args:
        likeness: Values between 0 and 1 by explainer, of pairs of repetitions or of targets:
            {"saliency": [1.0, 1.0], "gnn_explainer": [0.93, 0.95, 0.9]}.
        chance: What permuted scores reach, by explainer; a diamond marks it.
        ax: Axes to draw into; new ones by default.

    Returns:
        The axes.

    Raises:
        UndefinedScore: An explainer has no values, or one outside 0 to 1.

    >>> from matplotlib.figure import Figure
    >>> likeness = {"saliency": [1.0, 1.0], "gnn_explainer": [0.93, 0.95, 0.9]}
    >>> axes = gg.plot_stability_strips(likeness, {"gnn_explainer": 0.6}, Figure().subplots())
    >>> axes.get_xlabel()
    'likeness of repetitions (dot: mean, diamond: by chance)'
    """
    import matplotlib.pyplot as plt

    axes = (
        ax
        if ax is not None
        else plt.subplots(figsize=(6, 1.1 + 0.4 * len(likeness)), layout="constrained")[1]
    )
    draw_strips(axes, likeness, (0.0, 1.0))
    for row, name in enumerate(likeness):
        if chance is not None and name in chance:
            axes.plot(
                [chance[name]],
                [row],
                marker="D",
                markersize=5,
                color=colours.CHANGE,
                linestyle="",
                zorder=4,
            )
    axes.set_xlabel(
        "likeness of repetitions (dot: mean" + (", diamond: by chance)" if chance else ")"),
        fontsize=9,
    )
    return axes


def draw_strips(
    axes: "Axes", values: Mapping[str, Sequence[float]], bounds: tuple[float, float] | None = None
) -> None:
    """Draw a row for each name, the first on top.

    Args:
        axes: Axes to draw into.
        values: The values of each row by its name; a row has at least one.
        bounds: The lowest and the highest value that is possible; the axis shows just this range.
            By default any finite value is possible, and the axis fits the values.

    Raises:
        UndefinedScore: A row has no values, or one that is not finite or not within the bounds.
    """
    for row, (name, numbers) in enumerate(values.items()):
        _check_strip_values(name, numbers, bounds)
        axes.plot(
            list(numbers),
            [row] * len(numbers),
            marker="|",
            markersize=11,
            linestyle="",
            color=colours.EXPLAINED,
            alpha=0.45,
        )
        mean = math.fsum(numbers) / len(numbers)
        axes.plot(
            [mean], [row], marker="o", markersize=5, color=colours.INK, linestyle="", zorder=3
        )
    axes.set_yticks(
        range(len(values)), [cut_text(name) for name in values], fontsize=9, **PLAIN_TEXT
    )
    axes.set_ylim(len(values) - 0.5, -0.5)
    if bounds is not None:
        margin = 0.03 * (bounds[1] - bounds[0])
        axes.set_xlim(bounds[0] - margin, bounds[1] + margin)
    axes.grid(axis="x", color=colours.NODE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _check_strip_values(
    name: str, values: Sequence[float], bounds: tuple[float, float] | None
) -> None:
    """Raise if a row is empty, or if a value is outside the bounds."""
    if len(values) == 0:
        raise UndefinedScore(
            f"a strip of {name!r} was asked for, but it has no values. Leave it out."
        )
    low, high = bounds if bounds is not None else (-math.inf, math.inf)
    wrong = [
        value
        for value in values
        if not math.isfinite(value) or not low - 1e-6 <= value <= high + 1e-6
    ]
    if wrong:
        raise UndefinedScore(
            f"the strip of {name!r} holds {wrong[0]}, but values must be numbers between {low:g} "
            f"and {high:g}."
        )
