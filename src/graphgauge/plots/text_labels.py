"""Texts in pictures. Names are data, so they stay as they are.

Matplotlib reads $...$ as mathematics, and passes texts to TeX where the user has switched it on;
neither happens to a name here (`PLAIN_TEXT`). Long names are cut, numbers have three significant
digits, and the marks that isolate right-to-left text, which no font draws, are left out.
"""

import math
import textwrap
from typing import TYPE_CHECKING, Any

from graphgauge.core import UndefinedScore, Xplanation
from graphgauge.evaluation import NAN_ATTRIBUTION, score_status
from graphgauge.narrative import Names, tidy_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: how every text that can hold a name is drawn
PLAIN_TEXT: dict[str, Any] = {"parse_math": False, "usetex": False}
_MAX_LABEL = 22  #: characters of a label
MAX_NAME_IN_TITLE = 40  #: characters of a name in a title


def cut_text(text: str, longest: int = _MAX_LABEL) -> str:
    r"""Put a text on one line, and cut it to a length.

    >>> cut_text("a very long\nname of a feature"), cut_text("$x$")
    ('a very long name of a…', '$x$')
    """
    return tidy_text(text, longest).strip("\u2068\u2069")


def node_label(node: int, names: Names) -> str:
    """Return the name of a node, or its id."""
    return cut_text(names.name_of("nodes", node) or str(node))


def _target_label(x: Xplanation, names: Names) -> str:
    """Return 'node 4', 'link 4 → 7' or 'node 4, label 2', with names where there are some."""
    label = x.target_label
    label_text = (
        ""
        if label is None
        else f", label {cut_text(names.name_of('classes', label), MAX_NAME_IN_TITLE) or label}"
    )
    if x.level == "graph":
        (graph,) = x.target_ids
        return (
            cut_text(names.name_of("graphs", graph), MAX_NAME_IN_TITLE) or f"graph {graph}"
        ) + label_text
    ends = [
        cut_text(names.name_of("nodes", node), MAX_NAME_IN_TITLE) or str(node)
        for node in x.target_nodes
    ]
    return f"{x.level} {' → '.join(ends)}{label_text}"


def _prediction_label(x: Xplanation, names: Names) -> str:
    """Return the predicted class with its probability, or the value with its unit.

    '' if no prediction is stored.
    """
    numbers = [] if x.prediction is None else x.prediction.double().flatten().tolist()
    if not numbers or not all(map(math.isfinite, numbers)):
        return ""
    if len(numbers) == 1:
        return f"predicted {numbers[0]:.3g} {cut_text(names.unit, MAX_NAME_IN_TITLE)}".rstrip()
    if x.target_label is not None:
        return f"predicted {share_text(numbers[1])}"
    best = max(range(len(numbers)), key=numbers.__getitem__)
    name = cut_text(names.name_of("classes", best), MAX_NAME_IN_TITLE) or f"class {best}"
    return f"predicted {name} ({share_text(numbers[best])})"


def explanation_title(x: Xplanation, names: Names) -> str:
    """Return a title from target, explainer and prediction."""
    parts = (
        _target_label(x, names),
        cut_text(x.explainer, MAX_NAME_IN_TITLE),
        _prediction_label(x, names),
    )
    return " · ".join(part for part in parts if part)


def share_text(share: float) -> str:
    """Format a share; only 1 becomes 100 %, and only 0 becomes 0 %.

    >>> share_text(0.12), share_text(0.9999), share_text(1.0), share_text(0.0004), share_text(0.0)
    ('12 %', '> 99 %', '100 %', '< 1 %', '0 %')
    """
    if 0 < share < 0.01:
        return "< 1 %"
    return "> 99 %" if 0.99 < share < 1 else f"{share:.0%}".replace("%", " %")


def count_noun(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> count_noun(1, "edge"), count_noun(1980, "further edge")
    ('1 edge', '1,980 further edges')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def write_caption(axes: "Axes", *paragraphs: str, share: float = 1.0) -> None:
    """Write a caption below the axes, in lines that fit into this share of their width."""
    width = letters_that_fit(axes, 9, share)
    text = "\n".join(textwrap.fill(paragraph, width) for paragraph in paragraphs if paragraph)
    axes.set_xlabel(text, fontsize=9, labelpad=8, **PLAIN_TEXT)


def write_title(axes: "Axes", text: str, share: float = 1.0, pad: float = 6) -> None:
    """Write a title, in lines that fit into this share of the width of the axes."""
    lines = textwrap.fill(text, letters_that_fit(axes, 11, share)).replace(" ·\n", "\n")
    axes.set_title(lines, fontsize=11, pad=pad, **PLAIN_TEXT)


def letters_that_fit(axes: "Axes", size: float, share: float) -> int:
    """Return how many letters fit into this share of the width of the axes, at least 20.

    A letter is taken to be half as wide as high.
    """
    points = axes.get_window_extent().width * 72 / axes.figure.dpi
    return max(20, int(share * points / (0.5 * size)))


def check_drawable(x: Xplanation, side: str) -> None:
    """Raise unless all scores of a side are finite numbers."""
    score = x.need(f"{side}_score")
    if score_status(score, len(score)) == NAN_ATTRIBUTION:
        raise UndefinedScore(
            f"the {side} scores of target {x.target} hold NaN or infinity, which has no width, "
            "length or colour. Explain again with another explainer than "
            f"{x.explainer or 'this one'}, or put numbers there."
        )
