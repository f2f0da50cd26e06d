"""Scores of a network on a part of its task: accuracy for classes, r² for values.

accuracy = share of rows whose class is predicted (one logit: its sign decides) r²       = 1 - sum
(y - f)² / sum (y - mean y)²          with means over the scored part
"""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphgauge.datasets import GCN, SPLIT_PARTS, LinkNetwork, edge_inputs, part_mask, task_labels

SCORED_PARTS = (*SPLIT_PARTS, "all")


def score_parts(net: nn.Module, data: Data, parts: tuple[str, ...]) -> dict[str, float]:
    """The score on each part; the part "all" has every labelled row."""
    output, label = _network_outputs(net, data), task_labels(data)
    masks = {part: part_mask(data, part) for part in parts}
    score = _class_accuracy if data.task == "classification" else _r2_score
    return {part: score(output[mask], label[mask]) for part, mask in masks.items()}


@torch.no_grad()
def _network_outputs(net: nn.Module, data: Data) -> Tensor:
    """The output of the network for all nodes, or for all labelled pairs."""
    if isinstance(net, LinkNetwork):
        return net.decode(net.encode(data.x, data.edge_index), data.edge_label_index)
    conv = "gcn" if isinstance(net, GCN) else "gat"
    return net(data.x, data.edge_index, **edge_inputs(data, conv))


def _class_accuracy(output: Tensor, label: Tensor) -> float:
    """Accuracy of logits.  (n, C) or (n,), (n,)

    >>> _class_accuracy(torch.tensor([2.0, -1.0, 3.0, -4.0]), torch.tensor([1, 1, 1, 0]))
    0.75
    """
    predicted = output.argmax(1) if output.dim() == 2 else output > 0
    return float((predicted == label).double().mean())


def _r2_score(output: Tensor, label: Tensor) -> float:
    """The r² of values.  (n, 1) or (n,), (n,)

    >>> _r2_score(torch.tensor([1.0, 2.0, 2.0]), torch.tensor([1.0, 2.0, 3.0]))
    0.5
    """
    label = label.double()
    error = (output.reshape(-1).double() - label).square().sum()
    return float(1 - error / (label - label.mean()).square().sum())
