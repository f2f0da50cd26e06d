"""What is right for each target, where the data say it, and how wrong the model is there.

    level   label                                                   not known
    node    data.y[node]                                            NaN, negative for classes; data without y
    link    data.edge_label of the pair in data.edge_label_index    pairs that are not listed
    graph   y of the graph

Regression: |prediction - y|. Classification: whether the class is wrong, and the probability that
the right class lacks. Where y has several columns, the one counts that the target (node, label) or
``output_column`` asks for.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from graphgauge.core.xplanation import WIDTH, Target, numbers_of
from graphgauge.models import BaseModel
from graphgauge.monitor.two_samples import Values

ABSOLUTE, WRONG, LACKING = (
    "absolute error",
    "share of wrong classes",
    "probability that the right class lacks",
)


def labels_of(model: BaseModel, targets: Sequence[Target]) -> Values | None:
    """The label of each target, NaN where it is not known; None where none is.  (T,)"""
    width = WIDTH[model.level]
    rows = [numbers_of(target) for target in targets]
    tables = {"node": node_labels, "link": link_labels, "graph": graph_labels}[model.level](
        model.data, [row[:width] for row in rows]
    )
    if tables is None:
        return None
    column = getattr(model, "output_column", None)
    asked = [row[width] if len(row) > width else column for row in rows]
    labels = np.array([pick(table, own) for table, own in zip(tables, asked, strict=True)])
    if model.task != "regression":
        labels = np.where(labels >= 0, labels, np.nan)
    return labels if np.isfinite(labels).any() else None


def pick(table: Values | None, column: int | None) -> float:
    """The number of a target that is asked for: the only one, or that of a column; NaN where there
    is none.

    >>> pick(np.array([3.0]), None), pick(np.array([0.0, 1.0]), 1), pick(np.array([0.0, 1.0]), None)
    (3.0, 1.0, nan)
    """
    if table is None or not (len(table) == 1 or (column is not None and column < len(table))):
        return math.nan
    return float(table[column if column is not None and len(table) > 1 else 0])


def node_labels(data: Any, nodes: Sequence[tuple[int, ...]]) -> Sequence[Values] | None:
    """From ``data.y``, a row per node."""
    y = as_rows(getattr(data, "y", None), int(data.num_nodes))
    return None if y is None else [y[node] for (node,) in nodes]


def link_labels(data: Any, links: Sequence[tuple[int, ...]]) -> Sequence[Values | None] | None:
    """From ``data.edge_label``, by pair."""
    pairs = getattr(data, "edge_label_index", None)
    if pairs is None:
        return None
    y = as_rows(getattr(data, "edge_label", None), pairs.size(1))
    if y is None:
        return None
    place = {tuple(pair): k for k, pair in enumerate(pairs.T.tolist())}
    return [y[place[link]] if link in place else None for link in links]


def graph_labels(data: Any, graphs: Sequence[tuple[int, ...]]) -> Sequence[Values | None]:
    """From ``y`` of each graph."""
    found = [as_rows(getattr(data[number], "y", None), 1) for (number,) in graphs]
    return [None if own is None else own[0] for own in found]


def as_rows(y: Any, size: int) -> Values | None:
    """A tensor with so many rows of numbers as float64; None where it is none.  (size, L)"""
    if not isinstance(y, torch.Tensor) or y.is_complex() or not y.numel() or y.numel() % size:
        return None
    if size > 1 and y.size(0) != size:
        return None
    rows: Values = y.detach().reshape(size, -1).double().cpu().numpy()
    return rows


def errors_of(
    model: BaseModel, targets: Sequence[Target], labels: Values | None
) -> Mapping[str, Values]:
    """How wrong each prediction is, NaN without a label; nothing where no label is known."""
    if labels is None:
        return {}
    predicted = model.pred_continuous(list(targets)).double().cpu().numpy()
    if model.task == "regression":
        return (
            {ABSOLUTE: np.abs(predicted.reshape(len(targets), -1)[:, 0] - labels)}
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
    return {WRONG: np.where(known, wrong, np.nan), LACKING: np.where(known, lacking, np.nan)}
