"""Measure the targets of a model in use with cheap settings.

The cheap settings are binomial stability, early stopping and no twins. A baseline and its runs
must be alike in everything but the date: the same settings (a noisier number has another
distribution, so the baseline is measured with the cheap settings too), the same explainer, and
targets drawn in the same way. Targets are drawn uniformly, because strata would hide that one
class has become more frequent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

import graphgauge
from graphgauge.core import (
    BadSetting,
    JsonObject,
    Target,
    Xplanation,
    canonical_target,
    derive_seed,
    make_generator,
)
from graphgauge.evaluation import Evaluator, Results, Settings
from graphgauge.explainers import BaseExplainer, OtherTaskExplainer
from graphgauge.models import BaseModel, digest_of_data, digest_of_network
from graphgauge.monitor.labels import prediction_errors, target_labels
from graphgauge.monitor.run_sample import Sample, sample_from_results
from graphgauge.monitor.two_sample_tests import FloatArray

#: columns of what a network says
_VALUE_COLUMN, _PROBABILITY_COLUMN = ("prediction", "probability of class")


@dataclass(frozen=True)
class MeasurementFacts:
    """What was measured: explainer, settings, network, data and the names of columns."""

    explainer: str
    params: JsonObject | None  #: None: not known
    settings: str  #: digest
    version: str
    model: str = ""  #: digest of the network; '': not known
    data: str = ""  #: digest of the graph
    features: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether more than the metrics is known."""
        return bool(self.model)

    @staticmethod
    def from_record(record: JsonObject) -> "MeasurementFacts":
        """Build it from plain data."""
        return MeasurementFacts(
            **{**record, "features": tuple(record["features"]), "columns": tuple(record["columns"])}
        )


def _cheap_settings(settings: Settings) -> Settings:
    """Return the same settings in their cheap form.

    >>> found = _cheap_settings(Settings(twins=True, stability="pairs"))
    >>> found.stability, found.twins, found.early_stop, found.trials
    ('binomial', False, 'paper', (30, 100))
    """
    stop = settings.early_stop if settings.early_stop != "none" else "paper"
    least, most = settings.trials
    trials = (min(30, most), most) if least == most else (least, most)
    return replace(
        settings,
        stability="binomial",
        twins=False,
        extras=False,
        early_stop=stop,
        trials=trials,
        headline="paper",
    )


def _cheap_evaluator(evaluator: Evaluator) -> Evaluator:
    """Return an evaluator of the same model with cheap settings."""
    own = _cheap_settings(evaluator.settings).to_dict()
    same = {
        name: getattr(evaluator, name) for name in ("seed", "task", "name", "metrics", "seed_scope")
    }
    return Evaluator(evaluator.model, **same, **own)


def sample_recent(model: BaseModel, number: int, among: Any = None, seed: int = 0) -> list[Target]:
    """Draw targets uniformly without replacement, or take all if there are fewer.

    Args:
        model: The wrapped model.
        number: How many targets to draw.
        among: Targets to draw from (default: the whole population).
        seed: Random seed.
    """
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise BadSetting(
            f"number must be a number of targets, 1 or more, but {number!r} was given."
        )
    pool = (model.population() if among is None else model.parse_targets(among).to_user()).unique(
        dim=0
    )
    chosen = (
        torch.randperm(len(pool), generator=make_generator(derive_seed(seed, "recent")))[:number]
        .sort()
        .values
    )
    return [canonical_target(target) for target in pool[chosen.to(pool.device)].tolist()]


def score_targets(
    evaluator: Evaluator, explainer: BaseExplainer, targets: Sequence[Target], top: int = 10
) -> tuple[Sample, MeasurementFacts]:
    """Explain and measure targets with cheap settings.

    Args:
        evaluator: Evaluator of the model in use. Model, seed and names are taken from it; its
            settings are replaced by their cheap form.
        explainer: The explainer, which must give scores.
        targets: The targets to measure.
        top: How many features of an explanation count for the ranking, at most a third of all.

    Returns:
        The sample, and how it was measured.

    Raises:
        BadSetting: The explainer gives no scores.
    """
    return score_targets_with_results(evaluator, explainer, targets, top)[:2]


