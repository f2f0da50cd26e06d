"""BA-Shapes: a preferential-attachment graph of 300 nodes with 80 "houses" of five nodes tied to it
(GNNExplainer, 2019).

Node classes: 0 base graph, 1 middle, 2 bottom, 3 top of a house. An edge has one of six classes, by
those of its two ends. Features are the node's own one-hot code, as in the paper this library
implements: 700 nodes, 700 features. With seed 1 there are 3,942 directed edges, the paper's number.
"""

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import barabasi_albert_graph

from graphgauge.core.randomness import seeded_globally
from graphgauge.datasets.splits import stratified_split

NUM_BASE, NUM_HOUSES, ATTACHED = 300, 80, 5
HOUSE_LABEL = (1, 1, 2, 2, 3)  #: two middle nodes, two bottom nodes, the top
HOUSE_EDGES = (
    (0, 1),
    (0, 3),
    (0, 4),
    (1, 2),
    (1, 4),
    (2, 3),
)  #: undirected; node 0 is tied to the base graph
CLASS_NAMES = ("base", "middle", "bottom", "top")
EDGE_CLASSES = (
    (0, 0),
    (0, 1),
    (1, 1),
    (1, 2),
    (1, 3),
    (2, 2),
)  #: classes of the two ends, smaller first


def ba_shapes(seed: int = 1) -> Data:
    """The graph, its labels ``y`` and an 80/10/10 split, stratified by class.

    >>> ba_shapes()
    Data(x=[700, 700], edge_index=[2, 3942], y=[700], class_names=[4], train_mask=[700], val_mask=[700], test_mask=[700])
    """
    with seeded_globally(seed):  # the generator of PyG draws from the global states
        base = barabasi_albert_graph(NUM_BASE, ATTACHED)
        anchor = torch.randperm(NUM_BASE)[:NUM_HOUSES]
    edge_index = torch.cat([base, houses(anchor)], dim=1)
    y = torch.cat(
        [torch.zeros(NUM_BASE, dtype=torch.int64), torch.tensor(HOUSE_LABEL).repeat(NUM_HOUSES)]
    )
    train, val, test = stratified_split(y, seed)
    return Data(
        x=torch.eye(len(y)),
        edge_index=edge_index,
        y=y,
        class_names=list(CLASS_NAMES),
        train_mask=train,
        val_mask=val,
        test_mask=test,
    )


def houses(anchor: Tensor) -> Tensor:
    """Edges of the houses and their ties to ``anchor`` (H,) nodes of the base graph, both
    directions.  (2, 14 H)
    """
    first = NUM_BASE + len(HOUSE_LABEL) * torch.arange(len(anchor))
    inner = torch.tensor(HOUSE_EDGES).t()[:, None, :] + first[None, :, None]
    pairs = torch.cat([inner.reshape(2, -1), torch.stack([anchor, first])], dim=1)
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def edge_classes(y: Tensor, pairs: Tensor) -> Tensor:
    """The number of each pair's unordered end classes in `EDGE_CLASSES`.  (N,), (2, P) -> (P,)"""
    low, high = y[pairs].sort(dim=0).values
    ends = torch.stack([low, high], dim=1)
    return (ends[:, None] == torch.tensor(EDGE_CLASSES)).all(2).int().argmax(1)


def edge_class_names() -> list[str]:
    """The six classes in words, such as 'base-middle'."""
    return [f"{CLASS_NAMES[low]}-{CLASS_NAMES[high]}" for low, high in EDGE_CLASSES]
