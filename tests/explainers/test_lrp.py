"""LRP hands back all of an output, by the rules as they are defined."""

import pytest
import torch
import torch.nn.functional as F
from support.small_networks import (
    CLASSES,
    FEATURES,
    HIDDEN,
    EncodeDecode,
    LinkForward,
    Pooled,
    Stack,
    build,
    random_graph,
)
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GINEConv,
    GraphConv,
    SAGEConv,
    TransformerConv,
    global_add_pool,
)
from torch_geometric.nn.dense import Linear

import graphgauge as gg
from graphgauge.core.errors import BadModel, BadSetting


def perceptron(a, b, bias=True):
    return nn.Sequential(nn.Linear(a, b, bias=bias), nn.ReLU(), nn.Linear(b, b, bias=bias))


LAYERS = {
    "GCN": lambda a, b, bias=True: GCNConv(a, b, bias=bias),
    "GCN improved": lambda a, b, bias=True: GCNConv(a, b, bias=bias, improved=True),
    "GAT": lambda a, b, bias=True: GATConv(a, b, bias=bias),
    "GAT 4 heads": lambda a, b, bias=True: GATConv(a, b, heads=4, concat=False, bias=bias),
    "GAT residual": lambda a, b, bias=True: GATConv(a, b, residual=True, bias=bias),
    "GATv2": lambda a, b, bias=True: GATv2Conv(a, b, bias=bias),
    "GATv2 shared": lambda a, b, bias=True: GATv2Conv(a, b, share_weights=True, bias=bias),
    "SAGE": lambda a, b, bias=True: SAGEConv(a, b, bias=bias),
    "SAGE max": lambda a, b, bias=True: SAGEConv(a, b, aggr="max", bias=bias),
    "SAGE of length 1": lambda a, b, bias=True: SAGEConv(a, b, normalize=True, bias=bias),
    "GIN": lambda a, b, bias=True: GINConv(perceptron(a, b, bias), train_eps=True, eps=0.3),
    "GraphConv": lambda a, b, bias=True: GraphConv(a, b, bias=bias),
}
ACTIVATIONS = {
    "relu": F.relu,
    "leaky": nn.LeakyReLU(0.2),
    "prelu": nn.PReLU(),
    "elu": F.elu,
    "gelu": nn.GELU(),
    "tanh": torch.tanh,
    "in place": nn.ReLU(inplace=True),
    "dropout": nn.Sequential(nn.ReLU(), nn.Dropout(0.5)),
}


def node_model(*args, data=None, **kwargs):
    return gg.NodeClassificationModel(
        build(*args, **kwargs), random_graph(dtype=torch.float64) if data is None else data
    )


def logits(model, xs):
    """The explained outputs, from the network itself."""
    raw = model.net(model.source.x, model.source.edge_index).cpu()
    return torch.stack([raw[x.target].max() for x in xs])


def handed_back(xs):
    return torch.stack([x.feature_score.sum() for x in xs])


@pytest.mark.numeric
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_without_biases_features_add_up_to_the_logit(layer):
    """Captum's LRP does not conserve relevance on PyG's layers."""
    model = node_model(Stack, lambda a, b: layer(a, b, bias=False), 3, dtype=torch.float64)
    xs = gg.LRP().explain(model, range(60))
    assert (handed_back(xs) - logits(model, xs)).abs().max() <= 1e-10
    single = gg.NodeClassificationModel(model.net.float(), random_graph())
    xs = gg.LRP().explain(single, range(60))
    assert (handed_back(xs) - logits(single, xs)).abs().max() <= 1e-4


