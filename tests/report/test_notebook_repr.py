"""What notebooks show: whole, escaped, without an outside request, the same every time."""

import re

import matplotlib as mpl
import matplotlib.pyplot  # so that mpl.pyplot is there
import pytest
import torch
from support.drawings import explanation
from support.html_tags import Tags

import graphgauge as gg
from graphgauge.evaluation.metric_value import MetricValue
from graphgauge.evaluation.result_row import Row
from graphgauge.evaluation.settings import settings_from_preset

mpl.use("Agg")
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</svg><b>",
    "$x$",
    "-->",
    "]]>",
    "&lt;",
    "\x00\n\t",
]


def check_safe(text):
    page = Tags(text)
    assert page.seen.isdisjoint(
        {"script", "style", "img", "link", "iframe", "object", "image", "foreignobject"}
    )
    assert not any(name.startswith("on") for name, _ in page.attributes)
    addresses = [value for name, value in page.attributes if name in ("href", "xlink:href", "src")]
    assert all(value.startswith("#") for value in addresses)
    assert re.findall(r"url\((?!#)", text) == []
    return page


def row(explainer, metric, value, target=0):
    cell = MetricValue(value) if value is not None else MetricValue(status="empty")
    return Row("task", "model", explainer, target, 0, metric, cell, None, 0, "", "")


def results(name="saliency"):
    metrics = {
        "feature_stability": (1.0, 0.5),
        "edge_pertinence": (0.25, None),
        "edge_ec": (3.0, 4.0),
    }
    rows = [
        row(name, metric, value, target)
        for metric, values in metrics.items()
        for target, value in enumerate(values)
    ]
    return gg.Results(tuple(rows), settings_from_preset("paper"))


def test_an_explanation_shows_its_target_its_bars_and_its_metrics():
    text = explanation(
        metrics={"edge_ec": 4, "edge_pertinence": float("nan"), "note": "x"}
    )._repr_html_()
    page = check_safe(text)
    assert text.count("<svg") == 2
    for words in (
        "node 0 · input_x_gradient · predicted class 1 (75 %)",
        "edge 0",
        "feature 1",
        "edge_ec",
        "4",
        "–",
    ):
        assert words in page.words
    assert "note" not in page.words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"edge_score": None},
            "No edge scores to show: the explainer gives no scores of this side.",
        ),
        (
            {"feature_score": torch.full((6, 3), torch.nan)},
            "No feature scores to show: a score is NaN or infinite.",
        ),
        (
            {"edges": torch.arange(0), "edge_score": torch.zeros(0)},
            "No edge scores to show: no edge can carry",
        ),
        ({"prediction": None, "explainer": ""}, "node 0"),
        ({"target": (0, 1), "level": "link"}, "link 0 → 1"),
        ({"level": "graph"}, "graph 0"),
    ],
)
def test_an_explanation_with_gaps_is_shown_with_the_reason(changes, words):
    assert words in check_safe(explanation(**changes)._repr_html_()).words


def test_results_show_means_and_the_values_of_single_targets():
    text = results()._repr_html_()
    page = check_safe(text)
    assert text.count("<svg") == 1
    for words in (
        "2 targets",
        "saliency",
        "0.75",
        "0.25",
        "3.5",
        "feature stability",
        "edge pertinence",
    ):
        assert words in page.words
    assert (
        gg.Results((row("lrp", "edge_ec", 2.0),), settings_from_preset("paper"))
        ._repr_html_()
        .count("<svg")
        == 0
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_do_not_break_the_page(name):
    check_safe(explanation(explainer=name, metrics={name: 1.0})._repr_html_())
    check_safe(results(name)._repr_html_())


def test_the_same_input_gives_the_same_bytes():
    assert explanation()._repr_html_() == explanation()._repr_html_()
    assert results()._repr_html_() == results()._repr_html_()


def test_showing_leaves_no_figure_open_and_no_setting_changed():
    before, figures = dict(mpl.rcParams), mpl.pyplot.get_fignums()
    explanation()._repr_html_()
    assert mpl.pyplot.get_fignums() == figures  # other tests may have left some
    assert dict(mpl.rcParams) == before
