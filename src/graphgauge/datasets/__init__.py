"""The data sets of the paper, generated or loaded from checked files, and trained networks."""

from graphgauge.datasets.ba_shapes import ba_shapes
from graphgauge.datasets.descriptions import DATASETS, Description, RawFile, find_dataset
from graphgauge.datasets.files import cache_folder, folder_with, state_of
from graphgauge.datasets.kept import trained, trained_record
from graphgauge.datasets.loading import load
from graphgauge.datasets.networks import GAT, GCN, accuracy, architecture, network, trained_gcn
from graphgauge.datasets.own import load_graph, save_graph
from graphgauge.datasets.synthetic import synthetic
from graphgauge.datasets.targets import benchmark_targets, targets_of

__all__ = [
    "DATASETS",
    "GAT",
    "GCN",
    "Description",
    "RawFile",
    "accuracy",
    "architecture",
    "ba_shapes",
    "benchmark_targets",
    "cache_folder",
    "find_dataset",
    "folder_with",
    "load",
    "load_graph",
    "network",
    "save_graph",
    "state_of",
    "synthetic",
    "targets_of",
    "trained",
    "trained_gcn",
    "trained_record",
]
