"""Drift: the correction, the budget, and the short form of bench/alarms.py."""

import argparse
from dataclasses import replace

import numpy as np
import pytest
from alarms import METRICS, clopper_pearson_upper, false_alarms, found_in_time, targets_like
from hypothesis import given
from hypothesis import strategies as st

from graphgauge.core.errors import BadSetting
from graphgauge.monitor import ColumnNames, Plan, Sample, Threshold, drift_triggers
from graphgauge.monitor.drift import control_limits, run_metric_tests
from graphgauge.monitor.monitoring_plan import (
    _BUDGET_SHARES,
    DATA_SHIFT,
    METRIC_DRIFT,
    RANKING_DRIFT,
    holm_correction,
)
from graphgauge.monitor.run_sample import pool_samples

SHORT = argparse.Namespace(histories=3, runs=26, targets=50, power=6, seed=0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_rule_rejects(ps):
    corrected = holm_correction(dict(enumerate(ps)))
    for level in (0.01, 0.05, 0.2):
        rejected, rest = set(), sorted(range(len(ps)), key=lambda k: ps[k])
        while rest and ps[rest[0]] * len(rest) <= level:
            rejected.add(rest.pop(0))
        assert {k for k, p in corrected.items() if p <= level} == rejected


def test_the_budget_is_spent_evenly():
    plan = Plan(budget=0.05, looks=10)
    assert plan.level(METRIC_DRIFT) == pytest.approx(0.004)
    assert sum(map(plan.level, _BUDGET_SHARES)) == pytest.approx(0.05 / 10)
    assert (
        Plan.from_record(Plan(thresholds={"time": Threshold(5.0, "below")}).record())
        .thresholds["time"]
        .direction
        == "below"
    )


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"budget": 0.0}, "budget"), ({"looks": 0}, "looks"), ({"number": True}, "number")],
)
def test_a_plan_that_cannot_be_is_refused(wrong, told):
    with pytest.raises(BadSetting, match=told):
        Plan(**wrong)


def test_a_threshold_in_no_direction_is_refused():
    with pytest.raises(BadSetting, match="'at least', 'at most', 'below', but 'above'"):
        Threshold(0.5, "above")


def test_stationary_histories_raise_nothing():
    assert false_alarms(SHORT, Plan(), 100, deterministic=False) == 0
    assert (
        false_alarms(
            argparse.Namespace(**{**vars(SHORT), "histories": 1}), Plan(), 100, deterministic=True
        )
        == 0
    )


def test_a_large_budget_is_kept_and_mostly_used():
    """Each history has one look and a budget of 0.4.

    A wrong p-value shows here long before it does at 0.01.
    """
    plan, raised = Plan(budget=0.4, looks=1), 0
    for number in range(80):
        dice = np.random.default_rng([3, number])
        runs = [targets_like(40, dice, False), targets_like(15, dice, False)]
        raised += bool(drift_triggers(runs[0], runs[1:], plan, ColumnNames(), number))
    assert 0.1 < raised / 80 <= 0.4 + 2 * (0.4 * 0.6 / 80) ** 0.5


@pytest.mark.parametrize("metric", ["feature_ec", "edge_pertinence", "edge_stability"])
def test_a_shift_of_one_standard_deviation_is_found_within_three_runs(metric):
    assert found_in_time(SHORT, Plan(), 100, metric, 1.0) == SHORT.power


def test_the_upper_bound_solves_its_equation():
    bound = clopper_pearson_upper(3, 200)
    chance = sum(
        np.prod([(200 - j) / (j + 1) for j in range(k)]) * bound**k * (1 - bound) ** (200 - k)
        for k in range(4)
    )
    assert chance == pytest.approx(0.025, rel=1e-6)
    assert clopper_pearson_upper(0, 200) == pytest.approx(1 - 0.025 ** (1 / 200), rel=1e-9)


def look(seed, number=60):
    return targets_like(number, np.random.default_rng(seed), False)


def test_only_what_moved_is_named():
    baseline, run = look(1, 150), look(2)
    moved = run.data.copy()
    moved[:, 5] = 1.0
    found = drift_triggers(
        baseline,
        [replace(run, data=moved)],
        Plan(),
        ColumnNames(columns=[f"column {k}" for k in range(12)]),
    )
    assert [own.name for own in found] == [DATA_SHIFT]
    assert next(iter(found[0].details["z"])) == "column 5"
    led = replace(run, top=tuple((11, 10) for _ in run.top))
    found = drift_triggers(baseline, [led], Plan(), ColumnNames(features=list("abcdefghijkl")))
    assert [own.name for own in found] == [RANKING_DRIFT]
    assert "l (+" in found[0].told
    values = {**run.values, "edge_ec": run.values["edge_ec"] + 30}
    found = drift_triggers(baseline, [replace(run, values=values)], Plan(), ColumnNames())
    assert [own.key for own in found] == [(METRIC_DRIFT, "edge_ec")]
    assert found[0].number <= found[0].limit == Plan().level()
    assert found[0].effect > 0.8


def test_a_slow_drift_shows_in_several_runs_together():
    baseline = look(1, 200)
    runs = [
        replace(own, values={**own.values, "edge_ec": own.values["edge_ec"] * 1.7})
        for own in (look(k, 50) for k in range(3, 7))
    ]
    # the window leaves the first one out
    tested = run_metric_tests(baseline, [look(20, 50), *runs], Plan())
    alone, together = (
        next(own for own in tested if own.metric == "edge_ec" and own.runs == k) for k in (1, 4)
    )
    assert (alone.n, together.n) == (50, 200)
    assert min(alone.corrected_p.values()) > Plan().level() >= min(together.corrected_p.values())
    assert {own.runs for own in run_metric_tests(baseline, runs[:1], Plan())} == {1}


def test_the_last_look_at_a_target_counts():
    first, second = (
        Sample((1, 2), {"edge_ec": np.array([1.0, 2.0])}),
        Sample((2, 3), {"edge_ec": np.array([5.0, np.nan])}),
    )
    found = pool_samples([first, second])
    assert (found.targets, found.known("edge_ec").tolist()) == ((1, 2, 3), [1.0, 5.0])


def test_metrics_with_too_few_values_and_clocks_are_not_tested():
    values = {
        "edge_ec": np.arange(9.0),
        "feature_ec": np.r_[1.0, np.full(8, np.nan)],
        "time": np.arange(9.0),
    }
    sample = Sample(tuple(range(9)), values)
    assert {own.metric for own in run_metric_tests(sample, [sample], Plan())} == {"edge_ec"}
    assert set(METRICS) == {own.metric for own in run_metric_tests(look(1), [look(2)], Plan())}


def test_control_limits_are_as_wide_as_the_tests_are_strict():
    sample = Sample(tuple(range(100)), {"edge_ec": np.tile([1.0, 3.0], 50)})
    low, high = control_limits(sample, "edge_ec", 25, Plan(budget=0.025, looks=1))
    sd = np.sqrt(100 / 99)
    assert (low + high) / 2 == pytest.approx(2.0)
    # 0.02 / (2 · 4) = 0.0025 each side
    assert (high - low) / 2 == pytest.approx(2.8070338 * sd * np.sqrt(1 / 25 + 1 / 100), rel=1e-6)
    assert control_limits(sample, "time", 25, Plan()) is None
