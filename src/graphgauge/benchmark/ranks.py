"""Ranks and Spearman's correlation, for many lists at once, with ties that may be loose.

    rank_i = 1 + #{j : v_j < v_i - tie} + 1/2 #{j ≠ i : |v_j - v_i| <= tie}

With ``tie = 0`` these are the usual mean ranks. With ``tie = 0.03`` two methods whose means differ
by no more than 0.03 count as tied. Being close is not transitive: the formula looks at pairs, so a
chain of close values does not become one big tie.

    ρ = Σ (r_i - r̄)(s_i - s̄) / sqrt( Σ (r_i - r̄)² Σ (s_i - s̄)² )        NaN where one of the lists is all ties
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ROUNDING = 1e-9  #: 0.87 - 0.84 is a little more than 0.03


def ranks(values: Floats, tie: float = 0.0) -> Floats:
    """Ranks from 1 upwards along the last axis.  (..., E) -> (..., E)

    >>> ranks(np.array([0.84, 0.87, 0.90, 0.5]), tie=0.03).tolist()
    [2.5, 3.0, 3.5, 1.0]
    """
    gap = values[..., :, None] - values[..., None, :]
    allowed = tie + (ROUNDING if tie else 0.0)
    return (gap > allowed).sum(-1) + (np.abs(gap) <= allowed).sum(-1) / 2 + 0.5


def correlation(first: Floats, second: Floats) -> Floats:
    """Pearson's correlation along the last axis; NaN where a list does not vary.
    (..., E), (..., E) -> (...)
    """
    first, second = (values - values.mean(-1, keepdims=True) for values in (first, second))
    scale = np.sqrt((first**2).sum(-1) * (second**2).sum(-1))
    return np.divide(
        (first * second).sum(-1), scale, out=np.full_like(scale, np.nan), where=scale > 0
    )


def spearman(first: Floats, second: Floats, tie: float = 0.0) -> Floats:
    """Spearman's correlation along the last axis.  (..., E), (..., E) -> (...)

    >>> float(spearman(np.array([1.0, 2.0, 4.0]), np.array([1.0, 4.0, 16.0])))
    1.0
    """
    return correlation(ranks(first, tie), ranks(second, tie))
