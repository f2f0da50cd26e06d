"""Guided Backprop and Deconvolution where Captum cannot serve as a peer: functions, methods, leaky
and in-place rectifiers.
"""

import pytest
import torch
import torch.nn.functional as F
from support.small_networks import Stack, build, random_graph
from torch import nn
from torch_geometric.nn import GATConv, GCNConv

import graphgauge as gg
from graphgauge.core.errors import BadSetting, GraphgaugeWarning

BOTH = {"guided": gg.GuidedBackprop, "deconvolution": gg.Deconvolution}

WAYS_TO_RECTIFY = {
    "module": nn.ReLU(),
    "module in place": nn.ReLU(inplace=True),
    "function": F.relu,
    "torch function": torch.relu,
    "method": lambda x: x.relu(),
    "method in place": lambda x: x.relu_(),
    "method in place, result unused": lambda x: (x.relu_(), x)[1],
    "function in place": lambda x: F.relu(x, inplace=True),
    "by keyword": lambda x: F.relu(input=x),
    "leaky without a leak": nn.LeakyReLU(0.0),
}


def model_with(act, **kwargs):
    return gg.NodeClassificationModel(
        build(Stack, GCNConv, act=act, dtype=torch.float64, **kwargs),
        random_graph(dtype=torch.float64),
    )


@pytest.mark.numeric
@pytest.mark.parametrize("explainer", BOTH.values(), ids=BOTH)
@pytest.mark.parametrize("act", WAYS_TO_RECTIFY.values(), ids=WAYS_TO_RECTIFY)
def test_it_does_not_matter_how_a_rectifier_is_called(act, explainer):
    """Captum sees modules only, not functional ReLU."""
    for x, wanted in zip(
        *(explainer().explain(model_with(a), [3, 8, 21]) for a in (act, nn.ReLU())), strict=True
    ):
        assert (x.feature_score - wanted.feature_score).abs().max() <= 1e-12
        assert torch.allclose(x.edge_score, wanted.edge_score, rtol=0, atol=1e-12)
        assert wanted.feature_score.abs().max() > 0


class Literal(nn.Module):
    """f(x) = v · act(W x) for each node, no edges: small enough to write its rules down."""

    def __init__(self, act):
        super().__init__()
        self.first, self.second, self.act = nn.Linear(6, 5), nn.Linear(5, 1), act

    def forward(self, x, edge_index):
        return self.second(self.act(self.first(x)))


LEAKY = {
    "leaky": (nn.LeakyReLU(0.2), 0.2),
    "leaky function": (lambda x: F.leaky_relu(x, 0.3), 0.3),
    "leaky in place": (lambda x: F.leaky_relu(x, negative_slope=0.3, inplace=True), 0.3),
    "prelu": (nn.PReLU(init=0.25), 0.25),
    "rrelu": (nn.RReLU(0.1, 0.3), 0.2),
    "relu": (F.relu, 0.0),
}


@pytest.mark.numeric
@pytest.mark.parametrize("explainer", BOTH.values(), ids=BOTH)
@pytest.mark.parametrize(("act", "slope"), LEAKY.values(), ids=LEAKY)
def test_the_rules_are_their_definition(act, slope, explainer):
    net, data = build(Literal, act, dtype=torch.float64), random_graph(dtype=torch.float64)
    model = gg.NodeRegressionModel(net, data, num_hops=0)
    for target, x in enumerate(explainer().explain(model, range(20))):
        before = net.first(data.x[target])
        at_output = net.second.weight[0]
        if explainer is gg.GuidedBackprop:
            at_input = torch.stack(
                [
                    max(g * (1.0 if z > 0 else slope), 0 * g)
                    for g, z in zip(at_output, before, strict=True)
                ]
            )
        else:
            at_input = torch.stack([max(g, 0 * g) for g in at_output])
        assert (x.feature_score[0] - at_input @ net.first.weight).abs().max() <= 1e-12


@pytest.mark.parametrize("explainer", BOTH.values(), ids=BOTH)
@pytest.mark.parametrize("act", [F.relu, nn.LeakyReLU()], ids=["functional", "leaky"])
def test_captums_variant_is_the_plain_gradient_and_says_so(act, explainer):
    """In the paper's regression networks GuidedBackprop and Deconvolution are therefore equal."""
    model = model_with(act)
    with pytest.warns(
        GraphgaugeWarning, match=r"Stack is the plain gradient: no nn.ReLU module runs in it"
    ):
        (x,) = explainer(variant="captum").explain(model, [3])
    (plain,) = gg.InputXGradient().explain(model, [3])
    assert (model.source.x[x.nodes] * x.feature_score - plain.feature_score).abs().max() <= 1e-12
    assert (x.edge_score - plain.edge_score).abs().max() <= 1e-12
    (own,) = explainer().explain(model, [3])
    assert (own.edge_score - plain.edge_score).abs().max() > 1e-6


def test_a_network_without_rectifiers_is_told_so():
    with pytest.warns(GraphgaugeWarning, match="no ReLU or leaky ReLU runs between its layers"):
        gg.GuidedBackprop().explain(model_with(torch.tanh), [3])


def test_attention_is_left_alone():
    """GAT's own leaky ReLU runs while messages are prepared: alone it makes no rectifier, and the
    scores are the gradient's.
    """
    net = build(Stack, GATConv, num_layers=1, dtype=torch.float64)
    model = gg.NodeClassificationModel(net, random_graph(dtype=torch.float64))
    with pytest.warns(GraphgaugeWarning, match="plain gradient"):
        (x,) = gg.GuidedBackprop().explain(model, [3])
    (plain,) = gg.InputXGradient().explain(model, [3])
    assert (x.edge_score - plain.edge_score).abs().max() <= 1e-12


def test_an_unknown_variant_is_refused():
    with pytest.raises(
        BadSetting, match="variant must be 'default' or 'captum', but 'pyg' was given"
    ):
        gg.GuidedBackprop(variant="pyg")


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = GCNConv(6, 8), GCNConv(8, 4)

    def forward(self, x, edge_index, edge_weight):
        return self.two(self.one(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


def test_edges_can_be_scored_through_the_normalisation():
    """A masked message is not a removed edge; with weights, scores follow the normalisation."""
    data = random_graph(dtype=torch.float64)
    data.edge_weight = (
        torch.rand(data.num_edges, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        + 0.5
    )
    net = build(Weighted, dtype=torch.float64)
    model = gg.NodeClassificationModel(net, data)
    for x in gg.InputXGradient(edge_factor="weight").explain(model, range(10)):
        weight = data.edge_weight.clone().requires_grad_(True)
        prob = net(data.x, data.edge_index, weight)[x.target].softmax(0)
        (gradient,) = torch.autograd.grad(prob.max(), weight)
        assert torch.allclose(x.edge_score, (weight * gradient)[x.edges], rtol=0, atol=1e-12)
    (by_message,) = gg.InputXGradient().explain(model, [3])
    assert by_message.params["edge_factor"] == "message"


def test_a_network_without_weights_cannot_be_scored_through_them():
    with pytest.raises(BadSetting, match="Stack is called without"):
        gg.InputXGradient(edge_factor="weight").explain(model_with(F.relu), [3])
    with pytest.raises(BadSetting, match="edge_factor must be 'message' or 'weight'"):
        gg.InputXGradient(edge_factor="drop")
