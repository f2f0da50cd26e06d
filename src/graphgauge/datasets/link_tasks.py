"""Turns a graph into a link task.

Existence (does a pair have a link?): messages flow along the training links, in both directions
(splits.py); the node task has the same graph, as the paper's counts of edges show. Each part has as
many non-edges as links: different pairs, drawn uniformly from those without a link in the whole
graph. (PyG's own non-edges may contain a pair in both directions.)

Other link tasks: all edges carry messages, and the labels of the linked pairs are split 80/10/10.
"""

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core import derive_seed, make_generator
from graphgauge.datasets.node_pairs import random_pairs
from graphgauge.datasets.splits import (
    SPLIT_SEED,
    message_edges,
    named_masks,
    split_labels,
    split_links,
)

_EXISTENCE_CLASSES = ("no link", "link")  #: class names of the link existence task


def existence_task(data: Data) -> Data:
    """The task of telling links from non-edges.

    The pairs ``edge_label_index`` (2, L) with L = 2 P have the labels ``edge_label`` (L,), 1 or 0,
    ordered by part, links first.
    """
    linked = split_links(data.edge_index)
    sizes = [pairs.shape[1] for pairs in linked]
    random = make_generator(derive_seed(SPLIT_SEED, "non-edges"))
    free = random_pairs(data.num_nodes, sum(sizes), random, without=data.edge_index).split(
        sizes, dim=1
    )
    part = torch.arange(3).repeat_interleave(2 * torch.tensor(sizes))
    return Data(
        x=data.x,
        edge_index=message_edges(data.edge_index),
        edge_label_index=torch.cat(
            [pairs for both in zip(linked, free, strict=True) for pairs in both], dim=1
        ),
        edge_label=torch.cat([torch.tensor([1, 0]).repeat_interleave(size) for size in sizes]),
        class_names=list(_EXISTENCE_CLASSES),
        **named_masks(part == 0, part == 1, part == 2),
    )


def pair_task(data: Data, pairs: Tensor, label: Tensor) -> Data:
    """A task with a label for every linked pair, in which the whole graph carries messages.  (2,
    P), (P,)
    """
    return Data(
        x=data.x,
        edge_index=data.edge_index,
        edge_label_index=pairs,
        edge_label=label,
        **split_labels(label),
    )


def is_existence_task(data: Data) -> bool:
    """Whether the task is to tell links from non-edges."""
    return data.level == "link" and list(data.get("class_names") or []) == list(_EXISTENCE_CLASSES)
