"""Scores of a network on a part of its task: accuracy for classes, r² for values.

accuracy = share of rows whose class is predicted (one logit: its sign decides) r²       = 1 - sum
(y - f)² / sum (y - mean y)²          with means over the scored part
"""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphgauge.datasets.networks import GCN, LinkNetwork, edge_input, labels
from graphgauge.datasets.splits import PARTS, part_mask

SCORED_PARTS = (*PARTS, "all")


def scores(net: nn.Module, data: Data, parts: tuple[str, ...]) -> dict[str, float]:
    """The score on each part; the part "all" has every labelled row."""
    output, label = outputs_of(net, data), labels(data)
    masks = {part: part_mask(data, part) for part in parts}
    score = accuracy_of if data.task == "classification" else r2_of
    return {part: score(output[mask], label[mask]) for part, mask in masks.items()}


@torch.no_grad()
def outputs_of(net: nn.Module, data: Data) -> Tensor:
    """The output of the network for all nodes, or for all labelled pairs."""
    if isinstance(net, LinkNetwork):
        return net.decode(net.encode(data.x, data.edge_index), data.edge_label_index)
    conv = "gcn" if isinstance(net, GCN) else "gat"
    return net(data.x, data.edge_index, **edge_input(data, conv))


def accuracy_of(output: Tensor, label: Tensor) -> float:
    """Accuracy of logits.  (n, C) or (n,), (n,)

    >>> accuracy_of(torch.tensor([2.0, -1.0, 3.0, -4.0]), torch.tensor([1, 1, 1, 0]))
    0.75
    """
    predicted = output.argmax(1) if output.dim() == 2 else output > 0
    return float((predicted == label).double().mean())


def r2_of(output: Tensor, label: Tensor) -> float:
    """The r² of values.  (n, 1) or (n,), (n,)

    >>> r2_of(torch.tensor([1.0, 2.0, 2.0]), torch.tensor([1.0, 2.0, 3.0]))
    0.5
    """
    label = label.double()
    error = (output.reshape(-1).double() - label).square().sum()
    return float(1 - error / (label - label.mean()).square().sum())
