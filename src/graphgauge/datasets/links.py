"""A graph as a node task or as a link task.

Link existence: of the P linked pairs, 10 % are held out for validation and 10 % for tests
(``RandomLinkSplit(0.1, 0.1, is_undirected=True)``, seed 0), and messages flow along the rest, both ways; this is also the graph of
the node task, as the paper's edge counts show. Each part has as many non-edges as edges: different pairs, drawn uniformly from
those that are linked nowhere in the whole graph. (PyG's own non-edges may name a pair in both directions.)

Other link tasks: all edges carry messages, and the labels of the linked pairs are split 80/10/10.
"""

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import RandomLinkSplit

from graphgauge.core.randomness import seeded_globally
from graphgauge.core.seeds import derive_seed, generator
from graphgauge.datasets.pairs import random_pairs
from graphgauge.datasets.splits import named_masks, split_of

SPLIT_SEED = 0
EXISTENCE = ("no link", "link")  #: class names of the link existence task


def held_out(data: Data) -> tuple[Tensor, list[Tensor]]:
    """Message edges (2, E), and the linked pairs (2, P_part) of the three parts, each pair once."""
    bare = Data(edge_index=data.edge_index, num_nodes=data.num_nodes)
    with seeded_globally(SPLIT_SEED):  # PyG draws from the global state
        parts = RandomLinkSplit(0.1, 0.1, is_undirected=True, neg_sampling_ratio=0.0)(bare)
    return parts[0].edge_index, [part.edge_label_index for part in parts]


def existence_task(data: Data) -> Data:
    """Is there a link?  edge_label (L,) 1 or 0 for the pairs edge_label_index (2, L), L = 2 P: part by part, links first."""
    edge_index, linked = held_out(data)
    sizes = [pairs.shape[1] for pairs in linked]
    random = generator(derive_seed(SPLIT_SEED, "non-edges"))
    free = random_pairs(data.num_nodes, sum(sizes), random, without=data.edge_index).split(sizes, dim=1)
    part = torch.arange(3).repeat_interleave(2 * torch.tensor(sizes))
    return Data(
        x=data.x,
        edge_index=edge_index,
        edge_label_index=torch.cat([pairs for both in zip(linked, free, strict=True) for pairs in both], dim=1),
        edge_label=torch.cat([torch.tensor([1, 0]).repeat_interleave(size) for size in sizes]),
        class_names=list(EXISTENCE),
        **named_masks(part == 0, part == 1, part == 2),
    )


def pair_task(data: Data, pairs: Tensor, label: Tensor) -> Data:
    """A label for every linked pair; the whole graph carries messages.  (2, P), (P,)"""
    return Data(x=data.x, edge_index=data.edge_index, edge_label_index=pairs, edge_label=label, **split_of(label, SPLIT_SEED))


def is_existence(data: Data) -> bool:
    """The task is to tell links from non-edges."""
    return data.level == "link" and list(data.get("class_names") or []) == list(EXISTENCE)
