"""Exhibits are, to the last bit and in the order of ties, what the definition in plain Python
gives.
"""

import random

import pytest
import torch
from support import literal_examples as literal
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, global_add_pool

import graphgauge as gg
from graphgauge.narrative.text import complete_names, explanation_facts
from graphgauge.plots.graph_layout import _spread_branches
from graphgauge.report.saved_examples import _TOP_EDGES, build_saved_example

NODES, FEATURES = 14, 5
NAMES = {
    "plain": {},
    "named": {
        "nodes": {0: "Ada", 5: "Bo"},
        "features": ["a", "b", "c", "d", "e"],
        "relation": {3: "owes", 8: "pays"},
    },
    "grouped": {
        "groups": {("one", "few"): [1, 2, 3, 7], "some": [3, 4, 5, 0], ("other", "few"): [9, 8]},
        "feature_groups": {"pair": [1, 3]},
        "relation": "lends to",
    },
}


class Net(torch.nn.Module):
    """One layer; for graphs, its sum; for links, a product."""

    def __init__(self, level):
        super().__init__()
        self.level, self.conv = level, GCNConv(FEATURES, 2)

    def forward(self, x, edge_index, batch=None):
        out = self.conv(x, edge_index)
        return global_add_pool(out, batch) if self.level == "graph" else out


class Pairs(torch.nn.Module):
    """Scores pairs of nodes."""

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(FEATURES, 2)

    def encode(self, x, edge_index):
        return self.conv(x, edge_index)

    def decode(self, z, edge_label_index):
        return (z[edge_label_index[0]] * z[edge_label_index[1]]).sum(-1)


