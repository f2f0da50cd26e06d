"""Gradient explainers equal PyG's CaptumExplainer, one target at a time on the whole graph; and
what they promise.
"""

import numpy as np
import pytest
import torch
from support.small_networks import (
    EncodeDecode,
    LinkForward,
    Pooled,
    Stack,
    build,
    mlp,
    random_graph,
)
from torch import nn
from torch_geometric.explain import CaptumExplainer, Explainer
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

import graphgauge as gg
from graphgauge.core.errors import BadExplanation, BadModel, BadSetting, GraphgaugeWarning
from graphgauge.explainers import EXPLAINERS, gradients
from graphgauge.explainers.base import Scores
from graphgauge.explainers.gradients import _gauss_legendre

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:Input Tensor . did not already require gradients"
    ),  # Captum, the peer
    pytest.mark.filterwarnings("ignore:Setting backward hooks on ReLU activations"),
]

METHODS = {
    "saliency": "Saliency",
    "input_x_gradient": "InputXGradient",
    "integrated_gradients": "IntegratedGradients",
    "guided_backprop": "GuidedBackprop",
    "deconvolution": "Deconvolution",
}
LAYERS = {"GCN": GCNConv, "GAT": GATConv, "SAGE": SAGEConv, "GIN": lambda a, b: GINConv(mlp(a, b))}


@pytest.fixture(autouse=True)
def double_by_default():
    """PyG's bridge to Captum makes its edge mask in the default precision, whatever the data's."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def captums_weights(monkeypatch):
    """Captum rounds the weights of its steps to single precision; to compare finer than that, so
    must we.
    """

    def rounded(steps):
        points, weights = _gauss_legendre(steps)
        return points, weights.float().double()

    monkeypatch.setattr(gradients, "_gauss_legendre", rounded)


class Probabilities(nn.Module):
    """A network that ends in probabilities, which is what Captum's bridge in PyG can explain."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, edge_index, **kwargs):
        out = self.inner(x, edge_index, **kwargs)
        return out.softmax(-1)


class LinkProbabilities(Probabilities):
    def forward(self, x, edge_index, edge_label_index):
        return self.inner(x, edge_index, edge_label_index).softmax(-1)


class GraphProbabilities(Probabilities):
    def forward(self, x, edge_index, batch=None):
        return self.inner(x, edge_index, batch).softmax(-1)


def plain_graph(seed=0, num_nodes=40):
    """Without stored self-loops: PyG moves their factors along the path too."""
    data = random_graph(num_nodes, 2 * num_nodes, seed=seed, dtype=torch.float64)
    data.edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    return data


def captum(net, method, level, mode="multiclass_classification", return_type="probs"):
    return Explainer(
        net,
        algorithm=CaptumExplainer(METHODS[method]),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={"mode": mode, "task_level": level, "return_type": return_type},
    )


def assert_equals(x, reference, tolerance=1e-10):
    assert (x.feature_matrix() - reference.node_mask).abs().max() <= tolerance
    assert (x.edge_vector() - reference.edge_mask).abs().max() <= tolerance


@pytest.mark.numeric
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_node_targets_equal_captum(layer, method, captums_weights):
    data = plain_graph()
    net = build(lambda: Probabilities(Stack(layer, act=nn.ReLU())), dtype=torch.float64)
    peer = captum(net, method, "node")
    xs = EXPLAINERS[method]().explain(gg.NodeClassificationModel(net, data), range(12))
    for target, x in enumerate(xs):
        assert_equals(x, peer(data.x, data.edge_index, index=target))


@pytest.mark.numeric
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_link_targets_equal_captum(layer, method, captums_weights):
    data = plain_graph()
    net = build(lambda: LinkProbabilities(LinkForward(layer, act=nn.ReLU())), dtype=torch.float64)
    peer, pairs = captum(net, method, "edge"), [(0, 5), (7, 3), (21, 2)]
    for pair, x in zip(
        pairs,
        EXPLAINERS[method]().explain(gg.LinkClassificationModel(net, data), pairs),
        strict=True,
    ):
        assert_equals(x, peer(data.x, data.edge_index, edge_label_index=torch.tensor([pair]).t()))


