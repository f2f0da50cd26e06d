"""What is drawn is what the explanation says, read back from the artists."""

import matplotlib as mpl
import matplotlib.pyplot  # so that mpl.pyplot is there
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from support.drawings import (
    DATA,
    EDGES,
    FEATURES,
    SCORES,
    SIGNED,
    UNSIGNED,
    arrows,
    explanation,
    middle,
    places,
    texts,
)
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.core.errors import BadExplanation, BadSetting, UndefinedScore
from graphgauge.plots import colours, draw_explanation, svg_of
from graphgauge.plots.drawing_graph import DrawnGraph, build_drawn_graph
from graphgauge.plots.graph_layout import _overlap_area, place_labels, ring_layout
from graphgauge.plots.subgraph_plot import (
    _MAX_LINE_WIDTH,
    _MAX_NODE_RADIUS,
    _MIN_LINE_WIDTH,
    _MIN_NODE_RADIUS,
)
from graphgauge.plots.top_edges import select_top_edges

mpl.use("Agg")
PAIRS = [tuple(pair) for pair in EDGES.t().tolist()]


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    mpl.pyplot.close("all")


def test_edges_with_a_score_are_drawn_with_widths_in_the_order_of_their_strength():
    drawn = arrows(explanation().draw(DATA))
    assert len(drawn) == 6
    strengths = sorted(SCORES[SCORES != 0].abs().tolist())
    assert [arrow.get_linewidth() for arrow in drawn] == pytest.approx(
        [
            _MIN_LINE_WIDTH + (_MAX_LINE_WIDTH - _MIN_LINE_WIDTH) * strength / 0.5
            for strength in strengths
        ]
    )


def test_colours_tell_the_sign_and_depth_the_strength():
    drawn = arrows(explanation().draw(DATA))[::-1]
    found = [to_hex(arrow.get_edgecolor()) for arrow in drawn]
    assert found[:2] == [
        colours.RAISES.lower(),
        colours._mix_with_white(colours.LOWERS, 0.35 + 0.65 / 2),
    ]
    legend = mpl.pyplot.gca().get_legend().get_texts()
    assert [text.get_text() for text in legend] == ["raises the output", "lowers the output"]


def test_scores_without_a_direction_have_one_hue():
    axes = explanation(explainer=UNSIGNED).draw(DATA)
    strongest, second = arrows(axes)[:-3:-1]
    assert to_hex(strongest.get_edgecolor()) == colours.UNSIGNED.lower()
    assert to_hex(second.get_edgecolor()) == colours._mix_with_white(
        colours.UNSIGNED, 0.35 + 0.65 / 2
    )
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "importance, without a direction"
    ]
    told = arrows(explanation(explainer=UNSIGNED).draw(DATA, signed=True))[-2]
    assert to_hex(told.get_edgecolor()) == colours._mix_with_white(colours.LOWERS, 0.35 + 0.65 / 2)


def test_what_is_left_out_is_counted():
    axes = explanation().draw(DATA, top=2)
    assert len(arrows(axes)) == 2
    assert axes.get_xlabel().startswith(
        "2 of 7 edges drawn, with 75 % of the score, and 5 further edges with 25 % of the score."
    )
    assert (
        explanation()
        .draw(DATA)
        .get_xlabel()
        .startswith("6 of 7 edges drawn, with 100 % of the score, and 1 further edge with 0 %")
    )


def arrows_of(x, top=20, **names):
    """What is drawn of an explanation of the small graph, and the rest."""
    return select_top_edges(x, build_drawn_graph(x, EDGES, gg.Names(**names)), top)


@given(
    st.lists(st.integers(-4, 4), min_size=7, max_size=7),
    st.integers(1, 9),
    st.sets(st.integers(1, 5)),
)
def test_drawn_share_and_rest_add_up_and_folding_keeps_the_sum(scores, top, group):
    score = torch.tensor(scores, dtype=torch.float64)
    shown, all_shown = (
        arrows_of(explanation(edge_score=score), most, groups={"group": group}) for most in (top, 7)
    )
    assert sum(arrow.count for arrow in (*shown.drawn, *shown.rest)) == 7
    assert sum(arrow.score for arrow in all_shown.drawn) == sum(scores)
    assert all(arrow.score == 0 for arrow in all_shown.rest)
    assert shown.drawn == all_shown.drawn[:top]
    strengths = [abs(arrow.score) for arrow in all_shown.drawn]
    assert strengths == sorted(strengths, reverse=True)
    assert sum(arrow.score for arrow in shown.rest) == sum(strengths[top:])
    if shown.drawn:
        assert shown.share() + sum(strengths[top:]) / sum(strengths) == pytest.approx(1, abs=1e-12)


