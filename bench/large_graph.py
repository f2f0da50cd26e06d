"""`Evaluator.compare` on a large graph, phase by phase.

    python bench/large_graph.py [--device cuda] [--nodes 1000000] [--edges 10000000]
                                [--targets 200] [--only random] [--profile] [--busy]

The graph has power-law degrees and 64 dense features; the network is a GraphSAGE of two layers with
32 hidden units. Five explainers are compared by the preset "paper", after a first call on two
targets that warms up. ``--only`` compares one of them. ``--profile`` prints the Python functions
that take the time, ``--busy`` the share of it in which the GPU worked.
"""

import argparse
import cProfile
import pstats
import time
import warnings
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from typing_extensions import Unpack

import graphgauge as gg
from graphgauge.core import make_generator, record_phases, temporary_global_seed
from graphgauge.evaluation import SettingChanges

FEATURES, HIDDEN, CLASSES, EXPONENT = 64, 32, 4, 0.75
EXPLAINERS: dict[str, gg.BaseExplainer] = {
    explainer.name: explainer
    for explainer in (
        gg.InputXGradient(),
        gg.IntegratedGradients(),
        gg.GNNExplainer(),
        gg.GraphMask(),
        gg.RandomExplainer(),
    )
}


class Sage(nn.Module):
    """Two layers of GraphSAGE."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = SAGEConv(FEATURES, HIDDEN), SAGEConv(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits.  (N, C)"""
        return self.two(self.one(x, edge_index).relu(), edge_index)


def power_law_graph(nodes: int, edges: int) -> Data:
    """Edges from senders whose number of edges follows a power law to random receivers."""
    random = make_generator(0)
    share = torch.rand(edges, generator=random, dtype=torch.float64)
    tail = (nodes * share.pow(1 / (1 - EXPONENT))).long().clamp(max=nodes - 1)
    head = torch.randint(nodes, (edges,), generator=random)
    x = torch.randn(nodes, FEATURES, generator=random)
    return Data(x=x, edge_index=torch.stack([tail, head]))


def wrapped_sage(data: Data) -> gg.BaseModel:
    """An untrained network, the same each time, wrapped with the graph."""
    with temporary_global_seed(0):
        net = Sage().eval().to(data.x.device)
    return gg.NodeClassificationModel(net, data, output="logits")


def compare(
    model: gg.BaseModel,
    chosen: Mapping[str, gg.BaseExplainer],
    targets: list[int],
    **settings: Unpack[SettingChanges],
) -> float:
    """Seconds of one call of `compare` by the preset "paper" with some settings changed."""
    changed: SettingChanges = {"timed": 1, **settings}
    synchronise()
    start = time.perf_counter()
    gg.Evaluator(model, preset="paper", **changed).compare(chosen, targets)
    synchronise()
    return time.perf_counter() - start


def synchronise() -> None:
    """Wait for a GPU, if one is used."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def busy_share(model: gg.BaseModel, chosen: dict[str, gg.BaseExplainer], targets: list[int]) -> str:
    """The time of all kernels and copies, which run one after another, as a share of the time
    without the profiler.
    """
    plain = compare(model, chosen, targets)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        compare(model, chosen, targets)
    busy = sum(event.self_device_time_total for event in profile.key_averages()) / 1e6
    return f"GPU busy {busy:.2f} s of {plain:.2f} s ({100 * busy / plain:.0f} %)"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--targets", type=int, nargs="+", default=[200])
    parser.add_argument("--only", choices=EXPLAINERS)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--busy", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = {options.only: EXPLAINERS[options.only]} if options.only else EXPLAINERS
    data = power_law_graph(options.nodes, options.edges).to(options.device)
    model = wrapped_sage(data)
    most = max(options.targets)
    drawn = torch.randperm(options.nodes, generator=make_generator(1))[: most + 2].tolist()
    compare(model, chosen, drawn[-2:])
    for count in options.targets:
        profile = cProfile.Profile()
        if options.profile:
            profile.enable()
        with record_phases() as phases:
            spent = compare(model, chosen, drawn[:count])
        profile.disable()
        parts = ", ".join(f"{name} {value:.2f}" for name, value in phases.items())
        print(f"{len(chosen)} explainers, {count} targets: {spent:.2f} s ({parts})", flush=True)
        if options.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(30)
    if options.busy:
        print(busy_share(model, chosen, drawn[: options.targets[0]]))
    if torch.cuda.is_initialized():
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
