"""The assessment of a project: its explainers measured, judged against its thresholds, and one of
them recommended.

The answer is that of the recommended explainer: 0 it meets every threshold, 1 it does not (then
none does), 3 something could not be judged. The others are there to be compared with, and may fail;
`graphgauge check` judges them all. An explainer that cannot be run on this network is left out, and
a pass without it is incomplete: 3.

A folder keeps the results (`Results.save`), and in ``project.json`` what they are of: the project,
the checksums of its files, the requirements, versions.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphgauge.core import (
    BadFile,
    BadModel,
    GraphgaugeError,
    OutOfMemory,
    Target,
    UndefinedScore,
    Verdict,
    package_versions,
    sha256_of_file,
)
from graphgauge.evaluation import ModelAccuracy, Results
from graphgauge.explainers import BaseExplainer
from graphgauge.guidelines import (
    EXIT_COMPLETE,
    EXIT_INCOMPLETE,
    CheckAnswer,
    Finding,
    Recommendation,
    Requirements,
    check,
    diagnose,
    recommend,
    verdicts,
)
from graphgauge.lifecycle.decision import DECISION_FILE, Decision
from graphgauge.lifecycle.project import Project
from graphgauge.lifecycle.run_folder import PROJECT_RECORD_FILE, clear_folder
from graphgauge.models import BaseModel
from graphgauge.narrative import check_names_fit_model


@dataclass(frozen=True)
class Assessment:
    """What was measured, and what is thought of it. ``check`` is on the recommended explainer,
    ``verdicts`` on all.
    """

    results: Results
    requirements: Requirements
    verdicts: tuple[Verdict, ...]
    check: CheckAnswer
    recommendation: Recommendation | None
    findings: tuple[Finding, ...]
    left_out: Mapping[str, str]  #: explainers that cannot be run on this network, and why

    @property
    def accuracy(self) -> ModelAccuracy | None:
        """How good the network itself is, where the data say what is right."""
        return self.results.accuracy

    @property
    def code(self) -> int:
        """0, 1 or 3."""
        return (
            EXIT_INCOMPLETE
            if self.left_out and self.check.code == EXIT_COMPLETE
            else self.check.code
        )

    @property
    def reason(self) -> str:
        """Why, in a sentence without its full stop."""
        gaps = f", but {', '.join(self.left_out)} could not be run" if self.left_out else ""
        return self.check.reason + gaps

    def save(self, folder: str | os.PathLike[str], project: Project, replace: bool = False) -> None:
        """Write the results and what they are of; things in their examples are called as the
        project says.

        A folder that holds a run is refused; with ``replace`` this one takes its place (see
        `run_folder`).
        """
        clear_folder(folder, replace)
        self.results.save(folder, project.config.names)
        text = json.dumps(_assessment_record(project, self.requirements), indent=2, default=list)
        try:
            (Path(folder) / PROJECT_RECORD_FILE).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise BadFile(
                f"{Path(folder) / PROJECT_RECORD_FILE} could not be written: {error}."
            ) from error


def assess(project: Project, tell: Callable[[str], None] = lambda text: None) -> Assessment:
    """Measure and judge; ``tell`` hears what is being done."""
    model = project.model()
    tell(f"model: {model!r} on {model.source.device}")
    check_names_fit_model(project.names(model), model)  # not after an hour of measuring
    targets = project.targets(model)
    explainers, left_out = split_usable_explainers(project.explainers(), model, targets[0])
    for name, why in left_out.items():
        tell(f"{name} is left out: {why}")
    tell(f"measuring {', '.join(explainers)} on {len(targets)} {model.level} targets")
    results = project.evaluator(model).compare(explainers, targets)
    return _judge_results(results, project.requirements(model), left_out)


def split_usable_explainers(
    explainers: Mapping[str, BaseExplainer], model: BaseModel, target: Target
) -> tuple[dict[str, BaseExplainer], dict[str, str]]:
    """The explainers that can be run on a network, tried on one target, and why the others cannot."""
    tried = {
        name: _explainer_problem(explainer, model, target) for name, explainer in explainers.items()
    }
    left_out = {name: why for name, why in tried.items() if why}
    if len(left_out) == len(explainers):
        raise BadModel(
            "no explainer can be run on this network. "
            + " ".join(f"{name}: {why}" for name, why in left_out.items())
        )
    return {
        name: explainer for name, explainer in explainers.items() if name not in left_out
    }, left_out


def _explainer_problem(explainer: BaseExplainer, model: BaseModel, target: Target) -> str:
    """Why an explainer cannot be run; '' if it can."""
    try:
        explainer.explain(model, [target])
    except OutOfMemory:
        raise
    except GraphgaugeError as error:
        return str(error)
    except Exception as error:  # an explainer from elsewhere may raise anything
        return f"{type(error).__name__}: {error}"
    return ""


def _judge_results(
    results: Results, wanted: Requirements, left_out: Mapping[str, str] | None = None
) -> Assessment:
    """Verdicts, recommendation and diagnosis on results of one task."""
    try:
        chosen = recommend(results, wanted)[0]
        answer = check(results, wanted, [chosen.chosen])
    except UndefinedScore as error:
        chosen, answer = None, CheckAnswer(EXIT_INCOMPLETE, (), str(error).rstrip("."))
    every, findings = tuple(verdicts(results, wanted)), tuple(diagnose(results, wanted))
    return Assessment(results, wanted, every, answer, chosen, findings, left_out or {})


def stored_requirements(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What a saved assessment or validation was judged by, as keywords of `Requirements`; nothing
    where the folder does not say.
    """
    path = Path(folder) / PROJECT_RECORD_FILE
    if not path.exists():
        return Decision.read(folder).requirements if (Path(folder) / DECISION_FILE).exists() else {}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["requirements"]
        Requirements(**found)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BadFile(
            f"{path} does not say what the run was judged by: {error}. Remove it, or evaluate again."
        ) from error
    return found


def stored_accuracy(folder: str | os.PathLike[str]) -> float | None:
    """The accuracy, or r², that an assessment of an earlier version has noted; newer ones keep it
    with the results.
    """
    path = Path(folder) / PROJECT_RECORD_FILE
    try:
        found = (
            json.loads(path.read_text(encoding="utf-8")).get("accuracy") if path.exists() else None
        )
    except (OSError, ValueError, AttributeError) as error:
        raise BadFile(f"{path} cannot be read: {error}. Remove it, or evaluate again.") from error
    return float(found) if isinstance(found, (int, float)) and 0 <= found <= 1 else None


def _assessment_record(project: Project, wanted: Requirements) -> dict[str, Any]:
    """What results are of, as plain data."""
    form = project.config
    files = {
        name: project.folder / path
        for name, path in (("weights", form.weights), ("data", form.data))
        if path is not None
    }
    return {
        "project": form.model_dump(mode="json"),
        "sha256": {name: sha256_of_file(path) for name, path in files.items()},
        "requirements": wanted.record(),
        "device": str(project.device),
        "versions": package_versions(),
    }
