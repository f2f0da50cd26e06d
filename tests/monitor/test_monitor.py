"""A store over time: each trigger where it belongs, what waits, what closes it, what is refused."""

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from alarms import targets_like
from support.monitoring_histories import FACTS, PLAN, START, drop, made_monitor, weeks
from support.quick_evaluation import node_model

import graphgauge as gg
from graphgauge.core.errors import BadFile, BadSetting, UnknownName
from graphgauge.monitor import Monitor, Plan, Sample, Threshold, ValidationRecord, read_history
from graphgauge.monitor.threshold_triggers import check_thresholds

FAST = {"trials": (4, 12), "timed": 2}


def fresh(seed=9, number=50):
    return targets_like(number, np.random.default_rng(seed), False)


def names(monitor, at=None):
    return [own.trigger.key for own in monitor.status(at).due]


def test_runs_of_a_model_that_stays_the_same_are_fine(tmp_path):
    monitor, explainer = (
        Monitor(
            tmp_path / "m.sqlite", Plan(number=12, thresholds={"time": Threshold(60, "below")})
        ),
        gg.InputXGradient(),
    )
    evaluator = gg.Evaluator(node_model(), **FAST)
    baseline = monitor.take_baseline(evaluator, explainer, number=30, at=START)
    runs = [monitor.run(evaluator, explainer, at=weeks(k)) for k in (1, 2)]
    assert [len(run.sample) for run in runs] == [12, 12]
    assert runs[0].sample.targets != runs[1].sample.targets
    status = monitor.status(weeks(2))
    assert (status.code, status.due, status.runs) == (0, (), 2)
    kept = read_history(tmp_path / "m.sqlite")
    assert kept.baseline.sample.data == pytest.approx(baseline.sample.data)
    assert (
        kept.runs[1].sample.values["edge_ec"].tolist() == runs[1].sample.values["edge_ec"].tolist()
    )
    assert kept.runs[1].sample.top == runs[1].sample.top
    assert kept.runs[1].sample.data is None
    assert kept.runs[1].body["data"] == pytest.approx(runs[1].sample.data.mean(0).tolist())


def test_a_drift_raises_its_own_trigger_and_no_other(tmp_path):
    monitor = made_monitor(tmp_path / "m.sqlite", 6, change=drop("feature_pertinence", 0.3, 4))
    assert names(monitor, weeks(6)) == [("metric drift", "feature_pertinence")]
    (due,) = monitor.status(weeks(6)).due
    assert (due.first, due.last) == (weeks(4), weeks(6))
    assert "take a new baseline" in due.trigger.revalidate
    assert monitor.status(weeks(6)).code == 1


def test_other_weights_are_a_trigger_other_data_is_not(tmp_path):
    monitor = made_monitor(tmp_path / "m.sqlite", 1)
    monitor.add_run(fresh(), replace(FACTS, data="other"), weeks(2))
    assert names(monitor, weeks(2)) == []
    run = monitor.add_run(fresh(8), replace(FACTS, model="new"), weeks(3))
    assert [own.told for own in run.triggers] == [
        "the network's weights (new) are not those of the baseline (weights)."
    ]


def test_a_threshold_is_crossed_only_where_chance_is_no_explanation():
    values = np.tile([0.2, 0.4], 25)  # mean 0.3, SD 0.101
    sample = Sample(tuple(range(50)), {"edge_pertinence": values, "edge_ec": np.full(50, 4.0)})
    for limit, state in ((0.3, "inside"), (0.33, "near"), (0.36, "crossed")):
        (found,) = check_thresholds(
            sample, Plan(budget=0.026, looks=26, thresholds={"edge_pertinence": Threshold(limit)})
        )
        assert (found.state, found.n) == (state, 50)
        # Student's t, 49 degrees, 0.001
        assert found.margin == pytest.approx(3.2651 * values.std(ddof=1) / 50**0.5, rel=1e-4)
    for direction, value, state in (
        ("at most", 4.0, "inside"),
        ("below", 4.0, "crossed"),
        ("at most", 3.9, "crossed"),
    ):
        (found,) = check_thresholds(
            sample, Plan(thresholds={"edge_ec": Threshold(value, direction)})
        )
        assert found.state == state


