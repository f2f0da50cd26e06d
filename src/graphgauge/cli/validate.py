"""Validation on the command line: from a project file to a decision, its summary, and the exit code
of the check.
"""

import json
from pathlib import Path
from typing import Any

from graphgauge.evaluation.accuracy import UNKNOWN
from graphgauge.lifecycle.consultation import told_list
from graphgauge.lifecycle.decision import FILE, Decision
from graphgauge.lifecycle.project import Project
from graphgauge.lifecycle.run_folder import PAGE, check_folder
from graphgauge.lifecycle.tracking import Tracker
from graphgauge.lifecycle.validation import Terms, Validation, validate


def run_validation(project: Project, terms: Terms) -> Validation:
    """Measure and decide. Explainers are the project's where its file names any, else the
    shortlist.
    """
    model = project.model()
    named = project.explainers() if "explainers" in project.form.model_fields_set else None
    return validate(
        project.evaluator(model),
        project.targets(model),
        named,
        project.requirements(model),
        terms,
        project.form.names,
    )


def output_folder(config: str, output: str | None, replace: bool = False) -> Path:
    """Where the files go: the folder 'validation' beside the project file, unless another one is
    asked for; refuses one in use.
    """
    return check_folder(output or Path(config).parent / "validation", replace)


def tracked(found: Validation, folder: Path, uri: str) -> str:
    """The validation in MLflow, with its files; the id of the run."""
    return Tracker(uri, experiment="graphgauge-validation").validation(found, folder)


def sign(path: str, by: str, again: bool = False) -> Decision:
    """Put a name under a decision, in its file; ``again``: although somebody has signed it."""
    place = Path(path) / FILE if Path(path).is_dir() else Path(path)
    signed = Decision.read(place).sign(by, again=again)
    signed.write(place)
    return signed


def as_record(found: Validation, folder: Path) -> dict[str, Any]:
    """The decision and where it is."""
    return {"code": found.check.code, "folder": str(folder), "decision": found.decision.record()}


def as_json(found: Validation, folder: Path) -> str:
    """For programs."""
    return json.dumps(as_record(found, folder), indent=2, allow_nan=False)


def as_text(found: Validation, folder: Path) -> str:
    """For people: the choice, its numbers, what stands out, and the files."""
    own = found.decision
    title, names = told_list(own.consultation)
    accuracy = own.accuracy_of_model()
    told = accuracy.told if accuracy is not None else UNKNOWN
    lines = [f"Chosen: {own.label}, because {own.reason}.", told, f"{title.capitalize()}: {names}."]
    lines += [f"  {verdict.outcome:<14}  {verdict.reason}" for verdict in found.check.verdicts]
    lines += [
        f"Beside the benchmark: {line.note}"
        for line in found.comparison
        if line.note and line.explainer == own.label
    ]
    lines.append(f"Production: {found.trade_off}.")
    signed = (
        f"signed by {own.signed_by}" if own.signed_by else "signed by nobody yet (graphgauge sign)"
    )
    return "\n".join(
        [
            *lines,
            f"{folder / FILE}: {signed}, holds until {own.expires}. To be read: {folder / PAGE}",
        ]
    )
