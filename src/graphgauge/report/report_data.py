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
from dataclasses import dataclass, field, replace

from graphgauge.benchmark import Study, as_study
from graphgauge.core import (
    FAIL,
    NOT_APPLICABLE,
    OUTCOMES,
    PASS,
    UNDECIDED,
    WARN,
    UndefinedScore,
    worst_outcome,
)
from graphgauge.evaluation import ModelAccuracy, Results
from graphgauge.guidelines import (
    AggregatedScores,
    ChecklistItem,
    Finding,
    Recommendation,
    Requirements,
    aggregate_run,
    checklist,
    diagnose,
    recommend_for,
)
from graphgauge.narrative import NamesLike
from graphgauge.plots import front_drawings
from graphgauge.report.examples import Example, ExampleBuilder
from graphgauge.report.ground_truth_table import build_truth_tables
from graphgauge.report.provenance import provenance_facts, settings_table
from graphgauge.report.sanitize import sanitize_results
from graphgauge.report.score_table import ExplainerScores, Record, build_score_table, column_heading
from graphgauge.report.target_picker import pack_targets

_REPORT_FORMAT = "graphgauge.report/1"
DEFAULT_TITLE = "Quality of explanations"
#: an outcome as one word or two
VERDICT_BADGES = {
    PASS: "Pass",
    WARN: "Caution",
    UNDECIDED: "Undecided",
    FAIL: "Below threshold",
    NOT_APPLICABLE: "Not judged",
}
#: what an outcome means for the explainer that comes first
_ANSWER_HEADLINES = {
    PASS: "Use {name}",
    WARN: "Use {name}, with care",
    UNDECIDED: "Undecided; {name} comes first",
    FAIL: "No explainer meets every threshold; {name} comes first",
    NOT_APPLICABLE: "{name} comes first, but no number could be judged",
}


@dataclass(frozen=True)
class ReportOptions:
    """What the user asked for beside the results."""

    requirements: Requirements = field(default_factory=Requirements)
    accuracy: ModelAccuracy | None = None
    names: NamesLike = None
    title: str = DEFAULT_TITLE
    language: str = "en"
    audience: str = "expert"
    run: str | os.PathLike[str] | None = None  #: the folder the results were read from


@dataclass(frozen=True)
class TaskReport:
    """One task."""

    task: str
    kind: str
    outcome: str
    recommendation: Recommendation | None
    networks: list[str]
    num_targets: int
    lines: list[ExplainerScores]
    drawings: list[Record]
    examples: list[Example]

    @property
    def title(self) -> str:
        """The name of the task, or its kind."""
        return self.task or self.kind or "this task"

    @property
    def chosen(self) -> str:
        """The recommended explainer; '' if there is none."""
        return "" if self.recommendation is None else self.recommendation.chosen


def build_report_data(original: Results, asked: ReportOptions) -> Record:
    """Collect everything that a report says."""
    if not original.rows:
        raise UndefinedScore(
            "a report needs rows, but these results have none: did the run write any?"
        )
    sanitized = sanitize_results(original)
    results, requirements = sanitized.results, _complete_requirements(original, asked.requirements)
    measured = aggregate_run(results, requirements, merge_models=True)
    numbers = {
        name: k for k, name in enumerate(dict.fromkeys(row.explainer for row in results.rows), 1)
    }
    stage = ExampleBuilder(
        results,
        requirements,
        measured.pertinence,
        sanitized.original_key,
        asked.names,
        asked.language,
        asked.audience,
    )
    study, accuracy = as_study(results), asked.accuracy or original.accuracy
    parts = [_build_task_report(measured, task, numbers, stage, study) for task in study.tasks]
    return {
        "format": _REPORT_FORMAT,
        "title": asked.title,
        "answer": _weaken_for_poor_model(overall_answer(parts), accuracy),
        "accuracy": None
        if accuracy is None
        else {"told": str(accuracy), "warning": accuracy.warning, **accuracy.record()},
        "facts": count_measured(results, parts),
        "explainers": [{"number": number, "name": name} for name, number in numbers.items()],
        "columns": [column_heading(metric) for metric in measured.judged_metrics()],
        "tasks": parts,
        "overall": _means_over_tasks(results, measured, numbers) if len(parts) > 1 else [],
        "truth": build_truth_tables(measured, study.tasks),
        "targets": pack_targets(
            results, measured.judged_metrics(), stage.resolved_names, stage.level
        ),
        "diagnosis": _group_findings(diagnose(results, requirements, accuracy)),
        "checklist": [vars(point) for point in _checklist_points(results, requirements)],
        "requirements": requirements.record(),
        "settings": settings_table(results),
        "provenance": provenance_facts(original, asked.run),
        "is_shown": any(
            example.text or example.pictures for part in parts for example in part.examples
        ),
    }


