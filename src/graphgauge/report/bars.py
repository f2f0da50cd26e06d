"""Scores of features or edges as bars, the strongest on top.

Features are the entries that the metrics rank: those of the target (of each end of a link), and
those of all other nodes, pooled. A feature group of the names is one bar, and its scores add up.
The caption counts what is not drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphgauge.core.errors import BadSetting
from graphgauge.core.xplanation import Xplanation
from graphgauge.narrative import Names
from graphgauge.narrative.facts import is_signed
from graphgauge.narrative.ranking import entries, folded
from graphgauge.report import colours
from graphgauge.report.arrows import ends_of_edges
from graphgauge.report.labels import (
    PLAIN,
    check_drawable,
    counted,
    cut,
    node_label,
    percent,
    title_of,
    write_caption,
    write_title,
)
from graphgauge.report.subgraph import picture_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Bar = tuple[str, float]  #: label and score


@dataclass(frozen=True)
class Bars:
    """What a bar plot shows, as plain data."""

    title: str
    drawn: Sequence[Bar]  #: the strongest first
    caption: str
    signed: bool


OWNERS = {
    "target": "",
    "first": "of the first",
    "second": "of the second",
    "neighbours": "of neighbours",
    "nodes": "",
}


def plot_feature_bars(
    x: Xplanation,
    names: Names | Mapping[str, Any] | None = None,
    top: int = 15,
    ax: "Axes | None" = None,
    *,
    data: Any = None,
    pooling: str = "max",
    signed: bool | None = None,
) -> "Axes":
    """Draw the strongest feature scores of an explanation as bars.

    Args:
        x: The explanation.
        names: What things are called: `Names`, or a dictionary of its fields.
        top: How many bars are drawn; the caption counts the rest.
        ax: Axes to draw into; new ones by default.
        data: The wrapped model or the graph, for names that are not given.
        pooling: How the scores of all nodes but the target become one: "max", "sum", "mean" or
            "abs_max".
        signed: Whether scores carry a direction; by default what the explainer says.

    Raises:
        BadSetting: ``top`` is not a positive whole number, or a name does not fit.
        UndefinedScore: A score is NaN or infinite.
    """
    return draw_bars(shown_features(x, picture_names(x, data, names), top, pooling, signed), ax)


def plot_edge_bars(
    x: Xplanation,
    data: Any = None,
    names: Names | Mapping[str, Any] | None = None,
    top: int = 15,
    ax: "Axes | None" = None,
    *,
    signed: bool | None = None,
) -> "Axes":
    """Draw the strongest edge scores of an explanation as bars.

    Args:
        x: The explanation.
        data: The wrapped model or the graph. It knows the ends of the edges; without it, bars show
            the ids of the edges.
        names: What things are own_names: `Names`, or a dictionary of its fields.
        top: How many bars are drawn; the caption counts the rest.
        ax: Axes to draw into; new ones by default.
        signed: Whether scores carry a direction; by default what the explainer says.

    Raises:
        BadSetting: ``top`` is not a positive whole number, or a name does not fit.
        UndefinedScore: A score is NaN or infinite.
    """
    own_names = picture_names(x, data, names)
    return draw_bars(
        shown_bars(x, own_names, edge_bars(x, own_names, data), "edge", top, signed), ax
    )


def shown_features(
    x: Xplanation, names: Names, top: int, pooling: str = "max", signed: bool | None = None
) -> Bars:
    """Return what a bar plot of the feature scores shows."""
    return shown_bars(x, names, feature_bars(x, names, pooling), "feature", top, signed)


def feature_bars(x: Xplanation, names: Names, pooling: str) -> list[Bar]:
    """Return a bar for each feature of each row that the metrics rank."""
    check_drawable(x, "feature")
    single, columns = folded(x, names)
    rows, owners = entries(single, pooling)
    words = [cut(column.name) or f"feature {column.index}" for column in columns]
    return [
        (f"{word} {OWNERS[owner]}".strip(), score)
        for owner, row in zip(owners, rows.double().tolist(), strict=True)
        for word, score in zip(words, row, strict=True)
    ]


def edge_bars(x: Xplanation, names: Names, data: Any) -> list[Bar]:
    """Return a bar for each edge."""
    check_drawable(x, "edge")
    scores = x.need("edge_score").double().tolist()
    if data is None:
        return [
            (f"edge {edge}", score) for edge, score in zip(x.edges.tolist(), scores, strict=True)
        ]
    ends = ends_of_edges(x, data).t().tolist()
    return [
        (f"{node_label(u, names)} → {node_label(v, names)}", score)
        for (u, v), score in zip(ends, scores, strict=True)
    ]


def shown_bars(
    x: Xplanation,
    names: Names,
    bars: Sequence[Bar],
    noun: str,
    top: int,
    signed: bool | None = None,
) -> Bars:
    """Return the ``top`` strongest bars, and a caption that counts the rest."""
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise BadSetting(f"top must be a whole number, 1 or more, but {top!r} was given.")
    drawn = sorted((bar for bar in bars if bar[1]), key=lambda bar: -abs(bar[1]))[:top]
    has_sign = is_signed(x) if signed is None else signed
    return Bars(title_of(x, names), drawn, bars_caption(drawn, bars, noun, has_sign), has_sign)


def draw_bars(bars: Bars, ax: "Axes | None" = None) -> "Axes":
    """Draw bars, the strongest on top."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    drawn = bars.drawn
    axes = (
        ax
        if ax is not None
        else plt.subplots(figsize=(7, figure_height(len(drawn))), layout="constrained")[1]
    )
    strongest = max((abs(score) for _, score in drawn), default=0.0)
    tints = [colours.score_colour(score, strongest, bars.signed) for _, score in drawn]
    axes.barh(range(len(drawn)), [score for _, score in drawn], color=tints, height=0.7)
    axes.set_yticks(range(len(drawn)), [label for label, _ in drawn], fontsize=9, **PLAIN)
    axes.invert_yaxis()
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(
        lambda value, _: f"{value:.3g}"
    )  # no common factor, which would stand in the caption
    axes.axvline(0, color=colours.OUTLINE, linewidth=0.8)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    write_title(axes, bars.title, share=0.7)
    write_caption(axes, bars.caption, share=0.7)
    return axes


def figure_height(num_bars: int) -> float:
    """Return a figure's height in inches, so that bars have the same height everywhere."""
    return 1.2 + 0.26 * max(num_bars, 1)


def bars_caption(drawn: Sequence[Bar], bars: Sequence[Bar], noun: str, signed: bool) -> str:
    """Say what the axis shows, and what is left out.

    >>> bars_caption([("a", 3.0)], [("a", 3.0), ("b", -1.0), ("c", 0.0)], "feature", True)
    'feature score (above 0: raises the output), and 2 further scores with 25 % of the sum'
    """
    total, part = (sum(abs(score) for _, score in some) for some in (bars, drawn))
    left = len(bars) - len(drawn)
    meaning = f"{noun} score" + (" (above 0: raises the output)" if signed else "")
    if not total:
        return (
            f"{meaning}: none of {len(bars):,} is other than 0"
            if bars
            else f"{meaning}: there is none"
        )
    if not left:
        return meaning
    rest = percent(1 - part / total)
    return f"{meaning}, and {counted(left, 'further score')} with {rest} of the sum"
