"""Metrics: pure functions on score tensors and curves. They run no model and no explainer."""

from graphgauge.metrics.compactness import Compactness, class_flips, effective_compactness, flip_curve, value_flips
from graphgauge.metrics.pertinence import p_value, rank, tied_wins, wins
from graphgauge.metrics.stability import Binomial, binomial, corrected, edge_stability, feature_stability
from graphgauge.metrics.stopping import Stopped, stopped

__all__ = [
    "Binomial",
    "Compactness",
    "Stopped",
    "binomial",
    "class_flips",
    "corrected",
    "edge_stability",
    "effective_compactness",
    "feature_stability",
    "flip_curve",
    "p_value",
    "rank",
    "stopped",
    "tied_wins",
    "value_flips",
    "wins",
]
