"""What is right for each target, where the data say it, and how wrong the model is there.

    level   label                                                   not known
    node    data.y[node]                                            NaN, negative for classes; data without y
    link    data.edge_label of the pair in data.edge_label_index    pairs that are not listed
    graph   y of the graph

Regression: |prediction - y|. Classification: whether the class is wrong, and the probability that the right class lacks. Data with
several labels for a target are not judged here.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from graphgauge.core.xplanation import Target
from graphgauge.models import BaseModel
from graphgauge.monitor.two_samples import Values

ABSOLUTE, WRONG, LACKING = "absolute error", "share of wrong classes", "probability that the right class lacks"


def labels_of(model: BaseModel, targets: Sequence[Target]) -> Values | None:
    """The label of each target, NaN where it is not known; None where none is.  (T,)"""
    find = {"node": node_labels, "link": link_labels, "graph": graph_labels}[model.level]
    labels = find(model.data, targets)
    if labels is None:
        return None
    if model.task != "regression":
        labels = np.where(labels >= 0, labels, np.nan)
    return labels if np.isfinite(labels).any() else None


def node_labels(data: Any, targets: Sequence[Target]) -> Values | None:
    """From ``data.y`` with one number per node."""
    y = as_numbers(getattr(data, "y", None), int(data.num_nodes))
    nodes = np.array(targets, dtype=np.int64)
    return None if y is None or nodes.ndim != 1 else y[nodes]


def link_labels(data: Any, targets: Sequence[Target]) -> Values | None:
    """From ``data.edge_label``, by pair."""
    pairs = getattr(data, "edge_label_index", None)
    if pairs is None:
        return None
    y = as_numbers(getattr(data, "edge_label", None), pairs.size(1))
    if y is None:
        return None
    known = {(int(a), int(b)): value for (a, b), value in zip(pairs.T.tolist(), y.tolist(), strict=True)}
    return np.array([known.get(tuple(target), np.nan) for target in targets])  # type: ignore[arg-type]


def graph_labels(data: Any, targets: Sequence[Target]) -> Values | None:
    """From ``y`` of each graph."""
    found = [as_numbers(getattr(data[int(target)], "y", None), 1) for target in targets]  # type: ignore[arg-type]
    return None if all(own is None for own in found) else np.array([np.nan if own is None else own[0] for own in found])


def as_numbers(y: Any, size: int) -> Values | None:
    """A tensor with so many numbers as float64; None where it is none."""
    if not isinstance(y, torch.Tensor) or y.numel() != size or y.is_complex():
        return None
    return y.detach().reshape(-1).double().cpu().numpy()


def errors_of(model: BaseModel, targets: Sequence[Target], labels: Values | None) -> Mapping[str, Values]:
    """How wrong each prediction is, NaN without a label; nothing where no label is known."""
    if labels is None:
        return {}
    predicted = model.pred_continuous(list(targets)).double().cpu().numpy()
    if model.task == "regression":
        return {ABSOLUTE: np.abs(predicted.reshape(len(targets), -1)[:, 0] - labels)} if predicted.size == len(targets) else {}
    if predicted.ndim != 2 or not np.isin(labels[np.isfinite(labels)], np.arange(predicted.shape[1])).all():
        return {}
    known = np.isfinite(labels)
    right = np.where(known, labels, 0).astype(np.int64)
    wrong = (predicted.argmax(1) != right).astype(np.float64)
    lacking = 1 - np.take_along_axis(predicted, right[:, None], 1)[:, 0]
    return {WRONG: np.where(known, wrong, np.nan), LACKING: np.where(known, lacking, np.nan)}
