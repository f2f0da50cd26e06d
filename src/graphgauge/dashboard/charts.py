"""Charts as Vega-Lite, with fixed field names: what people call their things is data, which Vega
draws letter by letter.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from graphgauge.report.pareto import looks

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8a94a0"


def axis(field: str, is_x: bool = False) -> dict[str, Any]:
    """A quantity on an axis that need not begin at 0."""
    scale = {"zero": False, "nice": False, "padding": 30 if is_x else 22}
    return {
        "field": field,
        "type": "quantitative",
        "scale": scale,
        "axis": {"title": None, "format": ".3~g", "tickCount": 5},
    }


PLACES = {"on the front": 1, "beaten": 0}  #: and how full their marks are
#: the markers of `report.pareto` as Vega's shapes, or drawn between -1 and 1
SHAPES = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "M-1,-.5L-.5,-1L0,-.5L.5,-1L1,-.5L.5,0L1,.5L.5,1L0,.5L-.5,1L-1,.5L-.5,0Z",
    "*": "M0.00,-1.00L0.24,-0.32L0.95,-0.31L0.38,0.12L0.59,0.81L0.00,0.40L-0.59,0.81L-0.38,0.12L-0.95,-0.31L-0.24,-0.32Z",
    "<": "triangle-left",
    ">": "triangle-right",
    "h": "M0.00,-1.00L0.87,-0.50L0.87,0.50L0.00,1.00L-0.87,0.50L-0.87,-0.50Z",
    "x": "M-1,-1L1,1M-1,1L1,-1",
}
LEGEND = {
    "title": None,
    "orient": "bottom",
    "columns": 3,
    "labelLimit": 135,
    "symbolSize": 90,
    "symbolOpacity": 1,
}
OWN: dict[str, Any] = {
    "field": "explainer",
    "type": "nominal",
    "sort": None,
}  #: its own colour and shape for each explainer
FRONT: dict[str, Any] = {
    "height": 380,
    "encoding": {"stroke": {**OWN, "legend": LEGEND}},
    "layer": [
        {
            "mark": {"type": "rule", "opacity": 0.45},
            "encoding": {"x": axis("x_low", True), "x2": {"field": "x_high"}, "y": axis("y")},
        },
        {
            "mark": {"type": "rule", "opacity": 0.45},
            "encoding": {"x": axis("x", True), "y": axis("y_low"), "y2": {"field": "y_high"}},
        },
        {
            "mark": {"type": "point", "size": 110, "strokeWidth": 2},
            "encoding": {
                "x": axis("x", True),
                "y": axis("y"),
                "shape": {**OWN, "legend": LEGEND},
                "fill": {**OWN, "legend": None},
                "fillOpacity": {
                    "field": "place",
                    "type": "ordinal",
                    "legend": None,
                    "scale": {"domain": list(PLACES), "range": list(PLACES.values())},
                },
                "tooltip": [
                    {"field": "here", "title": "Explainer"},
                    {"field": "x", "type": "quantitative", "format": ".3g"},
                    {"field": "y", "type": "quantitative", "format": ".3g"},
                    {"field": "place", "title": "Place"},
                ],
            },
        },
    ],
}

TIME = {
    "field": "at",
    "type": "temporal",
    "title": None,
    "axis": {"format": "%Y-%m-%d", "tickCount": 4, "labelOverlap": True, "labelBound": True},
    "scale": {"type": "utc", "padding": 10},
}
HISTORY: dict[str, Any] = {
    "height": 220,
    "encoding": {"x": TIME},
    "layer": [
        {
            "mark": {"type": "area", "color": "#cfe6f5", "opacity": 0.8},
            "encoding": {"y": axis("low"), "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "color": GREY, "strokeWidth": 1},
            "encoding": {"y": axis("baseline")},
        },
        {
            "mark": {"type": "line", "color": ORANGE, "strokeDash": [5, 3], "strokeWidth": 1.5},
            "encoding": {"y": axis("threshold")},
        },
        {
            "mark": {"type": "rule", "color": BLUE, "opacity": 0.4, "strokeWidth": 2},
            "encoding": {"y": axis("lower"), "y2": {"field": "upper"}},
        },
        {
            "mark": {"type": "line", "color": BLUE, "opacity": 0.6, "strokeWidth": 1.5},
            "encoding": {"y": axis("mean")},
        },
        {
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {
                "y": axis("mean"),
                "color": {
                    "field": "state",
                    "type": "ordinal",
                    "scale": {
                        "domain": ["no trigger", "a trigger was raised"],
                        "range": [BLUE, ORANGE],
                    },
                    "legend": None,
                },
                "size": {
                    "field": "state",
                    "type": "ordinal",
                    "scale": {"domain": ["no trigger", "a trigger was raised"], "range": [40, 110]},
                    "legend": None,
                },
                "tooltip": [
                    {"field": "run", "title": "Run"},
                    {"field": "at", "type": "temporal", "title": "Date", "format": "%Y-%m-%d"},
                    {"field": "mean", "type": "quantitative", "title": "Mean", "format": ".3g"},
                    {"field": "targets", "title": "Targets"},
                    {"field": "state", "title": "Trigger"},
                ],
            },
        },
    ],
}


def front_chart(explainers: Sequence[str], x: str, y: str) -> dict[str, Any]:
    """A front with titles at its axes, colours and shapes for these explainers, and seconds on a
    logarithmic scale.
    """
    own, looked = deepcopy(FRONT), looks(explainers)
    mark = own["layer"][-1]["encoding"]
    for channel in (own["encoding"]["stroke"], mark["fill"]):
        channel["scale"] = {
            "domain": list(explainers),
            "range": [looked[name][0] for name in explainers],
        }
    mark["shape"]["scale"] = {
        "domain": list(explainers),
        "range": [SHAPES[looked[name][1]] for name in explainers],
    }
    for layer in own["layer"]:
        layer["encoding"]["x"]["axis"]["title"], layer["encoding"]["y"]["axis"]["title"] = x, y
        if y.startswith("seconds"):
            layer["encoding"]["y"]["scale"] = {"type": "log", "nice": False, "padding": 22}
    for cell, title in zip(mark["tooltip"][1:3], (x, y), strict=True):
        cell["title"] = title.partition(" (")[0].capitalize()
    return own
