"""Moved thresholds give the verdicts that the same thresholds give from the start."""

import pytest
from support.chosen_results import good
from support.chosen_results import run as made

from graphgauge.guidelines import Requirements, recommend, verdicts
from graphgauge.guidelines.aggregation import aggregate_run
from graphgauge.guidelines.what_if import list_threshold_sliders, simulate_thresholds

WANTED = Requirements("node_classification", num_features=80)
RESULTS = made(
    {
        "a": good(edge_pertinence=0.5, time=0.5),
        "b": good(edge_ec=20, time=40.5),
        "random": good(edge_pertinence=0.3),
    }
)
FOUND = aggregate_run(RESULTS, WANTED, merge_models=True)


def test_knobs_start_at_the_papers_thresholds():
    found = {own.metric: own for own in list_threshold_sliders(FOUND, "", WANTED)}
    assert {name: own.start for name, own in found.items()} == {
        "feature_pertinence": 0.6,
        "edge_pertinence": 0.6,
        "feature_ec": 8.0,
        "edge_ec": None,
        "feature_stability": 0.8,
        "edge_stability": 0.8,
        "time": 5.0,
    }
    assert [found[name].most for name in ("edge_pertinence", "edge_ec", "time")] == [
        1.0,
        100.0,
        41.0,
    ]
    assert [found[name].direction for name in ("edge_pertinence", "edge_ec", "time")] == [
        "at least",
        "at most",
        "below",
    ]


def test_a_knob_reaches_as_far_as_the_limit_of_the_user():
    own = Requirements(
        "node_classification", num_features=80, limits={"feature_ec": 250, "time": 60}
    )
    found = {
        each.metric: (each.start, each.most) for each in list_threshold_sliders(FOUND, "", own)
    }
    assert (found["feature_ec"], found["time"]) == ((250.0, 250.0), (60.0, 120.0))


@pytest.mark.parametrize(
    "limits",
    [{}, {"edge_pertinence": 0.4}, {"edge_ec": 10.0, "time": 0.1}, {"feature_stability": 1.0}],
)
def test_verdicts_are_those_of_the_limits(limits):
    found = simulate_thresholds(FOUND, "", WANTED, limits)
    moved = Requirements("node_classification", num_features=80, limits=limits)
    assert list(found.before) == verdicts(RESULTS, WANTED)
    assert list(found.after) == verdicts(RESULTS, moved)
    (before,), (after,) = recommend(RESULTS, WANTED), recommend(RESULTS, moved)
    assert (found.chosen_before, found.chosen_after) == (before.chosen, after.chosen)


def test_only_what_changes_is_named():
    changed = simulate_thresholds(FOUND, "", WANTED, {"edge_pertinence": 0.4}).changed
    assert [(old.explainer, old.metric, old.outcome, new.outcome) for old, new in changed] == [
        ("a", "edge_pertinence", "fail", "pass")
    ]
    assert simulate_thresholds(FOUND, "", WANTED, {}).changed == []
