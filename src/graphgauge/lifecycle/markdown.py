"""Fill Markdown templates so that every printed value is harmless.

Names of features, explainers, people and files are data. Whatever they contain is printed as text
on one line: Markdown and HTML signs are escaped, line breaks become blanks, and control and
direction characters are removed. The text of the template itself stays as it is, and so do values
that are marked as safe.
"""

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from graphgauge.guidelines import escape_markup

_JOINERS = "\u200c\u200d"  #: invisible, but part of the spelling of some languages
#: what some readers turn into a link by themselves
_WEB_ADDRESS = re.compile(r"(?i)\b(https?|ftp|mailto|www)(?=[:.])")


class SafeMarkdown(str):
    """Markdown that is not escaped again."""


def _escape_value(value: object) -> str:
    r"""Escape a value as harmless text on one line.

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
    """Return the template environment; a missing value is an error."""
    return Environment(
        loader=PackageLoader("graphgauge.lifecycle", "templates"),
        autoescape=False,
        finalize=_escape_value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render_markdown(template: str, values: Mapping[str, object]) -> str:
    """Fill a template.

    Args:
        template: File name of the template, such as "model_card.md.j2".
        values: What the template names. Each value is printed as text, whatever its type.
    """
    return _template_environment().get_template(template).render(values)


def safe_markdown_table(heading: Iterable[str], rows: Iterable[Iterable[object]]) -> SafeMarkdown:
    """Format a Markdown table, with '-' for None."""
    names = list(heading)
    lines = [
        names,
        ["---"] * len(names),
        *(["-" if cell is None else _escape_value(cell) for cell in row] for row in rows),
    ]
    return SafeMarkdown("\n".join(f"| {' | '.join(line)} |" for line in lines))


def file_link(path: Path, start: Path) -> SafeMarkdown:
    """Link to a file from a folder; the file's name is shown.

    >>> file_link(Path("run/rows.csv"), Path("documents"))
    '[rows.csv](../run/rows.csv)'
    """
    address = Path(os.path.relpath(path.resolve(), start.resolve())).as_posix()
    return SafeMarkdown(f"[{_escape_value(path.name)}]({quote(address)})")
