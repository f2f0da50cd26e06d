"""Intervals of means: known values, slow twins, and coverage where the truth is known."""

import math
from statistics import NormalDist, mean, stdev

import numpy as np
import pytest

from graphgauge.core.intervals import (
    difference_interval,
    mean_interval,
    share_interval,
    student_quantile,
)


@pytest.mark.parametrize(
    ("chance", "degrees", "table"),
    [
        (0.025, 10, 2.2281),
        (0.001, 30, 3.3852),
        (0.005, 60, 2.6603),
        (0.05, 4, 2.1318),
        (0.0005, 1, 636.619),
    ],
)
def test_students_quantiles_are_those_of_the_tables(chance, degrees, table):
    assert student_quantile(chance, degrees) == pytest.approx(table, rel=3e-5)


def test_wilsons_interval_has_known_values():
    assert share_interval(0, 10) == pytest.approx((0.0, 0.27753), abs=1e-4)  # z²/(n + z²)
    assert share_interval(5, 10) == pytest.approx((0.23659, 0.76341), abs=1e-4)


def literal_transform(gap, values, bound):
    """Hall's transform of one studentised mean, in the order in which the formula is written;
    skewness within ± bound.
    """
    n, own = len(values), mean(values)
    second, third = (mean((value - own) ** power for value in values) for power in (2, 3))
    g = max(-bound, min(bound, third / second**1.5))
    t = gap / (stdev(values) / math.sqrt(n))
    return t + g * t**2 / (3 * math.sqrt(n)) + g**2 * t**3 / (27 * n) + g / (6 * math.sqrt(n))


@pytest.mark.parametrize("n", [3, 10, 40])
@pytest.mark.parametrize("draw", ["normal", "exponential"])
def test_both_ends_of_an_interval_lie_where_halls_transform_reaches_the_quantile(n, draw):
    values = getattr(np.random.default_rng(n), draw)(size=n).tolist()
    low, high = mean_interval(values)
    assert literal_transform(mean(values) - low, values, 1) == pytest.approx(
        student_quantile(0.025, n - 1), rel=1e-9
    )
    assert literal_transform(mean(values) - high, values, 1) == pytest.approx(
        -student_quantile(0.025, n - 1), rel=1e-9
    )


def test_an_interval_of_differences_is_students():
    low, high = difference_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (low, high) == pytest.approx(
        (3 - 2.776445 * math.sqrt(2.5 / 5), 3 + 2.776445 * math.sqrt(2.5 / 5)), abs=1e-5
    )
    assert difference_interval([1.0, 0.0, 4.0]) == difference_interval([4.0, 1.0, 0.0])


def test_values_without_skewness_have_the_interval_of_students_t():
    values = [0.0, 1.0] * 20
    assert mean_interval(values) == pytest.approx(difference_interval(values), abs=1e-12)


def test_the_interval_of_a_mirror_image_is_the_mirrored_interval():
    values = np.random.default_rng(3).exponential(size=12)
    low, high = mean_interval(values)
    assert mean_interval(1 - values) == pytest.approx((1 - high, 1 - low))


def test_many_values_have_the_interval_of_the_normal_law():
    values = np.random.default_rng(0).random(20_000)
    half = NormalDist().inv_cdf(0.975) * values.std() / math.sqrt(len(values))
    assert mean_interval(values) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=half / 100
    )


def test_groups_weigh_the_same_and_their_errors_add_up():
    first, second = [0.0, 1.0, 2.0], [10.0] * 50
    low, high = difference_interval(first, second)
    own = difference_interval(first)
    # the second has no error
    assert (low, high) == pytest.approx(((own[0] + 10) / 2, (own[1] + 10) / 2))
    assert mean_interval(first, second) == pytest.approx(((own[0] + 10) / 2, (own[1] + 10) / 2))


def test_there_is_no_interval_of_one_value_and_none_beyond_the_bounds():
    assert mean_interval([1.0]) is None
    assert difference_interval([1.0, 2.0], [3.0]) is None
    assert mean_interval() is None
    assert mean_interval([0.1, 0.2, math.nan]) is None
    assert mean_interval([0.7, 1.0], bounds=(0.0, 1.0)) == (0.0, 1.0)
    assert mean_interval([0.3, 0.3]) == (0.3, 0.3)
    low, high = mean_interval([0.01, 0.5], scale="log")
    assert 0 < low < 0.255 < high


SHAPES = {
    "normal": (lambda draw, size: draw.normal(size=size), 0.0),
    "long tail, as EC": (
        lambda draw, size: np.minimum(draw.geometric(0.15, size), 100),
        (1 - 0.85**100) / 0.15,
    ),
    "0 and 1, as pertinence": (
        lambda draw, size: np.where(
            draw.random(size) < 0.7, draw.beta(8, 1, size), draw.beta(1, 6, size)
        ),
        0.7 * 8 / 9 + 0.3 / 7,
    ),
}


@pytest.mark.parametrize("n", [10, 38])
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_means_cover_in_93_to_97_percent(shape, n):
    draw, truth = SHAPES[shape]
    samples = draw(np.random.default_rng(1), (2000, n))
    covered = mean([low <= truth <= high for low, high in map(mean_interval, samples)])
    assert 0.925 < covered < 0.975  # 93 to 97 % within a standard error of 0.005


@pytest.mark.parametrize("n", [10, 38])
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_differences_exclude_0_in_3_to_7_percent_of_null_pairs(shape, n):
    draw = np.random.default_rng(2)
    gaps = SHAPES[shape][0](draw, (2000, n)) - SHAPES[shape][0](draw, (2000, n))
    missed = mean([not low <= 0 <= high for low, high in map(difference_interval, gaps)])
    assert 0.025 < missed < 0.075
