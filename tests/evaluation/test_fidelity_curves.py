"""Fidelity, its areas over shares of the candidates, and insertion curves, against edits made one
by one on the whole graph.
"""

import math
from itertools import pairwise

import pytest
import torch
from support import literal_metrics
from support.hand_computed_networks import OfNodes, explanation, graph, own_features
from support.literal_studies import study
from support.quick_evaluation import MODELS, QUICK, cells_of, numbers

import graphgauge as gg
from graphgauge.core.errors import BadSetting
from graphgauge.metrics import fidelity_auc, level_counts, top_counts

SHARES = [k / 10 for k in range(1, 10)]
FAMILY = ("fidelity_plus", "fidelity_minus", "characterization", "unfaithfulness")
AREAS = ("fidelity_plus_auc", "fidelity_minus_auc")


def nearest(share, count):
    """The whole number nearest to a share of the candidates, at least one and fewer than all."""
    return max(1, min(math.floor(share * count + 0.5 + 1e-9), count - 1))


def literal_family(question, order, edit, top, cap):
    """Every number of one case: G_mod with some edits made, in words of the definition."""
    count, start = len(order), question.height(literal_metrics.UNTOUCHED)
    size = nearest(top, count) if isinstance(top, float) else min(top, cap)

    def height(chosen):
        graphs = literal_metrics.after_edits(question, chosen, len(chosen), edit)
        return question.height(graphs[-1] if graphs else literal_metrics.UNTOUCHED)

    plus = [start - height(order[: nearest(share, count)]) for share in SHARES]
    minus = [start - height(order[nearest(share, count) :]) for share in SHARES]
    back = [height(order[k:]) for k in range(1, min(cap, count) + 1)]
    found = {"insertion_auc": sum(back) / len(back)}
    if count > 1:
        found |= {"fidelity_plus_auc": trapezoids(plus), "fidelity_minus_auc": trapezoids(minus)}
    if size < count:
        found |= {
            "fidelity_plus": start - height(order[:size]),
            "fidelity_minus": start - height(order[size:]),
        }
    return found, {"fidelity_plus_auc": plus, "fidelity_minus_auc": minus}


def trapezoids(values):
    """The area over 0.1 to 0.9, divided by 0.8."""
    return sum((a + b) / 2 * 0.1 for a, b in pairwise(values)) / 0.8


def mean(values):
    return sum(values) / len(values)


def check_family(found, name, target, side, cases):
    """Each number is the mean over the cases; where a case has none, nor has the target."""
    names = {
        metric.removeprefix(f"{side}_")
        for own, _, metric in found.cells
        if own == name and metric.startswith(f"{side}_")
    }
    assert names >= {*AREAS, "insertion_auc", "fidelity_plus", "fidelity_minus"}
    for metric in ("fidelity_plus", "fidelity_minus", "insertion_auc", *AREAS):
        cell = found.cell(name, target, f"{side}_{metric}")
        if metric not in cases[0][0]:
            assert (cell.status, cell.value, cell.per_level) == ("all_selected", None, None)
            continue
        assert cell.value == pytest.approx(mean([values[metric] for values, _ in cases]), abs=1e-9)
        if metric in AREAS:
            wanted = [
                mean(level) for level in zip(*(levels[metric] for _, levels in cases), strict=True)
            ]
            assert cell.per_level == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("task", "layer", "changed"),
    [
        ("node_classes", "GCN", {"top": 3}),
        ("node_classes", "GAT", {"top": 0.3, "edge_removal": "drop", "cap": 4}),
        ("node_values", "GCN", {"top": 0.25, "removal_unit": "undirected", "order": "magnitude"}),
        ("link_classes", "GAT", {"top": 6}),
        ("graph_classes", "GCN", {"top": 0.5}),
    ],
)
def test_the_family_equals_edits_made_one_by_one(task, layer, changed):
    found = study(task, layer, extras=True, stability="none", **changed)
    top, cap = changed["top"], found.evaluator.settings.cap
    for name, target, question, s, ties, _ in found.edges():
        order = literal_metrics.edge_order(question, s, ties)
        check_family(
            found,
            name,
            target,
            "edge",
            [literal_family(question, order, literal_metrics.remove_edge, top, cap)],
        )
    for name, target, question, f, ties, references in found.features():
        order = literal_metrics.feature_order(question, f, ties)
        cases = [
            literal_family(question, order, literal_metrics.substituting(ref.phi), top, cap)
            for ref in references
        ]
        check_family(found, name, target, "feature", cases)


