"""The facts of one explanation as plain data: all that a text about it may say.

Every number is rounded once, here: scores, values and metrics to three significant digits,
probabilities to a tenth of a percent (a probability below 1 is never rounded to 1). A text shows
the numbers as they stand, so each number in a text can be found in the facts.

Redacted facts hold no name and no id of another node, so no template can reveal one. They hold the
number of neighbours and connections and the user's groups; of a link they do not even hold the
ends.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from graphgauge.core import JsonObject, Xplanation
from graphgauge.evaluation import check_same_graph, rebuild_explainer, score_status
from graphgauge.models import BaseModel
from graphgauge.narrative.names import Names, tidy_text
from graphgauge.narrative.quality import QualityVerdicts, quality_facts
from graphgauge.narrative.selection import (
    FeatureColumn,
    ScoreSelection,
    fold_feature_groups,
    ranked_feature_rows,
)

_STATUS_OK, _STATUS_ZERO = "ok", "zero"
#: plain data that JSON can hold: numbers, texts, lists and dictionaries of them
Facts = JsonObject
_METRICS_IN_TEXT = ("stability", "stability_corrected", "pertinence", "pertinence_tied")


def build_facts(
    x: Xplanation,
    model: BaseModel,
    names: Names,
    ranking: ScoreSelection,
    *,
    redact: bool = False,
    quality: QualityVerdicts = None,
    at_validation: bool = False,
) -> Facts:
    """Return what can be said about ``x``, as data that JSON can hold.

    Args:
        x: The explanation.
        model: The model that was explained.
        names: What features, nodes and classes are called.
        ranking: How many features and edges are named, and in which order.
        redact: Whether to leave out all other nodes.
        quality: Which quality thresholds were met.
        at_validation: Whether ``quality`` is that of the method, not that of ``x``.
    """
    _check_explanation_fits(x, model, names)
    facts = {
        "level": x.level,
        "task": model.task,
        "explainer": tidy_text(x.explainer),
        "signed": ranking.signed,
        "order": ranking.order,
        "top_k": int(ranking.top_k),
        "redacted": False,
        "target": _target_facts(x, names),
        "prediction": _prediction_facts(x, model, names),
        "chosen": _explained_class_facts(x, model, names),
        "features": _feature_facts(x, names, ranking),
        "edges": _edge_facts(x, edge_ends(x, model), names, ranking),
        "change": {side: _change_facts(x, side) for side in ("feature", "edge")},
        "metrics": _metric_facts(x),
        "quality": quality_facts(quality, x.target, at_validation),
        "nouns": {kind: list(getattr(names, kind)) for kind in ("node", "link", "graph")},
        "decision": names.decision,
        "role": names.role,
        "not_used": list(names.not_used),
    }
    return redact_facts(facts) if redact else facts


def redact_facts(facts: Facts) -> Facts:
    """Return the facts without single edges and without the ends of a link.

    They may belong to other people.
    """
    target = {"ids": [], "names": []} if facts["level"] == "link" else facts["target"]
    return {
        **facts,
        "redacted": True,
        "target": target,
        "edges": {**facts["edges"], "top": [], "opposing": []},
    }


def _round_significant(value: float, digits: int = 3) -> float:
    """Round to a number of significant digits.

    >>> _round_significant(0.0123456), _round_significant(1234.5), _round_significant(0.0)
    (0.0123, 1230.0, 0.0)
    """
    return float(f"{value:.{digits}g}")


def _round_predicted_value(value: float) -> float:
    """Round to three significant digits, but never coarser than to whole numbers."""
    return _round_significant(value) if abs(value) < 1000 else float(round(value))


def _round_probability(probability: float) -> float:
    """Round to a tenth of a percent; only certainty becomes 0 or 1.

    >>> _round_probability(0.87349), _round_probability(0.99999)
    (0.873, 0.999)
    >>> _round_probability(1.0), _round_probability(0.0001)
    (1.0, 0.001)
    """
    if probability in (0.0, 1.0):
        return probability
    return min(max(round(probability, 3), 0.001), 0.999)


def has_signed_scores(x: Xplanation) -> bool:
    """Whether the scores carry a direction; False for an unknown explainer."""
    explainer = rebuild_explainer(x)
    return explainer is not None and bool(explainer.signed)


def _check_explanation_fits(x: Xplanation, model: BaseModel, names: Names) -> None:
    """Raise if ``x`` explains another graph, or if names refer to things that the graph lacks."""
    first, last = _graph_span(x, model, "node_ptr")
    check_same_graph("nodes", x.num_nodes, last - first, x)
    first, last = _graph_span(x, model, "edge_ptr")
    check_same_graph("edges", x.num_edges, last - first, x)
    if x.feature_score is not None:
        check_same_graph("features", x.feature_score.size(1), model.source.x.size(1), x)
    names.check_ids_fit(_nameable_sizes(model))


def _nameable_sizes(model: BaseModel) -> dict[str, int]:
    """How many features, nodes and groups can have a name; graphs of a list differ in nodes."""
    width, nodes = model.source.x.size(1), model.source.num_nodes
    sizes = {"features": width, "feature_groups": width}
    return sizes if model.level == "graph" else {**sizes, "nodes": nodes, "groups": nodes}


def _prediction_class_sizes(prediction: Tensor) -> dict[str, int]:
    """How many classes can have a name, by a prediction of a classification network (C,)."""
    return {"classes": prediction.numel()}


def _model_class_sizes(model: BaseModel) -> dict[str, int]:
    """How many classes or labels can have a name."""
    if model.task == "regression":
        return {}
    if model.labels is not None:
        return {"classes": model.labels.count}
    return _prediction_class_sizes(model.pred_continuous(model.population()[:1])[0])


def check_names_fit_model(names: Names, model: BaseModel) -> dict[str, int]:
    """Return how many things of each kind can have a name; raise if names refer to others.

    Raises:
        BadSetting: Some id in ``names`` does not exist in the model's data.
    """
    sizes = {**_nameable_sizes(model), **_model_class_sizes(model)}
    names.check_ids_fit(sizes)
    return sizes


def _graph_span(x: Xplanation, model: BaseModel, pointer: str) -> tuple[int, int]:
    """Return where the target's graph begins and ends among all nodes or edges."""
    bounds: Tensor = getattr(model.source, pointer)
    number = x.target_ids[0] if x.level == "graph" else 0
    return int(bounds[number]), int(bounds[number + 1])


