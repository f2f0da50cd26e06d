"""Marks of a strip stand where the values are."""

import matplotlib as mpl
import matplotlib.pyplot  # so that mpl.pyplot is there
import pytest

from graphgauge.core.errors import UndefinedScore
from graphgauge.plots import plot_stability_strips

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    mpl.pyplot.close("all")


def test_a_strip_shows_every_value_and_their_mean():
    axes = plot_stability_strips(
        {"saliency": [1.0, 1.0], "$mask$": [0.25, 0.5, 0.75]}, chance={"$mask$": 0.4}
    )
    first, first_mean, second, second_mean, chance = (
        list(map(float, line.get_xdata())) for line in axes.lines
    )
    assert (first, first_mean) == ([1.0, 1.0], [1.0])
    assert (second, second_mean, chance) == ([0.25, 0.5, 0.75], [0.5], [0.4])
    assert [set(line.get_ydata()) for line in axes.lines] == [{0}, {0}, {1}, {1}, {1}]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["saliency", "$mask$"]
    assert not any(tick.get_parse_math() for tick in axes.get_yticklabels())
    assert axes.get_xlim()[0] < 0 < 1 < axes.get_xlim()[1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "no values"),
        ([0.5, float("nan")], "holds nan"),
        ([1.5], r"holds 1\.5, .* between 0 and 1"),
    ],
)
def test_strips_of_what_is_no_likeness_are_refused(values, message):
    with pytest.raises(UndefinedScore, match=message):
        plot_stability_strips({"saliency": values})
