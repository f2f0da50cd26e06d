"""One explanation of a project: made, measured, judged, and described in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from graphgauge.core import FAIL, NOT_APPLICABLE, BadSetting, Verdict, Xplanation
from graphgauge.evaluation import Evaluator
from graphgauge.explainers import BaseExplainer, find_explainer
from graphgauge.guidelines import verdicts
from graphgauge.lifecycle.project import Project
from graphgauge.narrative import Names
from graphgauge.subgraphs import TargetLike


@dataclass(frozen=True)
class SingleExplanation:
    """An explanation with the verdicts on it (none if it was not measured)."""

    x: Xplanation
    verdicts: tuple[Verdict, ...]
    evaluator: Evaluator
    names: Names

    @property
    def missed(self) -> list[Verdict]:
        """The thresholds that this explanation misses; time does not count."""
        return [
            verdict
            for verdict in self.verdicts
            if verdict.outcome == FAIL and verdict.metric != "time"
        ]

    def text(self, language: str = "en", audience: str = "expert", top_k: int = 3) -> str:
        """Describe the explanation in words, with the thresholds it misses.

        Args:
            language: Code of the language, such as "de".
            audience: "expert", "internal" or "affected_person".
            top_k: How many features and connections to name.
        """
        return str(
            self.evaluator.get_textual_explanation(
                self.x,
                self.names,
                language,
                audience,
                top_k,
                quality=quality_by_metric(self.verdicts),
            )
        )


def explain_one(
    project: Project, target: TargetLike, explainer: str | None = None, measured: bool = True
) -> SingleExplanation:
    """Explain one target.

    Args:
        project: The project, with the network and its data.
        target: The number or name of the target.
        explainer: Its label in the project, or the name of another explainer (default: the first
            one of the project that is not the baseline).
        measured: Whether to measure and judge the explanation too.
    """
    chosen = _select_project_explainer(project, explainer)
    model = project.model()
    evaluator = project.evaluator(model)
    (x,) = chosen.explain(model, project.read_targets(model, [target]), seed=project.config.seed)
    found = (
        verdicts(evaluator.evaluate(x), project.requirements(model), "explanation")
        if measured
        else []
    )
    return SingleExplanation(x, tuple(found), evaluator, project.names(model))


def _select_project_explainer(project: Project, name: str | None) -> BaseExplainer:
    """Return the explainer with this label or name; None: the first one of the project."""
    known = project.explainers()
    if name is not None:
        return known[name] if name in known else find_explainer(name)
    usual = [label for label in known if label != project.config.use.baseline]
    if not usual:
        raise BadSetting(
            "the project names no explainer but the baseline: "
            "add one to `explainers`, such as input_x_gradient."
        )
    return known[usual[0]]


def quality_by_metric(
    found: Sequence[Verdict],
) -> dict[str, tuple[float | None, float, bool | None]] | None:
    """Return verdicts in the form that the narrative reads; None if nothing was judged."""
    judged = [
        own
        for own in found
        if own.outcome != NOT_APPLICABLE and own.metric != "time" and own.threshold is not None
    ]
    return {
        own.metric: (own.number, float(own.threshold or 0), own.outcome != FAIL) for own in judged
    } or None
