"""The deployment checklist: each of the eight points done, not done and open."""

import pytest
from support.chosen_results import GOOD, good, run

from graphgauge.core.errors import BadSetting, UnknownName
from graphgauge.evaluation import Settings
from graphgauge.guidelines import Requirements, checklist, load_guideline

WANTED = Requirements(num_features=200)


def points(numbers, explainer=None, wanted=WANTED, n=100, settings=None, evidence=None):
    return {
        point.name: point
        for point in checklist(run(numbers, n, settings), explainer, wanted, evidence)
    }


def test_the_list_has_the_papers_eight_points_in_order():
    assert list(points({"lrp": GOOD})) == [
        entry["name"] for entry in load_guideline("practice")["checklist"]
    ]


def test_selection():
    numbers = {"input_x_gradient": GOOD, "saliency": good(time=9)}
    assert points(numbers)["selection"].state == "done"
    assert points(numbers, "input_x_gradient")["selection"].evidence.startswith(
        "input_x_gradient: measured beside saliency and chosen (it alone of 2 explainers fails no "
        "verdict)"
    )
    own = points(numbers, "saliency")["selection"]
    assert (own.state, own.evidence) == (
        "not done",
        "saliency is not the choice, input_x_gradient is; it misses time (9 s against 5 s)",
    )


def test_an_explainer_that_was_compared_with_no_other_was_not_chosen():
    for numbers in (
        {"input_x_gradient": GOOD},
        {"input_x_gradient": GOOD, "random": good(edge_pertinence=0.5)},
    ):
        own = points(numbers)["selection"]
        assert own.state == "not done"
        assert own.evidence.startswith(
            "input_x_gradient was compared with no other explainer, so nothing was chosen; paper: "
            "inp"
        )


def test_the_papers_choice_is_not_chosen_where_another_one_was_measured_to_be_better():
    numbers = {"input_x_gradient": good(edge_pertinence=0.7), "lrp": GOOD}
    assert points(numbers, "input_x_gradient")["selection"].state == "not done"


@pytest.mark.parametrize(("n", "state"), [(100, "done"), (99, "not done")])
def test_validation_asks_for_100_targets(n, state):
    own = points({"lrp": GOOD}, n=n)["validation"]
    assert (
        own.state,
        own.evidence.startswith(f"lrp was measured on {n} targets, 100 are asked for"),
    ) == (state, True)


def test_targets_of_the_baseline_and_targets_without_a_value_do_not_count():
    empty = {
        metric: ["empty"] * 150 + [value] * 50 for metric, value in GOOD.items() if metric != "time"
    }
    own = points({"lrp": {**empty, "time": 0.1}, "random": good(edge_pertinence=0.5)}, n=200)[
        "validation"
    ]
    assert (own.state, own.evidence.split(",")[0]) == ("not done", "lrp was measured on 50 targets")


def test_thresholds():
    assert points({"lrp": GOOD})["thresholds"].state == "done"
    own = points({"lrp": good(edge_pertinence=0.31)})["thresholds"]
    assert own.state == "not done"
    assert "1 of 7 numbers miss their threshold. Edge pertinence 0.31" in own.evidence
    own = points({"lrp": GOOD}, wanted=Requirements())["thresholds"]
    assert (own.state, "--features" in own.evidence) == ("not done", True)


def test_latency():
    fast = Requirements(num_features=200, latency="interactive")
    assert points({"lrp": GOOD})["latency"].evidence == "not needed: the use is not interactive"
    assert points({"lrp": GOOD}, wanted=fast)["latency"].evidence == "set: early_stop='paper'"
    own = points({"lrp": GOOD}, wanted=fast, settings=Settings(early_stop="none"))["latency"]
    assert own.state == "not done"
    settings = Settings(early_stop="none", twins=False, stability="binomial")
    assert (
        points({"lrp": GOOD}, wanted=fast, settings=settings)["latency"].evidence
        == "set: stability='binomial', twins=False"
    )


@pytest.mark.parametrize("name", ["translation", "monitoring", "revalidation", "compliance"])
def test_what_the_owner_does_is_open_until_a_file_shows_it(name, tmp_path):
    assert points({"lrp": GOOD})[name].state == "open"
    file = tmp_path / "shown.md"
    assert (
        points({"lrp": GOOD}, evidence={name: str(file)})[name].evidence
        == f"there is no file {file}"
    )
    assert points({"lrp": GOOD}, evidence={name: str(file)})[name].state == "not done"
    file.write_text("done")
    own = points({"lrp": GOOD}, evidence={name: str(file)})[name]
    assert (own.state, own.evidence) == ("done", str(file))
    assert str(own).startswith("[x] ")


def test_unknown_names_are_refused():
    with pytest.raises(
        BadSetting, match="evidence names 'thresholds', but the owner's points are translation"
    ):
        points({"lrp": GOOD}, evidence={"thresholds": "x"})  # what a run shows, no file replaces
    with pytest.raises(UnknownName, match="It has: lrp"):
        points({"lrp": GOOD}, "saliency")
