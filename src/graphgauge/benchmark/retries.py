"""A stored shard and its retries, read as one.

Cells of an explainer that failed or took too long are marked, and stay marked. Asked to
(`--retry`), a run measures those explainers once more. Nothing in a store is changed, so what comes
out is a further entry:

    kind "retry", key "SHARD'S KEY/1" (2, 3, ...)    the body of a shard, `retried`: the labels; rows of these explainers only

For readers the last word counts: of each explainer the rows and the fault (or none) of the last
entry that measured it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphgauge.benchmark.shards import Shard
from graphgauge.core.phases import added
from graphgauge.store import Entry, Store

SHARD, RETRY, EXAMPLES = "shard", "retry", "examples"


@dataclass(frozen=True)
class Kept:
    """A shard in the store: as it was measured first, and its retries in order."""

    first: Entry
    retries: tuple[Entry, ...] = ()

    @property
    def faults(self) -> dict[str, Any]:
        """Explainers that are marked now, with the reason."""
        found = dict(self.first.body["faults"])
        for entry in self.retries:
            found = {
                label: fault for label, fault in found.items() if label not in entry.body["retried"]
            } | entry.body["faults"]
        return found

    @property
    def body(self) -> dict[str, Any]:
        """The shard's body with the faults of now, the seconds of all calls, every remark, and the
        first machine that is known.
        """
        bodies = [self.first.body, *(entry.body for entry in self.retries)]
        remarks = sorted({remark for body in bodies for remark in body["remarks"]})
        machine: dict[str, Any] = next((body["machine"] for body in bodies if body["machine"]), {})
        seconds, phases = (
            sum(body["seconds"] for body in bodies),
            added(*(body.get("phases", {}) for body in bodies)),
        )
        found = {
            "faults": self.faults,
            "seconds": seconds,
            "phases": phases,
            "remarks": remarks,
            "machine": machine,
        }
        return {**self.first.body, **found}

    @property
    def at(self) -> str:
        """When it was last written to."""
        return (self.first, *self.retries)[-1].at

    def rows(self, store: Store) -> list[tuple[dict[str, Any], Mapping[str, Any]]]:
        """The rows that count, each with the body of its entry; explainers in the order of the
        shard.
        """
        found: dict[str, list[tuple[dict[str, Any], Mapping[str, Any]]]] = {}
        for entry in (self.first, *self.retries):
            found |= {label: [] for label in entry.body.get("retried", ())}
            for row in store.rows(entry):
                found.setdefault(row["explainer"], []).append((row, entry.body))
        return [row for own in found.values() for row in own]


def kept_shards(store: Store) -> dict[str, Kept]:
    """Every stored shard by its key."""
    again: dict[str, list[Entry]] = {}
    for entry in store.entries(RETRY):
        again.setdefault(entry.key.partition("/")[0], []).append(entry)
    return {
        entry.key: Kept(entry, tuple(again.get(entry.key, ()))) for entry in store.entries(SHARD)
    }


def to_retry(store: Store, shards: list[Shard]) -> dict[str, Shard]:
    """What `--retry` measures: the marked explainers of each shard, under the key of their entry."""
    kept = kept_shards(store)
    marked = [
        (shard, kept[shard.key]) for shard in shards if shard.key in kept and kept[shard.key].faults
    ]
    return {f"{shard.key}/{len(own.retries) + 1}": shard.only(own.faults) for shard, own in marked}
