"""What can be shown of an explanation without its network and its data: the facts of its text, its
pictures, its scores.

A run keeps the exhibits of the worst and the best explanations of each explainer, so that a report
from the disk has the same sentences and pictures, in any language and for any audience, as one from
memory. Names are those of the time it was kept.

facts, redacted    what texts are made of, with and without the neighbours; not judged: thresholds belong to the reader
sketch, bars       the edges and the features that are drawn
curves             the deletion curve of each side
scores             the strongest scores of each side, as many as the setting ``keep`` says
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from graphgauge.core.errors import GraphgaugeError
from graphgauge.core.ranks import largest_first
from graphgauge.core.xplanation import Xplanation
from graphgauge.evaluation import Evaluator, Row, Story
from graphgauge.narrative import Names
from graphgauge.narrative.facts import edge_ends, facts_of, is_signed, redacted
from graphgauge.narrative.ranking import Ranking
from graphgauge.report.arrows import ends_of_edges
from graphgauge.report.bars import Bar, Bars, feature_bars, shown_bars
from graphgauge.report.curves import Curve, curve_of
from graphgauge.report.sketch import Sketch, sketch_of
from graphgauge.report.subgraph import check_names
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
                "bars": None
                if bars is None
                else Bars(**{**bars, "drawn": [tuple(bar) for bar in bars["drawn"]]}),
                "curves": tuple(
                    Curve(**curve | {name: target_of(curve[name]) for name in PAIRS})
                    for curve in record["curves"]
                ),
            }
        )


def target_of(target: Any) -> Any:
    """A target as it was before JSON."""
    return tuple(target) if isinstance(target, list) else target


def exhibit_of(
    evaluator: Evaluator, x: Xplanation, rows: Sequence[Row], stories: Stories, names: Names
) -> Exhibit:
    """What can be shown of ``x``, which has these rows in the results and these stories behind
    them; ``names``: `all_names`.
    """
    evaluator.fill(x, {row.metric: row.cell for row in rows})
    check_names(x, names)
    facts, bars = (
        attempted(told_facts, x, evaluator, names),
        attempted(feature_bars, x, names, evaluator.settings.pooling),
    )
    return Exhibit(
        facts=facts,
        redacted=None if facts is None else redacted(facts),
        sketch=attempted(sketch_of_model, x, evaluator, names) if len(x.edges) else None,
        bars=None
        if bars is None
        else attempted(shown_bars, x, names, bars, "feature", TOP_FEATURES),
        curves=tuple(curve_of(story()) for story in stories),
        scores={
            "edge": attempted(edge_scores, x, evaluator),
            "feature": None if bars is None else feature_scores(bars, evaluator),
        },
        num_features=int(evaluator.model.source.x.size(1)),
    )


def told_facts(x: Xplanation, evaluator: Evaluator, names: Names) -> dict[str, Any]:
    """What `explanation_facts` says of an explanation of the evaluator's model, with names that
    have been read before.
    """
    evaluator.check_explanations([x])
    ranking = Ranking(
        order=evaluator.settings.order, signed=is_signed(x), pooling=evaluator.settings.pooling
    )
    return facts_of(x, evaluator.model, names, ranking)


def sketch_of_model(x: Xplanation, evaluator: Evaluator, names: Names) -> Sketch:
    """The sketch of an explanation of the evaluator's model."""
    return sketch_of(x, ends_of_edges(x, evaluator.model), names, TOP_EDGES)


def edge_scores(x: Xplanation, evaluator: Evaluator) -> list[Any]:
    """The strongest edges: [source, destination, score]."""
    ends, scores = edge_ends(x, evaluator.model), x.need("edge_score").double().cpu()
    chosen = strongest(scores, evaluator)
    return [
        [*pair, score]
        for pair, score in zip(ends[:, chosen].t().tolist(), scores[chosen].tolist(), strict=True)
    ]


def feature_scores(bars: Sequence[Bar], evaluator: Evaluator) -> list[Any]:
    """The strongest features of the target and of its neighbours: [name, score]."""
    return [
        list(bars[k])
        for k in strongest(
            torch.tensor([score for _, score in bars], dtype=torch.float64), evaluator
        )
    ]


def strongest(scores: Tensor, evaluator: Evaluator) -> list[int]:
    """Positions of as many as the setting ``keep`` says, the strongest first; a score of 0 says
    nothing.
    """
    told, strength = scores.nonzero()[:, 0], scores.abs()
    most = len(told) if evaluator.settings.keep == "all" else int(evaluator.settings.keep)
    if strength.isnan().any():  # NaN has no place in an order: as Python's sort leaves it
        return sorted(told.tolist(), key=(-strength).tolist().__getitem__)[:most]
    return told[largest_first(strength[told], most)].tolist()


def attempted(make: Callable[..., T], *args: Any, **options: Any) -> T | None:
    """What can be made; None where graphgauge says that it cannot (no scores, NaN ...)."""
    try:
        return make(*args, **options)
    except GraphgaugeError:
        return None
