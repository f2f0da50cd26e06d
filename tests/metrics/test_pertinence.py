"""Pertinence and its calibrated forms against their equations in plain Python, and its chance."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphgauge.core.errors import UndefinedScore
from graphgauge.metrics import (
    absolute_change,
    mean_height,
    p_of_heights,
    rank_of_heights,
    tied_win_share,
    win_share,
)

# many ties, some only within the tolerance
HEIGHTS = st.sampled_from([0.0, 0.2, 0.2 + 5e-7, 0.5, 0.9])
CURVES = st.lists(st.lists(HEIGHTS, min_size=6, max_size=6), min_size=2, max_size=6)


@given(CURVES, st.integers(1, 6))
def test_compare_curves_is_the_papers_and_its_twins_their_definitions(curves, length):
    curve, randoms = curves[0], curves[1:]
    own, others = (torch.tensor([rows], dtype=torch.float64) for rows in (curve, randoms))
    steps = torch.tensor([length])
    won = [
        sum(a < b - 1e-6 for a, b in zip(curve[:length], other, strict=False)) / length
        for other in randoms
    ]
    tied = [
        sum(abs(a - b) <= 1e-6 for a, b in zip(curve[:length], other, strict=False)) / length
        for other in randoms
    ]
    assert win_share(own, others, steps)[0].tolist() == pytest.approx(won, abs=1e-12)
    assert tied_win_share(own, others, steps)[0].tolist() == pytest.approx(
        [w + t / 2 for w, t in zip(won, tied, strict=True)], abs=1e-12
    )
    height = [sum(row[:length]) / length for row in curves]
    above = [
        1.0 if h > height[0] + 1e-6 else 0.5 if abs(h - height[0]) <= 1e-6 else 0.0
        for h in height[1:]
    ]
    as_good = sum(h <= height[0] + 1e-6 for h in height[1:])
    heights = mean_heights(own, others, steps)
    assert rank_of_heights(*heights).item() == pytest.approx(sum(above) / len(above), abs=1e-9)
    assert p_of_heights(*heights).item() == pytest.approx(
        (1 + as_good) / (1 + len(randoms)), abs=1e-9
    )


def mean_heights(curve, random, steps):
    """Mean heights of the curve and of each random one."""
    return mean_height(curve[:, None], steps)[:, 0], mean_height(random, steps)


def random_curves(targets, curves, steps, seed=0):
    """Deletion curves of one decisive edit among ``steps``: 1 until it is made, then 0. All orders
    are random.
    """
    order = torch.rand(
        targets, curves, steps, generator=torch.Generator().manual_seed(seed)
    ).argsort(2)
    place = (order == 0).int().argmax(2)
    return (torch.arange(1, steps + 1) <= place[..., None]).double()


def test_chance_is_one_half_for_the_tied_form_and_not_for_the_papers():
    """The paper counts ties as lost, so that random and constant scores fall below 1/2."""
    drawn = random_curves(2000, 31, 10)
    curve, random, steps = drawn[:, 0], drawn[:, 1:], torch.full((2000,), 10)
    assert abs(tied_win_share(curve, random, steps).mean() - 0.5) < 0.01
    assert win_share(curve, random, steps).mean() < 0.25
    heights = mean_heights(curve, random, steps)
    assert abs(rank_of_heights(*heights).mean() - 0.5) < 0.015


def test_p_values_keep_their_promise_under_chance():
    drawn = random_curves(4000, 20, 60, seed=1)
    found = p_of_heights(*mean_heights(drawn[:, 0], drawn[:, 1:], torch.full((4000,), 60)))
    for level in (0.05, 0.1, 0.5):
        assert (found <= level).double().mean() <= level + 3 * (level * (1 - level) / 4000) ** 0.5


def test_a_curve_and_its_rival_share_one():
    drawn = random_curves(50, 2, 7, seed=2)
    there = tied_win_share(drawn[:, 0], drawn[:, 1:], torch.full((50,), 7))
    back = tied_win_share(drawn[:, 1], drawn[:, :1], torch.full((50,), 7))
    assert (there + back - 1).abs().max() <= 1e-12


def test_curves_without_steps_are_refused():
    for length in (0, 4):
        with pytest.raises(UndefinedScore, match="curves are compared over 1 to 3 steps"):
            win_share(torch.zeros(1, 3), torch.zeros(1, 1, 3), torch.tensor([length]))


SIDES = st.lists(st.floats(-2, 2), min_size=4, max_size=4)


@given(SIDES, SIDES)
def test_change_turns_curves_so_that_lower_means_further_either_way(curve, other):
    start = torch.tensor([0.5], dtype=torch.float64)
    curves = torch.tensor([[curve, other]], dtype=torch.float64)
    assert absolute_change(curves, start)[0].tolist() == [
        [-abs(height - 0.5) for height in row] for row in (curve, other)
    ]
    assert torch.equal(absolute_change(curves[:, 0], start), absolute_change(curves, start)[:, 0])
