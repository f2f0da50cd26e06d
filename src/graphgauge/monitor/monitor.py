"""Monitor a model in use: take a baseline, then add runs; an append-only store keeps everything.

monitor = Monitor("monitor.sqlite")
monitor.take_baseline(evaluator, explainer, validation_targets)    # after every validation
run = monitor.run(evaluator, explainer, recent_targets)            # from cron, weekly
run.triggers, monitor.status().code
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from graphgauge.core import BadFile, BadSetting, JsonObject, derive_seed, lookup
from graphgauge.evaluation import Evaluator, Results
from graphgauge.explainers import BaseExplainer
from graphgauge.monitor.drift import ColumnNames, drift_triggers
from graphgauge.monitor.history import (
    BASELINE_ENTRY,
    EXAMPLES_ENTRY,
    RUN_ENTRY,
    SETTLED_ENTRY,
    TRIGGER_ENTRY,
    History,
    Snapshot,
    history_from_store,
    read_history,
)
from graphgauge.monitor.monitoring_plan import Plan
from graphgauge.monitor.run_sample import CLOCK_METRICS, Sample, sample_from_results
from graphgauge.monitor.scoring import (
    MeasurementFacts,
    facts_from_results,
    sample_recent,
    score_targets,
    score_targets_with_results,
)
from graphgauge.monitor.status import Status, compute_status, validation_age_triggers
from graphgauge.monitor.threshold_triggers import (
    find_threshold_triggers,
    manual_trigger,
    model_triggers,
)
from graphgauge.monitor.triggers import Trigger
from graphgauge.monitor.validation_record import ValidationRecord
from graphgauge.store import Store, WriterLock

_BASELINE_TARGETS = 200  #: targets of a baseline
#: what people see of a few explanations, as plain data
ExampleCallback = Callable[[Results], list[JsonObject]]


@dataclass(frozen=True)
class Monitor:
    """A monitoring store, and the plan for what is written into it from now on.

    Args:
        path: File of the store; it is made by the first baseline.
        plan: The plan (default: the one stored last, or `Plan()`).
    """

    path: Path
    plan: Plan

    def __init__(self, path: str | os.PathLike[str], plan: Plan | None = None) -> None:
        object.__setattr__(self, "path", Path(path))
        object.__setattr__(self, "plan", plan if plan is not None else _stored_plan(self.path))

    def history(self) -> History:
        """Read everything in the store."""
        return read_history(self.path)

    def status(self, at: datetime | None = None) -> Status:
        """Return which actions are due at a time (default: now)."""
        return compute_status(self.history(), to_utc(at))

    # --- measuring --------------------------------------------------------------------------------

    def take_baseline(
        self,
        evaluator: Evaluator,
        explainer: BaseExplainer,
        among: Any = None,
        number: int = _BASELINE_TARGETS,
        at: datetime | None = None,
        validated: ValidationRecord | None = None,
    ) -> Snapshot:
        """Measure targets, and store them as the baseline that later runs are compared with.

        Args:
            evaluator: Evaluator of the model in use; its cheap settings are used.
            explainer: The explainer in use.
            among: Targets to draw from (default: the whole population).
            number: How many targets to draw.
            at: Time of the baseline (default: now).
            validated: The decision behind the baseline, if there is one.

        Returns:
            The stored baseline.

        Raises:
            BadSetting: Fewer than two targets, or no metrics, were measured.
        """
        targets = sample_recent(
            evaluator.model, number, among, derive_seed(evaluator.seed, BASELINE_ENTRY)
        )
        return self.add_baseline(
            *score_targets(evaluator, explainer, targets, self.plan.top), at=at, validated=validated
        )

    def baseline_of(
        self,
        results: Results,
        explainer: str,
        at: datetime | None = None,
        validated: ValidationRecord | None = None,
    ) -> Snapshot:
        """Store metrics of earlier results as the baseline.

        The results must have cheap settings. The ranking of features, the data and the weights of
        the network are then not monitored.

        Args:
            results: Results of at least two targets.
            explainer: Name of the explainer whose rows are taken.
            at: Time of the baseline (default: now). A time without a zone is taken as UTC.
            validated: The decision behind the baseline, if there is one.

        Returns:
            The stored baseline.

        Raises:
            UnknownName: The results have no explainer of that name.
            BadSetting: The results have other settings, too few targets, or no metrics.
        """
        lookup(
            dict.fromkeys(row.explainer for row in results.rows),
            explainer,
            "explainer of these results",
        )
        return self.add_baseline(
            sample_from_results(results, explainer),
            facts_from_results(results, explainer),
            at,
            validated,
        )

    def run(
        self,
        evaluator: Evaluator,
        explainer: BaseExplainer,
        among: Any = None,
        number: int | None = None,
        at: datetime | None = None,
        show: ExampleCallback | None = None,
    ) -> "MonitoringRun":
        """Measure recent targets, compare them with the baseline, and store run and triggers.

        Args:
            evaluator: Evaluator of the model in use; its cheap settings are used.
            explainer: The explainer of the baseline.
            among: Targets to draw from (default: the whole population).
            number: How many targets to draw (default: the plan's number).
            at: Time of the run (default: now).
            show: Selects what is kept for people of a few explanations; see
                `graphgauge.lifecycle.shown_examples`.

        Raises:
            BadFile: The store holds no baseline.
            BadSetting: The run is older than the last one, or was measured differently.
        """
        now, before = to_utc(at), self.history()
        baseline = _require_baseline(before, self.path)
        seed = derive_seed(evaluator.seed, RUN_ENTRY, len(before.runs) + 1)
        targets = sample_recent(evaluator.model, number or self.plan.number, among, seed)
        sample, facts, results = score_targets_with_results(
            evaluator, explainer, targets, baseline.plan.top
        )
        return self.add_run(sample, facts, at=now, examples=[] if show is None else show(results))

    # --- writing ----------------------------------------------------------------------------------

    def add_baseline(
        self,
        sample: Sample,
        facts: MeasurementFacts,
        at: datetime | None = None,
        validated: ValidationRecord | None = None,
    ) -> Snapshot:
        """Store a sample as the baseline from now on.

        Args:
            sample: What was measured, for two targets or more.
            facts: How it was measured; later runs must be measured in the same way.
            at: Time of the baseline (default: now). A time without a zone is taken as UTC.
            validated: The decision behind the baseline, if there is one.

        Returns:
            The stored baseline.

        Raises:
            BadSetting: The sample has fewer than two targets, or no metrics.
        """
        if len(sample) < 2 or not sample.metrics:
            raise BadSetting(
                f"a baseline needs two targets or more with metrics, but {len(sample)} targets "
                f"with {len(sample.metrics)} metrics were given."
            )
        with self.writing() as store:
            number = 1 + len(store.keys(BASELINE_ENTRY))
            body = {**self.body_of(sample, facts, to_utc(at)), "summary": _summarise_sample(sample)}
            if validated is not None:
                body["validated"] = validated.record()
            store.append(BASELINE_ENTRY, str(number), body, sample.rows(with_data=True))
            return history_from_store(store).baselines[-1]

    def add_run(
        self,
        sample: Sample,
        facts: MeasurementFacts,
        at: datetime | None = None,
        examples: Sequence[JsonObject] = (),
    ) -> "MonitoringRun":
        """Compare a sample with the baseline, and store the run and its triggers.

        Args:
            sample: What was measured.
            facts: How it was measured.
            at: Time of the run (default: now). A time without a zone is taken as UTC.
            examples: A few explanations for people, as plain data; those of the last run are shown.

        Returns:
            The run with its triggers, and the status after it.

        Raises:
            BadFile: The store holds no baseline.
            BadSetting: The run is older than the last one, or was measured differently.
        """
        now = to_utc(at)
        with self.writing() as store:
            before = history_from_store(store)
            baseline = _require_baseline(before, self.path)
            _check_order(before, now)
            _check_same_setup(facts, baseline.facts)
            number = 1 + len(before.runs)
            triggers = _find_triggers(
                baseline,
                [*(own.sample for own in before.runs_since_baseline), sample],
                facts,
                self.plan,
                now,
            )
            body = {
                **self.body_of(sample, facts, now),
                "baseline": baseline.number,
                "triggers": [own.record() for own in triggers],
            }
            if sample.data is not None:
                body["data"] = sample.data.mean(0).tolist()
            store.append(RUN_ENTRY, str(number), body, sample.rows(with_data=False))
            if examples:
                store.append(EXAMPLES_ENTRY, str(number), list(examples))
        return MonitoringRun(number, now, sample, tuple(triggers), self.status(now))

    def trigger(self, reason: str, who: str = "", at: datetime | None = None) -> Trigger:
        """Raise a trigger by hand, for example after a change of the rules.

        Args:
            reason: Why a new validation is necessary, such as "regulatory update".
            who: Who raises it; by default nobody is named.
            at: Time of the trigger (default: now). A time without a zone is taken as UTC.

        Returns:
            The stored trigger.

        Raises:
            BadSetting: The reason is empty.
        """
        if not reason.strip():
            raise BadSetting("a manual trigger needs a reason, such as 'regulatory update'.")
        with self.writing() as store:
            own, baselines = (
                manual_trigger(reason.strip(), who.strip()),
                len(store.keys(BASELINE_ENTRY)),
            )
            store.append_numbered(
                TRIGGER_ENTRY,
                {"at": to_utc(at).isoformat(), "baseline": baselines, "trigger": own.record()},
            )
        return own

    def settle(self, name: str, note: str, at: datetime | None = None) -> list[str]:
        """Settle a trigger, and all others about the same subject, with a note.

        Args:
            name: Name of a waiting trigger: "7.2" is the second of run 7, "m1" the first that was
                raised by hand.
            note: What was done about it, or why nothing was.
            at: Time of the note (default: now). A time without a zone is taken as UTC.

        Returns:
            The names of the settled triggers.

        Raises:
            BadSetting: The note is empty, or no trigger of that name waits.
        """
        if not note.strip():
            raise BadSetting(
                "a trigger is settled with a note that says what was done, or why nothing was."
            )
        with self.writing() as store:
            waiting = history_from_store(store).waiting_triggers
            keys = [own.trigger.key for own in waiting if own.name == name]
            if not keys:
                known = ", ".join(own.name for own in waiting) or "none"
                raise BadSetting(
                    f"trigger {name!r} cannot be settled, because it does not wait. "
                    f"Waiting triggers: {known}."
                )
            chosen = [own.name for own in waiting if own.trigger.key == keys[0]]
            for own in chosen:
                store.append_numbered(
                    SETTLED_ENTRY,
                    {"at": to_utc(at).isoformat(), "trigger": own, "note": note.strip()},
                )
        return chosen

    @contextmanager
    def writing(self) -> Iterator[Store]:
        """Open the store for one writer."""
        if not self.path.parent.is_dir():
            raise BadFile(
                f"the folder of {self.path} does not exist. Make it, or name another folder."
            )
        with (
            WriterLock(self.path.with_name(self.path.name + ".lock")),
            Store(self.path, write=True) as store,
        ):
            yield store

    def body_of(self, sample: Sample, facts: MeasurementFacts, at: datetime) -> JsonObject:
        """Return what the entries of baselines and runs have in common, as plain data.

        Args:
            sample: What was measured.
            facts: How it was measured.
            at: Time of the entry, in UTC.
        """
        missing = {metric: dict(reasons) for metric, reasons in sample.missing.items()}
        body = {"at": at.isoformat(), "plan": self.plan.record(), "facts": asdict(facts)}
        return {**body, "metrics": list(sample.values), "missing": missing, "n": len(sample)}


@dataclass(frozen=True)
class MonitoringRun:
    """A run: what it measured, and the triggers it raised."""

    number: int
    at: datetime
    sample: Sample
    triggers: tuple[Trigger, ...]
    status: Status

    def record(self) -> JsonObject:
        """Return the run as plain data."""
        means = {
            metric: float(self.sample.known(metric).mean())
            for metric in self.sample.values
            if len(self.sample.known(metric))
        }
        head = {
            "run": self.number,
            "at": self.at.isoformat(),
            "targets": len(self.sample),
            "means": means,
        }
        return {
            **head,
            "triggers": [own.record() for own in self.triggers],
            "status": self.status.record(),
        }


def _find_triggers(
    baseline: Snapshot, samples: list[Sample], facts: MeasurementFacts, plan: Plan, now: datetime
) -> list[Trigger]:
    """Find all triggers of the last sample."""
    labels = ColumnNames(facts.features, facts.columns)
    return [
        *find_threshold_triggers(samples[-1], plan),
        *drift_triggers(baseline.sample, samples, plan, labels, derive_seed(0, baseline.number)),
        *(model_triggers(facts.model, baseline.facts.model) if baseline.facts.is_whole else ()),
        *validation_age_triggers(baseline, now, plan),
    ]


# --- small checks ---------------------------------------------------------------------------------


def _stored_plan(path: Path) -> Plan:
    """Return the plan that was stored last; the default plan if there is none."""
    if not path.exists():
        return Plan()
    found = read_history(path)
    last = [*found.runs[-1:], *found.baselines[-1:]]
    return max(last, key=lambda look: look.at).plan if last else Plan()


def to_utc(at: datetime | None) -> datetime:
    """Return a time in UTC (default: now). A time without a zone is taken as UTC."""
    if at is None:
        return datetime.now(timezone.utc).replace(microsecond=0)
    return at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at.astimezone(timezone.utc)


def _require_baseline(history: History, path: Path) -> Snapshot:
    """Return the baseline in force, or raise `BadFile` if there is none."""
    if history.baseline is None:
        raise BadFile(
            f"{path} holds no baseline to compare with. "
            "Take one first with `graphgauge monitor baseline`."
        )
    return history.baseline


def _check_order(history: History, now: datetime) -> None:
    """Raise `BadSetting` if a run is older than the last run or the baseline."""
    last = [history.baselines[-1].at, *(run.at for run in history.runs[-1:])]
    if now < max(last) - timedelta(seconds=1):
        raise BadSetting(
            f"a run at {now.isoformat()} cannot be added, because the store already reaches "
            f"{max(last).isoformat()}. Give a later time."
        )


def _check_same_setup(now: MeasurementFacts, then: MeasurementFacts) -> None:
    """Raise `BadSetting` if a run was measured differently than the baseline.

    What is not known of the baseline is not compared.
    """
    known = [
        name
        for name in ("explainer", "params", "settings", "columns")
        if getattr(then, name) not in (None, ())
    ]
    differing = [name for name in known if getattr(now, name) != getattr(then, name)]
    if differing:
        told = "; ".join(
            (
                f"{name}: {_short_repr(getattr(then, name))} then, "
                f"{_short_repr(getattr(now, name))} now"
            )
            for name in differing
        )
        raise BadSetting(
            f"the run cannot be compared with the baseline: they were measured differently "
            f"({told}). Take a new baseline."
        )


def _short_repr(value: Any) -> str:
    """Shorten a value for a message."""
    return f"{len(value)} columns" if isinstance(value, tuple) else repr(value)


def _summarise_sample(sample: Sample) -> JsonObject:
    """Return quantiles of each metric, for people who read the store with other tools."""
    import numpy as np

    shares = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
    known = {
        metric: sample.known(metric)
        for metric in sample.values
        if metric not in CLOCK_METRICS or len(sample.known(metric))
    }
    return {
        metric: {
            "n": len(own),
            "mean": float(own.mean()),
            "quantiles": [float(q) for q in np.quantile(own, shares)],
        }
        for metric, own in known.items()
        if len(own)
    }
