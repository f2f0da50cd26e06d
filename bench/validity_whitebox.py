"""Eight explainers on networks whose weights are known (see `whitebox`): do the metrics order them
as the truth does?

Three truths, for each target:

    AP           average precision: do the candidates that speak for the prediction come first?
    AP, weight   the same, of candidates whose weight speaks for it, whether or not the data has
                 them (features)
    effect       rank correlation of the scores with the effect of each single edit: a removal, or a
                 substitution from the reference

An oracle that scores each candidate by its effect, and random scores, stand beside the eight; they
are not in the correlations.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from validity_judging import (
    EIGHT,
    PERTINENCES,
    evaluator,
    foreign,
    judged,
    markdown,
    others_replaced,
    spearman,
)
from whitebox import BOXES, WhiteBox

import graphgauge as gg
from graphgauge.core import POOLINGS, Xplanation, make_generator
from graphgauge.evaluation import (
    BaselinePrediction,
    edge_scores,
    feature_cases,
    feature_scores,
    priority_vector,
    reference_seed,
)
from graphgauge.metrics import average_precision
from graphgauge.models import BaseModel
from graphgauge.perturbation import CurveLines, find_references, predict_curves
from graphgauge.subgraphs import ComputationGraph

SEEDS = 3
OTHER_SIDE: dict[str, dict[str, Any]] = {
    "edge": {"feature_score": None},
    "feature": {"edge_score": None},
}
POOLED = {"edge": ("",), "feature": ("max", "sum")}
TRUTHS = {"edge": ("AP", "effect"), "feature": ("AP", "AP, weight", "effect")}


def substitution_effects(model: BaseModel, targets: list[int]) -> dict[int, Tensor]:
    """Return the effect of each candidate.  target -> (candidates,)

    It is the fall of the predicted class's probability when this candidate alone is substituted.
    """
    judge = evaluator(model)
    graphs = model.computation_graphs(targets)
    reading = BaselinePrediction.from_model(model, graphs.targets, judge.settings)
    references = find_references(model, targets, 1)
    side, _ = feature_cases(
        model,
        graphs,
        references,
        reading,
        judge.settings,
        partial(reference_seed, judge.seed_of, list(targets)),
    )
    count = side.candidates
    case = torch.arange(len(count)).repeat_interleave(count)
    candidate = torch.cat([torch.arange(int(number)) for number in count])
    none = torch.zeros_like(case)
    found = predict_curves(model, side.edits, CurveLines(case, candidate[:, None]), none, none + 1)
    fall = reading.first[side.target[case]] - reading.height(found.prediction, side.target[case])
    return {targets[int(side.target[q])]: fall[case == q] for q in range(len(count))}


def oracle(x: Xplanation, effect: Tensor, side: str) -> Xplanation:
    """An explanation that knows the effect of each single edit."""
    if side == "edge":
        return replace(x, explainer="oracle", edge_score=effect.to(x.need("edge_score")))
    own, others = effect.to(x.need("feature_score")).chunk(2)
    is_own = torch.isin(x.nodes, torch.tensor(x.target_nodes))
    return replace(x, explainer="oracle", feature_score=torch.where(is_own[:, None], own, others))


def candidate_scores(x: Xplanation, graph: ComputationGraph, side: str) -> Tensor:
    """One score for each edge, or for each candidate of the features.  (candidates,)"""
    if side == "edge":
        return edge_scores(x, graph)
    return priority_vector(feature_scores(x, graph), graph.target_rows, "max")


def as_pooled(x: Xplanation, pooling: str) -> Xplanation:
    """Feature scores with those of all other nodes pooled; the oracle's are already."""
    if not pooling or x.explainer == "oracle":
        return x
    return replace(x, feature_score=others_replaced(x, POOLINGS[pooling]))


