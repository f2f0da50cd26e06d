"""Charts as Vega-Lite, with fixed field names: what people call their things is data, which Vega
draws letter by letter.
"""

from collections.abc import Sequence
from copy import deepcopy

from graphgauge.core import JsonObject
from graphgauge.plots import explainer_styles

_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#8a94a0"


def _quantity_axis(field: str, is_x: bool = False) -> JsonObject:
    """A quantity on an axis that need not begin at 0."""
    scale = {"zero": False, "nice": False, "padding": 30 if is_x else 22}
    return {
        "field": field,
        "type": "quantitative",
        "scale": scale,
        "axis": {"title": None, "format": ".3~g", "tickCount": 5},
    }


_FRONT_PLACES = {"on the front": 1, "beaten": 0}  #: and how full their marks are
#: the markers of `report.pareto` as Vega's shapes, or drawn between -1 and 1
_VEGA_SHAPES = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "M-1,-.5L-.5,-1L0,-.5L.5,-1L1,-.5L.5,0L1,.5L.5,1L0,.5L-.5,1L-1,.5L-.5,0Z",
    "*": (
        "M0.00,-1.00L0.24,-0.32L0.95,-0.31L0.38,0.12L0.59,0.81"
        "L0.00,0.40L-0.59,0.81L-0.38,0.12L-0.95,-0.31L-0.24,-0.32Z"
    ),
    "<": "triangle-left",
    ">": "triangle-right",
    "h": "M0.00,-1.00L0.87,-0.50L0.87,0.50L0.00,1.00L-0.87,0.50L-0.87,-0.50Z",
    "x": "M-1,-1L1,1M-1,1L1,-1",
}
_EXPLAINER_LEGEND = {
    "title": None,
    "orient": "bottom",
    "columns": 3,
    "labelLimit": 135,
    "symbolSize": 90,
    "symbolOpacity": 1,
}
#: its own colour and shape for each explainer
_EXPLAINER_CHANNEL: JsonObject = {"field": "explainer", "type": "nominal", "sort": None}
_FRONT_TEMPLATE: JsonObject = {
    "height": 380,
    "encoding": {"stroke": {**_EXPLAINER_CHANNEL, "legend": _EXPLAINER_LEGEND}},
    "layer": [
        {
            "mark": {"type": "rule", "opacity": 0.45},
            "encoding": {
                "x": _quantity_axis("x_low", True),
                "x2": {"field": "x_high"},
                "y": _quantity_axis("y"),
            },
        },
        {
            "mark": {"type": "rule", "opacity": 0.45},
            "encoding": {
                "x": _quantity_axis("x", True),
                "y": _quantity_axis("y_low"),
                "y2": {"field": "y_high"},
            },
        },
        {
            "mark": {"type": "point", "size": 110, "strokeWidth": 2},
            "encoding": {
                "x": _quantity_axis("x", True),
                "y": _quantity_axis("y"),
                "shape": {**_EXPLAINER_CHANNEL, "legend": _EXPLAINER_LEGEND},
                "fill": {**_EXPLAINER_CHANNEL, "legend": None},
                "fillOpacity": {
                    "field": "place",
                    "type": "ordinal",
                    "legend": None,
                    "scale": {"domain": list(_FRONT_PLACES), "range": list(_FRONT_PLACES.values())},
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

_TIME_AXIS = {
    "field": "at",
    "type": "temporal",
    "title": None,
    "axis": {"format": "%Y-%m-%d", "tickCount": 4, "labelOverlap": True, "labelBound": True},
    "scale": {"type": "utc", "padding": 10},
}
HISTORY_CHART: JsonObject = {
    "height": 220,
    "encoding": {"x": _TIME_AXIS},
    "layer": [
        {
            "mark": {"type": "area", "color": "#cfe6f5", "opacity": 0.8},
            "encoding": {"y": _quantity_axis("low"), "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "color": _GREY, "strokeWidth": 1},
            "encoding": {"y": _quantity_axis("baseline")},
        },
        {
            "mark": {"type": "line", "color": _ORANGE, "strokeDash": [5, 3], "strokeWidth": 1.5},
            "encoding": {"y": _quantity_axis("threshold")},
        },
        {
            "mark": {"type": "rule", "color": _BLUE, "opacity": 0.4, "strokeWidth": 2},
            "encoding": {"y": _quantity_axis("lower"), "y2": {"field": "upper"}},
        },
        {
            "mark": {"type": "line", "color": _BLUE, "opacity": 0.6, "strokeWidth": 1.5},
            "encoding": {"y": _quantity_axis("mean")},
        },
        {
            "mark": {"type": "point", "filled": True, "opacity": 1},
            "encoding": {
                "y": _quantity_axis("mean"),
                "color": {
                    "field": "state",
                    "type": "ordinal",
                    "scale": {
                        "domain": ["no trigger", "a trigger was raised"],
                        "range": [_BLUE, _ORANGE],
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


def front_chart(explainers: Sequence[str], x: str, y: str) -> JsonObject:
    """A front with titles at its axes, colours and shapes for these explainers, and seconds on a
    logarithmic scale.
    """
    own, looked = deepcopy(_FRONT_TEMPLATE), explainer_styles(explainers)
    mark = own["layer"][-1]["encoding"]
    for channel in (own["encoding"]["stroke"], mark["fill"]):
        channel["scale"] = {
            "domain": list(explainers),
            "range": [looked[name][0] for name in explainers],
        }
    mark["shape"]["scale"] = {
        "domain": list(explainers),
        "range": [_VEGA_SHAPES[looked[name][1]] for name in explainers],
    }
    for layer in own["layer"]:
        layer["encoding"]["x"]["axis"]["title"], layer["encoding"]["y"]["axis"]["title"] = x, y
        if y.startswith("seconds"):
            layer["encoding"]["y"]["scale"] = {"type": "log", "nice": False, "padding": 22}
    for cell, title in zip(mark["tooltip"][1:3], (x, y), strict=True):
        cell["title"] = title.partition(" (")[0].capitalize()
    return own
