"""Many columns at once: the p-value is that of the definition, whatever the columns share."""

from itertools import combinations

import numpy as np
import pytest
import torch

import graphgauge.monitor.multivariate_drift as columns
from graphgauge.core.errors import UndefinedScore
from graphgauge.monitor.multivariate_drift import column_ranks, permutation_test


def dice(seed=0):
    return torch.Generator().manual_seed(seed)


def literal(new, old):
    """The largest |z| for every way to call n rows new: z with the mean and the SD (divisor N) of
    the column over all rows.
    """
    rows = np.concatenate([new, old])
    n, total = len(new), len(rows)
    spread = rows.std(0)
    columns = (rows - rows.mean(0))[:, spread > 0] / spread[spread > 0]
    scale = np.sqrt(n * (total - n) / (total - 1))
    every = [
        np.abs(columns[list(chosen)].sum(0) / scale).max()
        for chosen in combinations(range(total), n)
    ]
    return np.mean(np.array(every) >= every[0] - 1e-9), columns[:n].sum(0) / scale


def test_the_p_value_is_that_of_all_arrangements():
    draw = np.random.default_rng(5)
    old, new = draw.integers(0, 3, (6, 3)).astype(float), draw.integers(1, 4, (4, 3)).astype(float)
    p, z = literal(new, old)
    found = permutation_test(new, old, 0.5, dice())  # far above nothing: a thousand draws
    assert found.p == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 1000))
    assert found.z == pytest.approx(z, abs=1e-12)


def test_a_column_that_moved_is_named_first_and_small_levels_are_reached():
    draw = np.random.default_rng(0)
    old, new = draw.normal(size=(200, 30)), draw.normal(size=(50, 30))
    new[:, 7] -= 1.5
    found = permutation_test(new, old, 1e-4, dice())
    assert found.largest[0] == 7
    assert found.z[7] < -5
    assert found.p == pytest.approx(0.5e-4, rel=1e-3)


def test_copies_of_a_column_change_no_p_value():
    draw = np.random.default_rng(1)
    old, new = draw.normal(size=(40, 1)), draw.normal(size=(10, 1)) + 0.5
    alone, copied = (
        permutation_test(np.repeat(new, k, 1), np.repeat(old, k, 1), 0.01, dice()).p
        for k in (1, 50)
    )
    assert alone == copied


def test_columns_that_do_not_vary_have_not_moved():
    found = permutation_test(np.full((5, 2), 0.1), np.full((9, 2), 0.1), 0.01, dice())
    assert (found.p, found.z.tolist()) == (1.0, [0.0, 0.0])


def test_ranks_share_places():
    assert column_ranks(np.array([[3.0, 1.0], [3.0, 0.0], [-9.0, 2.0]])).tolist() == [
        [2.5, 2.0],
        [2.5, 1.0],
        [1.0, 3.0],
    ]


def test_rows_with_other_columns_are_refused():
    with pytest.raises(UndefinedScore, match=r"\(2, 3\) and \(2, 4\)"):
        permutation_test(np.ones((2, 3)), np.ones((2, 4)), 0.01, dice())


def test_draws_end_early_only_where_p_decides_nothing(monkeypatch):
    made, real = [], columns._count_exceeding
    monkeypatch.setattr(
        columns,
        "_count_exceeding",
        lambda rows, n, seen, draws, dice: made.append(draws) or real(rows, n, seen, draws, dice),
    )
    draw, totals = np.random.default_rng(2), set()
    for shift in (0.0, 0.4, 0.8, 1.2) * 4:
        made.clear()
        found = permutation_test(
            draw.normal(size=(10, 2)) + shift, draw.normal(size=(30, 2)), 0.001, dice()
        )
        assert sum(made) == 1999 or (found.p > 0.01 and found.p * (1 + sum(made)) >= 11)
        totals.add(sum(made))
    assert totals == {99, 999, 1999}