def box_values(
    box: WhiteBox, targets: list[int], explainers: Sequence[Any], seed: int
) -> pd.DataFrame:
    """Truths and metrics of explainers and of the oracle, by pooling, explainer and target."""
    effect = box.effect if box.side == "edge" else substitution_effects(box.model, targets)
    graphs = dict(zip(targets, box.model.computation_graphs(targets), strict=True))
    xs = [x for explainer in explainers for x in explainer.explain(box.model, targets, seed=seed)]
    xs += [oracle(x, effect[int(x.target)], box.side) for x in xs[: len(targets)]]
    given, truths = [], {}
    for x in xs:
        for pooling in POOLED[box.side]:
            pooled = as_pooled(x, pooling)
            given.append(foreign(pooled, f"{pooling}|{x.explainer}", **OTHER_SIDE[box.side]))
            target = int(x.target)
            truths[given[-1].explainer, target] = truth_values(
                candidate_scores(pooled, graphs[target], box.side), box, target, effect[target]
            )
    values = judged(box.model, given).droplevel("occurrence")
    values = values.join(
        pd.DataFrame.from_dict(truths, orient="index").rename_axis(values.index.names)
    )
    values.columns = values.columns.str.removeprefix(f"{box.side}_")
    names = [(*str(name).split("|"), f"{seed}/{target}") for name, target in values.index]
    return values.set_index(
        pd.MultiIndex.from_tuples(names, names=["pooling", "explainer", "target"])
    ).sort_index()


def truth_values(score: Tensor, box: WhiteBox, target: int, effect: Tensor) -> dict[str, float]:
    """How well scores of candidates find the truth."""
    return {
        "AP": float(average_precision(score, box.truth[target])),
        "AP, weight": float(average_precision(score, box.weight_truth[target])),
        "effect": spearman(score.tolist(), effect.tolist()),
    }


def agreement(values: pd.DataFrame, truth: str, metric: str) -> tuple[float, float]:
    """Rank correlation of a metric with a truth over explainers: of means over targets, and its
    mean within targets.
    """
    table = values[[truth, metric]].dropna()
    table = table.assign(**{metric: -table[metric]}) if metric == "ec" else table
    means = table.groupby("explainer").mean()
    inside = [
        spearman(part[truth], part[metric])
        for _, part in table.groupby("target")
        if len(part) == len(means)
    ]
    return spearman(means[truth], means[metric]), float(pd.Series(inside).mean())


def box_rows(values: pd.DataFrame, side: str) -> list[dict[str, Any]]:
    """Means of each explainer, best AP first."""
    means = (
        values[[*TRUTHS[side], *PERTINENCES, "ec"]]
        .groupby("explainer")
        .mean()
        .sort_values("AP", ascending=False)
    )
    return [
        {"explainer": name, **{key: f"{value:.3f}" for key, value in row.items()}}
        for name, row in means.iterrows()
    ]


def agreement_rows(values: pd.DataFrame, kind: str, side: str) -> list[dict[str, Any]]:
    """Correlations of the eight, for each truth."""
    eight = values.drop(["oracle", "random"], level="explainer")
    rows = []
    for truth in TRUTHS[side]:
        found = {metric: agreement(eight, truth, metric) for metric in (*PERTINENCES, "ec")}
        cells = {metric: f"{means:.2f} ({inside:.2f})" for metric, (means, inside) in found.items()}
        rows.append({"network": kind, "truth": truth, **cells})
    return rows


def several_boxes(
    kind: str, count: int, explainers: Sequence[Any] = (*EIGHT, gg.RandomExplainer())
) -> tuple[str, pd.DataFrame]:
    """The side, and the values of ``count`` targets of each of three networks of a kind."""
    parts = []
    for seed in range(SEEDS):
        box = BOXES[kind](kind, seed)
        targets = [v for v in box.truth if 0 < int(box.truth[v].sum()) < len(box.truth[v])]
        chosen = torch.randperm(len(targets), generator=make_generator(seed))[:count].tolist()
        parts.append(box_values(box, [targets[k] for k in chosen], explainers, seed))
    return box.side, pd.concat(parts)


def whitebox(options: Any) -> Iterator[str]:
    """Five kinds of networks."""
    correlations = []
    for kind in BOXES:
        side, values = several_boxes(kind, max(2, options.targets // 8))
        for pooling in POOLED[side]:
            own = values.loc[pooling]
            told = f"{kind}, {pooling}" if pooling else kind
            targets = own.index.get_level_values("target").nunique()
            yield f"**{told}** ({side}s, {targets} targets)\n"
            yield markdown(box_rows(own, side))
            correlations += agreement_rows(own, told, side)
    yield (
        "**Rank correlation of metric and truth over the eight explainers: of means over targets "
        "(mean within a target)**\n"
    )
    yield markdown(correlations)