@pytest.mark.numeric
@pytest.mark.parametrize("act", ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_no_activation_keeps_relevance_for_itself(act):
    model = node_model(Stack, lambda a, b: GCNConv(a, b, bias=False), act=act, dtype=torch.float64)
    xs = gg.LRP().explain(model, range(60))
    assert (handed_back(xs) - logits(model, xs)).abs().max() <= 1e-10


def test_a_linear_network_adds_up_too():
    net = build(
        lambda: nn.Sequential(Linear(6, 5, bias=False), nn.ReLU(), nn.Linear(5, 4, bias=False)),
        dtype=torch.float64,
    )
    model = gg.NodeClassificationModel(
        net, random_graph(dtype=torch.float64), num_hops=0, forward=lambda net, g: net(g.x)
    )
    xs = gg.LRP().explain(model, range(60))
    assert (handed_back(xs) - net(model.source.x)[:60].max(1).values).abs().max() <= 1e-10


def test_links_and_graphs_add_up_too():
    data = random_graph(dtype=torch.float64)
    layer = lambda a, b: GCNConv(a, b, bias=False)  # noqa: E731
    pairs = [(0, 5), (7, 3), (21, 2)]
    inner = gg.LinkClassificationModel(
        build(EncodeDecode, layer, dtype=torch.float64), data, output="logits"
    )
    xs = gg.LRP().explain(inner, pairs)
    z = inner.net.encode(data.x, data.edge_index)
    assert (
        handed_back(xs) - torch.stack([(z[u] @ z[v]).abs() for u, v in pairs])
    ).abs().max() <= 1e-10
    many = [random_graph(5 + seed, 9, seed=seed, dtype=torch.float64) for seed in range(4)]
    net = build(Pooled, layer, dtype=torch.float64)
    nn.init.zeros_(net.lin.bias)
    xs = gg.LRP().explain(gg.GraphClassificationModel(net, many), range(4))
    wanted = torch.stack([net(graph.x, graph.edge_index).max() for graph in many])
    assert (handed_back(xs) - wanted).abs().max() <= 1e-10


def test_regression_adds_up_to_the_value():
    net = build(Stack, lambda a, b: SAGEConv(a, b, bias=False), out=1, dtype=torch.float64)
    model = gg.NodeRegressionModel(net, random_graph(dtype=torch.float64))
    assert (
        handed_back(gg.LRP().explain(model, range(60))) - model.pred_continuous(range(60))
    ).abs().max() <= 1e-10


# --- the definition -------------------------------------------------------------------------------


def literal_linear(x, weight, relevance, gamma):
    """Relevance of the inputs of z = W x from that of its outputs, for one row."""
    handed = torch.zeros_like(x)
    for k in range(len(weight)):
        summands = weight[k] * x
        z = summands.sum()
        favoured = summands + gamma * summands * ((summands > 0) if z > 0 else (summands < 0))
        if favoured.sum() != 0:
            handed += favoured / favoured.sum() * relevance[k]
    return handed


def literal_lrp(net, data, target, gamma):
    """LRP of a two-layer GCN, node by node: features (N, F), edges (E,), and the biases' share."""
    N, edges = data.num_nodes, data.edge_index.t().tolist()
    links = [(number, u, v) for number, (u, v) in enumerate(edges) if u != v] + [
        (None, v, v) for v in range(N)
    ]
    degree = torch.zeros(N, dtype=torch.float64)
    for _, _, v in links:
        degree[v] += 1
    first, second = net.convs
    edge_score, biases = torch.zeros(len(edges), dtype=torch.float64), 0.0

    def norm(u, v):
        return (degree[u] * degree[v]) ** -0.5

    def layer(conv, x):
        h = x @ conv.lin.weight.t()
        z = conv.bias.expand(N, -1).clone()
        for _, u, v in links:
            z[v] += norm(u, v) * h[u]
        return h, z

    def back(conv, x, h, z, relevance):
        nonlocal biases
        per_unit = torch.where(z == 0, 0, relevance / z)
        biases = biases + (per_unit * conv.bias).sum()
        at_h = torch.zeros_like(h)
        for number, u, v in links:
            carried = norm(u, v) * h[u] * per_unit[v]
            at_h[u] += carried
            if number is not None:
                edge_score[number] += carried.sum()
        return torch.stack(
            [literal_linear(x[u], conv.lin.weight, at_h[u], gamma) for u in range(N)]
        )

    h1, z1 = layer(first, data.x)
    a1 = z1.relu()
    h2, z2 = layer(second, a1)
    start = torch.zeros_like(z2)
    start[target, z2[target].argmax()] = z2[target].max()
    at_a1 = back(second, a1, h2, z2, start)
    return back(first, data.x, h1, z1, at_a1 * (z1 > 0)), edge_score, biases, z2[target].max()


@pytest.mark.numeric
@pytest.mark.parametrize("gamma", [0.0, 0.25, 3.0])
def test_lrp_is_its_definition_and_biases_keep_their_share(gamma):
    data = random_graph(25, 50, dtype=torch.float64)
    net = build(Stack, GCNConv, dtype=torch.float64)
    with torch.no_grad():
        for conv in net.convs:
            conv.bias.copy_(torch.linspace(-0.3, 0.4, len(conv.bias)))
        for x in gg.LRP(gamma=gamma).explain(gg.NodeClassificationModel(net, data), range(20)):
            features, edges, biases, logit = literal_lrp(net, data, x.target, gamma)
            assert (x.feature_matrix() - features).abs().max() <= 1e-10
            assert torch.allclose(x.edge_score, edges[x.edges], rtol=0, atol=1e-10)
            assert abs(x.feature_score.sum() + biases - logit) <= 1e-10
            assert abs(biases) > 1e-3


class WithAttributes(nn.Module):
    """Two GINE layers, whose edges have attributes of another width."""

    def __init__(self):
        super().__init__()
        widths = [(FEATURES, HIDDEN), (HIDDEN, CLASSES)]
        self.convs = nn.ModuleList(
            GINEConv(nn.Linear(a, b, bias=False), eps=0.3, edge_dim=2) for a, b in widths
        )

    def forward(self, x, edge_index, edge_attr):
        return self.convs[1](self.convs[0](x, edge_index, edge_attr).relu(), edge_index, edge_attr)


def literal_gine_lrp(net, data, target, gamma):
    """Two GINE layers by the book, message by message: features (N, F), edges (E,), and what edge
    attributes keep.
    """
    edges, steps, x = data.edge_index.t().tolist(), [], data.x
    for conv in net.convs:
        attribute = data.edge_attr @ conv.lin.weight.t() + conv.lin.bias
        message = torch.stack([(x[u] + attribute[k]).relu() for k, (u, _) in enumerate(edges)])
        z = (1 + conv.eps) * x
        for k, (_, v) in enumerate(edges):
            z[v] = z[v] + message[k]
        out = torch.stack([conv.nn.weight @ row for row in z])
        steps.append((conv, x, attribute, message, z))
        x = out.relu()
    relevance = torch.zeros_like(out)
    relevance[target, out[target].argmax()] = out[target].max()
    edge_score, kept = torch.zeros(len(edges), dtype=torch.float64), 0.0
    for conv, x, attribute, message, z in reversed(steps):
        at_z = torch.stack(
            [literal_linear(z[v], conv.nn.weight, relevance[v], gamma) for v in range(len(z))]
        )
        per_unit = torch.where(z == 0, 0, at_z / z)
        relevance = (1 + conv.eps) * x * per_unit
        for k, (u, v) in enumerate(edges):
            carried = message[k] * per_unit[v]
            own = torch.where(message[k] > 0, carried * x[u] / (x[u] + attribute[k]), 0)
            relevance[u] += own
            edge_score[k] += carried.sum()
            kept = kept + (carried - own).sum()
    return relevance, edge_score, kept, out[target].max()


@pytest.mark.numeric
@pytest.mark.parametrize("gamma", [0.0, 0.25])
def test_lrp_of_messages_with_edge_attributes_is_its_definition(gamma):
    data = random_graph(25, 50, dtype=torch.float64)
    data.edge_attr = torch.randn(
        data.num_edges, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    net = build(WithAttributes, dtype=torch.float64)
    with torch.no_grad():
        for x in gg.LRP(gamma=gamma).explain(gg.NodeClassificationModel(net, data), range(12)):
            features, edges, kept, logit = literal_gine_lrp(net, data, x.target, gamma)
            assert (x.feature_matrix() - features).abs().max() <= 1e-10
            assert torch.allclose(x.edge_score, edges[x.edges], rtol=0, atol=1e-10)
            assert abs(x.feature_score.sum() + kept - logit) <= 1e-10


@pytest.mark.parametrize("layer", ["GCN", "SAGE", "GIN", "GraphConv"])
def test_without_gamma_and_biases_it_is_input_times_gradient(layer):
    model = node_model(Stack, lambda a, b: LAYERS[layer](a, b, bias=False), dtype=torch.float64)
    both = (
        gg.LRP(gamma=0).explain(model, range(60)),
        gg.InputXGradient(explain_output="logit").explain(model, range(60)),
    )
    for x, plain in zip(*both, strict=True):
        assert torch.allclose(x.feature_score, plain.feature_score, rtol=0, atol=1e-12)
        assert torch.allclose(x.edge_score, plain.edge_score, rtol=0, atol=1e-12)
    (favoured,) = gg.LRP().explain(model, [3])
    assert (favoured.feature_score - both[1][3].feature_score).abs().max() > 1e-3


class Everything(nn.Module):
    """Biases everywhere, batch norm with a shift, a skip connection, a sum over the graph."""

    def __init__(self, layer):
        super().__init__()
        self.one, self.norm, self.two = (
            layer(FEATURES, HIDDEN),
            nn.BatchNorm1d(HIDDEN),
            layer(HIDDEN, HIDDEN),
        )
        self.skip, self.out = nn.Linear(FEATURES, HIDDEN), nn.Linear(2 * HIDDEN, CLASSES)
        nn.init.uniform_(self.norm.running_mean, -0.5, 0.5)
        nn.init.uniform_(self.norm.running_var, 0.5, 2.0)
        nn.init.uniform_(self.norm.bias, -0.5, 0.5)

    def forward(self, x, edge_index, batch=None):
        h = F.dropout(self.norm(self.one(x, edge_index)).relu(), training=self.training)
        h = 0.5 * (self.two(h, edge_index) + self.skip(x)) + 0.1
        return self.out(
            torch.cat([global_add_pool(h, batch) / 3, global_add_pool(F.gelu(h), batch)], dim=1)
        )


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_with_biases_the_books_balance(layer):
    """The share of biases is measured on its own, by one factor on all of them; each call checks
    that the books balance.
    """
    many = [random_graph(5 + seed, 9, seed=seed, dtype=torch.float64) for seed in range(6)]
    net = build(Everything, layer, dtype=torch.float64)
    model = gg.GraphClassificationModel(net, many)
    explainer, balance = BooksKept(), []
    explainer.kept.append(balance)
    for graph, x in zip(
        many, [explainer.explain(model, [number])[0] for number in range(6)], strict=True
    ):
        assert x.feature_score.isfinite().all()
        share = balance[x.target]
        assert abs(x.feature_score.sum() + share - net(graph.x, graph.edge_index).max()) <= 1e-10
        assert abs(share) > 1e-4


class BooksKept(gg.LRP):
    """LRP that writes down the share of the biases of each pass on one target."""

    kept: list = []

    def _differentiate(self, output, leaves, rules):
        shares = torch.autograd.grad(
            output.sum(), list(rules.ones.values()), retain_graph=True, materialize_grads=True
        )
        if len(output) == 1:
            self.kept[-1].append(float(sum(share.sum() for share in shares)))
        return super()._differentiate(output, leaves, rules)


def test_networks_that_end_in_probabilities_are_explained_in_front_of_them():
    data = random_graph(dtype=torch.float64)
    plain = node_model(Stack, GCNConv, dtype=torch.float64, data=data)
    for final in (
        nn.Softmax(-1),
        nn.LogSoftmax(-1),
        lambda out: out.softmax(1),
        lambda out: F.log_softmax(out, dim=-1),
    ):
        model = node_model(Stack, GCNConv, final=final, dtype=torch.float64, data=data)
        for x, wanted in zip(
            gg.LRP().explain(model, range(9)), gg.LRP().explain(plain, range(9)), strict=True
        ):
            assert torch.allclose(x.feature_score, wanted.feature_score, rtol=0, atol=1e-12)
    model = node_model(
        Stack, GCNConv, final=lambda out: out.softmax(1).softmax(1), dtype=torch.float64, data=data
    )
    with pytest.raises(BadModel, match="calls more than one"):
        gg.LRP().explain(model, [0])


class Gated(nn.Module):
    """Probabilities without a softmax at the end, and a sigmoid in the middle."""

    def __init__(self):
        super().__init__()
        self.one, self.gate, self.out = (
            GCNConv(FEATURES, HIDDEN),
            GCNConv(FEATURES, HIDDEN),
            nn.Linear(HIDDEN, CLASSES),
        )

    def forward(self, x, edge_index):
        h = (
            self.out(self.one(x, edge_index) * torch.sigmoid(self.gate(x, edge_index))).relu()
            + 1e-3
        )
        return h / h.sum(1, keepdim=True)


@pytest.mark.parametrize(
    "final", [lambda out: out.softmax(1).log(), lambda out: out.softmax(1).clamp(1e-3, 0.999)]
)
def test_networks_that_go_on_after_their_softmax_are_refused(final):
    for model in (
        node_model(Stack, GCNConv, final=final, data=random_graph()),
        node_model(Gated, data=random_graph()),
    ):
        for targets in ([1], range(60)):
            with pytest.raises(
                BadModel,
                match=r"LRP explains the logits in front of .* goes on from there|without a rule",
            ):
                gg.LRP().explain(model, targets)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Stack(TransformerConv), "TransformerConv"),
        (lambda: Stack(GCNConv, norm=nn.LayerNorm(HIDDEN)), "LayerNorm"),
        (lambda: Stack(GCNConv, final=nn.Softplus()), "Softplus"),
        (lambda: Stack(lambda a, b: SAGEConv(a, b, aggr="std")), "VarAggregation"),
    ],
)
def test_layers_without_a_rule_are_refused_by_name(make, named):
    net = build(make)
    with pytest.raises(BadModel, match=f"LRP has no rule for {named}"):
        gg.LRP().explain(gg.NodeClassificationModel(net, random_graph()), [0])


