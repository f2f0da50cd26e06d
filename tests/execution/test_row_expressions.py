"""Steps on whole rows before a linear map: made after the map, they give the same."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support.small_networks import FEATURES, LAYERS, Stack, build, mlp, random_graph
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import (
    APPNP,
    ChebConv,
    GCNConv,
    GINConv,
    GraphConv,
    LEConv,
    SAGEConv,
    SGConv,
    TAGConv,
)

import graphgauge as gg
from graphgauge.core import make_generator
from graphgauge.execution.batch_features import (
    BatchFeatures,
    DenseFeatures,
    GatheredFeatures,
    ScatteredFeatures,
    TrackedFeatures,
)
from graphgauge.execution.lazy_features import LazyFeatureTensor, materialise_features

WIDTH, ROWS = 5, 7


def random_tensor(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=make_generator(seed))


class NeverWritten(BatchFeatures):
    """Features that fail a test if they are written out."""

    def __init__(self, hidden):
        self.hidden = hidden

    @property
    def like(self):
        return self.hidden.like

    @property
    def shape(self):
        return self.hidden.shape

    @property
    def written(self):
        raise AssertionError("the features were written out")

    def linear(self, weight, bias):
        return self.hidden.linear(weight, bias)


def leaves():
    """The same features in three forms."""
    table = random_tensor(4, WIDTH)
    index = torch.tensor([0, 3, 1, 1, 2, 0, 3])
    gathered = GatheredFeatures(table, torch.arange(4), index)
    row, column = gathered.written.nonzero(as_tuple=True)
    listed = ScatteredFeatures(gathered.written[row, column], row, column, (ROWS, WIDTH))
    return [DenseFeatures(gathered.written), gathered, listed]


#: steps of an ordinary tensor x (rows, F) whose rows may have any number
STEPS = {
    "selected": lambda x, seed: x.index_select(0, indices(len(x), seed)),
    "selected by brackets": lambda x, seed: x[indices(len(x), seed)],
    "doubled": lambda x, seed: 2.0 * x,
    "times a number of each row": lambda x, seed: x * random_tensor(len(x), 1, seed=seed),
    "times an expanded column": lambda x, seed: (
        x * random_tensor(len(x), 1, seed=seed).expand_as(x)
    ),
    "divided by a number of each row": lambda x, seed: (
        x / (2 + random_tensor(len(x), 1, seed=seed).abs())
    ),
    "plus twice itself": lambda x, seed: x + 2 * x,
    "minus half of itself": lambda x, seed: x - x / 2,
    "negated": lambda x, seed: -x,
    "added up": lambda x, seed: x.new_zeros(len(x), x.size(1)).scatter_add_(
        0, indices(len(x), seed)[: len(x)].view(-1, 1).expand_as(x), x
    ),
    "added to itself": lambda x, seed: x.index_add(0, indices(len(x), seed)[: len(x)], x),
    "halved in place": lambda x, seed: (x * 1.0).mul_(0.5),
}


def indices(rows, seed):
    return torch.randint(rows, (rows + 2,), generator=make_generator(seed))


@given(
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9)), max_size=6),
    st.integers(0, 2),
    st.booleans(),
)
def test_any_steps_before_a_linear_map_give_what_written_steps_give(steps, form, has_bias):
    weight, bias = random_tensor(3, WIDTH, seed=1), random_tensor(3, seed=2) if has_bias else None
    features = leaves()[form]
    wanted, lazy = features.written, LazyFeatureTensor(NeverWritten(features))
    for name, seed in steps:
        wanted, lazy = STEPS[name](wanted, seed), STEPS[name](lazy, seed)
        assert lazy.shape == wanted.shape
    found = F.linear(lazy, weight, bias)
    assert type(found) is torch.Tensor
    scale = 1 + wanted.abs().max()
    assert (found - F.linear(wanted, weight, bias)).abs().max() <= 1e-12 * scale
    assert ((lazy @ weight.t()) - wanted @ weight.t()).abs().max() <= 1e-12 * scale


@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9)), max_size=6))
def test_steps_that_are_written_out_after_all_have_the_same_bits(steps):
    features = leaves()[1]
    wanted, lazy = features.written, LazyFeatureTensor(features)
    for name, seed in steps:
        wanted, lazy = STEPS[name](wanted, seed), STEPS[name](lazy, seed)
    assert torch.equal(lazy.relu(), wanted.relu())


def by_hand(x, edge_index):
    """A layer without PyG's help: the mean of the neighbours."""
    total = x.new_zeros(x.shape).index_add_(0, edge_index[1], x[edge_index[0]])
    count = x.new_zeros(len(x)).index_add_(0, edge_index[1], x.new_ones(edge_index.size(1)))
    return total / count.clamp(min=1).unsqueeze(1)


