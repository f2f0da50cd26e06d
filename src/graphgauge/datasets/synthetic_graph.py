"""Synthetic: a random graph whose node labels follow a known rule, so that the truth is known.

G(n, m): m = 75,162 of all pairs of n = 10,000 nodes, all choices equally likely. Each node has 16
independent standard normal features. With N_1(v) the neighbours of v and N_2(v) the nodes at a
distance of exactly two,

    s_u = sum over f of w_f x_uf
    r_v = h_0 s_v + h_1 (sum of s over N_1(v)) + h_2 (sum of s over N_2(v))
    y_v = r_v / σ

    w_f = (-3/4)^f,  f = 0..15                        ``label_weights``
    h   = (1, 1/4, 1/16)                              ``hop_weights``
    σ   = SD of r over all nodes, dividing by n       ``label_scale``

So the first features matter most, with alternating sign, and the last hardly at all: |w_15| =
0.013. The paper asks for "an arbitrary, weighted aggregation" of this kind and does not say which.

Each hop counts a quarter, so that the paper's networks can learn most of it. At the mean degree of
15, two linear layers of GCN weigh hops by (16, 2, 1) / 256: the squared normalised adjacency has d
+ 1, 2 and 1 over (d + 1)². With 1, 15 and 15 * 14 nodes at the three distances and independent s,
the squared correlation with 16 : 4 : 1 is (256 + 15 * 8 + 210)² / ((256 + 15 * 4 + 210) (256 + 15 *
16 + 210)) = 0.92; with h = (1, 1/2, 1/4) it would be 0.74.

Everything is computed in float64; no n x n matrix is made.
"""

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from graphgauge.core import derive_seed, make_generator
from graphgauge.datasets.node_pairs import both_directions, decode_pairs, random_pairs

_NUM_FEATURES, _FEATURE_DECAY = 16, -0.75
_HOP_WEIGHTS = (1.0, 1 / 4, 1 / 16)


def synthetic(seed: int = 0, num_nodes: int = 10_000, num_edges: int = 75_162) -> Data:
    """Generate the graph with its features, labels ``y``, and the rule behind them.

    Args:
        seed: Seed of edges and features.
        num_nodes: Number of nodes.
        num_edges: Number of pairs; each is stored in both directions.

    >>> data = synthetic(num_nodes=50, num_edges=100)
    >>> data.x.shape, data.edge_index.shape, data.hop_weights
    (torch.Size([50, 16]), torch.Size([2, 200]), tensor([1.0000, 0.2500, 0.0625]))
    """
    pairs = random_pairs(
        num_nodes, num_edges, make_generator(derive_seed(seed, "synthetic", "edges"))
    )
    x = torch.randn(
        num_nodes,
        _NUM_FEATURES,
        generator=make_generator(derive_seed(seed, "synthetic", "features")),
    )
    edge_index, weight = (
        both_directions(pairs, num_nodes),
        _FEATURE_DECAY ** torch.arange(_NUM_FEATURES, dtype=torch.float64),
    )
    raw = _aggregate_hops(x.double() @ weight, edge_index)
    scale = raw.std(correction=0)
    return Data(
        x=x,
        edge_index=edge_index,
        y=(raw / scale).float(),
        label_weights=weight.float(),
        hop_weights=torch.tensor(_HOP_WEIGHTS),
        label_scale=scale.float(),
    )


def _aggregate_hops(signal: Tensor, edge_index: Tensor) -> Tensor:
    """h_0 s_v + h_1 (sum over the neighbours) + h_2 (sum at distance two).  (N,), (2, E) -> (N,)"""
    at_node, at_one_hop, at_two_hops = _HOP_WEIGHTS
    return (
        at_node * signal
        + at_one_hop * _sum_neighbours(signal, edge_index)
        + at_two_hops * _sum_neighbours(signal, _pairs_at_distance_two(edge_index, len(signal)))
    )


def _sum_neighbours(signal: Tensor, edge_index: Tensor) -> Tensor:
    """The sum over the sources of the incoming edges of each node.  (N,), (2, E) -> (N,)"""
    source, target = edge_index
    return torch.zeros_like(signal).index_add_(0, target, signal[source])


def _pairs_at_distance_two(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The pairs (u, v) with a common neighbour that are neither linked nor equal, in both
    directions.  (2, E) sorted -> (2, P)

    Every edge (u, w) is followed by the edges out of w, which are consecutive in the sorted list:
    sum over edges of deg(w) paths.
    """
    source, target = edge_index
    out = degree(source, num_nodes, dtype=torch.int64)
    first = out.cumsum(0) - out
    length = out[target]
    step = torch.arange(int(length.sum())) - (length.cumsum(0) - length).repeat_interleave(length)
    start, end = (
        source.repeat_interleave(length),
        target[first[target].repeat_interleave(length) + step],
    )
    codes = (start * num_nodes + end)[start != end].unique()
    return decode_pairs(codes[~torch.isin(codes, source * num_nodes + target)], num_nodes)
