"""Networks with several labels that do not exclude each other: a target is a node, link or graph
and a label.
"""

import pytest
import torch
from support.small_networks import CLASSES, LinkForward, Pooled, Stack, build, random_graph
from torch import nn
from torch.testing import assert_close
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.core.errors import BadExplanation, BadModel, BadSetting, BadTarget
from graphgauge.explainers import (
    GNNExplainer,
    InputXGradient,
    PyGExplainer,
    RandomExplainer,
    Saliency,
)
from graphgauge.perturbation import find_references

NAMES = ["red", "green", "blue"]


class Sigmoid(nn.Module):
    """A probability for each label."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, edge_index, **others):
        return self.inner(x, edge_index, **others).sigmoid()


class LinkSigmoid(Sigmoid):
    def forward(self, x, edge_index, edge_label_index):
        return self.inner(x, edge_index, edge_label_index).sigmoid()


class GraphSigmoid(Sigmoid):
    def forward(self, x, edge_index, batch):
        return self.inner(x, edge_index, batch).sigmoid()


def graph(seed=0, size=30):
    data = random_graph(size, 3 * size, seed=seed)
    data.class_names = NAMES
    return data


#: level -> network with three labels, data, wrapper, where ids stand, how one label is picked by
#: hand
LEVELS = {
    "node": (
        lambda: Sigmoid(Stack(GCNConv, out=3)),
        graph,
        gg.NodeClassificationModel,
        [(4,), (11,), (20,)],
        lambda net, g: net(g.x, g.edge_index),
    ),
    "link": (
        lambda: LinkSigmoid(LinkForward(SAGEConv)),
        graph,
        gg.LinkClassificationModel,
        [(4, 7), (11, 2), (20, 21)],
        lambda net, g: net(g.x, g.edge_index, g.edge_label_index),
    ),
    "graph": (
        lambda: GraphSigmoid(Pooled(GATConv)),
        lambda: [graph(seed, 8 + seed) for seed in range(8)],
        gg.GraphClassificationModel,
        [(0,), (3,), (5,)],
        lambda net, g: net(g.x, g.edge_index, g.batch),
    ),
}


def models(level, label):
    """The network with all its labels, the same with one of them picked by hand, and targets of
    both.
    """
    make, make_data, wrapper, ids, forward = LEVELS[level]
    net, data = build(make), make_data()
    both = wrapper(net, data, output="multi_label")
    alone = wrapper(net, data, output="probs", forward=lambda net, g: forward(net, g)[:, label])
    plain = [pair if level == "link" else pair[0] for pair in ids]
    return both, alone, [(*pair, label) for pair in ids], plain


@pytest.mark.parametrize("level", LEVELS)
def test_probabilities_that_do_not_add_up_to_one_are_refused_until_one_says_what_they_are(level):
    make, make_data, wrapper, ids, _ = LEVELS[level]
    net, data = build(make), make_data()
    with pytest.raises(
        BadModel,
        match=(
            r"do not add up to 1, for example \[0\..*output='multi_label'.*\(node, "
            r"label\).*'logits'"
        ),
    ):
        wrapper(net, data).pred_continuous([ids[0] if level == "link" else ids[0][0]])
    with pytest.raises(BadModel, match=r"output='probs' was said.*Is it output='multi_label'"):
        wrapper(net, data, output="probs").pred_continuous(
            [ids[0] if level == "link" else ids[0][0]]
        )
    assert wrapper(net, data, output="logits").num_classes == 3


@pytest.mark.parametrize("label", [0, 2])
@pytest.mark.parametrize("level", LEVELS)
def test_a_label_is_what_its_column_is_alone(level, label):
    """Slow twin: the same column, picked by hand before the network is wrapped."""
    both, alone, targets, plain = models(level, label)
    assert_close(both.pred_continuous(targets), alone.pred_continuous(plain), rtol=0, atol=0)
    assert torch.equal(both.pred_discrete(targets), alone.pred_discrete(plain))
    assert_close(both.embed(targets), alone.embed(plain), rtol=0, atol=0)
    graphs, own = both.computation_graphs(targets), alone.computation_graphs(plain)
    assert torch.equal(graphs.edge, own.edge)
    assert torch.equal(graphs.node, own.node)
    without = [
        model.pred_copies(
            each, edit=lambda union: union.without_edges(union.edge_position % 2 == 0)
        )
        for model, each in ((both, graphs), (alone, own))
    ]
    assert_close(*without, rtol=0, atol=0)
    for explainer in (InputXGradient(), Saliency()):
        for x, y in zip(
            explainer.explain(both, targets), explainer.explain(alone, plain), strict=True
        ):
            assert (x.target_ids, x.target_label, y.target_label) == (y.target_ids, label, None)
            assert_close(
                (x.feature_score, x.edge_score), (y.feature_score, y.edge_score), rtol=0, atol=0
            )


@pytest.mark.parametrize("level", LEVELS)
def test_several_labels_of_one_node_share_a_batch(level):
    both, _, targets, _ = models(level, 0)
    mixed = [(*target[:-1], label) for target in targets for label in (2, 0, 1, "blue")]
    together = both.pred_copies(both.computation_graphs(mixed))
    assert_close(together, both.pred_continuous(mixed))
    apart = torch.cat([both.pred_continuous([target]) for target in mixed])
    assert_close(both.pred_continuous(mixed), apart, rtol=0, atol=0)
    assert_close(together[0], together[3], rtol=0, atol=0)


@pytest.mark.parametrize("level", LEVELS)
def test_references_are_of_the_same_label_and_the_other_answer(level):
    both, alone, targets, plain = models(level, 1)
    ours, own = find_references(both, targets), find_references(alone, plain)
    width = own.reference.size(1)
    assert torch.equal(ours.target, own.target)
    assert torch.equal(ours.kind, own.kind)
    assert torch.equal(ours.reference[:, :width], own.reference)
    assert (ours.reference[:, width] == 1).all()
    mixed = find_references(
        both, [target for label in (0, 2) for target in [(*targets[0][:-1], label)]]
    )
    assert all(
        int(ref[-1]) == (0, 2)[int(t)] for t, ref in zip(mixed.target, mixed.reference, strict=True)
    )


@pytest.mark.parametrize("level", LEVELS)
def test_the_whole_pipeline_takes_labels(level, tmp_path):
    both, alone, targets, plain = models(level, 1)
    settings = {
        "preset": "paper",
        "cap": 8,
        "stability": "none",
        "timed": 0,
        "edge_removal": "drop",
    }
    found = gg.Evaluator(both, **settings).compare([InputXGradient()], targets)
    own = gg.Evaluator(alone, **settings).compare([InputXGradient()], plain)

    def counts(results):
        return [row.cell.value for row in results.rows if row.metric == "edge_ec"]

    assert counts(found) == counts(own)
    assert {row.target for row in found.rows} == set(targets) == set(found.to_pandas()["target"])
    found.save(tmp_path / "run")
    assert [row.target for row in gg.Results.load(tmp_path / "run").rows] == [
        row.target for row in found.rows
    ]

    x = InputXGradient().explain(both, targets)[0]
    x.save(tmp_path / "x.safetensors")
    again = gg.Xplanation.load(tmp_path / "x.safetensors")
    assert (again.target, again.target_label) == (targets[0], 1)
    x.draw(both)
    assert f"label {NAMES[1]}" in gg.Evaluator(both).get_textual_explanation(x)
    assert gg.Evaluator(both, **settings).evaluate([again]).rows
    sampled = gg.Evaluator(both).sample(5)
    assert [len(target) for target in sampled] == [len(targets[0])] * 5


@pytest.mark.parametrize("level", LEVELS)
def test_other_explainers_take_labels(level):
    both, alone, targets, plain = models(level, 2)
    for explainer in (RandomExplainer(), GNNExplainer(epochs=3)):
        assert [x.target for x in explainer.explain(both, targets)] == targets
    pyg = PyGExplainer("CaptumExplainer", {"attribution_method": "Saliency"})
    for x, y in zip(pyg.explain(both, targets), pyg.explain(alone, plain), strict=True):
        assert_close(x.feature_score, y.feature_score)


@pytest.mark.parametrize("level", LEVELS)
def test_a_model_with_labels_keeps_every_promise(level):
    both, *_ = models(level, 0)
    gg.check_model(both)
    gg.check_explainer(InputXGradient(), both)


def test_logits_of_labels_go_through_a_sigmoid():
    net, data = build(Stack, GCNConv), random_graph(30, 90)
    found = gg.NodeClassificationModel(net, data, output="multi_label_logits").pred_continuous(
        [(3, 2), (3, 0)]
    )
    assert_close(found[:, 1], net(data.x, data.edge_index)[3, [2, 0]].sigmoid().detach())
    with pytest.raises(BadModel, match="Is it output='multi_label_logits'"):
        gg.NodeClassificationModel(net, data, output="multi_label").pred_continuous([(3, 2)])


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (5, r"target 5 has no label: this network gives 3 labels.*\(node, label\)"),
        ((5, 3), r"target \(5, 3\): there is no label 3, the 3 labels are 0..2"),
        ((5, -1), r"there is no label -1"),
        ((5, "gren"), r"no label is called 'gren'. Did you mean 'green'\?"),
        ((5, 0.5), r"the label 0.5 is neither"),
        ((30, 0), r"target \(30, 0\) is not in this data"),
        ((1, 2, 0), r"target \(1, 2, 0\) has no label"),
    ],
)
def test_wrong_labels_are_refused_by_name(target, message):
    both, *_ = models("node", 0)
    with pytest.raises(BadTarget, match=message):
        both.pred_continuous([target])


def test_targets_with_labels_may_come_as_a_tensor():
    both, *_ = models("node", 0)
    targets = torch.tensor([[3, 1], [5, 2]])
    assert_close(
        both.pred_continuous(targets), both.pred_continuous([(3, 1), (5, 2)]), rtol=0, atol=0
    )
    with pytest.raises(BadTarget, match="there is no label 7"):
        both.pred_continuous(torch.tensor([[3, 7]]))
    assert both.pred_continuous([]).shape == (0, 2)


def test_an_explanation_of_a_label_must_be_of_its_level():
    nodes = {
        "nodes": torch.tensor([4, 1]),
        "edges": torch.tensor([0]),
        "num_nodes": 6,
        "num_edges": 3,
    }
    assert gg.Xplanation(target=(4, 9), level="node", **nodes).target_nodes == (4,)
    assert gg.Xplanation(target=(4, 1, 9), level="link", **nodes).target_nodes == (4, 1)
    with pytest.raises(BadExplanation, match="is not a link"):
        gg.Xplanation(target=4, level="link", **nodes)
    with pytest.raises(BadExplanation, match="is not a node"):
        gg.Xplanation(target=(4, 1, 9), level="node", **nodes)


# --- several values -------------------------------------------------------------------------------


def test_a_column_of_several_values_is_chosen_by_its_number():
    net, data = build(Stack, GCNConv), random_graph(30, 90)
    model = gg.NodeRegressionModel(net, data, output_column=2)
    assert_close(model.pred_continuous([3, 8]), net(data.x, data.edge_index)[[3, 8], 2].detach())
    by_hand = gg.NodeRegressionModel(net, data, forward=lambda net, g: net(g.x, g.edge_index)[:, 2])
    for explainer in (
        InputXGradient(),
        PyGExplainer("CaptumExplainer", {"attribution_method": "Saliency"}),
    ):
        for x, y in zip(
            explainer.explain(model, [3, 8]), explainer.explain(by_hand, [3, 8]), strict=True
        ):
            assert_close(x.feature_score, y.feature_score, rtol=0, atol=0)
    gg.check_model(model)


@pytest.mark.parametrize("level", ["link", "graph"])
def test_links_and_graphs_have_columns_too(level):
    make, make_data, _, ids, forward = LEVELS[level]
    wrapper = {"link": gg.LinkRegressionModel, "graph": gg.GraphRegressionModel}[level]
    net, data, plain = (
        build(make),
        make_data(),
        ids if level == "link" else [pair[0] for pair in ids],
    )
    found = wrapper(net, data, output_column=1).pred_continuous(plain)
    own = wrapper(net, data, forward=lambda net, g: forward(net, g)[:, 1]).pred_continuous(plain)
    assert_close(found, own, rtol=0, atol=0)


def test_columns_that_are_not_there_are_refused_by_name():
    net, data = build(Stack, GCNConv), random_graph(30, 90)
    with pytest.raises(
        BadModel,
        match=(
            rf"returns {CLASSES} columns.*NodeRegressionModel\(net, data, output_column=0\), up "
            r"to 3"
        ),
    ):
        gg.NodeRegressionModel(net, data).pred_continuous([0])
    with pytest.raises(
        BadModel, match=r"output_column=4 was asked for, but the net returns 4 column"
    ):
        gg.NodeRegressionModel(net, data, output_column=4).pred_continuous([0])
    for wrong in (-1, True, 0.5, "2"):
        with pytest.raises(BadSetting, match="output_column must be the number of a column"):
            gg.NodeRegressionModel(net, data, output_column=wrong)
