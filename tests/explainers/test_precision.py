"""In single precision, on any device, every explainer gives what it gives in double precision on
the CPU.
"""

import warnings

import pytest
import torch
from support.small_networks import LinkForward, Pooled, Stack, build, mlp, random_graph
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

import graphgauge as gg
from graphgauge.core.errors import GraphgaugeWarning
from graphgauge.explainers import EXPLAINERS

pytestmark = pytest.mark.numeric

LAYERS = {"GCN": GCNConv, "GAT": GATConv, "SAGE": SAGEConv, "GIN": lambda a, b: GINConv(mlp(a, b))}
VARIANTS = {
    "lrp, captum": gg.LRP(variant="captum"),
    "guided, captum": gg.GuidedBackprop(variant="captum"),
}
ALL = (
    {name: make() for name, make in EXPLAINERS.items()}
    | VARIANTS
    | {"graphmask": gg.GraphMask(epochs=30)}
)
#: rounding grows with the steps of an optimisation, and where Captum's ε-rule divides by sums near
#: 0
TOLERANCES = {"gnn_explainer": 1e-3, "graphmask": 1e-3, "lrp, captum": 1e-4}


def explained(explainer, make_model, make_net, make_data, targets, dtype):
    model = make_model(build(make_net, dtype=torch.float64).to(dtype), make_data(dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphgaugeWarning)
        return explainer.explain(model, targets, seed=1)


def assert_close(explainer, make_model, make_net, make_data, targets):
    both = (
        explained(explainer, make_model, make_net, make_data, targets, dtype)
        for dtype in (torch.float32, torch.float64)
    )
    tolerance = TOLERANCES.get(
        next(name for name, other in ALL.items() if other is explainer), 1e-5
    )
    for x, exact in zip(*both, strict=True):
        for side in ("feature_score", "edge_score"):
            score, wanted = getattr(x, side), getattr(exact, side)
            size = max(float(wanted.abs().max()), 1.0) if wanted.numel() else 1.0
            assert torch.allclose(score.double(), wanted, rtol=0, atol=tolerance * size), (
                x.target,
                side,
            )


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("explainer", ALL.values(), ids=ALL)
def test_nodes(explainer, layer):
    assert_close(
        explainer,
        gg.NodeClassificationModel,
        lambda: Stack(layer),
        lambda dtype: random_graph(dtype=dtype),
        range(8),
    )


@pytest.mark.parametrize("explainer", ALL.values(), ids=ALL)
def test_links(explainer):
    pairs = [(0, 5), (7, 3), (21, 2)]
    assert_close(
        explainer,
        gg.LinkClassificationModel,
        LinkForward,
        lambda dtype: random_graph(dtype=dtype),
        pairs,
    )


@pytest.mark.parametrize("explainer", ALL.values(), ids=ALL)
def test_graphs(explainer):
    def graphs(dtype):
        return [random_graph(5 + seed, 12, seed=seed, dtype=dtype) for seed in range(4)]

    assert_close(explainer, gg.GraphClassificationModel, Pooled, graphs, range(4))


@pytest.mark.parametrize("explainer", ALL.values(), ids=ALL)
def test_values(explainer):
    data = lambda dtype: random_graph(dtype=dtype)  # noqa: E731
    assert_close(explainer, gg.NodeRegressionModel, lambda: Stack(GCNConv, out=1), data, range(8))
