"""Do the metrics mean what they say? Chance must score as chance, good explanations must win, known truths must be found.

    python bench/validity.py [chance stability stopping good whitebox] [--targets 200] [--rankings 20] [--out FILE]

Every section prints its tables as Markdown; `docs/validity.md` holds one run. ``GRAPHGAUGE_DATA`` names the folder with Cora.

    chance      random rankings on five models: pertinence 1/2, p-values uniform
    stability   random scores and untrained masks, explained again and again: corrected stability 0
    stopping    the paper's early stopping on series that mean nothing
    good        InputXGradient on Cora's edges: against random rankings, reversed, with noise; explanations of another model
    whitebox    eight explainers on networks whose weights are known (see `whitebox`): do the metrics order them as the truth does?
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from validity_good import good
from validity_judging import error, evaluator, foreign, groups, judged, markdown, others_replaced, random_rankings
from validity_models import FIVE, Named
from validity_whitebox import whitebox

import graphgauge as gg
from graphgauge.core.seeds import derive_seed, generator
from graphgauge.core.xplanation import Target, Xplanation
from graphgauge.evaluation.repetition import stability_cells
from graphgauge.explainers.base import Scores, empty_edges, empty_features
from graphgauge.metrics import betting, stopped
from graphgauge.models import BaseModel, ComputationGraphs

# --- chance ----------------------------------------------------------------------------------------------------------


def random_scores(model: BaseModel, targets: list[Target], count: int, seed: int = 1) -> list[Xplanation]:
    """The same with independent scores of all nodes, pooled by maximum and by sum; features only."""
    xs = gg.RandomExplainer().explain(model, [target for target in targets for _ in range(count)], seed=seed)
    by_sum = [foreign(x, "scores, sum", edge_score=None, feature_score=others_replaced(x, lambda rows: rows.sum(0))) for x in xs]
    return [*(foreign(x, "scores, max", edge_score=None) for x in xs), *by_sum]


def chance_values(named: Named, rankings: int, curves: int, scored: int = 2) -> pd.DataFrame:
    """All values of random rankings, and of ``scored`` random scores, of one model."""
    parts = []
    for some in groups(named.targets):
        xs = random_rankings(named.model, some, rankings) + (random_scores(named.model, some, scored) if scored else [])
        parts.append(judged(named.model, xs, curves))
    return pd.concat(parts)


def chance_row(name: str, values: pd.DataFrame, side: str) -> dict[str, Any]:
    """Means over rankings and targets."""
    own = values.loc["ranking"].dropna(subset=[f"{side}_pertinence_tied"])
    tied, is_low = own[f"{side}_pertinence_tied"], (own[f"{side}_pertinence_p"] <= 0.05).astype(float)
    return {
        "model": name,
        "side": side,
        "targets": own.index.get_level_values("target").nunique(),
        "rankings": len(own),
        "tied": f"{tied.mean():.4f} ± {error(tied):.4f}",
        "rank": f"{own[f'{side}_pertinence_rank'].mean():.4f}",
        "P(p ≤ 0.05)": f"{is_low.mean():.4f} ± {error(is_low):.4f}",
        "P(p ≤ 0.5)": f"{(own[f'{side}_pertinence_p'] <= 0.5).mean():.3f}",
        "paper": f"{own[f'{side}_pertinence'].mean():.4f} ± {error(own[f'{side}_pertinence']):.4f}",
    }


def chance(options: argparse.Namespace) -> Iterator[str]:
    """Random rankings on five models."""
    found = {}
    for name in options.models or FIVE:
        start = time.process_time()
        found[name] = chance_values(FIVE[name](options.targets), options.rankings, options.curves)
        print(f"  {name}: {time.process_time() - start:.0f} s of one core", flush=True)
    everything = pd.concat(found, names=["model"]).reset_index("target")
    everything["target"] = everything.index.get_level_values("model") + everything["target"].astype(str)
    everything = everything.set_index("target", append=True).droplevel("model")
    for side in ("edge", "feature"):
        rows = [chance_row(name, values, side) for name, values in found.items()]
        yield markdown([*rows, chance_row("all", everything, side)])
    yield markdown([score_row(name, values) for name, values in found.items()])


def score_row(name: str, values: pd.DataFrame) -> dict[str, Any]:
    """Random scores of all nodes, which are no random ranking."""
    row: dict[str, Any] = {"model": name}
    for kind in ("ranking", "scores, max", "scores, sum"):
        tied = values.loc[kind]["feature_pertinence_tied"].dropna()
        row[kind] = f"{tied.mean():.3f} ± {error(tied):.3f}"
    return row


# --- stability -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UntrainedMasks(gg.BaseExplainer):
    """What GNNExplainer and GraphMask start from: σ(0.1 n), n normal."""

    name = "untrained masks"
    signed = False
    deterministic = False

    def scores(self, model: BaseModel, graphs: ComputationGraphs, seeds: list[int]) -> Scores:
        """No pass at all."""
        feature, edge = empty_features(graphs), empty_edges(graphs)
        for seed, graph in zip(seeds, graphs, strict=True):
            stream = generator(seed)
            for part, place in ((feature, graph.node_slice), (edge, graph.edge_slice)):
                part[place] = torch.sigmoid(0.1 * torch.randn(part[place].shape, generator=stream))
        return Scores(feature, edge)


def stability_values(named: Named, explainer: gg.BaseExplainer) -> dict[str, list[float]]:
    """Stability of both sides and its twin, of each target that has one."""
    settings = evaluator(named.model).settings
    values: dict[str, list[float]] = {}
    for some in groups(named.targets):
        for cells in stability_cells(explainer, named.model, some, settings, seed=0).values():
            for metric, cell in cells.items():
                values.setdefault(metric, []).extend([] if cell.value is None else [cell.value])
    return values


def stability(options: argparse.Namespace) -> Iterator[str]:
    """Noise on five models."""
    rows = []
    for name in options.models or FIVE:
        named = FIVE[name](max(10, options.targets // 4))
        for explainer in (gg.RandomExplainer(), UntrainedMasks()):
            row: dict[str, Any] = {"model": name, "scores": explainer.name}
            for metric, values in stability_values(named, explainer).items():
                series = pd.Series(values)
                row[metric.replace("_stability", "")] = f"{series.mean():.4f} ± {series.sem():.4f}"
            rows.append(row)
    yield markdown(rows)


# --- stopping --------------------------------------------------------------------------------------------------------

LAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "uniform": lambda u: u,
    "arcsine": lambda u: (1 - torch.cos(torch.pi * u)) / 2,
    "0 or 1": lambda u: (u < 0.5).double(),
}


def null_series(law: str, count: int, seed: int = 0) -> Tensor:
    """Series of 100 independent trials of mean 1/2.  (count, 100)"""
    return LAWS[law](torch.rand(count, 100, generator=generator(derive_seed(seed, law)), dtype=torch.float64))


def wrong_verdicts(law: str, count: int) -> tuple[float, float]:
    """Share of null series that the paper's rule, and betting, call decided."""
    series = null_series(law, count)
    paper, bets = stopped(series).reason, betting(series).reason
    return paper.count("decided") / count, bets.count("decided") / count


def stopping(options: argparse.Namespace) -> Iterator[str]:
    """Trials that mean nothing."""
    found = {law: wrong_verdicts(law, options.series) for law in LAWS}
    yield markdown([{"trials": law, "paper's rule errs": f"{p:.3f}", "betting errs": f"{b:.3f}"} for law, (p, b) in found.items()])


# --- all -------------------------------------------------------------------------------------------------------------

SECTIONS = {"chance": chance, "stability": stability, "stopping": stopping, "good": good, "whitebox": whitebox}


def main() -> None:
    """Run the sections asked for, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; none: all")
    parser.add_argument("--models", nargs="+", choices=FIVE, help="of chance and stability; none: all five")
    parser.add_argument("--targets", type=int, default=200, help="of each model; stability takes a quarter, whitebox an eighth")
    parser.add_argument("--rankings", type=int, default=20)
    parser.add_argument("--curves", type=int, default=19, help="random curves in chance; with 19 the least p is 0.05")
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
