"""An experiment: which explainers are measured on which tasks and networks, how, and on how many
targets.

    tasks: [cora-node, {data: BA-Shapes, level: link}]       # data set and level
    models: [gcn, gat]                                       # the kept networks of each task
    explainers: [saliency, {name: gnn_explainer, parameters: {epochs: 50}, label: short}]
    preset: paper                                            # or calibrated
    settings: {edge_removal: drop}                           # any setting of the Evaluator
    metrics: [sparsity]                                      # more metrics, by name
    targets: {number: 100, seed: 0}
    block: 25                                                # targets in one shard
    seed: 0
    time_limit: 600                                          # seconds for one shard

A deterministic explainer is run twice for its stability, whichever form of stability is chosen; the
form (`settings: {stability: pairs}` or `binomial`) therefore only ever concerns explainers that
draw random numbers, and one setting is enough.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic import BaseModel as Model
from pydantic_core import InitErrorDetails

from graphgauge.core.errors import GraphgaugeError
from graphgauge.core.registry import lookup
from graphgauge.datasets.descriptions import LEVELS
from graphgauge.datasets.tasks import CONVS, PAPER
from graphgauge.evaluation.entries import changed_parameters
from graphgauge.evaluation.entries import labels_of as labels_by_name
from graphgauge.evaluation.evaluator import curve_metrics
from graphgauge.evaluation.settings import PRESETS, Settings, settings_of
from graphgauge.explainers import BaseExplainer, find_explainer
from graphgauge.explainers.registry import sources
from graphgauge.metrics import METRICS, Metric

MOST_SEED = 2**63 - 1
ALWAYS = curve_metrics("regression", Settings())  #: metrics of curves that need not be asked for
T = TypeVar("T")


def or_mistake(make: Callable[[], T]) -> T:
    """Return the result of ``make``; errors of this library become ValueErrors, which pydantic
    collects.
    """
    try:
        return make()
    except (GraphgaugeError, TypeError) as error:
        raise ValueError(str(error).rstrip(".")) from error


def one_of(names: Iterable[str], kind: str) -> AfterValidator:
    """A validator that refuses a name which is not among ``names``; upper and lower case do not
    matter.
    """
    known = {name.lower(): name for name in names}

    def check(name: str) -> str:
        return or_mistake(
            lambda: lookup(
                {spelling: spelling for spelling in known.values()},
                known.get(name.lower(), name),
                kind,
            )
        )

    return AfterValidator(check)


def together(
    values: Any, items: ValidatorFunctionWrapHandler, check: Callable[[list[Any]], Any]
) -> Any:
    """Check the items of a list one by one, then all together; if some are wrong, the others are
    still checked together.
    """
    try:
        checked = items(values)
    except ValidationError as error:
        wrong = {item["loc"][0] for item in error.errors() if item["loc"]}
        right = [value for k, value in enumerate(values) if k not in wrong] if wrong else []
        raise with_one_more(error, lambda: check(items(right)) if right else None) from error
    check(checked)
    return checked


def with_one_more(error: ValidationError, check: Callable[[], Any]) -> ValidationError:
    """The errors of a validation, and the error that a check raises."""
    try:
        check()
    except ValueError as more:
        known = [
            InitErrorDetails(
                type=item["type"], loc=item["loc"], input=item["input"], ctx=item.get("ctx", {})
            )
            for item in error.errors()
        ]
        last = InitErrorDetails(type="value_error", loc=(), input=None, ctx={"error": more})
        return ValidationError.from_exception_data(error.title, [*known, last])
    return error


class Part(Model):
    """A part of an experiment, which refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TaskChoice(Part):
    """A data set and a level."""

    data: Annotated[str, one_of((data for data, _ in PAPER), "data set")]
    level: Annotated[str, one_of(LEVELS, "level of a task")]

    @property
    def name(self) -> str:
        """The name of the task, such as ``cora-node``."""
        return f"{self.data.lower()}-{self.level}"


