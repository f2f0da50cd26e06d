"""The status of monitoring: one exit code for programs, and the actions that are due.

0   nothing is due
1   an action is due: a trigger waits, or the baseline is too old
3   incomplete: there is no baseline or no run to compare with it, the last run could not measure
    something, or the next run is overdue
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graphgauge.monitor.drift import LEAST
from graphgauge.monitor.history import History, Look, Raised, grouped
from graphgauge.monitor.plan import Plan
from graphgauge.monitor.rules import CLOSE, age_triggers, held
from graphgauge.monitor.triggers import AGE, Trigger

FINE, DUE, INCOMPLETE = 0, 1, 3  #: exit codes
TOLD = {FINE: "fine", DUE: "action due", INCOMPLETE: "incomplete"}


@dataclass(frozen=True)
class Due:
    """An action that is due: all triggers about one subject."""

    trigger: Trigger  #: the latest
    first: datetime
    last: datetime
    times: int
    name: str  #: of the latest, for `settle`; '': it follows from the date alone

    def record(self) -> dict[str, Any]:
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
    due: tuple[Due, ...]
    gaps: tuple[str, ...]  #: what could not be judged
    notes: tuple[str, ...]  #: what is worth a look
    runs: int  #: since the baseline
    baseline_at: datetime | None = None
    last_run_at: datetime | None = None

    @property
    def told(self) -> str:
        """The status in one or two words."""
        return TOLD[self.code]

    def record(self) -> dict[str, Any]:
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


def status_of(history: History, now: datetime) -> Status:
    """Compute the status of a history at a point in time."""
    baseline, last = history.baseline, history.since[-1] if history.since else None
    due = [due_of(group) for group in grouped(history.waiting)]
    if baseline is not None and not any(own.trigger.name == AGE for own in due):
        due += [
            Due(own, now, now, 1, "") for own in too_old(baseline, now, (last or baseline).plan)
        ]
    gaps = gaps_of(baseline, last, now)
    code = DUE if due else INCOMPLETE if gaps else FINE
    times = (baseline.at if baseline else None, last.at if last else None)
    return Status(
        code,
        now,
        tuple(due),
        tuple(gaps),
        tuple(notes_of(baseline, last)),
        len(history.since),
        *times,
    )


def too_old(baseline: Look, now: datetime, plan: Plan) -> list[Trigger]:
    """Raise a trigger if the validation is too old.

    Its age counts from the decision if there was one, otherwise from the baseline.
    """
    if baseline.validated is None:
        return age_triggers(baseline.at, now, plan)
    at = baseline.validated.at
    return age_triggers(at, now, plan, f"the validation of {at.date()}")


def due_of(group: list[Raised]) -> Due:
    """Merge the triggers about one subject into one action."""
    return Due(group[-1].trigger, group[0].at, group[-1].at, len(group), group[-1].name)


def gaps_of(baseline: Look | None, last: Look | None, now: datetime) -> list[str]:
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
        f"{metric} has {len(last.sample.known(metric))} values in the last run, {LEAST} are needed"
        for metric in baseline.sample.metrics
        if len(last.sample.known(metric)) < LEAST <= len(baseline.sample.known(metric))
    ]


def notes_of(baseline: Look | None, last: Look | None) -> list[str]:
    """List what raises no trigger but deserves attention."""
    if baseline is None or last is None:
        return []
    found = [str(own) for own in held(last.sample, last.plan) if own.state == CLOSE]
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
