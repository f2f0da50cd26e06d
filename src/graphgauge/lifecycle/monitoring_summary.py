"""Summarise a monitoring store for the documents: how the model is monitored, and the findings."""

import statistics
from dataclasses import dataclass
from itertools import pairwise

from graphgauge.monitor import History, Snapshot, read_history

MONITORED_ITEMS = ("monitoring", "revalidation")  #: of the checklist, which a store shows


@dataclass(frozen=True)
class MonitoringSummary:
    """Sentences for the documents; '' if there is no store, or no baseline in it."""

    store: str = ""
    interval: str = ""
    targets: str = ""
    monitoring: str = ""
    revalidation: str = ""


def summarise_monitoring(store: str) -> MonitoringSummary:
    """Summarise a store; without a path the summary is empty."""
    if not store:
        return MonitoringSummary()
    history = read_history(store)
    baseline = history.baseline
    if baseline is None:
        return MonitoringSummary(store)
    plan = (history.runs_since_baseline[-1] if history.runs_since_baseline else baseline).plan
    targets = f"{plan.number}, drawn at random; the baseline has {len(baseline.sample)}"
    share = f"{100 * plan.budget:g} % of histories of {plan.looks} runs"
    again = (
        f"triggers are raised by themselves, wrongly in at most {share}; "
        f"again after {plan.age} days at the latest"
    )
    return MonitoringSummary(
        store, _run_interval_phrase(history), targets, _runs_phrase(history, baseline), again
    )


def _run_interval_phrase(history: History) -> str:
    """Say how often runs came, by the median of days between them; '' for fewer than three runs."""
    times = [run.at for run in history.runs]
    gaps = [(after - before).total_seconds() / 86400 for before, after in pairwise(times)]
    return (
        f"every {_format_days(statistics.median(gaps))} so far ({len(times)} runs)"
        if len(gaps) > 1
        else ""
    )


def _format_days(days: float) -> str:
    """Format a number of days in the largest unit of which there is at least 1.

    >>> _format_days(7.0), _format_days(1.0), _format_days(0.25), _format_days(0.000538)
    ('7 days', '1 day', '6 hours', '46.5 seconds')
    """
    for name, each in (("day", 1.0), ("hour", 24.0), ("minute", 1440.0), ("second", 86400.0)):
        number = f"{days * each:.3g}"
        if float(number) >= 1:
            return f"{number} {name}{'' if number == '1' else 's'}"
    return "second"


def _runs_phrase(history: History, baseline: Snapshot) -> str:
    """Say how many runs there were and which triggers wait; '' before the first run."""
    if not history.runs_since_baseline:
        return ""
    runs, last = len(history.runs_since_baseline), history.runs_since_baseline[-1].at.date()
    waiting = len({own.trigger.key for own in history.waiting_triggers})
    told = (
        f"{waiting} trigger{'' if waiting == 1 else 's'} waiting" if waiting else "no trigger waits"
    )
    since = f"{runs} run{'' if runs == 1 else 's'} since the baseline of {baseline.at.date()}"
    return f"{since}, the last on {last}; {told}"
