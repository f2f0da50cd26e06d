"""Stability: how similar two explanations of one target are that were made independently.

For score vectors a, b with â = a / |a| (Euclidean),

    similarity(a, b) = 1 - |â - b̂| / 2          1: equal up to scale; 0: opposite

Edges: over E_rel. Features: the target's own scores (A) and those of all other nodes (B) are two
blocks,

    similarity = 1 - (d_A + d_B) / 2,   d_X = |f̂_X,1 - f̂_X,2| / 2

Graphs have no block A, and targets without other nodes have no block B: the other one counts alone.

This is the paper's definition with two readings: a vector of zeros stays as it is (both zero: 1;
one zero: 1/2), and B leaves the target out (the paper's text does, its algorithm does not). 0 is
not chance: see `graphgauge.metrics.stability_by_chance`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from graphgauge.core import UndefinedScore
from graphgauge.metrics.base import Metric, stack_values
from graphgauge.metrics.bundles import Pairs

NO_VALUE = torch.tensor(torch.nan, dtype=torch.float64)


def edge_stability(first: Tensor, second: Tensor) -> Tensor:
    """Similarity of edge scores (the paper's StabilityPairEdge).  (R, E_rel), (R, E_rel) -> (R,)

    Args:
        first: Scores of the relevant edges, in R explanations.
        second: Those of the explanations to compare with.

    >>> edge_stability(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 0.0]]))
    tensor([1.])
    """
    check_has_edges(first)
    return 1 - half_distance(first, second)


def feature_stability(first: Tensor, second: Tensor, is_target: Tensor) -> Tensor:
    """Similarity of feature scores (the paper's StabilityPairFeature).

    (R, n, F), (R, n, F), (n,) bool -> (R,)

    Args:
        first: Scores of the features of all nodes, in R explanations.
        second: Those of the explanations to compare with.
        is_target: Which nodes are the target's own.
    """
    blocks = checked_score_blocks(first, is_target)
    distances = [
        half_distance(first[:, block].flatten(1), second[:, block].flatten(1)) for block in blocks
    ]
    return 1 - torch.stack(distances).mean(0)


def score_blocks(is_target: Tensor) -> list[Tensor]:
    """The target's nodes and all others, where there are any.  (n,) bool -> up to two (n,) bool"""
    return [block for block in (is_target, ~is_target) if bool(block.any())]


def checked_score_blocks(score: Tensor, is_target: Tensor) -> list[Tensor]:
    """The blocks of `score_blocks`; raises UndefinedScore where there is nothing to compare."""
    blocks = score_blocks(is_target)
    if not blocks or score.size(-1) == 0:
        raise UndefinedScore("feature stability compares scores of features, but there are none.")
    return blocks


def check_has_edges(score: Tensor) -> None:
    """Raise UndefinedScore for scores of no edge.  (R, E)"""
    if score.size(-1) == 0:
        raise UndefinedScore(
            "edge stability compares scores of edges, but there is no edge: record the target as "
            "'empty'."
        )


def half_distance(first: Tensor, second: Tensor) -> Tensor:
    """Half the distance of the unit vectors; 0 where both are zero, 1/2 where one is.

    (..., n), (..., n) -> (...)

    Args:
        first: Vectors of scores.
        second: The vectors to compare with.

    >>> half_distance(torch.tensor([[2.0, 0.0]]), torch.tensor([[-1.0, 0.0]]))
    tensor([1.])
    """
    return (unit_rows(first) - unit_rows(second)).norm(dim=-1) / 2


def unit_rows(rows: Tensor) -> Tensor:
    """Rows scaled to length 1; rows of zeros stay.  (..., n)"""
    if rows.size(-1) == 0:
        return rows
    # scaled first, because squares of very large or very small scores overflow or vanish
    largest = rows.abs().amax(-1, keepdim=True)
    scaled = rows / torch.where(largest > 0, largest, 1)
    length = scaled.norm(dim=-1, keepdim=True)
    return scaled / torch.where(length > 0, length, 1)


class JackknifeEstimate(NamedTuple):
    """Mean similarity over all pairs of M explanations, and its standard error."""

    mean: Tensor
    error: Tensor


def jackknife_over_pairs(similarity: Tensor) -> JackknifeEstimate:
    """Mean over all pairs of M explanations, with the jackknife's error.  (M, M) -> (), ()

    Pairs share explanations, so the error is computed by leaving out one explanation at a time.
    With M = 15 the interval of two errors then covers the truth in 95 % of cases; with the error
    of independent pairs it would be 53 %.

    Args:
        similarity: The similarity of all pairs, a symmetric matrix.
    """
    count = similarity.size(0)
    if count < 3:
        raise UndefinedScore(
            f"the binomial form needs 3 explanations or more for its error, but there are {count}."
        )
    diagonal = torch.eye(count, dtype=torch.float64, device=similarity.device)
    off_diagonal = similarity.double() * (1 - diagonal)
    total = off_diagonal.sum() / 2
    mean_without = (total - off_diagonal.sum(1)) / ((count - 1) * (count - 2) / 2)
    spread = (mean_without - mean_without.mean()).square().sum()
    error = ((count - 1) / count * spread).sqrt()
    return JackknifeEstimate(total / (count * (count - 1) / 2), error)


def check_side_given(first: Sequence[Tensor], pairs: Pairs, side: str) -> None:
    """Raise UndefinedScore where the pairs hold scores, but none of this side.

    Args:
        first: What the pairs hold of this side.
        pairs: The pairs.
        side: "edge" or "feature", for the message.
    """
    if pairs.present_parts and not len(first):
        raise UndefinedScore(
            f"{side} stability was asked for, but the pairs hold no {side} scores: the explainer "
            "gives none."
        )


@dataclass(frozen=True)
class EdgeStability(Metric[Pairs]):
    """The paper's: mean similarity of edge scores over pairs.

    For the binomial form, give all pairs of M explanations.
    """

    name = "edge_stability"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "pairs"
    role = "paper"

    def __call__(self, bundle: Pairs) -> Tensor:
        """(T,)"""
        check_side_given(bundle.first_edge, bundle, "edge")
        return stack_values(
            [
                edge_stability(a, b).double().mean().cpu() if a.size(1) else NO_VALUE
                for a, b in zip(bundle.first_edge, bundle.second_edge, strict=True)
            ]
        )


@dataclass(frozen=True)
class FeatureStability(Metric[Pairs]):
    """The paper's: mean similarity of feature scores over pairs, in two blocks.

    The blocks are the target's own scores and those of all other nodes.
    """

    name = "feature_stability"
    bounds = (0.0, 1.0)
    higher_is_better = True
    chance = None
    needs = "pairs"
    role = "paper"

    def __call__(self, bundle: Pairs) -> Tensor:
        """(T,)"""
        check_side_given(bundle.first_feature, bundle, "feature")
        targets = zip(bundle.first_feature, bundle.second_feature, bundle.is_target, strict=True)
        return stack_values(
            [
                feature_stability(a, b, is_target).double().mean().cpu()
                if a[0].numel()
                else NO_VALUE
                for a, b, is_target in targets
            ]
        )
