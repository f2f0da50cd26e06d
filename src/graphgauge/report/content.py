"""What a report says, as plain data: every format writes the same content.

answer       the outcome over all tasks, in a sentence, with its reason
tasks        of each task: the recommendation, the table with verdicts, Pareto fronts, the worst and the best explanations
overall      means over tasks and networks, where there are several
truth        agreement with a known truth, of the tasks that have one; no verdict reads it
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
    """What a report was asked for beside the results."""

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
        """The name of the task, else its kind."""
        return self.task or self.kind or "this task"

    @property
    def chosen(self) -> str:
        """The recommended explainer; '' where there is none."""
        return "" if self.recommendation is None else self.recommendation.chosen


def content_of(given: Results, asked: Asked) -> dict[str, Any]:
    """Everything a report says."""
    if not given.rows:
        raise UndefinedScore(
            "a report needs rows, but these results have none: did the run write any?"
        )
    clean = cleaned(given)
    results, wanted = clean.results, known_requirements(given, asked.requirements)
    found = of_run(results, wanted, merge_models=True)
    numbers = {
        name: k for k, name in enumerate(dict.fromkeys(row.explainer for row in results.rows), 1)
    }
    stage = Stage(
        results, wanted, found.pertinence, clean.given, asked.names, asked.language, asked.audience
    )
    study, accuracy = study_of(results), asked.accuracy or given.accuracy
    parts = [part_of(found, task, numbers, stage, study) for task in study.tasks]
    return {
        "format": FORMAT,
        "title": asked.title,
        "answer": with_doubt(answer(parts), accuracy),
        "accuracy": None
        if accuracy is None
        else {"told": str(accuracy), "warning": accuracy.warning, **accuracy.record()},
        "facts": facts(results, parts),
        "explainers": [{"number": number, "name": name} for name, number in numbers.items()],
        "columns": [heading(metric) for metric in found.judged()],
        "tasks": parts,
        "overall": overall(results, found, numbers) if len(parts) > 1 else [],
        "truth": truth_tables(found, study.tasks),
        "targets": packed(results, found.judged(), stage.called, stage.level),
        "diagnosis": grouped(diagnose(results, wanted, accuracy)),
        "checklist": [vars(point) for point in points(results, wanted)],
        "requirements": wanted.record(),
        "settings": settings_of(results),
        "provenance": provenance(given, asked.run),
        "is_shown": any(
            example.text or example.pictures for part in parts for example in part.examples
        ),
    }


def known_requirements(results: Results, wanted: Requirements) -> Requirements:
    """The requirements, with what the model says of the task and of its features."""
    kinds = kinds_of(results)
    if len(kinds) != 1:
        return wanted
    ((kind, size),) = kinds
    return replace(
        wanted, task_kind=wanted.task_kind or kind, num_features=wanted.num_features or size
    )


def kinds_of(results: Results) -> set[tuple[str, int]]:
    """Kinds of tasks and numbers of features, from the model or from what a saved run has kept."""
    if results.source is not None:
        model = results.source.evaluator.model
        return {(f"{model.level}_{model.task}", int(model.source.x.size(1)))}
    told = [(kept["facts"], kept["num_features"]) for kept in results.kept().values()]
    return {
        (f"{facts['level']}_{facts['task']}", size) for facts, size in told if facts is not None
    }


def part_of(
    found: Measured, task: str, numbers: dict[str, int], stage: Stage, study: Study
) -> Part:
    """One task: who to use, the numbers of all, and examples."""
    part = brief(stage.results, found, task, stage.wanted, numbers)
    chosen = part.recommendation.chosen if part.recommendation is not None else ""
    return replace(
        part,
        drawings=drawings(study.only(task=task), found.pertinence, numbers, stage.wanted.baseline),
        examples=stage.examples(task, chosen) if chosen else [],
    )


def brief(
    results: Results, found: Measured, task: str, wanted: Requirements, numbers: dict[str, int]
) -> Part:
    """One task without pictures and examples."""
    own = recommended(found, task, wanted)
    rows = [row for row in results.rows if row.task == task]
    return Part(
        task=task,
        kind=(found.kinds.get(task) or "").replace("_", " "),
        outcome=worst(own.verdicts) if own is not None else NOT_APPLICABLE,
        recommendation=own,
        networks=list(dict.fromkeys(row.model for row in rows)),
        num_targets=len({row.target for row in rows}),
        lines=board(found, task, wanted, numbers, own.chosen if own is not None else ""),
        drawings=[],
        examples=[],
    )


def recommended(found: Measured, task: str, wanted: Requirements) -> Recommendation | None:
    """The recommendation for a task; None where nothing of it was measured."""
    try:
        return recommend_for(found, task, wanted)
    except UndefinedScore:
        return None


def answer(parts: list[Part]) -> dict[str, Any]:
    """One sentence for the whole run: the worst outcome over tasks decides."""
    outcome = max((part.outcome for part in parts), key=OUTCOMES.index)
    told = [part.recommendation for part in parts if part.recommendation is not None]
    if not told:
        headline, reason = (
            "No explainer can be recommended",
            "no explainer has a value of any quality metric",
        )
    elif len(parts) == 1:
        headline, reason = ANSWERS[outcome].format(name=told[0].chosen), told[0].reason
    else:
        headline, reason = (
            over_tasks(outcome, parts),
            told[0].reason if len(told) == 1 else "see the table of tasks",
        )
    verdicts = [verdict for own in told for verdict in own.verdicts]
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


def with_doubt(found: dict[str, Any], accuracy: ModelAccuracy | None) -> dict[str, Any]:
    """The answer, which is no clear pass where the model itself is poor."""
    if accuracy is None or not accuracy.is_poor or found["outcome"] != PASS:
        return found
    return {
        **found,
        "outcome": WARN,
        "badge": BADGES[WARN],
        "headline": f"{found['headline']}, but the model itself is poor",
    }


def over_tasks(outcome: str, parts: list[Part]) -> str:
    """The headline of several tasks."""
    chosen = dict.fromkeys(part.chosen for part in parts if part.chosen)
    if len(chosen) > 1:
        return f"{len(parts)} tasks, {len(chosen)} different choices: see each task"
    return ANSWERS[outcome].format(name=next(iter(chosen))) + f" ({len(parts)} tasks)"


def facts(results: Results, parts: list[Part]) -> dict[str, int]:
    """How much was measured."""
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


def overall(results: Results, found: Measured, numbers: dict[str, int]) -> list[dict[str, Any]]:
    """Mean and SD over (task, network) of every explainer, with n."""
    table = results.summary()
    lines = []
    for name, number in numbers.items():
        own = table.loc[name]
        cells = [
            own.loc[metric].to_dict() if metric in own.index else None for metric in found.judged()
        ]
        scores = [
            cell and {key: cell[key] for key in ("mean", "sd", "n", "missing")} for cell in cells
        ]
        lines.append({"number": number, "explainer": name, "scores": scores})
    return lines


def grouped(found: list[Finding]) -> list[dict[str, Any]]:
    """Findings that are about one thing, together."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in found:
        groups.setdefault((finding.name, finding.advice), []).append(finding)
    return [
        {
            "name": name,
            "advice": advice,
            "source": own[0].source,
            "findings": [finding.text for finding in own],
        }
        for (name, advice), own in groups.items()
    ]


def points(results: Results, wanted: Requirements) -> list[Any]:
    """The checklist before deployment; empty where nothing can be recommended."""
    try:
        return checklist(results, requirements=wanted)
    except UndefinedScore:
        return []
