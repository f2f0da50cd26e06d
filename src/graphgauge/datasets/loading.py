"""`load`: one of the paper's ten tasks, by name and level.

A loader returns the whole graph (read, or generated). A task then decides which edges carry
messages, what the labels are and how they are split. What was read is kept in the cache
(`cache.py`); splits are computed again each time, from seed 0.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from torch_geometric.data import Data

from graphgauge.datasets.ba_shapes_graph import ba_shapes, edge_class_names, edge_classes
from graphgauge.datasets.cache import load_or_parse
from graphgauge.datasets.catalogue import DatasetDescription, check_level, find_dataset
from graphgauge.datasets.cora import read_cora
from graphgauge.datasets.github import read_github
from graphgauge.datasets.link_tasks import existence_task, pair_task
from graphgauge.datasets.movielens import read_movielens
from graphgauge.datasets.node_pairs import undirected_pairs
from graphgauge.datasets.raw_files import read_raw_files
from graphgauge.datasets.splits import message_edges, split_labels
from graphgauge.datasets.synthetic_graph import synthetic


def load(name: str, level: str, folder: str | Path | None = None) -> Data:
    """Load a task of the paper as one homogeneous graph.

    All tasks have x (N, F) float32, edge_index (2, E) with the message edges, name, level, task
    ("classification" or "regression") and notes. Node tasks have y (N,) and train_mask, val_mask,
    test_mask (N,). Link tasks have edge_label_index (2, L) with each unordered pair once,
    edge_label (L,), and the three masks (L,) over these rows. Labels are int64 classes, named in
    class_names, or float32 values; feature_names, node_names and unit exist where they are known.

    Args:
        name: "Cora", "GitHub", "BA-Shapes", "MovieLens" or "Synthetic", in upper or lower case.
        level: "node" or "link".
        folder: Where the raw files are; by default `GRAPHGAUGE_DATA`, then the cache, which PyG's
            download fills.

    >>> data = load("ba-shapes", "link")
    >>> data.name, data.task, data.edge_index.shape, data.edge_label_index.shape
    ('BA-Shapes', 'classification', torch.Size([2, 3942]), torch.Size([2, 1971]))
    """
    description, level = find_dataset(name), check_level(level)
    data = _TASK_BUILDERS[description.name, level](_load_whole_graph(description, folder))
    data.name, data.level = description.name, level
    data.task = "regression" if description.classes is None else "classification"
    data.notes = list(data.get("notes") or [])
    return data


def _load_whole_graph(description: DatasetDescription, folder: str | Path | None) -> Data:
    """All nodes and edges, before any split: generated, read from checked files, or read from the
    cache.
    """
    if description.name in _GENERATORS:
        return _GENERATORS[description.name]()
    contents = read_raw_files(description, folder)
    return load_or_parse(description.name, contents, lambda: _PARSERS[description.name](contents))


_GENERATORS: dict[str, Callable[[], Data]] = {"BA-Shapes": ba_shapes, "Synthetic": synthetic}
_PARSERS: dict[str, Callable[[Mapping[str, bytes]], Data]] = {
    "Cora": read_cora,
    "GitHub": read_github,
    "MovieLens": read_movielens,
}


def _keep_training_edges(data: Data) -> Data:
    """Keep the labels of the nodes, and let only the training links carry messages."""
    data.edge_index = message_edges(data.edge_index)
    return data


def _github_node(data: Data) -> Data:
    """The kind of each developer; only the training links carry messages."""
    return _add_split(_keep_training_edges(data))


def _github_link(data: Data) -> Data:
    """Whether a link exists, with the notes on the features."""
    return existence_task(data).update({"notes": data.notes})


def _add_split(data: Data) -> Data:
    """Add an 80/10/10 split of the labels of all nodes."""
    return data.update(split_labels(data.y))


def _ba_shapes_link(data: Data) -> Data:
    """The class of each edge, one of six."""
    pairs = undirected_pairs(data.edge_index, data.num_nodes)
    return pair_task(data, pairs, edge_classes(data.y, pairs)).update(
        {"class_names": edge_class_names()}
    )


def _movielens_node(data: Data) -> Data:
    """Average ratings; the shared fractions are edge_weight (E,) and edge_attr (E, 1)."""
    data.edge_attr, data.unit = data.edge_weight[:, None], "stars"
    return _add_split(data)


def _movielens_link(data: Data) -> Data:
    """Shared fractions as labels; therefore no edge has them as its weight."""
    is_first = data.edge_index[0] < data.edge_index[1]
    task = pair_task(data, data.edge_index[:, is_first], data.edge_weight[is_first])
    return task.update({key: data[key] for key in ("node_names", "feature_names", "notes")})


def _synthetic_link(data: Data) -> Data:
    """The sum of the labels of both ends, and the rule behind the labels."""
    pairs = undirected_pairs(data.edge_index, data.num_nodes)
    task = pair_task(data, pairs, data.y[pairs].sum(0))
    return task.update({key: data[key] for key in ("label_weights", "hop_weights", "label_scale")})


#: how a whole graph becomes a task
_TASK_BUILDERS: dict[tuple[str, str], Callable[[Data], Data]] = {
    ("Cora", "node"): _keep_training_edges,
    ("Cora", "link"): existence_task,
    ("GitHub", "node"): _github_node,
    ("GitHub", "link"): _github_link,
    ("BA-Shapes", "node"): _add_split,
    ("BA-Shapes", "link"): _ba_shapes_link,
    ("MovieLens", "node"): _movielens_node,
    ("MovieLens", "link"): _movielens_link,
    ("Synthetic", "node"): _add_split,
    ("Synthetic", "link"): _synthetic_link,
}
