"""Examples of one target: explained by some explainers, measured, described and drawn."""

from collections.abc import Sequence

from graphgauge.core import Target, lookup
from graphgauge.guidelines import aggregate_run
from graphgauge.lifecycle.project import Project
from graphgauge.models import BaseModel
from graphgauge.report import Example, ExampleBuilder, sanitize_results


def build_target_examples(
    project: Project, model: BaseModel, target: Target, labels: Sequence[str]
) -> list[Example]:
    """Build an example of a target for each of the named explainers.

    Args:
        project: The project, with explainers and names.
        model: What `Project.model` returned.
        target: The node, link or graph whose prediction is explained.
        labels: The explainers, as the project calls them.

    Raises:
        UnknownName: The project has no explainer of that name.
    """
    offered = project.explainers()
    chosen = {label: lookup(offered, label, "explainer of the project") for label in labels}
    clean = sanitize_results(project.evaluator(model).compare(chosen, [target]))
    wanted = project.requirements(model)
    form = aggregate_run(clean.results, wanted).pertinence
    stage = ExampleBuilder(clean.results, wanted, form, clean.original_key, project.names(model))
    verdicts = stage.verdicts(list(clean.results.rows))
    return [
        stage.example("", key, rows, verdicts.get(key, []))
        for cases in stage.cases.values()
        for key, rows in cases.items()
    ]
