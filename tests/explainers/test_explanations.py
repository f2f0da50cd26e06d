"""Explanations of one call: packed, and used like a list."""

import pytest
import torch
from support.small_networks import Stack, build, random_graph
from torch_geometric.nn import GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.explainers import Explanations


def wrapped(layer=GCNConv, **options):
    data = random_graph(30, 80)
    return gg.NodeClassificationModel(build(Stack, layer), data, output="logits", **options)


TARGETS = [3, 8, 3, 20, 29]


def test_they_are_used_like_a_list():
    xs = gg.Saliency().explain(wrapped(), TARGETS)
    assert isinstance(xs, Explanations)
    assert [x.target for x in xs] == xs.targets == TARGETS
    assert len(xs) == 5
    assert [x.target for x in xs[1:3]] == [8, 3]
    assert xs[-1].target == 29
    assert [x.occurrence for x in xs] == [0, 0, 1, 0, 0]
    assert xs == list(xs)
    assert xs != list(xs)[:-1]
    assert xs[0] in xs
    assert [x.target for x in xs + xs[:1]] == [*TARGETS, 3]
    assert [x.target for x in xs[:1] + xs] == [3, *TARGETS]
    with pytest.raises(IndexError):
        xs[5]
    assert gg.Saliency().explain(wrapped(), []) == []


def test_an_explanation_is_made_once_so_that_its_metrics_stay():
    model = wrapped()
    xs = gg.Saliency().explain(model, [3, 8])
    assert xs[0] is xs[0]
    assert xs[0] is next(iter(xs))
    gg.Evaluator(model, timed=0).evaluate(xs)
    assert "edge_ec" in xs[1].metrics


@pytest.mark.parametrize("explainer", [gg.InputXGradient(), gg.GNNExplainer(epochs=3)])
@pytest.mark.parametrize("layer", [GCNConv, SAGEConv])
def test_packed_scores_are_those_of_the_single_explanations(explainer, layer):
    xs = explainer.explain(wrapped(layer), TARGETS)
    assert torch.equal(xs.feature_score, torch.cat([x.feature_score for x in xs]))
    assert torch.equal(xs.edge_score, torch.cat([x.edge_score for x in xs]))
    assert len(xs.packed.edge) >= len(xs.edge_score)


def test_scores_written_into_one_explanation_do_not_reach_another():
    xs = gg.Saliency().explain(wrapped(), [3, 3])
    xs[0].feature_score.zero_()
    assert xs[1].feature_score.any()
    assert xs.feature_score.any()
