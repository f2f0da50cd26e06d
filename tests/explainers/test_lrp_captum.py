"""One batched pass under `captum_rules` equals Captum's LRP through PyG's bridge, one target at a
time on the whole graph.
"""

import pytest
import torch
from captum.attr import LRP
from captum.attr._utils.lrp_rules import EpsilonRule
from support.small_networks import (
    CLASSES,
    FEATURES,
    HIDDEN,
    EncodeDecode,
    LinkForward,
    Pooled,
    Stack,
    build,
    mlp,
    random_graph,
)
from torch import nn
from torch_geometric.nn import (
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    SAGEConv,
    SGConv,
    TransformerConv,
    aggr,
    global_mean_pool,
    to_captum_input,
    to_captum_model,
)
from torch_geometric.nn.models import GCN

import graphgauge as gg
from graphgauge.core.errors import BadModel
from graphgauge.explainers.lrp_captum import (
    PASS_THROUGH_MODULES,
    _stabilise_denominator,
    captum_rules,
)

pytestmark = [
    pytest.mark.numeric,
    pytest.mark.filterwarnings(
        "ignore:Input Tensor . did not already require gradients"
    ),  # Captum, the peer
]

TOLERANCE = 1e-10
LAYERS = {
    "GCN": GCNConv,
    "GAT": GATConv,
    "GAT 2 heads": lambda a, b: GATConv(a, b, heads=2, concat=False),
    "GAT residual": lambda a, b: GATConv(a, b, residual=True),
    "GATv2": GATv2Conv,
    "SAGE": SAGEConv,
    "SAGE max": lambda a, b: SAGEConv(a, b, aggr="max"),
    "GIN": lambda a, b: GINConv(mlp(a, b)),
    "GraphConv": GraphConv,
    "Transformer": TransformerConv,
}


