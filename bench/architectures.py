"""What `Evaluator.compare` costs on networks of several architectures, on one graph with many
features.

    python bench/architectures.py [--targets 10] [--networks gcn sage gin] [--threads 2] [--profile]

The graph is drawn at random with the numbers of CiteSeer: 3,327 nodes, 9,104 edges and 3,703
features, of which a node has 32. A GCN multiplies features by its first weight before it sends
messages. GraphSAGE, GIN and GraphConv send messages first, so that each message has all features.
Seconds are those of the second of two calls; the first, on two targets, warms up.
"""

import argparse
import cProfile
import pstats
import time

import torch
from cora import random_citations
from torch import Tensor, nn
from torch_geometric.nn import (
    APPNP,
    BatchNorm,
    ChebConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    SAGEConv,
    SGConv,
)

import graphgauge as gg
from graphgauge.core import make_generator, temporary_global_seed

NODES, LINKS, FEATURES, WORDS, HIDDEN, CLASSES = 3327, 4552, 3703, 32, 32, 6
EXPLAINERS = (
    gg.InputXGradient(),
    gg.IntegratedGradients(),
    gg.GNNExplainer(),
    gg.RandomExplainer(),
)


class TwoLayers(nn.Module):
    """Two layers of one kind with a ReLU between them."""

    def __init__(self, one: nn.Module, two: nn.Module) -> None:
        super().__init__()
        self.one, self.two = one, two

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits.  (N, C)"""
        return self.two(self.one(x, edge_index).relu(), edge_index)


class ThreeLayers(nn.Module):
    """GraphSAGE, batch norm, GATv2, batch norm, GraphSAGE."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.three = (
            SAGEConv(FEATURES, HIDDEN),
            GATv2Conv(HIDDEN, HIDDEN // 4, heads=4),
            SAGEConv(HIDDEN, CLASSES),
        )
        self.first_norm, self.second_norm = BatchNorm(HIDDEN), BatchNorm(HIDDEN)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits.  (N, C)"""
        x = self.first_norm(self.one(x, edge_index)).relu()
        x = self.second_norm(self.two(x, edge_index)).relu()
        return self.three(x, edge_index)


class LateProjection(nn.Module):
    """Features are spread by APPNP and projected at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.spread, self.project = APPNP(K=2, alpha=0.1), nn.Linear(FEATURES, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits.  (N, C)"""
        return self.project(self.spread(x, edge_index))


def two_layers_of_gin() -> nn.Module:
    """GIN whose multilayer perceptrons have two layers."""

    def perceptron(width: int, out: int) -> nn.Module:
        return nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, out))

    return TwoLayers(GINConv(perceptron(FEATURES, HIDDEN)), GINConv(perceptron(HIDDEN, CLASSES)))


NETWORKS = {
    "gcn": lambda: TwoLayers(GCNConv(FEATURES, HIDDEN), GCNConv(HIDDEN, CLASSES)),
    "sage": lambda: TwoLayers(SAGEConv(FEATURES, HIDDEN), SAGEConv(HIDDEN, CLASSES)),
    "gin": two_layers_of_gin,
    "graphconv": lambda: TwoLayers(GraphConv(FEATURES, HIDDEN), GraphConv(HIDDEN, CLASSES)),
    "cheb": lambda: TwoLayers(ChebConv(FEATURES, HIDDEN, 2), ChebConv(HIDDEN, CLASSES, 2)),
    "sgc": lambda: SGConv(FEATURES, CLASSES, K=2),
    "appnp": LateProjection,
    "three": ThreeLayers,
}


def untrained_network(name: str) -> nn.Module:
    """A network with random weights, the same each time."""
    with temporary_global_seed(0):
        return NETWORKS[name]().eval()


def compare_once(model: gg.BaseModel, targets: list[int]) -> tuple[float, gg.Results]:
    """Seconds of one call of `compare`, and its results."""
    start = time.perf_counter()
    results = gg.Evaluator(model, preset="paper", timed=1).compare(EXPLAINERS, targets)
    return time.perf_counter() - start, results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--profile", action="store_true", help="print what takes the time")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = random_citations(NODES, LINKS, FEATURES, WORDS)
    chosen = torch.randperm(data.num_nodes, generator=make_generator(1))[: options.targets]
    targets, reference = chosen.tolist(), 0.0
    print(f"{options.targets} targets, {options.threads} threads, torch {torch.__version__}")
    print("| network | seconds | times the first |\n|---|---|---|")
    for name in options.networks:
        model = gg.NodeClassificationModel(untrained_network(name), data, output="logits")
        compare_once(model, targets[:2])
        profile = cProfile.Profile()
        if options.profile:
            profile.enable()
        spent, _ = compare_once(model, targets)
        profile.disable()
        reference = reference or spent
        print(f"| {name} | {spent:.1f} | {spent / reference:.1f} |", flush=True)
        if options.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
