"""Edge curves of networks that cannot answer every graph that lost edges: those points are NaN, and
all others as ever.
"""

import pytest
import torch
from support.small_networks import FEATURES, Pooled, build
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GraphConv, SAGEConv, global_add_pool

import graphgauge as gg
from graphgauge.core.errors import BadModel, GraphgaugeWarning, OutOfMemory
from graphgauge.perturbation import (
    CurveLines,
    EdgeEdits,
    FeatureEdits,
    predict_curves,
    random_orders,
)


class Scaled(nn.Module):
    """Divides its edge weights by the largest, which a graph without edges does not have."""

    def __init__(self, out=3):
        super().__init__()
        self.conv, self.lin = GraphConv(FEATURES, 8), nn.Linear(8, out)

    def forward(self, x, edge_index, edge_weight, batch):
        return self.lin(
            global_add_pool(self.conv(x, edge_index, edge_weight / edge_weight.max()).relu(), batch)
        )


class Sequential(nn.Module):
    """Reads the neighbours of a node as a sequence, which must not be empty everywhere."""

    def __init__(self, out=3):
        super().__init__()
        self.conv, self.lin = SAGEConv(FEATURES, 8, aggr="lstm"), nn.Linear(8, out)

    def forward(self, x, edge_index, edge_weight, batch):
        return self.lin(global_add_pool(self.conv(x, edge_index).relu(), batch))


def weighted_graph(seed, num_edges=7):
    random = torch.Generator().manual_seed(seed)
    tail = torch.randint(6, (num_edges,), generator=random)
    edge_index = torch.stack(
        [tail, (tail + torch.randint(1, 6, (num_edges,), generator=random)) % 6]
    )
    x, weight = (
        torch.randn(6, FEATURES, generator=random),
        torch.rand(num_edges, generator=random) + 0.1,
    )
    return Data(x=x, edge_index=edge_index, edge_weight=weight).sort(sort_by_row=False)


def made(net, kind=gg.GraphClassificationModel, **options):
    torch.manual_seed(0)
    return kind(
        net(**options).eval(),
        [weighted_graph(seed, num_edges=1 if seed == 3 else 7) for seed in range(6)],
    )


def drop_curves(model, targets, removal="drop"):
    """Points of two random orders of every target, to the last edge."""
    edits = EdgeEdits.from_graphs(model, model.computation_graphs(targets), removal)
    order = random_orders(edits.candidates, list(range(len(targets))), 20, 0, 2).flatten(0, 1)
    lines = CurveLines(torch.arange(len(targets)).repeat_interleave(2), order)
    return lines, predict_curves(
        model, edits, lines, torch.zeros_like(lines.case), (order >= 0).sum(1)
    )


@pytest.mark.parametrize("net", [Scaled, Sequential])
def test_a_graph_without_edges_gives_nan_and_each_other_point_is_one_forward_pass(net):
    model, targets = made(net), [0, 3, 5]
    lines, found = drop_curves(model, targets)
    for line, step, prediction in zip(found.line, found.step, found.prediction, strict=True):
        data, removed = model.data[targets[int(lines.case[line])]], lines.order[line, :step]
        kept = torch.ones(data.num_edges, dtype=torch.bool).index_fill(0, removed, False)
        if not kept.any():
            assert prediction.isnan().all()
            continue
        with torch.no_grad():
            raw = model.net(
                data.x,
                data.edge_index[:, kept],
                data.edge_weight[kept],
                torch.zeros(6, dtype=torch.int64),
            )
        assert (prediction - raw[0].softmax(0)).abs().max() <= 1e-6
    assert int(found.prediction.isnan().any(1).sum()) == len(lines)  # the last point of every line


def test_where_no_point_can_be_answered_the_rows_have_the_width_and_type_of_predictions():
    for model, shape in (
        (made(Scaled), (2, 3)),
        (made(Scaled, gg.GraphRegressionModel, out=1), (2,)),
    ):
        found = drop_curves(model, [3])[1].prediction
        assert found.shape == shape
        assert found.dtype == torch.float32
        assert found.isnan().all()


