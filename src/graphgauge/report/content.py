"""What a report says, as plain data. Every format writes the same content.

answer       the outcome over all tasks, in a sentence, with its reason
tasks        for each task: the recommendation, the table with verdicts, Pareto fronts, and the
             worst and the best explanations
overall      means over tasks and networks, if there are several
truth        agreement with a known truth, for tasks that have one; no verdict uses it
targets      the numbers of single targets
diagnosis, checklist, requirements, settings, provenance
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graphgauge.benchmark.study import Study, study_of
from graphgauge.core.errors import UndefinedScore
from graphgauge.core.verdicts import FAIL, NOT_APPLICABLE, OUTCOMES, PASS, UNDECIDED, WARN, worst
from graphgauge.evaluation import ModelAccuracy, Results
from graphgauge.guidelines import Recommendation, Requirements, checklist, diagnose
from graphgauge.guidelines.findings import Finding
from graphgauge.guidelines.measures import Measured, of_run
from graphgauge.guidelines.recommendation import recommend_for
from graphgauge.narrative import Names
from graphgauge.report.boards import Line, board, heading
from graphgauge.report.cleaned import cleaned
from graphgauge.report.provenance import provenance, settings_of
from graphgauge.report.scatter import drawings
from graphgauge.report.showcase import Example, Stage
from graphgauge.report.targets import packed
from graphgauge.report.truth_table import truth_tables

FORMAT = "graphgauge.report/1"
TITLE = "Quality of explanations"
#: an outcome as one word or two
BADGES = {
    PASS: "Pass",
    WARN: "Caution",
    UNDECIDED: "Undecided",
    FAIL: "Below threshold",
    NOT_APPLICABLE: "Not judged",
}
#: what an outcome means for the explainer that comes first
ANSWERS = {
    PASS: "Use {name}",
    WARN: "Use {name}, with care",
    UNDECIDED: "Undecided; {name} comes first",
    FAIL: "No explainer meets every threshold; {name} comes first",
    NOT_APPLICABLE: "{name} comes first, but no number could be judged",
}


@dataclass(frozen=True)
class Asked:
    """What the user asked for beside the results."""

    requirements: Requirements = field(default_factory=Requirements)
    accuracy: ModelAccuracy | None = None
    names: Names | Mapping[str, Any] | None = None
    title: str = TITLE
    language: str = "en"
    audience: str = "expert"
    run: str | os.PathLike[str] | None = None  #: the folder the results were read from


@dataclass(frozen=True)
class Part:
    """One task."""

    task: str
    kind: str
    outcome: str
    recommendation: Recommendation | None
    networks: list[str]
    num_targets: int
    lines: list[Line]
    drawings: list[dict[str, Any]]
    examples: list[Example]

    @property
    def title(self) -> str:
        """The name of the task, or its kind."""
        return self.task or self.kind or "this task"

    @property
    def chosen(self) -> str:
        """The recommended explainer; '' if there is none."""
        return "" if self.recommendation is None else self.recommendation.chosen


def content_of(original: Results, asked: Asked) -> dict[str, Any]:
    """Collect everything that a report says."""
    if not original.rows:
        raise UndefinedScore(
            "a report needs rows, but these results have none: did the run write any?"
        )
    sanitized = cleaned(original)
    results, requirements = sanitized.results, known_requirements(original, asked.requirements)
    measured = of_run(results, requirements, merge_models=True)
    numbers = {
        name: k for k, name in enumerate(dict.fromkeys(row.explainer for row in results.rows), 1)
    }
    stage = Stage(
        results,
        requirements,
        measured.pertinence,
        sanitized.given,
        asked.names,
        asked.language,
        asked.audience,
    )
    study, accuracy = study_of(results), asked.accuracy or original.accuracy
    parts = [part_of(measured, task, numbers, stage, study) for task in study.tasks]
    return {
        "format": FORMAT,
        "title": asked.title,
        "answer": with_doubt(answer(parts), accuracy),
        "accuracy": None
        if accuracy is None
        else {"told": str(accuracy), "warning": accuracy.warning, **accuracy.record()},
        "facts": facts(results, parts),
        "explainers": [{"number": number, "name": name} for name, number in numbers.items()],
        "columns": [heading(metric) for metric in measured.judged()],
        "tasks": parts,
        "overall": overall(results, measured, numbers) if len(parts) > 1 else [],
        "truth": truth_tables(measured, study.tasks),
        "targets": packed(results, measured.judged(), stage.called, stage.level),
        "diagnosis": grouped(diagnose(results, requirements, accuracy)),
        "checklist": [vars(point) for point in points(results, requirements)],
        "requirements": requirements.record(),
        "settings": settings_of(results),
        "provenance": provenance(original, asked.run),
        "is_shown": any(
            example.text or example.pictures for part in parts for example in part.examples
        ),
    }


def known_requirements(results: Results, wanted: Requirements) -> Requirements:
    """Complete the requirements with the kind of task and the number of features."""
    kinds = kinds_of(results)
    if len(kinds) != 1:
        return wanted
    ((kind, size),) = kinds
    return replace(
        wanted, task_kind=wanted.task_kind or kind, num_features=wanted.num_features or size
    )


def kinds_of(results: Results) -> set[tuple[str, int]]:
    """Return kinds of tasks with numbers of features, from the model or from saved examples."""
    if results.source is not None:
        model = results.source.evaluator.model
        return {(f"{model.level}_{model.task}", int(model.source.x.size(1)))}
    kept_facts = [(kept["facts"], kept["num_features"]) for kept in results.kept().values()]
    return {
        (f"{facts['level']}_{facts['task']}", size)
        for facts, size in kept_facts
        if facts is not None
    }


def part_of(
    measured: Measured, task: str, numbers: dict[str, int], stage: Stage, study: Study
) -> Part:
    """Collect what the report says about one task."""
    part = brief(stage.results, measured, task, stage.wanted, numbers)
    chosen = part.recommendation.chosen if part.recommendation is not None else ""
    return replace(
        part,
        drawings=drawings(
            study.only(task=task), measured.pertinence, numbers, stage.wanted.baseline
        ),
        examples=stage.examples(task, chosen) if chosen else [],
    )


def brief(
    results: Results, measured: Measured, task: str, wanted: Requirements, numbers: dict[str, int]
) -> Part:
    """Collect the same without pictures and examples."""
    recommendation = recommended(measured, task, wanted)
    rows = [row for row in results.rows if row.task == task]
    return Part(
        task=task,
        kind=(measured.kinds.get(task) or "").replace("_", " "),
        outcome=worst(recommendation.verdicts) if recommendation is not None else NOT_APPLICABLE,
        recommendation=recommendation,
        networks=list(dict.fromkeys(row.model for row in rows)),
        num_targets=len({row.target for row in rows}),
        lines=board(
            measured,
            task,
            wanted,
            numbers,
            recommendation.chosen if recommendation is not None else "",
        ),
        drawings=[],
        examples=[],
    )


def recommended(measured: Measured, task: str, wanted: Requirements) -> Recommendation | None:
    """Return the recommendation for a task; None if no quality was measured."""
    try:
        return recommend_for(measured, task, wanted)
    except UndefinedScore:
        return None


def answer(parts: list[Part]) -> dict[str, Any]:
    """Answer for the whole run: the worst outcome over tasks decides."""
    outcome = max((part.outcome for part in parts), key=OUTCOMES.index)
    recommendations = [part.recommendation for part in parts if part.recommendation is not None]
    if not recommendations:
        headline, reason = (
            "No explainer can be recommended",
            "no explainer has a value of any quality metric",
        )
    elif len(parts) == 1:
        headline, reason = (
            ANSWERS[outcome].format(name=recommendations[0].chosen),
            recommendations[0].reason,
        )
    else:
        headline, reason = (
            over_tasks(outcome, parts),
            recommendations[0].reason if len(recommendations) == 1 else "see the table of tasks",
        )
    verdicts = [
        verdict for recommendation in recommendations for verdict in recommendation.verdicts
    ]
    counts = {
        name: sum(verdict.outcome == name for verdict in verdicts)
        for name in (PASS, WARN, UNDECIDED, FAIL, NOT_APPLICABLE)
    }
    return {
        "outcome": outcome,
        "badge": BADGES[outcome],
        "headline": headline,
        "reason": reason,
        "counts": counts,
    }


def with_doubt(answered: dict[str, Any], accuracy: ModelAccuracy | None) -> dict[str, Any]:
    """Lower a clear pass to "with care" if the model itself is poor."""
    if accuracy is None or not accuracy.is_poor or answered["outcome"] != PASS:
        return answered
    return {
        **answered,
        "outcome": WARN,
        "badge": BADGES[WARN],
        "headline": f"{answered['headline']}, but the model itself is poor",
    }


def over_tasks(outcome: str, parts: list[Part]) -> str:
    """Return the headline for several tasks."""
    chosen = dict.fromkeys(part.chosen for part in parts if part.chosen)
    if len(chosen) > 1:
        return f"{len(parts)} tasks, {len(chosen)} different choices: see each task"
    return ANSWERS[outcome].format(name=next(iter(chosen))) + f" ({len(parts)} tasks)"


def facts(results: Results, parts: list[Part]) -> dict[str, int]:
    """Count what was measured."""
    return {
        "tasks": len(parts),
        "networks": len({(row.task, row.model) for row in results.rows}),
        "explainers": len({row.explainer for row in results.rows}),
        "targets": len({(row.task, row.target) for row in results.rows}),
        "explanations": len(
            {
                (row.task, row.model, row.explainer, row.target, row.occurrence)
                for row in results.rows
            }
        ),
    }


def overall(results: Results, measured: Measured, numbers: dict[str, int]) -> list[dict[str, Any]]:
    """Return mean and SD over (task, network) of every explainer, with n."""
    table = results.summary()
    lines = []
    for name, number in numbers.items():
        explainer_table = table.loc[name]
        cells = [
            explainer_table.loc[metric].to_dict() if metric in explainer_table.index else None
            for metric in measured.judged()
        ]
        scores = [
            cell and {key: cell[key] for key in ("mean", "sd", "n", "missing")} for cell in cells
        ]
        lines.append({"number": number, "explainer": name, "scores": scores})
    return lines


def grouped(findings: list[Finding]) -> list[dict[str, Any]]:
    """Group findings with the same name and advice."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.name, finding.advice), []).append(finding)
    return [
        {
            "name": name,
            "advice": advice,
            "source": members[0].source,
            "findings": [finding.text for finding in members],
        }
        for (name, advice), members in groups.items()
    ]


def points(results: Results, wanted: Requirements) -> list[Any]:
    """Return the checklist before deployment; empty if nothing can be recommended."""
    try:
        return checklist(results, requirements=wanted)
    except UndefinedScore:
        return []
