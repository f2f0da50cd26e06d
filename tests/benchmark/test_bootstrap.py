"""Rank correlation, draws and the paired bootstrap, beside slow loops and closed forms."""

import math
import random
from statistics import mean, variance

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.table_results import noisy, results, values

from graphgauge.benchmark import paired_bootstrap, ranking
from graphgauge.benchmark.rank_correlation import spearman_correlation
from graphgauge.benchmark.resampling import _draw_cases, percentile_interval
from graphgauge.core.errors import BadSetting, UndefinedScore, UnknownName
from graphgauge.core.intervals import student_quantile
from graphgauge.core.ranking import loose_mean_ranks
from graphgauge.core.seeds import derive_seed

few = st.integers(0, 4)


@given(st.lists(st.tuples(few, few), min_size=2, max_size=9))
def test_spearman_equals_the_one_of_pandas(pairs):
    import pandas as pd

    expected = pd.DataFrame(pairs, columns=["a", "b"]).rank().corr().loc["a", "b"]
    first, second = (np.array(own, float) for own in zip(*pairs, strict=True))
    assert float(spearman_correlation(first, second)) == pytest.approx(
        expected, abs=1e-12, nan_ok=True
    )


def test_methods_within_the_tie_do_not_lower_the_correlation():
    ours, paper = np.array([0.90, 0.92, 0.5, 0.3]), np.array([0.94, 0.92, 0.5, 0.2])
    assert float(spearman_correlation(ours, paper)) == pytest.approx(0.8)
    assert float(spearman_correlation(ours, paper, tie=0.03)) == pytest.approx(1.0)
    # 0.87 - 0.84 is a bit more than 0.03 for a computer
    assert loose_mean_ranks(np.array([0.84, 0.87]), 0.03).tolist() == [1.5, 1.5]


def literal_bootstrap(made, metric, first, second, draws, seed):
    """Follow the definition word by word.

    Draw targets inside each configuration, average them, and average over the configurations.
    """
    table = {}
    for own in made.rows:
        if own.metric == metric and own.cell.status == "ok":
            table.setdefault((own.task, own.model), {}).setdefault(str(own.target), {})[
                own.explainer
            ] = own.cell.value
    groups = {
        name: [
            (own[first], own[second])
            for _, own in sorted(cases.items())
            if first in own and second in own
        ]
        for name, cases in table.items()
    }
    chosen = {
        name: _draw_cases(len(own), draws, derive_seed(seed, "bootstrap", *name)).tolist()
        for name, own in groups.items()
    }
    gaps = [
        mean(mean(own[i][0] - own[i][1] for i in chosen[name][b]) for name, own in groups.items())
        for b in range(draws)
    ]
    own = mean(mean(a - b for a, b in group) for group in groups.values())
    return own, gaps, list(groups.values())


def literal_interval(groups):
    """Student's t for the mean of the configurations' mean differences, with Welch and
    Satterthwaite's degrees, rounded down.
    """
    parts = [
        (variance([a - b for a, b in group]) / len(group) / len(groups) ** 2, len(group))
        for group in groups
    ]
    total = sum(part for part, _ in parts)
    degrees = math.floor(total**2 / sum(part**2 / (n - 1) for part, n in parts))
    half = student_quantile(0.025, degrees) * math.sqrt(total)
    own = mean(mean(a - b for a, b in group) for group in groups)
    return own - half, own + half


@pytest.mark.parametrize("metric", ["edge_pertinence", "feature_ec", "time"])
def test_the_interval_and_the_bootstrap_equal_loops_over_targets_and_draws(metric):
    made = noisy()
    found = paired_bootstrap(made, metric, "lrp", "saliency", draws=60, seed=3)
    own, gaps, groups = literal_bootstrap(made, metric, "lrp", "saliency", 60, 3)
    better = [gap > 1e-9 if metric == "edge_pertinence" else gap < -1e-9 for gap in gaps]
    assert found.difference == pytest.approx(own, abs=1e-12)
    assert (found.low, found.high) == pytest.approx(literal_interval(groups), abs=1e-12)
    assert found.wins == pytest.approx(
        mean(b + (abs(g) <= 1e-9) / 2 for b, g in zip(better, gaps, strict=True))
    )
    assert (found.configurations, found.targets) == (
        4,
        {"edge_pertinence": 20, "feature_ec": 24, "time": 8}[metric],
    )


def two(first, second, **places):
    task, model = places.get("task", "cora-node"), places.get("model", "gcn")
    return values(task, model, "lrp", "edge_pertinence", first) + values(
        task, model, "saliency", "edge_pertinence", second
    )


def test_a_constant_difference_has_no_width():
    numbers = [0.1, 0.4, 0.2, 0.7]
    found = paired_bootstrap(
        results(two([n + 0.25 for n in numbers], numbers)), "edge_pertinence", "lrp", "saliency"
    )
    assert (found.difference, found.low, found.high, found.wins) == pytest.approx(
        (0.25, 0.25, 0.25, 1.0)
    )
    assert found.is_clear


def test_equal_explainers_win_half_each():
    found = paired_bootstrap(
        results(two([0.1, 0.4], [0.1, 0.4])), "edge_pertinence", "lrp", "saliency"
    )
    assert (found.difference, found.low, found.high, found.wins) == (0, 0, 0, 0.5)
    assert not found.is_clear


