"""``explain(..., label=)``: which class is explained, in every explainer that knows classes."""

import math
from dataclasses import dataclass

import pytest
import torch
from support.small_networks import EncodeDecode, Pooled, Stack, build, random_graph
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.core.errors import BadExplanation, BadSetting
from graphgauge.explainers import EXPLAINERS
from graphgauge.explainers.explained_class import parse_labels
from graphgauge.explainers.graphmask import prediction_divergence, unpredicted_labels

TARGETS = [3, 20, 41]
QUICK = {
    "gnn_explainer": {"epochs": 5},
    "graphmask": {"epochs": 5},
    "integrated_gradients": {"steps": 4},
}


def node_model(**attributes):
    data = random_graph()
    for name, value in attributes.items():
        data[name] = value
    return gg.NodeClassificationModel(
        build(Stack, GCNConv, out=3, dtype=torch.float64), data.apply(doubled)
    )


def doubled(value):
    return value.double() if value.is_floating_point() else value


def made(name):
    return gg.find_explainer(name, **QUICK.get(name, {}))


def same(xs, ys):
    return all(
        (a is None and b is None) or a.equal(b)
        for x, y in zip(xs, ys, strict=True)
        for a, b in ((x.feature_score, y.feature_score), (x.edge_score, y.edge_score))
    )


def other_classes(model, targets):
    return (model.pred_discrete(targets) + 1) % model.num_classes


# --- the same question ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPLAINERS)
def test_the_predicted_class_by_name_or_number_is_bit_for_bit_the_default(name):
    model, explainer = node_model(), made(name)
    default = explainer.explain(model, TARGETS, seed=4)
    classes = model.pred_discrete(TARGETS)
    for label in ("predicted", classes, classes.tolist(), [None, "predicted", int(classes[2])]):
        xs = explainer.explain(model, TARGETS, seed=4, label=label)
        assert same(default, xs)
        assert [x.label for x in xs] == classes.tolist()
    assert [x.label for x in default] == [None] * 3


# --- another question, by hand --------------------------------------------------------------------


def gradient_by_hand(model, target, label, of_logit=False):
    """The gradient of one class on the whole graph, for features and for message factors."""
    x = model.source.x.clone().requires_grad_(True)
    rows = model.net(x, model.source.edge_index)
    output = rows if of_logit else rows.softmax(1)
    return torch.autograd.grad(output[target, label], x)[0]


@pytest.mark.parametrize("label", [0, 1, 2])
def test_gradients_are_those_of_the_chosen_class_by_autograd(label):
    model = node_model()
    for of_logit in (False, True):
        kind = "logit" if of_logit else "prob"
        saliency = gg.Saliency(explain_output=kind).explain(model, TARGETS, label=label)
        product = gg.InputXGradient(explain_output=kind).explain(model, TARGETS, label=label)
        for target, s, p in zip(TARGETS, saliency, product, strict=True):
            gradient = gradient_by_hand(model, target, label, of_logit)
            torch.testing.assert_close(s.feature_matrix(), gradient.abs(), rtol=1e-9, atol=1e-12)
            torch.testing.assert_close(
                p.feature_matrix(), model.source.x * gradient, rtol=1e-9, atol=1e-12
            )


def test_edge_scores_are_the_change_of_the_chosen_class_when_messages_shrink():
    model, step = node_model(), 1e-6
    for target, label in ((3, 0), (20, 1), (41, 2)):
        (x,) = gg.InputXGradient().explain(model, [target], label=label)
        graphs = model.computation_graphs([target])
        of = torch.zeros(len(x.edges), dtype=torch.int64)

        def shrunk(union):
            return union.with_mask(
                1 - step * (union.edge_row == union.copy[union.edge_copy]).to(union.x)
            )

        first, now = (
            model.pred_copies(graphs)[:, label],
            model.pred_copies(graphs, of, shrunk)[:, label],
        )
        torch.testing.assert_close(x.edge_score, (first - now) / step, rtol=1e-4, atol=1e-7)


