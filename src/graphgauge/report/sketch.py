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

from graphgauge.core.xplanation import Xplanation
from graphgauge.narrative import Names
from graphgauge.narrative.facts import is_signed
from graphgauge.report.arrows import Arrow, Shown, node_strength, shown_arrows
from graphgauge.report.labels import cut, node_label, title_of
from graphgauge.report.layout import Point, shells, springs
from graphgauge.report.ways import Node, Ways, folded_nodes, ways_of

LONGEST_GROUP = 32  #: characters of a group's name


@dataclass(frozen=True)
class Spot:
    """A drawn node: its position between -1 and 1, its absolute feature scores, its label."""

    node: Node
    x: float
    y: float
    strength: float
    label: str


@dataclass(frozen=True)
class Sketch:
    """One picture."""

    title: str
    level: str
    targets: tuple[int, ...]  #: the node, the two ends of the link, or none
    shown: Shown
    spots: tuple[Spot, ...]
    rings: Sequence[float]
    has_features: bool  #: whether the size of a node means something
    signed: bool

    @staticmethod
    def read(record: Mapping[str, Any]) -> "Sketch":
        """Read plain data from ``dataclasses.asdict``, also after JSON."""
        drawn, rest = (
            tuple(Arrow(**arrow) for arrow in record["shown"][part]) for part in ("drawn", "rest")
        )
        spots = tuple(Spot(**spot) for spot in record["spots"])
        return Sketch(
            **{
                **record,
                "targets": tuple(record["targets"]),
                "shown": Shown(drawn, rest),
                "spots": spots,
            }
        )


def sketch_of(
    x: Xplanation, ends: Tensor, names: Names, top: int, signed: bool | None = None
) -> Sketch:
    """Return the picture of the ``top`` strongest edges of ``x``, which have these ends (2, E)."""
    ways = ways_of(x, ends, names)
    shown = shown_arrows(x, ways, top)
    places, rings = unit_places(x, shown, ways)
    strength = node_strength(x, names)
    return Sketch(
        title=title_of(x, names),
        level=x.level,
        targets=x.target_nodes,
        shown=shown,
        spots=tuple(
            Spot(node, *place, strength.get(node, 0.0), label_of(node, x, names))
            for node, place in places.items()
        ),
        rings=rings,
        has_features=x.feature_score is not None,
        signed=is_signed(x) if signed is None else signed,
    )


def unit_places(x: Xplanation, shown: Shown, ways: Ways) -> tuple[dict[Node, Point], list[float]]:
    """Return positions between -1 and 1, and the radii of the rings."""
    if x.level == "graph":
        return (springs(shown.drawn, ways) if shown.drawn else {}), []
    return shells(shown.drawn, ways, x.target_nodes)


def label_of(node: Node, x: Xplanation, names: Names) -> str:
    """Return the name of a node, or that of a group with the number of its members here."""
    if isinstance(node, int):
        return node_label(node, names)
    place = folded_nodes(x, names)
    size = sum(place.get(member) == node for member in x.nodes.tolist())
    return f"{cut(node, LONGEST_GROUP)} ({size})"
