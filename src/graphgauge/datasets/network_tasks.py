"""The paper's twenty networks by name, such as ``cora-node-gcn``, with the score that the paper
reports for each.

Accuracy for classes, r² for values (appendix "Models"). The paper does not say on which part of the
data it was measured.
"""

from dataclasses import dataclass
from pathlib import Path

from torch_geometric.data import Data

from graphgauge.core import lookup
from graphgauge.datasets.catalogue import check_level, find_dataset
from graphgauge.datasets.loading import load

CONV_NAMES = ("gcn", "gat")

#: (data set, level) -> GCN, GAT
PAPER_SCORES = {
    ("BA-Shapes", "node"): (0.81, 0.87),
    ("BA-Shapes", "link"): (0.97, 0.99),
    ("Cora", "node"): (0.76, 0.79),
    ("Cora", "link"): (0.86, 0.92),
    ("GitHub", "node"): (0.86, 0.86),
    ("GitHub", "link"): (0.62, 0.60),
    ("MovieLens", "node"): (0.44, 0.64),
    ("MovieLens", "link"): (0.78, 0.76),
    ("Synthetic", "node"): (0.80, 0.90),
    ("Synthetic", "link"): (0.31, 0.64),
}


@dataclass(frozen=True)
class NetworkTask:
    """A data set, a level and a kind of network."""

    data_set: str
    level: str
    conv: str

    @property
    def name(self) -> str:
        """The name in files and on the command line.

        >>> NetworkTask("BA-Shapes", "link", "gat").name
        'ba-shapes-link-gat'
        """
        return f"{self.data_set.lower()}-{self.level}-{self.conv}"

    @property
    def paper(self) -> float:
        """The score that the paper reports."""
        return PAPER_SCORES[self.data_set, self.level][CONV_NAMES.index(self.conv)]

    def load(self, folder: str | Path | None = None) -> Data:
        """Load the data of the task."""
        return load(self.data_set, self.level, folder=folder)


NETWORK_TASKS = {
    task.name: task
    for task in (
        NetworkTask(data_set, level, conv)
        for data_set, level in PAPER_SCORES
        for conv in CONV_NAMES
    )
}


def find_network_tasks(name: str) -> list[NetworkTask]:
    """The tasks that a name stands for: ``cora-node-gcn``, ``cora-node`` (both networks) or
    ``all``.

    >>> [task.name for task in find_network_tasks("cora-node")]
    ['cora-node-gcn', 'cora-node-gat']
    """
    groups = {"all": list(NETWORK_TASKS.values())}
    for task in NETWORK_TASKS.values():
        groups.setdefault(task.name.rpartition("-")[0], []).append(task)
        groups[task.name] = [task]
    return lookup(groups, name.lower(), "task")


def find_network_task(data_set: str, level: str, conv: str) -> NetworkTask:
    """The task of a data set, a level and a kind of network.

    Args:
        data_set: Name of the data set.
        level: "node" or "link".
        conv: "gcn" or "gat".
    """
    lookup(dict.fromkeys(CONV_NAMES), conv, "network")
    return NetworkTask(find_dataset(data_set).name, check_level(level), conv)
