"""Do the metrics mean what they say? Chance must score as chance, good explanations must win, known
truths must be found.

    python bench/validity.py [chance stability stopping good whitebox] [--targets 200]
                             [--rankings 20] [--out FILE]

Every section prints its tables as Markdown; `docs/validity.md` holds one run. ``GRAPHGAUGE_DATA``
names the folder with Cora.

    chance      random rankings, and random scores of nodes, on six models: pertinence is 1/2 and
                p-values are uniform
    stability   random scores and untrained masks, explained again and again: corrected stability 0
    stopping    the paper's early stopping on series that mean nothing
    good        InputXGradient on Cora's edges: against random rankings, reversed, with noise;
                explanations of another model
    whitebox    eight explainers on networks whose weights are known (see `whitebox`): do the
                metrics order them as the truth does?
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from validity_good import good
from validity_judging import (
    error,
    evaluator,
    foreign,
    groups,
    judged,
    markdown,
    others_replaced,
    random_rankings,
)
from validity_models import MODELS, Named
from validity_whitebox import whitebox

import graphgauge as gg
from graphgauge.core import Target, Xplanation, derive_seed, make_generator
from graphgauge.evaluation import measure_stability
from graphgauge.explainers import Scores, zero_edge_scores, zero_feature_scores
from graphgauge.metrics import betting_test, stop_early
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraphs

# --- chance ---------------------------------------------------------------------------------------


KINDS = ("ranking", "scores, max", "scores, sum", "masks, sum")


def random_scores(
    model: BaseModel, targets: list[Target], count: int, seed: int = 1
) -> list[Xplanation]:
    """Independent scores of all nodes, normal ("scores", pooled by maximum and by sum) or in 0..1
    ("masks, sum"); features only.

    The order of a maximum is the same for any distribution.
    """
    xs = gg.RandomExplainer().explain(
        model, [target for target in targets for _ in range(count)], seed=seed
    )
    masks = [replace(x, feature_score=torch.special.ndtr(x.need("feature_score"))) for x in xs]
    found = [foreign(x, "scores, max", edge_score=None) for x in xs]
    for name, given in (("scores, sum", xs), ("masks, sum", masks)):
        summed = [others_replaced(x, lambda rows: rows.sum(0)) for x in given]
        found += [
            foreign(x, name, edge_score=None, feature_score=sums)
            for x, sums in zip(given, summed, strict=True)
        ]
    return found


def chance_values(named: Named, rankings: int, curves: int, scored: int = 2) -> pd.DataFrame:
    """All values of random rankings, and of ``scored`` random scores of each kind, of one model."""
    parts = []
    for some in groups(named.targets):
        xs = random_rankings(named.model, some, rankings) + (
            random_scores(named.model, some, scored) if scored else []
        )
        parts.append(judged(named.model, xs, curves))
    return pd.concat(parts)


def chance_row(name: str, values: pd.DataFrame, side: str, kind: str = "ranking") -> dict[str, Any]:
    """Means over rankings and targets."""
    own = values.loc[kind].dropna(subset=[f"{side}_pertinence_tied"])
    tied, is_low = (
        own[f"{side}_pertinence_tied"],
        (own[f"{side}_pertinence_p"] <= 0.05).astype(float),
    )
    return {
        "model": name,
        "kind": kind,
        "targets": own.index.get_level_values("target").nunique(),
        "explanations": len(own),
        "tied": f"{tied.mean():.4f} ± {error(tied):.4f}",
        "rank": f"{own[f'{side}_pertinence_rank'].mean():.4f}",
        "P(p ≤ 0.05)": f"{is_low.mean():.4f} ± {error(is_low):.4f}",
        "P(p ≤ 0.5)": f"{(own[f'{side}_pertinence_p'] <= 0.5).mean():.3f}",
        "paper": f"{own[f'{side}_pertinence'].mean():.4f} ± {error(own[f'{side}_pertinence']):.4f}",
    }


def chance(options: argparse.Namespace) -> Iterator[str]:
    """Explanations that know nothing, on networks for nodes, links and graphs."""
    found = {}
    for name in options.models or MODELS:
        start = time.process_time()
        found[name] = chance_values(
            MODELS[name](options.targets), options.rankings, options.curves, options.rankings
        )
        print(f"  {name}: {time.process_time() - start:.0f} s of one core", flush=True)
    everything = pd.concat(found, names=["model"]).reset_index("target")
    everything["target"] = everything.index.get_level_values("model") + everything["target"].astype(
        str
    )
    everything = everything.set_index("target", append=True).droplevel("model")
    yield "Edges\n"
    yield markdown(
        [chance_row(name, values, "edge") for name, values in (*found.items(), ("all", everything))]
    )
    yield "Features\n"
    rows = [
        chance_row(name, values, "feature", kind)
        for name, values in found.items()
        for kind in KINDS
    ]
    yield markdown([*rows, *(chance_row("all", everything, "feature", kind) for kind in KINDS)])


# --- stability ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UntrainedMasks(gg.BaseExplainer):
    """What GNNExplainer and GraphMask start from: σ(0.1 n), n normal."""

    name = "untrained masks"
    signed = False
    deterministic = False

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """No pass at all."""
        feature, edge = zero_feature_scores(graphs), zero_edge_scores(graphs)
        for seed, graph in zip(seeds, graphs, strict=True):
            stream = make_generator(seed)
            for part, place in ((feature, graph.node_slice), (edge, graph.edge_slice)):
                part[place] = torch.sigmoid(0.1 * torch.randn(part[place].shape, generator=stream))
        return Scores(feature, edge)


def stability_values(named: Named, explainer: gg.BaseExplainer) -> dict[str, list[float]]:
    """Stability of both sides and its twin, of each target that has one."""
    settings = evaluator(named.model).settings
    values: dict[str, list[float]] = {}
    for some in groups(named.targets):
        for cells in measure_stability(explainer, named.model, some, settings, seed=0).values():
            for metric, cell in cells.items():
                values.setdefault(metric, []).extend([] if cell.value is None else [cell.value])
    return values


def stability(options: argparse.Namespace) -> Iterator[str]:
    """Noise on every model."""
    rows = []
    for name in options.models or MODELS:
        named = MODELS[name](max(10, options.targets // 4))
        for explainer in (gg.RandomExplainer(), UntrainedMasks()):
            row: dict[str, Any] = {"model": name, "scores": explainer.name}
            for metric, values in stability_values(named, explainer).items():
                series = pd.Series(values)
                row[metric.replace("_stability", "")] = f"{series.mean():.4f} ± {series.sem():.4f}"
            rows.append(row)
    yield markdown(rows)


# --- stopping -------------------------------------------------------------------------------------

LAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "uniform": lambda u: u,
    "arcsine": lambda u: (1 - torch.cos(torch.pi * u)) / 2,
    "0 or 1": lambda u: (u < 0.5).double(),
}


def null_series(law: str, count: int, seed: int = 0) -> Tensor:
    """Series of 100 independent trials of mean 1/2.  (count, 100)"""
    return LAWS[law](
        torch.rand(
            count, 100, generator=make_generator(derive_seed(seed, law)), dtype=torch.float64
        )
    )


def wrong_verdicts(law: str, count: int) -> tuple[float, float]:
    """Share of null series that the paper's rule, and betting, call decided."""
    series = null_series(law, count)
    paper, bets = stop_early(series).reason, betting_test(series).reason
    return paper.count("decided") / count, bets.count("decided") / count


