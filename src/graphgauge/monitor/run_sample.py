"""The sample of a run: metrics, strongest features, and data of each target.

    values    metric -> (T,)   NaN where a target has no value; `missing` counts the reasons
    top       T lists          numbers of the features that count for the ranking, strongest first
    data      (T, D)           features of the target, sizes of its computation graph, predictions
                               and edges; `columns` names them
    gaps      (T, F)           mean distance of each feature from that of the target's neighbours
                               (for a graph: along its edges)
    labels    (T,)             the label, NaN where it is not known
    errors    name -> (T,)     the error of the prediction, NaN where the label is not known

A store holds a sample as one row of plain data per target; of `data` and `gaps` it holds only the
entries that are not 0. Runs are stored without data, gaps and labels, because a comparison needs
those of the baseline only, but with the mean of each column and with their errors. Stores of
earlier versions hold no gaps, labels and errors; tests that need them are then skipped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphgauge.core import JsonObject, Target
from graphgauge.evaluation import OK, Results
from graphgauge.monitor.two_sample_tests import FloatArray

#: they depend on the machine's other work: held against thresholds, not tested for drift
CLOCK_METRICS = ("time", "time_batched")


@dataclass(frozen=True)
class Sample:
    """The measured targets of a baseline or a run."""

    targets: tuple[Target, ...]
    values: Mapping[str, FloatArray]
    #: metric -> reason -> number of targets
    missing: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    top: tuple[tuple[int, ...], ...] | None = None
    data: FloatArray | None = None
    gaps: FloatArray | None = None
    labels: FloatArray | None = None
    errors: Mapping[str, FloatArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics that are tested for drift."""
        return [metric for metric in self.values if metric not in CLOCK_METRICS]

    def known(self, metric: str) -> FloatArray:
        """Return the values of a metric, without the missing ones."""
        values = self.values.get(metric, np.empty(0))
        return values[np.isfinite(values)]

    def rows(self, with_data: bool) -> list[JsonObject]:
        """Return one row of plain data per target."""
        return [self.row(k, with_data) for k in range(len(self))]

    def row(self, k: int, with_data: bool) -> JsonObject:
        """Return what is stored of one target."""
        found: JsonObject = {"target": self.targets[k], "values": {}}
        found["values"] = {
            metric: float(own[k]) for metric, own in self.values.items() if np.isfinite(own[k])
        }
        if self.top is not None:
            found["top"] = list(self.top[k])
        for name, rows in (("data", self.data), ("gaps", self.gaps)):
            if with_data and rows is not None:
                found[name] = [[int(d), float(rows[k, d])] for d in rows[k].nonzero()[0]]
        if with_data and self.labels is not None and np.isfinite(self.labels[k]):
            found["label"] = float(self.labels[k])
        errors = {name: float(own[k]) for name, own in self.errors.items() if np.isfinite(own[k])}
        return {**found, "errors": errors} if errors else found

    @property
    def errors_as_metrics(self) -> "Sample":
        """A sample with the errors as its metrics, so that the tests of metrics apply to them."""
        return Sample(self.targets, self.errors)


def sample_from_rows(
    rows: list[JsonObject],
    metrics: Iterable[str],
    missing: Mapping[str, Any],
    width: int,
    features: int = 0,
) -> Sample:
    """Build a sample from what `Sample.rows` returned.

    Args:
        rows: One row of plain data per target.
        metrics: Names of the metrics, in order.
        missing: Number of missing values by metric and reason.
        width: Number of data columns; 0 if no data are kept.
        features: Number of columns of the gaps.
    """
    targets = tuple(
        tuple(row["target"]) if isinstance(row["target"], list) else row["target"] for row in rows
    )
    values = {
        metric: np.array([row["values"].get(metric, np.nan) for row in rows], dtype=np.float64)
        for metric in metrics
    }
    top = tuple(tuple(row["top"]) for row in rows) if rows and "top" in rows[0] else None
    data, gaps = (
        _dense_rows([row[name] for row in rows], size) if rows and name in rows[0] else None
        for name, size in (("data", width), ("gaps", features))
    )
    labels = (
        np.array([row.get("label", np.nan) for row in rows])
        if any("label" in row for row in rows)
        else None
    )
    names = dict.fromkeys(name for row in rows for name in row.get("errors", {}))
    errors = {
        name: np.array([row.get("errors", {}).get(name, np.nan) for row in rows]) for name in names
    }
    return Sample(targets, values, missing, top, data, gaps, labels, errors)


def _dense_rows(sparse: list[list[tuple[int, float]]], width: int) -> FloatArray:
    """Turn lists of (column, value) into full rows with 0 elsewhere.  (T, D)

    >>> _dense_rows([[(1, 2.0)], []], 2)
    array([[0., 2.],
           [0., 0.]])
    """
    data = np.zeros((len(sparse), width))
    for row, pairs in zip(data, sparse, strict=True):
        for column, value in pairs:
            row[column] = value
    return data


def sample_from_results(results: Results, explainer: str) -> Sample:
    """Build a sample of the metrics of one explainer, from the first explanation of each target."""
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
    return Sample(
        tuple(targets), values, {metric: reasons for metric, reasons in missing.items() if reasons}
    )


def pool_samples(samples: Iterable[Sample]) -> Sample:
    """Merge the metrics of several samples; the last sample that holds a target counts."""
    last = {target: (own, k) for own in samples for k, target in enumerate(own.targets)}
    metrics = dict.fromkeys(metric for own, _ in last.values() for metric in own.values)
    nothing = np.array([np.nan])
    values = {
        metric: np.array(
            [
                own.values[metric][k] if metric in own.values else nothing[0]
                for own, k in last.values()
            ]
        )
        for metric in metrics
    }
    return Sample(tuple(last), values)
