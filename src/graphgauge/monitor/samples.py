"""What one look keeps of its targets: the metrics, the strongest features, and the data each target was predicted from.

    values    metric -> (T,)    NaN where a target has no value; `missing` counts the reasons
    top       T lists           numbers of the features that count for the ranking, the strongest first
    data      (T, D)            features of the target, sizes of its computation graph, predictions, edges; `columns` names them

In a store a sample is one row per target, as plain data; of `data` only what is not 0. Runs are stored without their data (a
comparison needs the baseline's only), with the mean of each column.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphgauge.core.xplanation import Target
from graphgauge.evaluation import Results
from graphgauge.evaluation.cells import OK
from graphgauge.monitor.two_samples import Values

CLOCKS = ("time", "time_batched")  #: they depend on the machine's other work: held against thresholds, not tested for drift


@dataclass(frozen=True)
class Sample:
    """Targets as a look saw them."""

    targets: tuple[Target, ...]
    values: Mapping[str, Values]
    missing: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  #: metric -> reason -> number of targets
    top: tuple[tuple[int, ...], ...] | None = None
    data: Values | None = None

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def metrics(self) -> list[str]:
        """Metrics that are tested for drift."""
        return [metric for metric in self.values if metric not in CLOCKS]

    def known(self, metric: str) -> Values:
        """The values of a metric, where there are any."""
        values = self.values.get(metric, np.empty(0))
        return values[np.isfinite(values)]

    def rows(self, with_data: bool) -> list[dict[str, Any]]:
        """One row per target."""
        return [self.row(k, with_data) for k in range(len(self))]

    def row(self, k: int, with_data: bool) -> dict[str, Any]:
        """What is kept of one target."""
        found: dict[str, Any] = {"target": self.targets[k], "values": {}}
        found["values"] = {metric: float(own[k]) for metric, own in self.values.items() if np.isfinite(own[k])}
        if self.top is not None:
            found["top"] = list(self.top[k])
        if with_data and self.data is not None:
            found["data"] = [[int(d), float(self.data[k, d])] for d in self.data[k].nonzero()[0]]
        return found


def sample_of_rows(rows: list[dict[str, Any]], metrics: Iterable[str], missing: Mapping[str, Any], width: int) -> Sample:
    """What `Sample.rows` gave; ``width`` is the number of columns of the data, 0 if none is kept."""
    targets = tuple(tuple(row["target"]) if isinstance(row["target"], list) else row["target"] for row in rows)
    values = {metric: np.array([row["values"].get(metric, np.nan) for row in rows], dtype=np.float64) for metric in metrics}
    top = tuple(tuple(row["top"]) for row in rows) if rows and "top" in rows[0] else None
    has_data = bool(rows) and "data" in rows[0]
    return Sample(targets, values, missing, top, filled([row["data"] for row in rows], width) if has_data else None)


def filled(sparse: list[list[tuple[int, float]]], width: int) -> Values:
    """Rows of (column, value) with 0 elsewhere.  (T, D)

    >>> filled([[(1, 2.0)], []], 2)
    array([[0., 2.],
           [0., 0.]])
    """
    data = np.zeros((len(sparse), width))
    for row, pairs in zip(data, sparse, strict=True):
        for column, value in pairs:
            row[column] = value
    return data


def sample_of_results(results: Results, explainer: str) -> Sample:
    """The metrics of one explainer in some results, the first explanation of each target."""
    own = [row for row in results.rows if row.explainer == explainer and row.occurrence == 0]
    targets = {target: k for k, target in enumerate(dict.fromkeys(row.target for row in own))}
    metrics = list(dict.fromkeys(row.metric for row in own))
    values = {metric: np.full(len(targets), np.nan) for metric in metrics}
    missing: dict[str, dict[str, int]] = {metric: {} for metric in metrics}
    for row in own:
        if row.cell.status == OK and row.cell.value is not None:
            values[row.metric][targets[row.target]] = row.cell.value
        else:
            missing[row.metric][row.cell.status] = missing[row.metric].get(row.cell.status, 0) + 1
    return Sample(tuple(targets), values, {metric: reasons for metric, reasons in missing.items() if reasons})


def pooled(samples: Iterable[Sample]) -> Sample:
    """Several looks as one, the last look at each target counting; metrics only."""
    last = {target: (own, k) for own in samples for k, target in enumerate(own.targets)}
    metrics = dict.fromkeys(metric for own, _ in last.values() for metric in own.values)
    nothing = np.array([np.nan])
    values = {
        metric: np.array([own.values[metric][k] if metric in own.values else nothing[0] for own, k in last.values()])
        for metric in metrics
    }
    return Sample(tuple(last), values)
