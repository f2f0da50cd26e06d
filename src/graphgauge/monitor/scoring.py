"""Measure targets of a model in use the cheap way: binomial stability, early stopping, no twins.

Baseline and runs must be alike in everything but the date: the same settings (so a baseline is
measured with the cheap forms too, for a number with more noise has another distribution), the same
explainer, and targets drawn the same way. Uniform draws are right here: strata would hide that one
class has become more frequent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

import graphgauge
from graphgauge.core.errors import BadSetting
from graphgauge.core.seeds import derive_seed, generator
from graphgauge.core.xplanation import Target, Xplanation, plain_target
from graphgauge.evaluation import Evaluator, Results, Settings
from graphgauge.explainers import BaseExplainer, OtherTaskExplainer
from graphgauge.models import BaseModel
from graphgauge.models.fingerprints import digest_of_data, digest_of_network
from graphgauge.monitor.labels import errors_of, labels_of
from graphgauge.monitor.samples import Sample, sample_of_results
from graphgauge.monitor.two_samples import Values

VALUE, PROBABILITY = "prediction", "probability of class"  #: columns of what a network says


@dataclass(frozen=True)
class Facts:
    """What was measured with what."""

    explainer: str
    params: dict[str, Any] | None  #: None: not known
    settings: str  #: digest
    version: str
    model: str = ""  #: digest of the network; '': not known
    data: str = ""  #: digest of the graph
    features: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether more than metrics is known."""
        return bool(self.model)

    @staticmethod
    def from_record(record: dict[str, Any]) -> "Facts":
        """From plain data."""
        return Facts(
            **{**record, "features": tuple(record["features"]), "columns": tuple(record["columns"])}
        )


def cheap(settings: Settings) -> Settings:
    """The same settings in their cheap forms.

    >>> found = cheap(Settings(twins=True, stability="pairs"))
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


def cheap_evaluator(evaluator: Evaluator) -> Evaluator:
    """An evaluator of the same model with cheap settings."""
    own = cheap(evaluator.settings).record()
    same = {
        name: getattr(evaluator, name) for name in ("seed", "task", "name", "metrics", "seed_scope")
    }
    return Evaluator(evaluator.model, **same, **own)


def sample_recent(model: BaseModel, number: int, among: Any = None, seed: int = 0) -> list[Target]:
    """So many targets, or all if there are fewer, each as likely as any other; ``among``: only
    these (default: the population).
    """
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise BadSetting(f"number must be a number of targets, 1 or more, but is {number!r}.")
    pool = (model.population() if among is None else model.read(among).to_user()).unique(dim=0)
    chosen = (
        torch.randperm(len(pool), generator=generator(derive_seed(seed, "recent")))[:number]
        .sort()
        .values
    )
    return [plain_target(target) for target in pool[chosen.to(pool.device)].tolist()]


def score(
    evaluator: Evaluator, explainer: BaseExplainer, targets: Sequence[Target], top: int = 10
) -> tuple[Sample, Facts]:
    """Explain and measure targets in the cheap forms."""
    return score_fully(evaluator, explainer, targets, top)[:2]


def score_fully(
    evaluator: Evaluator, explainer: BaseExplainer, targets: Sequence[Target], top: int = 10
) -> tuple[Sample, Facts, Results]:
    """The same, with the results behind the sample."""
    if not isinstance(explainer, BaseExplainer) or isinstance(explainer, OtherTaskExplainer):
        raise BadSetting(
            f"monitoring needs an explainer that gives scores, such as gg.InputXGradient(), but got {explainer!r}."
        )
    own = cheap_evaluator(evaluator)
    results = own.compare({explainer.name: explainer}, targets)
    xs = explainer.explain(own.model, targets, seed=own.seed)
    found = sample_of_results(results, explainer.name)
    labels = labels_of(own.model, [x.target for x in xs])
    sample = replace(
        found,
        top=top_features(xs, own.settings, top),
        data=data_of(own.model, xs),
        gaps=gaps_of(own.model, xs),
        labels=labels,
        errors=errors_of(own.model, [x.target for x in xs], labels),
    )
    return sample, facts_of(own, explainer), results


def facts_of_results(results: Results, explainer: str) -> Facts:
    """With what stored results were measured; refuses settings whose numbers have more or less
    noise than a run's.
    """
    own, usual = results.settings, cheap(results.settings)
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
            f"these results cannot be a baseline: they were measured with {told}, so their values scatter otherwise than a run's. "
            "Measure a baseline with the cheap settings: Monitor.take_baseline, or `graphgauge monitor baseline PROJECT`."
        )
    version = next((row.version for row in results.rows), graphgauge.__version__)
    return Facts(explainer.partition("(")[0], None, usual.digest, version)


def facts_of(evaluator: Evaluator, explainer: BaseExplainer) -> Facts:
    """With what targets are measured."""
    model = evaluator.model
    width = model.source.x.size(1)
    names = tuple(model.feature_names or (f"feature {k}" for k in range(width)))
    return Facts(
        explainer=explainer.name,
        params={
            name: value if is_plain(value) else repr(value)
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
            *prediction_names(model),
            *edge_names(model),
        ),
    )


def is_plain(value: Any) -> bool:
    """Whether a parameter can be stored as it is."""
    return value is None or isinstance(value, (bool, int, float, str))


# --- what an explanation and a target look like ---------------------------------------------------


def top_features(
    xs: Sequence[Xplanation], settings: Settings, top: int
) -> tuple[tuple[int, ...], ...] | None:
    """The strongest features of each explanation, at most ``top``; None where an explainer gives no
    feature scores.

    A feature is as strong as its highest score in the target-centric view; scores of 0 or less lead
    nothing.
    """
    if any(x.feature_score is None for x in xs):
        return None
    return tuple(strongest(x, settings, leading(top, x.need("feature_score").size(1))) for x in xs)


def leading(top: int, features: int) -> int:
    """How many features of an explanation lead: ``top``, but no more than a third of all, or
    everyone would.

    >>> leading(10, 1433), leading(10, 8), leading(10, 2)
    (10, 2, 1)
    """
    return min(top, max(1, features // 3))


def strongest(x: Xplanation, settings: Settings, top: int) -> tuple[int, ...]:
    """Numbers of the strongest features of one explanation."""
    rows = torch.cat(list(x.target_view(settings.pooling)))
    score = (rows.abs() if settings.order == "magnitude" else rows).amax(0).double().nan_to_num(0.0)
    order = score.argsort(descending=True, stable=True)[:top]
    return tuple(order[score[order] > 0].tolist())


def data_of(model: BaseModel, xs: Sequence[Xplanation]) -> Values:
    """Features of each target (mean over its ends, or its nodes), sizes of its computation graph,
    predictions, edges.  (T, D)
    """
    features = torch.stack([own_rows(model, x).double().mean(0) for x in xs]).cpu()
    sizes = torch.tensor([[len(x.nodes), len(x.edges)] for x in xs], dtype=torch.float64)
    predicted = model.pred_continuous([x.target for x in xs]).double().reshape(len(xs), -1).cpu()
    edges = torch.stack([edge_means(model, x) for x in xs]).cpu()
    return np.nan_to_num(torch.cat([features, sizes, predicted, edges], dim=1).numpy())


def own_rows(model: BaseModel, x: Xplanation) -> torch.Tensor:
    """Features of the target's own nodes: one row, two for a link, all of a graph."""
    if x.level != "graph":
        return model.source.x[list(x.target_nodes)]
    start, end = model.source.bounds[0][x.target_ids[0] : x.target_ids[0] + 2]
    return model.source.x[start:end]


