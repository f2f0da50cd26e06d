"""The assessment of a project: the answer, what is left out, and the score of the network."""

import pytest
import torch
from support.user_networks import NodeNet, node_graph, write_project
from torch import nn

from graphgauge.core.errors import BadModel, BadSetting, OutOfMemory
from graphgauge.evaluation import model_accuracy
from graphgauge.explainers import CallableExplainer, RandomExplainer, Saliency
from graphgauge.lifecycle import Project, explain_one
from graphgauge.lifecycle.assessment import assess, split_usable_explainers
from graphgauge.models import NodeClassificationModel, NodeRegressionModel

QUICK = {
    "settings": {
        "trials": [4, 4],
        "early_stop": "none",
        "twin_trials": 4,
        "permutations": 2,
        "timed": 1,
    },
    "targets": [1, 2, 8],
}


class Copy(nn.Module):
    """Predicts what stands in its features."""

    def forward(self, x, edge_index):
        return x


def of_features(make, x, y, mask):
    data = node_graph()
    data.x, data.y, data.test_mask = torch.tensor(x), torch.tensor(y), torch.tensor(mask)
    data.edge_index = torch.tensor([[0, 1], [1, 2]])
    del data.no_mask, data.test_pairs, data.feature_names
    return make(Copy(), data)


def test_the_score_of_the_network_is_its_accuracy_on_the_test_set():
    rows = [[2.0, 0.0], [0.0, 2.0], [2.0, 0.0], [0.0, 2.0]]
    model = of_features(NodeClassificationModel, rows, [0, 0, 0, 1], [False, True, True, True])
    assert model_accuracy(model).value == 2 / 3
    del model.data.y
    assert model_accuracy(model) is None


def test_the_score_of_a_regression_is_r_squared():
    model = of_features(
        NodeRegressionModel,
        [[1.0], [2.0], [4.0], [9.0]],
        [1.0, 2.0, 3.0, 0.0],
        [True, True, True, False],
    )
    assert model_accuracy(model).value == pytest.approx(1 - (1 / 3) / (2 / 3), abs=1e-12)
    model.data.y = torch.ones(4)
    assert model_accuracy(model) is None


def failing(error):
    def explain(model, target):
        raise error

    return CallableExplainer(explain)


def test_explainers_that_raise_are_left_out_with_their_reason():
    model = NodeClassificationModel(NodeNet(), node_graph())
    able, left_out = split_usable_explainers(
        {"good": Saliency(), "bad": failing(ZeroDivisionError("by nought"))}, model, 1
    )
    assert (able, list(left_out)) == ({"good": Saliency()}, ["bad"])
    assert "by nought" in left_out["bad"]
    with pytest.raises(BadModel, match=r"no explainer can be run on this network\. bad: "):
        split_usable_explainers({"bad": failing(KeyError("x"))}, model, 1)


def test_memory_that_is_too_small_is_no_fault_of_the_explainer(monkeypatch):
    def explain(*_, **__):
        raise OutOfMemory("too large")

    monkeypatch.setattr(RandomExplainer, "explain", explain)
    with pytest.raises(OutOfMemory, match="too large"):
        split_usable_explainers(
            {"random": RandomExplainer(), "good": Saliency()},
            NodeClassificationModel(NodeNet(), node_graph()),
            1,
        )


def test_what_is_told_on_the_way_and_what_comes_out(tmp_path):
    heard = []
    project = Project.read(
        write_project(tmp_path, **QUICK, explainers=["saliency", "input_x_gradient", "random"])
    )
    found = assess(project, heard.append)
    assert heard[-1] == "measuring saliency, input_x_gradient, random on 3 node targets"
    assert {own.explainer for own in found.check.verdicts} == {found.recommendation.chosen}
    assert {own.explainer for own in found.verdicts} == {"saliency", "input_x_gradient", "random"}
    assert (found.code, found.left_out) == (found.check.code, {})


def test_the_network_is_the_same_after_an_assessment(tmp_path):
    project = Project.read(write_project(tmp_path, **QUICK))
    model = project.model()
    before = {name: value.clone() for name, value in model.net.state_dict().items()}
    project.evaluator(model).compare(project.explainers(), project.targets(model))
    assert all(torch.equal(value, before[name]) for name, value in model.net.state_dict().items())


def test_one_explanation_needs_an_explainer_beside_the_baseline(tmp_path):
    project = Project.read(write_project(tmp_path, **{**QUICK, "explainers": ["random"]}))
    with pytest.raises(BadSetting, match="names no explainer but the baseline"):
        explain_one(project, 1)
    assert explain_one(project, 1, "random", measured=False).x.explainer == "random"
