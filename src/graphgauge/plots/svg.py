"""Figures as SVG that can stand inside a page.

Such an SVG needs nothing else: it has no script, no address outside and no date. The same figure
gives the same bytes.
"""

import io
import re
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: letters stay letters (small, and readers can search them), ids in the file do not change
_SVG_SETTINGS: Any = {"svg.hashsalt": "graphgauge", "svg.fonttype": "none", "text.usetex": False}


def svg_of(figure: "Figure") -> str:
    """Return a matplotlib figure as an ``<svg>`` element that can stand inside a page.

    It makes no request and holds no date; the same figure gives the same bytes.

    Args:
        figure: Any figure. It is drawn as it is.

    Returns:
        The text of the element, from ``<svg`` to ``</svg>``.

    >>> from matplotlib.figure import Figure
    >>> svg_of(Figure())[:4]
    '<svg'
    """
    import matplotlib as mpl

    file = io.StringIO()
    with mpl.rc_context(_SVG_SETTINGS):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    return _inline(text[text.index("<svg") :])


def _inline(svg: str) -> str:
    """Keep the style of an SVG inside it, let it shrink with the page, and drop its metadata.

    >>> style = '<style type="text/css">*{a: b}</style>'
    >>> _inline(f'<svg width="9pt"><metadata>x</metadata>{style}</svg>')
    '<svg style="max-width: 100%; height: auto; a: b" width="9pt"></svg>'
    """
    bare = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    style = re.search(r'<style type="text/css">\*\{(.*?)\}</style>', bare)
    rules = "; ".join(["max-width: 100%", "height: auto", *([style[1]] if style else [])])
    return bare.replace(style[0] if style else "", "").replace("<svg ", f'<svg style="{rules}" ', 1)


def with_tooltips(svg: str, tooltips: Mapping[str, str]) -> str:
    """Say what an element is when the reader points at it.

    Args:
        svg: The text of an ``<svg>`` element.
        tooltips: A text for each artist, by the ``gid`` that the artist was drawn with.

    >>> with_tooltips('<g id="a"><path/></g>', {"a": "1 < 2"})
    '<g id="a"><title>1 &lt; 2</title><path/></g>'
    """
    return re.sub(
        r'<g id="([^"]+)">',
        lambda group: (
            group[0]
            + (f"<title>{escape(tooltips[group[1]])}</title>" if group[1] in tooltips else "")
        ),
        svg,
    )


def with_own_ids(svg: str, prefix: str) -> str:
    """Give an SVG ids of its own on a page, and let it be as large as its place.

    Ids that nothing refers to are left out, and so are namespaces, which HTML does not need.

    >>> svg = '<svg width="9pt" height="8pt"><g id="a"><path id="m1"/><use href="#m1"/></g></svg>'
    >>> with_own_ids(svg, "p2")
    '<svg><g><path id="p2-m1"/><use href="#p2-m1"/></g></svg>'
    """
    svg = re.sub(r'(<svg\b[^>]*?) width="[^"]*" height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    used = set(re.findall(r"#([\w-]+)", svg))
    svg = re.sub(
        r' id="([\w.-]+)"',
        lambda name: f' id="{prefix}-{name[1]}"' if name[1] in used else "",
        svg,
    )
    return re.sub(r'(href="|url\()#([\w-]+)', rf"\1#{prefix}-\2", svg)
