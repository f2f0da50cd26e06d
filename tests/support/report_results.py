"""Results to report: made by hand, and measured on a small network with names."""

import random
from functools import cache

import torch
from torch_geometric.nn import GCN

import graphgauge as gg
from graphgauge.evaluation import Results
from graphgauge.report.report_builder import build_report
from support.chosen_results import good
from support.chosen_results import run as made
from support.small_networks import build, random_graph

SMALL = {
    "cap": 6,
    "trials": (4, 4),
    "early_stop": "none",
    "twin_trials": 4,
    "stability": "none",
    "timed": 2,
}


def spread(seed, low, high, n=60):
    """Numbers that differ from target to target."""
    draw = random.Random(seed)
    return [draw.uniform(low, high) for _ in range(n)]


def by_hand(task="loans", explainers=("lrp", "saliency", "random"), n=60, **options):
    """One task: the first explainer passes, the second misses a threshold, the third is the
    baseline.
    """
    numbers = {}
    for k, name in enumerate(explainers):
        pertinence = spread(k, (0.8, 0.3, 0.1)[k % 3], (1.0, 0.6, 0.7)[k % 3], n)
        numbers[name] = good(
            edge_pertinence=pertinence,
            edge_ec=spread(k + 9, 2 + k, 9 + k, n),
            time=[0.01 * (k + 1)] * 5,
        )
        numbers[name]["feature_pertinence"] = (0.9, 0.9, 0.5)[k % 3]
    return made(numbers, n=n, task=task, **options)


def several(tasks, **options):
    """Several tasks in one run."""
    parts = [by_hand(task, **options) for task in tasks]
    return Results(tuple(row for part in parts for row in part.rows), parts[0].settings)


@cache
def shown():
    """The report of `measured`, made once."""
    return build_report(measured())


@cache
def measured(num_nodes=60, features=6, classes=3):
    """A random network on a small graph, two explainers, ten targets."""
    data = random_graph(num_nodes, 3 * num_nodes)
    data.x = 4 * torch.randn(num_nodes, features, generator=torch.Generator().manual_seed(1))
    net = build(GCN, features, 8, 2, classes, seed=4)  # one that predicts every class
    evaluator = gg.Evaluator(
        gg.NodeClassificationModel(net, data, output="logits"), task="small", **SMALL
    )
    return evaluator.compare(
        [gg.InputXGradient(), gg.Saliency(), gg.RandomExplainer()], list(range(10))
    )
