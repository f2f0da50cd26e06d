"""Explainers without scores: their outcome travels with the explanation, and they keep the same
promises.
"""

from dataclasses import dataclass

import pytest
import torch
from support.small_networks import Stack, build, random_graph
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.checks.model_checks import fail_if_network_changes
from graphgauge.core.errors import BadExplanation
from graphgauge.core.seeds import derive_seed


@dataclass(frozen=True)
class Counterfactual(gg.OtherTaskExplainer):
    """A feature to change."""

    name = "counterfactual"
    deterministic = False
    width: int = 6

    def outcome(self, model, target, seed):
        model.net.convs[0].bias.data.zero_()
        return {
            "target": target,
            "feature": int(torch.randint(10**6, ())) % self.width,
            "seed": seed,
        }


def test_an_explanation_carries_the_outcome_and_no_scores():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    model.pred_continuous([3])
    with fail_if_network_changes(model):
        xs = Counterfactual().explain(model, [3, 5, 3], seed=2)
    assert [x.outcome["target"] for x in xs] == [3, 5, 3]
    assert [x.outcome["seed"] for x in xs] == [
        derive_seed(x.seed, x.explainer, x.target, x.occurrence) for x in xs
    ]
    assert [(x.feature_score, x.edge_score, x.explainer) for x in xs] == [
        (None, None, "counterfactual")
    ] * 3
    assert all(x.seconds > 0 for x in xs)
    assert [x.outcome for x in Counterfactual().explain(model, [3, 5, 3], seed=2)] == [
        x.outcome for x in xs
    ]
    with pytest.raises(
        BadExplanation, match="edge_score of target 3 was asked for, but counterfactual gave none"
    ):
        xs[0].edge_vector()


def test_the_outcome_is_not_saved(tmp_path):
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    (x,) = Counterfactual(width=4).explain(model, [3])
    x.save(tmp_path / "x")
    again = gg.Xplanation.load(tmp_path / "x")
    assert (again.outcome, again.params, again.feature_score) == (None, {"width": 4}, None)


def test_the_method_has_to_be_filled_in():
    with pytest.raises(TypeError, match="outcome"):
        gg.OtherTaskExplainer()