@pytest.mark.numeric
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_graph_targets_equal_captum(layer, method, captums_weights):
    data = [plain_graph(seed, 6 + seed) for seed in range(4)]
    net = build(lambda: GraphProbabilities(Pooled(layer, act=nn.ReLU())), dtype=torch.float64)
    peer = captum(net, method, "graph")
    for graph, x in zip(
        data,
        EXPLAINERS[method]().explain(gg.GraphClassificationModel(net, data), range(4)),
        strict=True,
    ):
        assert_equals(x, peer(graph.x, graph.edge_index))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_single_precision_equals_captum_too(layer, method):
    torch.set_default_dtype(torch.float32)
    data = plain_graph()
    data.x = data.x.float()
    net = build(lambda: Probabilities(Stack(layer, act=nn.ReLU())))
    peer = captum(net, method, "node")
    for target, x in enumerate(
        EXPLAINERS[method]().explain(gg.NodeClassificationModel(net, data), range(8))
    ):
        assert_equals(x, peer(data.x, data.edge_index, index=target), tolerance=1e-6)


@pytest.mark.numeric
@pytest.mark.parametrize("method", METHODS)
def test_regression_equals_captum(method, captums_weights):
    data = plain_graph()
    net = build(Stack, GCNConv, out=1, act=nn.ReLU(), dtype=torch.float64)
    peer = captum(net, method, "node", mode="regression", return_type="raw")
    for target, x in enumerate(
        EXPLAINERS[method]().explain(gg.NodeRegressionModel(net, data), range(8))
    ):
        assert_equals(x, peer(data.x, data.edge_index, index=target))


def incompleteness(layer, steps):
    """What features and relevant edges together miss of f(x, 1) - f(0, 0); stored self-loops are no
    part of the path.  (60,)
    """
    data = random_graph(60, 150, dtype=torch.float64)
    model = gg.NodeClassificationModel(build(Stack, layer, dtype=torch.float64), data)
    batch, label = model.computation_graphs(range(60)), model.pred_discrete(range(60))

    def nothing(union):
        return union.with_x(0 * union.x).with_mask((~union.is_relevant).double())

    start, end = (
        model.pred_copies(batch, edit=edit)[torch.arange(60), label] for edit in (nothing, None)
    )
    xs = gg.IntegratedGradients(steps=steps).explain(model, range(60))
    return (
        torch.stack([x.feature_score.sum() + x.edge_score.sum() for x in xs]) - (end - start)
    ).abs()


def test_integrated_gradients_are_complete():
    """The path moves features and messages together, so only the scores of both together are
    complete.
    """
    few, many = (
        torch.cat([incompleteness(layer, steps) for layer in LAYERS.values()])
        for steps in (50, 300)
    )
    assert (few <= 1e-3).double().mean() >= 0.95
    assert few.max() <= 1e-2
    assert many.max() <= 1e-3


@pytest.mark.parametrize("explainer", [*EXPLAINERS.values()], ids=EXPLAINERS)
def test_a_batch_is_what_its_targets_get_alone(explainer):
    model = gg.NodeClassificationModel(build(Stack, GATConv), random_graph(120, 300))
    together = explainer().explain(model, range(64), seed=3)
    for target, x in enumerate(together):
        (alone,) = explainer().explain(model, [target], seed=3)
        assert (
            x.feature_score.equal(alone.feature_score),
            x.edge_score.equal(alone.edge_score),
        ) == (True, True)
        assert (x.target, x.explainer, x.seed) == (target, explainer.name, alone.seed)


class Decoded(EncodeDecode):
    """Links by a linear decoder, whose products depend on the number of rows."""

    def __init__(self, out):
        super().__init__()
        self.lin = nn.Linear(2 * 8, out)

    def decode(self, z, edge_label_index):
        return self.lin(torch.cat([z[edge_label_index[0]], z[edge_label_index[1]]], 1))


