"""Bars have the lengths of the scores."""

import matplotlib as mpl
import matplotlib.pyplot  # so that mpl.pyplot is there
import pytest
import torch
from matplotlib.colors import to_hex
from support.drawings import DATA, UNSIGNED, explanation

from graphgauge.core.errors import BadExplanation, BadSetting, UndefinedScore, UnknownName
from graphgauge.plots import colours, plot_edge_bars, plot_feature_bars

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    mpl.pyplot.close("all")


def bars(axes):
    """Labels with the lengths of their bars, the strongest first."""
    labels = [tick.get_text() for tick in axes.get_yticklabels()]
    return list(zip(labels, [patch.get_width() for patch in axes.patches], strict=True))


def test_features_of_the_target_and_of_its_neighbours_in_the_order_of_their_strength():
    axes = plot_feature_bars(explanation(), names={"features": ["income", "age"]})
    assert bars(axes) == [
        ("age", 3.0),
        ("feature 2", -1.0),
        ("income of neighbours", 1.0),
        ("age of neighbours", 0.25),
    ]
    assert axes.yaxis_inverted()
    assert [to_hex(patch.get_facecolor()) for patch in axes.patches[:3]] == [
        colours.RAISES.lower(),
        colours._mix_with_white(colours.LOWERS, 0.35 + 0.65 / 3),
        colours._mix_with_white(colours.RAISES, 0.35 + 0.65 / 3),
    ]
    assert axes.get_xlabel().replace("\n", " ").endswith("and 2 further scores with 0 % of the sum")


def test_feature_groups_are_one_bar_and_their_scores_add_up():
    axes = plot_feature_bars(explanation(), names={"feature_groups": {"money": [1, 2]}}, top=1)
    assert bars(axes) == [("money", 2.0)]
    # 1.25 / 3.25
    assert (
        axes.get_xlabel().replace("\n", " ").endswith("and 3 further scores with 38 % of the sum")
    )


def test_the_pooling_of_neighbours_can_be_chosen():
    assert ("feature 0 of neighbours", 0.5) in bars(plot_feature_bars(explanation(), pooling="sum"))
    with pytest.raises(UnknownName, match="pooling"):
        plot_feature_bars(explanation(), pooling="median")


def test_scores_without_a_direction_have_one_hue():
    axes = plot_feature_bars(explanation(explainer=UNSIGNED, feature_score=torch.ones(6, 3)))
    assert {to_hex(patch.get_facecolor()) for patch in axes.patches} == {colours.UNSIGNED.lower()}
    assert axes.get_xlabel() == "feature score"


def test_edges_are_told_by_their_ends_where_the_data_is_given():
    known = bars(plot_edge_bars(explanation(), DATA, names={"nodes": {2: "Ada"}}, top=2))
    assert known == [("1 → 0", 0.5), ("Ada → 0", -0.25)]
    assert bars(plot_edge_bars(explanation(), top=2)) == [("edge 0", 0.5), ("edge 1", -0.25)]


def test_features_of_both_ends_of_a_link_are_told_apart():
    axes = plot_feature_bars(explanation(target=(0, 1), level="link"))
    assert bars(axes)[:2] == [("feature 1 of the first", 3.0), ("feature 2 of the first", -1.0)]
    assert ("feature 0 of the second", 1.0) in bars(axes)


def test_zeros_have_no_bars():
    axes = plot_feature_bars(explanation(feature_score=torch.zeros(6, 3)))
    assert bars(axes) == []
    assert axes.get_xlabel().replace("\n", " ").endswith("none of 6 is other than 0")


@pytest.mark.parametrize("name", ["$x_1$", "$\\frac{", "<b>", "n" * 300])
def test_labels_of_bars_are_not_read_as_mathematics(name):
    axes = plot_feature_bars(explanation(), names={"features": [name] * 3})
    axes.figure.draw_without_rendering()
    assert not any(tick.get_parse_math() for tick in axes.get_yticklabels())
    assert bars(axes)[0][0] == (name if len(name) <= 22 else name[:21] + "…")


@pytest.mark.parametrize(
    ("changes", "options", "error", "message"),
    [
        ({"feature_score": None}, {}, BadExplanation, "feature_score of target 0"),
        (
            {"feature_score": torch.full((6, 3), torch.inf)},
            {},
            UndefinedScore,
            "hold NaN or infinity",
        ),
        ({}, {"top": True}, BadSetting, "top must be a whole number"),
        (
            {},
            {"names": {"features": ["a"] * 4}},
            BadSetting,
            "names.features speaks of number 3, but there are 3",
        ),
    ],
)
def test_bars_that_cannot_be_drawn_are_refused(changes, options, error, message):
    with pytest.raises(error, match=message):
        plot_feature_bars(explanation(**changes), **options)