def literal_hops(pairs, target, node):
    """Try all walks of 0, 1, 2 ... steps."""
    reached = {node}
    for steps in range(7):
        if target in reached:
            return steps
        reached = {v for u, v in pairs if u in reached}
    return None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_hops_follow_the_edges_towards_the_target(pairs):
    found = DrawnGraph(torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t(), 6).hops([0])
    assert {node: found.get(node) for node in range(6)} == {
        node: literal_hops(pairs, 0, node) for node in range(6)
    }


def test_the_target_is_in_the_middle_and_rings_tell_hops():
    axes = explanation().draw(DATA)
    x, y = middle(axes)
    assert places(axes)[0] == pytest.approx([x, y])
    unit, radius = ring_layout(arrows_of(explanation()).drawn, DrawnGraph(EDGES, 6), (0,))
    distance = {node: (px**2 + py**2) ** 0.5 for node, (px, py) in unit.items()}
    assert distance == pytest.approx({node: radius[literal_hops(PAIRS, 0, node)] for node in unit})
    assert radius == sorted(radius)
    assert (radius[0], radius[-1], len(radius)) == (0, 1, 4)


def test_the_ends_of_a_link_stand_side_by_side_with_a_dotted_line():
    axes = explanation(target=(0, 3), level="link").draw(DATA)
    (x0, y0), (x3, y3) = places(axes)[:2]
    assert y0 == pytest.approx(y3)
    assert x0 < middle(axes)[0] < x3
    assert x0 + x3 == pytest.approx(2 * middle(axes)[0])
    assert list(axes.lines[0].get_xdata()) == [x0, x3]
    assert axes.get_title() == f"link 0 → 3 · {SIGNED} · predicted class 1 (75 %)"


def test_a_graph_has_no_centre_and_takes_the_list_of_graphs():
    axes = explanation(target=1, level="graph").draw([None, DATA])
    assert len(places(axes)) == 6
    assert len(arrows(axes)) == 6
    assert len({tuple(place) for place in places(axes)}) == 6
    assert axes.get_title().startswith("graph 1 · ")


def test_node_areas_grow_with_their_feature_scores():
    axes = explanation().draw(DATA)
    order = [int(text) for text in texts(axes)]
    strength = FEATURES.abs().sum(1)[order] / 4
    area = _MIN_NODE_RADIUS**2 + strength * (_MAX_NODE_RADIUS**2 - _MIN_NODE_RADIUS**2)
    assert axes.collections[0].get_sizes().tolist() == pytest.approx((4 * area).tolist(), rel=1e-5)
    alone = explanation(feature_score=None).draw(DATA)
    assert set(alone.collections[0].get_sizes().tolist()) == {4 * _MIN_NODE_RADIUS**2}


def test_groups_are_one_node_and_their_scores_add_up():
    # 0 is the target, and stays out
    names = {"groups": {"defaulters": [1, 2, 0]}, "nodes": {3: "Ada"}}
    axes = explanation().draw(DATA, names=names)
    assert texts(axes).count("defaulters (2)") == 1
    assert "Ada" in texts(axes)
    scores = {
        (arrow.source, arrow.destination): (arrow.score, arrow.count)
        for arrow in arrows_of(explanation(), **names).drawn
    }
    assert scores["defaulters", 0] == (0.25, 2)
    assert scores[0, "defaulters"] == (0.125, 1)


def test_edges_both_ways_are_bent_apart_and_an_edge_inside_a_group_is_a_loop():
    axes = explanation().draw(DATA, names={"groups": {"pair": [3, 4]}})
    bends = sorted(arrow.get_connectionstyle().rad for arrow in arrows(axes))
    assert bends == [-1.8, 0.0, 0.0, 0.0, 0.14, 0.14]


def test_the_wrapped_model_knows_the_ends_too():
    net = GCNConv(3, 2)
    model = gg.NodeClassificationModel(net, DATA, output="logits")
    by_model, by_data = explanation().draw(model), explanation().draw(DATA)
    assert places(by_model) == places(by_data)
    assert texts(by_model) == texts(by_data)


def test_zero_scores_draw_the_target_alone():
    axes = explanation(edge_score=torch.zeros(7)).draw(DATA)
    assert (len(arrows(axes)), texts(axes)) == (0, ["0"])
    assert axes.get_xlabel().startswith("None of 7 edges has a score other than 0.")
    assert axes.get_legend() is None
    lonely = explanation(edges=torch.arange(0), edge_score=torch.zeros(0), num_edges=7).draw(DATA)
    assert lonely.get_xlabel().startswith("No edge can reach the target.")
    graph = explanation(edge_score=torch.zeros(7), level="graph").draw(DATA)
    assert texts(graph) == []


