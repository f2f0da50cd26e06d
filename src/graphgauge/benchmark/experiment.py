"""An experiment: which explainers are measured on which tasks and networks, how, and on how many
targets.

    tasks: [cora-node, {data: BA-Shapes, level: link}]       # data set and level
    models: [gcn, gat]                                       # the kept networks of each task
    explainers: [saliency, {name: gnn_explainer, parameters: {epochs: 50}, label: short}]
    preset: paper                                            # or calibrated
    settings: {edge_removal: drop}                           # any setting of the Evaluator
    metrics: [sparsity]                                      # more metrics, by name
    targets: {number: 100, seed: 0}
    block: 25                                                # targets in one piece of work; changes no number
    seed: 0
    time_limit: 600                                          # seconds for one piece of work; changes no number

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
    """What ``make`` gives; our own errors become mistakes of the file, which are collected."""
    try:
        return make()
    except (GraphgaugeError, TypeError) as error:
        raise ValueError(str(error).rstrip(".")) from error


def one_of(names: Iterable[str], kind: str) -> AfterValidator:
    """Refuses a name that is not among ``names``, whose case does not matter."""
    known = {name.lower(): name for name in names}

    def check(name: str) -> str:
        return or_mistake(
            lambda: lookup(
                {own: own for own in known.values()}, known.get(name.lower(), name), kind
            )
        )

    return AfterValidator(check)


def together(
    values: Any, items: ValidatorFunctionWrapHandler, check: Callable[[list[Any]], Any]
) -> Any:
    """A list, its items checked one by one and beside each other; where some are wrong by
    themselves, those that are right.
    """
    try:
        found = items(values)
    except ValidationError as error:
        wrong = {item["loc"][0] for item in error.errors() if item["loc"]}
        right = [value for k, value in enumerate(values) if k not in wrong] if wrong else []
        raise with_one_more(error, lambda: check(items(right)) if right else None) from error
    check(found)
    return found


def with_one_more(error: ValidationError, check: Callable[[], Any]) -> ValidationError:
    """The mistakes of an error, and what a check says."""
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
    """A part of an experiment: refuses what it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TaskChoice(Part):
    """A data set and a level."""

    data: Annotated[str, one_of((data for data, _ in PAPER), "data set")]
    level: Annotated[str, one_of(LEVELS, "level of a task")]

    @property
    def name(self) -> str:
        """As in ``cora-node``."""
        return f"{self.data.lower()}-{self.level}"


class ExplainerChoice(Part):
    """An explainer by name, with parameters, and the label that results show."""

    name: str
    parameters: dict[str, Any] = {}
    label: str | None = None

    @field_validator("parameters")
    @classmethod
    def check_parameters(cls, parameters: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """Build it once."""
        if "name" in info.data:
            or_mistake(lambda: find_explainer(info.data["name"], **parameters))
        return parameters

    @field_validator("name")
    @classmethod
    def check_name(cls, name: str) -> str:
        """Only the name."""
        or_mistake(lambda: lookup(sources(), name, "explainer"))
        return name

    def build(self) -> BaseExplainer:
        """The explainer."""
        return find_explainer(self.name, **self.parameters)


#: metrics that can be added to those that are always measured
ADDED = [
    name
    for name, kind in METRICS.items()
    if kind.needs in ("curves", "scores") and name not in ALWAYS
]


class MetricChoice(Part):
    """A metric beside those that are always measured."""

    name: Annotated[str, one_of(ADDED, "metric that can be added")]
    parameters: dict[str, Any] = {}

    @field_validator("parameters")
    @classmethod
    def check_parameters(cls, parameters: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """Build it once."""
        if "name" in info.data:
            or_mistake(lambda: METRICS[info.data["name"]](**parameters))
        return parameters

    def build(self) -> Metric[Any]:
        """The metric."""
        return METRICS[self.name](**self.parameters)


class TargetChoice(Part):
    """How many targets of each task, and the seed they are drawn with."""

    number: int = Field(100, ge=1)
    seed: int = Field(0, ge=0, le=MOST_SEED)


def task_of(value: Any) -> Any:
    """``cora-node`` as data set and level."""
    if not isinstance(value, str):
        return value
    groups = {f"{data.lower()}-{level}": (data, level) for data, level in PAPER}
    data, level = or_mistake(lambda: lookup(groups, value.lower(), "task"))
    return {"data": data, "level": level}


def named(value: Any) -> Any:
    """A bare name as a choice without parameters."""
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
        """Each under a label of its own."""
        return together(explainers, items, labels_of)

    @field_validator("settings")
    @classmethod
    def check_settings(cls, settings: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """Known settings with values they can have; every mistake is told."""
        return checked_settings(settings, info.data.get("preset", "paper"))

    @property
    def full_settings(self) -> Settings:
        """The preset with what was changed."""
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
        """Each once."""
        return together(models, items, partial(no_repeats, kind="network"))

    @field_validator("tasks", mode="wrap")
    @classmethod
    def check_tasks(cls, tasks: Any, items: ValidatorFunctionWrapHandler) -> Any:
        """Each once."""
        return together(tasks, items, lambda own: no_repeats([task.name for task in own], "task"))

    @property
    def labels(self) -> list[str]:
        """What results call the explainers."""
        return labels_of(self.explainers)


def checked_settings(settings: dict[str, Any], preset: str) -> dict[str, Any]:
    """Settings as given; all mistakes in them are told together."""
    known = dict.fromkeys(Settings.__dataclass_fields__)
    right = {name: value for name, value in settings.items() if name in known}
    problems = [problem_with(partial(lookup, known, name, "setting")) for name in settings]
    raise_all([*problems, problem_with(partial(settings_of, preset, **right))])
    return settings


def labels_of(explainers: list[ExplainerChoice]) -> list[str]:
    """Names; with parameters where a name comes more than once; or as said."""
    built = [choice.build() for choice in explainers if choice.label is None]
    given = iter(
        labels_by_name([(explainer.name, changed_parameters(explainer)) for explainer in built])
    )
    labels = [choice.label or next(given) for choice in explainers]
    again = next((k for k, label in enumerate(labels) if label in labels[:k]), None)
    if again is not None:
        example = f"{{name: {explainers[again].name}, label: another}}"
        raise ValueError(
            f"{labels[again]} is listed twice: give different parameters, or a label of its own, "
            f"as in {example}"
        )
    return labels


def no_repeats(names: list[str], kind: str) -> list[str]:
    """Refuse what is listed twice."""
    again = sorted({name for name in names if names.count(name) > 1})
    if again:
        raise ValueError(f"{', '.join(again)} is listed twice as {kind}")
    return names


def problem_with(check: Callable[[], Any]) -> str:
    """What a check says; '' if nothing."""
    try:
        check()
    except GraphgaugeError as error:
        return str(error).rstrip(".")
    return ""


def raise_all(problems: list[str]) -> None:
    """All problems as one."""
    told = [problem for problem in problems if problem]
    if told:
        raise ValueError("; ".join(told))
