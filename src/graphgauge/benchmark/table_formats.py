"""Tables as text: Markdown for pages, LaTeX for papers. Cells are texts, or numbers that are
rounded.
"""

import math
from collections.abc import Iterable, Sequence

import pandas as pd

_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
}
BOLD_MARK = "**"  #: stands before and after the best value of a column, in texts of cells


def _format_value(value: object, digits: int = 3) -> str:
    """Format a cell for people; a missing value is an empty text.

    >>> [_format_value(value) for value in (0.12345, float("nan"), True, 1234567, "a")]
    ['0.123', '', 'yes', '1,234,567', 'a']
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return f"{value:,}" if hasattr(value, "__index__") else str(value)


def format_markdown(table: pd.DataFrame, digits: int = 3) -> str:
    """Format a table as Markdown, without its index.

    Args:
        table: The table.
        digits: Digits after the point.
    """
    lines = [
        [str(name) for name in table.columns],
        ["---"] * len(table.columns),
        *_format_rows(table, digits),
    ]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def format_latex(
    table: pd.DataFrame, caption: str = "", breaks: Sequence[int] = (), digits: int = 3
) -> str:
    """Format a table as LaTeX with booktabs, without its index.

    Args:
        table: The table.
        caption: Its caption.
        breaks: Numbers of the rows that have a rule above them.
        digits: Digits after the point.
    """
    head = _latex_line(map(str, table.columns))
    body = [
        (r"\midrule" + "\n" if k in breaks else "") + _latex_line(line)
        for k, line in enumerate(_format_rows(table, digits))
    ]
    title = f"\\caption{{{_escape_latex(caption)}}}\n" if caption else ""
    columns = "l" * len(table.columns)
    return (
        f"\\begin{{table}}\n\\centering\n{title}\\begin{{tabular}}{{{columns}}}\n"
        f"\\toprule\n{head}\\midrule\n{''.join(body)}\\bottomrule\n"
        "\\end{tabular}\n\\end{table}\n"
    )


def _format_rows(table: pd.DataFrame, digits: int) -> list[list[str]]:
    """Every row as texts."""
    return [
        [_format_value(value, digits) for value in row]
        for row in table.itertuples(index=False, name=None)
    ]


def _latex_line(cells: Iterable[str]) -> str:
    """One row."""
    return " & ".join(map(_escape_latex, cells)) + " \\\\\n"


def _escape_latex(text: str) -> str:
    r"""Escape the special characters of LaTeX, and set text between Markdown's stars in bold.

    >>> _escape_latex("**0.9±0.1** & more")
    '\\textbf{0.9$\\pm$0.1} \\& more'
    """
    safe = "".join(_LATEX_ESCAPES.get(letter, letter) for letter in text)
    parts = safe.split(BOLD_MARK)
    return "".join(f"\\textbf{{{part}}}" if k % 2 else part for k, part in enumerate(parts))