def test_two_targets_are_drawn_as_often_as_chance_says():
    """Differences 0 and 1: the mean of a draw is 0, 1/2 or 1 with probability 1/4, 1/2, 1/4; a win
    unless it is 0.
    """
    found = paired_bootstrap(
        results(two([0, 1], [0, 0])), "edge_pertinence", "lrp", "saliency", draws=20_000
    )
    # one degree of freedom
    assert (found.low, found.high) == pytest.approx(
        (0.5 - 12.7062 / 2, 0.5 + 12.7062 / 2), abs=1e-4
    )
    expected = 3 / 4 + 1 / 4 / 2
    assert abs(found.wins - expected) < 4 * math.sqrt(1 / 4 * 3 / 4 / 4 / 20_000)


def test_the_width_of_many_targets_is_that_of_the_normal_law():
    draw = random.Random(0)
    gaps = [draw.random() for _ in range(400)]
    found = paired_bootstrap(
        results(two(gaps, [0.0] * 400)), "edge_pertinence", "lrp", "saliency", draws=20_000
    )
    error = np.std(gaps) / math.sqrt(400)
    assert (found.high - found.low) / (2 * 1.95996 * error) == pytest.approx(1, abs=0.03)


def test_a_configuration_weighs_the_same_however_many_targets_it_has():
    rows = two([1.0], [0.0]) + two([0.0] * 9, [0.0] * 9, model="gat")
    assert paired_bootstrap(results(rows), "edge_pertinence", "lrp", "saliency").difference == 0.5


def test_only_targets_that_both_have_are_compared():
    rows = two([1.0, 0.5, None], [0.0, None, 0.9]) + values(
        "github-node", "gcn", "lrp", "edge_pertinence", [0.0]
    )
    found = paired_bootstrap(results(rows), "edge_pertinence", "lrp", "saliency")
    assert (found.difference, found.targets, found.configurations) == (1.0, 1, 1)


def test_other_tasks_do_not_change_a_configurations_draws():
    alone = paired_bootstrap(
        results(two([0.1, 0.9, 0.4], [0.3, 0.2, 0.1])), "edge_pertinence", "lrp", "saliency"
    )
    more = two([0.1, 0.9, 0.4], [0.3, 0.2, 0.1]) + two([0.0] * 3, [0.0] * 3, task="github-node")
    both = paired_bootstrap(results(more), "edge_pertinence", "lrp", "saliency")
    assert (both.low, both.high) == pytest.approx((alone.low / 2, alone.high / 2))


def test_a_single_target_of_a_configuration_gives_no_interval_and_is_never_clear():
    rows = two([1.0], [0.0]) + two([0.9, 1.0, 0.8], [0.1, 0.2, 0.3], model="gat")
    found = paired_bootstrap(results(rows), "edge_pertinence", "lrp", "saliency")
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert not found.is_clear


def test_under_a_null_few_differences_are_clear():
    """10 targets: the percentile bootstrap called 9 % of such pairs clear."""
    draw = np.random.default_rng(0)
    clear = [
        paired_bootstrap(
            results(two(first, second)), "edge_pertinence", "lrp", "saliency", draws=1
        ).is_clear
        for first, second in draw.random((300, 2, 10)).round(2).tolist()
    ]
    assert 0.02 < mean(clear) < 0.07


def test_what_cannot_be_compared_is_refused_with_the_reason():
    rows = two([1.0, None], [None, 0.5])
    with pytest.raises(UndefinedScore, match="lrp, saliency cannot be compared by edge_pertinence"):
        paired_bootstrap(results(rows), "edge_pertinence", "lrp", "saliency")
    with pytest.raises(UnknownName, match="saliency"):
        paired_bootstrap(results(rows), "edge_pertinence", "lrp", "salience")
    with pytest.raises(UnknownName, match="edge_pertinence"):
        paired_bootstrap(results(rows), "edge_pertinance", "lrp", "saliency")
    with pytest.raises(BadSetting, match="draws must be 1 or more"):
        paired_bootstrap(results(two([1.0], [0.5])), "edge_pertinence", "lrp", "saliency", draws=0)


def test_a_ranking_is_all_pairs_at_once():
    made = noisy()
    table = ranking(made, "feature_ec", draws=50, seed=1)
    for first in table.difference.index:
        for second in table.difference.columns:
            if first == second:
                continue
            pair = paired_bootstrap(made, "feature_ec", first, second, draws=50, seed=1)
            found = [own.loc[first, second] for own in (table.difference, table.low, table.high)]
            assert found == pytest.approx([pair.difference, pair.low, pair.high], abs=1e-12)
    assert len(table.as_table()) == 3
    assert table.best.sum() == pytest.approx(1)


def test_the_share_of_being_best_goes_to_the_best_and_is_shared_in_a_tie():
    rows = [
        own
        for name, ec in (("a", 2), ("b", 2), ("c", 3))
        for own in values("t", "m", name, "edge_ec", [ec] * 3)
    ]
    assert ranking(results(rows), "edge_ec").best.to_dict() == {"a": 0.5, "b": 0.5, "c": 0.0}


def test_a_ranking_leaves_out_who_has_no_value_and_uses_common_tasks():
    rows = values("cora-node", "gcn", "a", "edge_ec", [1, 2]) + values(
        "cora-node", "gcn", "b", "edge_ec", [2, 4]
    )
    rows += values("github-node", "gcn", "a", "edge_ec", [90]) + values(
        "cora-node", "gcn", "c", "edge_ec", [None, None]
    )
    found = ranking(results(rows), "edge_ec")
    assert list(found.difference.index) == ["a", "b"]
    assert (found.targets, found.configurations, found.difference.loc["b", "a"]) == (2, 1, 1.5)


def test_an_interval_ignores_draws_without_a_value():
    assert percentile_interval(np.array([np.nan, 1.0, 1.0])) == (1.0, 1.0)
    assert all(map(math.isnan, percentile_interval(np.array([np.nan]))))
