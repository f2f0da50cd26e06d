"""The schema of a project file (YAML or TOML); all mistakes in a file are reported together.

model: shop.networks:make_net          # module:function (or class); called with `arguments`
arguments: {hidden: 32}
weights: weights.safetensors           # never a pickle; without it, the function returns a
                                       # trained network
data: graph.safetensors                # see `graphgauge.datasets.save_graph`
level: node                            # node, link or graph
task: classification                   # or regression
explainers: [saliency, random, {name: gnn_explainer, parameters: {epochs: 50}, label: short}]
preset: paper                          # or calibrated
settings: {edge_removal: drop}         # any setting of the Evaluator
targets: {number: 100, among: test_mask}       # or [0, 17], or a file: targets.json
thresholds: {feature_pertinence: 0.7}  # in place of the paper's
use: {stakes: high-stakes, latency: interactive}
names: {features: [income, age], classes: [declined, granted]}
seed: 0
device: cpu
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from graphgauge.benchmark import (
    ExplainerChoice,
    MeasurementConfig,
    MetricChoice,
    StrictModel,
    as_value_error,
    name_validator,
    parse_named_choice,
)
from graphgauge.core import JsonObject, KnownKeys
from graphgauge.guidelines import Requirements
from graphgauge.narrative import Names

_LEVELS, _TASKS = ("node", "link", "graph"), ("classification", "regression")
#: where a project names none; they run on every network
_DEFAULT_EXPLAINERS = ("input_x_gradient", "integrated_gradients", "gnn_explainer", "random")
_ADDRESS_PATTERN = r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$"


class WrapperOptions(StrictModel):
    """How to call the network where its signature does not say enough; see docs/models.md."""

    output: Literal["logits", "log_probs", "probs", "multi_label", "multi_label_logits"] | None = (
        None
    )
    output_column: int | None = Field(default=None, ge=0)
    num_hops: int | None = Field(default=None, ge=0)
    edge_scope: Literal["messages", "induced"] = "messages"
    memory_budget: int | str | None = None
    #: module:function (net, g) -> rows
    forward: str | None = Field(default=None, pattern=_ADDRESS_PATTERN)
    #: module:function (net, g) -> hidden rows
    embedding: str | None = Field(default=None, pattern=_ADDRESS_PATTERN)


class TargetSelection(StrictModel):
    """The targets: a number to draw (from all, or from a mask in the data), a list, or a file."""

    number: int | None = Field(default=None, ge=1)
    among: str | None = None
    chosen: list[Any] | None = Field(default=None, min_length=1)
    file: str | None = None

    @model_validator(mode="after")
    def check_one_way(self) -> "TargetSelection":
        """Require exactly one of the ways."""
        given = [name for name in ("number", "chosen", "file") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                "must say one of number, chosen and file, "
                f"but says {' and '.join(given) or 'none of them'}"
            )
        if self.among is not None and self.number is None:
            raise ValueError("among says where to draw from, and goes with number only")
        return self


class IntendedUse(StrictModel):
    """What explanations are used for; see docs/choosing.md."""

    stakes: str = "standard"
    latency: str | None = None
    num_edges: int | None = None
    focus: str | None = None
    is_difficult: bool = False
    baseline: str = "random"

    @field_validator("stakes", "latency", "num_edges", "focus")
    @classmethod
    def check_choice(cls, value: Any, info: ValidationInfo) -> Any:  # of any of the four fields
        """Check a value as `Requirements` does."""
        as_value_error(lambda: Requirements(**{str(info.field_name): value}))
        return value


def add_project_file_hint(error: Exception) -> str:
    """Return the text of an error, with what to write in a project file for advice on Python.

    >>> add_project_file_hint(ValueError("Say it: num_hops=2."))
    'Say it: num_hops=2. In a project file: `wrapping: {num_hops: 2}`.'
    """
    text = str(error)
    keys = {
        "output='": "output: probs",
        "forward=lambda": 'forward: "my_net:call"',
        "num_hops=": "num_hops: 2",
    }
    fitting = [key for sign, key in keys.items() if sign in text]
    return f"{text} In a project file: `wrapping: {{{', '.join(fitting)}}}`." if fitting else text


def _expand_targets(value: object) -> object:
    """Expand a bare number, list or file name to the keys it stands for."""
    ways = {int: "number", list: "chosen", str: "file"}
    return {ways[type(value)]: value} if type(value) in ways else value


def _with_numeric_ids(value: object) -> object:
    """Turn ids of names into numbers, because TOML has text keys only."""
    if not isinstance(value, Mapping):
        return value
    return {
        kind: _with_numeric_keys(own) if kind in ("features", "nodes", "graphs", "classes") else own
        for kind, own in value.items()
    }


def _with_numeric_keys(own: object) -> object:
    """Turn keys that consist of digits into whole numbers."""
    if not isinstance(own, Mapping):
        return own
    return {
        int(key) if isinstance(key, str) and key.isdecimal() else key: name
        for key, name in own.items()
    }


class ProjectConfig(MeasurementConfig):
    """The keys of a project file."""

    name: str = ""
    model: str = Field(pattern=_ADDRESS_PATTERN)
    arguments: JsonObject = Field(default={})
    weights: str | None = None
    data: str
    level: Annotated[str, name_validator(_LEVELS, "level")]
    task: Annotated[str, name_validator(_TASKS, "task")]
    wrapping: WrapperOptions = WrapperOptions()
    explainers: list[Annotated[ExplainerChoice, BeforeValidator(parse_named_choice)]] = Field(
        default_factory=lambda: [
            ExplainerChoice(name=name, parameters={}) for name in _DEFAULT_EXPLAINERS
        ],
        min_length=1,
    )
    targets: Annotated[TargetSelection, BeforeValidator(_expand_targets)] = TargetSelection(
        number=100
    )
    names: Annotated[JsonObject, BeforeValidator(_with_numeric_ids)] = Field(default={})
    thresholds: JsonObject = Field(default={})
    use: IntendedUse = IntendedUse()
    device: str | None = None

    @field_validator("names")
    @classmethod
    def check_names(cls, names: JsonObject) -> JsonObject:
        """Check the names as the narrative does."""
        as_value_error(lambda: Names.from_value(names))
        return names

    @field_validator("thresholds")
    @classmethod
    def check_thresholds(cls, thresholds: JsonObject) -> JsonObject:
        """Check the thresholds as `Requirements` does."""
        as_value_error(lambda: Requirements(limits=thresholds))
        return thresholds


#: for the list of known keys in an error
KNOWN_KEYS: KnownKeys = {
    "": ProjectConfig,
    "wrapping": WrapperOptions,
    "explainers": ExplainerChoice,
    "metrics": MetricChoice,
    "targets": TargetSelection,
    "use": IntendedUse,
}
