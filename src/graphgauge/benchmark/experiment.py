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

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Annotated, TypeVar

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

from graphgauge.core import GraphgaugeError, JsonObject, lookup
from graphgauge.datasets import CONV_NAMES, PAPER_SCORES, TASK_LEVELS
from graphgauge.evaluation import (
    PRESETS,
    Settings,
    changed_parameters,
    settings_from_preset,
)
from graphgauge.evaluation import unique_labels as labels_by_name
from graphgauge.explainers import BaseExplainer, explainer_sources, find_explainer
from graphgauge.metrics import METRICS, AnyMetric

_MAX_SEED = 2**63 - 1
_T = TypeVar("_T")


def as_value_error(make: Callable[[], _T]) -> _T:
    """Return the result of ``make``. Errors of this library and TypeErrors are raised as
    ValueErrors, which pydantic collects.
    """
    try:
        return make()
    except (GraphgaugeError, TypeError) as error:
        raise ValueError(str(error).rstrip(".")) from error


def name_validator(names: Iterable[str], kind: str) -> AfterValidator:
    """A validator that refuses a name which is not among ``names``; upper and lower case do not
    matter.

    Args:
        names: The accepted names, as they are spelt in results.
        kind: What the names are called in the error message, such as "data set".
    """
    known = {name.lower(): name for name in names}

    def check(name: str) -> str:
        return as_value_error(
            lambda: lookup(
                {spelling: spelling for spelling in known.values()},
                known.get(name.lower(), name),
                kind,
            )
        )

    return AfterValidator(check)


def _validate_list(
    values: Sequence[object],
    items: ValidatorFunctionWrapHandler,
    check: Callable[[list[_T]], object],
) -> list[_T]:
    """Check the items of a list one by one, then all together; if some are wrong, the others are
    still checked together.
    """
    try:
        checked: list[_T] = items(values)
    except ValidationError as error:
        wrong = {item["loc"][0] for item in error.errors() if item["loc"]}
        right = [value for k, value in enumerate(values) if k not in wrong] if wrong else []
        raise _append_error(error, lambda: check(items(right)) if right else None) from error
    check(checked)
    return checked


def _append_error(error: ValidationError, check: Callable[[], object]) -> ValidationError:
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