@pytest.mark.parametrize("explainer", [*EXPLAINERS.values()], ids=EXPLAINERS)
@pytest.mark.parametrize("out", [1, 3])
def test_a_batch_of_links_is_what_its_links_get_alone(explainer, out):
    make = gg.LinkRegressionModel if out == 1 else gg.LinkClassificationModel
    torch.set_default_dtype(torch.float32)
    model = make(build(Decoded, out), random_graph())
    made = explainer(
        **{name: 5 for name in ("epochs", "steps") if name in explainer.__dataclass_fields__}
    )
    pairs = [(k, (k * 7 + 3) % 60) for k in range(37)]
    for x in made.explain(model, pairs):
        (alone,) = made.explain(model, [x.target])
        assert (
            x.feature_score.equal(alone.feature_score),
            x.edge_score.equal(alone.edge_score),
        ) == (True, True)
        assert x.prediction.equal(alone.prediction)


@pytest.mark.parametrize("explainer", [*EXPLAINERS.values()], ids=EXPLAINERS)
def test_the_memory_budget_changes_no_bit(explainer):
    net, data = build(Stack, GCNConv), random_graph(120, 300)
    free, tight = (
        gg.NodeClassificationModel(net, data, memory_budget=budget) for budget in (None, "300kB")
    )
    for one, other in zip(
        *(explainer().explain(model, range(30)) for model in (free, tight)), strict=True
    ):
        assert one.feature_score.equal(other.feature_score)
        assert one.edge_score.equal(other.edge_score)


@pytest.mark.parametrize("explainer", [*EXPLAINERS.values()], ids=EXPLAINERS)
def test_a_repeated_target_gets_two_explanations(explainer):
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    first, second, other = explainer().explain(model, [4, 4, 5], seed=np.int64(6))
    assert first.feature_score.equal(second.feature_score) == explainer.deterministic
    assert [(x.target, x.occurrence, x.seed) for x in (first, second, other)] == [
        (4, 0, 6),
        (4, 1, 6),
        (5, 0, 6),
    ]
    for x in (first, second, other):
        made = gg.find_explainer(x.explainer, **x.params).recompute(model, x)
        assert (made.feature_score.equal(x.feature_score), made.edge_score.equal(x.edge_score)) == (
            True,
            True,
        )


@pytest.mark.parametrize("explainer", [*EXPLAINERS.values()], ids=EXPLAINERS)
def test_params_rebuild_an_explainer_and_names_are_unique(explainer):
    made = explainer()
    assert type(made)(**made.params) == made
    assert EXPLAINERS[made.name] is explainer


def test_every_explainer_on_every_kind_of_model_gives_finite_scores_of_its_own_size():
    data, many = random_graph(), [random_graph(5 + seed, 9, seed=seed) for seed in range(4)]
    models = [
        (gg.NodeRegressionModel(build(Stack, GATConv, out=1), data), [0, 59]),
        (
            gg.LinkClassificationModel(build(EncodeDecode), data, output="logits"),
            [(0, 1), (59, 58)],
        ),
        (gg.LinkRegressionModel(build(LinkForward, out=1), data), [(0, 1), (59, 58)]),
        (gg.GraphClassificationModel(build(Pooled), many), [0, 3]),
    ]
    for explainer in EXPLAINERS.values():
        for model, targets in models:
            for x, graph in zip(
                explainer().explain(model, targets), model.computation_graphs(targets), strict=True
            ):
                assert x.feature_score.shape == (len(graph.nodes), 6)
                assert x.edge_score.shape == (len(graph.edges),)
                assert x.feature_score.isfinite().all()
                assert x.edge_score.isfinite().all()
                assert x.level == model.level
        assert explainer().explain(models[0][0], []) == []


@pytest.mark.numeric
def test_the_logit_can_be_explained_instead():
    """PyG's bridge to Captum refuses one column of logits."""
    data = plain_graph()
    net = build(Stack, GCNConv, dtype=torch.float64)
    model = gg.NodeClassificationModel(net, data)
    (x,) = gg.InputXGradient(explain_output="logit").explain(model, [3])
    features = data.x.clone().requires_grad_(True)
    (grad,) = torch.autograd.grad(net(features, data.edge_index)[3].max(), features)
    assert (x.feature_matrix() - data.x * grad).abs().max() <= 1e-12
    one = build(Stack, GCNConv, out=1, dtype=torch.float64)
    single = gg.NodeClassificationModel(one, data, output="logits")
    (x,) = gg.InputXGradient(explain_output="logit").explain(single, [3])
    (grad,) = torch.autograd.grad(one(features, data.edge_index)[3, 0], features)
    sign = 1 if single.pred_discrete([3]).item() == 1 else -1
    assert (x.feature_matrix() - sign * data.x * grad).abs().max() <= 1e-12


