"""A shard: some targets of one task and network, measured with all explainers in one go.

All explainers of a target are in one shard because they share its random curves. Seeds derive from
content, so dividing the work otherwise changes no number. The key of a shard is a digest of
everything that decides its rows: what was measured under a key never has to be measured again.

The names of the fields below are part of that digest: they must not change.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from graphgauge.core.digests import blake2b_hex

FORMAT = 3  #: goes up whenever a change of the code moves a number that a run stores

Target = int | tuple[int, int]


@dataclass(frozen=True)
class Named:
    """An explainer or a metric with its parameters, and the label that results show."""

    label: str
    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Shard:
    """What is to be measured, as plain data that can travel to other processes and machines."""

    task: str  #: such as cora-node
    data_set: str
    level: str
    model: str  #: gcn or gat
    block: int  #: which part of the task's targets
    targets: tuple[Target, ...]
    explainers: tuple[Named, ...]
    metrics: tuple[Named, ...]  #: beside those that are always measured
    names: tuple[str, ...]  #: of all metrics, a row for each
    settings: Mapping[str, Any]
    timed: int  #: how many of these targets are explained alone
    seed: int
    data: str  #: digest of the task's data
    network: str  #: digest of the network
    format: int = FORMAT

    @property
    def key(self) -> str:
        """A digest of exactly this content."""
        return digest_of(asdict(self))

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
        """The number of explanations."""
        return len(self.targets) * len(self.explainers)

    def only(self, labels: Iterable[str]) -> "Shard":
        """The same shard with some of its explainers."""
        chosen = set(labels)
        return replace(
            self,
            explainers=tuple(
                explainer for explainer in self.explainers if explainer.label in chosen
            ),
        )


def digest_of(content: Any) -> str:
    """A digest of plain data.

    >>> digest_of({"a": 1, "b": (2, 3)}) == digest_of({"b": [2, 3], "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, default=repr)
    return blake2b_hex(text, size=16)


def blocks(targets: list[Target], size: int, timed: int = 0) -> list[tuple[Target, ...]]:
    """Split targets into parts of ``size``; the last may be smaller. The first ``timed`` targets
    have parts of their own.

    >>> blocks([1, 2, 3], 2)
    [(1, 2), (3,)]
    >>> blocks([1, 2, 3, 4, 5, 6], 3, timed=2)
    [(1, 2), (3, 4, 5), (6,)]
    """
    parts = targets[:timed], targets[timed:]
    return [
        tuple(part[start : start + size]) for part in parts for start in range(0, len(part), size)
    ]
