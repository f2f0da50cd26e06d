"""A small explanation with known scores, and what can be read back from its picture."""

import torch
from matplotlib.patches import FancyArrowPatch
from torch_geometric.data import Data

import graphgauge as gg

#: 1 -> 0, 2 -> 0, 0 -> 1, 3 -> 1, 4 -> 3, 5 -> 2, 2 -> 5
EDGES = torch.tensor([[1, 2, 0, 3, 4, 5, 2], [0, 0, 1, 1, 3, 2, 5]])
SCORES = torch.tensor([0.5, -0.25, 0.125, 0.0625, 0.03125, 0.0, -0.03125])
DATA = Data(x=torch.zeros(6, 3), edge_index=EDGES)
FEATURES = torch.tensor(
    [
        [0.0, 3.0, -1.0],
        [1.0, 0.0, 0.0],
        [-0.5, 0.0, 0.0],
        [0.0, 0.0, 0.0],
        [0.0, 0.25, 0.0],
        [0.0, 0.0, 0.0],
    ]
)
SIGNED, UNSIGNED = "input_x_gradient", "gnn_explainer"


def explanation(**changes):
    given = {
        "target": 0,
        "nodes": torch.arange(6),
        "edges": torch.arange(7),
        "num_nodes": 6,
        "num_edges": 7,
        "feature_score": FEATURES,
        "edge_score": SCORES,
        "prediction": torch.tensor([0.25, 0.75]),
        "explainer": SIGNED,
    }
    return gg.Xplanation(**{**given, **changes})


def arrows(axes):
    """The arrows of a picture, as they lie on top of each other: the strongest last."""
    return [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]


def texts(axes):
    """Labels of nodes."""
    return [text.get_text() for text in axes.texts]


def places(axes):
    """Positions of the nodes, in the order in which they are listed."""
    return axes.collections[0].get_offsets().tolist()


def middle(axes):
    """The middle of the picture."""
    return [sum(axes.get_xlim()) / 2, sum(axes.get_ylim()) / 2]
