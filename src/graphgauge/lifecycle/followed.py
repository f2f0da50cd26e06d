"""What a monitoring store says for the documents: how often and how a model in use is looked at,
and what came of it.
"""

import statistics
from dataclasses import dataclass
from itertools import pairwise

from graphgauge.monitor import History, Look, read_history

POINTS = ("monitoring", "revalidation")  #: of the checklist, which a store shows


@dataclass(frozen=True)
class Followed:
    """Sentences for the documents; '' where there is no store, or nothing in it."""

    store: str = ""
    often: str = ""
    targets: str = ""
    monitoring: str = ""
    revalidation: str = ""


def followed(store: str) -> Followed:
    """What a store says; nothing for ''."""
    if not store:
        return Followed()
    history = read_history(store)
    baseline = history.baseline
    if baseline is None:
        return Followed(store)
    plan = (history.since[-1] if history.since else baseline).plan
    targets = f"{plan.number}, drawn at random; the baseline has {len(baseline.sample)}"
    share = f"{100 * plan.budget:g} % of histories of {plan.looks} runs"
    again = f"triggers are raised by themselves, wrongly in at most {share}; again after {plan.age} days at the latest"
    return Followed(store, often(history), targets, looked(history, baseline), again)


def often(history: History) -> str:
    """How often runs came so far, from the median of days between them; '' for fewer than three."""
    times = [run.at for run in history.runs]
    gaps = [(after - before).total_seconds() / 86400 for before, after in pairwise(times)]
    return (
        f"every {told_days(statistics.median(gaps))} so far ({len(times)} runs)"
        if len(gaps) > 1
        else ""
    )


def told_days(days: float) -> str:
    """A time in days, or in the unit in which it is 1 or more.

    >>> told_days(7.0), told_days(1.0), told_days(0.25), told_days(0.000538)
    ('7 days', '1 day', '6 hours', '46.5 seconds')
    """
    for name, each in (("day", 1.0), ("hour", 24.0), ("minute", 1440.0), ("second", 86400.0)):
        number = f"{days * each:.3g}"
        if float(number) >= 1:
            return f"{number} {name}{'' if number == '1' else 's'}"
    return "second"


def looked(history: History, baseline: Look) -> str:
    """How many runs there were, and what they raised; '' before the first."""
    if not history.since:
        return ""
    runs, last = len(history.since), history.since[-1].at.date()
    waiting = len({own.trigger.key for own in history.waiting})
    told = (
        f"{waiting} trigger{'' if waiting == 1 else 's'} waiting" if waiting else "no trigger waits"
    )
    return f"{runs} run{'' if runs == 1 else 's'} since the baseline of {baseline.at.date()}, the last on {last}; {told}"
