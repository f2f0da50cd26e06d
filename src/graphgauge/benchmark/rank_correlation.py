"""Spearman's correlation for many lists at once, with ties that may be loose.

With ``tie = 0.03`` two methods whose means differ by no more than 0.03 count as tied
(`core.loose_mean_ranks`). With ranks r and s of two lists,

    ρ = Σ (r_i - r̄)(s_i - s̄) / sqrt( Σ (r_i - r̄)² Σ (s_i - s̄)² )

which is NaN where one of the lists is all ties.
"""

import numpy as np
from numpy.typing import NDArray

from graphgauge.core import loose_mean_ranks

Floats = NDArray[np.float64]


def _pearson_correlation(first: Floats, second: Floats) -> Floats:
    """Pearson's correlation along the last axis; NaN where a list is constant.  (..., E), (..., E)
    -> (...)
    """
    first, second = (values - values.mean(-1, keepdims=True) for values in (first, second))
    scale = np.sqrt((first**2).sum(-1) * (second**2).sum(-1))
    return np.divide(
        (first * second).sum(-1), scale, out=np.full_like(scale, np.nan), where=scale > 0
    )


def spearman_correlation(first: Floats, second: Floats, tie: float = 0.0) -> Floats:
    """Spearman's correlation along the last axis; NaN where a list is all ties.

    Args:
        first: Values of E items, in as many lists as the leading axes hold.  (..., E)
        second: Values of the same items; the leading axes must be broadcastable.  (..., E)
        tie: Values that differ by no more than this count as tied.

    Returns:
        One ρ for each list.  (...)

    >>> float(spearman_correlation(np.array([1.0, 2.0, 4.0]), np.array([1.0, 4.0, 16.0])))
    1.0
    """
    return _pearson_correlation(loose_mean_ranks(first, tie), loose_mean_ranks(second, tie))