def test_an_operation_without_a_rule_is_found_out():
    model = node_model(Stack, GCNConv, act=torch.square, dtype=torch.float64)
    with pytest.raises(BadModel, match="Stack calls an operation without a rule"):
        gg.LRP().explain(model, range(20))


class Saturated(nn.Module):
    """A hidden unit or two are cut off at the top, which is no homogeneous operation."""

    def __init__(self):
        super().__init__()
        self.one, self.two = GCNConv(FEATURES, HIDDEN, bias=False), GCNConv(HIDDEN, 1, bias=False)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).clamp(max=self.top), edge_index)


def test_one_target_whose_books_do_not_balance_is_not_lost_among_many():
    data, net = random_graph(2000, 4000), build(Saturated)
    net.top = float(net.one(data.x, data.edge_index).detach().max()) * 0.85
    with pytest.raises(BadModel, match="Saturated calls an operation without a rule"):
        gg.LRP(gamma=0).explain(gg.NodeRegressionModel(net, data), range(2000))


class Turned(nn.Module):
    """A shift on rows that are features, not nodes: whose share it is cannot be told, only how
    large it is.
    """

    def __init__(self):
        super().__init__()
        self.one, self.two = GCNConv(FEATURES, HIDDEN), GCNConv(HIDDEN, CLASSES)
        self.shift = nn.Parameter(torch.ones(HIDDEN, 1))
        nn.init.ones_(self.one.bias)

    def forward(self, x, edge_index):
        return self.two((self.one(x, edge_index).t() + self.shift).t().relu(), edge_index)


