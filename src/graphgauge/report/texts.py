"""A report as JSON, CSV and Markdown.

JSON has no NaN, so NaN and infinity become null. A spreadsheet runs cells that begin with = + - @
as formulas; such texts get an apostrophe in front, numbers stay numbers.
"""

import csv
import io
import json
import math
import unicodedata
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from graphgauge.guidelines.document import plain, table
from graphgauge.narrative.names import tidy
from graphgauge.report.boards import Line, Score

FORMULA = "=+-@"
COLUMNS = (
    "task",
    "explainer",
    "recommended",
    "metric",
    "mean",
    "low",
    "high",
    "n",
    "missing",
    "verdict",
    "threshold",
    "reason",
)
MARKS = {"pass": "✓", "warn": "!", "undecided": "?", "fail": "✗", "not applicable": "–"}


# --- JSON -----------------------------------------------------------------------------------------


def as_json(content: dict[str, Any]) -> str:
    """Write everything but pictures as JSON."""
    return json.dumps(finite(content), indent=2, allow_nan=False) + "\n"


def finite(value: Any) -> Any:
    """Return plain data without NaN, infinity and pictures.

    >>> finite({"a": [float("nan"), 1.5], "pictures": {}})
    {'a': [None, 1.5]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return finite(vars(value))
    if isinstance(value, Mapping):
        return {str(name): finite(own) for name, own in value.items() if name != "pictures"}
    if isinstance(value, (list, tuple)):
        return [finite(own) for own in value]
    if isinstance(value, float) or (hasattr(value, "item") and not isinstance(value, (str, bytes))):
        number = value.item() if hasattr(value, "item") else value
        return None if isinstance(number, float) and not math.isfinite(number) else number
    return value


# --- CSV ------------------------------------------------------------------------------------------


def as_csv(content: dict[str, Any]) -> str:
    """Write a row for each task, explainer and metric."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for part in content["tasks"]:
        for line in part.lines:
            writer.writerows(
                [harmless(value) for value in csv_row(part.title, line, score)]
                for score in line.scores
            )
    return file.getvalue()


def csv_row(task: str, line: Line, own: Score) -> list[Any]:
    """Return the cells of one score."""
    missing = "; ".join(f"{count} {status}" for status, count in own.missing.items())
    named = [task, line.explainer, "yes" if line.is_chosen else "no", own.metric]
    return [
        *named,
        own.mean,
        own.low,
        own.high,
        own.n,
        missing,
        own.outcome,
        own.threshold,
        own.reason,
    ]


