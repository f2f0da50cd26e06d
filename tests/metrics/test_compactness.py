"""Effective Compactness, against its equation in plain Python."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphgauge.core.errors import BadSetting, UndefinedScore
from graphgauge.metrics import class_flips, effective_compactness, value_flips


@given(
    st.lists(
        st.tuples(st.lists(st.booleans(), min_size=12, max_size=12), st.integers(1, 15)),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 12),
)
def test_ec_is_the_smallest_number_of_edits_that_flips_or_the_bound(targets, cap):
    flips, candidates = (
        torch.tensor([row for row, _ in targets]),
        torch.tensor([count for _, count in targets]),
    )
    found = effective_compactness(flips, candidates, cap)
    for row, count, ec, flipped in zip(
        *map(torch.Tensor.tolist, (flips, candidates, *found)), strict=True
    ):
        flipping = {i for i in range(1, min(cap, count, 12) + 1) if row[i - 1]}
        assert ec == min(flipping | {cap, count})
        assert flipped == bool(flipping)


def test_a_class_flips_when_another_exceeds_it_by_more_than_the_tolerance():
    prob = torch.tensor(
        [[[0.5, 0.5, 0.0], [0.4, 0.4 + 5e-7, 0.2], [0.4, 0.41, 0.19], [0.2, 0.1, 0.7]]],
        dtype=torch.float64,
    )
    assert class_flips(prob, torch.tensor([0])).tolist() == [[False, False, True, True]]
    assert class_flips(prob, torch.tensor([2])).tolist() == [[True, True, True, False]]


def test_a_value_flips_either_way():
    assert value_flips(
        torch.tensor([[1.0, 1.25, 0.5, 1.5]]), torch.tensor([1.0]), 0.25
    ).tolist() == [[False, False, True, True]]


def test_no_candidates_and_no_cap_are_errors():
    with pytest.raises(UndefinedScore, match="a target has none to make"):
        effective_compactness(torch.zeros(1, 0, dtype=torch.bool), torch.tensor([0]))
    with pytest.raises(BadSetting, match="cap must be 1 or more"):
        effective_compactness(torch.zeros(1, 1, dtype=torch.bool), torch.tensor([1]), cap=0)
