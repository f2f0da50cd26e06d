"""Answers known by hand, for whole evaluations of tiny networks: one table, to be read from top to
bottom.

Each line: a network and explanation, and what must come out: a value, (EC, flipped), or the status
where there is no value. Random curves are averaged over 400 draws where the answer is an
expectation (`about`), and over 9 where it is exact.
"""

import math

import pytest
import torch
from support.hand_computed_networks import (
    OfGraphs,
    OfLinks,
    OfNodes,
    explanation,
    graph,
    own_features,
)

import graphgauge as gg

FIFTH_OF_SD = {"flip": 0.2, "flip_unit": "sd"}
NINE = {"trials": (9, 9), "early_stop": "none", "twin_trials": 9, "timed": 0}
MANY = {"trials": (400, 400), "early_stop": "none", "twin_trials": 400, "timed": 0}
OTHER_WAY = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]  # the weakest first
BEST = OTHER_WAY[::-1]
POWERS = [128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0]
ALL_TIED = {"pertinence": 0.0, "pertinence_tied": 0.5, "pertinence_rank": 0.5, "pertinence_p": 1.0}


def about(value):
    """An expectation, to within four standard errors of 400 shares."""
    return pytest.approx(value, abs=4 * 0.5 / 20)


def found(model, side, target=0, edge_score=None, feature_score=None, **settings):
    """The cells of one side of one explanation, by the name of the metric without its side."""
    evaluator = gg.Evaluator(model, **{**NINE, **settings})
    results = evaluator.evaluate(
        explanation(model, target, edge_score, feature_score, settings.get("edge_scope"))
    )
    return {
        row.metric.removeprefix(f"{side}_"): row.cell
        for row in results.rows
        if row.metric.startswith(side)
    }


def nodes(read, edges, x, classes=True, layers=1):
    """A wrapped network of nodes; of one column, the logit of class 1."""
    net, data = OfNodes(read, layers), graph(edges, x)
    if classes:
        return gg.NodeClassificationModel(net, data, embedding=own_features, output="logits")
    return gg.NodeRegressionModel(net, data, embedding=own_features)


def star(weights, scores, bias=0.5, **settings):
    """Node 0 adds up what its leaves send: class 1 if that exceeds the bias. Edge k has the k-th
    weight and score.
    """
    edges = [(leaf, 0, weight) for leaf, weight in enumerate(weights, 1)]
    return read_star(lambda x, sent: 10 * (sent - bias), edges, scores, **settings)


def read_star(read, edges, scores, classes=True, **settings):
    """Any reading of what node 0 is sent."""
    x = [[1.0]] * (1 + max([0, *(max(edge[:2]) for edge in edges)]))
    return found(nodes(read, edges, x, classes), "edge", edge_score=scores, **settings)


def clique(scores, bias, **settings):
    """Four nodes that send 1 to each other."""
    edges = [(u, v) for v in range(4) for u in range(4) if u != v]
    return read_star(lambda x, sent: 10 * (sent - bias), edges, scores, **settings)


def path(scores, **settings):
    """2 -> 1 -> 0, two layers: what node 2 sends arrives as the product of both edges."""
    model = nodes(lambda x, sent: sent - 0.5, [(2, 1), (1, 0)], [[0.0], [0.0], [1.0]], layers=2)
    return found(model, "edge", edge_score=scores, **settings)


# 1 and 2 send to node 0, 4 and 5 to node 3: node 3, of the other class, is the only possible
# reference of node 0
TWO_STARS = [(1, 0), (2, 0), (4, 3), (5, 3)]


def substituted(read, scores, own=(1.0, 0.0), ref=(0.0, 0.0), edges=TWO_STARS, **settings):
    """Features of node 0 and its leaves, of node 3 and its leaves; scores of (own 0, own 1,
    neighbours' 0, neighbours' 1).
    """
    score = [scores[:2], scores[2:4], scores[4:] or scores[2:], (0, 0), (0, 0), (0, 0)]
    return found(
        nodes(read, edges, [own] * 3 + [ref] * 3), "feature", feature_score=score, **settings
    )


def own_decides(x, sent):
    return x[:, :1] - 0.5


def neighbours_decide(x, sent):
    return sent[:, :1] - 0.5


def either_suffices(x, sent):
    return x[:, :1] + sent[:, :1] - 0.5


