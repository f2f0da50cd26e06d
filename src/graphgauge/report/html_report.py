"""A report as one HTML file, and as PDF from it.

Three files in ``templates`` make the page: the template (Jinja escapes every value in it), the
style sheet and the script, all written into the page. The page's security policy allows nothing
from outside and one script only, by its digest: text that looks like a script would not run even if
it got past the escaping. Data for the script are JSON in which ``<``, ``>`` and ``&`` are written
by their numbers, so that no text can end the element that holds it.
"""

import base64
import hashlib
import json
import re
from functools import cache, partial
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from graphgauge.core import MissingExtra
from graphgauge.narrative import tidy_text
from graphgauge.plots import with_own_ids
from graphgauge.report.exporters import VERDICT_MARKS, format_number, replace_non_finite
from graphgauge.report.report_data import VERDICT_BADGES
from graphgauge.report.score_table import Record, format_score

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_PAGE_SECTIONS = {
    "verdict": "Verdict",
    "numbers": "Numbers",
    "tradeoffs": "Trade-offs",
    "explanations": "Explanations",
    "targets": "Targets",
    "diagnosis": "Diagnosis",
    "checklist": "Checklist",
    "provenance": "Provenance",
}
_LONG_TEXT = 160  #: letters of a text that are shown before the reader asks for more
#: colours of a picture that follow the theme of the page, by the variable of the style sheet
_THEME = {
    "#dce1e7": "line",
    "#586473": "soft",
    "#0072b2": "mark",
    "#ffffff": "card",
    "#0b4f80": "accent",
}


def report_as_html(content: Record, paper: bool = False) -> str:
    """Return the page; ``paper`` leaves out what readers can click."""
    script, style = _read_template_file("report.js"), _read_template_file("report.css")
    safe = _markup_type()
    page = _report_template().render(
        **content,
        paper=paper,
        sections=_PAGE_SECTIONS,
        badges=VERDICT_BADGES,
        marks=VERDICT_MARKS,
        style=safe(style),
        script=safe(script),
        policy=_security_policy(script),
        data=safe(_script_json(content["targets"])),
    )
    return page.strip() + "\n"


def _read_template_file(name: str) -> str:
    """Read one of the files that make the page."""
    return files("graphgauge.report").joinpath(f"templates/{name}").read_text(encoding="utf-8")


@cache
def _report_template() -> "Template":
    """Return the page's template, which escapes everything and knows no undefined names."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        num=format_number,
        figure=format_score,
        shown=_page_text,
        label=_breakable_name,
        split_long=_split_long_text,
    )
    environment.filters.update(
        picture=partial(_themed_picture, paper=True),
        themed=_themed_picture,
        title_of=_humanize_name,
    )
    return environment.from_string(_read_template_file("report.html"))


def _markup_type() -> "type[Markup]":
    """Return the type of texts that are HTML already."""
    from markupsafe import Markup

    return Markup


def _security_policy(script: str) -> str:
    """Return the security policy: the page may use its own script and style, nothing else."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _script_json(data: object) -> str:
    r"""Write data as JSON that can stand in a script element.

    >>> print(_script_json({"a": "</script>", "b": float("nan")}))
    {"a":"\u003c/script\u003e","b":null}
    """
    text = json.dumps(replace_non_finite(data), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# --- filters of the template ----------------------------------------------------------------------


def _page_text(text: object) -> str:
    """Tidy a text: no control characters, no marks that turn other text."""
    return tidy_text(str(text), 2000)


def _humanize_name(name: str) -> str:
    """Write a name with underscores as words.

    >>> _humanize_name("never_flipped")
    'Never flipped'
    """
    return name.replace("_", " ").capitalize()


def _split_long_text(text: str) -> tuple[str, str]:
    """Split a long text at the end of a word; the page shows the rest on demand.

    >>> _split_long_text("Short."), _split_long_text("word " * 40 + "end")[1].split()[-1]
    (('Short.', ''), 'end')
    """
    plain = tidy_text(text, 40_000)
    if len(plain) <= _LONG_TEXT:
        return plain, ""
    end = plain.rfind(" ", 0, _LONG_TEXT)
    place = end if end > 0 else _LONG_TEXT
    return plain[:place] + " …", "… " + plain[place:].lstrip()


def _breakable_name(name: str) -> "Markup":
    """Let a name break after an underscore.

    >>> print(_breakable_name("a_<b>"))
    a_<wbr>&lt;b&gt;
    """
    return _markup_type()(escape(name).replace("_", "_<wbr>"))


def _themed_picture(svg: str, prefix: str, paper: bool = False) -> "Markup":
    """Let a picture follow the colours of the page, with ids of its own; on paper it keeps them.

    >>> print(_themed_picture('<path style="stroke: #0072b2"/>', "p1"))
    <path style="stroke: var(--mark)"/>
    """
    for colour, name in {} if paper else _THEME.items():
        svg = re.sub(f'{colour}(?=[;"])', f"var(--{name})", svg)
    return _markup_type()(with_own_ids(svg, prefix))


# --- PDF ------------------------------------------------------------------------------------------


def report_as_pdf(content: Record) -> bytes:
    """Return the page as PDF; needs the extra ``pdf``."""
    try:
        from weasyprint import HTML
    except (ImportError, OSError) as error:
        raise MissingExtra(
            f"PDF needs weasyprint, which cannot be loaded ({error}): "
            'pip install "graphgauge[pdf]".'
        ) from error
    pdf: bytes = HTML(
        string=report_as_html(content, paper=True), url_fetcher=_refuse_fetch
    ).write_pdf()
    return pdf


def _refuse_fetch(url: str, *args: object, **options: object) -> Record:
    """Refuse to load anything while a PDF is made."""
    raise ValueError(f"a report fetches nothing, but {url} was asked for")
