"""The paper's graphs, made or loaded, and the networks trained on them."""

from graphgauge.datasets.ba_shapes import ba_shapes
from graphgauge.datasets.networks import GCN, accuracy, trained_gcn

__all__ = ["GCN", "accuracy", "ba_shapes", "trained_gcn"]
