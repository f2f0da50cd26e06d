"""Two-sample tests.

P-values equal those of the definition, which counts all arrangements. Effects are computed by hand.
"""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphgauge.monitor.two_sample_tests as two_samples
from graphgauge.core.errors import UndefinedScore
from graphgauge.monitor.two_sample_tests import (
    _exact_ks_p_value,
    _exact_lower_tail,
    _ks_p_value,
    _normal_p_value,
    _rank_sum_p_value,
    compare_samples,
)


def largest_gap(x, y):
    """D, value by value."""
    return max(
        abs(sum(a <= v for a in x) / len(x) - sum(b <= v for b in y) / len(y)) for v in {*x, *y}
    )


def mean_rank_sum(x, y):
    """Each value's rank is the mean of the places it and its equals take."""
    whole = sorted([*x, *y])
    return sum(np.mean([place for place, value in enumerate(whole, 1) if value == v]) for v in x)


def arrangements(x, y, statistic):
    """The statistic for every way to call len(x) of the values new."""
    whole = [*x, *y]
    for chosen in combinations(range(len(whole)), len(x)):
        yield statistic(
            [whole[k] for k in chosen], [whole[k] for k in range(len(whole)) if k not in chosen]
        )


def literal_ks(x, y):
    every = list(arrangements(x, y, largest_gap))
    return sum(value >= largest_gap(x, y) - 1e-9 for value in every) / len(every)


def literal_rank(x, y):
    every, seen = list(arrangements(x, y, mean_rank_sum)), mean_rank_sum(x, y)
    is_low = seen <= len(x) * (len(x) + len(y) + 1) / 2
    return min(
        1.0, 2 * sum(value <= seen if is_low else value >= seen for value in every) / len(every)
    )


few = st.lists(st.integers(0, 4).map(float), min_size=2, max_size=5)


@given(few, few)
def test_p_values_equal_their_definition_with_many_ties(x, y):
    found = compare_samples(np.array(x), np.array(y))
    assert found.p["ks"] == pytest.approx(literal_ks(x, y), abs=1e-12)
    assert found.distance == pytest.approx(largest_gap(x, y), abs=1e-12)
    small, large = (x, y) if len(x) <= len(y) else (y, x)
    assert found.p["rank"] == pytest.approx(literal_rank(small, large), abs=1e-12)


@given(few, few)
def test_the_effect_counts_pairs(x, y):
    wins = sum((a > b) - (a < b) for a in x for b in y) / (len(x) * len(y))
    assert compare_samples(np.array(x), np.array(y)).effect == pytest.approx(wins, abs=1e-12)


def test_far_tails_of_two_valued_samples_are_hypergeometric():
    """5 rare values, all among 50 new ones of 250: the normal distribution says 7e-6, the truth is
    38 times that.
    """
    new, old = np.array([1.0] * 5 + [0.0] * 45), np.zeros(200)
    truth = comb(50, 5) / comb(250, 5)
    assert _exact_ks_p_value(new, old, 5 * 200) == pytest.approx(truth, rel=1e-9)
    assert _rank_sum_p_value(new, old) == pytest.approx(2 * truth, rel=1e-9)
    ranks = two_samples._double_ranks(np.concatenate([new, old]))
    assert _normal_p_value(ranks, 50) < truth / 30


def test_separate_samples_have_the_smallest_p_values_there_are():
    new, old = np.arange(50.0) + 1000, np.arange(200.0)
    assert _ks_p_value(new, old) == pytest.approx(1 / comb(250, 50), rel=1e-9)
    assert _rank_sum_p_value(new, old) == pytest.approx(2 / comb(250, 50), rel=1e-9)
    assert _rank_sum_p_value(old, new) == _rank_sum_p_value(new, old)


def test_coarser_ranks_give_the_exact_test_of_those_ranks(monkeypatch):
    monkeypatch.setattr(two_samples, "_MOST_CELLS", 30)
    ranks = np.array([2, 6, 8, 4, 10, 13, 13, 16])
    step = -(-4 * (10 + 1) // 30)
    coarse = (ranks - 2) // step
    sums = [coarse[list(chosen)].sum() for chosen in combinations(range(8), 3)]
    assert step == 2
    assert _exact_lower_tail(ranks, 3) == pytest.approx(
        np.mean(np.array(sums) <= coarse[:3].sum()), abs=1e-12
    )


def test_values_far_from_the_level_are_close_to_exact():
    dice = np.random.default_rng(3)
    new, old = dice.normal(size=50), dice.normal(size=150)
    near, far = compare_samples(new, old, level=1.0).p, compare_samples(new, old, level=1e-5).p
    assert near != far
    assert far == pytest.approx(near, abs=0.05)


def test_constant_samples_do_not_differ():
    found = compare_samples(np.ones(50), np.ones(150), level=1e-5)
    assert (found.p, found.distance, found.effect, found.shift) == (
        {"ks": 1.0, "rank": 1.0},
        0.0,
        0.0,
        None,
    )


def test_a_sample_of_one_value_is_refused():
    with pytest.raises(UndefinedScore, match="Samples of 1 and 3 values"):
        compare_samples(np.ones(1), np.ones(3))