def test_integrated_gradients_add_up_to_the_chosen_class():
    model = node_model()
    nothing = model.computation_graphs(TARGETS)
    empty = model.pred_copies(
        nothing,
        edit=lambda union: union.with_x(0 * union.x).with_mask(union.x.new_zeros(union.num_edges)),
    )
    xs = gg.IntegratedGradients(steps=200).explain(model, TARGETS, label=[2, 0, 1])
    for k, (x, label) in enumerate(zip(xs, [2, 0, 1], strict=True)):
        total = x.feature_score.sum() + x.edge_score.sum()
        assert float(total) == pytest.approx(float(x.prediction[label] - empty[k, label]), abs=2e-4)


def test_lrp_hands_back_the_logit_of_the_chosen_class():
    """With gamma 0 relevance is input times gradient of that logit."""
    model = node_model()
    xs = gg.LRP(gamma=0.0).explain(model, TARGETS, label=1)
    for target, x in zip(TARGETS, xs, strict=True):
        expected = model.source.x * gradient_by_hand(model, target, 1, of_logit=True)
        torch.testing.assert_close(x.feature_matrix(), expected, rtol=1e-8, atol=1e-10)


def test_masks_are_learned_for_the_chosen_class():
    """GNNExplainer's mask for a class keeps its probability higher than the masks for other classes
    do.
    """
    model, explainer = node_model(), gg.GNNExplainer(epochs=150, lr=0.1)
    classes = range(model.num_classes)
    by_class = [explainer.explain(model, TARGETS, label=label) for label in classes]
    kept = torch.stack([kept_probability(model, xs) for xs in by_class])  # (label, target, class)
    for label in classes:
        others = [other for other in classes if other != label]
        assert float(kept[label, :, label].mean()) > float(kept[others][:, :, label].mean())


def kept_probability(model, xs):
    """Predictions with features and messages multiplied by their scores.  (T, C)"""
    graphs = model.computation_graphs([x.target for x in xs])
    feature = torch.zeros(len(graphs.node), model.source.x.size(1), dtype=torch.float64)
    edge = torch.zeros(len(graphs.edge), dtype=torch.float64)
    for graph, x in zip(graphs, xs, strict=True):
        feature[graph.node_slice][: len(x.nodes)] = x.feature_score
        edge[graph.edge_slice][: len(x.edges)] = x.edge_score

    def masked(union):
        factor = torch.ones_like(union.x)
        factor[union.node_at] = feature[union.node_row]
        return union.with_x(union.x * factor).with_mask(edge[union.edge_row])

    return model.pred_copies(graphs, edit=masked)


def literal_divergence(first, now, label):
    """KL of the class and all others together, or of all classes where ``label`` is -1, summand by
    summand.
    """
    pairs = list(zip(first, now, strict=True))
    if label >= 0:
        pairs = [
            pairs[label],
            tuple(
                map(sum, zip(*(pair for k, pair in enumerate(pairs) if k != label), strict=True))
            ),
        ]
    return sum(p * math.log(p / q) for p, q in pairs if p > 0)


def test_graphmask_keeps_the_chosen_class_against_all_others_together():
    model = node_model()
    random = torch.Generator().manual_seed(0)
    first = torch.rand(6, 3, generator=random, dtype=torch.float64).softmax(1)
    raw = 3 * torch.randn(6, 3, generator=random, dtype=torch.float64)
    chosen = torch.tensor([0, 1, 2, -1, 1, -1])
    now = raw.softmax(1).tolist()
    expected = [
        literal_divergence(*each) for each in zip(first.tolist(), now, chosen.tolist(), strict=True)
    ]
    assert prediction_divergence(model, first, raw, chosen).tolist() == pytest.approx(
        expected, rel=1e-9
    )
    assert unpredicted_labels(first, first.argmax(1)) is None
    label = torch.zeros(6, dtype=torch.int64)
    assert unpredicted_labels(first, label).tolist() == [
        -1 if own == 0 else 0 for own in first.argmax(1).tolist()
    ]


