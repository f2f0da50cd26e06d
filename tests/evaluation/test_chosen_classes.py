"""Explanations of a class that was chosen: what curves, EC, references, stability and stored
numbers are about.
"""

from dataclasses import dataclass, replace

import pytest
import torch
from support.quick_evaluation import QUICK, values_model
from support.small_networks import EncodeDecode, Pooled, Stack, build, random_graph
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.core.errors import BadExplanation, BadSetting
from graphgauge.perturbation import find_references

TARGETS = [3, 20, 41]
CLOCKS = ("time", "time_batched")


def three_classes(**options):
    """Three classes, all of them predicted somewhere."""
    net, data = (
        build(Stack, GCNConv, out=3, seed=4, dtype=torch.float64),
        random_graph(undirected=True, dtype=torch.float64),
    )
    with torch.no_grad():
        rows = net(data.x, data.edge_index)
        net.convs[-1].bias -= rows.mean(0)
    return gg.NodeClassificationModel(net, data, **options)


def cells(results, metrics=None):
    return {
        (row.explainer, row.target, row.occurrence, row.metric): row.cell
        for row in results.rows
        if row.metric not in CLOCKS and (metrics is None or row.metric in metrics)
    }


EXPLAINERS = [gg.InputXGradient(), gg.GNNExplainer(epochs=2), gg.RandomExplainer()]


@pytest.mark.parametrize("preset", ["paper", "calibrated"])
def test_the_predicted_class_has_every_number_of_the_default(preset):
    model = three_classes()
    evaluator = gg.Evaluator(model, preset, extras=preset == "calibrated", **QUICK)
    default = evaluator.compare(EXPLAINERS, TARGETS)
    for label in ("predicted", model.pred_discrete(TARGETS)):
        assert cells(evaluator.compare(EXPLAINERS, TARGETS, label=label)) == cells(default)


@pytest.mark.parametrize("label", [0, 1, 2])
def test_curves_are_of_the_chosen_class_by_hand(label):
    """Remove edges from the whole graph, one after another, and call the network each time."""
    model = three_classes()
    evaluator = gg.Evaluator(
        model, "calibrated", edge_removal="drop", removal_unit="directed", sides="edges", **QUICK
    )
    results = evaluator.compare(gg.InputXGradient(), TARGETS, label=label)
    predicted = model.pred_discrete(TARGETS).tolist()
    xs = gg.InputXGradient().explain(model, TARGETS, label=label)
    for target, own, x in zip(TARGETS, predicted, xs, strict=True):
        story = results.explain(
            {"explainer": "input_x_gradient", "target": target, "metric": "edge_pertinence"}
        )
        (case,) = story.cases
        order = x.edges[x.edge_score.argsort(descending=True)]
        curve, flipped_after = [], None
        for step in range(1, len(order) + 1):
            kept = torch.ones(model.source.num_edges, dtype=torch.bool)
            kept[order[:step]] = False
            prob = (
                model.net(model.source.x, model.source.edge_index[:, kept])
                .softmax(1)[target]
                .detach()
            )
            curve.append(float(prob[label]))
            if flipped_after is None and int(prob.argmax()) != own:
                flipped_after = step
        assert case.curve.tolist() == pytest.approx(curve, abs=1e-9)
        assert case.start == pytest.approx(
            float(model.pred_continuous([target])[0, label]), abs=1e-12
        )
        ec = cells(results, ["edge_ec"])["input_x_gradient", target, 0, "edge_ec"]
        if label != own:
            assert (ec.value, ec.status) == (None, "not_predicted")
        else:
            assert (ec.value, ec.flipped) == (
                flipped_after or len(order),
                flipped_after is not None,
            )