def _complete_requirements(results: Results, wanted: Requirements) -> Requirements:
    """Complete the requirements with the kind of task and the number of features."""
    kinds = _task_kinds_of(results)
    if len(kinds) != 1:
        return wanted
    ((kind, size),) = kinds
    return replace(
        wanted, task_kind=wanted.task_kind or kind, num_features=wanted.num_features or size
    )


def _task_kinds_of(results: Results) -> set[tuple[str, int]]:
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


def _build_task_report(
    measured: AggregatedScores,
    task: str,
    numbers: dict[str, int],
    stage: ExampleBuilder,
    study: Study,
) -> TaskReport:
    """Collect what the report says about one task."""
    part = summarize_task(stage.results, measured, task, stage.requirements, numbers)
    chosen = part.recommendation.chosen if part.recommendation is not None else ""
    return replace(
        part,
        drawings=front_drawings(
            study.only(task=task), measured.pertinence, numbers, stage.requirements.baseline
        ),
        examples=stage.examples(task, chosen) if chosen else [],
    )


def summarize_task(
    results: Results,
    measured: AggregatedScores,
    task: str,
    wanted: Requirements,
    numbers: dict[str, int],
) -> TaskReport:
    """Collect the same without pictures and examples."""
    recommendation = _recommend_or_none(measured, task, wanted)
    rows = [row for row in results.rows if row.task == task]
    return TaskReport(
        task=task,
        kind=(measured.kinds.get(task) or "").replace("_", " "),
        outcome=worst_outcome(recommendation.verdicts)
        if recommendation is not None
        else NOT_APPLICABLE,
        recommendation=recommendation,
        networks=list(dict.fromkeys(row.model for row in rows)),
        num_targets=len({row.target for row in rows}),
        lines=build_score_table(
            measured,
            task,
            wanted,
            numbers,
            recommendation.chosen if recommendation is not None else "",
        ),
        drawings=[],
        examples=[],
    )


def _recommend_or_none(
    measured: AggregatedScores, task: str, wanted: Requirements
) -> Recommendation | None:
    """Return the recommendation for a task; None if no quality was measured."""
    try:
        return recommend_for(measured, task, wanted)
    except UndefinedScore:
        return None


def overall_answer(parts: list[TaskReport]) -> Record:
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
            _ANSWER_HEADLINES[outcome].format(name=recommendations[0].chosen),
            recommendations[0].reason,
        )
    else:
        headline, reason = (
            _headline_over_tasks(outcome, parts),
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
        "badge": VERDICT_BADGES[outcome],
        "headline": headline,
        "reason": reason,
        "counts": counts,
    }


def _weaken_for_poor_model(answered: Record, accuracy: ModelAccuracy | None) -> Record:
    """Lower a clear pass to "with care" if the model itself is poor."""
    if accuracy is None or not accuracy.is_poor or answered["outcome"] != PASS:
        return answered
    return {
        **answered,
        "outcome": WARN,
        "badge": VERDICT_BADGES[WARN],
        "headline": f"{answered['headline']}, but the model itself is poor",
    }


def _headline_over_tasks(outcome: str, parts: list[TaskReport]) -> str:
    """Return the headline for several tasks."""
    chosen = dict.fromkeys(part.chosen for part in parts if part.chosen)
    if len(chosen) > 1:
        return f"{len(parts)} tasks, {len(chosen)} different choices: see each task"
    return _ANSWER_HEADLINES[outcome].format(name=next(iter(chosen))) + f" ({len(parts)} tasks)"


def count_measured(results: Results, parts: list[TaskReport]) -> dict[str, int]:
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


def _means_over_tasks(
    results: Results, measured: AggregatedScores, numbers: dict[str, int]
) -> list[Record]:
    """Return mean and SD over (task, network) of every explainer, with n."""
    table = results.summary()
    lines = []
    for name, number in numbers.items():
        explainer_table = table.loc[name]
        cells = [
            explainer_table.loc[metric].to_dict() if metric in explainer_table.index else None
            for metric in measured.judged_metrics()
        ]
        scores = [
            cell and {key: cell[key] for key in ("mean", "sd", "n", "missing")} for cell in cells
        ]
        lines.append({"number": number, "explainer": name, "scores": scores})
    return lines


def _group_findings(findings: list[Finding]) -> list[Record]:
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


def _checklist_points(results: Results, wanted: Requirements) -> list[ChecklistItem]:
    """Return the checklist before deployment; empty if nothing can be recommended."""
    try:
        return checklist(results, requirements=wanted)
    except UndefinedScore:
        return []
