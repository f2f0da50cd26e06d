"""What has been measured is not measured again; what has changed is."""

import dataclasses

import pytest
import torch
from support.quick_evaluation import QUICK, cells_of, node_model, numbers
from support.small_networks import Stack, build, random_graph
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.evaluation import fingerprints as identity
from graphgauge.evaluation.stored_values import RECORD


def test_a_second_evaluation_runs_neither_model_nor_explainer(monkeypatch):
    model = node_model()
    xs = gg.RandomExplainer().explain(model, [3, 20])
    evaluator = gg.Evaluator(model, **{**QUICK, "timed": 1})
    first = evaluator.evaluate(xs)

    def refuse(*args, **kwargs):
        raise AssertionError("was measured again")

    monkeypatch.setattr(type(model), "map", refuse)
    monkeypatch.setattr(gg.RandomExplainer, "scores", refuse)
    monkeypatch.setattr(model.net, "forward", refuse)
    second = evaluator.evaluate(xs)
    assert second.rows == first.rows


def test_numbers_come_back_from_a_saved_explanation(tmp_path, monkeypatch):
    model = node_model()
    x = gg.RandomExplainer().explain(model, [3])[0]
    first = gg.Evaluator(model, **QUICK).evaluate(x)
    x.save(tmp_path / "x.safetensors")
    loaded = gg.Xplanation.load(tmp_path / "x.safetensors")
    monkeypatch.setattr(gg.RandomExplainer, "scores", None)
    assert gg.Evaluator(model, **QUICK).evaluate(loaded).rows == first.rows


def test_metrics_hold_the_values_of_the_rows():
    model = node_model()
    x = gg.Saliency().explain(model, [59])[0]
    results = gg.Evaluator(model, **QUICK).evaluate(x)
    assert {row.metric: row.cell.value for row in results.rows} == {
        k: v for k, v in x.metrics.items() if k != RECORD
    }
    assert x.metrics["edge_ec"] is None
    assert x.metrics["feature_ec"] >= 1


def test_changed_scores_are_measured_anew():
    model = node_model()
    x = gg.Saliency().explain(model, [3])[0]
    first = numbers(gg.Evaluator(model, **QUICK).evaluate(x))
    x.edge_score = -x.edge_score
    second = numbers(gg.Evaluator(model, **QUICK).evaluate(x))
    fresh = dataclasses.replace(x, metrics={})
    assert second == numbers(gg.Evaluator(model, **QUICK).evaluate(fresh)) != first


def test_changed_settings_seeds_and_names_are_measured_anew():
    model = node_model()
    x = gg.RandomExplainer().explain(model, [3])[0]
    for change in (
        {},
        {"cap": 3},
        {"seed": 1},
        {"task": "a"},
        {"name": "a"},
        {"order": "magnitude"},
    ):
        kept = numbers(gg.Evaluator(model, **{**QUICK, **change}).evaluate(x))
        assert kept == numbers(
            gg.Evaluator(model, **{**QUICK, **change}).evaluate(dataclasses.replace(x, metrics={}))
        )


def test_changed_weights_are_measured_anew():
    model = node_model()
    x = gg.Saliency().explain(model, [3])[0]
    first = numbers(gg.Evaluator(model, **QUICK).evaluate(x))
    with torch.no_grad():
        for parameter in model.net.parameters():
            parameter.mul_(-3)
    judge = gg.Evaluator(model, **QUICK)
    second = numbers(judge.evaluate(x, check_network=False))
    assert (
        second
        == numbers(judge.evaluate(dataclasses.replace(x, metrics={}), check_network=False))
        != first
    )


def test_numbers_of_one_explainer_do_not_serve_another():
    model = node_model()
    x = gg.RandomExplainer().explain(model, [3])[0]
    gg.Evaluator(model, **QUICK).evaluate(x)
    unnamed = dataclasses.replace(x, explainer="", params={})
    assert (
        cells_of(gg.Evaluator(model, **QUICK).evaluate(unnamed))["edge_stability"].status
        == "no_explainer"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"embedding": lambda net, g: g.x},
        {"forward": lambda net, g: net(g.x, g.edge_index).flip(1)},
        {"num_hops": 3},
    ],
)
def test_the_same_weights_called_in_another_way_are_another_model(options):
    net, data = build(Stack, GCNConv), random_graph()
    first, second = (
        gg.NodeClassificationModel(net, data),
        gg.NodeClassificationModel(net, data, **options),
    )
    assert identity.digest_of_model(first) != identity.digest_of_model(second)
    assert identity.digest_of_model(first) == identity.digest_of_model(
        gg.NodeClassificationModel(net, data)
    )


@pytest.mark.parametrize(
    "extra", [torch.ones(3, dtype=torch.bfloat16), torch.eye(3).to_sparse(), torch.tensor(True)]
)
def test_networks_with_unusual_buffers_can_be_named(extra):
    names = []
    for change in (extra, extra.to_dense().logical_not().to(extra.dtype)):
        net = build(Stack, GCNConv)
        net.register_buffer("extra", change)
        names.append(identity.digest_of_model(gg.NodeClassificationModel(net, random_graph())))
    assert names[0] != names[1]
