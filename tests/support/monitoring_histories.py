"""Monitoring stores without a network: samples drawn by bench/alarms.py, with what a run knows of
its model.
"""

from datetime import datetime, timedelta, timezone

import numpy as np
from alarms import targets_like, worse

from graphgauge.monitor import Monitor, Plan, Threshold
from graphgauge.monitor.scoring import MeasurementFacts

FEATURES = tuple(f"sum {k}" for k in range(12))
FACTS = MeasurementFacts(
    "input_x_gradient", {}, "settings", "0", "weights", "graph", FEATURES, FEATURES
)
START = datetime(2026, 1, 5, tzinfo=timezone.utc)
PLAN = Plan(thresholds={"edge_stability": Threshold(0.8), "edge_pertinence": Threshold(0.4)})


def weeks(number):
    return START + timedelta(weeks=number)


def made_monitor(
    path,
    runs=0,
    plan=PLAN,
    facts=FACTS,
    change=lambda number, sample: sample,
    examples=(),
    validated=None,
):
    """A store with a baseline of 150 targets and some weekly runs of 50; ``change(number, sample)``
    alters a run.
    """
    monitor, dice = Monitor(path, plan), np.random.default_rng(1)
    monitor.add_baseline(targets_like(150, dice, False), facts, START, validated)
    for number in range(1, runs + 1):
        monitor.add_run(
            change(number, targets_like(50, dice, False)), facts, weeks(number), examples
        )
    return monitor


def drop(metric, by, since):
    """A change that moves a metric to its worse side from a run on."""
    return lambda number, sample: worse(sample, metric, by) if number >= since else sample
