"""Pictures of deletion curves."""

import matplotlib as mpl
import matplotlib.pyplot  # so that mpl.pyplot is there
import pytest
import torch

from graphgauge.core.errors import UndefinedScore
from graphgauge.evaluation import ScoreTrace, TracedCase
from graphgauge.plots import colours, plot_deletion_curve

mpl.use("Agg")


def case(reference, ec, flipped=True):
    return TracedCase(
        reference=reference,
        start=0.9,
        curve=torch.tensor([0.6, 0.3, 0.2]),
        random=torch.tensor([[0.9, 0.8, 0.7], [0.7, 0.6, 0.5], [0.8, 0.7, torch.nan]]),
        twin=torch.tensor([[0.9, 0.8, 0.7]]),
        draws=(ec,),
        candidates=3,
        ec=ec,
        flipped=flipped,
        steps=2,
        trials=3,
        stop="decided",
        score=0.75,
        won=0.75,
        tied=0.0,
        lost=0.25,
    )


def test_the_curve_starts_at_the_prediction_and_the_band_holds_the_random_ones():
    axes = plot_deletion_curve(ScoreTrace("saliency", 7, "edge", (case(None, 2),), {}))
    random, own, mark = axes.get_lines()
    assert own.get_ydata() == pytest.approx([0.9, 0.6, 0.3, 0.2])
    assert random.get_ydata() == pytest.approx([0.9, 0.8, 0.7, 0.6])
    assert list(mark.get_xdata()) == [2, 2]
    assert axes.get_title() == "target 7: pertinence 0.75"
    assert axes.get_xlabel() == "edges removed"
    mpl.pyplot.close("all")


def test_features_show_the_reference_that_flips_soonest_or_the_one_asked_for():
    story = ScoreTrace(
        "lrp", 3, "feature", (case(11, 1, flipped=False), case(12, 3), case(13, 2)), {}
    )
    assert plot_deletion_curve(story).get_title() == "target 3, reference 13: pertinence 0.75"
    assert story.plot(reference=11).get_title() == "target 3, reference 11: pertinence 0.75"
    with pytest.raises(UndefinedScore, match=r"no curve against reference 9; there are 11, 12, 13"):
        plot_deletion_curve(story, reference=9)
    mpl.pyplot.close("all")


def test_the_curve_uses_the_one_palette_and_keeps_names_as_they_are():
    axes = plot_deletion_curve(ScoreTrace("$x$", 7, "edge", (case(None, 2),), {}))
    assert [line.get_color() for line in axes.lines] == [
        colours.GREY,
        colours.BLUE,
        colours.VERMILION,
    ]
    name = axes.get_legend().get_texts()[2]
    assert (name.get_text(), name.get_parse_math()) == ("$x$", False)
    mpl.pyplot.close("all")
