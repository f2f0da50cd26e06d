"""Markdown from templates in which every printed value is harmless.

Names of features, explainers, people and files are data. Whatever they hold is shown as text on one
line: Markdown and HTML signs are escaped, line breaks become blanks, control and direction
characters disappear. Text that a template itself contains stays as it is, and so does what is
marked as `SafeMarkdown`.
"""

import os
import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from graphgauge.guidelines import escape_markup

_JOINERS = "\u200c\u200d"  #: invisible, but part of the spelling of some languages
_WEB_ADDRESS = re.compile(
    r"(?i)\b(https?|ftp|mailto|www)(?=[:.])"
)  #: what some readers turn into a link by themselves


class SafeMarkdown(str):
    """Markdown that is ready; it is not escaped again."""


def _escape_value(value: Any) -> str:
    r"""A value as harmless text on one line.

    >>> _escape_value("a|b\n<script>")
    'a\\|b &lt;script&gt;'
    >>> _escape_value("see http://a.b")
    'see http&#58;//a.b'
    """
    if isinstance(value, SafeMarkdown):
        return value
    kept = "".join(
        sign
        for sign in str(value)
        if sign in _JOINERS or sign.isspace() or unicodedata.category(sign)[0] != "C"
    )
    text = escape_markup(kept)
    return (
        _WEB_ADDRESS.sub(lambda found: found.group() + "\0", text)
        .replace("\0:", "&#58;")
        .replace("\0.", "&#46;")
        .replace("\0", "")
    )


@cache
def _template_environment() -> Environment:
    """The templates of this room; a name that is not given is an error."""
    return Environment(
        loader=PackageLoader("graphgauge.lifecycle", "templates"),
        autoescape=False,
        finalize=_escape_value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render_markdown(template: str, **values: Any) -> str:
    """A template with its values."""
    return _template_environment().get_template(template).render(values)


def safe_markdown_table(heading: Iterable[str], rows: Iterable[Iterable[Any]]) -> SafeMarkdown:
    """A Markdown table; '-' for None."""
    names = list(heading)
    lines = [
        names,
        ["---"] * len(names),
        *(["-" if cell is None else _escape_value(cell) for cell in row] for row in rows),
    ]
    return SafeMarkdown("\n".join(f"| {' | '.join(line)} |" for line in lines))


def file_link(path: Path, start: Path) -> SafeMarkdown:
    """A link to a file, as seen from a folder; its name is shown.

    >>> file_link(Path("run/rows.csv"), Path("documents"))
    '[rows.csv](../run/rows.csv)'
    """
    address = Path(os.path.relpath(path.resolve(), start.resolve())).as_posix()
    return SafeMarkdown(f"[{_escape_value(path.name)}]({quote(address)})")