@pytest.fixture(autouse=True)
def double_by_default():
    """PyG's bridge to Captum makes its edge mask in the default precision, whatever the data's."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


class Net(nn.Module):
    """Two layers, an activation that is a module in between; logits, probabilities with ``final``,
    or a value with ``out=1``.
    """

    def __init__(self, layer, act=nn.ReLU, out=CLASSES, final=None):
        super().__init__()
        self.first, self.act, self.second, self.final = (
            layer(FEATURES, HIDDEN),
            act(),
            layer(HIDDEN, out),
            final,
        )

    def forward(self, x, edge_index):
        out = self.second(self.act(self.first(x, edge_index)), edge_index)
        return out if self.final is None else self.final(out)


class LinkNet(nn.Module):
    def __init__(self, layer=GCNConv, act=nn.ReLU, out=3):
        super().__init__()
        self.encoder, self.lin, self.act = (
            Net(layer, act, HIDDEN),
            nn.Linear(2 * HIDDEN, HIDDEN),
            act(),
        )
        self.last = nn.Linear(HIDDEN, out)

    def forward(self, x, edge_index, edge_label_index):
        z = self.encoder(x, edge_index)
        return self.last(self.act(self.lin(z[edge_label_index].transpose(0, 1).flatten(1))))


class GraphNet(nn.Module):
    def __init__(self, layer=GCNConv, readout=global_mean_pool):
        super().__init__()
        self.encoder, self.lin, self.readout = Net(layer, out=HIDDEN), nn.Linear(HIDDEN, 3), readout

    def forward(self, x, edge_index, batch=None):
        return self.lin(self.readout(self.encoder(x, edge_index), batch))


def softmax(out):
    return out.softmax(-1)


def plain_graph(seed=0, num_nodes=40):
    data = random_graph(num_nodes, 2 * num_nodes, seed=seed, dtype=torch.float64)
    data.edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    return data


def captum_lrp(net, data, target, index=None, extra=()):
    """What a user gets: the rule on all that Captum refuses (it forgets them after each call), its
    own defaults elsewhere.
    """
    for module in net.modules():
        if next(module.children(), None) is None and type(module) not in (
            *PASS_THROUGH_MODULES,
            nn.Linear,
        ):
            module.rule = EpsilonRule()
    inputs, others = to_captum_input(data.x, data.edge_index, "node_and_edge", *extra)
    lrp = LRP(to_captum_model(net, "node_and_edge", index))
    feature, edge = lrp.attribute(inputs, target=target, additional_forward_args=others)
    return feature[0].detach(), edge[0].detach()


def explain(model, targets, explain_output="logit"):
    return gg.LRP(variant="captum", explain_output=explain_output).explain(model, targets)


def assert_equals(x, reference):
    for score, wanted in zip((x.feature_matrix(), x.edge_vector()), reference, strict=True):
        # sums near 0 make large scores
        assert (score - wanted).abs().max() <= TOLERANCE * max(1.0, float(wanted.abs().max()))


def assert_nodes_equal(net, data, targets=range(12)):
    """Classes for networks of several columns, else values. What the network returns is what Captum
    explains.
    """
    with torch.no_grad():
        out = net(data.x, data.edge_index)
    if out.dim() == 2 and out.size(1) > 1:
        model, label = gg.NodeClassificationModel(net, data), out.argmax(1).tolist()
    else:
        model, label = gg.NodeRegressionModel(net, data), [None] * len(out)
    before = [value.clone() for value in net.state_dict().values()]
    xs = explain(model, targets)
    for target, x in zip(targets, xs, strict=True):
        assert_equals(x, captum_lrp(net, data, label[target], index=target))
    assert sum(x.edge_score.abs().sum() for x in xs) > 0
    assert all(map(torch.equal, before, net.state_dict().values()))


@pytest.mark.parametrize("final", [None, softmax], ids=["logit", "prob"])
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_node_classes_equal_captum(layer, final):
    assert_nodes_equal(build(Net, layer, final=final, dtype=torch.float64), plain_graph())


def test_the_probability_of_a_net_that_returns_logits_is_explained_through_our_softmax():
    data, net = plain_graph(), build(Net, GCNConv, dtype=torch.float64)
    ending = Net(GCNConv, final=softmax).eval()
    ending.load_state_dict(net.state_dict())
    label = net(data.x, data.edge_index).argmax(1).tolist()
    for target, x in enumerate(explain(gg.NodeClassificationModel(net, data), range(10), "prob")):
        assert_equals(x, captum_lrp(ending, data, label[target], index=target))


@pytest.mark.parametrize(
    "act",
    [nn.LeakyReLU, nn.ReLU, nn.Tanh, nn.ELU, nn.Identity, nn.Sigmoid],
    ids=lambda act: act.__name__,
)
@pytest.mark.parametrize("layer", [GCNConv, GATConv, SAGEConv])
def test_values_equal_captum_with_the_rule_on_other_activations(layer, act):
    assert_nodes_equal(build(Net, layer, act=act, out=1, dtype=torch.float64), plain_graph())


@pytest.mark.parametrize("layer", [GCNConv, GATConv, SAGEConv, LAYERS["GIN"]])
def test_functional_activations_equal_captum(layer):
    assert_nodes_equal(build(Stack, layer, 3, dtype=torch.float64), plain_graph())


@pytest.mark.parametrize(
    "act",
    [
        lambda: nn.ReLU(inplace=True),
        lambda: nn.Sequential(nn.ReLU(), nn.Dropout(0.5)),
        lambda: nn.Sequential(nn.BatchNorm1d(HIDDEN), nn.ReLU(inplace=True), nn.Dropout(0.5)),
        lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(HIDDEN, HIDDEN), nn.Tanh()),
        nn.PReLU,
    ],
    ids=["in place", "dropout", "norm", "linear", "prelu"],
)
@pytest.mark.parametrize("layer", [GCNConv, GATConv, SAGEConv, LAYERS["GIN"]])
def test_what_stands_between_layers_equals_captum(layer, act):
    assert_nodes_equal(build(Net, layer, act=act, dtype=torch.float64), plain_graph())


class Skip(Net):
    """The activation's input and output both go on; one ReLU for all calls; x enters a dropout and
    a linear layer.
    """

    def __init__(self, layer):
        super().__init__(layer)
        self.middle, self.drop, self.lin = (
            layer(HIDDEN, HIDDEN),
            nn.Dropout(0.5),
            nn.Linear(FEATURES, HIDDEN),
        )

    def forward(self, x, edge_index):
        z = self.first(self.drop(x), edge_index) + self.lin(x)
        z = z + self.middle(self.act(z), edge_index)
        return self.second(self.act(z) + z, edge_index)


@pytest.mark.parametrize("layer", [GCNConv, GATConv, SAGEConv, LAYERS["GIN"]])
def test_skip_connections_equal_captum(layer):
    assert_nodes_equal(build(Skip, layer, dtype=torch.float64), plain_graph())


class Parallel(Net):
    """Two calls of one ReLU side by side: Captum can give one the gradient of the other."""

    def __init__(self, layer):
        super().__init__(layer)
        self.other = layer(FEATURES, HIDDEN)

    def forward(self, x, edge_index):
        left, right = self.first(x, edge_index), self.other(x, edge_index)
        return self.second(self.act(left) * self.act(right), edge_index)


@pytest.mark.parametrize("layer", [GCNConv, GATConv, SAGEConv])
def test_a_relu_called_twice_side_by_side_equals_captum(layer):
    assert_nodes_equal(build(Parallel, layer, dtype=torch.float64), plain_graph())


def test_a_ready_made_network_of_pyg_equals_captum():
    assert_nodes_equal(
        build(GCN, FEATURES, HIDDEN, 3, CLASSES, dropout=0.5, dtype=torch.float64), plain_graph()
    )


PAIRS = [(0, 5), (7, 3), (21, 2), (9, 30), (11, 12), (1, 0), (2, 21), (8, 17), (33, 6), (4, 18)]


@pytest.mark.parametrize("make", [LinkNet, LinkForward])
@pytest.mark.parametrize("layer", [GCNConv, GATConv, SAGEConv])
def test_link_classes_equal_captum(layer, make):
    data, net = plain_graph(), build(make, layer, dtype=torch.float64)
    xs = explain(gg.LinkClassificationModel(net, data), PAIRS)
    for pair, x in zip(PAIRS, xs, strict=True):
        link = torch.tensor([pair]).t()
        assert_equals(
            x,
            captum_lrp(net, data, int(net(data.x, data.edge_index, link).argmax()), extra=(link,)),
        )


@pytest.mark.parametrize("layer", [GCNConv, GATConv])
def test_link_values_equal_captum(layer):
    data, net = plain_graph(), build(LinkNet, layer, act=nn.LeakyReLU, out=1, dtype=torch.float64)
    for pair, x in zip(PAIRS, explain(gg.LinkRegressionModel(net, data), PAIRS), strict=True):
        assert_equals(x, captum_lrp(net, data, None, extra=(torch.tensor([pair]).t(),)))


def test_encode_and_decode_equal_captum():
    class Forward(EncodeDecode):
        def forward(self, x, edge_index, edge_label_index):
            return self.decode(self.encode(x, edge_index), edge_label_index)

    data, net = plain_graph(), build(EncodeDecode, dtype=torch.float64)
    whole = build(Forward, dtype=torch.float64)
    for pair, x in zip(PAIRS, explain(gg.LinkRegressionModel(net, data), PAIRS), strict=True):
        assert_equals(x, captum_lrp(whole, data, None, extra=(torch.tensor([pair]).t(),)))


@pytest.mark.parametrize(
    "make", [Pooled, GraphNet, lambda layer: GraphNet(layer, aggr.SumAggregation())]
)
@pytest.mark.parametrize("layer", [GCNConv, GATConv, LAYERS["GIN"]])
def test_graph_classes_equal_captum(layer, make):
    data, net = (
        [plain_graph(seed, 6 + seed) for seed in range(10)],
        build(make, layer, dtype=torch.float64),
    )
    xs = explain(gg.GraphClassificationModel(net, data), range(10))
    for graph, x in zip(data, xs, strict=True):
        assert_equals(x, captum_lrp(net, graph, int(net(graph.x, graph.edge_index).argmax())))


def test_the_rules_end_with_the_context_even_after_an_error_and_change_no_output():
    net, data = build(Net, GATConv, dtype=torch.float64), plain_graph()

    def gradient():
        x = data.x.clone().requires_grad_(True)
        return torch.autograd.grad(net(x, data.edge_index)[3, 0], x)[0]

    plain, out = gradient(), net(data.x, data.edge_index)
    with captum_rules(net):
        assert not gradient().allclose(plain)
        assert net(data.x, data.edge_index).equal(out)
        with torch.no_grad():
            assert net(data.x, data.edge_index).equal(out)
    with pytest.raises(ZeroDivisionError), captum_rules(net):
        raise ZeroDivisionError
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())
    assert gradient().equal(plain)


def test_parameters_keep_their_gradients():
    lin, weight = nn.Linear(FEATURES, CLASSES), nn.Parameter(torch.ones(2, FEATURES))
    with captum_rules(lin):
        lin(weight)
    assert weight._backward_hooks is None


def test_a_layer_called_twice_has_scores_where_captum_has_an_error():
    data, net = (
        plain_graph(),
        build(lambda: Net(lambda a, b: SGConv(a, b, K=2)), dtype=torch.float64),
    )
    (x,) = explain(gg.NodeClassificationModel(net, data), [3])
    assert x.feature_score.isfinite().all()
    with pytest.raises(RuntimeError, match="used more than once"):
        captum_lrp(net, data, 0, index=3)


def test_a_layer_that_returns_no_tensor_is_refused():
    net = nn.Sequential(nn.LSTM(FEATURES, HIDDEN))
    with (
        captum_rules(net),
        pytest.raises(BadModel, match="no rule for LSTM, which returns a tuple"),
    ):
        net(torch.ones(2, FEATURES, requires_grad=True))


def test_zero_is_moved_up():
    z = torch.tensor([-1.0, -0.0, 0.0, 1e-12, -1e-12])
    assert _stabilise_denominator(z).tolist() == pytest.approx(
        [-1 - 1e-9, 1e-9, 1e-9, 1.001e-9, -1.001e-9], rel=1e-12
    )