HOSTILE = [
    "<script>alert(1)</script>",
    "$\\frac{1}{0}$",
    "a $ b $ c",
    "x" * 500,
    "two\nlines",
    "50 % & \\alpha_1",
    "_hidden",
    "]]>&amp;",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_what_they_are(name):
    names = {"nodes": dict.fromkeys(range(6), name), "classes": [name, name], "groups": {name: [4]}}
    axes = explanation(explainer=name).draw(DATA, names=names)
    kept = {text for text in texts(axes) if not text.endswith("(1)")}
    assert kept == {
        name.replace("\n", " ").strip("\u2068\u2069") if len(name) <= 22 else name[:21] + "…"
    }
    assert not any(text.get_parse_math() for text in (*axes.texts, axes.title, axes.xaxis.label))
    svg = svg_of(axes.figure)
    assert "<script" not in svg
    assert len(svg) < 100_000


def test_the_same_explanation_gives_the_same_bytes():
    first, second = (svg_of(explanation().draw(DATA).figure) for _ in range(2))
    assert first == second
    assert first.startswith("<svg")
    assert "<dc:date>" not in first


def test_two_thousand_edges_stay_readable():
    generator = torch.Generator().manual_seed(0)
    ends = torch.stack([torch.arange(1, 2001), torch.arange(1, 2001) // 3])
    names = {"nodes": {node: f"account {node}" for node in range(2001)}}
    x = explanation(
        nodes=torch.arange(2001),
        edges=torch.arange(2000),
        num_nodes=2001,
        num_edges=2000,
        feature_score=None,
        edge_score=torch.rand(2000, generator=generator) ** 30,
    )
    axes = x.draw(gg_data(ends), names=names)
    assert len(arrows(axes)) == 20
    assert "and 1,980 further edges with " in axes.get_xlabel()
    figure = axes.figure
    figure.draw_without_rendering()
    boxes = [tuple(text.get_window_extent().extents) for text in axes.texts]
    covered = [_overlap_area(one, other) for k, one in enumerate(boxes) for other in boxes[:k]]
    assert max(covered) == 0
    nodes = zip(
        axes.transData.transform(places(axes)),
        axes.collections[0].get_sizes() ** 0.5 / 2 * figure.dpi / 72,
        strict=True,
    )
    discs = [(x - r, y - r, x + r, y + r) for (x, y), r in nodes]
    assert max(_overlap_area(label, disc) for label in boxes for disc in discs) == 0


def gg_data(edge_index):
    from torch_geometric.data import Data

    return Data(edge_index=edge_index, num_nodes=2001)


def test_a_label_goes_where_nothing_is_hidden():
    from graphgauge.plots.graph_layout import Disc

    # below and above are taken
    discs = {0: Disc(50, 50, 10), 1: Disc(50, 30, 10), 2: Disc(50, 70, 10)}
    (x, y) = place_labels({0: (30, 10)}, discs, [], (0, 0, 200, 100))[0]
    assert (x, y) == (50 + 10 + 2 + 15, 50)
    (x, y) = place_labels({0: (30, 10)}, discs, [(discs[0], Disc(190, 50, 5))], (0, 0, 200, 100))[0]
    assert (x, y) == (50 - 10 - 2 - 15, 50)


@pytest.mark.parametrize(
    ("changes", "call", "error", "message"),
    [
        ({}, {"data": None}, BadExplanation, r"ids of edges, not their ends.*x\.draw\(data\)"),
        ({}, {"data": EDGES[:, :3]}, BadExplanation, "7"),
        ({"edge_score": None}, {"data": DATA}, BadExplanation, "edge_score of target 0"),
        (
            {"edge_score": SCORES.log()},
            {"data": DATA},
            UndefinedScore,
            "edge scores of target 0 hold NaN",
        ),
        ({}, {"data": DATA, "top": 0}, BadSetting, "top must be a whole number, 1 or more, but 0"),
        (
            {},
            {"data": DATA, "names": {"nodes": ["a"] * 7}},
            BadSetting,
            "names.nodes speaks of number 6",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(changes, call, error, message):
    with pytest.raises(error, match=message):
        draw_explanation(explanation(**changes), **call)
    assert mpl.pyplot.get_fignums() == []


def test_axes_that_are_given_are_used():
    left, right = mpl.pyplot.subplots(1, 2)[1]
    assert explanation().draw(DATA, ax=right) is right
    assert len(arrows(right)) == 6
    right.figure.draw_without_rendering()
    assert right.xaxis.label.get_window_extent().width < 1.25 * right.get_window_extent().width
    assert len(left.patches) == 0
    assert len(mpl.pyplot.get_fignums()) == 1
