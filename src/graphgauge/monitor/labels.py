"""The labels of targets, where the data hold them, and the errors of the predictions.

    level   label                                                   not known
    node    data.y[node]                                            NaN, or below 0 for classes
    link    data.edge_label of the pair in data.edge_label_index    pairs that are not listed
    graph   y of the graph

The error of a regression is |prediction - y|. Classification has two errors: whether the predicted
class is wrong, and 1 minus the probability of the right class. Where y has several columns, the
target (node, label) or ``output_column`` selects one.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from graphgauge.core import IDS_PER_LEVEL, Target, target_tuple
from graphgauge.models import BaseModel
from graphgauge.monitor.two_sample_tests import FloatArray

_ABSOLUTE_ERROR, _WRONG_CLASS, _LACKING_PROBABILITY = (
    "absolute error",
    "share of wrong classes",
    "probability that the right class lacks",
)


def target_labels(model: BaseModel, targets: Sequence[Target]) -> FloatArray | None:
    """Return the label of each target (T,), NaN where it is not known; None if all are unknown."""
    width = IDS_PER_LEVEL[model.level]
    rows = [target_tuple(target) for target in targets]
    tables = {"node": _node_labels, "link": _link_labels, "graph": _graph_labels}[model.level](
        model.data, [row[:width] for row in rows]
    )
    if tables is None:
        return None
    column = getattr(model, "output_column", None)
    asked = [row[width] if len(row) > width else column for row in rows]
    labels = np.array([_pick_label(table, own) for table, own in zip(tables, asked, strict=True)])
    if model.task != "regression":
        labels = np.where(labels >= 0, labels, np.nan)
    return labels if np.isfinite(labels).any() else None


def _pick_label(table: FloatArray | None, column: int | None) -> float:
    """Return the only label of a target, or the one in the requested column; NaN if there is none.

    >>> _pick_label(np.array([3.0]), None), _pick_label(np.array([0.0, 1.0]), 1)
    (3.0, 1.0)
    >>> _pick_label(np.array([0.0, 1.0]), None)
    nan
    """
    if table is None or not (len(table) == 1 or (column is not None and column < len(table))):
        return math.nan
    return float(table[column if column is not None and len(table) > 1 else 0])


def _node_labels(data: Any, nodes: Sequence[tuple[int, ...]]) -> Sequence[FloatArray] | None:
    """Read labels from ``data.y``, which has one row per node."""
    y = _label_rows(getattr(data, "y", None), int(data.num_nodes))
    return None if y is None else [y[node] for (node,) in nodes]


def _link_labels(data: Any, links: Sequence[tuple[int, ...]]) -> Sequence[FloatArray | None] | None:
    """Read labels from ``data.edge_label``, by pair of nodes."""
    pairs = getattr(data, "edge_label_index", None)
    if pairs is None:
        return None
    y = _label_rows(getattr(data, "edge_label", None), pairs.size(1))
    if y is None:
        return None
    place = {tuple(pair): k for k, pair in enumerate(pairs.T.tolist())}
    return [y[place[link]] if link in place else None for link in links]


def _graph_labels(data: Any, graphs: Sequence[tuple[int, ...]]) -> Sequence[FloatArray | None]:
    """Read labels from ``y`` of each graph."""
    found = [_label_rows(getattr(data[number], "y", None), 1) for (number,) in graphs]
    return [None if own is None else own[0] for own in found]


def _label_rows(y: Any, size: int) -> FloatArray | None:
    """Return a tensor as ``size`` rows of float64 (size, L); None if it does not have such rows."""
    if not isinstance(y, torch.Tensor) or y.is_complex() or not y.numel() or y.numel() % size:
        return None
    if size > 1 and y.size(0) != size:
        return None
    rows: FloatArray = y.detach().reshape(size, -1).double().cpu().numpy()
    return rows


def prediction_errors(
    model: BaseModel, targets: Sequence[Target], labels: FloatArray | None
) -> Mapping[str, FloatArray]:
    """Return the errors of the predictions by name, NaN without a label; {} if all are unknown."""
    if labels is None:
        return {}
    predicted = model.pred_continuous(list(targets)).double().cpu().numpy()
    if model.task == "regression":
        return (
            {_ABSOLUTE_ERROR: np.abs(predicted.reshape(len(targets), -1)[:, 0] - labels)}
            if predicted.size == len(targets)
            else {}
        )
    if (
        predicted.ndim != 2
        or not np.isin(labels[np.isfinite(labels)], np.arange(predicted.shape[1])).all()
    ):
        return {}
    known = np.isfinite(labels)
    right = np.where(known, labels, 0).astype(np.int64)
    wrong = (predicted.argmax(1) != right).astype(np.float64)
    lacking = 1 - np.take_along_axis(predicted, right[:, None], 1)[:, 0]
    return {
        _WRONG_CLASS: np.where(known, wrong, np.nan),
        _LACKING_PROBABILITY: np.where(known, lacking, np.nan),
    }
