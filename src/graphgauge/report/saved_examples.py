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

from graphgauge.core import GraphgaugeError, Target, Xplanation, largest_positions
from graphgauge.evaluation import Evaluator, Row, ScoreTrace
from graphgauge.narrative import (
    Names,
    ScoreSelection,
    build_facts,
    edge_ends,
    has_signed_scores,
    redact_facts,
)
from graphgauge.plots import (
    Bar,
    BarsData,
    CurveData,
    SubgraphData,
    build_curve_data,
    build_subgraph_data,
    check_names_fit,
    feature_bars,
    find_edge_ends,
    select_top_bars,
)
from graphgauge.report.exporters import replace_non_finite
from graphgauge.report.score_table import Record

_T = TypeVar("_T")
_TraceLoaders = Sequence[Callable[[], ScoreTrace]]
_TOP_EDGES, TOP_FEATURES = 15, 8
_PAIR_FIELDS = ("target", "reference")  #: of a curve; pairs where links are explained


@dataclass(frozen=True)
class SavedExample:
    """One explanation as a report shows it; None is what could not be made (no scores, NaN)."""

    facts: Record | None
    redacted: Record | None
    sketch: SubgraphData | None
    bars: BarsData | None
    curves: tuple[CurveData, ...]
    scores: Record
    num_features: int

    def record(self) -> Record:
        """Return plain data that JSON can hold."""
        record: Record = replace_non_finite(asdict(self))
        return record

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> "SavedExample":
        """Read what `record` returned, also after JSON."""
        sketch, bars = record["sketch"], record["bars"]
        return SavedExample(
            **{
                **record,
                "sketch": None if sketch is None else SubgraphData.from_record(sketch),
                "bars": None
                if bars is None
                else BarsData(**{**bars, "drawn": [tuple(bar) for bar in bars["drawn"]]}),
                "curves": tuple(
                    CurveData(
                        **curve | {name: _target_from_json(curve[name]) for name in _PAIR_FIELDS}
                    )
                    for curve in record["curves"]
                ),
            }
        )


def _target_from_json(target: int | list[int] | tuple[int, ...]) -> Target:
    """Return a target as it was before JSON: lists become tuples."""
    return tuple(target) if isinstance(target, list) else target


def build_saved_example(
    evaluator: Evaluator, x: Xplanation, rows: Sequence[Row], stories: _TraceLoaders, names: Names
) -> SavedExample:
    """Collect what can be shown of an explanation.

    Args:
        evaluator: The evaluator that measured ``x``.
        x: The explanation.
        rows: Its rows in the results.
        stories: The curves behind these rows.
        names: Complete names, with those of the data.
    """
    evaluator.write_metrics(x, {row.metric: row.cell for row in rows})
    check_names_fit(x, names)
    facts, bars = (
        _value_or_none(_example_facts, x, evaluator, names),
        _value_or_none(feature_bars, x, names, evaluator.settings.pooling),
    )
    return SavedExample(
        facts=facts,
        redacted=None if facts is None else redact_facts(facts),
        sketch=_value_or_none(_example_subgraph, x, evaluator, names) if len(x.edges) else None,
        bars=None
        if bars is None
        else _value_or_none(select_top_bars, x, names, bars, "feature", TOP_FEATURES),
        curves=tuple(build_curve_data(story()) for story in stories),
        scores={
            "edge": _value_or_none(_top_edge_scores, x, evaluator),
            "feature": None if bars is None else _top_feature_scores(bars, evaluator),
        },
        num_features=int(evaluator.model.source.x.size(1)),
    )


def _example_facts(x: Xplanation, evaluator: Evaluator, names: Names) -> Record:
    """Return the facts of an explanation, for names that are complete already."""
    evaluator.check_explanations([x])
    ranking = ScoreSelection(
        order=evaluator.settings.order,
        signed=has_signed_scores(x),
        pooling=evaluator.settings.pooling,
    )
    return build_facts(x, evaluator.model, names, ranking)


def _example_subgraph(x: Xplanation, evaluator: Evaluator, names: Names) -> SubgraphData:
    """Return the picture of an explanation of the evaluator's model."""
    return build_subgraph_data(x, find_edge_ends(x, evaluator.model), names, _TOP_EDGES)


def _top_edge_scores(x: Xplanation, evaluator: Evaluator) -> list[list[object]]:
    """Return the strongest edges as [source, destination, score]."""
    ends, scores = edge_ends(x, evaluator.model), x.need("edge_score").double().cpu()
    chosen = _strongest_positions(scores, evaluator)
    return [
        [*pair, score]
        for pair, score in zip(ends[:, chosen].t().tolist(), scores[chosen].tolist(), strict=True)
    ]


def _top_feature_scores(bars: Sequence[Bar], evaluator: Evaluator) -> list[list[object]]:
    """Return the strongest features of the target and its neighbours as [name, score]."""
    return [
        list(bars[k])
        for k in _strongest_positions(
            torch.tensor([score for _, score in bars], dtype=torch.float64), evaluator
        )
    ]


def _strongest_positions(scores: Tensor, evaluator: Evaluator) -> list[int]:
    """Return positions of the strongest scores, as many as the setting ``keep`` says.

    A score of 0 is left out.
    """
    nonzero, strength = scores.nonzero()[:, 0], scores.abs()
    limit = len(nonzero) if evaluator.settings.keep == "all" else int(evaluator.settings.keep)
    if strength.isnan().any():  # NaN has no place in an order: as Python's sort leaves it
        return sorted(nonzero.tolist(), key=(-strength).tolist().__getitem__)[:limit]
    return nonzero[largest_positions(strength[nonzero], limit)].tolist()


def _value_or_none(make: Callable[..., _T], *args: Any, **options: Any) -> _T | None:
    """Call ``make``; return None if graphgauge raises (no scores, NaN)."""
    try:
        return make(*args, **options)
    except GraphgaugeError:
        return None