def test_counts_of_shares_are_the_nearest_numbers_at_least_one_and_fewer_than_all():
    for count in range(1, 60):
        wanted = [nearest(share, count) if count > 1 else 1 for share in SHARES]
        assert level_counts(torch.tensor([count]))[0].tolist() == wanted
        for share in (0.01, 0.25, 0.5, 0.99):
            assert top_counts(share, torch.tensor([count])).item() == (
                nearest(share, count) if count > 1 else 1
            )


def a_star(edges=3):
    """Node 0 is sent as many ones as it has neighbours, and sums them up."""
    data = graph([(k, 0) for k in range(1, edges + 1)], [[1.0]] * (edges + 1))
    net = OfNodes(lambda x, sent: sent - 0.5)
    return gg.NodeClassificationModel(net, data, embedding=own_features, output="logits")


@pytest.mark.parametrize("top", [3, 10, 3.0 / 4])
def test_where_the_top_edits_are_all_there_are_no_explainer_has_a_fidelity(top):
    """Once 3 of 3 edges were the top 10, random scores and the best had the same number."""
    model = a_star()
    good, bad = (
        explanation(model, 0, scores, explainer=name)
        for scores, name in (([3, 2, 1], "good"), ([1, 2, 3], "bad"))
    )
    results = gg.Evaluator(model, **QUICK, extras=True, top=top).evaluate([good, bad])
    status = {
        row.cell.status for row in results.rows if row.metric in {f"edge_{name}" for name in FAMILY}
    }
    assert status == ({"all_selected"} if top >= 1 else {"ok"})
    assert all(row.cell.value is None for row in results.rows if row.cell.status == "all_selected")
    assert {
        row.cell.status for row in results.rows if row.metric in {f"edge_{name}" for name in AREAS}
    } == {"ok"}


def test_one_candidate_has_no_share():
    model = a_star(edges=1)
    cells = cells_of(
        gg.Evaluator(model, **QUICK, extras=True, top=0.5).evaluate(explanation(model, 0, [1.0]))
    )
    assert {cells[f"edge_{name}"].status for name in (*FAMILY, *AREAS)} == {"all_selected"}
    assert cells["edge_insertion_auc"].status == cells["edge_deletion_auc"].status == "ok"


@pytest.mark.parametrize("kind", MODELS)
def test_a_share_of_all_but_nothing_changes_with_the_company_or_the_size_of_parts(
    kind, monkeypatch
):
    make, targets = MODELS[kind]
    explainers = [gg.Saliency(), gg.RandomExplainer()]
    settings = {**QUICK, "extras": True, "top": 0.2, "stability": "none"}
    together = numbers(gg.Evaluator(make(), **settings).compare(explainers, targets))
    monkeypatch.setattr("graphgauge.evaluation.curve_parts._MOST_PLACES", 1)
    alone = numbers(gg.Evaluator(make(), **settings).compare(explainers[1], targets[1:2]))
    assert alone.items() <= together.items()
    assert {key[3] for key in alone} >= {
        f"{side}_{name}" for side in ("edge", "feature") for name in (*AREAS, "insertion_auc")
    }


