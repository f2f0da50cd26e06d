"""Plots of Pareto fronts: the stepped line, bars, and names that can be read."""

import math

import matplotlib as mpl
import matplotlib.pyplot  # so that mpl.pyplot is there
import pytest
from matplotlib.colors import to_hex
from support.table_results import noisy, results, values

from graphgauge.benchmark import explainer_title
from graphgauge.core.errors import UndefinedScore
from graphgauge.plots import explainer_styles, plot_fronts, plot_pareto

mpl.use("Agg")
NINE = (
    "deconvolution gnn_explainer graphmask guided_backprop input_x_gradient integrated_gradients "
    "lrp saliency random"
).split()


@pytest.fixture(autouse=True)
def _closed():
    yield
    mpl.pyplot.close("all")


def points(numbers):
    """Results with these (pertinence, EC) of edges."""
    both = [
        (name, metric, own[k])
        for name, own in numbers.items()
        for k, metric in enumerate(("edge_pertinence", "edge_ec"))
    ]
    return results(
        [
            row
            for name, metric, number in both
            for row in values("cora-node", "gcn", name, metric, [number] * 2)
        ]
    )


def test_the_front_is_a_stepped_line_and_its_points_are_named():
    made = points(
        {"lrp": (0.9, 9), "saliency": (0.5, 3), "graphmask": (0.4, 8), "deconvolution": (0.7, 5)}
    )
    axes = plot_pareto(made, "edge_pertinence", "edge_ec", draws=5)
    steps = axes.get_lines()[0]
    assert steps.get_xdata().tolist() == pytest.approx([0.5, 0.5, 0.7, 0.7, 0.9])
    assert steps.get_ydata().tolist() == pytest.approx([3, 5, 5, 9, 9])
    assert sorted(text.get_text() for text in axes.texts if text.get_text()) == [
        "Deconv",
        "LRP",
        "Saliency",
    ]
    assert axes.get_xlabel() == "edge pertinence (higher is better →)"
    assert axes.get_ylabel() == "edge EC, edits (fewer is better ↓)"
    shown = [text.get_text() for text in axes.get_legend().get_texts()]
    assert shown == ["Deconv", "GraphMask", "LRP", "Saliency"]


def test_points_on_one_spot_are_named_together():
    axes = plot_pareto(
        points({"lrp": (0.9, 3), "saliency": (0.9, 3), "graphmask": (0.4, 8)}),
        "edge_pertinence",
        "edge_ec",
        draws=5,
    )
    assert [text.get_text() for text in axes.texts if text.get_text()] == ["LRP, Saliency"]


def test_names_stay_in_the_figure_however_many_stand_on_one_spot_at_its_edge():
    long = [
        f"{name}(variant=captum)" for name in ("deconvolution", "guided_backprop", "lrp", "a" * 80)
    ]
    crowd = dict.fromkeys([*long, "input_x_gradient", "saliency"], (1.0, 3)) | {
        "graphmask": (0.4, 60)
    }
    both = [
        row
        for name, own in crowd.items()
        for k, side in enumerate(("pertinence", "ec"))
        for row in twice(name, side, own[k])
    ]
    figure = plot_fronts(results(both), draws=5)
    names = [text for axes in figure.axes for text in axes.texts if text.get_text()]
    assert [name.get_text().splitlines()[0] for name in names] == ["Deconv(variant=captum),"] * 2
    for name in names:
        box = name.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1


def test_a_name_stands_by_its_own_marker_or_a_line_leads_to_it():
    close = {
        "lrp": (0.45, 32),
        "saliency": (0.445, 28),
        "graphmask": (0.5, 99),
        "gnn_explainer": (0.38, 66),
        "deconvolution": (1, 50),
    }
    axes = plot_pareto(points(close), "edge_pertinence", "edge_ec", draws=5)
    spots = {explainer_title(name): axes.transData.transform(own) for name, own in close.items()}
    led = {tuple(text.xy) for text in axes.texts if not text.get_text()}
    named = [text for text in axes.texts if text.get_text()]
    assert sorted(text.get_text() for text in named) == ["Deconv", "LRP", "Saliency"]
    for text in (text for text in named if tuple(text.xy) not in led):
        assert (
            min(spots, key=lambda name: distance(spots[name], text.get_window_extent()))
            == text.get_text()
        )


def distance(spot, box):
    """From a spot to the nearest point of a box."""
    return math.dist(spot, (min(max(spot[0], box.x0), box.x1), min(max(spot[1], box.y0), box.y1)))


def twice(name, form, number):
    """The same number for features and edges, of two targets."""
    return [
        row
        for side in ("feature", "edge")
        for row in values("cora-node", "gcn", name, f"{side}_{form}", [number] * 2)
    ]


def test_bars_hold_the_draws():
    made = results(
        values("t", "m", "lrp", "edge_pertinence", [0.0, 1.0])
        + values("t", "m", "lrp", "edge_ec", [4, 4])
    )
    axes = plot_pareto(made, "edge_pertinence", "edge_ec", draws=200)
    (container,) = axes.containers
    across, upright = (bars.get_segments()[0] for bars in container.lines[2])
    assert across.tolist() == [[0, 4], [1, 4]]
    assert upright.tolist() == [[0.5, 4], [0.5, 4]]


def test_nine_explainers_have_nine_looks_and_names_do_not_cover_each_other():
    chosen = explainer_styles(NINE)
    assert len({chosen[name] for name in NINE}) == 9
    assert len({to_hex(chosen[name][0]) for name in NINE}) == 9
    assert chosen["lrp"] == explainer_styles(["lrp"])["lrp"]
    ladder = {name: (0.80 + 0.01 * k, 5 + k) for k, name in enumerate(NINE[:8])}
    axes = plot_pareto(points(ladder), "edge_pertinence", "edge_ec", draws=5)
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert len(boxes) == 8
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[k + 1 :])


def test_a_figure_has_a_panel_for_each_pair_and_time_is_logarithmic():
    figure = plot_fronts(noisy(explainers=NINE), "cora", draws=5)
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "linear", "log", "log"]
    assert figure.get_suptitle() == "cora"
    assert len(figure.legends[0].get_texts()) == 9
    with pytest.raises(UndefinedScore, match="no pair"):
        plot_fronts(results(values("t", "m", "lrp", "edge_ec", [1])))