def score_targets_with_results(
    evaluator: Evaluator, explainer: BaseExplainer, targets: Sequence[Target], top: int = 10
) -> tuple[Sample, MeasurementFacts, Results]:
    """Explain and measure targets with cheap settings, and return the results too."""
    if not isinstance(explainer, BaseExplainer) or isinstance(explainer, OtherTaskExplainer):
        raise BadSetting(
            "monitoring needs an explainer that gives scores, such as gg.InputXGradient(), but "
            f"{explainer!r} was given."
        )
    own = _cheap_evaluator(evaluator)
    results = own.compare({explainer.name: explainer}, targets)
    xs = explainer.explain(own.model, targets, seed=own.seed)
    found = sample_from_results(results, explainer.name)
    labels = target_labels(own.model, [x.target for x in xs])
    sample = replace(
        found,
        top=_top_features(xs, own.settings, top),
        data=_target_data(own.model, xs),
        gaps=_feature_gaps(own.model, xs),
        labels=labels,
        errors=prediction_errors(own.model, [x.target for x in xs], labels),
    )
    return sample, _facts_from_evaluator(own, explainer), results


def facts_from_results(results: Results, explainer: str) -> MeasurementFacts:
    """Say what stored results measured.

    Raises:
        BadSetting: The results have settings whose numbers are more or less noisy than a run's.
    """
    own, usual = results.settings, _cheap_settings(results.settings)
    differing = [
        name
        for name in ("stability", "early_stop", "trials")
        if getattr(own, name) != getattr(usual, name)
    ]
    if differing:
        told = ", ".join(
            f"{name}={getattr(own, name)!r}, not {getattr(usual, name)!r}" for name in differing
        )
        raise BadSetting(
            f"these results cannot be a baseline: they were measured with {told}, so their values "
            "are more or less noisy than those of a run. Measure a baseline with the cheap "
            "settings: Monitor.take_baseline, or `graphgauge monitor baseline PROJECT`."
        )
    version = next((row.version for row in results.rows), graphgauge.__version__)
    return MeasurementFacts(explainer.partition("(")[0], None, usual.digest, version)


def _facts_from_evaluator(evaluator: Evaluator, explainer: BaseExplainer) -> MeasurementFacts:
    """Say what an evaluator measures with an explainer."""
    model = evaluator.model
    width = model.source.x.size(1)
    names = tuple(model.feature_names or (f"feature {k}" for k in range(width)))
    return MeasurementFacts(
        explainer=explainer.name,
        params={
            name: value if _is_json_scalar(value) else repr(value)
            for name, value in explainer.params.items()
        },
        settings=evaluator.settings.digest,
        model=digest_of_network(model),
        data=digest_of_data(model),
        version=graphgauge.__version__,
        features=names,
        columns=(
            *names,
            "nodes within reach",
            "edges within reach",
            *_prediction_names(model),
            *_edge_column_names(model),
        ),
    )


def _is_json_scalar(value: Any) -> bool:
    """Whether JSON can hold a parameter as it is."""
    return value is None or isinstance(value, (bool, int, float, str))


# --- what an explanation and a target look like ---------------------------------------------------


def _top_features(
    xs: Sequence[Xplanation], settings: Settings, top: int
) -> tuple[tuple[int, ...], ...] | None:
    """Return the strongest features of each explanation, at most ``top``.

    The strength of a feature is its highest score in the target-centric view; scores of 0 or
    less do not count. Returns None if an explainer gives no feature scores.
    """
    if any(x.feature_score is None for x in xs):
        return None
    return tuple(
        _strongest_features(
            x, settings, leading_feature_count(top, x.need("feature_score").size(1))
        )
        for x in xs
    )


