"""The result of a shard, as a worker returns it: rows, or a fault."""

from dataclasses import dataclass, field

from graphgauge.core import JsonObject


@dataclass(frozen=True)
class MeasurementFault:
    """Why explainers could not be measured: a status of `evaluation.FAULTS`, and a message for
    people.
    """

    status: str
    message: str


@dataclass(frozen=True)
class ShardResult:
    """The rows of a shard as plain data, or its fault, with seconds, remarks and the machine."""

    rows: list[JsonObject]
    fault: MeasurementFault | None = None
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)
    machine: JsonObject = field(default_factory=dict)
    #: what is kept of the worst and best explanations
    examples: list[JsonObject] = field(default_factory=list)
    #: how the seconds divide into phases (see `core.record_phases`)
    phases: dict[str, float] = field(default_factory=dict)
