"""The four kinds of task in the paper's Table 1, and the kind of a task by its name.

Results name their tasks ``cora-node``, ``movielens-link`` and so on. The paper calls a link an
edge. Its three data sets with classes have the classification tasks, the two with values the
regression tasks. Any other task is a kind of its own, so that every table also works for the tasks
of other people.
"""

import re
from collections.abc import Iterable

from graphgauge.datasets import DATASETS

#: kind -> the paper's words, in the paper's order
TASK_KIND_TITLES = {
    "node_classification": "Node Class.",
    "node_regression": "Node Reg.",
    "edge_classification": "Edge Class.",
    "edge_regression": "Edge Reg.",
}
_PAPER_LEVELS = {"node": "node", "link": "edge", "edge": "edge"}
_UNNAMED_TASK = "task"  #: shown for results without a name


def kind_of_task(task: str) -> str:
    """The kind of a task by its name.

    >>> [kind_of_task(task) for task in ("cora-link", "MovieLens/node")]
    ['edge_classification', 'node_regression']
    >>> [kind_of_task(task) for task in ("ba-shapes-node-gcn", "fraud")]
    ['node_classification', 'fraud']
    """
    words = re.sub(r"[^a-z0-9]+", "-", task.lower()) + "-"
    known = (kind for start, kind in _KIND_BY_PREFIX.items() if words.startswith(start))
    return next(known, task or _UNNAMED_TASK)


def _dataset_kind(name: str, level: str) -> str:
    """The kind of a data set of the paper at a level."""
    counted = DATASETS[name].classes if level == "node" else DATASETS[name].edge_classes
    return f"{_PAPER_LEVELS[level]}_{'regression' if counted is None else 'classification'}"


#: how the name of a task of the paper begins -> its kind
_KIND_BY_PREFIX = {
    f"{name.lower()}-{level}-": _dataset_kind(name, level)
    for name in DATASETS
    for level in _PAPER_LEVELS
}


def order_kinds(kinds: Iterable[str]) -> list[str]:
    """Each kind once: the paper's first, in the paper's order, then the others in their order.

    >>> order_kinds(["fraud", "edge_regression", "node_regression", "fraud"])
    ['node_regression', 'edge_regression', 'fraud']
    """
    present = dict.fromkeys(kinds)
    return [
        *(kind for kind in TASK_KIND_TITLES if kind in present),
        *(kind for kind in present if kind not in TASK_KIND_TITLES),
    ]


def kind_title(kind: str) -> str:
    """The title of a kind for people."""
    return TASK_KIND_TITLES.get(kind, kind)
