"""Fronts as small pictures: discs stand where the means are, and say whose they are."""

import re

import pytest
from support.table_results import results, values

from graphgauge.benchmark import as_study
from graphgauge.plots import front_drawings

NUMBERS = {"lrp": 1, "saliency": 2, "graphmask": 3, "random": 4}


def edge_results(means):
    """Results with these (pertinence, EC) of edges."""
    return results(
        [
            row
            for name, pair in means.items()
            for metric, value in zip(("edge_pertinence", "edge_ec"), pair, strict=True)
            for row in values("cora-node", "gcn", name, metric, [value] * 2)
        ]
    )


def draw_one(means):
    """The drawing of the only pair that was measured."""
    (drawing,) = front_drawings(as_study(edge_results(means)), "pertinence", NUMBERS, "random")
    return drawing


def test_discs_stand_where_the_means_are_and_the_best_is_at_the_bottom_right():
    drawing = draw_one({"lrp": (0.9, 3), "saliency": (0.5, 6), "graphmask": (0.7, 9)})
    discs = {marker["text"]: marker for marker in drawing["markers"]}
    assert discs["2"]["x"] < discs["3"]["x"] < discs["1"]["x"]
    assert discs["3"]["y"] < discs["2"]["y"] < discs["1"]["y"]  # from the top
    assert (discs["3"]["x"] - discs["2"]["x"]) == pytest.approx(
        discs["1"]["x"] - discs["3"]["x"], abs=0.11
    )
    assert {number: disc["front"] for number, disc in discs.items()} == {
        "1": True,
        "2": False,
        "3": False,
    }
    frame = drawing["frame"]
    assert all(frame["left"] <= disc["x"] <= frame["right"] for disc in discs.values())
    assert all(frame["top"] <= disc["y"] <= frame["bottom"] for disc in discs.values())


def test_the_picture_has_a_disc_with_number_and_words_for_each_marker():
    drawing = draw_one({"lrp": (0.9, 3), "saliency": (0.5, 6)})
    svg = drawing["pictures"]["front"]
    titles = re.findall(r"<title>([^<]*)</title>", svg)
    assert sorted(titles) == ["lrp: 0.9, 3", "saliency: 0.5, 6"]
    assert re.findall(r">(\d)</text>", svg)[-2:] == ["2", "1"]  # those on the front on top
    assert "edge pertinence (higher is better →)" in svg
    assert svg == draw_one({"lrp": (0.9, 3), "saliency": (0.5, 6)})["pictures"]["front"]


def test_explainers_on_one_spot_share_a_pill():
    drawing = draw_one({"lrp": (0.9, 3), "saliency": (0.9, 3), "graphmask": (0.4, 8)})
    beaten, pill = drawing["markers"]
    assert (pill["text"], pill["half"] - beaten["half"]) == ("1 2", 5.5)
    assert pill["told"] == "lrp: 0.9, 3; saliency: 0.9, 3"


def test_the_front_is_a_stepped_line_with_two_explainers_or_more():
    assert draw_one({"lrp": (0.9, 3), "graphmask": (0.4, 8)})["steps"] == ""
    steps = draw_one({"lrp": (0.9, 9), "graphmask": (0.4, 3)})["steps"].split()
    (left, low), (corner, high), (right, top) = (map(float, pair.split(",")) for pair in steps)
    assert (left, high) == (corner, top)
    assert left < right
    assert top < low


def test_random_scores_are_dashed_and_on_no_front():
    drawing = draw_one({"lrp": (0.9, 3), "random": (0.5, 2)})
    dashed = {marker["text"]: marker["is_baseline"] for marker in drawing["markers"]}
    assert dashed == {"4": True, "1": False}


def test_one_explainer_makes_no_front():
    study = as_study(edge_results({"lrp": (0.9, 3)}))
    assert front_drawings(study, "pertinence", NUMBERS, "random") == []
