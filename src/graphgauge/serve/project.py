"""A service for a project: its network, data and names, and the explainer that was decided on.

With a decision (`graphgauge validate`) the chosen explainer is the selected one, and its numbers and thresholds are told with
every answer. A decision that is of another network, unsigned or expired is refused; with ``force`` every answer says so instead.
Other data than those of the validation are normal in use: answers say so, and the monitor watches them.
"""

from collections.abc import Sequence
from typing import Any

from graphgauge.core.errors import BadSetting
from graphgauge.core.registry import lookup
from graphgauge.explainers import BaseExplainer
from graphgauge.lifecycle.decision import Decision
from graphgauge.lifecycle.project import Project
from graphgauge.lifecycle.single import quality_of
from graphgauge.models import BaseModel
from graphgauge.serve.service import Service
from graphgauge.serve.settings import Settings
from graphgauge.store.audit import Where

ANY_DATA = "data"  #: the one problem of a decision that stops nothing


def service_of(
    project: Project,
    audit: Where,
    settings: Settings,
    *,
    decision: Decision | None = None,
    allowed: Sequence[str] = (),
    fallback: BaseExplainer | None = None,
    force: bool = False,
) -> Service:
    """The service of a project; ``allowed`` are labels of further explainers that may be asked for."""
    explainers = chosen_explainers(project, decision, allowed)
    model = project.model()
    flags = [] if decision is None else flags_of(decision, model, force)
    options: dict[str, Any] = {"names": project.names(model), "fallback": fallback, "flags": flags}
    if decision is not None:
        options |= {"quality": {decision.label: quality_of(decision.numbers())}, "decision": decision.digest}
    return Service(model, explainers, audit, settings=settings, **options)


def chosen_explainers(project: Project, decision: Decision | None, allowed: Sequence[str]) -> dict[str, BaseExplainer]:
    """The selected explainer first, then those that are allowed beside it."""
    known = project.explainers()
    if decision is not None:
        chosen = {decision.label: decision.chosen()}
    else:
        usual = [label for label in known if label != project.form.use.baseline]
        if not usual:
            raise BadSetting("the project names no explainer but the baseline: add one to `explainers`, such as input_x_gradient.")
        first = allowed[0] if allowed else usual[0]
        chosen = {first: lookup(known, first, "explainer of this project")}
    return {**chosen, **{label: lookup(known, label, "explainer of this project") for label in allowed if label not in chosen}}


def flags_of(decision: Decision, model: BaseModel, force: bool) -> list[str]:
    """What every answer must say of the decision; refuses one that does not hold."""
    problems = decision.check(model)
    grave = [problem for problem in problems if problem.kind != ANY_DATA]
    if grave and not force:
        told = " ".join(problem.message for problem in grave)
        raise BadSetting(f"the decision does not hold: {told} With --force it is served all the same, and every answer says so.")
    return [f"decision_{problem.kind}" for problem in problems]
