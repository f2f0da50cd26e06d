"""Scores of features or edges as bars, the strongest on top.

Features are the entries that the metrics rank: those of the target (of each end of a link), and
those of all other nodes, pooled. A feature group of the names is one bar, and its scores add up.
The caption counts what is not drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphgauge.core import BadSetting, Xplanation
from graphgauge.narrative import (
    Names,
    NamesLike,
    fold_feature_groups,
    has_signed_scores,
    ranked_feature_rows,
)
from graphgauge.plots import colours
from graphgauge.plots.subgraph_plot import read_picture_names
from graphgauge.plots.text_labels import (
    PLAIN_TEXT,
    check_drawable,
    count_noun,
    cut_text,
    explanation_title,
    node_label,
    share_text,
    write_caption,
    write_title,
)
from graphgauge.plots.top_edges import GraphSource, find_edge_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Bar = tuple[str, float]  #: label and score


@dataclass(frozen=True)
class BarsData:
    """What a bar plot shows, as plain data."""

    title: str
    drawn: Sequence[Bar]  #: the strongest first
    caption: str
    signed: bool


_OWNER_WORDS = {
    "target": "",
    "first": "of the first",
    "second": "of the second",
    "neighbours": "of neighbours",
    "nodes": "",
}


def plot_feature_bars(
    x: Xplanation,
    names: NamesLike = None,
    top: int = 15,
    ax: "Axes | None" = None,
    *,
    data: GraphSource = None,
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

    Returns:
        The axes.

    Raises:
        BadSetting: ``top`` is not a positive whole number, or a name does not fit.
        UndefinedScore: A score is NaN or infinite.

    >>> from matplotlib.figure import Figure
    >>> x = gg.InputXGradient().explain(model, [302])[0]
    >>> axes = gg.plot_feature_bars(x, top=2, ax=Figure().subplots(), data=model)
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['feature 302', 'feature 303 of neighbours']
    """
    return draw_bars(
        _feature_bars_data(x, read_picture_names(x, data, names), top, pooling, signed), ax
    )


def plot_edge_bars(
    x: Xplanation,
    data: GraphSource = None,
    names: NamesLike = None,
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
        names: What things are called: `Names`, or a dictionary of its fields.
        top: How many bars are drawn; the caption counts the rest.
        ax: Axes to draw into; new ones by default.
        signed: Whether scores carry a direction; by default what the explainer says.

    Returns:
        The axes.

    Raises:
        BadSetting: ``top`` is not a positive whole number, or a name does not fit.
        UndefinedScore: A score is NaN or infinite.

    >>> from matplotlib.figure import Figure
    >>> x = gg.InputXGradient().explain(model, [302])[0]
    >>> axes = gg.plot_edge_bars(x, model, top=2, ax=Figure().subplots())
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['303 → 302', '301 → 302']
    """
    own_names = read_picture_names(x, data, names)
    return draw_bars(
        select_top_bars(x, own_names, _edge_bars(x, own_names, data), "edge", top, signed), ax
    )


def _feature_bars_data(
    x: Xplanation, names: Names, top: int, pooling: str = "max", signed: bool | None = None
) -> BarsData:
    """Return what a bar plot of the feature scores shows."""
    return select_top_bars(x, names, feature_bars(x, names, pooling), "feature", top, signed)


def feature_bars(x: Xplanation, names: Names, pooling: str) -> list[Bar]:
    """Return a bar for each feature of each row that the metrics rank.

    Args:
        x: The explanation; it must have feature scores.
        names: What features are called. A feature group is one bar.
        pooling: How the scores of all nodes but the target become one row: "max", "sum", "mean" or
            "abs_max".

    Raises:
        UndefinedScore: A score is NaN or infinite.
    """
    check_drawable(x, "feature")
    single, columns = fold_feature_groups(x, names)
    rows, owners = ranked_feature_rows(single, pooling)
    words = [cut_text(column.name) or f"feature {column.index}" for column in columns]
    return [
        (f"{word} {_OWNER_WORDS[owner]}".strip(), score)
        for owner, row in zip(owners, rows.double().tolist(), strict=True)
        for word, score in zip(words, row, strict=True)
    ]


def _edge_bars(x: Xplanation, names: Names, data: GraphSource) -> list[Bar]:
    """Return a bar for each edge."""
    check_drawable(x, "edge")
    scores = x.need("edge_score").double().tolist()
    if data is None:
        return [
            (f"edge {edge}", score) for edge, score in zip(x.edges.tolist(), scores, strict=True)
        ]
    ends = find_edge_ends(x, data).t().tolist()
    return [
        (f"{node_label(u, names)} → {node_label(v, names)}", score)
        for (u, v), score in zip(ends, scores, strict=True)
    ]


def select_top_bars(
    x: Xplanation,
    names: Names,
    bars: Sequence[Bar],
    noun: str,
    top: int,
    signed: bool | None = None,
) -> BarsData:
    """Return the ``top`` strongest bars, and a caption that counts the rest.

    Args:
        x: The explanation, for the title and the direction of its scores.
        names: What things are called, for the title.
        bars: All bars, in any order. Bars of score 0 are never drawn.
        noun: What a bar stands for, in the caption: "feature" or "edge".
        top: How many bars are drawn.
        signed: Whether scores carry a direction; by default what the explainer says.

    Raises:
        BadSetting: ``top`` is not a positive whole number.
    """
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise BadSetting(f"top must be a whole number, 1 or more, but {top!r} was given.")
    drawn = sorted((bar for bar in bars if bar[1]), key=lambda bar: -abs(bar[1]))[:top]
    has_sign = has_signed_scores(x) if signed is None else signed
    return BarsData(
        explanation_title(x, names), drawn, _bars_caption(drawn, bars, noun, has_sign), has_sign
    )


def draw_bars(bars: BarsData, ax: "Axes | None" = None) -> "Axes":
    """Draw bars, the strongest on top."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    drawn = bars.drawn
    axes = (
        ax
        if ax is not None
        else plt.subplots(figsize=(7, bars_figure_height(len(drawn))), layout="constrained")[1]
    )
    strongest = max((abs(score) for _, score in drawn), default=0.0)
    tints = [colours.score_colour(score, strongest, bars.signed) for _, score in drawn]
    axes.barh(range(len(drawn)), [score for _, score in drawn], color=tints, height=0.7)
    axes.set_yticks(range(len(drawn)), [label for label, _ in drawn], fontsize=9, **PLAIN_TEXT)
    axes.invert_yaxis()
    axes.xaxis.set_major_locator(MaxNLocator(5))
    # no common factor, which would stand in the caption
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
    axes.axvline(0, color=colours.OUTLINE, linewidth=0.8)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    write_title(axes, bars.title, share=0.7)
    write_caption(axes, bars.caption, share=0.7)
    return axes


def bars_figure_height(num_bars: int) -> float:
    """Return a figure's height in inches, so that bars have the same height everywhere."""
    return 1.2 + 0.26 * max(num_bars, 1)


def _bars_caption(drawn: Sequence[Bar], bars: Sequence[Bar], noun: str, signed: bool) -> str:
    """Say what the axis shows, and what is left out.

    >>> _bars_caption([("a", 3.0)], [("a", 3.0), ("b", -1.0), ("c", 0.0)], "feature", True)
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
    rest = share_text(1 - part / total)
    return f"{meaning}, and {count_noun(left, 'further score')} with {rest} of the sum"