def test_without_masks_there_are_no_edge_scores():
    class ByHand(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(6, 4)

        def forward(self, x, edge_index):
            return self.lin(x).index_add(0, edge_index[1], self.lin(x)[edge_index[0]])

    model = gg.NodeClassificationModel(build(ByHand), random_graph(), num_hops=1)
    with pytest.warns(
        GraphgaugeWarning, match="there are no edge scores: refused: edges act outside"
    ):
        (x,) = gg.InputXGradient().explain(model, [3])
    assert x.edge_score is None
    with pytest.warns(GraphgaugeWarning, match="there are no edge scores"):
        (learned,) = gg.GraphMask(epochs=2).explain(model, [3])
    assert (learned.edge_score, bool((learned.feature_score > 0).any())) == (None, True)
    assert x.feature_score.abs().sum() > 0


def test_impossible_settings_are_refused():
    with pytest.raises(BadSetting, match="explain_output must be 'prob' or 'logit'"):
        gg.Saliency(explain_output="log")
    for steps in (0, -1, 2.5, True):
        with pytest.raises(BadSetting, match="steps must be a whole number"):
            gg.IntegratedGradients(steps=steps)
    with pytest.raises(BadSetting, match="seed must be"):
        gg.Saliency().explain(
            gg.NodeClassificationModel(build(Stack, GCNConv), random_graph()), [0], seed=-1
        )


def test_the_quadrature_integrates_polynomials():
    points, weights = _gauss_legendre(5)
    for power in range(10):
        assert float((weights * points**power).sum()) == pytest.approx(1 / (power + 1), abs=1e-14)


def test_impossible_numbers_of_learned_explainers_are_refused():
    for options in (
        {"lr": -1},
        {"lr": "a"},
        {"edge_size": float("nan")},
        {"node_feat_ent": None},
        {"edge_ent": True},
    ):
        with pytest.raises(
            BadSetting, match=f"{next(iter(options))} must be a finite number, 0 or more"
        ):
            gg.GNNExplainer(**options)
    with pytest.raises(BadSetting, match="allowance must be a finite number"):
        gg.GraphMask(allowance=float("nan"))


def test_a_network_that_is_not_wrapped_is_refused():
    with pytest.raises(
        BadModel,
        match=r"explain needs a wrapped network, but got Stack. "
        r"Wrap it .* gg.NodeClassificationModel",
    ):
        gg.Saliency().explain(build(Stack, GCNConv), [0])


def test_targets_can_come_from_a_generator():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    assert [x.target for x in gg.Saliency().explain(model, (target for target in [4, 2]))] == [4, 2]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            lambda found: Scores(found.feature[:-1], found.edge),
            r"feature scores of shape \(\d+, 6\), a row for each",
        ),
        (lambda found: Scores(found.feature[:, :1], found.edge), r"but gave \(\d+, 1\)"),
        (
            lambda found: Scores(found.feature, found.edge.repeat(2)),
            r"edge scores of shape \(\d+,\)",
        ),
        (
            lambda found: (found.feature, found.edge),
            r"must return Scores\(feature, edge\), but returned tuple",
        ),
    ],
)
def test_scores_that_are_not_packed_as_the_graphs_are_refused(broken, message):
    class Broken(gg.Saliency):
        def scores(self, model, graphs, seeds):
            return broken(super().scores(model, graphs, seeds))

    with pytest.raises(BadExplanation, match=message):
        Broken().explain(gg.NodeClassificationModel(build(Stack, GCNConv), random_graph()), [3])


def test_scores_that_are_no_numbers_are_told():
    net = build(Stack, GCNConv, final=lambda out: (1e3 * out).softmax(1).log())
    model = gg.NodeClassificationModel(net, random_graph(), output="log_probs")
    with pytest.warns(
        GraphgaugeWarning,
        match=r"saliency gives NaN or infinite scores for \d+ of 60 targets, the first is",
    ):
        gg.Saliency().explain(model, range(60))
