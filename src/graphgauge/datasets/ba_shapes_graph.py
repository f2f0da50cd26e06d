"""BA-Shapes: a preferential-attachment graph of 300 nodes, to which 80 "houses" of five nodes are
attached (GNNExplainer, 2019).

Node classes: 0 base graph, 1 middle of a house, 2 bottom, 3 top. An edge has one of six classes,
which its two ends decide. The features of a node are its one-hot code, as in the paper that this
library implements: 700 nodes, 700 features. With seed 1 there are 3,942 directed edges, the number
in the paper.
"""

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import barabasi_albert_graph

from graphgauge.core import temporary_global_seed
from graphgauge.datasets.splits import stratified_split

_NUM_BASE, _NUM_HOUSES, _EDGES_PER_NEW_NODE = 300, 80, 5
_HOUSE_LABEL = (1, 1, 2, 2, 3)  #: two middle nodes, two bottom nodes, the top
#: undirected; node 0 is tied to the base graph
_HOUSE_EDGES = ((0, 1), (0, 3), (0, 4), (1, 2), (1, 4), (2, 3))
_BA_SHAPES_CLASSES = ("base", "middle", "bottom", "top")
#: classes of the two ends, smaller first
_EDGE_CLASSES = ((0, 0), (0, 1), (1, 1), (1, 2), (1, 3), (2, 2))


def ba_shapes(seed: int = 1) -> Data:
    """Generate the graph, its labels ``y`` and an 80/10/10 split that is stratified by class.

    >>> data = ba_shapes()
    >>> data.num_nodes, data.num_edges, data.num_node_features
    (700, 3942, 700)
    """
    with temporary_global_seed(seed):  # the generator of PyG draws from the global states
        base = barabasi_albert_graph(_NUM_BASE, _EDGES_PER_NEW_NODE)
        anchor = torch.randperm(_NUM_BASE)[:_NUM_HOUSES]
    edge_index = torch.cat([base, _attach_houses(anchor)], dim=1)
    y = torch.cat(
        [torch.zeros(_NUM_BASE, dtype=torch.int64), torch.tensor(_HOUSE_LABEL).repeat(_NUM_HOUSES)]
    )
    train, val, test = stratified_split(y, seed)
    return Data(
        x=torch.eye(len(y)),
        edge_index=edge_index,
        y=y,
        class_names=list(_BA_SHAPES_CLASSES),
        train_mask=train,
        val_mask=val,
        test_mask=test,
    )


def _attach_houses(anchor: Tensor) -> Tensor:
    """The edges of the houses, and those that tie them to ``anchor`` (H,) nodes of the base graph,
    in both directions.  (2, 14 H)
    """
    first = _NUM_BASE + len(_HOUSE_LABEL) * torch.arange(len(anchor))
    inner = torch.tensor(_HOUSE_EDGES).t()[:, None, :] + first[None, :, None]
    pairs = torch.cat([inner.reshape(2, -1), torch.stack([anchor, first])], dim=1)
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def edge_classes(y: Tensor, pairs: Tensor) -> Tensor:
    """The class of each pair: the place of the classes of its two ends in `_EDGE_CLASSES`.  (N,),
    (2, P) -> (P,)
    """
    low, high = y[pairs].sort(dim=0).values
    ends = torch.stack([low, high], dim=1)
    return (ends[:, None] == torch.tensor(_EDGE_CLASSES)).all(2).int().argmax(1)


def edge_class_names() -> list[str]:
    """The six classes of edges in words, such as 'base-middle'."""
    return [f"{_BA_SHAPES_CLASSES[low]}-{_BA_SHAPES_CLASSES[high]}" for low, high in _EDGE_CLASSES]