def both_needed(x, sent):
    return x[:, :1] + sent[:, :1] - 2.5


def three_classes(scores, **settings):
    """Node 0 has class 0 by feature 0; references of class 1 (node 3) and 2 (node 6) differ from it
    in one feature more each.
    """
    x = [[1.0, 0, 0], [0, 0, 0], [0.4, 0.6, 0], [0, 0, 0], [0.4, 0.0, 0.6], [0, 0, 0]]
    edges = [(1, 0), (3, 2), (5, 4)]
    model = nodes(lambda x, sent: 10 * x, edges, x)
    score = [scores, *[[-1.0, -1.0, -1.0]] * 5]
    return found(model, "feature", feature_score=score, **settings)


def values(target, scores, lonely=False, **settings):
    """Five nodes in a ring with the values 0, 1, 2, 3, 4 of their own feature (SD 1.41); or the one
    of value 4 without an edge.
    """
    ring = [(u, (u + 1) % 5) for u in range(5)]
    edges = [edge for edge in ring if not (lonely and 4 in edge)]
    model = nodes(lambda x, sent: x, edges, [[0.0], [1.0], [2.0], [3.0], [4.0]], classes=False)
    score = [[scores[0] if node == target else scores[1]] for node in range(5)]
    return found(model, "feature", target, feature_score=score, **settings)


def sums(weights, scores, bias=0.0, **settings):
    """A regression: node 0 adds up what its leaves send. Leaves have the value 0."""
    edges = [(leaf, 0, weight) for leaf, weight in enumerate(weights, 1)]
    return read_star(lambda x, sent: sent + bias, edges, scores, classes=False, **settings)


def link(bias, scores, side="edge", target=(0, 1), **settings):
    """Nodes 2 and 3 send 1 to the ends 0 and 1: z = 1 for each end; the others have z = 0. Class 1
    if z_u + z_v > bias.
    """
    data = graph([(2, 0), (3, 1), (4, 5)], [[0.0], [0.0], [1.0], [1.0], [0.0], [0.0]])
    net = OfLinks(lambda first, second: first + second - bias)
    model = gg.LinkClassificationModel(net, data, embedding=lambda net, g: g.x)
    given = (
        {"edge_score": scores}
        if side == "edge"
        else {"feature_score": [[score] for score in scores]}
    )
    return found(model, side, target, **given, **settings)


def ends(bias, scores, **settings):
    """Nodes 0 and 1 have the feature 1, ten others 0. Class 1 if x_u + x_v > bias. Scores of u, v
    and of the neighbours.
    """
    ring = [(2 + k, 2 + (k + 1) % 10) for k in range(10)]
    data = graph([(u, v, 0.0) for u, v in [*ring, (2, 0), (3, 1)]], [[1.0]] * 2 + [[0.0]] * 10)
    net = OfLinks(lambda first, second: first + second - bias)
    model = gg.LinkClassificationModel(net, data, embedding=lambda net, g: g.x)
    score = [[scores[0]], [scores[1]], *[[scores[2]]] * 10]
    return found(model, "feature", (0, 1), feature_score=score, **settings)


def pooled(scores, bias=0.5, side="edge", **settings):
    """Graph 0 has three edges of weight 1, 2, 4; graph 1 has no features but 0. Class 1 if all
    messages exceed the bias.
    """
    data = [
        graph([(0, 1, 1.0), (1, 2, 2.0), (2, 0, 4.0)], [[1.0, 1.0]] * 3),
        graph([(0, 1, 1.0), (1, 0, 1.0)], [[0.0, 0.0]] * 2),
    ]
    net = OfGraphs(lambda x, sent: 10 * (sent[:, :1] - bias))
    model = gg.GraphClassificationModel(net, data, embedding=own_features)
    given = {"edge_score": scores} if side == "edge" else {"feature_score": [scores] * 3}
    return found(model, side, **given, **settings)


