"""A stored shard and its retries, read as one.

The cells of an explainer that failed or took too long are marked, and remain marked. With
`--retry`, a run measures those explainers again. Nothing in a store is changed, so the result is a
further entry of kind "retry" with the key "SHARD'S KEY/1" (2, 3, ...). Its body is that of a shard,
with the labels of the explainers as `retried`, and its rows are those of these explainers only.

For readers the last entry counts: for each explainer the rows and the fault (or none) of the last
entry that measured it.
"""

from dataclasses import dataclass

from graphgauge.benchmark.shards import Shard
from graphgauge.core import JsonObject, sum_phases
from graphgauge.store import Store, StoreEntry

SHARD_ENTRY, RETRY_ENTRY, EXAMPLES_ENTRY = "shard", "retry", "examples"


@dataclass(frozen=True)
class _StoredShard:
    """A shard in the store: its first measurement, and its retries in order."""

    first: StoreEntry
    retries: tuple[StoreEntry, ...] = ()

    @property
    def faults(self) -> JsonObject:
        """The explainers that are still marked, with the reason."""
        faults = dict(self.first.body["faults"])
        for entry in self.retries:
            faults = {
                label: fault
                for label, fault in faults.items()
                if label not in entry.body["retried"]
            } | entry.body["faults"]
        return faults

    @property
    def body(self) -> JsonObject:
        """The body of the shard with its current faults, the seconds of all calls, every remark,
        and the first machine that is known.
        """
        bodies = [self.first.body, *(entry.body for entry in self.retries)]
        remarks = sorted({remark for body in bodies for remark in body["remarks"]})
        machine: JsonObject = next((body["machine"] for body in bodies if body["machine"]), {})
        seconds, phases = (
            sum(body["seconds"] for body in bodies),
            sum_phases(*(body.get("phases", {}) for body in bodies)),
        )
        current = {
            "faults": self.faults,
            "seconds": seconds,
            "phases": phases,
            "remarks": remarks,
            "machine": machine,
        }
        return {**self.first.body, **current}

    @property
    def at(self) -> str:
        """When the shard was last written to."""
        return (self.first, *self.retries)[-1].at

    def rows(self, store: Store) -> list[tuple[JsonObject, JsonObject]]:
        """The rows that count, each with the body of its entry; explainers in the order of the
        shard.
        """
        rows_by_explainer: dict[str, list[tuple[JsonObject, JsonObject]]] = {}
        for entry in (self.first, *self.retries):
            rows_by_explainer |= {label: [] for label in entry.body.get("retried", ())}
            for row in store.rows(entry):
                rows_by_explainer.setdefault(row["explainer"], []).append((row, entry.body))
        return [row for rows in rows_by_explainer.values() for row in rows]


def read_stored_shards(store: Store) -> dict[str, _StoredShard]:
    """Every stored shard by its key."""
    retries: dict[str, list[StoreEntry]] = {}
    for entry in store.entries(RETRY_ENTRY):
        retries.setdefault(entry.key.partition("/")[0], []).append(entry)
    return {
        entry.key: _StoredShard(entry, tuple(retries.get(entry.key, ())))
        for entry in store.entries(SHARD_ENTRY)
    }


def select_retries(store: Store, shards: list[Shard]) -> dict[str, Shard]:
    """What `--retry` measures: the marked explainers of each shard, by the key of their entry."""
    kept = read_stored_shards(store)
    marked = [
        (shard, kept[shard.key]) for shard in shards if shard.key in kept and kept[shard.key].faults
    ]
    return {
        f"{shard.key}/{len(stored.retries) + 1}": shard.only(stored.faults)
        for shard, stored in marked
    }
