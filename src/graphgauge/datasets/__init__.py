"""The paper's graphs, made or loaded, and the networks trained on them."""

from graphgauge.datasets.ba_shapes import ba_shapes
from graphgauge.datasets.descriptions import DATASETS, Description, RawFile, find_dataset
from graphgauge.datasets.files import cache_folder, folder_with, state_of
from graphgauge.datasets.loading import load
from graphgauge.datasets.networks import GCN, accuracy, trained_gcn
from graphgauge.datasets.synthetic import synthetic
from graphgauge.datasets.targets import benchmark_targets, targets_of

__all__ = [
    "DATASETS",
    "GCN",
    "Description",
    "RawFile",
    "accuracy",
    "ba_shapes",
    "benchmark_targets",
    "cache_folder",
    "find_dataset",
    "folder_with",
    "load",
    "state_of",
    "synthetic",
    "targets_of",
    "trained_gcn",
]