def test_shares_of_unknown_owners_are_counted_once_alone_and_in_a_batch():
    model = node_model(Turned, data=random_graph())
    (alone,), batch = gg.LRP().explain(model, [3]), gg.LRP().explain(model, range(9))
    assert torch.equal(alone.feature_score, batch[3].feature_score)


def test_gaps_of_targets_that_cancel_are_found():
    """Node k + 60 is the mirror image of node k, and the output is odd: all gaps together are 0."""
    half = random_graph()
    data = Data(
        x=torch.cat([half.x, -half.x]),
        edge_index=torch.cat([half.edge_index, half.edge_index + 60], 1),
    )
    net = build(Stack, lambda a, b: GCNConv(a, b, bias=False), 1, out=1, final=lambda out: out**3)
    with pytest.raises(BadModel, match="Stack calls an operation without a rule"):
        gg.LRP().explain(gg.NodeRegressionModel(net, data), [5, 8, 13, 65, 68, 73])


WAYS_TO_ADD = {
    "add": lambda x, w: torch.add(x, other=w),
    "add, both named": lambda x, w: torch.add(input=x, other=w),
    "sub": lambda x, w: x.sub(other=w),
    "subtract": lambda x, w: torch.subtract(x, w),
    "rsub": lambda x, w: torch.rsub(x, w),
    "from one": lambda x, w: 1 - x,
    "mul": lambda x, w: torch.mul(x, other=w),
    "matmul": lambda x, w: torch.matmul(x, other=torch.diag(w)),
    "addmm": lambda x, w: torch.addmm(w, x, torch.diag(w)),
    "div": lambda x, w: torch.div(x, other=2.0),
    "true_divide": lambda x, w: torch.true_divide(x, 2.0),
    "in place": lambda x, w: x.mul_(2.0).add_(w),
}


