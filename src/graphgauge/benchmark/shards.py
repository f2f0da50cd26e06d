"""A shard: some targets of one task and network, measured with all explainers in one go.

All explainers of a target are in one shard because they share its random curves. Seeds derive from
content, so dividing the work otherwise changes no number. The key of a shard is a digest of
everything that decides its rows: what was measured under a key never has to be measured again.

The names of the fields below are part of that digest: they must not change.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from graphgauge.core import JsonObject, blake2b_hex

RUN_FORMAT = 4  #: goes up whenever a change of the code moves a number that a run stores

_PlainTarget = int | tuple[int, int]


@dataclass(frozen=True)
class ComponentSpec:
    """An explainer or a metric with its parameters, and the label that results show."""

    label: str
    name: str
    parameters: JsonObject


@dataclass(frozen=True)
class Shard:
    """What is to be measured, as plain data that can travel to other processes and machines."""

    task: str  #: such as cora-node
    data_set: str
    level: str
    model: str  #: gcn or gat
    block: int  #: which part of the task's targets
    targets: tuple[_PlainTarget, ...]
    explainers: tuple[ComponentSpec, ...]
    metrics: tuple[ComponentSpec, ...]  #: beside those that are always measured
    names: tuple[str, ...]  #: of all metrics, a row for each
    settings: JsonObject
    #: how many targets are explained alone; such a shard measures nothing else. It runs by itself
    timed: int
    seed: int
    data: str  #: digest of the task's data
    network: str  #: digest of the network
    format: int = RUN_FORMAT
    #: of how many targets, the first ones, another shard measures the time
    timed_elsewhere: int = 0

    @property
    def key(self) -> str:
        """A digest of exactly this content."""
        return content_digest(asdict(self))

    @property
    def title(self) -> str:
        """A title for people."""
        return f"{self.task} {self.model} block {self.block}"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its explainers."""
        return tuple(explainer.label for explainer in self.explainers)

    @property
    def size(self) -> int:
        """The number of explanations that are scored; 0 where only times are measured."""
        return 0 if self.timed else len(self.targets) * len(self.explainers)

    def metrics_of(self, target: _PlainTarget) -> tuple[str, ...]:
        """The metrics that a target has a row for.

        Args:
            target: One of the targets.
        """
        if self.timed:
            return ("time",)
        if target not in self.targets[: self.timed_elsewhere]:
            return self.names
        return tuple(name for name in self.names if name != "time")

    def only(self, labels: Iterable[str]) -> "Shard":
        """The same shard with some of its explainers."""
        chosen = set(labels)
        return replace(
            self,
            explainers=tuple(
                explainer for explainer in self.explainers if explainer.label in chosen
            ),
        )


def content_digest(content: object) -> str:
    """A digest of plain data.

    >>> content_digest({"a": 1, "b": (2, 3)}) == content_digest({"b": [2, 3], "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, default=repr)
    return blake2b_hex(text, size=16)


def split_targets(targets: list[_PlainTarget], size: int) -> list[tuple[_PlainTarget, ...]]:
    """Split targets into parts of ``size``; the last may be smaller.

    >>> split_targets([1, 2, 3], 2)
    [(1, 2), (3,)]
    """
    return [tuple(targets[start : start + size]) for start in range(0, len(targets), size)]
