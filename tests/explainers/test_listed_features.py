"""Where a network does nothing but linear maps with features that are mostly 0, those that are not
are listed: same results.
"""

import pytest
import torch
from support.small_networks import FEATURES, EncodeDecode, Pooled, Stack, build, mlp, random_graph
from torch import nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GINConv, SAGEConv, TransformerConv

import graphgauge as gg
from graphgauge.core.seeds import make_generator
from graphgauge.execution.batch_features import (
    DenseFeatures,
    GatheredFeatures,
    ScatteredFeatures,
)
from graphgauge.execution.lazy_features import LazyFeatureTensor
from graphgauge.explainers import mask_optimisation as learned

EXPLAINERS = [gg.GNNExplainer(epochs=4), gg.GraphMask(epochs=2)]


def sparse_graph(dtype=torch.float64, seed=0, nodes=40):
    data = random_graph(nodes, 100, seed=seed, dtype=dtype)
    data.x = data.x * (torch.rand(data.x.shape, generator=make_generator(seed + 1)) < 0.3)
    return data


class FromNumpy(nn.Module):
    """Leaves torch on its way."""

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(FEATURES, 3)

    def forward(self, x, edge_index):
        return self.conv(torch.from_numpy(x.numpy().copy()), edge_index)


class Normalised(nn.Module):
    """Does something else with the features first."""

    def __init__(self):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm1d(FEATURES), GCNConv(FEATURES, 3)

    def forward(self, x, edge_index):
        return self.conv(self.norm(x), edge_index)


class Dropped(nn.Module):
    """Dropout in evaluation mode is nothing."""

    def __init__(self):
        super().__init__()
        self.drop, self.conv = nn.Dropout(0.5), GATConv(FEATURES, 3)

    def forward(self, x, edge_index):
        return self.conv(self.drop(x), edge_index)


@pytest.mark.parametrize(
    ("make", "use"),
    [
        (lambda: Stack(GCNConv), "linear"),
        (lambda: Stack(GATConv), "linear"),
        (lambda: Stack(GATv2Conv), "linear"),
        (lambda: Stack(TransformerConv), "linear"),
        (Dropped, "linear"),
        (lambda: Stack(SAGEConv), "linear"),
        (lambda: Stack(lambda a, b: GINConv(mlp(a, b))), "linear"),
        (Normalised, "written"),
        (FromNumpy, "no"),
    ],
)
def test_what_a_network_does_with_features_first_is_found_out(make, use):
    model = gg.NodeClassificationModel(
        build(make, dtype=torch.float64), sparse_graph(), output="logits"
    )
    assert model.feature_use == use
    whole = model.pred_continuous([3, 8, 30])
    assert (model.pred_copies(model.computation_graphs([3, 8, 30])) - whole).abs().max() <= 1e-12


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda e: e.name)
@pytest.mark.parametrize("layer", [GCNConv, GATConv, TransformerConv])
def test_listed_features_give_what_tables_give(explainer, layer, monkeypatch):
    many = [sparse_graph(seed=seed, nodes=12) for seed in range(3)]
    for model, targets in (
        (
            gg.NodeClassificationModel(
                build(Stack, layer, dtype=torch.float64), sparse_graph(), output="logits"
            ),
            [3, 8, 8],
        ),
        (
            gg.NodeRegressionModel(build(Stack, layer, out=1, dtype=torch.float64), sparse_graph()),
            [3, 8],
        ),
        (
            gg.LinkClassificationModel(
                build(EncodeDecode, layer, dtype=torch.float64), sparse_graph(), output="logits"
            ),
            [(0, 5)],
        ),
        (gg.GraphClassificationModel(build(Pooled, layer, dtype=torch.float64), many), [0, 2]),
    ):
        found = []
        for most in (0.0, 1.0):
            monkeypatch.setattr(learned, "_MOST_FILLED", most)
            found.append(explainer.explain(model, targets, seed=1))
        for table, listed in zip(*found, strict=True):
            assert (table.feature_score - listed.feature_score).abs().max() <= 1e-9
            assert (table.edge_score - listed.edge_score).abs().max() <= 1e-9
            assert listed.feature_score.any()


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda e: e.name)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_listed_features_give_the_same_bits_in_every_batch(explainer, dtype, monkeypatch):
    monkeypatch.setattr(learned, "_MOST_FILLED", 1.0)
    model = gg.NodeClassificationModel(
        build(Stack, GCNConv, dtype=dtype), sparse_graph(dtype), output="logits"
    )
    together = explainer.explain(model, range(20), seed=1)
    for target in (0, 7, 19):
        (alone,) = explainer.explain(model, [target], seed=1)
        assert torch.equal(alone.feature_score, together[target].feature_score)
        assert torch.equal(alone.edge_score, together[target].edge_score)


def test_linear_maps_of_unwritten_features_are_those_of_written_ones():
    source, weight, bias = (
        torch.randn(*shape, dtype=torch.float64, generator=make_generator(0))
        for shape in ((5, 4), (3, 4), (3,))
    )
    gathered = GatheredFeatures(source, torch.tensor([4, -1, 2]), torch.tensor([0, 0, 2, 1]))
    assert torch.equal(
        gathered.written, torch.stack([source[4], source[4], source[2], torch.zeros(4)])
    )
    row, column = torch.tensor([0, 0, 2]), torch.tensor([1, 3, 0])
    scattered = ScatteredFeatures(
        torch.tensor([0.5, -2.0, 3.0], dtype=torch.float64), row, column, (4, 4)
    )
    assert scattered.written.tolist() == [[0, 0.5, 0, -2], [0] * 4, [3, 0, 0, 0], [0] * 4]
    for features in (gathered, scattered, DenseFeatures(source)):
        for b in (None, bias):
            wanted = torch.nn.functional.linear(features.written, weight, b)
            assert (
                torch.nn.functional.linear(LazyFeatureTensor(features), weight, b) - wanted
            ).abs().max() <= 1e-14


def test_an_unwritten_tensor_is_what_it_stands_for_in_any_operation():
    source = torch.randn(5, 4, generator=make_generator(0))
    x = LazyFeatureTensor(GatheredFeatures(source, torch.arange(5), torch.tensor([3, 1, 1])))
    wanted = source[[3, 1, 1]]
    assert x.shape == (3, 4)
    assert (x.dtype, len(x), x.dim()) == (torch.float32, 3, 2)
    assert repr(x) == "Unwritten(3, 4)"
    for operation in (
        lambda t: t + 1,
        lambda t: t.relu(),
        lambda t: torch.cat([t, t]),
        lambda t: t[[0, 2]],
        lambda t: t.sum(),
        torch.abs,
    ):
        assert type(operation(x)) is torch.Tensor
        assert torch.equal(operation(x), operation(wanted))
    with pytest.raises(gg.GraphgaugeError, match="cannot be changed in place"), torch.no_grad():
        x.add_(1)


def test_gradients_find_their_way_through_any_operation():
    entry = torch.tensor([0.5, -2.0], requires_grad=True)
    x = LazyFeatureTensor(
        ScatteredFeatures(entry, torch.tensor([0, 1]), torch.tensor([1, 0]), (2, 2))
    )
    (gradient,) = torch.autograd.grad((x * x).sum(), entry)
    assert gradient.tolist() == [1.0, -4.0]