@pytest.mark.parametrize("name", EXPLAINERS)
def test_another_class_is_explained_otherwise_and_a_batch_changes_nothing(name):
    model, explainer = node_model(), made(name)
    label = other_classes(model, TARGETS)
    together = explainer.explain(model, TARGETS, label=label)
    alone = [
        explainer.explain(model, [target], label=int(one))[0]
        for target, one in zip(TARGETS, label, strict=True)
    ]
    for x, y in zip(together, alone, strict=True):
        assert (x.label, y.label) == (int(x.label), int(x.label))
        torch.testing.assert_close(x.feature_score, y.feature_score, rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(x.edge_score, y.edge_score, rtol=1e-6, atol=1e-9)
    if name != "random":
        assert not same(together, explainer.explain(model, TARGETS))


MODELS = {
    "gat": lambda: gg.NodeClassificationModel(build(Stack, GATConv, out=3), random_graph()),
    "sage": lambda: gg.NodeClassificationModel(build(Stack, SAGEConv, out=3), random_graph()),
    "one column": lambda: gg.NodeClassificationModel(build(Stack, GCNConv, out=1), random_graph()),
    "link": lambda: gg.LinkClassificationModel(
        build(EncodeDecode, SAGEConv), random_graph(), output="logits"
    ),
    "graph": lambda: gg.GraphClassificationModel(
        build(Pooled), [random_graph(8 + seed, 14, seed=seed) for seed in range(4)]
    ),
}


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_of_classification_explains_a_class_that_is_not_predicted(kind):
    model = MODELS[kind]()
    targets = [(0, 4), (9, 2)] if kind == "link" else [0, 2]
    label = other_classes(model, targets)
    for explainer in (
        gg.InputXGradient(),
        gg.LRP(),
        gg.GNNExplainer(epochs=2),
        gg.GraphMask(epochs=2),
        gg.RandomExplainer(),
    ):
        xs = explainer.explain(model, targets, label=label)
        assert [x.label for x in xs] == label.tolist()
        assert all(bool(x.feature_score.isfinite().all()) for x in xs)
    if model.num_classes == 2:  # what raises one class lowers the other
        default = gg.InputXGradient().explain(model, targets)
        for x, y in zip(
            default, gg.InputXGradient().explain(model, targets, label=label), strict=True
        ):
            torch.testing.assert_close(x.feature_score, -y.feature_score, rtol=1e-4, atol=1e-7)


def test_pygs_algorithms_explain_the_chosen_class():
    model, label = node_model(), other_classes(node_model(), TARGETS)
    captum = gg.PyGExplainer("CaptumExplainer", {"attribution_method": "InputXGradient"})
    for x, target, one in zip(
        captum.explain(model, TARGETS, label=label), TARGETS, label.tolist(), strict=True
    ):
        gradient = gradient_by_hand(model, target, one, of_logit=True)
        torch.testing.assert_close(
            x.feature_matrix(), model.source.x * gradient, rtol=1e-6, atol=1e-8
        )
    learned = gg.PyGExplainer("GNNExplainer", {"epochs": 3})
    assert same(learned.explain(model, TARGETS), learned.explain(model, TARGETS, label="predicted"))
    assert not same(learned.explain(model, TARGETS), learned.explain(model, TARGETS, label=label))


# --- how a class is named -------------------------------------------------------------------------


def test_classes_are_named_by_number_by_name_as_true_or_one_for_each_target():
    truth = torch.arange(60) % 3
    model = node_model(y=truth, class_names=["base", "roof", "wall"])
    rows = model.parse_targets(TARGETS)
    assert parse_labels(model, rows, None) is None
    assert parse_labels(model, rows, "true").tolist() == truth[TARGETS].tolist()
    assert parse_labels(model, rows, 2).tolist() == [2, 2, 2]
    assert parse_labels(model, rows, torch.tensor(1)).tolist() == [1, 1, 1]
    assert parse_labels(model, rows, "roof").tolist() == [1, 1, 1]
    predicted = model.pred_discrete(TARGETS).tolist()
    assert parse_labels(model, rows, ["wall", None, "true"]).tolist() == [
        2,
        predicted[1],
        int(truth[41]),
    ]
    assert parse_labels(model, model.parse_targets([]), 1).tolist() == []


def test_true_classes_are_found_for_graphs_and_links():
    graphs = [random_graph(8, 14, seed=seed) for seed in range(3)]
    for number, graph in enumerate(graphs):
        graph.y = torch.tensor([number % 2])
    model = gg.GraphClassificationModel(build(Pooled), graphs)
    assert parse_labels(model, model.parse_targets([2, 1]), "true").tolist() == [0, 1]
    data = random_graph()
    data.edge_label_index, data.edge_label = (
        torch.tensor([[0, 9], [4, 2]]),
        torch.tensor([1.0, 0.0]),
    )
    links = gg.LinkClassificationModel(build(EncodeDecode, SAGEConv), data, output="logits")
    assert parse_labels(links, links.parse_targets([(9, 2), (0, 4)]), "true").tolist() == [0, 1]
    with pytest.raises(BadSetting, match=r"not known for link \(4, 0\)"):
        gg.Saliency().explain(links, [(4, 0)], label="true")


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (3, r"label=3 is no class of this network: its 3 classes are 0\.\.2"),
        (-1, "label=-1 is no class"),
        (True, "label must be a class number.*but True was given"),
        (0.5, "label must be a class number.*but 0.5 was given"),
        ("roof", "'roof' is a name, but the data has no class_names"),
        (
            "true",
            "label='true' needs data.y with one class for each of the 60 nodes, but there is none",
        ),
        ([0, 1], "label has 2 entries for 3 targets"),
    ],
)
def test_what_is_no_class_is_refused_with_what_to_do(label, message):
    with pytest.raises(BadSetting, match=message):
        gg.Saliency().explain(node_model(), TARGETS, label=label)


