"""Pareto fronts against their definition, point by point."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphgauge.core.pareto import dominates, is_on_front

POINTS = st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=8)


def literal_dominates(first, second):
    """As good in everything, better in something."""
    pairs = list(zip(first, second, strict=True))
    return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)


@given(POINTS)
def test_fronts_equal_their_definition(points):
    on_front = is_on_front(np.array(points, dtype=np.float64))
    assert on_front.tolist() == [
        not any(literal_dominates(other, own) for other in points) for own in points
    ]


@given(POINTS)
def test_many_fronts_at_once_are_each_of_them(points):
    array = np.array(points, dtype=np.float64)
    both = is_on_front(np.stack([array, -array]))
    assert both.tolist() == [is_on_front(array).tolist(), is_on_front(-array).tolist()]


def test_differences_within_the_tolerance_are_none():
    points = np.array([[1.0, 1.0], [1.0 + 1e-12, 1.0]])
    assert is_on_front(points).tolist() == [False, True]
    assert is_on_front(points, tolerance=1e-9).tolist() == [True, True]


def test_nan_is_on_no_front_and_dominates_nobody():
    points = np.array([[np.nan, 9.0], [1.0, 1.0]])
    assert is_on_front(points).tolist() == [False, True]
    assert not dominates(points[0], points[1])
    assert not dominates(points[1], points[0])
