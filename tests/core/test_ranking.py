"""Mean ranks against their definition, value by value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphgauge.core.ranking import loose_mean_ranks, mean_ranks


def literal_ranks(values, tie=0.0):
    """One plus those below, plus half of the others that are equal, one by one."""
    return [
        1
        + sum(other < own - tie for other in values)
        + sum(abs(other - own) <= tie for k, other in enumerate(values) if k != i) / 2
        for i, own in enumerate(values)
    ]


@given(st.lists(st.integers(-2, 2), max_size=12))  # five values: many ties
def test_mean_ranks_equal_their_definition_exactly(values):
    array = np.array(values, dtype=np.float64)
    assert mean_ranks(array).tolist() == literal_ranks(values)
    assert loose_mean_ranks(array).tolist() == literal_ranks(values)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(0, 3))
def test_values_within_the_tie_count_as_equal(values, tie):
    array = np.array(values, dtype=np.float64)
    assert loose_mean_ranks(array, tie).tolist() == literal_ranks(values, tie)


def test_loose_ranks_are_taken_along_the_last_axis():
    rows = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]])
    assert loose_mean_ranks(rows).tolist() == [mean_ranks(row).tolist() for row in rows]


@pytest.mark.parametrize("values", [[0.0, -0.0], [1e-300, 0.0], [np.inf, -np.inf, 0.0]])
def test_zeros_of_both_signs_are_equal_and_infinity_has_a_rank(values):
    assert mean_ranks(np.array(values)).tolist() == literal_ranks(values)