CASES = {
    # --- one decisive edge of four ----------------------------------------------------------------
    "decisive edge first": (lambda: star([1, 0, 0, 0], [4, 3, 2, 1]), {"ec": (1, True)}),
    "decisive edge second": (lambda: star([1, 0, 0, 0], [3, 4, 2, 1]), {"ec": (2, True)}),
    "decisive edge last": (
        lambda: star([1, 0, 0, 0], [1, 2, 3, 4]),
        {"ec": (4, True), "pertinence": 0.0},
    ),
    "decisive edge with a negative score among zeros": (
        lambda: star([1, 0, 0, 0], [-1, 0, 0, 0]),
        {"ec": (4, True)},
    ),
    "the same by magnitude": (
        lambda: star([1, 0, 0, 0], [-1, 0, 0, 0], order="magnitude"),
        {"ec": (1, True)},
    ),
    "behind a larger negative score by magnitude": (
        lambda: star([1, 0, 0, 0], [2, -3, 1, 0], order="magnitude"),
        {"ec": (2, True)},
    ),
    "first, against random orders: won unless they start with it": (
        lambda: star([1, 0, 0, 0], [4, 3, 2, 1], **MANY),
        {
            "pertinence": about(3 / 4),
            "pertinence_tied": about(11 / 16),
            "pertinence_rank": about(7 / 8),
            "pertinence_p": about(1 / 4),
        },
    ),
    "second: lost or tied at step 1, won at step 2 by half of them": (
        lambda: star([1, 0, 0, 0], [3, 4, 2, 1], **MANY),
        {"pertinence": about(1 / 4), "pertinence_tied": about((3 / 8 + 3 / 4 + 5 / 8 + 1 / 2) / 4)},
    ),
    "last: never below, and as often above as ties allow": (
        lambda: star([1, 0, 0, 0], [1, 2, 3, 4], **MANY),
        {
            "pertinence": 0.0,
            "pertinence_tied": about(5 / 16),
            "pertinence_rank": about(1 / 8),
            "pertinence_p": 1.0,
        },
    ),
    "decisive edge behind the cap": (
        lambda: star([1, 0, 0, 0], [1, 2, 3, 4], cap=3),
        {"ec": (3, False), "pertinence": 0.0},
    ),
    "decisive edge at the cap": (
        lambda: star([1, 0, 0, 0], [2, 1, 3, 4], cap=3),
        {"ec": (3, True)},
    ),
    "a cap of one edit": (lambda: star([1, 0, 0, 0], [1, 4, 3, 2], cap=1), {"ec": (1, False)}),
    # --- additive: the larger the weight, the larger the effect -----------------------------------
    "additive, best order": (
        lambda: star(POWERS, BEST, bias=100.0),
        {"ec": (2, True), "pertinence_rank": 1.0, "pertinence_p": 0.1},
    ),
    "additive, exactly reversed": (
        lambda: star(POWERS, OTHER_WAY, bias=100.0),
        {"ec": (8, True), "pertinence": 0.0, "pertinence_rank": 0.0, "pertinence_p": 1.0},
    ),
    "additive, a margin that no proper part of the edges makes up": (
        lambda: star(POWERS, BEST, bias=0.5),
        {"ec": (8, True)},
    ),
    "additive, a margin of less than the weakest edge": (
        lambda: star(POWERS, OTHER_WAY, bias=254.5),
        {"ec": (1, True)},
    ),
    "scores that repeat the weights up to scale": (
        lambda: star(POWERS, [w / 7 for w in POWERS], bias=100.0),
        {"ec": (2, True)},
    ),
    # --- ties everywhere --------------------------------------------------------------------------
    "equal edges: any order is every order": (
        lambda: star([1] * 5, [5, 4, 3, 2, 1], bias=2.5),
        {"ec": (3, True), **ALL_TIED},
    ),
    "equal edges, constant scores": (
        lambda: star([1] * 5, [7] * 5, bias=2.5),
        {"ec": (3, True), **ALL_TIED},
    ),
    "equal edges, all-zero scores": (
        lambda: star([1] * 5, [0] * 5, bias=2.5),
        {"ec": (3, True), **ALL_TIED},
    ),
    "one edge, decisive": (lambda: star([1], [0.3]), {"ec": (1, True), **ALL_TIED}),
    "one edge, without effect": (
        lambda: star([0.2], [0.3], bias=-0.5),
        {"ec": (1, False), **ALL_TIED},
    ),
    "no edge at all": (
        lambda: read_star(lambda x, sent: sent, [(0, 1)], [1.0]),
        dict.fromkeys(["ec", *ALL_TIED], "empty"),
    ),
    "only a stored self-loop": (
        lambda: read_star(lambda x, s: s - 0.5, [(0, 0), (0, 1)], [1.0, 0]),
        {"ec": "empty"},
    ),
    # --- two edges --------------------------------------------------------------------------------
    "two that back each other up": (lambda: star([1, 1, 0], [3, 2, 1]), {"ec": (2, True)}),
    "two that back each other up, one of them last": (
        lambda: star([1, 1, 0], [3, 1, 2]),
        {"ec": (3, True)},
    ),
    "two that are both needed": (lambda: star([1, 1, 0], [2, 1, 3], bias=1.5), {"ec": (2, True)}),
    "exclusive or: one removal flips, the second flips back": (
        lambda: read_star(lambda x, sent: (sent - 1) ** 2 - 0.5, [(1, 0), (2, 0)], [2, 1]),
        {"ec": (1, True), **ALL_TIED},
    ),
    "an edge that holds the prediction back is best removed last": (
        lambda: star([2, -1], [1, 0], bias=0.5, **MANY),
        {
            "ec": (1, True),
            "pertinence": about(1 / 2),
            "pertinence_tied": about(5 / 8),
            "pertinence_rank": about(3 / 4),
        },
    ),
    "the same upside down": (
        lambda: star([2, -1], [0, 1], bias=0.5, **MANY),
        {
            "ec": (2, True),
            "pertinence": 0.0,
            "pertinence_tied": about(3 / 8),
            "pertinence_rank": about(1 / 4),
        },
    ),
    # --- paths and cliques ------------------------------------------------------------------------
    "a path breaks anywhere": (lambda: path([2, 1]), {"ec": (1, True), **ALL_TIED}),
    "a path breaks anywhere, also the other way round": (
        lambda: path([1, 2]),
        {"ec": (1, True), **ALL_TIED},
    ),
    "a clique of four, one layer: three edges come in": (
        lambda: clique(list(range(12)), 1.5),
        {"ec": (2, True), **ALL_TIED},
    ),
    "a clique, all of its edges dropped": (
        lambda: clique([1] * 12, 0.5, edge_removal="drop"),
        {"ec": (3, True), **ALL_TIED},
    ),
    "a clique, all edges among its nodes: most carry nothing": (
        lambda: clique([1.0] * 3 + [9.0] * 9, 0.5, edge_scope="induced"),
        {"ec": (12, True), "pertinence": 0.0},
    ),
    "a clique, both directions at once": (
        lambda: clique([1.0] * 3 + [9.0] * 9, 0.5, edge_scope="induced", removal_unit="undirected"),
        {"ec": (6, True)},
    ),
    # --- a network that does not look -------------------------------------------------------------
    "constant classes, edges": (
        lambda: star([0] * 4, [4, 3, 2, 1], bias=1),
        {"ec": (4, False), **ALL_TIED},
    ),
    "constant classes, features: nothing else is predicted": (
        lambda: substituted(lambda x, sent: 0 * x[:, :1] - 1, [1, 2, 3, 4]),
        dict.fromkeys(["ec", *ALL_TIED], "no_reference"),
    ),
    "constant values, edges": (
        lambda: sums([0] * 4, [4, 3, 2, 1], bias=3.0),
        {"ec": (4, False), **ALL_TIED, "pertinence_abs": 0.5},
    ),
    "three columns, fewer than two predicted classes": (
        lambda: substituted(lambda x, sent: torch.cat([x[:, :1] + 2, 0 * x], 1), [1, 2, 3, 4]),
        {"ec": "no_reference", "pertinence": "no_reference"},
    ),
    # --- features: the target's own, the neighbours' ----------------------------------------------
    "own feature decides and comes first": (
        lambda: substituted(own_decides, [9, 1, 2, 3]),
        {"ec": (1, True)},
    ),
    "own feature decides and comes last": (
        lambda: substituted(own_decides, [0, 1, 2, 3]),
        {"ec": (4, True), "pertinence": 0.0},
    ),
    "neighbours decide and come first": (
        lambda: substituted(neighbours_decide, [1, 0, 9, 2]),
        {"ec": (1, True)},
    ),
    "neighbours decide and come second": (
        lambda: substituted(neighbours_decide, [9, 0, 5, 2]),
        {"ec": (2, True)},
    ),
    "neighbours decide, first of four, against random orders": (
        lambda: substituted(neighbours_decide, [1, 0, 9, 2], **MANY),
        {
            "pertinence": about(3 / 4),
            "pertinence_tied": about(9 / 16),
            "pertinence_p": about(1 / 2),
        },  # of two in its block
    ),
    "either suffices to stay: both must go": (
        lambda: substituted(either_suffices, [9, 1, 5, 2]),
        {"ec": (2, True)},
    ),
    "both are needed: one is enough": (
        lambda: substituted(both_needed, [5, 1, 2, 9]),
        {"ec": (2, True)},
    ),
    "the reference has the same features, only other edges": (
        lambda: substituted(
            neighbours_decide,
            [4, 3, 2, 1],
            ref=(1.0, 0.0),
            edges=[(1, 0), (2, 0), (4, 3, -1.0), (5, 3, -1.0)],
        ),
        {"ec": (4, False), **ALL_TIED},
    ),
    "neighbours' scores are pooled by their maximum": (
        lambda: substituted(neighbours_decide, [1, 0, 2, -9, -9, -9]),
        {"ec": (1, True)},
    ),
    "or by their sum": (
        lambda: substituted(neighbours_decide, [1, 0, 2, -9, -9, -9], pooling="sum"),
        {"ec": (3, True)},
    ),
    "or by their largest magnitude": (
        lambda: substituted(neighbours_decide, [5, 6, 2, 0, -9, 0], pooling="abs_max"),
        {"ec": (1, True)},
    ),
    "all scores zero, all substitutions needed": (
        lambda: substituted(
            lambda x, sent: x.sum(1, True) + sent.sum(1, True) - 0.5, [0] * 4, own=(1.0, 1.0)
        ),
        {"ec": (4, True)},
    ),
    "two references, the easier one counts": (
        lambda: three_classes([3, 2, 1]),
        {"ec": (2, True), "per_reference": (2, 3)},
    ),
    "two references, the other is easier": (
        lambda: three_classes([3, 1, 2]),
        {"ec": (2, True), "per_reference": (3, 2)},
    ),
    "two references, both late": (
        lambda: three_classes([1, 3, 2]),
        {"ec": (3, True), "per_reference": (3, 3)},
    ),
    # --- values: references one SD above and below ------------------------------------------------
    "lowest value: only a reference above": (
        lambda: values(0, [1, 0]),
        {"ec": (1, True), "references": 1},
    ),
    "highest value: only a reference below": (
        lambda: values(4, [1, 0]),
        {"ec": (1, True), "references": 1},
    ),
    "middle value: both": (lambda: values(2, [1, 0]), {"ec": (1, True), "references": 2}),
    "neighbours first, who do not count": (
        lambda: values(2, [0, 1]),
        {"ec": (2, True), "references": 2},
    ),
    "a reference without an edge is none": (
        lambda: values(3, [1, 0], lonely=True),
        {"ec": (1, True), "references": 1},
    ),
    # leaves 0, node 0 the sum 8 of 8 edges: SD = 8 sqrt(8) / 9 = 2.51, a change is more than 0.2 SD
    # = 0.503
    "values: one of eight edges moves enough": (
        lambda: sums([1] * 8, BEST),
        {"ec": (1, True), **ALL_TIED, "pertinence_abs": 0.5},
    ),
    "values: the flip is two-sided": (lambda: sums([-1] * 8, BEST), {"ec": (1, True), **ALL_TIED}),
    "values: a wider band needs more edges": (
        lambda: sums([1] * 8, BEST, flip=1.0, flip_unit="sd"),
        {"ec": (3, True), **ALL_TIED},
    ),
    "values: a band wider than all there is": (
        lambda: sums([1] * 8, BEST, flip=3.5, flip_unit="sd"),
        {"ec": (8, False), **ALL_TIED},
    ),
    "values: the raw curve wants the highest gone": (
        lambda: sums(POWERS, BEST, **FIFTH_OF_SD),
        {"pertinence_rank": 1.0, "pertinence_p": 0.1},
    ),
    "values: negative effects first are wrong for raw curves and right for |change|": (
        lambda: sums([-w for w in POWERS], BEST, **FIFTH_OF_SD),
        {"pertinence": 0.0, "pertinence_rank": 0.0, "pertinence_p": 1.0},
    ),
    "values by |change|": (
        lambda: sums([-w for w in POWERS], BEST, regression_curve="abs", **FIFTH_OF_SD),
        {"pertinence_rank": 1.0, "pertinence_p": 0.1},
    ),
    # --- links ------------------------------------------------------------------------------------
    "a link that needs both ends": (lambda: link(1.5, [2, 1, 0]), {"ec": (1, True), **ALL_TIED}),
    "a link that needs one end": (lambda: link(0.5, [1, 2, 0]), {"ec": (2, True), **ALL_TIED}),
    "a link that needs nothing": (lambda: link(-0.5, [1, 2, 0]), {"ec": (2, False), **ALL_TIED}),
    "a link between nodes without edges": (
        lambda: link(0.5, [1, 2, 0], target=(2, 3)),
        {"ec": "empty"},
    ),
    "link features, each end decides": (
        lambda: ends(1.5, [1, 2, 0]),
        {"ec": (1, True), "references": 1},
    ),
    "link features, each end decides, neighbours do not": (
        lambda: ends(1.5, [1, 2, 3]),
        {"ec": (2, True)},
    ),
    "link features, both ends decide": (lambda: ends(0.5, [2, 1, 0]), {"ec": (2, True)}),
    "link features, both ends decide, the second end last": (
        lambda: ends(0.5, [3, 1, 2]),
        {"ec": (3, True)},
    ),
    # --- graphs -----------------------------------------------------------------------------------
    "a graph whose heaviest edge goes first": (lambda: pooled([1, 2, 4], 4.5), {"ec": (1, True)}),
    "a graph whose lightest edge goes first": (lambda: pooled([4, 2, 1], 4.5), {"ec": (2, True)}),
    "a graph that needs all of its edges gone": (lambda: pooled([1, 2, 4]), {"ec": (3, True)}),
    "a graph has one block of features": (
        lambda: pooled([2, 1], side="feature"),
        {"ec": (1, True), "references": 1},
    ),
    "a graph whose decisive feature comes second": (
        lambda: pooled([1, 2], side="feature"),
        {"ec": (2, True), "pertinence": 0.0},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_known_by_hand(name):
    run, expected = CASES[name]
    cells = run()
    for metric, value in expected.items():
        if metric == "references":
            assert len(cells["ec"].per_reference) == len(cells["pertinence"].trials) == value
        elif metric == "per_reference":
            assert cells["ec"].per_reference == value
        elif isinstance(value, str):
            assert (cells[metric].status, cells[metric].value) == (value, None), metric
        elif isinstance(value, tuple):
            assert (cells[metric].value, cells[metric].flipped) == value, metric
        else:
            assert cells[metric].value == (
                pytest.approx(value, abs=1e-12) if isinstance(value, float) else value
            ), metric


def test_constant_scores_are_one_random_order():
    """Of two edges one decides: a tie broken its way has EC 1 and ties or wins, the other way EC 2
    and ties or loses.
    """
    edges, read = [(1, 0, 1.0), (2, 0, 0.0)], lambda x, sent: 10 * (sent - 0.5)
    model = nodes(read, edges, [[1.0]] * 3)
    ec, tied = [], []
    for seed in range(60):
        rows = gg.Evaluator(model, **NINE, seed=seed).evaluate(explanation(model, 0, [1, 1])).rows
        ec.append(next(row.cell.value for row in rows if row.metric == "edge_ec"))
        tied.append(next(row.cell.value for row in rows if row.metric == "edge_pertinence_tied"))
    assert set(ec) == {1, 2}
    assert sum(tied) / 60 == pytest.approx(0.5, abs=4 * 0.26 / math.sqrt(60))
    assert all(
        (value > 0.5) == (own == 1) for own, value in zip(ec, tied, strict=True) if value != 0.5
    )


# --- stability: functions whose calls come in known pairs -----------------------------------------


def in_turn(*calls):
    """An explainer of node 0 of a star of three leaves: (feature rows of node 0 and of its leaves,
    edge scores), call by call.
    """
    count = [0]

    def explain(model, target):
        own, leaves, edges = calls[count[0] % len(calls)]
        count[0] += 1
        return torch.tensor([own, *[leaves] * 3]), torch.tensor(edges)

    return gg.CallableExplainer(explain, name="in turn", scope="computation graph")


def stability(*calls, **settings):
    """Cells of stability of the first node of a star; calls in pairs (1st, 2nd), (1st, 2nd) ..."""
    model = nodes(lambda x, sent: sent[:, :1] - 0.5, [(1, 0), (2, 0), (3, 0)], [[1.0, 2.0]] * 4)
    results = gg.Evaluator(model, **{**NINE, "trials": (4, 4), **settings}).compare(
        in_turn(*calls), [0]
    )
    return {row.metric: row.cell for row in results.rows if "stability" in row.metric}


HALF_ROOT = 1 - math.sqrt(2) / 2  # likeness of two orthogonal vectors
SAME, ZERO = ([1.0, 2.0], [3.0, 4.0], [1.0, 2.0, 3.0]), ([0.0, 0.0], [0.0, 0.0], [0.0, 0.0, 0.0])
STABILITY = {
    "always the same": (
        [SAME],
        {"feature_stability": 1.0, "edge_stability": 1.0, "edge_stability_corrected": 1.0},
    ),
    "the same up to scale": (
        [SAME, ([10.0, 20.0], [0.3, 0.4], [5.0, 10.0, 15.0])],
        {"feature_stability": 1.0, "edge_stability": 1.0, "edge_stability_corrected": 1.0},
    ),
    "opposite every other time": (
        [SAME, ([-1.0, -2.0], [-3.0, -4.0], [-1.0, -2.0, -3.0])],
        {"feature_stability": 0.0, "edge_stability": 0.0},
    ),
    "orthogonal every other time": (
        [([1.0, 0.0], [1.0, 0.0], [1.0, 0.0, 0.0]), ([0.0, 1.0], [0.0, 1.0], [0.0, 1.0, 0.0])],
        {"feature_stability": HALF_ROOT, "edge_stability": HALF_ROOT},
    ),
    "nothing every other time": ([SAME, ZERO], {"feature_stability": 0.5, "edge_stability": 0.5}),
    "always nothing": (
        [ZERO],
        {
            "feature_stability": 1.0,
            "edge_stability": 1.0,
            "feature_stability_corrected": "constant",
        },
    ),
    "own features opposite, neighbours' the same": (
        [SAME, ([-1.0, -2.0], [3.0, 4.0], [1.0, 2.0, 3.0])],
        {"feature_stability": 0.5, "edge_stability": 1.0},
    ),
    "own features the same, neighbours' missing": (
        [SAME, ([1.0, 2.0], [0.0, 0.0], [1.0, 2.0, 3.0])],
        {"feature_stability": 0.75, "edge_stability": 1.0},
    ),
    "equal scores leave chance nothing to do": (
        [([1.0, 1.0], [2.0, 2.0], [3.0, 3.0, 3.0])],
        {
            "feature_stability": 1.0,
            "feature_stability_corrected": "constant",
            "edge_stability_corrected": "constant",
        },
    ),
    "one edge with a score leaves chance nothing to do": (
        [([1.0, 2.0], [0.0, 0.0], [0.0, 4.0, 0.0])],
        {
            "edge_stability": 1.0,
            "edge_stability_corrected": "constant",
            "feature_stability_corrected": 1.0,
        },
    ),
}


@pytest.mark.parametrize("name", STABILITY)
def test_stability_known_by_hand(name):
    calls, expected = STABILITY[name]
    cells = stability(*calls)
    for metric, value in expected.items():
        if isinstance(value, str):
            assert (cells[metric].status, cells[metric].value) == (value, None), metric
        else:
            # unit vectors in single precision
            assert cells[metric].value == pytest.approx(value, abs=2e-7), metric


def test_all_pairs_of_five_calls_that_are_opposite_every_other_time():
    calls = SAME, ([-1.0, -2.0], [-3.0, -4.0], [-1.0, -2.0, -3.0])
    cell = stability(*calls, stability="binomial", calls=5)["edge_stability"]
    # of 5 calls 2 and 3 are alike: 1 + 3 of 10 pairs
    assert cell.value == pytest.approx((1 + 3) / 10, abs=2e-7)
    assert (cell.trials, cell.stop) == ((5,), ("binomial",))


def test_chance_is_over_as_many_permutations_as_asked_for():
    """Orthogonal pairs, permuted inside their two entries, are alike (1) or not (S): chance is S +
    (1 - S) share, in sevenths.
    """
    calls = ([1.0, 0.0], [1.0, 0.0], [1.0, 0.0, 0.0]), ([0.0, 1.0], [0.0, 1.0], [0.0, 1.0, 0.0])
    corrected = stability(*calls, permutations=7)["edge_stability_corrected"].value  # of 4 pairs
    share = corrected / (corrected - 1)
    assert 0 < share < 1
    assert 7 * share == pytest.approx(round(7 * share), abs=1e-5)
