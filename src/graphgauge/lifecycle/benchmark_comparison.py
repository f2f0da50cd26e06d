"""Compare one's own numbers with the benchmark's, and suggest why they differ.

    EC              ratio of means; notable from 2 on (or a half), together with the degree, the
                    number of features and the depth
    time            ratio of means; notable from 3 on (or a third)
    pertinence,     difference of means; notable if it exceeds 0.05 and two SDs of the benchmark
    stability       (over data sets and networks)

The benchmark is the one that comes with graphgauge. Its degree is the mean number of directed edges
per node over its data sets, its depth is two layers. The suggested reasons are those that the paper
names. They are hints, not proofs.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphgauge.core import JsonObject
from graphgauge.datasets import DATASETS, DatasetDescription
from graphgauge.evaluation import Results
from graphgauge.guidelines import (
    JUDGED_METRICS,
    Requirements,
    aggregate_scores,
    format_metric_value,
    metric_family,
    metric_title,
    shipped_benchmark,
)
from graphgauge.lifecycle.shortlist import benchmark_kind
from graphgauge.metrics import MetricName
from graphgauge.models import BaseModel

if TYPE_CHECKING:
    import pandas as pd

_NOTABLE_RATIO = {"ec": 2.0, "time": 3.0}  #: smaller ratios are not reported
_LEAST_DIFFERENCE, _NOTABLE_SDS = 0.05, 2.0  #: smaller differences are not reported
_REASON_FACTOR = 1.25  #: a size is a possible reason if it differs by this factor
_BENCHMARK_HOPS = 2  #: layers of the benchmark's networks


@dataclass(frozen=True)
class _GraphSize:
    """What the numbers depend on: mean degree (directed edges per node), features, layers."""

    degree: float
    features: float
    hops: int


@dataclass(frozen=True)
class BenchmarkComparison:
    """One number and the benchmark's; ``note`` is '' if they are similar."""

    explainer: str
    metric: str
    own: float
    n: int
    benchmark: float
    sd: float | None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Own value over the benchmark's."""
        return self.own / self.benchmark if self.benchmark else None

    def record(self) -> JsonObject:
        """Return the comparison as plain data."""
        return {**vars(self), "ratio": self.ratio}


def compare_with_benchmark(
    results: Results, model: BaseModel, requirements: Requirements
) -> list[BenchmarkComparison]:
    """Compare every mean of a run with the benchmark's mean of the same explainer and metric.

    Args:
        results: The results of one network on one task.
        model: The network, whose size may explain a difference.
        requirements: How scores are aggregated.
    """
    kind = f"{model.level}_{model.task}"
    cells = _benchmark_means(shipped_benchmark(), benchmark_kind(kind))
    found, own, other = (
        aggregate_scores(results, requirements, merge_models=True),
        _model_size(model),
        _benchmark_size(benchmark_kind(kind)),
    )
    lines = []
    for subject in found.subjects():
        for metric in JUDGED_METRICS:
            measure, cell = found.get(subject, metric), cells.get((subject[2], metric))
            if measure is not None and measure.mean is not None and cell is not None:
                line = BenchmarkComparison(subject[2], metric, measure.mean, measure.n or 0, *cell)
                lines.append(
                    BenchmarkComparison(
                        **{**vars(line), "note": _comparison_note(line, own, other)}
                    )
                )
    return lines


def _benchmark_means(
    table: "pd.DataFrame", kind: str
) -> dict[tuple[str, str], tuple[float, float | None]]:
    """Return mean and SD of the benchmark by explainer and metric."""
    own = table[(table["task"] == kind) & table["mean"].notna()]
    return {
        (str(line["explainer"]), str(line["metric"])): (
            float(line["mean"]),
            _number_or_none(line["sd"]),
        )
        for line in own.to_dict("records")
    }


def _number_or_none(value: float | None) -> float | None:
    """Return a float, or None for a missing value (None or NaN)."""
    return None if value is None or value != value else float(value)


def _model_size(model: BaseModel) -> _GraphSize:
    """Return the size of the user's graph and network."""
    source = model.source
    return _GraphSize(source.num_edges / max(source.num_nodes, 1), source.x.size(1), model.hops)


