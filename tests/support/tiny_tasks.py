"""Small tasks of every kind, in the form the loaders give."""

import torch
from torch_geometric.data import Data

from graphgauge.core.seeds import make_generator

KINDS = ("classes", "weighted_values", "values", "existence", "link_classes", "link_values", "sums")
NUM_NODES, NUM_FEATURES = 24, 6


def made_task(kind, seed=0, dtype=torch.float64, sparse=False):
    random = make_generator(seed)
    x = torch.randn(NUM_NODES, NUM_FEATURES, generator=random, dtype=dtype)
    x = torch.eye(NUM_NODES, dtype=dtype) if sparse else x
    ends = torch.randint(NUM_NODES, (2, 40), generator=random)
    ends = ends[:, ends[0] != ends[1]]
    # one stored self-loop, one way
    edge_index = torch.cat([ends, ends.flip(0), torch.tensor([[3, 3], [3, 5]])], 1).unique(dim=1)
    data = Data(x=x, edge_index=edge_index)
    data = node_task(data, kind, random) if kind in KINDS[:3] else link_task(data, kind, random)
    part = torch.arange(len(data.y if data.level == "node" else data.edge_label)) % 5
    data.train_mask, data.val_mask, data.test_mask = part < 3, part == 3, part == 4
    return data


def node_task(data, kind, random):
    data.level, data.name = "node", "Made"
    data.task = "classification" if kind == "classes" else "regression"
    data.class_names = ["a", "b", "c"] if kind == "classes" else []
    if kind == "classes":
        data.y = torch.randint(3, (NUM_NODES,), generator=random)
    else:
        data.y = 3 + torch.randn(NUM_NODES, generator=random, dtype=data.x.dtype)
    if kind == "weighted_values":
        data.edge_weight = torch.rand(data.num_edges, generator=random, dtype=data.x.dtype)
        data.edge_attr = data.edge_weight[:, None]
    return data


def link_task(data, kind, random):
    data.level, data.name = "link", "Synthetic" if kind == "sums" else "Made"
    data.edge_label_index = torch.randint(NUM_NODES, (2, 50), generator=random)
    data.task = "classification" if kind in ("existence", "link_classes") else "regression"
    data.class_names = {"existence": ["no", "yes"], "link_classes": list("abcdef")}.get(kind, [])
    if data.class_names:
        data.edge_label = torch.randint(len(data.class_names), (50,), generator=random)
    else:
        data.edge_label = 2 + torch.randn(50, generator=random, dtype=data.x.dtype)
    return data