class ExplainerChoice(Part):
    """An explainer by name, with parameters, and the label that results show."""

    name: str
    parameters: dict[str, Any] = {}
    label: str | None = None

    @field_validator("parameters")
    @classmethod
    def check_parameters(cls, parameters: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """Create the explainer once, to check its parameters."""
        if "name" in info.data:
            or_mistake(lambda: find_explainer(info.data["name"], **parameters))
        return parameters

    @field_validator("name")
    @classmethod
    def check_name(cls, name: str) -> str:
        """Check that an explainer has this name."""
        or_mistake(lambda: lookup(sources(), name, "explainer"))
        return name

    def build(self) -> BaseExplainer:
        """Create the explainer."""
        return find_explainer(self.name, **self.parameters)


#: metrics that can be added to those that are always measured
ADDED = [
    name
    for name, kind in METRICS.items()
    if kind.needs in ("curves", "scores") and name not in ALWAYS
]


class MetricChoice(Part):
    """A metric in addition to those that are always measured."""

    name: Annotated[str, one_of(ADDED, "metric that can be added")]
    parameters: dict[str, Any] = {}

    @field_validator("parameters")
    @classmethod
    def check_parameters(cls, parameters: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """Create the metric once, to check its parameters."""
        if "name" in info.data:
            or_mistake(lambda: METRICS[info.data["name"]](**parameters))
        return parameters

    def build(self) -> Metric[Any]:
        """Create the metric."""
        return METRICS[self.name](**self.parameters)


class TargetChoice(Part):
    """How many targets of each task, and the seed with which they are drawn."""

    number: int = Field(100, ge=1)
    seed: int = Field(0, ge=0, le=MOST_SEED)


def task_of(value: Any) -> Any:
    """Data set and level of a name such as ``cora-node``."""
    if not isinstance(value, str):
        return value
    groups = {f"{data.lower()}-{level}": (data, level) for data, level in PAPER}
    data, level = or_mistake(lambda: lookup(groups, value.lower(), "task"))
    return {"data": data, "level": level}


def named(value: Any) -> Any:
    """A choice without parameters, if only a name is given."""
    if isinstance(value, str):
        return {"name": value, "parameters": {}}
    return {"parameters": {}, **value} if isinstance(value, dict) else value


class Measuring(Part):
    """How explainers are measured: what experiments and projects have in common."""

    explainers: list[Annotated[ExplainerChoice, BeforeValidator(named)]] = Field(min_length=1)
    preset: Annotated[str, one_of(PRESETS, "preset")] = "paper"
    settings: dict[str, Any] = Field(default={}, validate_default=True)
    metrics: list[Annotated[MetricChoice, BeforeValidator(named)]] = Field(default=[])
    seed: int = Field(0, ge=0, le=MOST_SEED)

    @field_validator("explainers", mode="wrap")
    @classmethod
    def check_explainers(cls, explainers: Any, items: ValidatorFunctionWrapHandler) -> Any:
        """Check that each explainer has its own label."""
        return together(explainers, items, labels_of)

    @field_validator("settings")
    @classmethod
    def check_settings(cls, settings: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """Check names and values of the settings; all mistakes are reported."""
        return checked_settings(settings, info.data.get("preset", "paper"))

    @property
    def full_settings(self) -> Settings:
        """The preset with the changed settings."""
        return settings_of(self.preset, **self.settings)


class Experiment(Measuring):
    """What is measured on what."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    description: str = ""
    tasks: list[Annotated[TaskChoice, BeforeValidator(task_of)]] = Field(min_length=1)
    models: list[Annotated[str, one_of(CONVS, "network")]] = Field(min_length=1)
    targets: TargetChoice = TargetChoice(number=100, seed=0)
    block: int = Field(25, ge=1)
    time_limit: float = Field(600.0, gt=0)

    @field_validator("models", mode="wrap")
    @classmethod
    def check_models(cls, models: Any, items: ValidatorFunctionWrapHandler) -> Any:
        """Check that each network is listed once."""
        return together(models, items, partial(no_repeats, kind="network"))

    @field_validator("tasks", mode="wrap")
    @classmethod
    def check_tasks(cls, tasks: Any, items: ValidatorFunctionWrapHandler) -> Any:
        """Check that each task is listed once."""
        return together(tasks, items, lambda own: no_repeats([task.name for task in own], "task"))

    @property
    def labels(self) -> list[str]:
        """The labels of the explainers."""
        return labels_of(self.explainers)


def checked_settings(settings: dict[str, Any], preset: str) -> dict[str, Any]:
    """Return the settings, or raise one ValueError with all mistakes."""
    known = dict.fromkeys(Settings.__dataclass_fields__)
    right = {name: value for name, value in settings.items() if name in known}
    problems = [problem_with(partial(lookup, known, name, "setting")) for name in settings]
    raise_all([*problems, problem_with(partial(settings_of, preset, **right))])
    return settings


def labels_of(explainers: list[ExplainerChoice]) -> list[str]:
    """The label of each explainer: as given, or its name, with parameters where a name occurs more
    than once.
    """
    built = [choice.build() for choice in explainers if choice.label is None]
    generated = iter(
        labels_by_name([(explainer.name, changed_parameters(explainer)) for explainer in built])
    )
    labels = [choice.label or next(generated) for choice in explainers]
    repeated = next((k for k, label in enumerate(labels) if label in labels[:k]), None)
    if repeated is not None:
        example = f"{{name: {explainers[repeated].name}, label: another}}"
        raise ValueError(
            f"{labels[repeated]} is listed twice: give different parameters, or a label of its own, "
            f"as in {example}"
        )
    return labels


def no_repeats(names: list[str], kind: str) -> list[str]:
    """Return the names, or raise ValueError if one occurs twice."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{', '.join(repeated)} is listed twice as {kind}")
    return names


def problem_with(check: Callable[[], Any]) -> str:
    """The message of the error that a check raises; '' if there is none."""
    try:
        check()
    except GraphgaugeError as error:
        return str(error).rstrip(".")
    return ""


def raise_all(problems: list[str]) -> None:
    """Raise one ValueError with all problems, if there are any."""
    messages = [problem for problem in problems if problem]
    if messages:
        raise ValueError("; ".join(messages))