class BesideItsNeighbours(nn.Module):
    """Each node's features beside the mean of its neighbours', in one linear map."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(2 * FEATURES, 3)

    def forward(self, x, edge_index):
        return self.project(torch.cat([x, by_hand(x, edge_index)], dim=-1))


class Late(nn.Module):
    """Features are spread, and projected at the end."""

    def __init__(self, spread):
        super().__init__()
        self.spread, self.project = spread, nn.Linear(FEATURES, 3)

    def forward(self, x, edge_index):
        return self.project(self.spread(x, edge_index))


AGGREGATING_FIRST = {
    "SAGE": lambda: SAGEConv(FEATURES, 3),
    "SAGE add": lambda: SAGEConv(FEATURES, 3, aggr="add"),
    "SAGE without root": lambda: SAGEConv(FEATURES, 3, root_weight=False),
    "GraphConv": lambda: GraphConv(FEATURES, 3),
    "GraphConv mean": lambda: GraphConv(FEATURES, 3, aggr="mean"),
    "GIN": lambda: GINConv(mlp(FEATURES, 3), train_eps=True),
    "Cheb": lambda: ChebConv(FEATURES, 3, K=3),
    "SGC": lambda: SGConv(FEATURES, 3, K=2),
    "TAG": lambda: TAGConv(FEATURES, 3, K=2),
    "LE": lambda: LEConv(FEATURES, 3),
    "APPNP": lambda: Late(APPNP(K=3, alpha=0.1)),
    "by hand": lambda: Late(by_hand),
    "joined": BesideItsNeighbours,
}


@pytest.mark.parametrize("name", AGGREGATING_FIRST)
@pytest.mark.parametrize("needs_gradient", [False, True])
def test_a_layer_that_aggregates_first_never_writes_features_out(name, needs_gradient):
    layer = build(AGGREGATING_FIRST[name], dtype=torch.float64)
    data = random_graph(12, 30, dtype=torch.float64)
    with torch.set_grad_enabled(needs_gradient):
        found = layer(LazyFeatureTensor(NeverWritten(DenseFeatures(data.x))), data.edge_index)
    wanted = layer(data.x, data.edge_index)
    assert type(found) is torch.Tensor
    assert (found - wanted).abs().max() <= 1e-12


@pytest.mark.parametrize("name", AGGREGATING_FIRST)
def test_gradients_are_those_of_the_layer(name):
    layer = build(AGGREGATING_FIRST[name], dtype=torch.float64)
    data = random_graph(12, 30, dtype=torch.float64)
    found, wanted = (
        torch.autograd.grad(layer(form(x), data.edge_index).pow(2).sum(), x)[0]
        for form in (lambda x: LazyFeatureTensor(TrackedFeatures(x)), lambda x: x)
        for x in [data.x.clone().requires_grad_(True)]
    )
    assert found.any()
    assert (found - wanted).abs().max() <= 1e-10


def test_factors_of_messages_are_differentiated():
    data, factor = random_graph(12, 30, dtype=torch.float64), random_tensor(30, 1)
    weight, (tail, head) = random_tensor(3, FEATURES), data.edge_index
    factor = random_tensor(data.num_edges, 1).requires_grad_(True)
    gradients = []
    for x in (data.x, LazyFeatureTensor(DenseFeatures(data.x))):
        sent = x.index_select(0, tail) * factor
        total = x.new_zeros(len(x), FEATURES).scatter_add_(
            0, head.view(-1, 1).expand_as(sent), sent
        )
        gradients += torch.autograd.grad(F.linear(total, weight).pow(2).sum(), factor)
    assert (gradients[0] - gradients[1]).abs().max() <= 1e-10


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x * x,
        lambda x: x + 1,
        lambda x: x * random_tensor(1, WIDTH),
        lambda x: x * random_tensor(len(x), WIDTH),
        lambda x: x / random_tensor(WIDTH),
        lambda x: x[:, :2],
        lambda x: x[torch.arange(len(x)) % 2 == 0],
        lambda x: x + random_tensor(len(x), WIDTH),
        lambda x: 1 / x,
        lambda x: 1 - x,
        lambda x: torch.cat([x, x]),
        lambda x: torch.cat([x, x], 1).relu(),
        lambda x: torch.cat([x, x[:, :1]], dim=1).sum(0),
        lambda x: x.index_select(1, torch.tensor([0, 3])),
        lambda x: x.new_ones(len(x)),
        lambda x: x.new_zeros(3, 2),
        lambda x: x * (2 + 1j),
    ],
)
def test_what_is_no_step_on_rows_is_carried_out_at_once(operation):
    features = leaves()[1]
    found = operation(LazyFeatureTensor(features))
    assert type(found) is torch.Tensor
    assert torch.equal(found, operation(features.written))


@pytest.mark.parametrize("needs_gradient", [False, True])
def test_a_network_may_write_into_what_it_has_computed(needs_gradient):
    features = leaves()[0]
    with torch.set_grad_enabled(needs_gradient):
        outcomes = []
        for x in (features.written.clone(), LazyFeatureTensor(features)):
            own = x * 2.0
            selected = own.index_select(0, torch.tensor([1, 2]))
            own[0] = 1.0
            own.relu_()
            F.relu(own, inplace=True)
            zeros = x.new_zeros(3, WIDTH)
            zeros[1] = own[4]
            outcomes.append((own, selected, zeros, own @ torch.eye(WIDTH, dtype=torch.float64)))
        for plain, lazy in zip(*outcomes, strict=True):
            assert torch.equal(materialise_features(lazy), plain)
        with pytest.raises(gg.GraphgaugeError, match="cannot be changed in place"), torch.no_grad():
            LazyFeatureTensor(features)[0] = 1.0


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "GCN cached"])
def test_copies_have_the_same_bits_in_every_batch_and_the_networks_outputs(name):
    layer, _, (layers, *_) = LAYERS[name]
    model = gg.NodeClassificationModel(
        build(Stack, layer, layers), random_graph(30, 80), output="logits"
    )
    targets = [3, 8, 8, 20]
    graphs = model.computation_graphs(targets)
    found = model.pred_copies(graphs)
    assert (found - model.pred_continuous(targets)).abs().max() <= 1e-5
    many = model.pred_copies(graphs, torch.arange(4).repeat(40))
    assert torch.equal(many, found.repeat(40, 1))
    for k in range(4):
        assert torch.equal(model.pred_copies(graphs, torch.tensor([k])), found[k : k + 1])


EXPLAINERS = [
    gg.Saliency(),
    gg.InputXGradient(),
    gg.IntegratedGradients(steps=5),
    gg.GNNExplainer(epochs=4),
    gg.GraphMask(epochs=2),
    gg.Occlusion(),
]


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda explainer: explainer.name)
@pytest.mark.parametrize("name", ["SAGE", "GIN", "GraphConv", "Cheb"])
def test_explanations_are_those_of_the_networks_own_order(name, explainer, monkeypatch):
    kinds = {"GIN": lambda a, b: GINConv(mlp(a, b)), "Cheb": lambda a, b: ChebConv(a, b, 2)}
    layer = kinds.get(name) or {"SAGE": SAGEConv, "GraphConv": GraphConv}[name]
    found = []
    for use in ("linear", "no"):
        model = gg.NodeClassificationModel(
            build(Stack, layer, dtype=torch.float64),
            random_graph(30, 80, dtype=torch.float64),
            output="logits",
        )
        assert model.feature_use == "linear"
        model._facts["feature use"] = use
        found.append(explainer.explain(model, [3, 8, 8], seed=1))
        assert model._facts["feature use"] == use
    for first, own in zip(*found, strict=True):
        assert first.feature_score.any()
        assert (first.feature_score - own.feature_score).abs().max() <= 1e-9
        assert (first.edge_score - own.edge_score).abs().max() <= 1e-9


class LargestMessage(nn.Module):
    """Aggregates by the maximum, which is not linear."""

    def __init__(self):
        super().__init__()
        self.one, self.two = SAGEConv(FEATURES, 8, aggr="max"), GCNConv(8, 4)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


def test_aggregations_that_are_not_linear_write_features_out():
    data = random_graph(30, 80, dtype=torch.float64)
    model = gg.NodeClassificationModel(
        build(LargestMessage, dtype=torch.float64), data, output="logits"
    )
    assert model.feature_use == "written"
    graphs = model.computation_graphs([3, 8])
    assert (model.pred_copies(graphs) - model.pred_continuous([3, 8])).abs().max() <= 1e-12


class OneFeature(nn.Module):
    """Two layers of GraphSAGE on one feature."""

    def __init__(self):
        super().__init__()
        self.one, self.two = SAGEConv(1, 4), SAGEConv(4, 2)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


def test_with_one_feature_rows_and_columns_are_told_apart():
    x = torch.linspace(0, 1, 6, dtype=torch.float64)[:, None]
    ring = torch.stack([torch.arange(6), (torch.arange(6) + 1) % 6])
    net = build(OneFeature, dtype=torch.float64)
    model = gg.NodeClassificationModel(net, Data(x=x, edge_index=ring), output="logits")
    assert model.feature_use == "linear"
    found = model.pred_copies(model.computation_graphs([0, 3]))
    assert (found - model.pred_continuous([0, 3])).abs().max() <= 1e-12
