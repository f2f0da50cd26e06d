"""Tables as text: Markdown for pages, LaTeX for papers. Cells are texts already, or numbers that
get a few digits.
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
    """A cell for people: nothing where there is no value.

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
    """A table as Markdown; the index is left out."""
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
    """A table as LaTeX with booktabs, with a rule before each row in ``breaks``; the index is left
    out.
    """
    head = latex_line(map(str, table.columns))
    body = [
        (r"\midrule" + "\n" if k in breaks else "") + latex_line(line)
        for k, line in enumerate(rows_of(table, digits))
    ]
    told = f"\\caption{{{latex_text(caption)}}}\n" if caption else ""
    inside = f"\\toprule\n{head}\\midrule\n{''.join(body)}\\bottomrule\n"
    columns = "l" * len(table.columns)
    return f"\\begin{{table}}\n\\centering\n{told}\\begin{{tabular}}{{{columns}}}\n{inside}\\end{{tabular}}\n\\end{{table}}\n"


def rows_of(table: pd.DataFrame, digits: int) -> list[list[str]]:
    """Every row as texts."""
    return [
        [shown(value, digits) for value in row] for row in table.itertuples(index=False, name=None)
    ]


def latex_line(cells: Iterable[str]) -> str:
    """One row."""
    return " & ".join(map(latex_text, cells)) + " \\\\\n"


def latex_text(text: str) -> str:
    r"""A text with LaTeX's own signs escaped, and bold where Markdown's stars say so.

    >>> latex_text("**0.9±0.1** & more")
    '\\textbf{0.9$\\pm$0.1} \\& more'
    """
    safe = "".join(LATEX.get(letter, letter) for letter in text)
    parts = safe.split(BOLD)
    return "".join(f"\\textbf{{{part}}}" if k % 2 else part for k, part in enumerate(parts))
