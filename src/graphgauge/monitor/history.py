"""What the monitoring store holds, read: the baseline in force, the runs since, the triggers that
wait.

    entries of the store   key          body                                                          rows
    baseline               1, 2, ...    at, plan, facts, missing, summary; replaces the one before;    one per target, with data
                                        the decision behind it, if there was one
    run                    1, 2, ...    the same, the number of its baseline, its triggers            one per target
    trigger                1, 2, ...    at, the number of the baseline, a trigger raised by hand
    settled                1, 2, ...    at, the trigger's name, a note
    examples               a run's      explanations of the run as people see them: sentences and pictures; only the last are read

The second trigger of run 7 is called 7.2, the first one raised by hand m1. A trigger waits until it
is settled with a note, or until a newer baseline says that validation was done again.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from graphgauge.core.errors import BadFile
from graphgauge.monitor.plan import Plan
from graphgauge.monitor.samples import Sample, sample_of_rows
from graphgauge.monitor.scoring import Facts
from graphgauge.monitor.triggers import Trigger
from graphgauge.monitor.validated import Validated
from graphgauge.store import Entry, Store

BASELINE, RUN, TRIGGER, SETTLED, EXAMPLES = "baseline", "run", "trigger", "settled", "examples"


@dataclass(frozen=True)
class Look:
    """A baseline or a run: targets measured on a day."""

    number: int
    at: datetime
    plan: Plan
    facts: Facts
    sample: Sample
    body: dict[str, Any]

    @property
    def validated(self) -> Validated | None:
        """The decision that a baseline follows, if there was one."""
        return Validated.from_record(self.body.get("validated"))


@dataclass(frozen=True)
class Raised:
    """A trigger as it was raised."""

    name: str  #: such as 7.2 or m1
    at: datetime
    baseline: int  #: in force at the time; 0: none
    trigger: Trigger
    note: str | None = None  #: why it is settled; None: it is not


@dataclass(frozen=True)
class History:
    """Everything in a store, in the order of writing."""

    baselines: tuple[Look, ...]
    runs: tuple[Look, ...]
    raised: tuple[Raised, ...]
    examples: tuple[dict[str, Any], ...] = ()  #: of the last run

    @property
    def baseline(self) -> Look | None:
        """The one in force."""
        return self.baselines[-1] if self.baselines else None

    @cached_property
    def since(self) -> list[Look]:
        """Runs that were held against the baseline in force."""
        return [
            run
            for run in self.runs
            if run.body["baseline"] == (self.baseline.number if self.baseline else 0)
        ]

    @property
    def waiting(self) -> list[Raised]:
        """Triggers that nobody has settled since the baseline in force."""
        current = self.baseline.number if self.baseline else 0
        return [own for own in self.raised if own.baseline == current and own.note is None]


def read_history(path: str | os.PathLike[str]) -> History:
    """Everything in a store."""
    with Store(path) as store:
        return history_of(store)


def history_of(store: Store) -> History:
    """Everything in an open store."""
    try:
        baselines, runs = (
            [look_of(store, entry) for entry in store.entries(kind)] for kind in (BASELINE, RUN)
        )
        notes = {entry.body["trigger"]: entry.body["note"] for entry in store.entries(SETTLED)}
        raised = [
            *(own for run in runs for own in raised_by(run, notes)),
            *(by_hand(e, notes) for e in store.entries(TRIGGER)),
        ]
        examples = examples_of(store, runs[-1] if runs else None)
    except (LookupError, TypeError, ValueError) as error:
        raise BadFile(
            f"{store.path} is no monitoring store: {error!r}. Name the file that `graphgauge monitor baseline` made."
        ) from error
    return History(
        tuple(baselines), tuple(runs), tuple(sorted(raised, key=lambda own: own.at)), examples
    )


def look_of(store: Store, entry: Entry) -> Look:
    """A baseline or a run."""
    body = entry.body
    facts = Facts.from_record(body["facts"])
    sample = sample_of_rows(
        store.rows(entry), body["metrics"], body["missing"], len(facts.columns), len(facts.features)
    )
    return Look(
        int(entry.key),
        datetime.fromisoformat(body["at"]),
        Plan.from_record(body["plan"]),
        facts,
        sample,
        body,
    )


def examples_of(store: Store, last: Look | None) -> tuple[dict[str, Any], ...]:
    """What the last run kept for people; nothing if it kept nothing."""
    found = store.last(EXAMPLES)
    return (
        tuple(found.body)
        if found is not None and last is not None and found.key == str(last.number)
        else ()
    )


def raised_by(run: Look, notes: dict[str, str]) -> list[Raised]:
    """The triggers of a run, with the notes that settle them."""
    names = [f"{run.number}.{k + 1}" for k in range(len(run.body["triggers"]))]
    return [
        Raised(name, run.at, run.body["baseline"], Trigger.from_record(own), notes.get(name))
        for name, own in zip(names, run.body["triggers"], strict=True)
    ]


def by_hand(entry: Entry, notes: dict[str, str]) -> Raised:
    """A trigger that someone raised."""
    body, name = entry.body, f"m{entry.key}"
    return Raised(
        name,
        datetime.fromisoformat(body["at"]),
        body["baseline"],
        Trigger.from_record(body["trigger"]),
        notes.get(name),
    )


def grouped(waiting: Sequence[Raised]) -> list[list[Raised]]:
    """Triggers about the same thing together, the newest group first."""
    groups: dict[tuple[str, str], list[Raised]] = {}
    for own in waiting:
        groups.setdefault(own.trigger.key, []).append(own)
    return sorted(groups.values(), key=lambda own: own[-1].at, reverse=True)