class StrictModel(Model):
    """A part of an experiment, which refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TaskChoice(StrictModel):
    """A data set and a level."""

    data: Annotated[str, name_validator((data for data, _ in PAPER_SCORES), "data set")]
    level: Annotated[str, name_validator(TASK_LEVELS, "level of a task")]

    @property
    def name(self) -> str:
        """The name of the task, such as ``cora-node``."""
        return f"{self.data.lower()}-{self.level}"


class ExplainerChoice(StrictModel):
    """An explainer by name, with parameters, and the label that results show."""

    name: str
    parameters: JsonObject = {}
    label: str | None = None

    @field_validator("parameters")
    @classmethod
    def _check_parameters(cls, parameters: JsonObject, info: ValidationInfo) -> JsonObject:
        """Create the explainer once, to check its parameters."""
        if "name" in info.data:
            as_value_error(lambda: find_explainer(info.data["name"], **parameters))
        return parameters

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        """Check that an explainer has this name."""
        as_value_error(lambda: lookup(explainer_sources(), name, "explainer"))
        return name

    def build(self) -> BaseExplainer:
        """Create the explainer."""
        return find_explainer(self.name, **self.parameters)


#: metrics that can be added to those that are always measured
_OPTIONAL_METRICS = [
    name
    for name, kind in METRICS.items()
    if kind.needs in ("curves", "scores") and kind.role == "extra"
]


class MetricChoice(StrictModel):
    """A metric in addition to those that are always measured."""

    name: Annotated[str, name_validator(_OPTIONAL_METRICS, "metric that can be added")]
    parameters: JsonObject = {}

    @field_validator("parameters")
    @classmethod
    def _check_parameters(cls, parameters: JsonObject, info: ValidationInfo) -> JsonObject:
        """Create the metric once, to check its parameters."""
        if "name" in info.data:
            as_value_error(lambda: METRICS[info.data["name"]](**parameters))
        return parameters

    def build(self) -> AnyMetric:
        """Create the metric."""
        return METRICS[self.name](**self.parameters)


class TargetChoice(StrictModel):
    """How many targets of each task, and the seed with which they are drawn."""

    number: int = Field(100, ge=1)
    seed: int = Field(0, ge=0, le=_MAX_SEED)


def _parse_task(value: object) -> object:
    """Data set and level of a name such as ``cora-node``."""
    if not isinstance(value, str):
        return value
    groups = {f"{data.lower()}-{level}": (data, level) for data, level in PAPER_SCORES}
    data, level = as_value_error(lambda: lookup(groups, value.lower(), "task"))
    return {"data": data, "level": level}


def parse_named_choice(value: object) -> object:
    """A choice without parameters, if only a name is given."""
    if isinstance(value, str):
        return {"name": value, "parameters": {}}
    return {"parameters": {}, **value} if isinstance(value, dict) else value


class MeasurementConfig(StrictModel):
    """How explainers are measured: what experiments and projects have in common."""

    explainers: list[Annotated[ExplainerChoice, BeforeValidator(parse_named_choice)]] = Field(
        min_length=1
    )
    preset: Annotated[str, name_validator(PRESETS, "preset")] = "paper"
    settings: JsonObject = Field(default={}, validate_default=True)
    metrics: list[Annotated[MetricChoice, BeforeValidator(parse_named_choice)]] = Field(default=[])
    seed: int = Field(0, ge=0, le=_MAX_SEED)

    @field_validator("explainers", mode="wrap")
    @classmethod
    def _check_explainers(
        cls, explainers: Sequence[object], items: ValidatorFunctionWrapHandler
    ) -> list[ExplainerChoice]:
        """Check that each explainer has its own label."""
        return _validate_list(explainers, items, label_explainers)

    @field_validator("settings")
    @classmethod
    def _check_settings(cls, settings: JsonObject, info: ValidationInfo) -> JsonObject:
        """Check names and values of the settings; all mistakes are reported."""
        return _validate_settings(settings, info.data.get("preset", "paper"))

    @property
    def full_settings(self) -> Settings:
        """The preset with the changed settings."""
        return settings_from_preset(self.preset, **self.settings)


class Experiment(MeasurementConfig):
    """What is measured on what."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    description: str = ""
    tasks: list[Annotated[TaskChoice, BeforeValidator(_parse_task)]] = Field(min_length=1)
    models: list[Annotated[str, name_validator(CONV_NAMES, "network")]] = Field(min_length=1)
    targets: TargetChoice = TargetChoice(number=100, seed=0)
    block: int = Field(25, ge=1)
    time_limit: float = Field(600.0, gt=0)

    @field_validator("models", mode="wrap")
    @classmethod
    def _check_models(
        cls, models: Sequence[object], items: ValidatorFunctionWrapHandler
    ) -> list[str]:
        """Check that each network is listed once."""
        return _validate_list(models, items, partial(_check_no_repeats, kind="network"))

    @field_validator("tasks", mode="wrap")
    @classmethod
    def _check_tasks(
        cls, tasks: Sequence[object], items: ValidatorFunctionWrapHandler
    ) -> list[TaskChoice]:
        """Check that each task is listed once."""

        def check(choices: list[TaskChoice]) -> object:
            return _check_no_repeats([task.name for task in choices], "task")

        return _validate_list(tasks, items, check)

    @property
    def labels(self) -> list[str]:
        """The labels of the explainers."""
        return label_explainers(self.explainers)


def _validate_settings(settings: JsonObject, preset: str) -> JsonObject:
    """Return the settings, or raise one ValueError with all mistakes."""
    known = dict.fromkeys(Settings.__dataclass_fields__)
    right = {name: value for name, value in settings.items() if name in known}
    problems = [_error_message(partial(lookup, known, name, "setting")) for name in settings]
    _raise_problems([*problems, _error_message(partial(settings_from_preset, preset, **right))])
    return settings


def label_explainers(explainers: list[ExplainerChoice]) -> list[str]:
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
            f"{labels[repeated]} is listed twice: give different parameters, or a label of its "
            f"own, as in {example}"
        )
    return labels


def _check_no_repeats(names: list[str], kind: str) -> list[str]:
    """Return the names, or raise ValueError if one occurs twice."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{', '.join(repeated)} is listed twice as {kind}")
    return names


def _error_message(check: Callable[[], object]) -> str:
    """The message of the error that a check raises; '' if there is none."""
    try:
        check()
    except GraphgaugeError as error:
        return str(error).rstrip(".")
    return ""


def _raise_problems(problems: list[str]) -> None:
    """Raise one ValueError with all problems, if there are any."""
    messages = [problem for problem in problems if problem]
    if messages:
        raise ValueError("; ".join(messages))
