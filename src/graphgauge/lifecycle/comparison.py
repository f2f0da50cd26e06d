"""One's own numbers beside the benchmark's, and why they may differ.

    EC              ratio of means; from 2 times on (or half) it is told, with the degree, number of features and depth beside it
    time            ratio of means; from 3 times on (or a third)
    pertinence,     difference of means; told where it exceeds 0.05 and two SDs of the benchmark
    stability       (its SD is over data sets and networks)

The benchmark is the one that comes with graphgauge. Its degree is the mean over its data sets of
directed edges per node, its depth two layers. The reasons are those that the paper names; they are
hints, not proofs.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphgauge.datasets import DATASETS, Description
from graphgauge.evaluation import Results
from graphgauge.guidelines import Requirements
from graphgauge.guidelines.book import family_of, shipped_benchmark
from graphgauge.guidelines.limits import title, told
from graphgauge.guidelines.measures import JUDGED, measured
from graphgauge.lifecycle.consultation import stand_in
from graphgauge.models import BaseModel

if TYPE_CHECKING:
    import pandas as pd

FACTOR = {"ec": 2.0, "time": 3.0}  #: ratios that are told
LEAST, SDS = 0.05, 2.0  #: differences that are told
MORE = 1.25  #: so much more of something is a reason
HOPS = 2  #: layers of the benchmark's networks


@dataclass(frozen=True)
class Size:
    """What numbers depend on: mean degree (directed edges per node), features, layers."""

    degree: float
    features: float
    hops: int


@dataclass(frozen=True)
class Beside:
    """One number beside the benchmark's; ``note`` '' where they are alike."""

    explainer: str
    metric: str
    own: float
    n: int
    benchmark: float
    sd: float | None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Own over the benchmark's."""
        return self.own / self.benchmark if self.benchmark else None

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {**vars(self), "ratio": self.ratio}


def beside_benchmark(
    results: Results, model: BaseModel, requirements: Requirements
) -> list[Beside]:
    """Every mean of a run that the benchmark has too."""
    kind = f"{model.level}_{model.task}"
    cells = cells_of(shipped_benchmark(), stand_in(kind))
    found, own, other = (
        measured(results, requirements, merge_models=True),
        size_of(model),
        benchmark_size(stand_in(kind)),
    )
    lines = []
    for subject in found.subjects():
        for metric in JUDGED:
            measure, cell = found.get(subject, metric), cells.get((subject[2], metric))
            if measure is not None and measure.mean is not None and cell is not None:
                line = Beside(subject[2], metric, measure.mean, measure.n or 0, *cell)
                lines.append(Beside(**{**vars(line), "note": note_of(line, own, other)}))
    return lines


def cells_of(table: "pd.DataFrame", kind: str) -> dict[tuple[str, str], tuple[float, float | None]]:
    """Mean and SD of the benchmark by explainer and metric."""
    own = table[(table["task"] == kind) & table["mean"].notna()]
    return {
        (str(line["explainer"]), str(line["metric"])): (
            float(line["mean"]),
            number_or_none(line["sd"]),
        )
        for line in own.to_dict("records")
    }


def number_or_none(value: Any) -> float | None:
    """A float, or None for what is no number."""
    return None if value is None or value != value else float(value)


def size_of(model: BaseModel) -> Size:
    """The size of one's own graph and network."""
    source = model.source
    return Size(source.num_edges / max(source.num_nodes, 1), source.x.size(1), model.hops)


def benchmark_size(kind: str) -> Size:
    """The mean size of the benchmark's data sets for a kind of task.

    >>> round(benchmark_size("node_classification").degree, 2)
    7.01
    """
    chosen = [own for own in DATASETS.values() if is_of(own, kind)]
    degrees, features = [own.edges / own.nodes for own in chosen], [own.features for own in chosen]
    return Size(sum(degrees) / len(degrees), sum(features) / len(features), HOPS)


def is_of(description: Description, kind: str) -> bool:
    """Whether a data set has a task of this kind."""
    classes = description.classes if kind.startswith("node") else description.edge_classes
    return (classes is not None) == kind.endswith("classification")


# --- sentences ------------------------------------------------------------------------------------


def note_of(line: Beside, own: Size, other: Size) -> str:
    """What is worth saying about one number; '' if nothing is."""
    family = family_of(line.metric)
    if family not in FACTOR:
        return difference_note(line)
    if line.ratio is None or 1 / FACTOR[family] < line.ratio < FACTOR[family]:
        return ""
    why = (
        "other hardware, or larger computation graphs"
        if family == "time"
        else reason(line, own, other)
    )
    return f"{your(line)} is {line.ratio:.3g}x the benchmark's ({numbers(line)}): {why}."


def difference_note(line: Beside) -> str:
    """A mean that lies beyond what the benchmark's data sets and networks show."""
    gap = line.own - line.benchmark
    if line.sd is None or abs(gap) <= max(LEAST, SDS * line.sd):
        return ""
    word = "higher" if gap > 0 else "lower"
    return f"{your(line)} is {word} than the benchmark's by more than {SDS:g} of its SDs ({numbers(line)})."


def your(line: Beside) -> str:
    """Whose number.

    >>> your(Beside("lrp", "edge_ec", 9.0, 100, 3.0, None))
    'Your edge effective compactness with lrp'
    """
    return f"Your {title(line.metric)[:1].lower()}{title(line.metric)[1:]} with {line.explainer}"


def numbers(line: Beside) -> str:
    """Both numbers, and n."""
    return f"{told(line.metric, line.own)}, mean of {line.n} targets, against {told(line.metric, line.benchmark)}"


def reason(line: Beside, own: Size, other: Size) -> str:
    """What differs in the same direction as an EC: degree or features, and depth."""
    is_more, is_edge = (line.ratio or 0) > 1, line.metric.startswith("edge")
    what = (
        ("degree", own.degree, other.degree)
        if is_edge
        else ("features", own.features, other.features)
    )
    said = [compared(*what, is_more), compared("layers", own.hops, other.hops, is_more)]
    found = "; ".join(filter(None, said))
    name, mine, theirs = what
    return (
        found
        or f"{name} do not explain it ({mine:.3g} against {theirs:.3g}): look at the data and the network".replace(
            "degree do not", "the degree does not"
        )
    )


def compared(what: str, own: float, other: float, is_more: bool) -> str:
    """A reason in a few words; '' if it is none.

    >>> compared("degree", 14.0, 7.0, True), compared("layers", 2, 2, True)
    ('higher degree (14 against 7)', '')
    """
    if (own < other * MORE) if is_more else (own * MORE > other):
        return ""
    word = {
        "degree": ("higher", "lower"),
        "features": ("more", "fewer"),
        "layers": ("more", "fewer"),
    }[what][0 if is_more else 1]
    return f"{word} {what} ({own:.3g} against {other:.3g})"