def test_names_and_true_classes_that_do_not_fit_are_refused():
    model = node_model(y=torch.full((60,), -1), class_names={0: "base", 7: "odd"})
    with pytest.raises(BadSetting, match="the data has class -1 for target 3"):
        gg.Saliency().explain(model, TARGETS, label="true")
    with pytest.raises(
        BadSetting,
        match=r"'roof' is no class of this data\. Known: base, odd, 'predicted' and 'true'",
    ):
        gg.Saliency().explain(model, TARGETS, label="roof")
    with pytest.raises(BadSetting, match="label=7 is no class"):
        gg.Saliency().explain(model, TARGETS, label="odd")
    with pytest.raises(BadSetting, match="needs whole numbers of classes"):
        gg.Saliency().explain(node_model(y=torch.full((60,), 0.5)), TARGETS, label="true")


def test_a_label_of_several_is_explained_for_or_against():
    net = build(Stack, GCNConv, out=3)
    model = gg.NodeClassificationModel(net, random_graph(), output="multi_label_logits")
    targets = [(3, 0), (20, 2)]
    applies, does_not = (
        gg.InputXGradient().explain(model, targets, label=label) for label in (1, 0)
    )
    for x, y in zip(applies, does_not, strict=True):
        torch.testing.assert_close(x.feature_score, -y.feature_score, rtol=1e-4, atol=1e-7)
    with pytest.raises(BadSetting, match="targets of this network name a label already"):
        gg.Saliency().explain(model, targets, label="roof")
    with pytest.raises(BadSetting, match="needs one class for each target"):
        gg.Saliency().explain(model, targets, label="true")


def test_values_have_no_class():
    model = gg.NodeRegressionModel(build(Stack, GATConv, out=1), random_graph())
    for explainer in (gg.Saliency(), gg.RandomExplainer(), gg.GNNExplainer(epochs=2)):
        with pytest.raises(
            BadSetting,
            match="label= chooses a class to explain, but NodeRegressionModel predicts values",
        ):
            explainer.explain(model, TARGETS, label=0)


