"""Ways to show texts that others have written: names, paths, reasons. None of them is read as
Markdown, HTML or mathematics.

Streamlit reads most texts as Markdown, with emoji, colours, formulas, links and arrows, and no
escape stops all of these. So names go where nothing is read: into cells of data frames, options of
a select box, data of a chart, and through `escape` into ``st.html``. Labels of widgets are words of
our own.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from graphgauge.core import FAIL, NOT_APPLICABLE, PASS, UNDECIDED, WARN, GraphgaugeError
from graphgauge.narrative import tidy_text
from graphgauge.report import VERDICT_BADGES

if TYPE_CHECKING:
    import pandas as pd

_INK = "#1d2733"
#: behind a number, and the edge of a notice, by outcome
_FILLS = {
    PASS: "#d3ebe1",
    WARN: "#fbe9c4",
    UNDECIDED: "#fbe9c4",
    FAIL: "#f8d3bd",
    NOT_APPLICABLE: "#eceff2",
}
_EDGES = {
    PASS: "#00734f",
    WARN: "#b07400",
    UNDECIDED: "#b07400",
    FAIL: "#b84a00",
    NOT_APPLICABLE: "#586473",
}
_OUTCOME_BY_BADGE = {badge: outcome for outcome, badge in VERDICT_BADGES.items()}
_ONE_LINE_LENGTH = 20  #: letters of a text that stays on one line
_BOX_STYLE = (
    "border-left: 5px solid {edge}; background: {fill}; color: {ink}; border-radius: 6px; "
    "padding: 10px 14px"
)


def _escape_text(text: Any, longest: int = 2000) -> str:
    r"""A text for ``st.html``, on one line.

    >>> _escape_text("<b>\n$x$")
    '&lt;b&gt; $x$'
    """
    return escape(tidy_text(str(text), longest))


def show_notice(outcome: str, head: str, *lines: str) -> None:
    """A box in the colour of an outcome."""
    style = _BOX_STYLE.format(edge=_EDGES[outcome], fill=_FILLS[outcome], ink=_INK)
    rest = "".join(f"<div>{_escape_text(line)}</div>" for line in lines if line)
    st.html(
        f'<div role="status" style="{style}">'
        f'<strong style="font-size: 1.1rem">{_escape_text(head)}</strong>{rest}</div>'
    )


def show_paragraphs(text: str) -> None:
    """A text of several lines."""
    st.html("".join(f"<p>{_escape_text(line)}</p>" for line in text.splitlines() if line.strip()))


def show_heading(name: str, *more: str) -> None:
    """A small heading with names in it."""
    text = " ".join(f"<bdi>{_escape_text(own, 200)}</bdi>" for own in (name, *more))
    st.html(f'<h4 style="margin: 0; padding: 0; overflow-wrap: anywhere">{text}</h4>')


def choose_option(label: str, options: "list[Any]", **more: Any) -> Any:
    """One of the options; the only one without asking."""
    return options[0] if len(options) == 1 else st.selectbox(label, options, **more)


def show_text_table(table: "pd.DataFrame") -> None:
    """A table whose long texts are to be read: lines break, and what is in a column 'Verdict' has
    the colour of its outcome.
    """
    cell = (
        'style="padding: 4px 10px; text-align: left; vertical-align: top; overflow-wrap: '
        'anywhere{more}"'
    )
    heads = "".join(
        f"<th {cell.format(more='; white-space: nowrap')}>{_escape_text(name)}</th>"
        for name in table.columns
    )
    lines = []
    for row in table.to_dict("records"):
        cells = (
            (
                f"<td {cell.format(more=_cell_style(name, value))}>"
                f"{_escape_text(_value_text(value))}</td>"
            )
            for name, value in row.items()
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    st.html(
        '<table style="width: 100%; font-size: 0.875rem">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _cell_style(column: Any, value: Any) -> str:
    """The colour of a cell, and whether its text stays on one line."""
    outcome = _OUTCOME_BY_BADGE.get(str(value)) if str(column).startswith("Verdict") else None
    colour = "" if outcome is None else f"; background: {_FILLS[outcome]}; color: {_INK}"
    return colour + ("; white-space: nowrap" if len(_value_text(value)) <= _ONE_LINE_LENGTH else "")


def _value_text(value: Any) -> str:
    """A cell for people.

    >>> _value_text(0.123456), _value_text(float("nan")), _value_text("lrp")
    ('0.1235', '–', 'lrp')
    """
    if isinstance(value, float):
        return "–" if value != value else f"{value:.4g}"
    return str(value)


def colour_by_outcome(
    table: "pd.DataFrame", outcomes: "pd.DataFrame", digits: Mapping[str, int | None]
) -> Any:
    """A table with each cell on the colour of its outcome."""
    formats = {name: "{:.3g}" if own is None else f"{{:,.{own}f}}" for name, own in digits.items()}
    fills = outcomes.map(lambda outcome: f"background-color: {_FILLS[outcome]}; color: {_INK}")
    return table.style.apply(lambda _: fills, axis=None).format(formats, na_rep="–")


@contextmanager
def show_errors() -> Iterator[None]:
    """What graphgauge refuses is said on the page; everything else is a defect and is shown as
    such.
    """
    try:
        yield
    except GraphgaugeError as error:
        show_notice(FAIL, "This cannot be shown", str(error))