def _benchmark_size(kind: str) -> _GraphSize:
    """Return the mean size of the benchmark's data sets for a kind of task.

    >>> round(_benchmark_size("node_classification").degree, 2)
    7.01
    """
    chosen = [own for own in DATASETS.values() if _has_task_kind(own, kind)]
    degrees, features = [own.edges / own.nodes for own in chosen], [own.features for own in chosen]
    return _GraphSize(sum(degrees) / len(degrees), sum(features) / len(features), _BENCHMARK_HOPS)


def _has_task_kind(description: DatasetDescription, kind: str) -> bool:
    """Whether a data set has a task of this kind."""
    classes = description.classes if kind.startswith("node") else description.edge_classes
    return (classes is not None) == kind.endswith("classification")


# --- sentences ------------------------------------------------------------------------------------


def _comparison_note(line: BenchmarkComparison, own: _GraphSize, other: _GraphSize) -> str:
    """Return what is notable about one number; '' if nothing is."""
    family = metric_family(line.metric)
    if family not in _NOTABLE_RATIO:
        return _difference_note(line)
    if line.ratio is None or 1 / _NOTABLE_RATIO[family] < line.ratio < _NOTABLE_RATIO[family]:
        return ""
    why = (
        "other hardware, or larger computation graphs"
        if family == "time"
        else _ratio_reason(line, own, other)
    )
    return (
        f"{_your_metric_phrase(line)} is {line.ratio:.3g}x the benchmark's "
        f"({_numbers_phrase(line)}): {why}."
    )


def _difference_note(line: BenchmarkComparison) -> str:
    """Return a note on a mean outside the range of the benchmark's data sets and networks."""
    gap = line.own - line.benchmark
    if line.sd is None or abs(gap) <= max(_LEAST_DIFFERENCE, _NOTABLE_SDS * line.sd):
        return ""
    word = "higher" if gap > 0 else "lower"
    return (
        f"{_your_metric_phrase(line)} is {word} than the benchmark's by more than "
        f"{_NOTABLE_SDS:g} of its SDs ({_numbers_phrase(line)})."
    )


def _your_metric_phrase(line: BenchmarkComparison) -> str:
    """Name the user's number.

    >>> _your_metric_phrase(BenchmarkComparison("lrp", "edge_ec", 9.0, 100, 3.0, None))
    'Your edge effective compactness with lrp'
    """
    title = metric_title(line.metric)
    return f"Your {title[:1].lower()}{title[1:]} with {line.explainer}"


def _numbers_phrase(line: BenchmarkComparison) -> str:
    """State both numbers, and n."""
    own, other = (format_metric_value(line.metric, mean) for mean in (line.own, line.benchmark))
    return f"{own}, mean of {line.n} targets, against {other}"


def _ratio_reason(line: BenchmarkComparison, own: _GraphSize, other: _GraphSize) -> str:
    """Return what differs in the same direction as an EC: degree or features, and depth."""
    is_more, is_edge = (line.ratio or 0) > 1, MetricName.parse(line.metric).side == "edge"
    what = (
        ("degree", own.degree, other.degree)
        if is_edge
        else ("features", own.features, other.features)
    )
    reasons = [_size_reason(*what, is_more), _size_reason("layers", own.hops, other.hops, is_more)]
    if any(reasons):
        return "; ".join(filter(None, reasons))
    name, mine, theirs = what
    subject = "the degree does not" if name == "degree" else f"{name} do not"
    return (
        f"{subject} explain it ({mine:.3g} against {theirs:.3g}): look at the data and the network"
    )


def _size_reason(what: str, own: float, other: float, is_more: bool) -> str:
    """Return a reason in a few words; '' if it is none.

    >>> _size_reason("degree", 14.0, 7.0, True), _size_reason("layers", 2, 2, True)
    ('higher degree (14 against 7)', '')
    """
    if (own < other * _REASON_FACTOR) if is_more else (own * _REASON_FACTOR > other):
        return ""
    word = {
        "degree": ("higher", "lower"),
        "features": ("more", "fewer"),
        "layers": ("more", "fewer"),
    }[what][0 if is_more else 1]
    return f"{word} {what} ({own:.3g} against {other:.3g})"
