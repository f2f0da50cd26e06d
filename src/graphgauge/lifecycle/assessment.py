"""Assess a project: measure its explainers, judge them, and recommend one of them.

The exit code is about the recommended explainer: 0 if it meets every threshold, 1 if it does not
(then none does), 3 if something could not be judged. The other explainers serve as comparison and
may fail; `graphgauge check` judges all of them. An explainer that cannot be run on the network is
left out. A pass without it is incomplete: 3.

A folder holds the results (`Results.save`), and in ``project.json`` what they are about: the
project, the checksums of its files, the requirements and versions.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from graphgauge.core import (
    BadFile,
    BadModel,
    GraphgaugeError,
    JsonObject,
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
    """Results and conclusions.

    ``check`` is about the recommended explainer, ``verdicts`` about all of them.
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
        """How good the network itself is, where the data hold labels."""
        return self.results.accuracy

    @property
    def code(self) -> int:
        """The exit code: 0, 1 or 3."""
        return (
            EXIT_INCOMPLETE
            if self.left_out and self.check.code == EXIT_COMPLETE
            else self.check.code
        )

    @property
    def reason(self) -> str:
        """The reason for the exit code, without a full stop."""
        gaps = f", but {', '.join(self.left_out)} could not be run" if self.left_out else ""
        return self.check.reason + gaps

    def save(self, folder: str | os.PathLike[str], project: Project, replace: bool = False) -> None:
        """Write the results and what they are about.

        Args:
            folder: Where to write.
            project: The assessed project; its names appear in the kept examples.
            replace: Whether to take the place of an earlier run in the folder.

        Raises:
            BadFile: The folder holds a run and ``replace`` is False, or it cannot be written to.
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


def assess(
    project: Project,
    tell: Callable[[str], None] = lambda text: None,
    keep_in: str | os.PathLike[str] | None = None,
) -> Assessment:
    """Measure and judge a project.

    Args:
        project: The project.
        tell: Called with a line about each step.
        keep_in: A folder for what is finished, from which a stopped call continues; see
            `Evaluator.compare`.

    Raises:
        BadModel: No explainer can be run on the network.
    """
    model = project.model()
    tell(f"model: {model!r} on {model.source.device}")
    check_names_fit_model(project.names(model), model)  # not after an hour of measuring
    targets = project.targets(model)
    explainers, left_out = split_usable_explainers(project.explainers(), model, targets[0])
    for name, why in left_out.items():
        tell(f"{name} is left out: {why}")
    tell(f"measuring {', '.join(explainers)} on {len(targets)} {model.level} targets")
    results = project.evaluator(model).compare(explainers, targets, keep_in=keep_in)
    return _judge_results(results, project.requirements(model), left_out)


def split_usable_explainers(
    explainers: Mapping[str, BaseExplainer], model: BaseModel, target: Target
) -> tuple[dict[str, BaseExplainer], dict[str, str]]:
    """Return the explainers that can be run on a network, and why the others cannot.

    Args:
        explainers: The explainers by the names that results show.
        model: The wrapped network.
        target: The target that each explainer is tried on.

    Raises:
        BadModel: No explainer can be run on the network.
    """
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
    """Return why an explainer cannot be run; '' if it can."""
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
    """Judge, recommend and diagnose, from the results of one task."""
    try:
        chosen = recommend(results, wanted)[0]
        answer = check(results, wanted, [chosen.chosen])
    except UndefinedScore as error:
        chosen, answer = None, CheckAnswer(EXIT_INCOMPLETE, (), str(error).rstrip("."))
    every, findings = tuple(verdicts(results, wanted)), tuple(diagnose(results, wanted))
    return Assessment(results, wanted, every, answer, chosen, findings, left_out or {})


def stored_requirements(folder: str | os.PathLike[str]) -> JsonObject:
    """Return the requirements of a saved assessment or validation, as keywords of `Requirements`.

    Returns {} if the folder does not say.
    """
    path = Path(folder) / PROJECT_RECORD_FILE
    if not path.exists():
        return Decision.read(folder).requirements if (Path(folder) / DECISION_FILE).exists() else {}
    try:
        found: JsonObject = json.loads(path.read_text(encoding="utf-8"))["requirements"]
        Requirements(**found)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BadFile(
            f"{path} does not say what the run was judged by: {error}. "
            "Remove it, or evaluate again."
        ) from error
    return found


def stored_accuracy(folder: str | os.PathLike[str]) -> float | None:
    """Return the accuracy, or r2, that an earlier version noted.

    Newer versions keep it with the results.
    """
    path = Path(folder) / PROJECT_RECORD_FILE
    try:
        found = (
            json.loads(path.read_text(encoding="utf-8")).get("accuracy") if path.exists() else None
        )
    except (OSError, ValueError, AttributeError) as error:
        raise BadFile(f"{path} cannot be read: {error}. Remove it, or evaluate again.") from error
    return float(found) if isinstance(found, (int, float)) and 0 <= found <= 1 else None


def _assessment_record(project: Project, wanted: Requirements) -> JsonObject:
    """Return what results are about, as plain data."""
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
