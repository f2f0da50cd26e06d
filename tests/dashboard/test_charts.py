"""Charts: every explainer looks the same in all of them, and like nobody else."""

import pytest

pytest.importorskip("streamlit")

from graphgauge.benchmark.explainer_names import PAPER_EXPLAINERS
from graphgauge.dashboard.charts import _VEGA_SHAPES, front_chart
from graphgauge.plots.pareto_plot import _SERIES_MARKERS, explainer_styles


def looks_in(chart):
    """Explainer -> (colour of the line, of the filling, shape), as Vega would look them up."""
    mark = chart["layer"][-1]["encoding"]
    channels = [chart["encoding"]["stroke"], mark["fill"], mark["shape"]]
    scales = [
        dict(zip(own["scale"]["domain"], own["scale"]["range"], strict=True)) for own in channels
    ]
    return {name: tuple(scale[name] for scale in scales) for name in scales[0]}


def test_each_explainer_has_its_own_look():
    found = looks_in(front_chart(list(PAPER_EXPLAINERS), "x", "y"))
    assert list(found) == list(PAPER_EXPLAINERS)
    assert all(line == filling for line, filling, _ in found.values())
    assert (
        len({line for line, _, _ in found.values()})
        == len({shape for *_, shape in found.values()})
        == len(PAPER_EXPLAINERS)
    )


def test_the_papers_methods_look_the_same_whoever_else_is_there():
    alone, together = (
        looks_in(front_chart(["lrp"], "x", "y")),
        looks_in(front_chart([*PAPER_EXPLAINERS, "mine"], "x", "y")),
    )
    assert alone["lrp"] == together["lrp"]


def test_every_marker_of_the_pictures_has_a_shape_of_its_own():
    assert set(_VEGA_SHAPES) >= {*_SERIES_MARKERS, explainer_styles([])["random"][1]}
    assert len(set(_VEGA_SHAPES.values())) == len(_VEGA_SHAPES)


def test_seconds_are_on_a_logarithmic_scale_and_edits_are_not():
    seconds, edits = (
        front_chart(["lrp"], "x", "seconds (less is better ↓)"),
        front_chart(["lrp"], "x", "EC, edits"),
    )
    assert {layer["encoding"]["y"]["scale"].get("type") for layer in seconds["layer"]} == {"log"}
    assert {layer["encoding"]["y"]["scale"].get("type") for layer in edits["layer"]} == {None}
    assert edits["layer"][-1]["encoding"]["y"]["axis"]["title"] == "EC, edits"
