"""The content of the monitoring store: the baseline in force, the runs since, the waiting triggers.

    entry       key         body                                              rows
    baseline    1, 2, ...   at, plan, facts, missing, summary, and the        one per target, with
                            decision behind it if there was one; replaces     data
                            the baseline before it
    run         1, 2, ...   the same, the number of its baseline, its         one per target
                            triggers
    trigger     1, 2, ...   at, the number of the baseline, a manual trigger
    settled     1, 2, ...   at, the name of the trigger, a note
    examples    a run's     explanations of the run with sentences and
                            pictures; only those of the last run are read

The second trigger of run 7 is called 7.2, the first manual one m1. A trigger waits until it is
settled with a note, or until a newer baseline shows that the validation was repeated.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from graphgauge.core import BadFile, JsonObject
from graphgauge.monitor.monitoring_plan import Plan
from graphgauge.monitor.run_sample import Sample, sample_from_rows
from graphgauge.monitor.scoring import MeasurementFacts
from graphgauge.monitor.triggers import Trigger
from graphgauge.monitor.validation_record import ValidationRecord
from graphgauge.store import Store, StoreEntry

BASELINE_ENTRY, RUN_ENTRY, TRIGGER_ENTRY, SETTLED_ENTRY, EXAMPLES_ENTRY = (
    "baseline",
    "run",
    "trigger",
    "settled",
    "examples",
)


@dataclass(frozen=True)
class Snapshot:
    """A baseline or a run: the targets that were measured at one time."""

    number: int
    at: datetime
    plan: Plan
    facts: MeasurementFacts
    sample: Sample
    body: JsonObject

    @property
    def validated(self) -> ValidationRecord | None:
        """The decision that a baseline follows, if there was one."""
        return ValidationRecord.from_record(self.body.get("validated"))


@dataclass(frozen=True)
class RaisedTrigger:
    """A trigger with its name, its time and its state."""

    name: str  #: such as 7.2 or m1
    at: datetime
    baseline: int  #: in force at the time; 0: none
    trigger: Trigger
    note: str | None = None  #: why it is settled; None: it is not


@dataclass(frozen=True)
class History:
    """The content of a store, in the order of writing."""

    baselines: tuple[Snapshot, ...]
    runs: tuple[Snapshot, ...]
    triggers: tuple[RaisedTrigger, ...]
    examples: tuple[JsonObject, ...] = ()  #: of the last run

    @property
    def baseline(self) -> Snapshot | None:
        """The baseline in force."""
        return self.baselines[-1] if self.baselines else None

    @cached_property
    def runs_since_baseline(self) -> list[Snapshot]:
        """The runs that were compared with the baseline in force."""
        return [
            run
            for run in self.runs
            if run.body["baseline"] == (self.baseline.number if self.baseline else 0)
        ]

    @property
    def waiting_triggers(self) -> list[RaisedTrigger]:
        """The triggers since the baseline in force that nobody has settled."""
        current = self.baseline.number if self.baseline else 0
        return [own for own in self.triggers if own.baseline == current and own.note is None]


def read_history(path: str | os.PathLike[str]) -> History:
    """Read the whole content of a store."""
    with Store(path) as store:
        return history_from_store(store)


def history_from_store(store: Store) -> History:
    """Read the whole content of an open store."""
    try:
        baselines, runs = (
            [_load_snapshot(store, entry) for entry in store.entries(kind)]
            for kind in (BASELINE_ENTRY, RUN_ENTRY)
        )
        notes = {
            entry.body["trigger"]: entry.body["note"] for entry in store.entries(SETTLED_ENTRY)
        }
        raised = [
            *(own for run in runs for own in _triggers_of_run(run, notes)),
            *(_load_manual_trigger(e, notes) for e in store.entries(TRIGGER_ENTRY)),
        ]
        examples = _last_examples(store, runs[-1] if runs else None)
    except (LookupError, TypeError, ValueError) as error:
        raise BadFile(
            f"{store.path} is not a monitoring store: {error!r}. "
            "Name the file that `graphgauge monitor baseline` wrote."
        ) from error
    return History(
        tuple(baselines), tuple(runs), tuple(sorted(raised, key=lambda own: own.at)), examples
    )


def _load_snapshot(store: Store, entry: StoreEntry) -> Snapshot:
    """Read a baseline or a run."""
    body = entry.body
    facts = MeasurementFacts.from_record(body["facts"])
    sample = sample_from_rows(
        store.rows(entry), body["metrics"], body["missing"], len(facts.columns), len(facts.features)
    )
    return Snapshot(
        int(entry.key),
        datetime.fromisoformat(body["at"]),
        Plan.from_record(body["plan"]),
        facts,
        sample,
        body,
    )


def _last_examples(store: Store, last: Snapshot | None) -> tuple[JsonObject, ...]:
    """Return the examples that the last run kept, if any."""
    found = store.last(EXAMPLES_ENTRY)
    return (
        tuple(found.body)
        if found is not None and last is not None and found.key == str(last.number)
        else ()
    )


def _triggers_of_run(run: Snapshot, notes: dict[str, str]) -> list[RaisedTrigger]:
    """Return the triggers of a run, with the notes that settle them."""
    names = [f"{run.number}.{k + 1}" for k in range(len(run.body["triggers"]))]
    return [
        RaisedTrigger(name, run.at, run.body["baseline"], Trigger.from_record(own), notes.get(name))
        for name, own in zip(names, run.body["triggers"], strict=True)
    ]


def _load_manual_trigger(entry: StoreEntry, notes: dict[str, str]) -> RaisedTrigger:
    """Read a manual trigger."""
    body, name = entry.body, f"m{entry.key}"
    return RaisedTrigger(
        name,
        datetime.fromisoformat(body["at"]),
        body["baseline"],
        Trigger.from_record(body["trigger"]),
        notes.get(name),
    )


def group_triggers(waiting: Sequence[RaisedTrigger]) -> list[list[RaisedTrigger]]:
    """Group triggers by subject, the newest group first."""
    groups: dict[tuple[str, str], list[RaisedTrigger]] = {}
    for own in waiting:
        groups.setdefault(own.trigger.key, []).append(own)
    return sorted(groups.values(), key=lambda own: own[-1].at, reverse=True)