# --- explainers that do not know classes ----------------------------------------------------------


@dataclass(frozen=True)
class Sentence(gg.OtherTaskExplainer):
    name = "sentence"
    deterministic = True

    def outcome(self, model, target, seed):
        return "something"


@dataclass(frozen=True)
class SentenceOnClass(Sentence):
    def outcome(self, model, target, seed, label=None):
        return f"why {label}"


def test_an_explainer_that_knows_no_classes_explains_the_predicted_one_only():
    model, label = node_model(), other_classes(node_model(), TARGETS)
    plain = gg.CallableExplainer(
        lambda model, target: (None, torch.ones(model.source.num_edges)),
        name="plain",
        scope="whole graph",
    )
    untrained = gg.GraphMask(variant="pyg")
    attention = gg.PyGExplainer("AttentionExplainer")
    for explainer in (plain, Sentence(), untrained, attention):
        assert not explainer.explains_labels
        with pytest.raises(
            BadSetting,
            match=rf"{explainer.name} explains the predicted class only, but class . was asked for",
        ):
            explainer.explain(model, TARGETS, label=label)
    assert [
        x.label for x in plain.explain(model, TARGETS, label="predicted")
    ] == model.pred_discrete(TARGETS).tolist()
    assert [x.outcome for x in Sentence().explain(model, [3], label="predicted")] == ["something"]


def test_functions_and_outcomes_that_take_a_label_are_told_the_class():
    model = node_model()

    def function(model, target, label=9):
        return None, torch.full((model.source.num_edges,), float(label))

    told = gg.CallableExplainer(function, scope="whole graph")
    assert [float(x.edge_score[0]) for x in told.explain(model, [3, 20], label=[1, 2])] == [
        1.0,
        2.0,
    ]
    assert float(told.explain(model, [3])[0].edge_score[0]) == 9.0
    assert [x.outcome for x in SentenceOnClass().explain(model, [3, 20], label=[1, 2])] == [
        "why 1",
        "why 2",
    ]
    assert SentenceOnClass().explain(model, [3])[0].outcome == "why None"


def test_the_network_is_as_before_when_a_class_is_refused():
    model = node_model()
    before = {name: value.clone() for name, value in model.net.state_dict().items()}
    hooks = [
        len(module._forward_hooks) + len(module._forward_pre_hooks)
        for module in model.net.modules()
    ]
    with pytest.raises(BadSetting):
        gg.GNNExplainer(epochs=2).explain(model, TARGETS, label=99)
    assert all(value.equal(before[name]) for name, value in model.net.state_dict().items())
    assert hooks == [
        len(module._forward_hooks) + len(module._forward_pre_hooks)
        for module in model.net.modules()
    ]


# --- the class is kept ----------------------------------------------------------------------------


def test_the_class_is_kept_saved_shown_and_used_again(tmp_path):
    model = node_model()
    first, second = gg.GNNExplainer(epochs=3).explain(model, [3, 3], seed=5, label=[0, 1])
    assert (first.label, second.label) == (0, 1)
    assert repr(second).startswith("Xplanation(target=3, label=1, explainer='gnn_explainer'")
    assert "label" not in repr(gg.Saliency().explain(model, [3])[0])
    second.save(tmp_path / "x")
    assert gg.Xplanation.load(tmp_path / "x").label == 1
    back = gg.Xplanation.from_pyg(second.to_pyg(), 3)
    assert back.label == 1
    assert gg.Xplanation.from_pyg(gg.Saliency().explain(model, [3])[0].to_pyg(), 3).label is None
    again = gg.find_explainer(second.explainer, **second.params).recompute(model, second)
    assert again.label == 1
    assert same([again], [second])
    with pytest.raises(BadExplanation, match="label must be the number of a class"):
        gg.Xplanation(
            target=0,
            nodes=torch.tensor([0]),
            edges=torch.zeros(0, dtype=torch.int64),
            num_nodes=1,
            num_edges=0,
            label=-1,
        )
