"""An explanation drawn as a graph.

The target stands in the middle, rings show hops, width and colour of edges show scores.

Only the ``top`` strongest edges are drawn; a caption counts the rest. Blue raises the output,
vermilion lowers it; scores without a direction are green. The area of a node grows with the sum of
its absolute feature scores. A group of nodes (``names.groups``) is drawn as one node, and the
scores of its edges add up.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphgauge.core import Xplanation
from graphgauge.models import BaseModel
from graphgauge.narrative import Names, NamesLike
from graphgauge.plots import colours
from graphgauge.plots.drawing_graph import DrawnNode
from graphgauge.plots.graph_layout import Disc, Position, place_labels
from graphgauge.plots.subgraph_data import SubgraphData, build_subgraph_data
from graphgauge.plots.text_labels import PLAIN_TEXT, write_caption, write_title
from graphgauge.plots.top_edges import Arrow, GraphSource, find_edge_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MIN_LINE_WIDTH, _MAX_LINE_WIDTH = 0.8, 4.5  #: lines, in points
_MIN_NODE_RADIUS, _MAX_NODE_RADIUS = 9.0, 16.0  #: radii of nodes, in points
_LABEL_FONT_SIZE = 8.0
_LETTER_WIDTH = 0.56  #: width of a letter, as a share of the font size
_MAX_INSIDE_LABEL = 4  #: labels of so many letters stand inside their node


def draw_explanation(
    x: Xplanation,
    data: GraphSource = None,
    names: NamesLike = None,
    top: int = 20,
    ax: "Axes | None" = None,
    *,
    signed: bool | None = None,
) -> "Axes":
    """Draw the strongest edges of an explanation as a graph.

    Args:
        x: The explanation.
        data: Where the ends of the edges come from: the wrapped model, the graph that was
            explained, or the list of graphs.
        names: What things are called: `Names`, or a dictionary of its fields. Missing names come
            from the data.
        top: How many edges are drawn; the caption counts the rest.
        ax: Axes to draw into; new ones by default.
        signed: Whether scores carry a direction; by default what the explainer says, and False for
            an unknown explainer.

    Returns:
        The axes.

    Raises:
        BadExplanation: ``data`` is missing, or is not the graph that was explained.
        BadSetting: ``top`` is not a positive whole number, or a name does not fit.
        UndefinedScore: A score is NaN or infinite.

    >>> from matplotlib.figure import Figure
    >>> x = gg.InputXGradient().explain(model, [302])[0]
    >>> axes = gg.draw_explanation(x, model, top=5, ax=Figure().subplots())
    >>> axes.get_title()
    'node 302 · input_x_gradient · predicted bottom (97 %)'
    """
    return draw_subgraph(
        build_subgraph_data(
            x, find_edge_ends(x, data), read_picture_names(x, data, names), top, signed
        ),
        ax,
    )


def draw_subgraph(sketch: SubgraphData, ax: "Axes | None" = None) -> "Axes":
    """Draw a picture from its data."""
    picture = _SubgraphDrawing(ax if ax is not None else _new_axes(), sketch)
    picture.write_frame()
    picture.draw()
    return picture.axes


def read_picture_names(x: Xplanation, data: GraphSource, names: NamesLike) -> Names:
    """Take names from the user, then from the wrapped model, then from its data.

    Raise BadSetting if a name belongs to an id that the graph does not have.
    """
    user_names = Names.from_value(names)
    source = data
    if isinstance(data, BaseModel):
        user_names, source = user_names.with_defaults(Names(features=data.feature_names)), data.data
    filled_names = (
        user_names.with_defaults(Names.from_data(source)) if x.level != "graph" else user_names
    )
    check_names_fit(x, filled_names)
    return filled_names


def check_names_fit(x: Xplanation, names: Names) -> None:
    """Raise BadSetting if names refer to nodes or features that the graph does not have."""
    width = (
        {}
        if x.feature_score is None
        else dict.fromkeys(("features", "feature_groups"), x.feature_score.size(1))
    )
    names.check_ids_fit({"nodes": x.num_nodes, "groups": x.num_nodes, **width})


def _new_axes() -> "Axes":
    """Return the axes of a new figure."""
    import matplotlib.pyplot as plt

    axes: Axes = plt.subplots(figsize=(8, 6), layout="constrained")[1]
    return axes


@dataclass(frozen=True)
class _SubgraphDrawing:
    """The drawing of one picture into axes."""

    axes: "Axes"
    sketch: SubgraphData

    @property
    def drawn(self) -> tuple[Arrow, ...]:
        """The arrows, the strongest first."""
        return self.sketch.shown.drawn

    def write_frame(self) -> None:
        """Write title, caption and legend; hide the axes."""
        self.axes.set_xticks([])
        self.axes.set_yticks([])
        self.axes.spines[:].set_visible(False)
        write_title(self.axes, self.sketch.title, pad=26)
        write_caption(self.axes, self.sketch.shown.caption(), self.reading())
        self.write_legend()

    def reading(self) -> str:
        """Return how to read the picture."""
        parts = ["Width and depth of colour: strength of an edge."] if self.drawn else []
        parts += ["Size of a node: its feature scores."] if self.sketch.has_features else []
        parts += ["Rings: hops."] if self.sketch.level == "node" else []
        return " ".join(parts)

    def write_legend(self) -> None:
        """Write what the colours mean, between title and picture."""
        from matplotlib.lines import Line2D

        words = {True: "raises the output", False: "lowers the output"}
        wanted = (
            dict.fromkeys(sorted((arrow.score > 0 for arrow in self.drawn), reverse=True))
            if self.sketch.signed
            else {}
        )
        lines = [(words[up], colours.score_hue(1 if up else -1, True)) for up in wanted]
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
        """Draw nodes, arrows and labels."""
        width, height = self.fit_axes()
        half, middle = _half_axes((width, height), self.has_long_labels()), (width / 2, height / 2)
        discs = self.discs(half, middle)
        self.draw_rings(half, middle)
        both = {(arrow.source, arrow.destination) for arrow in self.drawn}
        for arrow in reversed(self.drawn):
            self.draw_arrow(arrow, discs, is_bent=(arrow.destination, arrow.source) in both)
        self.draw_nodes(discs)
        self.write_labels(discs, (0, 0, width, height))

    def fit_axes(self) -> Position:
        """Make one unit of the axes one point of the page, in the present layout."""
        figure: Any = self.axes.figure
        figure.draw_without_rendering()
        box = self.axes.get_window_extent()
        dpi = figure.dpi
        width, height = box.width * 72 / dpi, box.height * 72 / dpi
        self.axes.set(xlim=(0, width), ylim=(0, height))
        return width, height

    def discs(self, half: Position, middle: Position) -> dict[DrawnNode, Disc]:
        """Return the discs of the nodes, in points."""
        spots = self.sketch.spots
        largest = max((spot.strength for spot in spots), default=0.0)
        scale = min(1.0, max(0.65, min(middle) / 150))  # smaller in a small picture
        return {
            spot.node: Disc(
                middle[0] + half[0] * spot.x,
                middle[1] + half[1] * spot.y,
                scale * _node_radius(spot.strength, largest),
            )
            for spot in spots
        }

    def has_long_labels(self) -> bool:
        """Whether a label stands beside its node."""
        return any(len(spot.label) > _MAX_INSIDE_LABEL for spot in self.sketch.spots)

    def draw_rings(self, half: Position, middle: Position) -> None:
        """Draw a thin ellipse for each number of hops."""
        from matplotlib.patches import Ellipse

        for share in self.sketch.rings[1:] if self.sketch.level == "node" else ():
            size = 2 * half[0] * share, 2 * half[1] * share
            self.axes.add_patch(
                Ellipse(middle, *size, fill=False, color=colours.NODE, linewidth=0.8, zorder=0)
            )

    def draw_arrow(self, arrow: Arrow, discs: Mapping[DrawnNode, Disc], is_bent: bool) -> None:
        """Draw an arrow: bent if another runs the other way, a loop if both ends are one node."""
        from matplotlib.patches import FancyArrowPatch

        a, b = discs[arrow.source], discs[arrow.destination]
        width = _line_width(arrow.score, self.sketch.shown.strongest)
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

    def draw_nodes(self, discs: Mapping[DrawnNode, Disc]) -> None:
        """Draw discs: the target yellow with a thick outline, groups blue, all others grey."""
        if self.sketch.level == "link" and len(discs) > 1:
            first, second = (discs[node] for node in self.sketch.targets)
            self.axes.plot(
                [first.x, second.x],
                [first.y, second.y],
                color=colours.OUTLINE,
                linestyle=":",
                zorder=1,
            )
        are_targets = [node in self.sketch.targets for node in discs]
        self.axes.scatter(
            [disc.x for disc in discs.values()],
            [disc.y for disc in discs.values()],
            s=[(2 * disc.radius) ** 2 for disc in discs.values()],
            c=[_node_colour(node, own) for node, own in zip(discs, are_targets, strict=True)],
            edgecolors=colours.OUTLINE,
            linewidths=[2.0 if own else 0.8 for own in are_targets],
            zorder=3,
        )

    def write_labels(
        self, discs: Mapping[DrawnNode, Disc], room: tuple[float, float, float, float]
    ) -> None:
        """Write short labels inside their nodes, long ones beside them."""
        labels = {spot.node: spot.label for spot in self.sketch.spots}
        sizes = {
            node: (_LABEL_FONT_SIZE * _LETTER_WIDTH * len(text) + 4, _LABEL_FONT_SIZE + 4)
            for node, text in labels.items()
            if len(text) > _MAX_INSIDE_LABEL
        }
        lines = [(discs[arrow.source], discs[arrow.destination]) for arrow in self.drawn]
        lines += (
            [(discs[self.sketch.targets[0]], discs[self.sketch.targets[1]])]
            if self.sketch.level == "link"
            else []
        )
        outside = place_labels(sizes, discs, lines, room)
        for node, text in labels.items():
            x, y = outside.get(node, (discs[node].x, discs[node].y))
            back = (
                {"boxstyle": "round,pad=0.1", "facecolor": "white", "alpha": 0.75, "linewidth": 0}
                if node in outside
                else None
            )
            style: dict[str, Any] = {
                "fontsize": _LABEL_FONT_SIZE if node in outside else _LABEL_FONT_SIZE - 1,
                "color": colours.INK,
                "zorder": 5,
            }
            self.axes.text(x, y, text, ha="center", va="center", bbox=back, **style, **PLAIN_TEXT)


def _half_axes(room: Position, is_wide: bool) -> Position:
    """Return half the width and height for positions; long labels need a margin."""
    return room[0] / 2 - (60 if is_wide else 20), room[1] / 2 - (30 if is_wide else 20)


def _node_radius(strength: float, largest: float) -> float:
    """Return a radius: the area grows with the strength, from the least to the largest.

    >>> _node_radius(0.0, 2.0), _node_radius(2.0, 2.0), _node_radius(0.0, 0.0)
    (9.0, 16.0, 9.0)
    """
    share = strength / largest if largest else 0.0
    return math.sqrt(_MIN_NODE_RADIUS**2 + share * (_MAX_NODE_RADIUS**2 - _MIN_NODE_RADIUS**2))


def _line_width(score: float, strongest: float) -> float:
    """Return a width from the least to the largest, linear in |score|."""
    return _MIN_LINE_WIDTH + (_MAX_LINE_WIDTH - _MIN_LINE_WIDTH) * abs(score) / strongest


def _node_colour(node: DrawnNode, is_target: bool) -> str:
    """Return the colour of a disc."""
    if is_target:
        return colours.TARGET
    return colours.NODE if isinstance(node, int) else colours.GROUP