def drawn(seed):
    """A multigraph with loops."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, NODES, (2, 45), generator=generator)
    edges[:, 40:] = edges[:, :5]
    return Data(x=torch.randn(NODES, FEATURES, generator=generator), edge_index=edges)


def evaluator_of(level, seed, **settings):
    data = [drawn(seed), drawn(seed + 1)] if level == "graph" else drawn(seed)
    if level == "link":
        return gg.Evaluator(gg.LinkClassificationModel(Pairs().eval(), data), **settings)
    make = gg.GraphClassificationModel if level == "graph" else gg.NodeClassificationModel
    return gg.Evaluator(make(Net(level).eval(), data, output="logits"), **settings)


SCORES = {
    "any": lambda size, generator: torch.randn(size, generator=generator),
    "ties": lambda size, generator: torch.randint(-2, 3, size, generator=generator) * 0.1,
    "mask": lambda size, generator: torch.randint(0, 2, size, generator=generator).float(),
    "zero": lambda size, generator: torch.zeros(size) * torch.tensor(-1.0),
}


def explanation(level, seed, kind, explainer):
    """Of some of the edges of the graph, with scores of a kind."""
    generator = torch.Generator().manual_seed(seed + 100)
    edges = torch.randperm(45, generator=generator)[:38].sort().values
    return gg.Xplanation(
        target={"node": 4, "link": (4, 9), "graph": 1}[level],
        level=level,
        nodes=torch.arange(NODES),
        edges=edges,
        num_nodes=NODES,
        num_edges=45,
        feature_score=SCORES[kind]((NODES, FEATURES), generator),
        edge_score=SCORES[kind]((38,), generator),
        prediction=torch.tensor([0.25, 0.75]),
        explainer=explainer,
    )


def ends_of(x, seed):
    return [
        tuple(pair)
        for pair in drawn(seed + (x.level == "graph")).edge_index[:, x.edges].t().tolist()
    ]


@pytest.mark.parametrize("level", ["node", "link", "graph"])
@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize(
    ("order", "explainer", "keep"),
    [("signed", "input_x_gradient", 7), ("magnitude", "saliency", "all"), ("magnitude", "", 7)],
)
def test_an_exhibit_says_what_its_definition_says(level, kind, names, order, explainer, keep):
    seed = len(kind) + len(names)
    evaluator, x = (
        evaluator_of(level, seed, order=order, keep=keep),
        explanation(level, seed, kind, explainer),
    )
    called, ends = complete_names(evaluator, NAMES[names]), ends_of(x, seed)
    exhibit = build_saved_example(evaluator, x, [], [], called)
    assert (exhibit.facts, exhibit.redacted) == tuple(
        explanation_facts(evaluator, x, NAMES[names], redact=redact) for redact in (False, True)
    )
    for facts, redact in ((exhibit.facts, False), (exhibit.redacted, True)):
        assert facts["edges"] == literal.edge_facts(x, ends, called, order, facts["signed"], redact)
        assert facts["redacted"] is redact
        ids = (
            []
            if redact and level == "link"
            else [x.target]
            if level == "graph"
            else list(x.target_nodes)
        )
        nodes = {} if level == "graph" else called.nodes
        assert facts["target"] == {"ids": ids, "names": [nodes.get(number, "") for number in ids]}
    assert [list(map(repr, entry)) for entry in exhibit.scores["edge"]] == [
        list(map(repr, entry))
        for entry in literal.strongest(
            [[*pair, score] for pair, score in zip(ends, x.edge_score.tolist(), strict=True)], keep
        )
    ]
    assert exhibit.bars.drawn[:7] == [tuple(entry) for entry in exhibit.scores["feature"][:7]]
    check_sketch(exhibit.sketch, x, ends, called)


def check_sketch(sketch, x, ends, names):
    """Arrows, their order, the sum of the rest, nodes and their places: the same bits."""
    arrows, rest = literal.shown(x, ends, names, _TOP_EDGES)
    found = [
        [(arrow.source, arrow.destination, arrow.score, arrow.count) for arrow in part]
        for part in (sketch.shown.drawn, sketch.shown.rest)
    ]
    assert repr(found) == repr([arrows, rest])
    places, rings = literal.places(x, ends, names, arrows)
    assert repr([(spot.node, spot.x, spot.y) for spot in sketch.spots]) == repr(
        [(node, *place) for node, place in places.items()]
    )
    assert repr(list(sketch.rings)) == repr(rings)


@pytest.mark.parametrize("seed", range(20))
def test_every_node_stands_in_the_middle_of_its_ends(seed):
    draw, branches, angle = random.Random(seed), {}, {}
    for node in range(1, draw.randrange(1, 25)):
        branches.setdefault(draw.randrange(node), []).append(node)
    _spread_branches(0, 1.5, 2.0, branches, angle)
    assert angle == pytest.approx(literal.sectors(0, 1.5, 2.0, branches), abs=1e-12)


def test_the_features_that_are_told_are_the_strongest_in_their_order():
    for kind in SCORES:
        evaluator, x = (
            evaluator_of("link", 3, keep=6),
            explanation("link", 3, kind, "input_x_gradient"),
        )
        rows = [
            x.feature_score[4],
            x.feature_score[9],
            x.feature_score[[k for k in range(NODES) if k not in (4, 9)]].amax(0),
        ]
        bars = [
            [f"feature {k} {owner}", score]
            for owner, row in zip(
                ("of the first", "of the second", "of neighbours"), rows, strict=True
            )
            for k, score in enumerate(row.tolist())
        ]
        exhibit = build_saved_example(evaluator, x, [], [], complete_names(evaluator, None))
        assert exhibit.scores["feature"] == literal.strongest(bars, 6)
        top, opposing = literal.split([score for _, score in bars], "signed", True)
        told = [
            [
                f"feature {entry['index']} of {'the ' * (entry['of'] != 'neighbours')}{entry['of']}"
                for entry in exhibit.facts["features"][part]
            ]
            for part in ("top", "opposing")
        ]
        assert told == [[bars[k][0] for k in part] for part in (top, opposing)]


def test_scores_that_are_no_numbers_are_listed_as_python_sorts_them():
    x = explanation("node", 2, "any", "saliency")
    x.edge_score[[3, 11, 20]] = torch.nan
    evaluator = evaluator_of("node", 2, keep=9)
    found = build_saved_example(evaluator, x, [], [], complete_names(evaluator, None))
    whole = literal.strongest(
        [[*pair, score] for pair, score in zip(ends_of(x, 2), x.edge_score.tolist(), strict=True)],
        9,
    )
    assert repr(found.scores["edge"]) == repr(whole)
    assert found.facts["edges"]["status"] == "nan_attribution"
    assert found.sketch is None
