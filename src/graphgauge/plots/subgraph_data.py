"""What a picture of an explanation's edges shows, as plain data.

A run can save it, and draw it later without network and data.

    drawn    the strongest arrows
    rest     the others, as one arrow: their number, and the sum of their absolute scores
    spots    the nodes with their positions
    rings    the radii of the rings
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from graphgauge.core import Xplanation
from graphgauge.narrative import Names, has_signed_scores
from graphgauge.plots.drawing_graph import DrawnGraph, DrawnNode, build_drawn_graph, group_of_nodes
from graphgauge.plots.graph_layout import Position, force_layout, ring_layout
from graphgauge.plots.text_labels import cut_text, explanation_title, node_label
from graphgauge.plots.top_edges import Arrow, TopEdges, node_strengths, select_top_edges

_MAX_GROUP_LABEL = 32  #: characters of a group's name


@dataclass(frozen=True)
class _PlacedNode:
    """A drawn node: its position between -1 and 1, its absolute feature scores, its label."""

    node: DrawnNode
    x: float
    y: float
    strength: float
    label: str


@dataclass(frozen=True)
class SubgraphData:
    """One picture."""

    title: str
    level: str
    targets: tuple[int, ...]  #: the node, the two ends of the link, or none
    shown: TopEdges
    spots: tuple[_PlacedNode, ...]
    rings: Sequence[float]
    has_features: bool  #: whether the size of a node means something
    signed: bool

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> "SubgraphData":
        """Read plain data from ``dataclasses.asdict``, also after JSON."""
        drawn, rest = (
            tuple(Arrow(**arrow) for arrow in record["shown"][part]) for part in ("drawn", "rest")
        )
        spots = tuple(_PlacedNode(**spot) for spot in record["spots"])
        return SubgraphData(
            **{
                **record,
                "targets": tuple(record["targets"]),
                "shown": TopEdges(drawn, rest),
                "spots": spots,
            }
        )


def build_subgraph_data(
    x: Xplanation, ends: Tensor, names: Names, top: int, signed: bool | None = None
) -> SubgraphData:
    """Return the picture of the ``top`` strongest edges of ``x``.

    Args:
        x: The explanation.
        ends: Source and destination of each edge of ``x`` (2, E_rel), as ids in the target's graph.
        names: What nodes and classes are called. The nodes of a group are drawn as one.
        top: How many arrows are drawn; the rest is counted.
        signed: Whether scores carry a direction; by default what the explainer says, and False for
            an unknown explainer.
    """
    ways = build_drawn_graph(x, ends, names)
    shown = select_top_edges(x, ways, top)
    places, rings = _unit_positions(x, shown, ways)
    strength = node_strengths(x, names)
    return SubgraphData(
        title=explanation_title(x, names),
        level=x.level,
        targets=x.target_nodes,
        shown=shown,
        spots=tuple(
            _PlacedNode(node, *place, strength.get(node, 0.0), _drawn_node_label(node, x, names))
            for node, place in places.items()
        ),
        rings=rings,
        has_features=x.feature_score is not None,
        signed=has_signed_scores(x) if signed is None else signed,
    )


def _unit_positions(
    x: Xplanation, shown: TopEdges, ways: DrawnGraph
) -> tuple[dict[DrawnNode, Position], list[float]]:
    """Return positions between -1 and 1, and the radii of the rings."""
    if x.level == "graph":
        return (force_layout(shown.drawn, ways) if shown.drawn else {}), []
    return ring_layout(shown.drawn, ways, x.target_nodes)


def _drawn_node_label(node: DrawnNode, x: Xplanation, names: Names) -> str:
    """Return the name of a node, or that of a group with the number of its members here."""
    if isinstance(node, int):
        return node_label(node, names)
    place = group_of_nodes(x, names)
    size = sum(place.get(member) == node for member in x.nodes.tolist())
    return f"{cut_text(node, _MAX_GROUP_LABEL)} ({size})"
