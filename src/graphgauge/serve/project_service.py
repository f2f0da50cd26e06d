"""A service for a project: its network, data and names, and the explainer that was decided on.

With a decision (`graphgauge validate`) the chosen explainer is the selected one, and its numbers
and thresholds are told with every answer. A decision that is of another network, unsigned or
expired is refused; with ``force`` every answer says so instead. Other data than those of the
validation are normal in use: answers say so, and the monitor watches them.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timezone

from graphgauge.core import BadSetting, JsonObject, lookup
from graphgauge.explainers import BaseExplainer
from graphgauge.lifecycle import (
    Decision,
    DecisionProblem,
    Project,
    parse_utc_time,
    quality_by_metric,
)
from graphgauge.serve.service import Service
from graphgauge.serve.settings import Settings
from graphgauge.store import LogPath

_OTHER_DATA, _EXPIRED = "data", "expired"  #: kinds of problems; the first stops nothing


def service_from_project(
    project: Project,
    audit: LogPath,
    settings: Settings,
    *,
    decision: Decision | None = None,
    allowed: Sequence[str] = (),
    fallback: BaseExplainer | None = None,
    force: bool = False,
) -> Service:
    """Build the service of a project.

    Args:
        project: The project: its network, data, names and explainers.
        audit: The file of the audit log. It is made if it does not exist, else continued.
        settings: Limits, times and token of the service.
        decision: What `graphgauge validate` decided; its explainer answers. Without it the first of
            ``allowed`` answers, or the project's first explainer that is not the baseline.
        allowed: Labels of further explainers of the project that clients may ask for.
        fallback: The explainer that answers when the time for an explanation is spent; by default
            `InputXGradient`.
        force: Whether a decision that does not hold is served all the same. Then every answer says
            so.

    Raises:
        BadSetting: The decision does not hold and ``force`` is False, or the project has no
            explainer but the baseline.
        UnknownName: A label in ``allowed`` is not an explainer of the project.
    """
    explainers = _select_explainers(project, decision, allowed)
    model = project.model()
    options: JsonObject = {"names": project.names(model), "fallback": fallback}
    if decision is not None:
        options |= {
            "quality": {decision.label: quality_by_metric(decision.numbers())},
            "decision": decision.digest,
        }
        options["flags"] = _decision_flags(decision, decision.check(model), force)
    return Service(model, explainers, audit, settings=settings, **options)


def _select_explainers(
    project: Project, decision: Decision | None, allowed: Sequence[str]
) -> dict[str, BaseExplainer]:
    """The selected explainer first, then those that are allowed beside it."""
    known = project.explainers()
    if decision is not None:
        chosen = {decision.label: decision.chosen()}
    else:
        usual = [label for label in known if label != project.config.use.baseline]
        if not usual:
            raise BadSetting(
                "the project names no explainer but the baseline: add one to `explainers`, such "
                "as input_x_gradient."
            )
        first = allowed[0] if allowed else usual[0]
        chosen = {first: lookup(known, first, "explainer of this project")}
    return {
        **chosen,
        **{
            label: lookup(known, label, "explainer of this project")
            for label in allowed
            if label not in chosen
        },
    }


def _decision_flags(
    decision: Decision, problems: Sequence[DecisionProblem], force: bool
) -> Callable[[], list[str]]:
    """What every answer must say of the decision, also once it expires; refuses one that does not
    hold at the start.
    """
    grave = [problem for problem in problems if problem.kind != _OTHER_DATA]
    if grave and not force:
        told = " ".join(problem.message for problem in grave)
        raise BadSetting(
            f"the decision does not hold: {told} With --force it is served all the same, and "
            "every answer says so."
        )
    lasting, end = (
        [f"decision_{problem.kind}" for problem in problems if problem.kind != _EXPIRED],
        parse_utc_time(decision.expires),
    )
    return lambda: lasting + ([f"decision_{_EXPIRED}"] if datetime.now(timezone.utc) >= end else [])
