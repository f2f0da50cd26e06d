"""The result of a shard, as a worker returns it: rows, or a fault."""

from dataclasses import dataclass, field
from typing import Any


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

    rows: list[dict[str, Any]]
    fault: MeasurementFault | None = None
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)
    examples: list[dict[str, Any]] = field(
        default_factory=list
    )  #: what is kept of the worst and best explanations
    phases: dict[str, float] = field(
        default_factory=dict
    )  #: what the seconds went to (see `core.phases`)
