"""The runner: one process that submits shards to an engine, waits, and stores the results.

Workers return values; only this process writes. A shard is stored when all of its explainers are
resolved, in one transaction. So a run that is killed at any moment holds whole shards only, and the
same command continues with the others.

When something goes wrong in a shard with several explainers (an error, a time limit, a worker that
died twice), it is measured again explainer by explainer, so that only the cells of the failing one
are marked. An explainer that failed once is measured apart from the others from then on. Neither
changes a number. Marked cells are measured again only when that is requested (see `retries`).

Explanations are timed while nothing else runs: shards with timed targets come first, and one at a
time.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field

from graphgauge.benchmark.engines.base import Engine
from graphgauge.benchmark.eta import TimeEstimate, format_duration
from graphgauge.benchmark.retries import EXAMPLES_ENTRY, RETRY_ENTRY, SHARD_ENTRY
from graphgauge.benchmark.shard_result import MeasurementFault, ShardResult
from graphgauge.benchmark.shards import Shard
from graphgauge.core import JsonObject, sum_phases
from graphgauge.store import Store

_MAX_WORKER_DEATHS = 2  #: under the same shard, before the shard is marked as failed
_POLL_SECONDS = 0.5
#: called with a text for people and the number of explanations made since the last call
ProgressCallback = Callable[[str, float], None]


@dataclass
class _WorkUnit:
    """A shard, or some explainers of one, on its way through the engine."""

    key: str  #: of the whole shard, or of its retry
    shard: Shard
    deaths: int = 0
    since: float = 0.0


@dataclass
class _PartialResult:
    """What is known of a shard so far."""

    shard: Shard
    open: int  #: units that have not come back
    rows: dict[str, list[JsonObject]] = field(default_factory=dict)
    faults: dict[str, dict[str, str]] = field(default_factory=dict)
    examples: list[JsonObject] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    machine: JsonObject = field(default_factory=dict)
    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)


class Runner:
    """Measures shards with an engine and appends them to a store."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        work: Callable[[Shard], ShardResult],
        *,
        limit: float,
        shared: JsonObject,
        report: ProgressCallback,
    ) -> None:
        self.store, self.engine, self.work, self.limit, self.shared, self.report = (
            store,
            engine,
            work,
            limit,
            shared,
            report,
        )
        self.waiting: deque[_WorkUnit] = deque()
        self.running: dict[Future[ShardResult], _WorkUnit] = {}
        self.gathered: dict[str, _PartialResult] = {}
        self.suspects: set[str] = set()
        self.estimate = TimeEstimate()

    def run(self, shards: Iterable[Shard], retries: Mapping[str, Shard] | None = None) -> None:
        """Measure all shards that the store does not hold, then the retries.

        Args:
            shards: All shards of the run.
            retries: Parts of stored shards to measure again, by the key of their entry.
        """
        self._read_earlier_calls()
        done = self.store.keys(SHARD_ENTRY)
        todo = [(shard.key, shard) for shard in shards if shard.key not in done] + list(
            (retries or {}).items()
        )
        left = deque(sorted(todo, key=lambda entry: entry[1].timed == 0))
        for _, shard in left:
            self.estimate.plan((shard.task, shard.model), shard.size)
        while left or self.waiting or self.running:
            self._submit_work(left)
            finished, _ = wait(self.running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in finished:
                self._handle_finished(future, self.running.pop(future))
            self._stop_overdue()

    def _read_earlier_calls(self) -> None:
        """Read what earlier calls measured: seconds, and explainers that failed."""
        for entry in (*self.store.entries(SHARD_ENTRY), *self.store.entries(RETRY_ENTRY)):
            self.suspects |= set(entry.body["faults"])
            if entry.body["explanations"]:
                self.estimate.record(
                    (entry.body["task"], entry.body["model"]),
                    entry.body["explanations"],
                    entry.body["seconds"],
                )

    def _submit_work(self, left: "deque[tuple[str, Shard]]") -> None:
        """Submit work until all places of the engine are taken."""
        while len(self.running) < self.engine.places and (self.waiting or left):
            if not self.waiting:
                key, shard = left.popleft()
                self._start_shard(key, shard, _group_explainers(shard, self.suspects))
            if self._would_disturb(self.waiting[0]):
                return
            unit = self.waiting.popleft()
            self.running[self.engine.submit(self.work, unit.shard)] = unit
            unit.since = time.monotonic()

    def _would_disturb(self, unit: _WorkUnit) -> bool:
        """Whether explanations would be timed while other work runs."""
        running = self.running.values()
        return (
            self.engine.shares
            and bool(running)
            and any(other.shard.timed for other in (unit, *running))
        )

    def _start_shard(self, key: str, shard: Shard, groups: list[list[str]]) -> None:
        """Begin a shard, in one unit or in several."""
        self.gathered.setdefault(key, _PartialResult(shard, 0)).open += len(groups)
        self.waiting.extendleft(_WorkUnit(key, shard.only(group)) for group in reversed(groups))

    def _handle_finished(self, future: "Future[ShardResult]", unit: _WorkUnit) -> None:
        """Handle a unit that finished, or whose worker died."""
        error = future.exception()
        if error is None:
            self._keep_result(unit, future.result())
        elif self.engine.is_death(error):
            self._handle_worker_death(unit)
        else:
            raise error

    def _handle_worker_death(self, unit: _WorkUnit) -> None:
        """Retry a unit once after a worker crash, then mark it as failed."""
        unit.deaths += 1
        self.store.append_numbered(
            "log", f"the worker of {unit.shard.title} ({', '.join(unit.shard.labels)}) died"
        )
        if unit.deaths < _MAX_WORKER_DEATHS:
            self.waiting.appendleft(unit)
            return
        message = (
            f"the worker process ended {unit.deaths} times without a result (exit, crash, or "
            "killed for want of memory)"
        )
        self._keep_result(unit, ShardResult([], MeasurementFault("failed", message)))

    def _stop_overdue(self) -> None:
        """Stop units that exceed the time limit."""
        for future, unit in list(self.running.items()):
            if time.monotonic() - unit.since > self.limit and not future.done():
                del self.running[future]
                self.engine.abandon(future)
                self._keep_result(
                    unit,
                    ShardResult(
                        [],
                        MeasurementFault("timeout", f"no result within {self.limit:g} s"),
                        self.limit,
                    ),
                )

    def _keep_result(self, unit: _WorkUnit, outcome: ShardResult) -> None:
        """Keep the result of a unit. Split it if several explainers may have failed; store the
        shard once it is complete.
        """
        gathered = self.gathered[unit.key]
        gathered.open -= 1
        gathered.seconds += outcome.seconds
        gathered.phases = sum_phases(gathered.phases, outcome.phases)
        if outcome.fault is None:
            _collect_rows(gathered, outcome)
        elif len(unit.shard.explainers) > 1:
            self._log_fault(unit, outcome.fault)
            self._start_shard(unit.key, unit.shard, [[label] for label in unit.shard.labels])
        else:
            self._log_fault(unit, outcome.fault)
            self.suspects.update(unit.shard.labels)
            _mark_failed(gathered, unit.shard, outcome.fault)
        if not gathered.open:
            self._store_shard(unit.key, self.gathered.pop(unit.key))

    def _log_fault(self, unit: _WorkUnit, fault: MeasurementFault) -> None:
        """Write a fault to the log."""
        self.store.append_numbered(
            "log",
            f"{unit.shard.title}, {', '.join(unit.shard.labels)}: {fault.status}, {fault.message}",
        )

    def _store_shard(self, key: str, gathered: _PartialResult) -> None:
        """Store a shard, or the part of one that was retried. It is not measured again unless that
        is requested.
        """
        shard, is_retry = gathered.shard, key != gathered.shard.key
        body = {
            "task": shard.task,
            "model": shard.model,
            "seed": shard.seed,
            "explanations": shard.size,
            "seconds": gathered.seconds,
            "phases": gathered.phases,
            "faults": gathered.faults,
            "remarks": sorted(set(gathered.remarks)),
            "machine": gathered.machine,
            **self.shared,
            **({"retried": list(shard.labels)} if is_retry else {}),
        }
        # a call that was killed between these two entries has written the examples
        if key not in self.store.keys(EXAMPLES_ENTRY):
            self.store.append(EXAMPLES_ENTRY, key, None, gathered.examples)
        self.store.append(
            RETRY_ENTRY if is_retry else SHARD_ENTRY,
            key,
            body,
            [row for label in shard.labels for row in gathered.rows[label]],
        )
        if shard.size:
            self.estimate.finish((shard.task, shard.model), shard.size, gathered.seconds)
        left = self.estimate.seconds_left(self.engine.places)
        ending = "" if left is None else f", about {format_duration(left)} left"
        self.report(f"{shard.title} {'tried again' if is_retry else 'done'}{ending}", shard.size)


def _group_explainers(shard: Shard, suspects: set[str]) -> list[list[str]]:
    """Explainers that are measured together; those that failed before are measured apart."""
    trusted = [label for label in shard.labels if label not in suspects]
    return [
        *([trusted] if trusted else []),
        *([label] for label in shard.labels if label in suspects),
    ]


def _collect_rows(gathered: _PartialResult, outcome: ShardResult) -> None:
    """Add the rows of a unit to those of its shard."""
    for row in outcome.rows:
        gathered.rows.setdefault(row["explainer"], []).append(row)
    gathered.examples += outcome.examples
    gathered.remarks += outcome.remarks
    gathered.machine = outcome.machine


def _mark_failed(gathered: _PartialResult, shard: Shard, fault: MeasurementFault) -> None:
    """Add a row with the fault for every number that the one explainer of a unit does not have."""
    (label,) = shard.labels
    gathered.faults[label] = {"status": fault.status, "message": fault.message}
    shared = {
        "explainer": label,
        "occurrence": 0,
        "seconds": None,
        "status": fault.status,
        "message": fault.message,
    }
    gathered.rows[label] = [
        {**shared, "target": target, "metric": metric}
        for target in shard.targets
        for metric in shard.metrics_of(target)
    ]