def test_random_scores_have_one_fidelity_on_average_at_all_levels():
    """A linear network: of n equal edges that add up, a share of k/10 takes k/10 of the sum,
    whichever they are.
    """
    data = graph([(k, 0) for k in range(1, 11)], [[1.0]] * 11)
    net = OfNodes(lambda x, sent: 2.0 * sent)
    model = gg.NodeRegressionModel(net, data, embedding=own_features)
    xs = [
        explanation(
            model, 0, torch.rand(10, generator=torch.Generator().manual_seed(seed)).tolist()
        )
        for seed in range(3)
    ]
    for x in xs:
        cells = cells_of(gg.Evaluator(model, **QUICK, extras=True).evaluate(x))
        assert cells["edge_fidelity_plus_auc"].per_level == pytest.approx(
            [2.0 * k for k in range(1, 10)]
        )
        assert cells["edge_fidelity_minus_auc"].per_level == pytest.approx(
            [20 - 2.0 * k for k in range(1, 10)]
        )
        assert cells["edge_fidelity_plus_auc"].value == pytest.approx(10.0)
        assert cells["edge_insertion_auc"].value == pytest.approx(2.0 * 5.5)


def test_a_network_that_cannot_run_without_edges_keeps_what_needs_no_empty_graph():
    """The insertion curve's last heights and fidelity_minus have edges; nothing else fails for the
    gaps on the way.
    """
    data = graph([(k, 0) for k in range(1, 5)], [[1.0]] * 5)

    def read(x, sent):
        return torch.where(sent == 1, torch.nan, sent - 0.5)

    model = gg.NodeClassificationModel(OfNodes(read), data, embedding=own_features, output="logits")
    settings = {**QUICK, "extras": True, "top": 2, "cap": 2}
    cells = cells_of(gg.Evaluator(model, **settings).evaluate(explanation(model, 0, [4, 3, 2, 1])))
    assert cells["edge_insertion_auc"].status == "nan_prediction"  # one edge put back
    assert (
        cells["edge_fidelity_plus_auc"].status
        == cells["edge_fidelity_minus_auc"].status
        == "nan_prediction"
    )
    assert cells["edge_fidelity_plus"].status == cells["edge_fidelity_minus"].status == "ok"


@pytest.mark.parametrize("top", [0, 1.5, 1.0, -0.5, True, "all", math.nan])
def test_a_top_that_is_neither_a_number_nor_a_share_is_refused(top):
    with pytest.raises(
        BadSetting, match="top must be a whole number, 1 or more, or a share between 0 and 1"
    ):
        gg.Evaluator(a_star(), top=top)


def test_an_area_is_saved_with_its_levels(tmp_path):
    model = a_star()
    results = gg.Evaluator(model, **QUICK, extras=True).evaluate(explanation(model, 0, [3, 2, 1]))
    results.save(tmp_path)
    assert gg.Results.load(tmp_path).rows == results.rows
    curve = results.fidelity_curve("edge", "plus")
    (cell,) = (row.cell for row in results.rows if row.metric == "edge_fidelity_plus_auc")
    assert curve.iloc[:, 0].tolist() == list(cell.per_level)
    assert curve.index.tolist() == pytest.approx(SHARES)
    assert fidelity_auc(torch.tensor(curve.to_numpy().T)).item() == pytest.approx(cell.value)


def test_the_insertion_curve_stands_in_the_story_of_a_number():
    """Three edges that add up: one, two and all three put back."""
    model = a_star()
    results = gg.Evaluator(model, **QUICK, extras=True).evaluate(explanation(model, 0, [3, 2, 1]))
    number = next(k for k, row in enumerate(results.rows) if row.metric == "edge_ec")
    (case,) = results.explain(number).cases
    prediction = torch.tensor([1.0, 2.0, 3.0]) - 0.5
    label_is_one = torch.sigmoid(prediction)
    assert case.insertion.tolist() == pytest.approx(label_is_one.tolist(), abs=1e-6)
    assert case.insertion.mean().item() == pytest.approx(
        cells_of(results)["edge_insertion_auc"].value
    )
    without = gg.Evaluator(model, **QUICK).evaluate(explanation(model, 0, [3, 2, 1]))
    assert without.explain(number).cases[0].insertion is None
