"""Pareto dominance: who is as good as another in everything and better in something."""

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def dominates(first: _Floats, second: _Floats, tolerance: float = 0.0) -> Bools:
    """Whether the first point dominates the second; more is better on every axis.

    A point with NaN neither dominates nor is dominated.  (..., M), (..., M) -> (...)

    Args:
        first: Points with M coordinates.  (..., M)
        second: The points that they are compared with; the shapes broadcast.  (..., M)
        tolerance: Coordinates that differ by at most so much count as equal. By default only equal
            numbers do.

    >>> dominates(np.array([[2.0, 1.0], [2.0, 0.0]]), np.array([1.0, 1.0])).tolist()
    [True, False]
    """
    is_as_good = (first >= second - tolerance).all(-1)
    return np.asarray(is_as_good & (first > second + tolerance).any(-1))


def is_on_front(points: _Floats, tolerance: float = 0.0) -> Bools:
    """Which points no other one dominates, more being better on every axis.

    A point with NaN is on no front.  (..., E, M) -> (..., E)

    >>> is_on_front(np.array([[1.0, 3.0], [2.0, 2.0], [1.0, 2.0], [2.0, 2.0]])).tolist()
    [True, True, False, True]
    """
    is_dominated = dominates(points[..., None, :, :], points[..., :, None, :], tolerance).any(-1)
    return np.asarray(~is_dominated & ~np.isnan(points).any(-1))
