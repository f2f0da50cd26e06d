"""Which change of a predicted value the paper most likely counted as a flip.

    python bench/flip_thresholds.py --data FOLDER [--device cuda] [--targets 20]

The paper's regression tasks are MovieLens and Synthetic, nodes and links, with a GCN and a GAT.
Each explainer's deletion curves are measured once, over all 100 edits and without any flip. Every
threshold is then read off the same curves:

    EC = first number of edits after which the value has moved by more than the threshold, or the
         bound: the number of candidates, at most 100. For features the least over the references.

A line for each kind of task, side and threshold: Spearman's ρ between the means of the eight
explainers and the paper's (ties of 2 edits, as in `graphgauge analyse`), and the mean absolute
difference. The threshold is a number ("absolute") or in SD of a network's predictions ("sd").
Explainers are those of the paper: Captum's LRP, GuidedBackprop and Deconvolution, PyG's GraphMask.
"""

import argparse
from itertools import product

import numpy as np
import pandas as pd
from torch import Tensor

import graphgauge as gg
from graphgauge.benchmark import (
    TIE_WIDTHS,
    spearman_correlation,
    table_1_of_the_paper,
    wrap_network,
)
from graphgauge.cli.console import run_app
from graphgauge.datasets import NetworkTask, find_network_tasks
from graphgauge.evaluation import TracedCase
from graphgauge.explainers import BaseExplainer

KINDS = {"node": "node_regression", "link": "edge_regression"}
DATA_SETS = ("movielens", "synthetic")
SIDES = ("feature", "edge")
ABSOLUTE = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
DEVIATIONS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
CAP = 100
NEVER = 1e30  #: a threshold that no value reaches, so that curves are measured to their end


def paper_explainers() -> dict[str, BaseExplainer]:
    """The paper's eight, in the versions that it most likely ran."""
    return {
        "saliency": gg.Saliency(),
        "input_x_gradient": gg.InputXGradient(),
        "integrated_gradients": gg.IntegratedGradients(),
        "guided_backprop": gg.GuidedBackprop(variant="captum"),
        "deconvolution": gg.Deconvolution(variant="captum"),
        "lrp": gg.LRP(variant="captum"),
        "gnn_explainer": gg.GNNExplainer(),
        "graphmask": gg.GraphMask(variant="pyg"),
    }


def case_ec(case: TracedCase, width: float) -> int:
    """Edits of one curve until the value has moved by more than ``width``."""
    curve: Tensor = case.curve
    has_moved = ((curve - case.start).abs() > width).nonzero()
    return int(has_moved[0]) + 1 if len(has_moved) else min(case.candidates, CAP)


def measure(task: NetworkTask, chosen: argparse.Namespace) -> list[dict[str, object]]:
    """A line for each explainer, side, unit and threshold: the mean EC of one network's targets."""
    data = task.load(chosen.data).to(chosen.device)
    net = gg.datasets.trained(task.data_set, task.level, task.conv, chosen.networks)
    model = wrap_network(net.to(chosen.device), data)
    evaluator = gg.Evaluator(
        model,
        seed=0,
        flip=NEVER,
        flip_unit="sd",
        twins=False,
        stability="none",
        timed=0,
        trials=(1, 1),
    )
    results = evaluator.compare(paper_explainers(), evaluator.sample(chosen.targets))
    assert isinstance(model, gg.models.RegressionModel)
    spread = model.spread
    thresholds = [("absolute", size, size) for size in ABSOLUTE]
    thresholds += [("sd", size, size * spread) for size in DEVIATIONS]
    lines = []
    for row in results.rows:
        if row.metric not in ("feature_ec", "edge_ec") or row.cell.value is None:
            continue
        side = row.metric.removesuffix("_ec")
        cases = results.explain(row).cases
        for unit, size, width in thresholds:
            ec = min(case_ec(case, width) for case in cases)
            lines.append(
                {
                    "kind": KINDS[task.level],
                    "network": task.name,
                    "side": side,
                    "explainer": row.explainer,
                    "unit": unit,
                    "flip": size,
                    "ec": ec,
                }
            )
    keys = ["kind", "network", "side", "explainer", "unit", "flip"]
    table = pd.DataFrame(lines).groupby(keys, sort=False)["ec"].mean().reset_index()
    print(f"{task.name}: SD of predictions {spread:.3f}", flush=True)
    return table.to_dict("records")


def agreement(lines: pd.DataFrame) -> pd.DataFrame:
    """Agreement with the paper by kind, side and threshold; each network counts alike."""
    published = table_1_of_the_paper()
    keys = ["kind", "side", "unit", "flip"]
    found = []
    for key, own in lines.groupby(keys, sort=False):
        kind, side = key[:2]
        means = own.groupby("explainer")["ec"].mean()
        ours = means.to_numpy()
        paper = np.array([published[kind, name, f"{side}_ec"].mean for name in means.index])
        numbers = {
            "rho": float(spearman_correlation(ours, paper, TIE_WIDTHS["ec"])),
            "difference": float(np.abs(ours - paper).mean()),
            "ours": float(ours.mean()),
            "paper": float(paper.mean()),
        }
        found.append({**dict(zip(keys, key, strict=True)), **numbers})
    return pd.DataFrame(found)


def command() -> None:
    """Read the command line, measure, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument(
        "--networks", help="folder of the networks; those of the library by default"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--targets", type=int, default=20, help="targets of each network")
    parser.add_argument("--only", default="", help="only networks whose name contains this")
    parser.add_argument("--write", help="file for the mean EC of every network, as CSV")
    chosen = parser.parse_args()
    tasks = [
        task
        for name, level in product(DATA_SETS, KINDS)
        for task in find_network_tasks(f"{name}-{level}")
        if chosen.only in task.name
    ]
    lines = pd.DataFrame([line for task in tasks for line in measure(task, chosen)])
    if chosen.write:
        lines.round(4).to_csv(chosen.write, index=False)
    table = agreement(lines)
    print(table.round(2).to_string(index=False))
    mean = table.groupby(["unit", "flip"], sort=False)[["rho", "difference"]].mean()
    print("\nMean over kinds and sides\n" + mean.round(2).to_string())


if __name__ == "__main__":
    run_app(command)
