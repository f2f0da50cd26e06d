"""A known truth in the Evaluator: right where the answer is known, chance where scores know
nothing, a gap where there is none.
"""

import math
from statistics import mean, stdev

import pytest
import torch
from support.hand_computed_networks import OfNodes, explanation, graph, own_features
from support.quick_evaluation import QUICK, cells_of, graph_model, link_model, node_model, numbers
from support.small_networks import Stack, build
from torch_geometric.nn import SAGEConv

import graphgauge as gg
from graphgauge.core.errors import BadSetting
from graphgauge.datasets.ba_shapes_graph import _NUM_BASE, ba_shapes
from graphgauge.evaluation.ground_truth import _TRUTH_METRICS

SETTINGS = {**QUICK, "stability": "none"}
BELOW_ALL = {"top": 0.2}


def house_edges(data):
    """Edges within a house: both ends in the same five nodes behind the base graph."""
    source, end = data.edge_index
    return (
        (source >= _NUM_BASE)
        & (end >= _NUM_BASE)
        & ((source - _NUM_BASE) // 5 == (end - _NUM_BASE) // 5)
    )


@pytest.fixture(scope="module")
def houses():
    """BA-Shapes without its one-hot features, and a network of two rounds of messages."""
    data = ba_shapes()
    data.x = torch.ones(len(data.y), 6)
    return gg.NodeClassificationModel(build(Stack, SAGEConv, seed=1), data), data


def ideal_scores(model, target):
    """Edges of houses above all others, by the definition of the data set."""
    graph_of_target = model.computation_graphs([target])[0]
    return torch.ones(len(graph_of_target.nodes), 6), house_edges(model.data)[
        graph_of_target.edges
    ].float()


def test_an_explainer_that_knows_the_houses_is_right_and_its_opposite_is_wrong(houses):
    model, data = houses
    known = gg.CallableExplainer(ideal_scores, name="known")
    opposite = gg.CallableExplainer(
        lambda model, target: [-part for part in ideal_scores(model, target)], name="opposite"
    )
    # the nodes that are tied to the base graph
    targets = [_NUM_BASE, _NUM_BASE + 5, _NUM_BASE + 10]
    results = gg.Evaluator(model, **SETTINGS).compare(
        [known, opposite], targets, truth={"edge": house_edges(data)}
    )
    means = results.summary()["mean"]
    for metric in ("edge_auroc", "edge_average_precision", "edge_jaccard"):
        assert means["known", metric] == 1.0
    assert means["opposite", "edge_auroc"] == 0.0
    assert {row.cell.status for row in results.rows if row.metric == "edge_auroc"} == {"ok"}


def test_random_scores_reach_one_half_on_average(houses):
    model, data = houses
    targets = list(range(_NUM_BASE, _NUM_BASE + 200, 5))
    asked = [target for target in targets for _ in range(5)]
    settings = {**SETTINGS, "twins": False, "trials": (1, 1), "sides": "edges"}
    results = gg.Evaluator(model, **settings).compare(
        gg.RandomExplainer(), asked, truth={"edge": house_edges(data)}
    )
    values = results.values("edge_auroc").tolist()
    assert len(values) == 200
    assert abs(mean(values) - 0.5) < 4 * stdev(values) / math.sqrt(len(values))


def literal(score, truth, k):
    """From the definitions; scores have no ties here."""
    order = sorted(range(len(score)), key=lambda i: -score[i])
    ranked = [truth[i] for i in order]
    hits, size = sum(ranked[:k]), sum(truth)
    same = sum(ranked[:size])
    pairs = [
        s > t
        for s, m in zip(score, truth, strict=True)
        if m
        for t, n in zip(score, truth, strict=True)
        if not n
    ]
    return {
        "auroc": mean(pairs),
        "average_precision": mean(
            mean(ranked[: place + 1]) for place, is_true in enumerate(ranked) if is_true
        ),
        "jaccard": same / (2 * size - same),
        "precision_at_k": hits / k,
        "recall_at_k": hits / size,
        "f1_at_k": 2 * hits / (k + size),
    }


def signed_scores(model, target):
    """Scores without ties, of either sign."""
    own, source = (
        model.computation_graphs([target])[0],
        torch.Generator().manual_seed(hash(target) % 1000),
    )
    return torch.randn(len(own.nodes), 6, generator=source), torch.randn(
        len(own.edges), generator=source
    )


@pytest.mark.parametrize("order", ["signed", "magnitude"])
@pytest.mark.parametrize(
    ("make", "targets"),
    [(node_model, [3, 20, 41]), (link_model, [(3, 20), (41, 5)]), (graph_model, [4, 0])],
)
def test_every_number_is_that_of_scores_and_truth_listed_by_hand(make, targets, order):
    """Signed scores; edges and nodes outside of the computation graph do not count."""
    model, generator = make(), torch.Generator().manual_seed(0)
    is_many = model.level == "graph"
    data = model.data if is_many else [model.data]

    def drawn(*shape):
        return torch.rand(*shape, generator=generator) < 0.4

    cells_true = [drawn(one.num_nodes, one.x.size(1)) for one in data]
    truth = {
        "edge": [drawn(one.edge_index.size(1)) for one in data],
        "node": [drawn(one.num_nodes) for one in data],
    }
    truth["feature"] = drawn(data[0].x.size(1))
    whole = {
        kind: masks if is_many or kind == "feature" else masks[0] for kind, masks in truth.items()
    }
    explainer = gg.CallableExplainer(signed_scores, name="by_hand")
    evaluator = gg.Evaluator(model, **SETTINGS, order=order, top=3)
    found = numbers(evaluator.compare(explainer, targets, truth=whole))
    by_cell = {"feature": cells_true if is_many else cells_true[0]}
    found_by_cell = numbers(evaluator.compare(explainer, targets, truth=by_cell))
    sized = torch.abs if order == "magnitude" else torch.clone
    for x in explainer.explain(model, targets, seed=0):
        number = x.target if is_many else 0
        feature = sized(x.feature_score.double())
        listed = {
            "edge": (sized(x.edge_score.double()), truth["edge"][number][x.edges]),
            "node": (feature.sum(1), truth["node"][number][x.nodes]),
            "feature": (feature.sum(0), truth["feature"]),
        }
        for kind, (score, mask) in listed.items():
            check(found, x, kind, score.tolist(), mask.tolist())
        check(
            found_by_cell,
            x,
            "feature",
            feature.flatten().tolist(),
            cells_true[number][x.nodes].flatten().tolist(),
        )


def check(found, x, kind, score, mask):
    for name, value in literal(score, mask, 3).items():
        assert found["by_hand", x.target, 0, f"{kind}_{name}"].value == pytest.approx(
            value, abs=1e-9
        ), (kind, name)


def a_star():
    """Nodes 1, 2 and 3 send 1 to node 0; node 4 stands alone."""
    data = graph([(1, 0), (2, 0), (3, 0)], [[1.0]] * 5)
    return gg.NodeClassificationModel(
        OfNodes(lambda x, sent: sent - 0.5), data, embedding=own_features, output="logits"
    )


def mask(*entries):
    return torch.tensor(entries, dtype=torch.bool)


def judged(truth, target=0, scores=(3, 2, 1), **settings):
    model = a_star()
    return cells_of(
        gg.Evaluator(model, **{**SETTINGS, **settings}).evaluate(
            explanation(model, target, scores), truth=truth
        )
    )


def test_what_is_undefined_is_a_gap_with_a_reason_and_never_zero():
    for one_sided in (mask(0, 0, 0), mask(1, 1, 1)):
        cells = judged({"edge": one_sided})
        assert {
            (cells[f"edge_{name}"].status, cells[f"edge_{name}"].value) for name in _TRUTH_METRICS
        } == {("one_sided_truth", None)}
    assert judged({"edge": mask(1, 0, 0)}, target=4)["edge_auroc"].status == "empty"
    assert (
        judged({"edge": mask(1, 0, 0)}, scores=(3, math.nan, 1))["edge_auroc"].status
        == "nan_attribution"
    )
    assert judged({"edge": {0: None}})["edge_auroc"].status == "no_truth"
    cells = judged({"edge": mask(1, 0, 0)})
    # the top 10 of 3
    assert (cells["edge_auroc"].value, cells["edge_precision_at_k"].status) == (1.0, "all_selected")
    cells = judged({"edge": mask(1, 0, 0)}, top=1)
    assert [cells[f"edge_{name}_at_k"].value for name in ("precision", "recall", "f1")] == [
        1.0,
        1.0,
        1.0,
    ]


def test_masks_come_by_target_too_and_targets_without_one_say_so():
    model = node_model()
    size, targets = model.data.edge_index.size(1), [3, 20, 41]
    first, second = (torch.arange(size) % 3 == k for k in range(2))
    evaluator = gg.Evaluator(model, **SETTINGS)

    def compared(edge):
        return numbers(evaluator.compare(gg.RandomExplainer(), targets, truth={"edge": edge}))

    listed = compared([first, second, None])
    assert listed == compared({3: first, 20: second})
    assert listed["random", 41, 0, "edge_auroc"].status == "no_truth"
    assert listed["random", 3, 0, "edge_auroc"] == compared(first)["random", 3, 0, "edge_auroc"]
    assert listed["random", 20, 0, "edge_auroc"] == compared(second)["random", 20, 0, "edge_auroc"]
    assert listed["random", 20, 0, "edge_auroc"] != compared(first)["random", 20, 0, "edge_auroc"]


def test_a_truth_leaves_the_other_numbers_alone_and_is_not_confused_with_another_truth():
    model = node_model()
    evaluator, (x,) = gg.Evaluator(model, **SETTINGS), gg.RandomExplainer().explain(model, [3])
    without = numbers(evaluator.evaluate(x))
    truth = torch.arange(model.data.edge_index.size(1)) % 2 == 0
    first, second = (numbers(evaluator.evaluate(x, truth={"edge": own})) for own in (truth, ~truth))
    key = ("random", 3, 0, "edge_auroc")
    assert first[key].value == pytest.approx(1 - second[key].value)
    assert x.metrics["edge_auroc"] == second[key].value
    for found in (first, second):
        assert {name: cell for name, cell in found.items() if name in without} == without
        assert len(found) == len(without) + len(_TRUTH_METRICS)
    assert numbers(evaluator.evaluate(x)) == without
    assert "edge_auroc" not in x.metrics


MANY = "one mask, but the data are 6 graphs: give a list with a mask for each graph"
WRONG = {
    "no dictionary": (
        node_model,
        torch.ones(3, dtype=torch.bool),
        "must be a dictionary with masks .* but got Tensor",
    ),
    "nothing": (node_model, {}, r"but got the keys \[\]"),
    "an unknown kind": (node_model, {"edges": None}, r"but got the keys \['edges'\]"),
    "float edges": (
        node_model,
        {"edge": torch.ones(7)},
        r"truth\['edge'\] must be torch.bool, but is torch.float32",
    ),
    "too few edges": (
        node_model,
        {"edge": mask(1, 0)},
        r"truth\['edge'\] must have the shape \(\d+,\).*but has \(2,\)",
    ),
    "too few nodes": (
        node_model,
        {"node": mask(1, 0)},
        r"truth\['node'\] must have the shape \(60,\).*but has \(2,\)",
    ),
    "features of no shape": (
        node_model,
        {"feature": mask(1, 0)},
        r"the shape \(6,\) or \(60, 6\).*but has \(2,\)",
    ),
    "a text": (node_model, {"edge": "all"}, "must be a mask, a list of masks or a dictionary"),
    "too few masks": (node_model, {"node": [mask(1, 0)]}, "lists 1 masks, but there are 2 targets"),
    "a list in a list": (
        node_model,
        {"node": [[True], [False]]},
        "must be a torch.bool tensor, but is list",
    ),
    "other targets": (
        node_model,
        {"node": {59: mask(1)}},
        "names 59, but none of the targets 3, 1",
    ),
    "one mask for many graphs": (graph_model, {"edge": mask(1, 0)}, MANY),
    "too few graphs": (
        graph_model,
        {"node": [mask(1)]},
        "lists 1 masks, but there are 6 graphs of the data",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_truths_are_refused_by_name_before_anything_is_run(case):
    make, truth, message = WRONG[case]
    with pytest.raises(BadSetting, match=message):
        gg.Evaluator(make(), **SETTINGS).compare(gg.RandomExplainer(), [3, 1], truth=truth)


def test_two_masks_for_one_target_are_refused():
    model = a_star()
    xs = [explanation(model, 0, [3, 2, 1]) for _ in range(2)]
    with pytest.raises(BadSetting, match="two different masks for target 0"):
        gg.Evaluator(model, **SETTINGS).evaluate(xs, truth={"edge": [mask(1, 0, 0), mask(0, 0, 1)]})


def test_tables_summaries_files_and_the_report_hold_the_truth(tmp_path):
    model = node_model()
    truth = {
        "edge": torch.arange(model.data.edge_index.size(1)) % 3 == 0,
        "feature": mask(1, 0, 0, 0, 1, 0),
    }
    results = gg.Evaluator(model, **SETTINGS).compare(
        [gg.Saliency(), gg.RandomExplainer()], [3, 20, 41], truth=truth
    )
    names = [f"{kind}_{name}" for kind in ("edge", "feature") for name in _TRUTH_METRICS]
    assert set(names) <= set(results.to_pandas()["metric"])
    assert results.summary().loc[("saliency", "edge_auroc"), "n"] == 3
    assert results.made["truth"].keys() == truth.keys()
    assert "edge_auroc" not in results.headline().columns
    front = results.pareto("edge_auroc", "time_batched")
    assert set(front.index) == {"saliency", "random"}
    results.save(tmp_path)
    assert gg.Results.load(tmp_path).rows == results.rows
    report = results.report()
    for name in ("report.html", "report.md"):
        report.save(tmp_path / name)
        text = (tmp_path / name).read_text()
        for word in ("Agreement with the known truth", "Edge AUROC", "Feature precision at k"):
            assert word in text, (name, word)
    (own,) = report.content["truth"]
    assert [column["metric"] for column in own["columns"]] == names
    value = results.summary().loc[("saliency", "edge_auroc"), "mean"]
    assert (
        f"{value:.2f}"
        in (tmp_path / "report.md").read_text().partition("Agreement with the known truth")[2]
    )


def test_a_report_without_a_truth_says_nothing_of_one(tmp_path):
    results = gg.Evaluator(node_model(), **SETTINGS).compare(gg.Saliency(), [3, 20])
    results.report().save(tmp_path / "report.html")
    assert "known truth" not in (tmp_path / "report.html").read_text()