@pytest.mark.parametrize("way", WAYS_TO_ADD.values(), ids=WAYS_TO_ADD)
def test_operations_have_their_rule_however_they_are_called(way):
    """Each call checks its own books; gamma = 0 without biases before it is plain input times
    gradient.
    """
    weight = torch.linspace(0.5, 1.5, HIDDEN, dtype=torch.float64)
    model = node_model(
        Stack,
        lambda a, b: GCNConv(a, b, bias=False),
        act=lambda x: way(x, weight),
        dtype=torch.float64,
    )
    both = (
        gg.LRP(gamma=0).explain(model, range(20)),
        gg.InputXGradient(explain_output="logit").explain(model, range(20)),
    )
    for x, plain in zip(*both, strict=True):
        assert torch.allclose(x.feature_score, plain.feature_score, rtol=0, atol=1e-12)


def test_impossible_settings_are_refused():
    with pytest.raises(BadSetting, match="gamma must be a finite number, 0 or more"):
        gg.LRP(gamma=-1)
    with pytest.raises(BadSetting, match="variant must be 'gamma' or 'captum'"):
        gg.LRP(variant="epsilon")
    with pytest.raises(BadSetting, match="LRP explains explain_output='logit'"):
        gg.LRP(explain_output="prob")
    assert (gg.LRP().explain_output, gg.LRP(variant="captum").explain_output) == ("logit", "prob")


def test_a_link_decoder_with_a_product_and_biases_balances():
    model = gg.LinkClassificationModel(
        build(LinkForward, dtype=torch.float64), random_graph(dtype=torch.float64)
    )
    for x in gg.LRP().explain(model, [(0, 1), (59, 58)]):
        assert x.feature_score.isfinite().all()
