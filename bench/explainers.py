"""Seconds per target: PyG's `Explainer` in a loop against ours, on a graph of Cora's size.

    python bench/explainers.py [--targets 100 1000] [--device cuda] [--only gnn_explainer]

2,708 nodes, about 10,550 edges, 1,433 features of which each node has 18 (bag of words), a GCN of
two layers with 16 hidden units. The peer runs a few targets after one to warm up (it costs the same
for each); ours runs all targets in one call, extraction and predictions included, after a call on
other targets, and the median of three is taken.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from cora import FEATURES, cora_sized, untrained
from pyg_peers import ALGORITHMS, pyg_explainer
from timing import once, seconds
from torch import nn
from torch_geometric.data import Data

import graphgauge as gg

#: ours, how the peer is made, and how many targets of it are enough
PAIRS: dict[str, tuple[Any, Callable[[], Any], int]] = {
    "input_x_gradient": (gg.InputXGradient(), ALGORITHMS["input_x_gradient"], 20),
    "integrated_gradients": (gg.IntegratedGradients(), ALGORITHMS["integrated_gradients"], 3),
    "gnn_explainer": (gg.GNNExplainer(), ALGORITHMS["gnn_explainer"], 3),
    "graphmask": (gg.GraphMask(), ALGORITHMS["graphmask"], 2),
}


def peer_seconds(net: nn.Module, data: Data, algorithm: Any, count: int) -> float:
    """Of PyG's loop, per target."""
    explainer = pyg_explainer(net, algorithm)
    explainer(data.x, data.edge_index, index=count)

    def loop() -> None:
        for target in range(count):
            explainer(data.x, data.edge_index, index=target)

    return once(loop) / count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--targets", type=int, nargs="+", default=[100])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", nargs="+", choices=PAIRS, default=list(PAIRS))
    options = parser.parse_args()
    # Captum
    warnings.filterwarnings("ignore", message="Input Tensor . did not already require gradients")
    data = cora_sized().to(options.device)
    where = (
        torch.cuda.get_device_name(0)
        if options.device.startswith("cuda")
        else f"{torch.get_num_threads()} threads"
    )
    print(
        f"{data.num_nodes} nodes, {data.num_edges} edges, {FEATURES} features; {where}, torch "
        f"{torch.__version__}"
    )
    print(
        f"{'explainer':<22}{'PyG, s per target':>18}{'targets':>9}"
        f"{'ours, s per target':>20}{'ratio':>8}"
    )
    for name in options.only:
        measure(name, data, options.targets)


def measure(name: str, data: Data, sizes: list[int]) -> None:
    """One explainer, for several numbers of targets."""
    ours, algorithm, count = PAIRS[name]
    net = untrained().to(data.x.device)
    model = gg.NodeClassificationModel(net, data)
    ours.explain(model, range(1500, 1510))
    measured = {
        size: seconds(partial(ours.explain, model, range(size)), 3) / size for size in sizes
    }
    peer = peer_seconds(net, data, algorithm(), count)
    for size, mine in measured.items():
        print(f"{name:<22}{peer:18.4f}{size:9d}{mine:20.5f}{peer / mine:8.0f}", flush=True)


if __name__ == "__main__":
    main()
