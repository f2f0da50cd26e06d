"""The status of monitoring: one exit code for programs, and the actions that are due.

0   nothing is due
1   an action is due: a trigger waits, or the baseline is too old
3   incomplete: there is no baseline or no run to compare with it, the last run could not measure
    something, or the next run is overdue
"""

from dataclasses import dataclass
from datetime import datetime

from graphgauge.core import JsonObject
from graphgauge.monitor.drift import LEAST_VALUES
from graphgauge.monitor.history import History, RaisedTrigger, Snapshot, group_triggers
from graphgauge.monitor.monitoring_plan import Plan
from graphgauge.monitor.threshold_triggers import CLOSE, age_triggers, check_thresholds
from graphgauge.monitor.triggers import VALIDATION_AGE, Trigger

_EXIT_FINE, _EXIT_DUE, _EXIT_INCOMPLETE = 0, 1, 3  #: exit codes
_STATUS_TEXT = {_EXIT_FINE: "fine", _EXIT_DUE: "action due", _EXIT_INCOMPLETE: "incomplete"}


@dataclass(frozen=True)
class _PendingAction:
    """An action that is due: all triggers about one subject."""

    trigger: Trigger  #: the latest
    first: datetime
    last: datetime
    times: int
    name: str  #: of the latest, for `settle`; '': it follows from the date alone

    def record(self) -> JsonObject:
        """Return the action as plain data."""
        times = {
            "first": self.first.isoformat(),
            "last": self.last.isoformat(),
            "times": self.times,
            "id": self.name,
        }
        return {**self.trigger.record(), **times}


@dataclass(frozen=True)
class Status:
    """The status at a point in time."""

    code: int
    at: datetime
    due: tuple[_PendingAction, ...]
    gaps: tuple[str, ...]  #: what could not be judged
    notes: tuple[str, ...]  #: what is worth a look
    runs: int  #: since the baseline
    baseline_at: datetime | None = None
    last_run_at: datetime | None = None

    @property
    def told(self) -> str:
        """The status in one or two words."""
        return _STATUS_TEXT[self.code]

    def record(self) -> JsonObject:
        """Return the status as plain data."""
        times = {"baseline_at": self.baseline_at, "last_run_at": self.last_run_at}
        return {
            "code": self.code,
            "status": self.told,
            "at": self.at.isoformat(),
            "runs": self.runs,
            **{name: None if time is None else time.isoformat() for name, time in times.items()},
            "due": [own.record() for own in self.due],
            "incomplete": list(self.gaps),
            "notes": list(self.notes),
        }


def compute_status(history: History, now: datetime) -> Status:
    """Compute the status of a history at a point in time."""
    baseline, last = (
        history.baseline,
        history.runs_since_baseline[-1] if history.runs_since_baseline else None,
    )
    due = [_make_pending_action(group) for group in group_triggers(history.waiting_triggers)]
    if baseline is not None and not any(own.trigger.name == VALIDATION_AGE for own in due):
        due += [
            _PendingAction(own, now, now, 1, "")
            for own in validation_age_triggers(baseline, now, (last or baseline).plan)
        ]
    gaps = _find_gaps(baseline, last, now)
    code = _EXIT_DUE if due else _EXIT_INCOMPLETE if gaps else _EXIT_FINE
    times = (baseline.at if baseline else None, last.at if last else None)
    return Status(
        code,
        now,
        tuple(due),
        tuple(gaps),
        tuple(_collect_notes(baseline, last)),
        len(history.runs_since_baseline),
        *times,
    )


def validation_age_triggers(baseline: Snapshot, now: datetime, plan: Plan) -> list[Trigger]:
    """Raise a trigger if the validation is too old.

    Its age counts from the decision if there was one, otherwise from the baseline.
    """
    if baseline.validated is None:
        return age_triggers(baseline.at, now, plan)
    at = baseline.validated.at
    return age_triggers(at, now, plan, f"the validation of {at.date()}")


def _make_pending_action(group: list[RaisedTrigger]) -> _PendingAction:
    """Merge the triggers about one subject into one action."""
    return _PendingAction(group[-1].trigger, group[0].at, group[-1].at, len(group), group[-1].name)


def _find_gaps(baseline: Snapshot | None, last: Snapshot | None, now: datetime) -> list[str]:
    """List what could not be judged."""
    if baseline is None:
        return ["there is no baseline"]
    if last is None:
        return ["no run was held against the baseline yet"]
    days, limit = (now - last.at).days, last.plan.overdue
    late = (
        [f"the last run is {days} days old, the next was due after {limit}"]
        if limit is not None and days > limit
        else []
    )
    return late + [
        (
            f"{metric} has {len(last.sample.known(metric))} values in the last run, "
            f"{LEAST_VALUES} are needed"
        )
        for metric in baseline.sample.metrics
        if len(last.sample.known(metric)) < LEAST_VALUES <= len(baseline.sample.known(metric))
    ]


def _collect_notes(baseline: Snapshot | None, last: Snapshot | None) -> list[str]:
    """List what raises no trigger but deserves attention."""
    if baseline is None or last is None:
        return []
    found = [str(own) for own in check_thresholds(last.sample, last.plan) if own.state == CLOSE]
    if baseline.validated is not None and not baseline.validated.signed_by:
        found.append("nobody had signed the decision when the baseline was taken")
    if baseline.validated is not None and not baseline.validated.may_stop_early:
        found.append(
            "early stopping moved numbers at the validation, and runs stop early: "
            "judge crossed thresholds with every trial"
        )
    if not baseline.facts.is_whole:
        found.append("the baseline holds metrics only: ranking, data and weights are not watched")
    if len(baseline.sample) < 100:
        found.append(
            f"the baseline has {len(baseline.sample)} targets; 100 or more make drift easier to see"
        )
    if baseline.facts.version != last.facts.version:
        found.append(
            f"the baseline was measured by graphgauge {baseline.facts.version}, "
            f"the last run by {last.facts.version}"
        )
    return found
