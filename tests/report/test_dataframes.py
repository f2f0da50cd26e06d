"""Tables for live pages hold the numbers of the results, worked out slowly."""

import numpy as np
import pytest
from support.chosen_results import good
from support.chosen_results import run as made
from support.monitoring_histories import drop, made_monitor, weeks
from support.report_results import by_hand, several

from graphgauge.guidelines import Requirements, verdicts
from graphgauge.guidelines.aggregation import aggregate_run
from graphgauge.guidelines.what_if import simulate_thresholds
from graphgauge.monitor import compute_status
from graphgauge.monitor.drift import control_limits
from graphgauge.report import dataframes as frames
from graphgauge.report.overview import build_overview
from graphgauge.report.report_data import ReportOptions, build_report_data

WANTED = Requirements("node_classification", num_features=80)


def values(results, explainer, metric):
    return [
        row.cell.value for row in results.rows if (row.explainer, row.metric) == (explainer, metric)
    ]


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    monitor = made_monitor(
        tmp_path_factory.mktemp("m") / "m.sqlite", 6, change=drop("edge_ec", 40, 5)
    )
    monitor.trigger("regulatory update", "Ada", weeks(6))
    monitor.settle("5.1", "seen", weeks(6))
    return monitor.history()


@pytest.mark.parametrize(
    "results", [by_hand(), several(["one", "two"], n=6)], ids=["one task", "two tasks"]
)
def test_an_overview_says_what_the_report_says_first(results):
    short, whole = (
        build_overview(results, aggregate_run(results, WANTED, merge_models=True), WANTED),
        build_report_data(results, ReportOptions(WANTED)),
    )
    assert {name: short[name] for name in ("answer", "facts", "columns")} == {
        name: whole[name] for name in ("answer", "facts", "columns")
    }
    assert [
        (own.title, own.outcome, own.chosen, own.lines, own.num_targets) for own in short["tasks"]
    ] == [
        (own.title, own.outcome, own.chosen, own.lines, own.num_targets) for own in whole["tasks"]
    ]


def test_the_headline_has_the_means_and_their_outcomes():
    results = by_hand()
    (part,) = build_overview(results, aggregate_run(results, WANTED, merge_models=True), WANTED)[
        "tasks"
    ]
    means, outcomes = frames.headline_frame(part.lines)
    assert list(means.index) == ["lrp", "saliency", "random"]
    own = values(results, "saliency", "edge_pertinence")
    assert means.loc["saliency", "Edge pertinence"] == pytest.approx(sum(own) / len(own), abs=1e-12)
    assert (outcomes.loc["saliency", "Edge pertinence"], means.loc["saliency", "Verdict"]) == (
        "fail",
        "Below threshold",
    )
    judged = {(own.explainer, own.reason) for own in verdicts(results, WANTED)}
    shown = frames.score_frame(part.lines)
    assert (len(shown), set(zip(shown["Explainer"], shown["Why"], strict=True))) == (21, judged)


def test_a_front_holds_those_whom_nobody_beats():
    # c is beaten by b; chance does not take part
    numbers = {"a": (0.9, 9), "b": (0.8, 3), "c": (0.7, 4), "random": (0.95, 1)}
    results = made(
        {name: good(edge_pertinence=p, edge_ec=ec) for name, (p, ec) in numbers.items()}, n=4
    )
    found = {x: (y, table) for x, y, table in frames.front_frames(results, "", WANTED) if "EC" in y}
    y, table = found["edge pertinence (higher is better →)"]
    assert y == "edge EC, edits (fewer is better ↓)"
    assert {row.explainer: (row.x, row.y) for row in table.itertuples()} == numbers
    beaten = {
        name
        for name, (p, ec) in numbers.items()
        for other, (q, ed) in numbers.items()
        if other != "random" and q >= p and ed <= ec and (q, ed) != (p, ec)
    }
    assert beaten == {"c"}
    assert set(table[table["place"] == "beaten"]["explainer"]) == {"c", "random"}


def test_explainers_on_one_spot_are_named_together():
    results = made({name: good() for name in "abc"} | {"d": good(edge_ec=9)}, n=3)
    table = next(
        table for x, y, table in frames.front_frames(results, "", WANTED) if y.startswith("edge EC")
    )
    assert dict(zip(table["explainer"], table["here"], strict=True)) == {
        **dict.fromkeys("abc", "a, b, c"),
        "d": "d",
    }


def test_without_two_numbers_there_is_no_front():
    assert frames.front_frames(made({"a": {"edge_ec": 3.0}}, n=2), "", WANTED) == []


def test_a_target_has_its_numbers_or_why_there_are_none():
    results = made({"lrp": good(edge_ec=[3, 4]), "cut": good(edge_ec=["empty", 7])}, n=2)
    own = frames.rows_of_target(results, "", "", 0)
    table = frames.target_frame(own, ["edge_ec", "time", "feature_pertinence_tied"])
    assert table.loc["lrp"].tolist() == ["3", "0.02", "not measured"]
    assert table.loc["cut", "Edge EC"] == "no edge can carry a message to the target"


def test_changes_show_both_thresholds_and_both_verdicts():
    found = aggregate_run(by_hand(), WANTED, merge_models=True)
    table = frames.changes_frame(
        simulate_thresholds(found, "loans", WANTED, {"edge_pertinence": 0.2})
    )
    (row,) = table[table["Explainer"] == "saliency"].to_dict("records")
    assert (row["Threshold before"], row["Threshold now"]) == (0.6, 0.2)
    # random passes 0.2, too
    assert (row["Verdict before"], row["Verdict now"]) == ("Below threshold", "Caution")


def test_histories_have_means_quartiles_and_the_limits_of_their_baseline(history):
    table = dict(frames.history_frames(history))["Edge effective compactness"]
    assert table["run"].tolist() == [1, 2, 3, 4, 5, 6]
    assert table["state"].tolist() == ["no trigger"] * 4 + ["a trigger was raised"] * 2
    run, row = history.runs[2], table.iloc[2]
    own = sorted(run.sample.known("edge_ec").tolist())
    assert row["mean"] == pytest.approx(sum(own) / len(own), abs=1e-9)
    assert (row["lower"], row["upper"]) == (np.percentile(own, 25), np.percentile(own, 75))
    low, high = control_limits(history.baseline.sample, "edge_ec", len(own), run.plan)
    assert (row["low"], row["high"]) == (max(0.0, low), high)
    assert dict(frames.history_frames(history))["Edge stability"]["threshold"].tolist() == [0.8] * 6


def test_triggers_say_what_became_of_them(history):
    table = frames.triggers_frame(history)
    states = dict(zip(table["Name"], table["State"], strict=True))
    assert states == {"m1": "waits", "6.1": "settled: seen", "5.1": "settled: seen"}
    due = frames.pending_actions_frame(compute_status(history, weeks(6)))
    assert due[["Name", "Trigger", "Evidence", "Since", "Times"]].values.tolist() == [
        ["m1", "manual", "regulatory update (raised by Ada).", "2026-02-16", 1]
    ]
    last = frames.last_run_frame(history).set_index("Metric")
    assert last.loc["Edge effective compactness", "Drift"] == "drift"
    assert last.loc["Edge stability", "Threshold"] == "at least 0.8: met"
