"""What the numbers of an evaluation are called, which come first, and which way is better."""

from graphgauge.core.registry import lookup
from graphgauge.metrics import METRICS

#: the numbers that a summary shows first
HEADLINES = {
    "paper": ("feature_stability", "edge_stability", "feature_ec", "edge_ec", "feature_pertinence", "edge_pertinence", "time"),
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
OTHERS = {"time": False, "time_batched": False, "flipped_10": True, "flipped_25": True, "flipped_100": True}


def higher_is_better(metric: str) -> bool:
    """Which way a metric points, with or without the name of its side.

    >>> higher_is_better("edge_ec"), higher_is_better("feature_pertinence_tied"), higher_is_better("time")
    (False, True, False)
    """
    ways = {**{name: own.higher_is_better for name, own in METRICS.items()}, **OTHERS}
    return ways[metric] if metric in ways else lookup(ways, metric.removeprefix("feature_").removeprefix("edge_"), "metric")