def test_what_chance_explains_is_told_of_the_miss_and_not_of_the_mean():
    values = np.tile([2.0, 26.76], 25)  # mean 14.38
    sample = Sample(
        tuple(range(50)), {"feature_ec": values, "edge_pertinence": np.tile([0.3, 0.6], 25)}
    )
    plan = Plan(
        thresholds={"feature_ec": Threshold(12.0, "at most"), "edge_pertinence": Threshold(0.5)}
    )
    most, least = check_thresholds(sample, plan)
    assert [most.state, least.state] == ["near", "near"]
    told = (
        "14.38 (50 targets) and should be at most 12: it misses that by 2.4, and chance explains "
        "a miss of up to"
    )
    assert str(most) == f"the mean of feature_ec is {told} {most.margin:.2g}"
    assert (
        "is 0.45 (50 targets) and should be at least 0.5: it misses that by 0.05, and chance"
        in str(least)
    )


def test_a_crossed_threshold_is_told_with_its_limit(tmp_path):
    plan = replace(PLAN, thresholds={"edge_pertinence": Threshold(0.9)})
    run = made_monitor(tmp_path / "m.sqlite", plan=plan).add_run(fresh(), FACTS, weeks(1))
    assert [(own.name, own.subject, own.limit) for own in run.triggers] == [
        ("threshold crossed", "edge_pertinence", 0.9)
    ]
    assert run.triggers[0].number == pytest.approx(np.nanmean(fresh().values["edge_pertinence"]))


def test_an_old_validation_is_due_by_date_alone(tmp_path):
    monitor = made_monitor(tmp_path / "m.sqlite", 1)
    assert names(monitor, START + timedelta(days=180)) == []
    assert names(monitor, START + timedelta(days=181)) == [("validation age", "")]
    run = monitor.add_run(fresh(), FACTS, START + timedelta(days=200))
    assert [(own.name, own.number, own.limit) for own in run.triggers] == [
        ("validation age", 200.0, 180.0)
    ]
    assert len(names(monitor, START + timedelta(days=201))) == 1


def test_the_age_of_a_validation_counts_from_its_decision(tmp_path):
    validated = ValidationRecord(
        START - timedelta(days=100), "lrp", {"epsilon": 1e-6}, "digest", may_stop_early=False
    )
    monitor = made_monitor(tmp_path / "m.sqlite", 1, validated=validated)
    assert monitor.history().baseline.validated == validated
    assert names(monitor, START + timedelta(days=80)) == []
    (due,) = monitor.status(START + timedelta(days=81)).due
    assert due.trigger.told == "the validation of 2025-09-27 is 181 days old, the limit is 180."
    run = monitor.add_run(fresh(), FACTS, START + timedelta(days=90))
    assert [(own.name, own.number) for own in run.triggers] == [("validation age", 190.0)]
    unsigned, early = monitor.status(weeks(1)).notes
    assert unsigned == "nobody had signed the decision when the baseline was taken"
    assert early.startswith("early stopping moved numbers at the validation")
    monitor.add_baseline(fresh(3, 150), FACTS, START + timedelta(days=91))
    assert monitor.history().baseline.validated is None


def test_what_people_see_of_a_run_is_kept_with_it(tmp_path):
    monitor, explainer = Monitor(tmp_path / "m.sqlite", Plan(number=4)), gg.InputXGradient()
    evaluator = gg.Evaluator(node_model(), **FAST)
    monitor.take_baseline(evaluator, explainer, number=6, at=START)

    def show(results):
        return [
            {
                "explainers": sorted({row.explainer for row in results.rows}),
                "targets": len({row.target for row in results.rows}),
            }
        ]

    run = monitor.run(evaluator, explainer, at=weeks(1), show=show)
    assert monitor.history().examples == (
        {"explainers": ["input_x_gradient"], "targets": len(run.sample)},
    )
    monitor.run(evaluator, explainer, at=weeks(2))
    assert monitor.history().examples == ()


def test_triggers_wait_until_settled_or_validated_again(tmp_path):
    monitor = made_monitor(tmp_path / "m.sqlite", 1)
    monitor.trigger("regulatory update", "legal", weeks(1))
    monitor.trigger("complaint", at=weeks(1))
    assert names(monitor, weeks(1)) == [("manual", "regulatory update"), ("manual", "complaint")]
    assert monitor.settle("m1", "does not concern us", weeks(2)) == ["m1"]
    assert names(monitor, weeks(2)) == [("manual", "complaint")]
    with pytest.raises(BadSetting, match=r"'m1' cannot be settled.*Waiting triggers: m2"):
        monitor.settle("m1", "again")
    monitor.add_baseline(fresh(3, 100), FACTS, weeks(3))
    assert names(monitor, weeks(3)) == []
    assert monitor.status(weeks(3)).gaps == ("no run was held against the baseline yet",)
    assert [own.note for own in monitor.history().triggers] == ["does not concern us", None]


