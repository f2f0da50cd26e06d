"""The deletion curve of an explanation, drawn into the band of random orders."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphgauge.core import Target, UndefinedScore
from graphgauge.evaluation import ScoreTrace, TracedCase
from graphgauge.plots.colours import CHANGE, EXPLAINED, RANDOM
from graphgauge.plots.text_labels import MAX_NAME_IN_TITLE, PLAIN_TEXT, cut_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class CurveData:
    """What a plot of a deletion curve shows, as plain data."""

    explainer: str
    target: Target
    side: str
    reference: Target | None
    start: float
    curve: Sequence[float]  #: K outputs, after 1..K edits
    #: low, median and high of the random orders, K each; None where none was followed
    band: Sequence[Sequence[float | None]]
    ec: int
    flipped: bool
    score: float


def plot_deletion_curve(
    story: ScoreTrace, reference: Target | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw a deletion curve into the band of random orders.

    The line is the output after each edit in the order of the explanation. The band holds 80 % of
    the random orders, the dashed line is their median, and the vertical line marks the EC, where
    the prediction changes.

    Args:
        story: The curves behind one score, from ``results.explain(row)``.
        reference: Against which reference to draw; by default the one with the lowest EC.
        ax: Axes to draw into; new ones by default.

    Returns:
        The axes.

    Raises:
        UndefinedScore: There is no curve against this reference.

    >>> from matplotlib.figure import Figure
    >>> row = next(row for row in results.rows if row.metric == "edge_pertinence")
    >>> axes = gg.plot_deletion_curve(results.explain(row), ax=Figure().subplots())
    >>> axes.get_xlabel()
    'edges removed'
    """
    return draw_deletion_curve(build_curve_data(story, reference), ax)


def build_curve_data(story: ScoreTrace, reference: Target | None = None) -> CurveData:
    """Return what is drawn of the curves behind one score."""
    case = _find_case(story, reference)
    band = [
        [height if math.isfinite(height) else None for height in line]
        for line in case.band().tolist()
    ]
    return CurveData(
        story.explainer,
        story.target,
        story.side,
        case.reference,
        case.start,
        case.curve.tolist(),
        band,
        case.ec,
        case.flipped,
        case.score,
    )


def draw_deletion_curve(case: CurveData, ax: "Axes | None" = None) -> "Axes":
    """Draw a curve into the band of random orders."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    axes = ax if ax is not None else plt.subplots(figsize=(6, 3.6), layout="constrained")[1]
    steps = range(len(case.curve) + 1)
    low, middle, high = (
        [case.start, *(math.nan if height is None else height for height in line)]
        for line in case.band
    )
    axes.fill_between(
        steps, low, high, color=RANDOM, alpha=0.3, linewidth=0, label="random orders, 80 %"
    )
    axes.plot(steps, middle, color=RANDOM, linestyle="--", label="random orders, median")
    name = cut_text(case.explainer, MAX_NAME_IN_TITLE)
    axes.plot(
        steps, [case.start, *case.curve], color=EXPLAINED, marker="o", markersize=3, label=name
    )
    word = "prediction changes" if case.flipped else "no change up to here"
    axes.axvline(case.ec, color=CHANGE, linewidth=1, label=f"{word}: {case.ec}")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    # no common factor, which would stand in the legend
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.8g}")
    axes.set_xlabel("edges removed" if case.side == "edge" else "features substituted")
    axes.set_ylabel("output")
    against = "" if case.reference is None else f", reference {case.reference}"
    axes.set_title(f"target {case.target}{against}: pertinence {case.score:.2f}")
    for text in axes.legend(frameon=False).get_texts():
        text.set(**PLAIN_TEXT)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _find_case(story: ScoreTrace, reference: Target | None) -> TracedCase:
    """Return the case of a reference, or the one with the lowest EC."""
    cases = [case for case in story.cases if reference is None or case.reference == reference]
    if not cases:
        known = ", ".join(str(case.reference) for case in story.cases)
        raise UndefinedScore(
            f"there is no curve against reference {reference!r}; there are {known or 'none'}."
        )
    return min(cases, key=lambda case: (not case.flipped, case.ec))
