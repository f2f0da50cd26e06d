"""Seconds to cut the computation graphs of 100 targets: `k_hop_subgraph` in a loop against one
batched call.

    python bench/extraction.py [--edges 1000000] [--targets 100] [--hops 2] [--repeat 7]

Both cut the L-hop induced graph and relabel it. Then the same call on a graph ten times larger of
the same local shape (ten disjoint copies, targets spread over all), and with the halo that
degree-normalised layers need, where the peer cuts one hop more. Times are medians in one run;
building the sorted lists, once per model, is shown apart.
"""

import argparse
import time

import torch
from timing import seconds
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

from graphgauge.subgraphs import HALOS, Extractor, read_single_graph


def random_data(num_edges: int, copies: int = 1) -> Data:
    """``copies`` disjoint graphs of ``num_edges / copies`` random edges, ten per node."""
    size = num_edges // copies
    random = torch.Generator().manual_seed(0)
    one = torch.randint(size // 10, (2, size), generator=random)
    edge_index = torch.cat([one + copy * (size // 10) for copy in range(copies)], dim=1)
    return Data(x=torch.zeros(num_edges // 10, 1), edge_index=edge_index)


def loop(data: Data, targets: Tensor, hops: int) -> None:
    """The peer: one target after another."""
    for target in targets.tolist():
        k_hop_subgraph(target, hops, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("edges", 1_000_000), ("targets", 100), ("hops", 2), ("repeat", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    small, large = random_data(options.edges), random_data(10 * options.edges, copies=10)
    random = torch.Generator().manual_seed(1)
    targets = torch.randint(small.num_nodes, (options.targets, 1), generator=random)
    spread = targets + torch.arange(options.targets)[:, None] % 10 * small.num_nodes

    def ours(extractor: Extractor, chosen: Tensor, halo: str, scope: str) -> float:
        return seconds(
            lambda: extractor.extract(chosen, options.hops, HALOS.index(halo), scope),
            options.repeat,
        )

    start = time.perf_counter()
    here, there = (
        Extractor(read_single_graph(small, set())),
        Extractor(read_single_graph(large, set())),
    )
    _ = here.into
    build_small = time.perf_counter() - start
    _ = there.into
    print(
        f"{options.targets} targets, {options.hops} hops, {torch.get_num_threads()} threads, "
        f"{options.edges:,} edges"
    )
    print(f"sorted lists, once per model                       {build_small:9.4f} s")
    for label, halo, scope, hops in (
        ("induced edges", "none", "induced", options.hops),
        ("with halo 'in'", "in", "messages", options.hops + 1),
    ):
        peer = seconds(lambda hops=hops: loop(small, targets, hops), 1)  # type: ignore[misc]
        mine = ours(here, targets, halo, scope)
        bigger = ours(there, spread, halo, scope)
        print(f"\n{label}")
        print(f"  k_hop_subgraph in a loop, {hops} hops                 {peer:9.4f} s")
        print(
            f"  graphgauge, one call                             {mine:9.4f} s   "
            f"{peer / mine:6.1f} times as fast"
        )
        print(
            f"  graphgauge, graph ten times larger               {bigger:9.4f} s   "
            f"{bigger / mine:6.2f} times the time"
        )


if __name__ == "__main__":
    main()
