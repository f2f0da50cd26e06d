"""Monitor: scores of a model in use over time, drift, triggers."""

from graphgauge.monitor.drift import Labels, drift_triggers
from graphgauge.monitor.history import History, Look, read_history
from graphgauge.monitor.plan import Plan, Threshold
from graphgauge.monitor.samples import Sample
from graphgauge.monitor.scoring import sample_recent, score
from graphgauge.monitor.status import Status, status_of
from graphgauge.monitor.triggers import Trigger
from graphgauge.monitor.validated import Validated
from graphgauge.monitor.watch import Monitor, Run

__all__ = [
    "History",
    "Labels",
    "Look",
    "Monitor",
    "Plan",
    "Run",
    "Sample",
    "Status",
    "Threshold",
    "Trigger",
    "Validated",
    "drift_triggers",
    "read_history",
    "sample_recent",
    "score",
    "status_of",
]