def leading_feature_count(top: int, features: int) -> int:
    """Return how many features of an explanation lead: ``top``, but at most a third of all.

    >>> leading_feature_count(10, 1433), leading_feature_count(10, 8), leading_feature_count(10, 2)
    (10, 2, 1)
    """
    return min(top, max(1, features // 3))


def _strongest_features(x: Xplanation, settings: Settings, top: int) -> tuple[int, ...]:
    """Return the numbers of the strongest features of one explanation."""
    rows = torch.cat(list(x.target_view(settings.pooling)))
    score = (rows.abs() if settings.order == "magnitude" else rows).amax(0).double().nan_to_num(0.0)
    order = score.argsort(descending=True, stable=True)[:top]
    return tuple(order[score[order] > 0].tolist())


def _target_data(model: BaseModel, xs: Sequence[Xplanation]) -> FloatArray:
    """Return features, computation-graph sizes, predictions and edges of each target.  (T, D)

    Features are means over the target's nodes: one node, the two ends of a link, or all of a graph.
    """
    features = torch.stack([_target_feature_rows(model, x).double().mean(0) for x in xs]).cpu()
    sizes = torch.tensor([[len(x.nodes), len(x.edges)] for x in xs], dtype=torch.float64)
    predicted = model.pred_continuous([x.target for x in xs]).double().reshape(len(xs), -1).cpu()
    edges = torch.stack([_edge_means(model, x) for x in xs]).cpu()
    return np.nan_to_num(torch.cat([features, sizes, predicted, edges], dim=1).numpy())


def _target_feature_rows(model: BaseModel, x: Xplanation) -> torch.Tensor:
    """Return the features of the target's nodes: one row, two for a link, all for a graph."""
    if x.level != "graph":
        return model.source.x[list(x.target_nodes)]
    start, end = model.source.pointer_lists[0][x.target_ids[0] : x.target_ids[0] + 2]
    return model.source.x[start:end]


def _edge_means(model: BaseModel, x: Xplanation) -> torch.Tensor:
    """Return the mean of every edge attribute over the edges at the target; 0 without edges.  (A,)

    For a graph, the mean is over all its edges. Edges further away also belong to other targets.
    With them, rows would depend on each other, and the test on rows would not be valid.
    """
    own = _target_edges(model, x)
    parts = [
        _attribute_columns(value)[own].double().sum(0) / max(1, len(own))
        for value in model.source.edge_attrs.values()
    ]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)


def _feature_gaps(model: BaseModel, xs: Sequence[Xplanation]) -> FloatArray:
    """Return the mean distance between features of neighbours, over the target's edges.  (T, F)

    For a graph, the mean is over all its edges. It is 0 without edges.
    """
    rows = []
    for x in xs:
        start, end = model.source.edge_index[:, _target_edges(model, x)]
        start, end = start[start != end], end[start != end]
        apart = (model.source.x[start].double() - model.source.x[end].double()).abs().sum(0)
        rows.append(apart / max(1, len(start)))
    return np.nan_to_num(torch.stack(rows).cpu().numpy())


def _target_edges(model: BaseModel, x: Xplanation) -> torch.Tensor:
    """Return the edges at the target that carry messages to it; for a graph, all edges."""
    if x.level == "graph":  # whose edges count from 0 in each graph
        return x.edges + model.source.pointer_lists[1][x.target_ids[0]]
    ends = model.source.edge_index[:, x.edges]
    return x.edges[torch.isin(ends, ends.new_tensor(x.target_nodes)).any(0)]


def _attribute_columns(value: torch.Tensor) -> torch.Tensor:
    """Return an attribute as a matrix.  (E, ...) -> (E, A)"""
    return value[:, None] if value.dim() == 1 else value.flatten(1)


def _edge_column_names(model: BaseModel) -> list[str]:
    """Name the columns of edge attributes by ``data.edge_attr_names``, else by their numbers."""
    data = model.data[0] if model.level == "graph" else model.data
    found = []
    for name, value in model.source.edge_attrs.items():
        width = _attribute_columns(value).size(1)
        given = getattr(data, f"{name}_names", None)
        own = (
            list(given)
            if given is not None and len(given) == width
            else _numbered_names(name, width)
        )
        found += [f"{part} (mean over its edges)" for part in own]
    return found


def _numbered_names(name: str, width: int) -> list[str]:
    """Name the columns of an attribute by their numbers.

    >>> _numbered_names("edge_weight", 1), _numbered_names("edge_attr", 2)
    (['edge_weight'], ['edge_attr 0', 'edge_attr 1'])
    """
    return [name] if width == 1 else [f"{name} {k}" for k in range(width)]


def is_prediction(column: str) -> bool:
    """Whether the name of a data column says that it holds a prediction."""
    return column == _VALUE_COLUMN or column.startswith(_PROBABILITY_COLUMN)


def _prediction_names(model: BaseModel) -> tuple[str, ...]:
    """Name the columns of predictions."""
    if model.task == "regression":
        return (_VALUE_COLUMN,)
    return tuple(
        f"{_PROBABILITY_COLUMN} {c}" for c in range(model.pred_continuous(model.probes[:1]).size(1))
    )
