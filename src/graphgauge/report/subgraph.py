"""An explanation as a picture of its edges: the target in the middle, rings by hops, width and
colour by score.

Only the ``top`` strongest edges are drawn; a caption counts the rest. Blue raises the output,
vermilion lowers it; scores of explainers without a direction are green. The area of a node grows
with the sum of its absolute feature scores. Groups of nodes (``names.groups``) are one node, and
the scores of their edges add up.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphgauge.core.xplanation import Xplanation
from graphgauge.models import BaseModel
from graphgauge.narrative import Names
from graphgauge.report import colours
from graphgauge.report.arrows import Arrow, ends_of_edges
from graphgauge.report.labels import PLAIN, write_caption, write_title
from graphgauge.report.layout import Disc, Point, label_places
from graphgauge.report.sketch import Sketch, sketch_of
from graphgauge.report.ways import Node

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THINNEST, WIDEST = 0.8, 4.5  #: lines, in points
SMALLEST, LARGEST = 9.0, 16.0  #: radii of nodes, in points
FONT = 8.0
LETTER = 0.56  #: width of a letter, as a share of the font size
SHORT = 4  #: labels of so many letters stand inside their node


def draw_explanation(
    x: Xplanation,
    data: Any = None,
    names: Names | Mapping[str, Any] | None = None,
    top: int = 20,
    ax: "Axes | None" = None,
    *,
    signed: bool | None = None,
) -> "Axes":
    """Draw the ``top`` strongest edges of ``x``.

    ``data``    knows the ends of the edges: the wrapped model, the graph that was explained, or the list of graphs
    ``names``   what things are called: `Names`, or a dictionary of its fields; what is missing is taken from the data
    ``signed``  whether scores carry a direction; default: what the explainer says, no for one that is not known
    """
    return draw_sketch(
        sketch_of(x, ends_of_edges(x, data), picture_names(x, data, names), top, signed), ax
    )


def draw_sketch(sketch: Sketch, ax: "Axes | None" = None) -> "Axes":
    """Draw what a sketch says."""
    picture = Picture(ax if ax is not None else empty_axes(), sketch)
    picture.write_frame()
    picture.draw()
    return picture.axes


def picture_names(x: Xplanation, data: Any, names: Any) -> Names:
    """The user's names, then those of the wrapped model and of its data; refuses ids that the graph
    does not have.
    """
    own = Names.read(names)
    source = data
    if isinstance(data, BaseModel):
        own, source = own.filled(Names(features=data.feature_names)), data.data
    called = own.filled(Names.of(source)) if x.level != "graph" else own
    check_names(x, called)
    return called


def check_names(x: Xplanation, names: Names) -> None:
    """Refuse names of nodes and features that the graph does not have."""
    width = (
        {}
        if x.feature_score is None
        else dict.fromkeys(("features", "feature_groups"), x.feature_score.size(1))
    )
    names.check_fits({"nodes": x.num_nodes, "groups": x.num_nodes, **width})


def empty_axes() -> "Axes":
    """Axes of a new figure."""
    import matplotlib.pyplot as plt

    axes: Axes = plt.subplots(figsize=(8, 6), layout="constrained")[1]
    return axes


@dataclass(frozen=True)
class Picture:
    """What is drawn where."""

    axes: "Axes"
    sketch: Sketch

    @property
    def drawn(self) -> tuple[Arrow, ...]:
        """The arrows, the strongest first."""
        return self.sketch.shown.drawn

    def write_frame(self) -> None:
        """Title, caption and legend; no axes."""
        self.axes.set_xticks([])
        self.axes.set_yticks([])
        self.axes.spines[:].set_visible(False)
        write_title(self.axes, self.sketch.title, pad=26)
        write_caption(self.axes, self.sketch.shown.caption(), self.reading())
        self.write_legend()

    def reading(self) -> str:
        """How to read the picture."""
        parts = ["Width and depth of colour: strength of an edge."] if self.drawn else []
        parts += ["Size of a node: its feature scores."] if self.sketch.has_features else []
        parts += ["Rings: hops."] if self.sketch.level == "node" else []
        return " ".join(parts)

    def write_legend(self) -> None:
        """What the colours mean, between title and picture."""
        from matplotlib.lines import Line2D

        words = {True: "raises the output", False: "lowers the output"}
        wanted = (
            dict.fromkeys(sorted((arrow.score > 0 for arrow in self.drawn), reverse=True))
            if self.sketch.signed
            else {}
        )
        lines = [(words[up], colours.hue_of(1 if up else -1, True)) for up in wanted]
        if self.drawn and not self.sketch.signed:
            lines = [("importance, without a direction", colours.UNSIGNED)]
        handles = [Line2D([], [], color=colour, linewidth=3, label=word) for word, colour in lines]
        if handles:
            self.axes.legend(
                handles=handles,
                loc="lower center",
                bbox_to_anchor=(0.5, 1.0),
                ncols=2,
                frameon=False,
                fontsize=9,
            )

    def draw(self) -> None:
        """Nodes, arrows and labels."""
        width, height = self.fit_axes()
        half, middle = half_axes((width, height), self.has_long_labels()), (width / 2, height / 2)
        discs = self.discs(half, middle)
        self.draw_rings(half, middle)
        both = {(arrow.source, arrow.destination) for arrow in self.drawn}
        for arrow in reversed(self.drawn):
            self.draw_arrow(arrow, discs, is_bent=(arrow.destination, arrow.source) in both)
        self.draw_nodes(discs)
        self.write_labels(discs, (0, 0, width, height))

    def fit_axes(self) -> Point:
        """Let one unit of the axes be one point of the page, as the figure is laid out now."""
        figure: Any = self.axes.figure
        figure.draw_without_rendering()
        box = self.axes.get_window_extent()
        dpi = figure.dpi
        width, height = box.width * 72 / dpi, box.height * 72 / dpi
        self.axes.set(xlim=(0, width), ylim=(0, height))
        return width, height

    def discs(self, half: Point, middle: Point) -> dict[Node, Disc]:
        """Nodes in points."""
        spots = self.sketch.spots
        largest = max((spot.strength for spot in spots), default=0.0)
        scale = min(1.0, max(0.65, min(middle) / 150))  # smaller in a small picture
        return {
            spot.node: Disc(
                middle[0] + half[0] * spot.x,
                middle[1] + half[1] * spot.y,
                scale * radius_of(spot.strength, largest),
            )
            for spot in spots
        }

    def has_long_labels(self) -> bool:
        """Whether some label stands beside its node."""
        return any(len(spot.label) > SHORT for spot in self.sketch.spots)

    def draw_rings(self, half: Point, middle: Point) -> None:
        """Thin ellipses, one for each number of hops."""
        from matplotlib.patches import Ellipse

        for share in self.sketch.rings[1:] if self.sketch.level == "node" else ():
            size = 2 * half[0] * share, 2 * half[1] * share
            self.axes.add_patch(
                Ellipse(middle, *size, fill=False, color=colours.NODE, linewidth=0.8, zorder=0)
            )

    def draw_arrow(self, arrow: Arrow, discs: Mapping[Node, Disc], is_bent: bool) -> None:
        """One arrow: bent where there is one the other way, a loop where both ends are one node."""
        from matplotlib.patches import FancyArrowPatch

        a, b = discs[arrow.source], discs[arrow.destination]
        width = line_width(arrow.score, self.sketch.shown.strongest)
        is_loop = arrow.source == arrow.destination
        side = 0.7 * a.radius  # a loop leaves and enters at the upper border
        ends = (
            ((a.x - side, a.y + side), (a.x + side, a.y + side))
            if is_loop
            else ((a.x, a.y), (b.x, b.y))
        )
        bend = -1.8 if is_loop else (0.14 if is_bent else 0.0)
        self.axes.add_patch(
            FancyArrowPatch(
                *ends,
                arrowstyle="-|>",
                connectionstyle=f"arc3,rad={bend}",
                mutation_scale=7 + 2.2 * width,
                linewidth=width,
                color=colours.score_colour(
                    arrow.score, self.sketch.shown.strongest, self.sketch.signed
                ),
                shrinkA=1 if is_loop else a.radius + 1,
                shrinkB=1 if is_loop else b.radius + 1.5,
                zorder=2,
            )
        )

    def draw_nodes(self, discs: Mapping[Node, Disc]) -> None:
        """Discs: the target yellow with a thick outline, groups blue, all others grey."""
        if self.sketch.level == "link" and len(discs) > 1:
            first, second = (discs[node] for node in self.sketch.targets)
            self.axes.plot(
                [first.x, second.x],
                [first.y, second.y],
                color=colours.OUTLINE,
                linestyle=":",
                zorder=1,
            )
        is_target = [node in self.sketch.targets for node in discs]
        self.axes.scatter(
            [disc.x for disc in discs.values()],
            [disc.y for disc in discs.values()],
            s=[(2 * disc.radius) ** 2 for disc in discs.values()],
            c=[node_colour(node, own) for node, own in zip(discs, is_target, strict=True)],
            edgecolors=colours.OUTLINE,
            linewidths=[2.0 if own else 0.8 for own in is_target],
            zorder=3,
        )

    def write_labels(
        self, discs: Mapping[Node, Disc], room: tuple[float, float, float, float]
    ) -> None:
        """Short labels inside their nodes, long ones beside them."""
        labels = {spot.node: spot.label for spot in self.sketch.spots}
        sizes = {
            node: (FONT * LETTER * len(text) + 4, FONT + 4)
            for node, text in labels.items()
            if len(text) > SHORT
        }
        lines = [(discs[arrow.source], discs[arrow.destination]) for arrow in self.drawn]
        lines += (
            [(discs[self.sketch.targets[0]], discs[self.sketch.targets[1]])]
            if self.sketch.level == "link"
            else []
        )
        outside = label_places(sizes, discs, lines, room)
        for node, text in labels.items():
            x, y = outside.get(node, (discs[node].x, discs[node].y))
            back = (
                {"boxstyle": "round,pad=0.1", "facecolor": "white", "alpha": 0.75, "linewidth": 0}
                if node in outside
                else None
            )
            style: dict[str, Any] = {
                "fontsize": FONT if node in outside else FONT - 1,
                "color": colours.INK,
                "zorder": 5,
            }
            self.axes.text(x, y, text, ha="center", va="center", bbox=back, **style, **PLAIN)


def half_axes(room: Point, is_wide: bool) -> Point:
    """Half the width and height that positions are stretched to; long labels need a margin at the
    sides.
    """
    return room[0] / 2 - (60 if is_wide else 20), room[1] / 2 - (30 if is_wide else 20)


def radius_of(strength: float, largest: float) -> float:
    """The area grows with the strength, from SMALLEST to LARGEST.

    >>> radius_of(0.0, 2.0), radius_of(2.0, 2.0), radius_of(0.0, 0.0)
    (9.0, 16.0, 9.0)
    """
    share = strength / largest if largest else 0.0
    return math.sqrt(SMALLEST**2 + share * (LARGEST**2 - SMALLEST**2))


def line_width(score: float, strongest: float) -> float:
    """From THINNEST to WIDEST, straight with |score|."""
    return THINNEST + (WIDEST - THINNEST) * abs(score) / strongest


def node_colour(node: Node, is_target: bool) -> str:
    """The colour of a disc."""
    if is_target:
        return colours.TARGET
    return colours.NODE if isinstance(node, int) else colours.GROUP