def stopping(options: argparse.Namespace) -> Iterator[str]:
    """Trials that mean nothing."""
    found = {law: wrong_verdicts(law, options.series) for law in LAWS}
    yield markdown(
        [
            {"trials": law, "paper's rule errs": f"{p:.3f}", "betting errs": f"{b:.3f}"}
            for law, (p, b) in found.items()
        ]
    )


# --- all ------------------------------------------------------------------------------------------

SECTIONS = {
    "chance": chance,
    "stability": stability,
    "stopping": stopping,
    "good": good,
    "whitebox": whitebox,
}


def main() -> None:
    """Run the sections asked for, print, and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; none: all")
    parser.add_argument(
        "--models", nargs="+", choices=MODELS, help="of chance and stability; none: all"
    )
    parser.add_argument(
        "--targets",
        type=int,
        default=200,
        help="of each model; stability takes a quarter, whitebox an eighth",
    )
    parser.add_argument("--rankings", type=int, default=5, help="of each kind and target in chance")
    parser.add_argument(
        "--curves",
        type=int,
        default=19,
        help="random curves in chance; with 19 the least p is 0.05",
    )
    parser.add_argument("--series", type=int, default=60_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    told = []
    for name in options.sections or SECTIONS:
        start = time.process_time()
        part = [f"## {name}\n", *SECTIONS[name](options)]
        told += [*part, f"{time.process_time() - start:.0f} s of one core\n"]
        print("\n".join(told[-len(part) - 1 :]), flush=True)
    if options.out:
        options.out.write_text("\n".join(told))


if __name__ == "__main__":
    main()
