"""The paper's graphs, made or loaded, and the networks trained on them."""

from graphgauge.datasets.ba_shapes import ba_shapes
from graphgauge.datasets.kept import trained, trained_record
from graphgauge.datasets.networks import GAT, GCN, accuracy, architecture, network, trained_gcn
from graphgauge.datasets.training import Recipe, train

__all__ = [
    "GAT",
    "GCN",
    "Recipe",
    "accuracy",
    "architecture",
    "ba_shapes",
    "network",
    "train",
    "trained",
    "trained_gcn",
    "trained_record",
]