def test_an_unpredicted_class_has_a_pertinence_over_the_whole_curve_and_no_ec():
    model = three_classes()
    label = (model.pred_discrete(TARGETS) + 1) % 3
    results = gg.Evaluator(model, "calibrated", extras=True, **QUICK).compare(
        EXPLAINERS, TARGETS, label=label
    )
    for side in ("edge", "feature"):
        statuses = {cell.status for key, cell in cells(results, [f"{side}_ec"]).items()}
        assert statuses == {"not_predicted"}
        for metric in (
            "pertinence",
            "pertinence_tied",
            "pertinence_rank",
            "pertinence_p",
            "deletion_auc",
            "stability",
        ):
            name = f"{side}_{metric}"
            assert all(cell.status == "ok" for cell in cells(results, [name]).values()), name
    summary = results.summary()
    assert summary.loc[("random", "edge_ec"), "missing"] == "3 not_predicted"
    story = results.explain({"explainer": "random", "target": 3, "metric": "edge_pertinence"})
    assert f"of class {int(label[0])}, which is not predicted" in str(story)
    assert "prediction changes" not in str(story)
    assert "edge_ec" not in story.values
    assert all(case.steps == len(case.curve) for case in story.cases)
    with pytest.raises(
        BadSetting,
        match="label= chooses a class to explain, but NodeRegressionModel predicts values",
    ):
        gg.Evaluator(values_model(), **QUICK).compare(EXPLAINERS, TARGETS, label=0)


def test_what_raises_a_class_lowers_its_curve_and_not_that_of_another():
    """The explanation of a class beats random orders on the curve of that class."""
    model = three_classes()
    evaluator = gg.Evaluator(
        model,
        "calibrated",
        sides="edges",
        stability="none",
        timed=0,
        trials=(20, 20),
        twin_trials=40,
    )
    targets = list(range(0, 60, 3))
    exact = gg.Occlusion(features="none")
    for label in range(3):
        tied = (
            evaluator.compare([exact, gg.RandomExplainer()], targets, label=label)
            .summary()["mean"]
            .unstack("metric")
        )
        assert tied.loc["occlusion", "edge_pertinence_tied"] > 0.75
        assert abs(tied.loc["random", "edge_pertinence_tied"] - 0.5) < 0.2


def test_references_are_of_all_classes_but_the_explained_one():
    model = three_classes()
    predicted = model.pred_discrete(TARGETS)
    for label in (predicted, (predicted + 1) % 3):
        references = find_references(model, TARGETS, 1, label)
        for t in range(3):
            kinds = references.kind[references.target == t].tolist()
            assert kinds == [kind for kind in range(3) if kind != int(label[t])]
            own = references.reference[references.target == t][:, 0]
            assert model.pred_discrete(own).tolist() == kinds
    default, given = find_references(model, TARGETS), find_references(model, TARGETS, 1, predicted)
    assert torch.equal(default.reference, given.reference)


def test_explanations_of_two_classes_of_one_target_are_judged_each_on_its_own():
    model = three_classes()
    evaluator = gg.Evaluator(model, "calibrated", **QUICK)
    label = [0, 1, 2]
    explainer = gg.InputXGradient()
    mixed = [
        x for one in label for x in explainer.explain(model, [20], label=one)
    ] + explainer.explain(model, [20])
    together = evaluator.evaluate([copy_of(x) for x in mixed])
    for number, x in enumerate(mixed):
        alone = {key[3]: cell for key, cell in cells(evaluator.evaluate(copy_of(x))).items()}
        both = {key[3]: cell for key, cell in cells(together).items() if key[2] == number}
        # repetitions are of other numbers
        names = [name for name in alone if "stability" not in name]
        assert {name: both[name] for name in names} == {name: alone[name] for name in names}
    predicted = int(model.pred_discrete([20])[0])
    first, default = (
        {key[3]: cell for key, cell in cells(together).items() if key[2] == number}
        for number in (predicted, 3)
    )
    assert first["edge_pertinence_tied"] == default["edge_pertinence_tied"]


def copy_of(x):
    return replace(x, metrics={})


def test_stored_numbers_hold_for_their_class_alone():
    model = three_classes()
    evaluator = gg.Evaluator(model, "calibrated", **QUICK)
    (x,) = gg.InputXGradient().explain(model, [20], label=0)
    first = cells(evaluator.evaluate(x))
    assert evaluator.stored_values(x) is not None
    assert cells(evaluator.evaluate(x)) == first
    other = replace(x, label=1)
    assert evaluator.stored_values(other) is None
    assert cells(evaluator.evaluate(other)) != first
    assert evaluator.stored_values(replace(x, label=None)) is None


class Heard:
    labels: list


