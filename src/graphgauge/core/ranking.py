"""Mean ranks: equal values share the mean of the ranks that they take together."""

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_ROUNDING = 1e-9  #: 0.87 - 0.84 is a little more than 0.03


def mean_ranks(values: NDArray[np.floating]) -> _Floats:
    """Ranks from 1 upwards; equal values share the mean of their ranks.  (n,) -> (n,)

    Mean ranks are multiples of 1/2, so they and their sums are exact. NaN must not be among the
    values.

    >>> mean_ranks(np.array([5.0, 1.0, 5.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(size) - (size - 1) / 2)[group], dtype=np.float64)


def loose_mean_ranks(values: _Floats, tie: float = 0.0) -> _Floats:
    """Mean ranks along the last axis; values that differ by at most ``tie`` count as equal.

    (..., E) -> (..., E)

        rank_i = 1 + #{j : v_j < v_i - tie} + 1/2 #{j ≠ i : |v_j - v_i| <= tie}

    Being close is not transitive: the formula looks at pairs, so a chain of close values does not
    become one big tie. All pairs are compared, so lists should be short. ``tie=0`` gives
    `mean_ranks`.

    >>> loose_mean_ranks(np.array([0.84, 0.87, 0.90, 0.5]), tie=0.03).tolist()
    [2.5, 3.0, 3.5, 1.0]
    """
    gap = values[..., :, None] - values[..., None, :]
    allowed = tie + (_ROUNDING if tie else 0.0)
    ranks: _Floats = (gap > allowed).sum(-1) + (np.abs(gap) <= allowed).sum(-1) / 2 + 0.5
    return ranks
