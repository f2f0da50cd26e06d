"""What can be shown of an explanation without its network and its data: the facts of its text, its pictures, its scores.

A run keeps the exhibits of the worst and the best explanations of each explainer, so that a report from the disk has the same
sentences and pictures, in any language and for any audience, as one from memory. Names are those of the time it was kept.

facts, redacted    what texts are made of, with and without the neighbours; not judged: thresholds belong to the reader
sketch, bars       the edges and the features that are drawn
curves             the deletion curve of each side
scores             the strongest scores of each side, as many as the setting ``keep`` says
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from graphgauge.core.errors import GraphgaugeError
from graphgauge.core.xplanation import Xplanation
from graphgauge.evaluation import Evaluator, Row, Story
from graphgauge.narrative import Names
from graphgauge.narrative.facts import edge_ends
from graphgauge.narrative.telling import all_names, explanation_facts
from graphgauge.report.arrows import ends_of_edges
from graphgauge.report.bars import Bars, feature_bars, shown_features
from graphgauge.report.curves import Curve, curve_of
from graphgauge.report.sketch import Sketch, sketch_of
from graphgauge.report.subgraph import picture_names
from graphgauge.report.texts import finite

T = TypeVar("T")
Stories = Sequence[Callable[[], Story]]
TOP_EDGES, TOP_FEATURES = 15, 8
PAIRS = ("target", "reference")  #: of a curve; pairs where links are explained


@dataclass(frozen=True)
class Exhibit:
    """One explanation as it is shown; None stands for what could not be made (no scores, NaN ...)."""

    facts: Mapping[str, Any] | None
    redacted: Mapping[str, Any] | None
    sketch: Sketch | None
    bars: Bars | None
    curves: tuple[Curve, ...]
    scores: Mapping[str, Any]
    num_features: int

    def record(self) -> dict[str, Any]:
        """As plain data that JSON can hold."""
        found: dict[str, Any] = finite(asdict(self))
        return found

    @staticmethod
    def read(record: Mapping[str, Any]) -> "Exhibit":
        """What `record` gave, also after JSON."""
        sketch, bars = record["sketch"], record["bars"]
        return Exhibit(
            **{
                **record,
                "sketch": None if sketch is None else Sketch.read(sketch),
                "bars": None if bars is None else Bars(**{**bars, "drawn": [tuple(bar) for bar in bars["drawn"]]}),
                "curves": tuple(Curve(**curve | {name: target_of(curve[name]) for name in PAIRS}) for curve in record["curves"]),
            }
        )


def target_of(target: Any) -> Any:
    """A target as it was before JSON."""
    return tuple(target) if isinstance(target, list) else target


def exhibit_of(evaluator: Evaluator, x: Xplanation, rows: Sequence[Row], stories: Stories, names: Any = None) -> Exhibit:
    """What can be shown of ``x``, which has these rows in the results and these stories behind them."""
    evaluator.fill(x, {row.metric: row.cell for row in rows})
    called, pooling = picture_names(x, evaluator.model, all_names(evaluator, names)), evaluator.settings.pooling
    return Exhibit(
        facts=attempted(explanation_facts, evaluator, x, names, redact=False),
        redacted=attempted(explanation_facts, evaluator, x, names, redact=True),
        sketch=attempted(sketch_of_model, x, evaluator, called) if len(x.edges) else None,
        bars=attempted(shown_features, x, called, TOP_FEATURES, pooling),
        curves=tuple(curve_of(story()) for story in stories),
        scores={"edge": attempted(edge_scores, x, evaluator), "feature": attempted(feature_scores, x, evaluator, called)},
        num_features=int(evaluator.model.source.x.size(1)),
    )


def sketch_of_model(x: Xplanation, evaluator: Evaluator, names: Names) -> Sketch:
    """The sketch of an explanation of the evaluator's model."""
    return sketch_of(x, ends_of_edges(x, evaluator.model), names, TOP_EDGES)


def edge_scores(x: Xplanation, evaluator: Evaluator) -> list[Any]:
    """The strongest edges: [source, destination, score]."""
    ends, scores = edge_ends(x, evaluator.model), x.need("edge_score").double().tolist()
    return strongest([[*pair, score] for pair, score in zip(ends, scores, strict=True)], evaluator)


def feature_scores(x: Xplanation, evaluator: Evaluator, names: Names) -> list[Any]:
    """The strongest features of the target and of its neighbours: [name, score]."""
    return strongest([list(bar) for bar in feature_bars(x, names, evaluator.settings.pooling)], evaluator)


def strongest(scored: list[list[Any]], evaluator: Evaluator) -> list[Any]:
    """As many as the setting ``keep`` says, the strongest first; a score of 0 says nothing."""
    keep = evaluator.settings.keep
    order = sorted((entry for entry in scored if entry[-1]), key=lambda entry: -abs(entry[-1]))
    return order if keep == "all" else order[: int(keep)]


def attempted(make: Callable[..., T], *args: Any, **options: Any) -> T | None:
    """What can be made; None where graphgauge says that it cannot (no scores, NaN ...)."""
    try:
        return make(*args, **options)
    except GraphgaugeError:
        return None