def joined_model():
    """Its copies share calls."""
    return gg.GraphClassificationModel(
        build(Pooled, GCNConv), [weighted_graph(seed, 5 + seed) for seed in range(4)]
    )


def fail_on(monkeypatch, model, is_refused, error):
    """From now on the network fails on some unions; the sizes of all that it is given."""
    outputs, sizes = model.executor.outputs, []

    def picky(union):
        sizes.append(len(union))
        if is_refused(union):
            raise error
        return outputs(union)

    monkeypatch.setattr(model.executor, "outputs", picky)
    return sizes


def has_edgeless_copy(union):
    return bool((torch.bincount(union.edge_copy, minlength=len(union)) == 0).any())


def test_the_union_of_a_copy_that_fails_is_halved_and_nothing_else_changes(monkeypatch):
    model = joined_model()
    expected = drop_curves(model, [0, 1, 2, 3])[1].prediction
    sizes = fail_on(monkeypatch, model, has_edgeless_copy, IndexError("index -1 is out of bounds"))
    lines, found = drop_curves(model, [0, 1, 2, 3])
    is_last = found.step == (lines.order >= 0).sum(1)[found.line]
    assert found.prediction[is_last].isnan().all()
    assert found.prediction[~is_last].equal(expected[~is_last])
    assert sizes[-1] < max(sizes) == len(expected)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (BadModel("two rows for one graph"), BadModel),
        (RuntimeError("CUDA out of memory"), OutOfMemory),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
    ids=["ours", "memory", "interrupt"],
)
def test_errors_that_are_not_the_networks_own_are_raised(error, raised, monkeypatch):
    model = joined_model()
    drop_curves(model, [0])
    fail_on(monkeypatch, model, has_edgeless_copy, error)
    with pytest.raises(raised):
        drop_curves(model, [0, 1])


def test_a_network_that_fails_on_the_graph_as_it_is_has_its_error_raised(monkeypatch):
    model = joined_model()
    drop_curves(model, [0])
    fail_on(monkeypatch, model, lambda union: True, IndexError("index -1 is out of bounds"))
    with pytest.raises(IndexError, match="out of bounds"):
        drop_curves(model, [0, 1])


def test_only_dropped_edges_excuse_a_failure(monkeypatch):
    model = joined_model()
    drop_curves(model, [0], "mask")
    graphs = model.computation_graphs([0])
    donors = torch.arange(len(graphs.node)).flip(0)
    features = FeatureEdits(
        graphs, torch.zeros(1, dtype=torch.int64), donors, torch.tensor([0, len(donors)])
    )
    lines = CurveLines(torch.zeros(1, dtype=torch.int64), torch.arange(2)[None])
    upto = torch.zeros(1, dtype=torch.int64), torch.full((1,), 2)
    predict_curves(model, features, lines, *upto)
    fail_on(monkeypatch, model, lambda union: union.edge_mask is not None, IndexError("masked"))
    with pytest.raises(IndexError, match="masked"):
        drop_curves(model, [0], "mask")
    fail_on(monkeypatch, model, lambda union: True, IndexError("substituted"))
    with pytest.raises(IndexError, match="substituted"):
        predict_curves(model, features, lines, *upto)


def test_an_evaluation_loses_only_what_reads_a_graph_without_edges():
    evaluator = gg.Evaluator(made(Scaled), edge_removal="drop", timed=0, stability="none")
    with pytest.warns(GraphgaugeWarning, match="there are no edge scores"):
        found = evaluator.compare([gg.RandomExplainer(), gg.Saliency()], [0, 3, 5])
    rows = found.to_pandas()
    lost = rows[rows.status == "nan_prediction"]
    assert set(lost.explainer) == {"random"}
    assert 3 in set(lost.target)  # its only edge goes at the first step
    assert lost.metric.str.startswith("edge_").all()
    assert lost.value.isna().all()
    features = rows[rows.metric.isin(["feature_ec", "feature_pertinence"])]
    assert len(features) == 12
    assert (features.status == "ok").all()
