"""Tables as text: Markdown for pages, LaTeX for papers. Cells are texts, or numbers that are
rounded.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

LATEX = {
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
}
BOLD = "**"  #: stands around what is best, in texts of cells


def shown(value: Any, digits: int = 3) -> str:
    """Format a cell for people; a missing value is an empty text.

    >>> shown(0.12345), shown(float("nan")), shown(True), shown(1234567), shown("a")
    ('0.123', '', 'yes', '1,234,567', 'a')
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return f"{value:,}" if hasattr(value, "__index__") else str(value)


def as_markdown(table: pd.DataFrame, digits: int = 3) -> str:
    """Format a table as Markdown, without its index.

    Args:
        table: The table.
        digits: Digits after the point.
    """
    lines = [
        [str(name) for name in table.columns],
        ["---"] * len(table.columns),
        *rows_of(table, digits),
    ]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def as_latex(
    table: pd.DataFrame, caption: str = "", breaks: Sequence[int] = (), digits: int = 3
) -> str:
    """Format a table as LaTeX with booktabs, without its index.

    Args:
        table: The table.
        caption: Its caption.
        breaks: Numbers of the rows that have a rule above them.
        digits: Digits after the point.
    """
    head = latex_line(map(str, table.columns))
    body = [
        (r"\midrule" + "\n" if k in breaks else "") + latex_line(line)
        for k, line in enumerate(rows_of(table, digits))
    ]
    title = f"\\caption{{{latex_text(caption)}}}\n" if caption else ""
    columns = "l" * len(table.columns)
    return (
        f"\\begin{{table}}\n\\centering\n{title}\\begin{{tabular}}{{{columns}}}\n"
        f"\\toprule\n{head}\\midrule\n{''.join(body)}\\bottomrule\n"
        "\\end{tabular}\n\\end{table}\n"
    )


def rows_of(table: pd.DataFrame, digits: int) -> list[list[str]]:
    """Every row as texts."""
    return [
        [shown(value, digits) for value in row] for row in table.itertuples(index=False, name=None)
    ]


def latex_line(cells: Iterable[str]) -> str:
    """One row."""
    return " & ".join(map(latex_text, cells)) + " \\\\\n"


def latex_text(text: str) -> str:
    r"""Escape the special characters of LaTeX, and set text between Markdown's stars in bold.

    >>> latex_text("**0.9±0.1** & more")
    '\\textbf{0.9$\\pm$0.1} \\& more'
    """
    safe = "".join(LATEX.get(letter, letter) for letter in text)
    parts = safe.split(BOLD)
    return "".join(f"\\textbf{{{part}}}" if k % 2 else part for k, part in enumerate(parts))
