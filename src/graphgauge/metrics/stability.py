"""Stability: how much two explanations of one target, made independently, are alike.

For score vectors a, b with â = a / |a| (Euclidean),

    likeness(a, b) = 1 - |â - b̂| / 2          1: equal up to scale; 0: opposite

Edges: over E_rel. Features: the target's own scores (A) and those of all other nodes (B) apart,

    likeness = 1 - (d_A + d_B) / 2,   d_X = |f̂_X,1 - f̂_X,2| / 2          graphs have no A, lonely targets no B: the other alone

As in the paper, but: a vector of zeros counts as one that nothing changes (both zero: 1; one zero: 1/2), and B leaves the target
out (the paper's text does, its algorithm does not). 0 is not chance: independent scores reach 0.29 (normal), 0.65 (uniform) and
0.965 (σ(0.1 n), what GNNExplainer's and GraphMask's masks start from). `corrected` puts chance at 0.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from graphgauge.core.errors import UndefinedScore


def unit(rows: Tensor) -> Tensor:
    """Rows of length 1; rows of zeros stay.  (R, n)"""
    size = rows.norm(dim=-1, keepdim=True)
    return torch.where(size > 0, rows / torch.where(size > 0, size, 1), 0)


def distance(first: Tensor, second: Tensor) -> Tensor:
    """Half the distance of the unit vectors; 0 where both are zero, 1/2 where one is.  (R, n), (R, n) -> (R,)"""
    return (unit(first) - unit(second)).norm(dim=-1) / 2


def edge_stability(first: Tensor, second: Tensor) -> Tensor:
    """Likeness of edge scores (the paper's StabilityPairEdge).  (R, E_rel), (R, E_rel) -> (R,)

    >>> edge_stability(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 0.0]]))
    tensor([1.])
    """
    if first.size(-1) == 0:
        raise UndefinedScore("edge stability compares scores of edges, but there is no edge: record the target as 'empty'.")
    return 1 - distance(first, second)


def feature_stability(first: Tensor, second: Tensor, is_target: Tensor) -> Tensor:
    """Likeness of feature scores (the paper's StabilityPairFeature).  (R, n, F), (R, n, F), (n,) bool -> (R,)"""
    blocks = [part for part in (is_target, ~is_target) if bool(part.any())]
    if not blocks or first.size(-1) == 0:
        raise UndefinedScore("feature stability compares scores of features, but there are none.")
    apart = [distance(first[:, part].flatten(1), second[:, part].flatten(1)) for part in blocks]
    return 1 - torch.stack(apart).mean(0)


class Binomial(NamedTuple):
    """The mean over all pairs of M explanations, and its standard error by the jackknife over explanations."""

    mean: Tensor
    error: Tensor


def binomial(likeness: Tensor) -> Binomial:
    """From the likeness of all pairs of M explanations, a symmetric matrix.  (M, M) -> (), ()

    Pairs share explanations, so the error is taken over explanations left out one at a time: with M = 15 the interval of two
    errors then covers the truth in 95 % of cases, with the naive error in 53 %.
    """
    count = likeness.size(0)
    if count < 3:
        raise UndefinedScore(f"the binomial form needs 3 explanations or more for its error, but there are {count}.")
    off = likeness.double() * (1 - torch.eye(count, dtype=torch.float64, device=likeness.device))
    total = off.sum() / 2
    without = (total - off.sum(1)) / ((count - 1) * (count - 2) / 2)
    error = ((count - 1) / count * (without - without.mean()).square().sum()).sqrt()
    return Binomial(total / (count * (count - 1) / 2), error)


def corrected(mean: Tensor, chance: Tensor) -> Tensor:
    """Stability with chance at 0 and 1 at 1:  (S - S0) / (1 - S0); NaN where chance is 1 (nothing can vary).  (R,), (R,) -> (R,)"""
    return torch.where(chance < 1, (mean - chance) / torch.where(chance < 1, 1 - chance, 1), torch.nan)