def edge_ends(x: Xplanation, model: BaseModel) -> Tensor:
    """Return source and destination of each edge of the explanation, in main memory.

    They are ids in the target's graph.  (2, E_rel)
    """
    first_node, first_edge = (
        _graph_span(x, model, "node_ptr")[0],
        _graph_span(x, model, "edge_ptr")[0],
    )
    return (
        model.source.edge_index[:, x.edges.to(model.source.device) + first_edge] - first_node
    ).cpu()


def _target_facts(x: Xplanation, names: Names) -> Facts:
    """Ids and names of the target; of both ends of a link."""
    if x.level == "graph":
        return {"ids": list(x.target_ids), "names": [names.name_of("graphs", x.target_ids[0])]}
    return {
        "ids": list(x.target_nodes),
        "names": [names.name_of("nodes", number) for number in x.target_nodes],
    }


def _prediction_facts(x: Xplanation, model: BaseModel, names: Names) -> Facts:
    """The class with its probability, or the value; status 'nan_prediction' if it is NaN."""
    numbers = _predicted_numbers(x, model)
    if not len(numbers):
        return {"status": "nan_prediction"}
    if model.task == "regression":
        return {
            "status": _STATUS_OK,
            "value": _round_predicted_value(float(numbers[0])),
            "unit": names.unit,
        }
    return {"status": _STATUS_OK, **_class_facts(x, numbers, int(numbers.argmax()), names)}


def _explained_class_facts(x: Xplanation, model: BaseModel, names: Names) -> Facts | None:
    """The explained class with its probability; None where it is the predicted one."""
    numbers = _predicted_numbers(x, model)
    if x.label is None or not len(numbers) or x.label == int(numbers.argmax()):
        return None
    return _class_facts(x, numbers, x.label, names)


def _predicted_numbers(x: Xplanation, model: BaseModel) -> Tensor:
    """The predicted probabilities (C,) or value (1,); (0,) where the prediction is NaN."""
    prediction = x.prediction if x.prediction is not None else model.pred_continuous([x.target])[0]
    numbers = prediction.double().flatten()
    return numbers if bool(numbers.isfinite().all()) else numbers[:0]


def _class_facts(x: Xplanation, numbers: Tensor, number: int, names: Names) -> Facts:
    """A class with its name and probability.

    For a network with several labels the class says whether the target has its label; the name is
    that of the label.
    """
    label, entry = (
        x.target_label,
        {"class": number, "probability": _round_probability(float(numbers[number]))},
    )
    if label is not None:
        return {**entry, "label": label, "name": names.name_of("classes", label)}
    names.check_ids_fit(_prediction_class_sizes(numbers))
    return {**entry, "name": names.name_of("classes", number)}


