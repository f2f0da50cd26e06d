"""Exact two-sample tests that allow ties, and effect sizes.

The new values are x_1..x_n, the old ones y_1..y_m, and N = n + m. Both tests condition on the
pooled values: under the null hypothesis, each of the C(N, n) ways to call n of them new is equally
likely. So the p-values are exact for any distribution and with any ties.

    Kolmogorov-Smirnov    D = max over v of |share of x <= v - share of y <= v|
                          p = P(D >= the observed D)
    Mann-Whitney          W = sum of the mean ranks of x among all values
                          p = 2 P(W as extreme, on the same side), at most 1

For D, the pooled values are drawn in rising order. After t draws with i new values, the next one is
new with probability (n - i) / (N - t). The probability that reaches the bound is collected, but
only where a group of equal values ends. For W, the same draws are counted together with the sum of
ranks. Where that table would be too large, ranks are first rounded to a coarser grid; the result is
then an exact test of the rounded ranks.

Far above the level at which a decision is made, the functions return the large-sample p-value,
which is cheaper. Every p-value at or below the level is exact, so a decision at that level errs at
most as often as the level says.

`effect` is Cliff's delta, P(x > y) - P(x < y): it lies between -1 and 1, and is 0 without a
difference. `shift` is the difference of the means, in standard deviations of the old values.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from graphgauge.core import UndefinedScore, mean_ranks

FloatArray = NDArray[np.float64]
#: large-sample p-values above these, and above ten times the level, are taken as they are
_ROUGH_LIMITS = {"ks": 0.05, "rank": 0.0}
_ALWAYS_EXACT_SIZE = 40  #: values up to which everything is exact
_MOST_CELLS = 2**18  #: of the table behind an exact rank test
TEST_NAMES = ("ks", "rank")


@dataclass(frozen=True)
class SampleDifference:
    """How two samples differ."""

    p: dict[str, float]  #: of each test
    distance: float  #: D
    effect: float  #: Cliff's delta, above 0 where the new values are larger
    shift: float | None  #: (mean new - mean old) / SD old; None where the old values are all equal


def compare_samples(new: FloatArray, old: FloatArray, level: float = 0.1) -> SampleDifference:
    """Compare two samples of at least two values each; p-values up to ``level`` are exact.

    Args:
        new: New values (n,).
        old: Values of the baseline (m,).
        level: The level at which the caller decides.

    Raises:
        UndefinedScore: A sample has fewer than two values.

    >>> found = compare_samples(np.array([3.0, 4.0, 5.0]), np.array([0.0, 1.0, 2.0]))
    >>> round(found.p["ks"], 9), round(found.p["rank"], 9), found.effect, found.shift
    (0.1, 0.1, 1.0, 3.0)
    """
    if min(len(new), len(old)) < 2:
        raise UndefinedScore(
            f"Samples of {len(new)} and {len(old)} values cannot be compared: "
            "each needs two values or more."
        )
    spread = float(old.std(ddof=1))
    shift = None if spread == 0 else float(new.mean() - old.mean()) / spread
    above = _rank_sum(new, old) / 2 - len(new) * (len(new) + 1) / 2
    p = {"ks": _ks_p_value(new, old, level), "rank": _rank_sum_p_value(new, old, level)}
    return SampleDifference(
        p,
        _ks_distance(new, old) / (len(new) * len(old)),
        2 * above / (len(new) * len(old)) - 1,
        shift,
    )


# --- Kolmogorov and Smirnov -----------------------------------------------------------------------


def _ks_distance(new: FloatArray, old: FloatArray) -> int:
    """Return the Kolmogorov-Smirnov distance D times n m, which is a whole number."""
    values = np.union1d(new, old)
    below = np.searchsorted(np.sort(new), values, side="right") * len(old)
    return int(np.abs(below - np.searchsorted(np.sort(old), values, side="right") * len(new)).max())


def _is_rough_enough(test: str, rough: float, level: float, size: int) -> bool:
    """Whether a large-sample p-value is accurate enough for a decision at ``level``."""
    return size > _ALWAYS_EXACT_SIZE and rough > max(_ROUGH_LIMITS[test], min(1.0, 10 * level))


def _ks_p_value(new: FloatArray, old: FloatArray, level: float = 0.1) -> float:
    """Return P(D >= the observed D), given the pooled values."""
    seen, size = _ks_distance(new, old), math.sqrt(len(new) * len(old) / (len(new) + len(old)))
    rough = _kolmogorov_tail(size * seen / (len(new) * len(old)))
    return (
        rough
        if _is_rough_enough("ks", rough, level, len(new) + len(old))
        else _exact_ks_p_value(new, old, seen)
    )


def _kolmogorov_tail(x: float) -> float:
    """Return P(K >= x) of Kolmogorov's limit distribution, 2 sum (-1)^(k-1) exp(-2 k^2 x^2).

    >>> round(_kolmogorov_tail(1.3581), 4)
    0.05
    """
    if x < 0.2:
        return 1.0
    return min(
        1.0,
        max(0.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * x * x) for k in range(1, 101))),
    )


def _exact_ks_p_value(new: FloatArray, old: FloatArray, seen: int) -> float:
    """Draw the pooled values one by one and collect the probability of reaching the bound."""
    n, m, total = len(new), len(old), len(new) + len(old)
    pooled = np.sort(np.concatenate([new, old]))
    ends = np.append(pooled[1:] != pooled[:-1], True)
    count, chance, reached = np.arange(n + 1), np.zeros(n + 1), 0.0
    chance[0] = 1.0
    for t in range(total):
        drawn = chance * (n - count) / (total - t)
        chance = chance - drawn
        chance[1:] += drawn[:-1]
        if ends[t]:
            outside = np.abs(count * m - (t + 1 - count) * n) >= seen
            reached += float(chance[outside].sum())
            chance[outside] = 0.0
    return min(1.0, reached)


# --- Mann and Whitney -----------------------------------------------------------------------------


def _double_ranks(values: FloatArray) -> NDArray[np.int64]:
    """Return twice the mean rank of each value, a whole number from 2 upwards.  (N,) -> (N,)"""
    return (2 * mean_ranks(values)).astype(np.int64)


def _rank_sum(new: FloatArray, old: FloatArray) -> int:
    """Return twice the sum of the mean ranks of the new values."""
    return int(_double_ranks(np.concatenate([new, old]))[: len(new)].sum())


def _rank_sum_p_value(new: FloatArray, old: FloatArray, level: float = 0.1) -> float:
    """Return the two-sided p-value of the rank sum, given the pooled values."""
    small, large = (new, old) if len(new) <= len(old) else (old, new)
    ranks = _double_ranks(np.concatenate([small, large]))
    rough = _normal_p_value(ranks, len(small))
    if _is_rough_enough("rank", rough, level, len(ranks)):
        return rough
    is_low = ranks[: len(small)].sum() <= len(small) * (len(ranks) + 1)
    return min(
        1.0, 2 * _exact_lower_tail(ranks if is_low else 2 * len(ranks) + 2 - ranks, len(small))
    )


def _normal_p_value(ranks: NDArray[np.int64], n: int) -> float:
    """Return the large-sample p-value of the rank sum.

    ``ranks`` (N,) are the doubled ranks of all values; the first n belong to the smaller sample.
    """
    total, spread = len(ranks), float(ranks.var() / 4)
    variance = n * (total - n) / (total - 1) * spread
    if variance == 0:
        return 1.0
    gap = max(0.0, abs(float(ranks[:n].sum()) / 2 - n * (total + 1) / 2) - 0.5)
    return 2 * NormalDist().cdf(-gap / math.sqrt(variance))


def _exact_lower_tail(ranks: NDArray[np.int64], n: int) -> float:
    """Return P(the sum of n randomly drawn ranks <= the sum of the first n)."""
    score = ranks - ranks.min()
    score = score // max(1, -(-(n + 1) * (int(score[:n].sum()) + 1) // _MOST_CELLS))
    most = int(score[:n].sum())
    table = np.zeros((n + 1, most + 1))
    table[0, 0] = 1.0
    for t, own in enumerate(sorted(score[score <= most].tolist())):
        # with fewer so far, the rest would exceed the sum
        low = max(0, n - most // own) if own else 0
        top = min(t, n - 1) + 1
        wide = min(most, top * own) + 1  # no sum is larger yet
        share = ((n - np.arange(low, top)) / (len(score) - t))[:, None]
        drawn = table[low:top, : max(0, wide - own)] * share
        table[low:top, :wide] *= 1 - share
        table[low + 1 : top + 1, own:wide] += drawn
    return float(table[n].sum())
