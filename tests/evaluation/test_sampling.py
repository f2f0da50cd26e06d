"""Which targets to evaluate on."""

import itertools

import pytest
import torch
from support.hand_computed_networks import OfNodes, graph
from support.quick_evaluation import graph_model, link_model
from support.small_networks import LinkForward, build, random_graph

import graphgauge as gg
from graphgauge.core.errors import BadSetting


def spread_model(num_nodes=90):
    """Three classes of 60, 20 and 10 nodes; node k is the surer the higher k."""
    label = torch.tensor([0] * 60 + [1] * 20 + [2] * 10)
    sure = torch.arange(num_nodes) / num_nodes + 0.5
    x = torch.nn.functional.one_hot(label).float() * sure[:, None]
    data = graph([(k, (k + 1) % num_nodes, 0.0) for k in range(num_nodes)], x.tolist())
    return gg.NodeClassificationModel(OfNodes(lambda x, sent: x + sent), data, output="logits")


def third(node):
    start, size = ((0, 60), (60, 20), (80, 10))[(node >= 60) + (node >= 80)]
    return (node - start) * 3 // size


def test_samples_are_spread_over_classes_and_confidence():
    model = spread_model()
    chosen = gg.sample_targets(model, 18)
    assert chosen == sorted(set(chosen))
    strata = [((node >= 60) + (node >= 80), third(node)) for node in chosen]
    assert {stratum: strata.count(stratum) for stratum in strata} == dict.fromkeys(
        itertools.product(range(3), range(3)), 2
    )


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_also_a_small_sample_is_spread(count):
    chosen = gg.sample_targets(spread_model(), count)
    labels = [(node >= 60) + (node >= 80) for node in chosen]
    assert sorted(labels.count(label) for label in range(3)) == sorted(
        [count // 3 + (k < count % 3) for k in range(3)]
    )
    assert len({third(node) for node in chosen}) == min(count, 3)


def test_a_class_that_runs_out_leaves_its_place_to_others():
    chosen = gg.sample_targets(spread_model(), 60)
    counts = [
        sum(low <= node < high for node in chosen) for low, high in ((0, 60), (60, 80), (80, 90))
    ]
    assert counts == [30, 20, 10]


def test_samples_of_values_are_spread_over_tenths():
    data = graph([(k, (k + 1) % 50, 0.0) for k in range(50)], [[float(k)] for k in range(50)])
    model = gg.NodeRegressionModel(OfNodes(lambda x, sent: x + sent), data)
    assert sorted(node // 5 for node in gg.sample_targets(model, 20)) == [k // 2 for k in range(20)]
    assert max(gg.sample_targets(model, 3)) - min(gg.sample_targets(model, 3)) >= 25


def test_a_sample_is_the_same_each_time_and_another_with_another_seed():
    model = spread_model()
    assert gg.sample_targets(model, 12) == gg.sample_targets(model, 12)
    assert gg.sample_targets(model, 12, seed=1) != gg.sample_targets(model, 12)
    evaluators = [
        gg.Evaluator(model, **more)
        for more in ({}, {"seed": 1}, {"seed_scope": ("a", "")}, {"seed_scope": ("", "a")})
    ]
    assert len({tuple(one.sample(12)) for one in evaluators}) == 4
    # names are labels, and draw nothing
    labelled = [gg.Evaluator(model, **more) for more in ({"task": "a"}, {"name": "a"})]
    assert {tuple(one.sample(12)) for one in labelled} == {tuple(evaluators[0].sample(12))}


def test_fewer_than_asked_are_all_there_are():
    model = spread_model()
    assert gg.sample_targets(model, 1000) == list(range(90))
    assert gg.sample_targets(model, 5, among=[7, 3, 7, 7]) == [3, 7]
    assert gg.sample_targets(model, 5, among=[]) == []
    assert set(gg.sample_targets(model, 5, among=range(70, 90))) <= set(range(70, 90))


def test_samples_of_links_and_graphs():
    links = gg.sample_targets(link_model(), 10_000)
    assert len(links) == len(set(links)) > 300
    assert all(isinstance(link, tuple) for link in links)
    model = gg.LinkClassificationModel(build(LinkForward), random_graph())
    few = gg.sample_targets(model, 9)
    assert len(set(model.pred_discrete(few).tolist())) == len(
        model.pred_discrete(model.population()).unique()
    )
    assert gg.sample_targets(graph_model(), 6) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("count", [0, -1, 2.0, True, None])
def test_a_sample_of_no_number_is_refused(count):
    with pytest.raises(BadSetting, match="count"):
        gg.sample_targets(spread_model(), count)