@dataclass(frozen=True)
class Listener(gg.RandomExplainer):
    """Writes down which class it is asked for, of which target."""

    name = "listener"

    def scores(self, model, graphs, seeds):
        classes = (
            [None] * len(graphs) if graphs.chosen_class is None else graphs.chosen_class.tolist()
        )
        Heard.labels += zip([graph.target for graph in graphs], classes, strict=True)
        return super().scores(model, graphs, seeds)


def test_stability_timing_and_showing_ask_for_the_same_class():
    model = three_classes()
    label = ((model.pred_discrete(TARGETS) + 1) % 3).tolist()
    Heard.labels = []
    evaluator = gg.Evaluator(model, "calibrated", **{**QUICK, "timed": 2})
    results = evaluator.compare(Listener(), TARGETS, label=label)
    assert set(Heard.labels) == set(zip(TARGETS, label, strict=True))
    assert len(Heard.labels) > 30  # repetitions, too
    shown = results.source.explain_several("listener", [(41, 0), (3, 0)])
    assert [(x.target, x.label) for x in shown] == [(41, label[2]), (3, label[0])]
    assert results.source.explanations["listener", 20, 0]().label == label[1]
    Heard.labels = []
    evaluator.compare(Listener(), TARGETS)
    assert {one for _, one in Heard.labels} == {None}


def test_a_target_named_twice_may_be_explained_for_two_classes():
    model = three_classes()
    results = gg.Evaluator(model, **QUICK).compare(gg.RandomExplainer(), [20, 20], label=[0, 1])
    assert [x.label for x in results.source.explain_several("random", [(20, 0), (20, 1)])] == [0, 1]
    assert {(row.target, row.occurrence) for row in results.rows} == {(20, 0), (20, 1)}


def test_saved_results_say_which_classes_were_chosen(tmp_path):
    evaluator = gg.Evaluator(three_classes(), **{**QUICK, "stability": "none"})
    results = evaluator.compare(gg.Saliency(), TARGETS, label=[0, 2, 2])
    assert results.made["chosen_classes"] == {"0": 1, "2": 2}
    results.save(tmp_path)
    again = gg.Results.load(tmp_path)
    assert again.made["chosen_classes"] == {"0": 1, "2": 2}
    assert cells(again) == cells(results)
    assert "chosen_classes" not in evaluator.compare(gg.Saliency(), TARGETS).made


@pytest.mark.parametrize("kind", ["link", "graph"])
def test_links_and_graphs_have_chosen_classes_too(kind):
    if kind == "link":
        model, targets = (
            gg.LinkClassificationModel(build(EncodeDecode), random_graph(), output="logits"),
            [(0, 4), (9, 2)],
        )
    else:
        graphs = [random_graph(8 + seed, 14, seed=seed) for seed in range(4)]
        model, targets = gg.GraphClassificationModel(build(Pooled), graphs), [0, 2]
    for label in (0, 1):
        results = gg.Evaluator(model, "calibrated", **QUICK).compare(
            gg.InputXGradient(), targets, label=label
        )
        own = [int(one) == label for one in model.pred_discrete(targets)]
        found = [cell.status != "not_predicted" for cell in cells(results, ["edge_ec"]).values()]
        assert found == own


def test_classes_that_the_network_does_not_have_are_refused():
    model = three_classes()
    evaluator = gg.Evaluator(model, **QUICK)
    (x,) = gg.Saliency().explain(model, [3])
    with pytest.raises(
        BadExplanation, match=r"target 3 is of class 7, but the model's classes are 0\.\.2"
    ):
        evaluator.evaluate(replace(x, label=7))
    with pytest.raises(BadSetting, match="label=9 is no class of this network"):
        evaluator.compare(gg.Saliency(), [3], label=9)
    values = values_model()
    (x,) = gg.Saliency().explain(values, [3])
    with pytest.raises(BadExplanation, match="the model predicts values"):
        gg.Evaluator(values, **QUICK).evaluate(replace(x, label=0))


def test_an_explainer_that_knows_no_classes_is_refused_by_name():
    plain = gg.CallableExplainer(
        lambda model, target: (None, torch.ones(model.source.num_edges)),
        name="plain",
        scope="whole graph",
    )
    model = three_classes()
    with pytest.raises(BadSetting, match="plain explains the predicted class only"):
        gg.Evaluator(model, **QUICK).compare(
            plain, TARGETS, label=(model.pred_discrete(TARGETS) + 1) % 3
        )
