"""Advice before anything was measured: which explainer for which kind of task, from a benchmark."""

import json
from dataclasses import replace
from pathlib import Path

from graphgauge.cli.conventions import paint
from graphgauge.core.errors import BadFile
from graphgauge.guidelines import Recommendation, Requirements, consult, requirements_document


def run_consult(kind: str, requirements: Requirements, document: str | None) -> Recommendation:
    """The recommendation; with ``document`` also the requirements as a Markdown file."""
    found = consult(kind, requirements)
    if document is not None:
        write(document, requirements_document(found, replace(requirements, task_kind=kind)))
    return found


def write(path: str, text: str) -> None:
    """Write a file, or say why not."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadFile(f"{path} could not be written: {error}.") from error


def as_json(found: Recommendation) -> str:
    """The recommendation for programs."""
    return json.dumps(found.record(), indent=2, allow_nan=False)


def as_text(found: Recommendation) -> str:
    """The recommendation for people, with the verdicts on the chosen explainer."""
    return "\n".join(
        [
            str(found),
            "",
            f"{found.chosen}:",
            *(f"  {paint(own.outcome, 14)}  {own.reason}" for own in found.verdicts),
        ]
    )
