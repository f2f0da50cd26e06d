"""Good explanations win, bad ones lose: InputXGradient on Cora's edges, and explanations of another
model.

An explanation of a network with random weights knows nothing of the trained one. It can be asked
for the class that the random network predicts, or for the class that the trained one does.
"Constant weights" is a network with all weights equal: it knows the graph alone.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd
import torch
from cora import Net
from torch import Tensor
from validity_judging import EIGHT, PERTINENCES, foreign, groups, judged, markdown, random_rankings
from validity_models import Named, cora_gcn

import graphgauge as gg
from graphgauge.core import (
    Target,
    Xplanation,
    derive_seed,
    make_generator,
    mean_ranks,
    temporary_global_seed,
)
from graphgauge.metrics import auroc
from graphgauge.models import BaseModel

NOISE = (0.0, 0.25, 0.5, 0.75, 1.0)
RANDOM_NETS = 5  #: for InputXGradient; the others see the first
KINDS = ("right", "own class", "same class")
Models = dict[str, list[gg.BaseModel]]


def mixed(x: Xplanation, share: float, number: int) -> Xplanation:
    """The ranking with a share of noise: (1 - share) rank + share · a random rank."""
    own = torch.from_numpy(mean_ranks(x.need("edge_score").cpu().numpy()))
    noise = (
        torch.randperm(
            len(own), generator=make_generator(derive_seed(number, "noise", x.target, share))
        )
        + 1.0
    )
    return foreign(
        x,
        f"noise {share:.0%}",
        edge_score=((1 - share) * own + share * noise).to(x.edge_score),
        feature_score=None,
    )


def only_edges(xs: Iterable[Xplanation], name: str, sign: int = 1) -> list[Xplanation]:
    """Edge scores alone, possibly turned around."""
    return [
        foreign(x, name, edge_score=sign * x.need("edge_score"), feature_score=None) for x in xs
    ]


class SameClass(gg.NodeClassificationModel):
    """A network that is asked for the classes that another one predicts."""

    def __init__(self, net: Net, judged_model: BaseModel) -> None:
        super().__init__(net, judged_model.data)
        self.judged_model = judged_model

    def pred_discrete(self, targets: Any, around: None = None) -> Tensor:
        """The other's classes.  (T,)"""
        return self.judged_model.pred_discrete(targets)


def random_net(seed: int) -> Net:
    """Weights as before training."""
    with temporary_global_seed(seed):
        return Net().eval()


def constant_net() -> Net:
    """Make all weights equal.

    Then an edge counts only by its place in the graph and by the words behind it.
    """
    net = Net().eval()
    with torch.no_grad():
        for layer in (net.one, net.two):
            layer.lin.weight.fill_(0.1)
        net.two.lin.weight[1:] = 0
    return net


def several_models(model: BaseModel, count: int = RANDOM_NETS) -> Models:
    """The judged model, random weights asked for their own class and for the judged model's, and
    equal weights.
    """
    nets = [random_net(seed) for seed in range(1, count + 1)]
    return {
        "right": [model],
        "own class": [gg.NodeClassificationModel(net, model.data) for net in nets],
        "same class": [SameClass(net, model) for net in nets],
        "constant weights": [gg.NodeClassificationModel(constant_net(), model.data)],
    }


def good_values(
    model: BaseModel,
    targets: Sequence[Target],
    draws: int,
    explainers: Sequence[Any] = (),
    others: Models | None = None,
) -> pd.DataFrame:
    """Edge metrics of random rankings, of InputXGradient as it is, reversed and with noise, and of
    explainers on several models.
    """
    parts = []
    for some in groups(targets):
        best = gg.InputXGradient().explain(model, some)
        xs = only_edges(random_rankings(model, some, 2 * draws), "random") + only_edges(
            best, "reversed", -1
        )
        xs += [
            mixed(x, share, k)
            for share in NOISE
            for k in range(1 if share == 0 else draws)
            for x in best
        ]
        for explainer, (kind, models) in itertools.product(explainers, (others or {}).items()):
            is_main = isinstance(explainer, gg.InputXGradient)
            for other in models if is_main else models[: int(kind in KINDS)]:
                xs += only_edges(explainer.explain(other, some), f"{explainer.name}, {kind}")
        parts.append(judged(model, xs))
    return pd.concat(parts)


