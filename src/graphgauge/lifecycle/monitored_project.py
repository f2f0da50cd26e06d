"""A project in use: the explainer and the limits that monitoring uses, and their validation.

A baseline takes explainer, limits and date from a decision. A run takes them from its baseline.
Without a decision, the project's explainer and thresholds are used.

A decision holds for one network, so a decision about another network is refused. Other data are
normal in use, because changes of data are what monitoring is about.
"""

from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from graphgauge.core import BadSetting, JsonObject, lookup
from graphgauge.evaluation import Evaluator, Results
from graphgauge.explainers import BaseExplainer, find_explainer
from graphgauge.guidelines import Requirements, aggregate_run, find_limit, load_guideline
from graphgauge.lifecycle.decision import Decision, parse_utc_time
from graphgauge.lifecycle.project import Project, candidate_targets
from graphgauge.models import BaseModel
from graphgauge.monitor import ExampleCallback, Snapshot, Threshold, ValidationRecord
from graphgauge.narrative import NamesLike
from graphgauge.report import ExampleBuilder, sanitize_results


@dataclass(frozen=True)
class MonitoredProject:
    """What a project is monitored with."""

    project: Project
    model: BaseModel
    explainer: BaseExplainer
    wanted: Requirements
    thresholds: dict[str, Threshold]
    validated: ValidationRecord | None = None

    @property
    def evaluator(self) -> Evaluator:
        """An Evaluator with the project's settings."""
        return self.project.evaluator(self.model)

    def pool(self, among: str | None) -> Tensor | None:
        """Return the targets to draw from; None: all.

        Args:
            among: Name of a tensor in the data; None: the one that the project names, if any.
        """
        name = among or self.project.config.targets.among
        return None if name is None else candidate_targets(self.model, name)

    def show(self) -> ExampleCallback:
        """Return the callback that selects what people see of a run."""
        return shown_examples(self.project.names(self.model), self.wanted)


def load_monitored_project(
    project: Project,
    *,
    decision: Decision | None = None,
    baseline: Snapshot | None = None,
    label: str | None = None,
) -> MonitoredProject:
    """Load what a project is monitored with.

    Args:
        project: The project.
        decision: Take explainer and limits from this decision.
        baseline: Otherwise, take them from this baseline.
        label: The explainer, as the project calls it, if neither says which one is in use.

    Raises:
        BadSetting: The decision is about another network, or ``label`` contradicts it.
    """
    model = _model_with_feature_names(project)
    if decision is not None:
        _check_decision_fits(decision, model, label)
        wanted = decision.wanted()
        return MonitoredProject(
            project,
            model,
            decision.chosen(),
            wanted,
            monitoring_thresholds(wanted),
            validation_from_decision(decision),
        )
    wanted = project.requirements(model)
    if baseline is not None and baseline.validated is not None:
        _check_explainer_label(label, baseline.validated.explainer)
        chosen = find_explainer(baseline.validated.explainer, **baseline.validated.parameters)
        return MonitoredProject(
            project, model, chosen, wanted, dict(baseline.plan.thresholds), baseline.validated
        )
    chosen = _explainer_in_use(project, label, baseline.facts.explainer if baseline else None)
    return MonitoredProject(project, model, chosen, wanted, monitoring_thresholds(wanted))


def validation_from_decision(decision: Decision) -> ValidationRecord:
    """Return the part of a decision that monitoring needs."""
    accepted = bool(decision.trade_off.get("is_accepted", True))
    made = parse_utc_time(decision.made)
    return ValidationRecord(
        made, decision.explainer, decision.parameters, decision.digest, decision.signed_by, accepted
    )


def _model_with_feature_names(project: Project) -> BaseModel:
    """Return the model with the project's names of features."""
    model = project.model()
    named: Any = project.names(model).features
    if named:
        model.feature_names = tuple(
            str(named.get(k, f"feature {k}")) for k in range(model.source.x.size(1))
        )
    return model


def _check_decision_fits(decision: Decision, model: BaseModel, label: str | None) -> None:
    """Raise `BadSetting` if a decision is about another network or another explainer."""
    others = [problem.message for problem in decision.changes(model) if problem.kind == "network"]
    if others:
        raise BadSetting(f"the decision is not about this network: {others[0]}")
    if label not in (None, decision.label):
        raise BadSetting(
            f"the decision chose {decision.label!r}, but --explainer says {label!r}: "
            "leave one of them out."
        )


def _check_explainer_label(label: str | None, decided: str) -> None:
    """Raise `BadSetting` if another explainer is named than the baseline's."""
    if label not in (None, decided):
        raise BadSetting(
            f"the baseline follows a decision for {decided!r}, but --explainer says {label!r}: "
            "leave it out."
        )


def monitoring_thresholds(wanted: Requirements) -> dict[str, Threshold]:
    """Return the limits of a use, without those that nothing can miss."""
    metrics = [entry["metric"] for entry in load_guideline("thresholds")["threshold"]]
    limits = {
        metric: find_limit(metric, wanted.task_kind, wanted)
        for metric in metrics
        if _is_judged_side(metric, wanted.focus)
    }
    return {
        metric: Threshold(limit.value, limit.direction)
        for metric, limit in limits.items()
        if not isinstance(limit, str) and not limit.never_fails
    }


def _is_judged_side(metric: str, focus: str | None) -> bool:
    """Whether a metric belongs to the side that is judged."""
    return focus is None or metric == "time" or metric.startswith(focus)


def _explainer_in_use(project: Project, label: str | None, known: str | None) -> BaseExplainer:
    """Return the explainer in use: by label, as at the baseline, or the only one beside chance."""
    offered = project.explainers()
    if label is not None:
        return lookup(offered, label, "explainer of the project")
    real = {name: own for name, own in offered.items() if own.name != project.config.use.baseline}
    same = [own for own in offered.values() if own.name == known]
    found = same if known is not None else list(real.values())
    if len(found) != 1:
        raise BadSetting(
            "which explainer is in use? Say --decision, or --explainer, "
            f"one of: {', '.join(offered)}."
        )
    return found[0]


# --- for people -----------------------------------------------------------------------------------


def shown_examples(names: NamesLike, wanted: Requirements) -> ExampleCallback:
    """Select the worst and the best explanations of a run, with sentences and pictures (SVG).

    Pass the result to ``Monitor.run(show=...)``.

    Args:
        names: Names of features, nodes and classes, for the sentences.
        wanted: Thresholds, for the verdicts.
    """

    def examples(results: Results) -> list[JsonObject]:
        clean = sanitize_results(results)
        stage = ExampleBuilder(
            clean.results,
            wanted,
            aggregate_run(clean.results, wanted).pertinence,
            clean.original_key,
            names,
        )
        row = clean.results.rows[0]
        return [asdict(example) for example in stage.examples(row.task, row.explainer)]

    return examples
