"""What the numbers of an evaluation are called, which come first, which way is better, and the
interval of a mean of them.
"""

import math
from collections.abc import Iterable
from typing import Literal

from graphgauge.core import Interval, lookup, mean_interval
from graphgauge.metrics import METRICS, MetricName

#: the numbers that a summary shows first
HEADLINES = {
    "paper": (
        "feature_stability",
        "edge_stability",
        "feature_ec",
        "edge_ec",
        "feature_pertinence",
        "edge_pertinence",
        "time",
    ),
    "twins": (
        "feature_stability_corrected",
        "edge_stability_corrected",
        "feature_ec",
        "edge_ec",
        "feature_pertinence_tied",
        "edge_pertinence_tied",
        "time",
    ),
}

#: whether higher is better, for numbers that are no metrics on scores or curves
_OTHER_DIRECTIONS = {
    "time": False,
    "time_batched": False,
    "flipped_10": True,
    "flipped_25": True,
    "flipped_100": True,
}


def higher_is_better(metric: str) -> bool:
    """Which way a metric points, with or without the name of its side.

    >>> higher_is_better("edge_ec"), higher_is_better("time")
    (False, False)
    >>> higher_is_better("feature_pertinence_tied")
    True
    """
    ways = {**{name: own.higher_is_better for name, own in METRICS.items()}, **_OTHER_DIRECTIONS}
    if metric in ways:
        return ways[metric]
    return lookup(ways, MetricName.parse(metric).without_side, "metric")


def interval_of_mean(metric: str, *groups: Iterable[float]) -> Interval | None:
    """95 % interval of the mean of a metric (of the mean of several groups' means); None where a
    group has fewer than two values.

    >>> interval_of_mean("edge_pertinence", [0.9, 1.0, 1.0, 1.0])[1]
    1.0
    """
    name = MetricName.parse(metric)
    known = METRICS.get(metric) or METRICS.get(name.without_side)
    bounds = known.bounds if known is not None else (-math.inf, math.inf)
    scale: Literal["linear", "log"] = "log" if name.family == "time" else "linear"
    return mean_interval(*map(list, groups), bounds=bounds, scale=scale)
