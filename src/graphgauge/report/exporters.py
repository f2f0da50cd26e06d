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
from typing import TYPE_CHECKING, Any

from graphgauge.guidelines import escape_markup, markdown_table
from graphgauge.narrative import tidy_text
from graphgauge.report.score_table import ExplainerScores, Record, ScoreCell

if TYPE_CHECKING:
    from graphgauge.report.examples import Example
    from graphgauge.report.report_data import TaskReport

_FORMULA_STARTS = "=+-@"
_CSV_COLUMNS = (
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
VERDICT_MARKS = {"pass": "✓", "warn": "!", "undecided": "?", "fail": "✗", "not applicable": "–"}


# --- JSON -----------------------------------------------------------------------------------------


def report_as_json(content: Record) -> str:
    """Write everything but pictures as JSON."""
    return json.dumps(replace_non_finite(content), indent=2, allow_nan=False) + "\n"


def replace_non_finite(value: Any) -> Any:
    """Return plain data without NaN, infinity and pictures.

    >>> replace_non_finite({"a": [float("nan"), 1.5], "pictures": {}})
    {'a': [None, 1.5]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return replace_non_finite(vars(value))
    if isinstance(value, Mapping):
        return {
            str(name): replace_non_finite(own) for name, own in value.items() if name != "pictures"
        }
    if isinstance(value, (list, tuple)):
        return [replace_non_finite(own) for own in value]
    if isinstance(value, float) or (hasattr(value, "item") and not isinstance(value, (str, bytes))):
        number = value.item() if hasattr(value, "item") else value
        return None if isinstance(number, float) and not math.isfinite(number) else number
    return value


# --- CSV ------------------------------------------------------------------------------------------


def report_as_csv(content: Record) -> str:
    """Write a row for each task, explainer and metric."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for part in content["tasks"]:
        for line in part.lines:
            writer.writerows(
                [_escape_formula(value) for value in _csv_row(part.title, line, score)]
                for score in line.scores
            )
    return file.getvalue()


def _csv_row(task: str, line: ExplainerScores, own: ScoreCell) -> list[object]:
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


def _escape_formula(value: Any) -> Any:
    r"""Make a cell that no spreadsheet runs; a text is on one line, a missing value is empty.

    >>> [_escape_formula(value) for value in ("=1+1", "\t@SUM(A1)", -0.5, float("nan"), "a\nb")]
    ["'=1+1", "'@SUM(A1)", -0.5, '', 'a b']
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if not isinstance(value, str):
        return value
    text = tidy_text(value, 4000)
    return f"'{text}" if _is_formula(text) else text


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet could run a text: its first visible letter says so, full-width too."""
    visible = unicodedata.normalize("NFKC", text.lstrip("\u2066\u2067\u2068\u2069 "))
    return visible[:1] in tuple(_FORMULA_STARTS)


# --- Markdown -------------------------------------------------------------------------------------


def report_as_markdown(content: Record) -> str:
    """Write the report as Markdown, without pictures."""
    sections = [
        *_answer_lines(content),
        *(line for part in content["tasks"] for line in _task_lines(part, content["columns"])),
        *_truth_lines(content["truth"]),
        "## Diagnosis",
        "",
        *(
            (
                f"- **{_escape_markdown(own['advice'])}**: "
                f"{' · '.join(map(_escape_markdown, own['findings']))}"
            )
            for own in content["diagnosis"]
        ),
        "",
        "## Before deployment",
        "",
        *(
            f"- [{'x' if own['state'] == 'done' else ' '}] {_escape_markdown(own['point'])} "
            f"({own['state']}): {_escape_markdown(own['evidence'])}"
            for own in content["checklist"]
        ),
        "",
        "## Settings and provenance",
        "",
        markdown_table(
            ["fact", "value"],
            [[name, _one_line(value)] for name, value in content["provenance"].items()],
        ),
        "",
        markdown_table(
            ["setting", "value"], [[own["name"], own["value"]] for own in content["settings"]]
        ),
    ]
    return "\n".join(sections) + "\n"


def _one_line(value: object) -> str:
    """Put a text on one line."""
    return tidy_text(str(value), 4000)


def _escape_markdown(text: object) -> str:
    """Escape a text, so that Markdown shows it as it is."""
    return escape_markup(_one_line(text))


def _answer_lines(content: Record) -> list[str]:
    """Return the head of the page."""
    answer, facts = content["answer"], content["facts"]
    counts = ", ".join(f"{count} {name}" for name, count in facts.items())
    head = [
        f"# {_escape_markdown(content['title'])}",
        "",
        (
            f"**{answer['badge']}.** {_escape_markdown(answer['headline'])}: "
            f"{_escape_markdown(answer['reason'])}."
        ),
        "",
        *_accuracy_lines(content["accuracy"]),
        counts,
        "",
    ]
    if len(content["tasks"]) > 1:
        rows = [[part.title, part.chosen or "-", part.outcome] for part in content["tasks"]]
        head += [
            markdown_table(
                ["task", "recommended", "verdict"],
                [[_one_line(cell) for cell in row] for row in rows],
            ),
            "",
        ]
    return head


def _accuracy_lines(accuracy: Record | None) -> list[str]:
    """How good the model itself is."""
    if accuracy is None:
        return ["The model itself: its accuracy is not known.", ""]
    warning = (
        [f"**Caution:** {_escape_markdown(accuracy['warning'])}.", ""]
        if accuracy["warning"]
        else []
    )
    return [f"The model itself: {_escape_markdown(accuracy['told'])}.", "", *warning]


def _task_lines(part: "TaskReport", columns: list[Record]) -> list[str]:
    """Return one task: recommendation, table, reasons and examples."""
    lines = [f"## {_escape_markdown(part.title)}", ""]
    own = part.recommendation
    if own is not None:
        lines += [
            f"Recommended: **{_escape_markdown(own.chosen)}**, because "
            f"{_escape_markdown(own.reason)}. The paper: {_escape_markdown(own.paper)}.",
            "",
        ]
        lines += [
            f"- not {_escape_markdown(name)}: {_escape_markdown(why)}"
            for name, why in own.others.items()
        ]
        lines += [f"- disagreement: {_escape_markdown(each)}" for each in own.disagreements]
    rows = [[line.explainer, *map(_score_text, line.scores)] for line in part.lines]
    lines += [
        "",
        markdown_table(["explainer", *(column["title"] for column in columns)], rows),
        "",
        "✓ pass, ! caution, ✗ below threshold, – not judged.",
        "",
    ]
    lines += [f"- {_example_text(example)}" for example in part.examples]
    return [*lines, ""]


def _truth_lines(tables: list[Record]) -> list[str]:
    """Return the agreement with a known truth, if there is one."""
    lines = ["## Agreement with the known truth", ""] if tables else []
    for own in tables:
        rows = [
            [_one_line(line["explainer"]), *(score["text"] for score in line["scores"])]
            for line in own["lines"]
        ]
        lines += [_escape_markdown(own["task"]), ""] if own["task"] else []
        lines += [
            markdown_table(["explainer", *(column["title"] for column in own["columns"])], rows),
            "",
        ]
        lines += [*(f"- {column['title']}: {column['meaning']}" for column in own["columns"]), ""]
    return lines


def _score_text(own: ScoreCell) -> str:
    """Return a cell: value, n and verdict.

    >>> _score_text(ScoreCell("edge_ec", 3.25, 9, None, None, {}, "warn", 5.0, "", ""))
    '3.25 (n 9) !'
    """
    return (
        f"{format_number(own.mean)} (n {own.n}) {VERDICT_MARKS[own.outcome]}"
        if own.mean is not None
        else "–"
    )


def _example_text(example: "Example") -> str:
    """Return one explanation in a line."""
    sentences = _escape_markdown(example.text.replace("\n", " ")) if example.text else ""
    pertinence = format_number(example.pertinence)
    head = f"{example.end}: {_escape_markdown(example.target)} (pertinence {pertinence})."
    return f"{head} {sentences}".strip()


def format_number(value: float | None) -> str:
    """Format a number with three digits; a dash if there is none.

    >>> format_number(0.98765), format_number(1234.5), format_number(None), format_number(0.0)
    ('0.988', '1,234', '–', '0')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