def test_settling_closes_all_triggers_about_the_same_thing(tmp_path):
    monitor = made_monitor(tmp_path / "m.sqlite", 6, change=drop("edge_ec", 40, 5))
    assert monitor.settle("6.1", "known: a new shop") == ["5.1", "6.1"]
    assert names(monitor, weeks(6)) == []


def test_a_new_baseline_starts_the_window_anew(tmp_path):
    monitor = made_monitor(tmp_path / "m.sqlite", 4, change=drop("edge_ec", 40, 3))
    moved = drop("edge_ec", 40, 0)
    monitor.add_baseline(moved(0, fresh(3, 150)), FACTS, weeks(4))
    assert monitor.add_run(moved(0, fresh(4)), FACTS, weeks(5)).triggers == ()


def test_what_could_not_be_measured_makes_the_status_incomplete(tmp_path):
    monitor = made_monitor(tmp_path / "m.sqlite", plan=replace(PLAN, overdue=10))
    own = fresh()
    monitor.add_run(
        replace(own, values={**own.values, "edge_ec": np.full(50, np.nan)}), FACTS, weeks(1)
    )
    assert monitor.status(weeks(1)).gaps == ("edge_ec has 0 values in the last run, 5 are needed",)
    monitor.add_run(own, FACTS, weeks(2))
    assert monitor.status(weeks(2)).code == 0
    late = monitor.status(weeks(4))
    assert (late.code, late.gaps) == (
        3,
        ("the last run is 14 days old, the next was due after 10",),
    )


def test_the_plan_of_the_store_is_used_again(tmp_path):
    made_monitor(tmp_path / "m.sqlite", plan=replace(PLAN, budget=0.02, age=33))
    assert Monitor(tmp_path / "m.sqlite").plan == replace(PLAN, budget=0.02, age=33)


def test_a_baseline_from_results_watches_metrics_only(tmp_path):
    evaluator = gg.Evaluator(node_model(), stability="binomial", twins=False, **FAST)
    monitor = Monitor(tmp_path / "m.sqlite", Plan(number=10))
    results = evaluator.compare([gg.InputXGradient()], list(range(20)))
    monitor.baseline_of(results, "input_x_gradient", START)
    assert monitor.run(evaluator, gg.InputXGradient(), at=weeks(1)).triggers == ()
    assert "ranking, data and weights are not watched" in monitor.status(weeks(1)).notes[0]
    with pytest.raises(UnknownName, match="lrp"):
        monitor.baseline_of(results, "lrp")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"explainer": "saliency"}, "explainer: 'input_x_gradient' then, 'saliency' now"),
        ({"params": {"k": 1}}, "params"),
        ({"settings": "other"}, "settings: 'settings' then, 'other' now"),
        ({"columns": ("one",)}, "12 columns then, 1 columns now"),
    ],
)
def test_what_was_measured_differently_is_not_compared(tmp_path, change, told):
    monitor = made_monitor(tmp_path / "m.sqlite")
    with pytest.raises(BadSetting, match=told):
        monitor.add_run(fresh(), replace(FACTS, **change), weeks(1))
    assert monitor.history().runs == ()


def test_refusals_say_what_to_do(tmp_path):
    monitor = made_monitor(tmp_path / "m.sqlite", 2)
    with pytest.raises(BadSetting, match="already reaches 2026-01-19"):
        monitor.add_run(fresh(), FACTS, weeks(1))
    with pytest.raises(BadSetting, match="needs a reason"):
        monitor.trigger("  ")
    with pytest.raises(BadSetting, match="with a note"):
        monitor.settle("m1", "")
    with pytest.raises(BadSetting, match="0 targets with 0 metrics"):
        monitor.add_baseline(Sample((), {}), FACTS)
    with pytest.raises(BadFile, match=r"folder of .* does not exist"):
        Monitor(tmp_path / "none" / "m.sqlite").trigger("why")
    empty = Monitor(tmp_path / "e.sqlite")
    empty.trigger("why")
    with pytest.raises(BadFile, match="holds no baseline"):
        empty.add_run(fresh(), FACTS)
    assert (empty.status().code, empty.status().gaps) == (1, ("there is no baseline",))


def test_times_without_a_zone_are_utc(tmp_path):
    monitor = made_monitor(tmp_path / "m.sqlite")
    run = monitor.add_run(fresh(), FACTS, datetime(2026, 2, 1, 6))
    assert run.at.isoformat() == "2026-02-01T06:00:00+00:00"
    assert run.record()["status"]["last_run_at"] == "2026-02-01T06:00:00+00:00"