def harmless(value: Any) -> Any:
    r"""Make a cell that no spreadsheet runs; a text is on one line, a missing value is empty.

    >>> [harmless(value) for value in ("=1+1", "\t@SUM(A1)", -0.5, float("nan"), "a\nb")]
    ["'=1+1", "'@SUM(A1)", -0.5, '', 'a b']
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if not isinstance(value, str):
        return value
    text = tidy(value, 4000)
    return f"'{text}" if is_formula(text) else text


def is_formula(text: str) -> bool:
    """Whether a spreadsheet could run a text: its first visible letter says so, full-width too."""
    visible = unicodedata.normalize("NFKC", text.lstrip("\u2066\u2067\u2068\u2069 "))
    return visible[:1] in tuple(FORMULA)


# --- Markdown -------------------------------------------------------------------------------------


def as_markdown(content: dict[str, Any]) -> str:
    """Write the report as Markdown, without pictures."""
    sections = [
        *answer_lines(content),
        *(line for part in content["tasks"] for line in task_lines(part, content["columns"])),
        *truth_lines(content["truth"]),
        "## Diagnosis",
        "",
        *(
            f"- **{said(own['advice'])}**: {' · '.join(map(said, own['findings']))}"
            for own in content["diagnosis"]
        ),
        "",
        "## Before deployment",
        "",
        *(
            f"- [{'x' if own['state'] == 'done' else ' '}] {said(own['point'])} "
            f"({own['state']}): {said(own['evidence'])}"
            for own in content["checklist"]
        ),
        "",
        "## Settings and provenance",
        "",
        table(
            ["fact", "value"],
            [[name, said_raw(value)] for name, value in content["provenance"].items()],
        ),
        "",
        table(["setting", "value"], [[own["name"], own["value"]] for own in content["settings"]]),
    ]
    return "\n".join(sections) + "\n"


def said_raw(value: Any) -> str:
    """Put a text on one line."""
    return tidy(str(value), 4000)


def said(text: Any) -> str:
    """Escape a text, so that Markdown shows it as it is."""
    return plain(said_raw(text))


def answer_lines(content: dict[str, Any]) -> list[str]:
    """Return the head of the page."""
    answer, facts = content["answer"], content["facts"]
    counts = ", ".join(f"{count} {name}" for name, count in facts.items())
    head = [
        f"# {said(content['title'])}",
        "",
        f"**{answer['badge']}.** {said(answer['headline'])}: {said(answer['reason'])}.",
        "",
        *accuracy_lines(content["accuracy"]),
        counts,
        "",
    ]
    if len(content["tasks"]) > 1:
        rows = [[part.title, part.chosen or "-", part.outcome] for part in content["tasks"]]
        head += [
            table(
                ["task", "recommended", "verdict"],
                [[said_raw(cell) for cell in row] for row in rows],
            ),
            "",
        ]
    return head


def accuracy_lines(accuracy: Mapping[str, Any] | None) -> list[str]:
    """How good the model itself is."""
    if accuracy is None:
        return ["The model itself: its accuracy is not known.", ""]
    warning = [f"**Caution:** {said(accuracy['warning'])}.", ""] if accuracy["warning"] else []
    return [f"The model itself: {said(accuracy['told'])}.", "", *warning]


def task_lines(part: Any, columns: list[dict[str, Any]]) -> list[str]:
    """Return one task: recommendation, table, reasons and examples."""
    lines = [f"## {said(part.title)}", ""]
    own = part.recommendation
    if own is not None:
        lines += [
            f"Recommended: **{said(own.chosen)}**, because {said(own.reason)}. "
            f"The paper: {said(own.paper)}.",
            "",
        ]
        lines += [f"- not {said(name)}: {said(why)}" for name, why in own.others.items()]
        lines += [f"- disagreement: {said(each)}" for each in own.disagreements]
    rows = [[line.explainer, *map(score_text, line.scores)] for line in part.lines]
    lines += [
        "",
        table(["explainer", *(column["title"] for column in columns)], rows),
        "",
        "✓ pass, ! caution, ✗ below threshold, – not judged.",
        "",
    ]
    lines += [f"- {example_text(example)}" for example in part.examples]
    return [*lines, ""]


def truth_lines(tables: list[dict[str, Any]]) -> list[str]:
    """Return the agreement with a known truth, if there is one."""
    lines = ["## Agreement with the known truth", ""] if tables else []
    for own in tables:
        rows = [
            [said_raw(line["explainer"]), *(score["text"] for score in line["scores"])]
            for line in own["lines"]
        ]
        lines += [said(own["task"]), ""] if own["task"] else []
        lines += [table(["explainer", *(column["title"] for column in own["columns"])], rows), ""]
        lines += [*(f"- {column['title']}: {column['meaning']}" for column in own["columns"]), ""]
    return lines


def score_text(own: Score) -> str:
    """Return a cell: value, n and verdict.

    >>> score_text(Score("edge_ec", 3.25, 9, None, None, {}, "warn", 5.0, "", ""))
    '3.25 (n 9) !'
    """
    return f"{number(own.mean)} (n {own.n}) {MARKS[own.outcome]}" if own.mean is not None else "–"


def example_text(example: Any) -> str:
    """Return one explanation in a line."""
    sentences = said(example.text.replace("\n", " ")) if example.text else ""
    pertinence = number(example.pertinence)
    head = f"{example.end}: {said(example.target)} (pertinence {pertinence})."
    return f"{head} {sentences}".strip()


def number(value: float | None) -> str:
    """Format a number with three digits; a dash if there is none.

    >>> number(0.98765), number(1234.5), number(None), number(0.0)
    ('0.988', '1,234', '–', '0')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
