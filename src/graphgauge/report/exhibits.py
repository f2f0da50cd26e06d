"""What a report can show of an explanation without its network and data.

A run saves the worst and the best explanations of each explainer in this form. A report of a saved
run then has the same sentences and pictures, in any language and for any audience, as one from
memory. Names are those of the time when the run was saved.

facts, redacted    what texts are made of, with and without neighbours; without verdicts, because
                   thresholds belong to the reader
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
    """One explanation as a report shows it; None is what could not be made (no scores, NaN)."""

    facts: Mapping[str, Any] | None
    redacted: Mapping[str, Any] | None
    sketch: Sketch | None
    bars: Bars | None
    curves: tuple[Curve, ...]
    scores: Mapping[str, Any]
    num_features: int

    def record(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        record: dict[str, Any] = finite(asdict(self))
        return record

    @staticmethod
    def read(record: Mapping[str, Any]) -> "Exhibit":
        """Read what `record` returned, also after JSON."""
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
    """Return a target as it was before JSON: lists become tuples."""
    return tuple(target) if isinstance(target, list) else target


def exhibit_of(
    evaluator: Evaluator, x: Xplanation, rows: Sequence[Row], stories: Stories, names: Names
) -> Exhibit:
    """Collect what can be shown of an explanation.

    Args:
        evaluator: The evaluator that measured ``x``.
        x: The explanation.
        rows: Its rows in the results.
        stories: The curves behind these rows.
        names: Complete names, from `all_names`.
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
    """Return the facts of an explanation, for names that are complete already."""
    evaluator.check_explanations([x])
    ranking = Ranking(
        order=evaluator.settings.order, signed=is_signed(x), pooling=evaluator.settings.pooling
    )
    return facts_of(x, evaluator.model, names, ranking)


def sketch_of_model(x: Xplanation, evaluator: Evaluator, names: Names) -> Sketch:
    """Return the picture of an explanation of the evaluator's model."""
    return sketch_of(x, ends_of_edges(x, evaluator.model), names, TOP_EDGES)


def edge_scores(x: Xplanation, evaluator: Evaluator) -> list[Any]:
    """Return the strongest edges as [source, destination, score]."""
    ends, scores = edge_ends(x, evaluator.model), x.need("edge_score").double().cpu()
    chosen = strongest(scores, evaluator)
    return [
        [*pair, score]
        for pair, score in zip(ends[:, chosen].t().tolist(), scores[chosen].tolist(), strict=True)
    ]


def feature_scores(bars: Sequence[Bar], evaluator: Evaluator) -> list[Any]:
    """Return the strongest features of the target and its neighbours as [name, score]."""
    return [
        list(bars[k])
        for k in strongest(
            torch.tensor([score for _, score in bars], dtype=torch.float64), evaluator
        )
    ]


def strongest(scores: Tensor, evaluator: Evaluator) -> list[int]:
    """Return positions of the strongest scores, as many as the setting ``keep`` says.

    A score of 0 is left out.
    """
    nonzero, strength = scores.nonzero()[:, 0], scores.abs()
    limit = len(nonzero) if evaluator.settings.keep == "all" else int(evaluator.settings.keep)
    if strength.isnan().any():  # NaN has no place in an order: as Python's sort leaves it
        return sorted(nonzero.tolist(), key=(-strength).tolist().__getitem__)[:limit]
    return nonzero[largest_first(strength[nonzero], limit)].tolist()


def attempted(make: Callable[..., T], *args: Any, **options: Any) -> T | None:
    """Call ``make``; return None if graphgauge raises (no scores, NaN)."""
    try:
        return make(*args, **options)
    except GraphgaugeError:
        return None
