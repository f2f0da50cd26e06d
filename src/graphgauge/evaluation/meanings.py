"""What the metrics of an evaluation are called, and which way is better."""

from graphgauge.core.registry import lookup

PAPER = ("feature_stability", "edge_stability", "feature_ec", "edge_ec", "feature_pertinence", "edge_pertinence", "time")
TWINS = ("stability_corrected", "pertinence_tied", "pertinence_rank", "pertinence_p", "pertinence_abs")
EXTRAS = ("fidelity_plus", "fidelity_minus", "characterization", "unfaithfulness", "sparsity", "deletion_auc")

#: name without its side -> whether higher is better
HIGHER_IS_BETTER = {
    "stability": True,
    "stability_corrected": True,
    "ec": False,
    "pertinence": True,
    "pertinence_tied": True,
    "pertinence_rank": True,
    "pertinence_p": False,
    "pertinence_abs": True,
    "time": False,
    "time_batched": False,
    "flipped_10": True,
    "flipped_25": True,
    "flipped_100": True,
    "fidelity_plus": True,
    "fidelity_minus": False,
    "characterization": True,
    "unfaithfulness": False,
    "sparsity": True,
    "deletion_auc": False,
}


def higher_is_better(metric: str) -> bool:
    """Which way a metric points, with or without the name of its side.

    >>> higher_is_better("edge_ec"), higher_is_better("feature_pertinence_tied")
    (False, True)
    """
    bare = metric.removeprefix("feature_").removeprefix("edge_")
    return lookup(HIGHER_IS_BETTER, bare, "metric")