def _feature_facts(x: Xplanation, names: Names, ranking: ScoreSelection) -> Facts:
    """The features that are named, and how many had no part in the prediction."""
    status = score_status(x.feature_score, len(x.nodes)) or _STATUS_OK
    if status != _STATUS_OK:
        return {
            "status": status,
            "top": [],
            "opposing": [],
            "total": 0,
            "idle": 0,
            "idle_names": [],
        }
    single, columns = fold_feature_groups(x, names)
    rows, owners = ranked_feature_rows(single, ranking.pooling)
    scores = rows.double().flatten().cpu()
    parts = [
        [
            _feature_entry(
                columns[k % len(columns)], owners[k // len(columns)], float(scores[k]), names
            )
            for k in part
        ]
        for part in ranking.split(scores)
    ]
    is_used = (single.need("feature_score") != 0).any(0).tolist()
    idle = [
        column for column, used in zip(columns, is_used, strict=True) if not used and any(is_used)
    ]
    idle_names = [column.name for column in idle if column.name]
    return {
        "status": _STATUS_OK if any(is_used) else _STATUS_ZERO,
        "top": parts[0],
        "opposing": parts[1],
        "total": len(columns),
        "idle": len(idle),
        "idle_names": idle_names if len(idle_names) == len(idle) <= ranking.top_k else [],
    }


def _feature_entry(column: FeatureColumn, owner: str, score: float, names: Names) -> Facts:
    """One feature that is named."""
    remark = names.remarks.get(column.name, "")
    return {
        "index": column.index,
        "name": column.name,
        "of": owner,
        "score": _round_significant(score),
        "remark": remark,
    }


def _edge_facts(x: Xplanation, ends: Tensor, names: Names, ranking: ScoreSelection) -> Facts:
    """The edges that are named, the groups they lead to, and counts of edges with a score."""
    status = score_status(x.edge_score, len(x.edges)) or _STATUS_OK
    scores = (
        x.need("edge_score").double().cpu()
        if status == _STATUS_OK
        else torch.zeros(0, dtype=torch.float64)
    )
    used = scores.nonzero()[:, 0]
    others = _neighbour_mask(x, ends[:, used])
    top, opposing = (
        [_edge_entry(x, ends[:, k].tolist(), k, float(scores[k]), names) for k in part]
        for part in ranking.split(scores)
    )
    return {
        "status": status if len(used) or status != _STATUS_OK else _STATUS_ZERO,
        "top": top,
        "opposing": opposing,
        "total": len(used),
        "positive": int((scores > 0).sum()),
        "negative": int((scores < 0).sum()),
        "neighbours": int(others.sum()),
        "groups": _group_facts(names, others, ends[:, used], scores[used], ranking),
    }


def _neighbour_mask(x: Xplanation, ends: Tensor) -> Tensor:
    """Which nodes other than the target are ends of these edges.  (2, E) -> (N,) bool"""
    mask = torch.zeros(x.num_nodes, dtype=torch.bool)
    mask[ends.flatten()] = True
    mask[list(x.target_nodes)] = False
    return mask


def _edge_entry(x: Xplanation, ends: Sequence[int], k: int, score: float, names: Names) -> Facts:
    """One edge that is named; ``other`` lists which of its ends are not the target."""
    source, destination = ({"id": node, "name": names.name_of("nodes", node)} for node in ends)
    return {
        "source": source,
        "destination": destination,
        "other": [
            way
            for way, node in zip(("source", "destination"), ends, strict=True)
            if node not in x.target_nodes
        ],
        "relation": names.relation_of(int(x.edges[k])),
        "score": _round_significant(score),
    }


def _group_facts(
    names: Names, others: Tensor, ends: Tensor, scores: Tensor, ranking: ScoreSelection
) -> list[Facts]:
    """Groups of nodes that these edges lead to, the strongest first.

    Each has the number of its members, the number of edges and the sum of their scores. An edge
    between members of two groups counts for both.  others (N,) bool, ends (2, E), scores (E,)
    """
    groups = []
    for (one, other), node_ids in names.groups.items():
        members = torch.zeros_like(others)
        members[[number for number in node_ids if number < len(others)]] = True
        members &= others
        group_scores = scores[members[ends].any(0)].tolist()
        if group_scores:
            count = int(members.sum())
            groups.append(
                {
                    "one": one,
                    "other": other,
                    "count": count,
                    "edges": len(group_scores),
                    "score": _round_significant(sum(group_scores)),
                }
            )
    return sorted(groups, key=lambda group: -abs(group["score"]))[: ranking.top_k]


def _change_facts(x: Xplanation, side: str) -> Facts | None:
    """The Effective Compactness of a side; None if it was not measured.

    It says how many edits were made and whether the prediction changed. Of several draws of the map
    between neighbours it gives the mean, the least and the most.
    """
    value: Any = x.metrics.get(f"{side}_ec")
    record = x.metrics.get("evaluation")
    cell = (record.get("cells", {}) if isinstance(record, dict) else {}).get(f"{side}_ec", {})
    if not _is_finite_number(value) or cell.get("flipped") is None:
        return None
    draws = cell.get("draws") or [value]
    spread = {"least": int(min(draws)), "most": int(max(draws)), "draws": len(draws)}
    return {"count": max(1, round(value)), "flipped": bool(cell["flipped"]), **spread}


def _metric_facts(x: Xplanation) -> dict[str, float]:
    """The measured quality of the explanation, by metric."""
    wanted = [f"{side}_{metric}" for metric in _METRICS_IN_TEXT for side in ("feature", "edge")]
    return {
        name: _round_significant(float(x.metrics[name]))
        for name in wanted
        if _is_finite_number(x.metrics.get(name))
    }


def _is_finite_number(value: object) -> bool:
    """Whether the value is a finite number."""
    return (
        isinstance(value, (int, float, torch.Tensor))
        and not isinstance(value, bool)
        and math.isfinite(float(value))
    )
