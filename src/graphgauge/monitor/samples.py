"""What one look keeps of its targets: the metrics, the strongest features, and the data each target
was predicted from.

    values    metric -> (T,)    NaN where a target has no value; `missing` counts the reasons
    top       T lists           numbers of the features that count for the ranking, the strongest first
    data      (T, D)            features of the target, sizes of its computation graph, predictions, edges; `columns` names them
    gaps      (T, F)            how far each feature of the target is from its neighbours' (of a graph: along its edges), on average
    labels    (T,)              what is right, where it is known; else NaN
    errors    name -> (T,)      how wrong the prediction is, where the label is known; else NaN

In a store a sample is one row per target, as plain data; of `data` and `gaps` only what is not 0.
Runs are stored without data, gaps and labels (a comparison needs the baseline's only), with the
mean of each column and with their errors. Stores of earlier versions hold no gaps, labels and
errors: what needs them is not tested then.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphgauge.core.xplanation import Target
from graphgauge.evaluation import Results
from graphgauge.evaluation.cells import OK
from graphgauge.monitor.two_samples import Values

CLOCKS = (
    "time",
    "time_batched",
)  #: they depend on the machine's other work: held against thresholds, not tested for drift


@dataclass(frozen=True)
class Sample:
    """Targets as a look saw them."""

    targets: tuple[Target, ...]
    values: Mapping[str, Values]
    missing: Mapping[str, Mapping[str, int]] = field(
        default_factory=dict
    )  #: metric -> reason -> number of targets
    top: tuple[tuple[int, ...], ...] | None = None
    data: Values | None = None
    gaps: Values | None = None
    labels: Values | None = None
    errors: Mapping[str, Values] = field(default_factory=dict)

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
        """The errors as metrics, for the tests of metrics."""
        return Sample(self.targets, self.errors)


def sample_of_rows(
    rows: list[dict[str, Any]],
    metrics: Iterable[str],
    missing: Mapping[str, Any],
    width: int,
    features: int = 0,
) -> Sample:
    """What `Sample.rows` gave; ``width`` is the number of columns of the data, 0 if none is kept,
    ``features`` that of the gaps.
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
        filled([row[name] for row in rows], size) if rows and name in rows[0] else None
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
    return Sample(
        tuple(targets), values, {metric: reasons for metric, reasons in missing.items() if reasons}
    )


def pooled(samples: Iterable[Sample]) -> Sample:
    """Several looks as one, the last look at each target counting; metrics only."""
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