def separation(values: pd.DataFrame, metric: str, name: str = "noise 0%") -> float:
    """Chance that an explanation's score is above a random ranking's, of any target."""
    good, random = values.loc[name][metric], values.loc["random"][metric]
    score = torch.tensor([*good, *random], dtype=torch.float64)
    return float(auroc(score, torch.arange(len(score)) < len(good)))


def separation_within(values: pd.DataFrame, metric: str, name: str = "noise 0%") -> float:
    """The same among the rankings of one target, averaged over targets."""
    good = values.loc[name][metric].groupby("target").mean()
    random = values.loc["random"][metric]
    own = good.loc[random.index.get_level_values("target")].to_numpy()
    won = (own > random.to_numpy()) + (own == random.to_numpy()) / 2
    return float(pd.Series(won, index=random.index).groupby("target").mean().mean())


def reversal(values: pd.DataFrame, metric: str) -> pd.Series:
    """Score plus score of the reversed ranking, less 1, of each target."""
    return (values.loc["noise 0%"][metric] + values.loc["reversed"][metric] - 1).droplevel(
        "occurrence"
    )


def doses(values: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Mean score by target (rows) and share of noise (columns)."""
    return pd.DataFrame(
        {
            share: values.loc[f"noise {share:.0%}"][metric].groupby("target").mean()
            for share in NOISE
        }
    )


def falling(curve: pd.DataFrame) -> pd.Series:
    """Slope of each target's score over the share of noise."""
    shares = pd.Series(NOISE) - pd.Series(NOISE).mean()
    return (curve * shares.to_numpy()).sum(axis=1)


def good(options: Any) -> Iterator[str]:
    """Cora's edges, GCN."""
    named = cora_gcn(options.targets)
    values = good_values(
        named.model, named.targets, draws=5, explainers=EIGHT, others=several_models(named.model)
    )
    sizes = relevant_edges(named)
    yield (
        f"{len(sizes)} targets, {int((sizes == 1).sum())} with one relevant edge, "
        f"{int((sizes <= 3).sum())} with at most three.\n"
    )
    yield markdown([quality_row(values, metric, sizes) for metric in PERTINENCES])
    yield markdown([model_row(values, explainer.name) for explainer in EIGHT])
    alone = values.loc["input_x_gradient, constant weights"]
    told = [f"{metric} {alone[f'edge_{metric}'].mean():.3f}" for metric in PERTINENCES]
    yield f"InputXGradient on a network with equal weights: {', '.join(told)}.\n"


def relevant_edges(named: Named) -> pd.Series:
    """How many edges each target has."""
    graphs = named.model.computation_graphs(named.targets)
    return pd.Series(
        {target: len(graph.edges) for target, graph in zip(named.targets, graphs, strict=True)}
    )


def quality_row(values: pd.DataFrame, metric: str, sizes: pd.Series) -> dict[str, Any]:
    """What one metric makes of good, noisy, random and reversed rankings."""
    name = f"edge_{metric}"
    gap, curve = reversal(values, name), doses(values, name)
    falls = falling(curve) < 0
    return {
        "": metric,
        "random": f"{values.loc['random'][name].mean():.3f}",
        "AUC": f"{separation(values, name):.3f}",
        "AUC within a target": f"{separation_within(values, name):.3f}",
        "reversal, mean": f"{gap.mean():+.3f}",
        "reversal, mean size": f"{gap.abs().mean():.3f}",
        "noise 0, 25, 50, 75, 100 %": " ".join(f"{value:.2f}" for value in curve.mean()),
        "falls": f"{falls.mean():.1%}",
        "falls, 2 edges or more": f"{falls[sizes[falls.index] > 1].mean():.1%}",
    }


def model_row(values: pd.DataFrame, name: str) -> dict[str, Any]:
    """Explanations of the judged model and of networks with random weights."""
    row: dict[str, Any] = {"explainer": name}
    for metric in PERTINENCES:
        for kind in KINDS:
            row[f"{metric.removeprefix('pertinence_')}, {kind}"] = (
                f"{values.loc[f'{name}, {kind}'][f'edge_{metric}'].mean():.3f}"
            )
    return row
