"""Texts in pictures: names are data, and stay what they are.

Matplotlib reads $...$ as mathematics and hands texts to TeX where the user has switched it on;
neither happens to a name here (`PLAIN`). Long names are cut, numbers have three significant digits,
and the marks that keep right-to-left text apart, which no font draws, are left out.
"""

import math
import textwrap
from typing import TYPE_CHECKING, Any

from graphgauge.core.errors import UndefinedScore
from graphgauge.core.xplanation import Xplanation
from graphgauge.evaluation.alignment import NAN, status_of
from graphgauge.narrative import Names
from graphgauge.narrative.names import tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: how every text that can hold a name is drawn
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
LONGEST = 22  #: characters of a label
LONGEST_TITLE = 40  #: characters of a name in a title


def cut(text: str, longest: int = LONGEST) -> str:
    r"""``text`` on one line, at most so long.

    >>> cut("a very long\nname of a feature"), cut("$x$")
    ('a very long name of a…', '$x$')
    """
    return tidy(text, longest).strip("\u2068\u2069")


def node_label(node: int, names: Names) -> str:
    """The name of a node, else its id."""
    return cut(names.of_one("nodes", node) or str(node))


def target_label(x: Xplanation, names: Names) -> str:
    """'node 4', 'link 4 → 7', 'node 4, label 2', or names where there are some."""
    label = x.target_label
    told = (
        ""
        if label is None
        else f", label {cut(names.of_one('classes', label), LONGEST_TITLE) or label}"
    )
    if x.level == "graph":
        (graph,) = x.target_ids
        return (cut(names.of_one("graphs", graph), LONGEST_TITLE) or f"graph {graph}") + told
    ends = [cut(names.of_one("nodes", node), LONGEST_TITLE) or str(node) for node in x.target_nodes]
    return f"{x.level} {' → '.join(ends)}{told}"


def prediction_label(x: Xplanation, names: Names) -> str:
    """The predicted class with its probability, or the value with its unit; '' where none is
    stored.
    """
    numbers = [] if x.prediction is None else x.prediction.double().flatten().tolist()
    if not numbers or not all(map(math.isfinite, numbers)):
        return ""
    if len(numbers) == 1:
        return f"predicted {numbers[0]:.3g} {cut(names.unit, LONGEST_TITLE)}".rstrip()
    if x.target_label is not None:
        return f"predicted {percent(numbers[1])}"
    best = max(range(len(numbers)), key=numbers.__getitem__)
    return f"predicted {cut(names.of_one('classes', best), LONGEST_TITLE) or f'class {best}'} ({percent(numbers[best])})"


def title_of(x: Xplanation, names: Names) -> str:
    """Target, explainer and prediction."""
    parts = (target_label(x, names), cut(x.explainer, LONGEST_TITLE), prediction_label(x, names))
    return " · ".join(part for part in parts if part)


def percent(share: float) -> str:
    """A share as people read it; what is not all is never shown as all, and what is not nothing
    never as nothing.

    >>> percent(0.12), percent(0.9999), percent(1.0), percent(0.0004), percent(0.0)
    ('12 %', '> 99 %', '100 %', '< 1 %', '0 %')
    """
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{share:.0%}".replace("%", " %")


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "edge"), counted(1980, "further edge")
    ('1 edge', '1,980 further edges')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def write_caption(axes: "Axes", *paragraphs: str, share: float = 1.0) -> None:
    """A caption under the picture, in lines that fit into this share of the width of the axes."""
    width = letters(axes, 9, share)
    text = "\n".join(textwrap.fill(paragraph, width) for paragraph in paragraphs if paragraph)
    axes.set_xlabel(text, fontsize=9, labelpad=8, **PLAIN)


def write_title(axes: "Axes", text: str, share: float = 1.0, pad: float = 6) -> None:
    """A title, in lines that fit likewise."""
    lines = textwrap.fill(text, letters(axes, 11, share)).replace(" ·\n", "\n")
    axes.set_title(lines, fontsize=11, pad=pad, **PLAIN)


def letters(axes: "Axes", size: float, share: float) -> int:
    """How many letters of a size fit into this share of the width of the axes, at least 20; a
    letter is half as wide as high.
    """
    points = axes.get_window_extent().width * 72 / axes.figure.dpi
    return max(20, int(share * points / (0.5 * size)))


def check_drawable(x: Xplanation, side: str) -> None:
    """Refuse scores that are not there or are not numbers."""
    score = x.need(f"{side}_score")
    if status_of(score, len(score)) == NAN:
        raise UndefinedScore(
            f"the {side} scores of target {x.target} hold NaN or infinity, which has no width, length or colour. "
            f"Explain again with another explainer than {x.explainer or 'this one'}, or put numbers there."
        )