def edge_means(model: BaseModel, x: Xplanation) -> torch.Tensor:
    """Mean of every attribute that the network reads over the edges at the target (of a graph:
    all); 0 without edges.  (A,)

    Edges farther away belong to other targets too. With them, rows would depend on each other, and
    the test on rows could not be trusted.
    """
    own = own_edges(model, x)
    parts = [
        as_columns(value)[own].double().sum(0) / max(1, len(own))
        for value in model.source.edge_attrs.values()
    ]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)


def gaps_of(model: BaseModel, xs: Sequence[Xplanation]) -> Values:
    """How far apart the two ends' features are, mean over the edges at the target (of a graph:
    all); 0 without edges.  (T, F)
    """
    rows = []
    for x in xs:
        start, end = model.source.edge_index[:, own_edges(model, x)]
        start, end = start[start != end], end[start != end]
        apart = (model.source.x[start].double() - model.source.x[end].double()).abs().sum(0)
        rows.append(apart / max(1, len(start)))
    return np.nan_to_num(torch.stack(rows).cpu().numpy())


def own_edges(model: BaseModel, x: Xplanation) -> torch.Tensor:
    """Numbers in the source of the edges that bring the target a message and end or begin at it; of
    a graph, all its edges.
    """
    if x.level == "graph":  # whose edges count from 0 in each graph
        return x.edges + model.source.bounds[1][x.target_ids[0]]
    ends = model.source.edge_index[:, x.edges]
    return x.edges[torch.isin(ends, ends.new_tensor(x.target_nodes)).any(0)]


def as_columns(value: torch.Tensor) -> torch.Tensor:
    """An attribute as a matrix.  (E, ...) -> (E, A)"""
    return value[:, None] if value.dim() == 1 else value.flatten(1)


def edge_names(model: BaseModel) -> list[str]:
    """What the columns of `edge_means` are called: by ``data.edge_attr_names`` (for ``edge_attr``),
    else by their number.
    """
    data = model.data[0] if model.level == "graph" else model.data
    found = []
    for name, value in model.source.edge_attrs.items():
        width = as_columns(value).size(1)
        given = getattr(data, f"{name}_names", None)
        own = list(given) if given is not None and len(given) == width else numbered(name, width)
        found += [f"{part} (mean over its edges)" for part in own]
    return found


def numbered(name: str, width: int) -> list[str]:
    """Names of the columns of an attribute.

    >>> numbered("edge_weight", 1), numbered("edge_attr", 2)
    (['edge_weight'], ['edge_attr 0', 'edge_attr 1'])
    """
    return [name] if width == 1 else [f"{name} {k}" for k in range(width)]


def is_prediction(column: str) -> bool:
    """Whether a column of the data holds what the network says, by its name."""
    return column == VALUE or column.startswith(PROBABILITY)


def prediction_names(model: BaseModel) -> tuple[str, ...]:
    """What the columns of predictions are called."""
    if model.task == "regression":
        return (VALUE,)
    return tuple(
        f"{PROBABILITY} {c}" for c in range(model.pred_continuous(model.probes[:1]).size(1))
    )
