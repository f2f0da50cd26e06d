"""Explainers on one model: in any order, twice, inside a memory budget, with one bar; and every
trap of the peers is guarded.
"""

import io
import re
import sys

import pytest
import torch
from support.live_memory import Live
from support.small_networks import Stack, build, random_graph
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv

import graphgauge as gg
from graphgauge.core import progress
from graphgauge.explainers import EXPLAINERS

SHORT = {
    "gnn_explainer": {"epochs": 5},
    "graphmask": {"epochs": 5},
    "integrated_gradients": {"steps": 5},
}
ALL = {
    **{name: make(**SHORT.get(name, {})) for name, make in EXPLAINERS.items()},
    "guided, captum": gg.GuidedBackprop(variant="captum"),
    "lrp, captum": gg.LRP(variant="captum"),
    "graphmask, pyg": gg.GraphMask(variant="pyg"),
    "pyg:GNNExplainer": gg.PyGExplainer("GNNExplainer", {"epochs": 3}),
    "pyg:GraphMaskExplainer": gg.PyGExplainer("GraphMaskExplainer", {"epochs": 1}),
    "pyg:CaptumExplainer": gg.PyGExplainer("CaptumExplainer", {"attribution_method": "Saliency"}),
}


def fresh_model(layer=GCNConv):
    data = random_graph()
    # PyG's GraphMask cannot count stored loops
    data.edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    return gg.NodeClassificationModel(build(Stack, layer, act=nn.ReLU()), data)


@pytest.mark.parametrize("layer", [GCNConv, GATConv], ids=["GCN", "GAT"])
def test_all_explainers_in_any_order_and_twice_give_what_they_give_alone(layer):
    """Explainers leave nothing behind that changes the next one.

    In PyG, Captum's explainers crash after GNNExplainer, and GraphMask changes the network.
    """
    alone = {
        name: explainer.explain(fresh_model(layer), [3, 8], seed=2)
        for name, explainer in ALL.items()
    }
    shared = fresh_model(layer)
    for turn in range(3):
        order = torch.randperm(len(ALL), generator=torch.Generator().manual_seed(turn)).tolist()
        for name in [list(ALL)[k] for k in order] * (2 if turn == 0 else 1):
            for x, wanted in zip(
                ALL[name].explain(shared, [3, 8], seed=2), alone[name], strict=True
            ):
                assert torch.equal(x.feature_score, wanted.feature_score), name
                assert torch.equal(x.edge_score, wanted.edge_score), name


@pytest.mark.parametrize("explainer", EXPLAINERS.values(), ids=EXPLAINERS)
@pytest.mark.parametrize("budget", [1_500_000, 6_000_000])
def test_peak_memory_of_a_call_stays_inside_the_budget(explainer, budget):
    """Beside the unions there are the results: packed scores, what they are made from, and each
    explanation's own.
    """
    random = torch.Generator().manual_seed(0)
    data = Data(
        x=torch.rand(300, 50, generator=random),
        edge_index=torch.randint(300, (2, 900), generator=random),
    )
    data.edge_index[1, :150] = 7  # a hub
    net = nn.ModuleList([GCNConv(50, 16), GCNConv(16, 4)])
    forward = lambda net, g: net[1](net[0](g.x, g.edge_index).relu(), g.edge_index)  # noqa: E731
    model = gg.NodeClassificationModel(
        build(lambda: net), data, forward=forward, memory_budget=budget
    )
    made = explainer(
        **{name: 3 for name in ("epochs", "steps") if name in explainer.__dataclass_fields__}
    )
    gg.Saliency().explain(model, range(5, 9))  # what one explainer costs is not what another does
    made.explain(model, range(5, 9))
    with Live() as live:
        xs = made.explain(model, range(300))
    results = sum(x.feature_score.nbytes + x.edge_score.nbytes for x in xs)
    ids = sum(x.nodes.nbytes + x.edges.nbytes for x in xs)
    assert live.peak <= budget + 4 * results + 40 * ids + data.x.nbytes


def test_with_edge_scores_of_ones_input_times_gradient_is_the_gradient():
    """On edges InputXGradient is the signed gradient of the factors, which are 1, and Saliency its
    absolute value.
    """
    model = fresh_model()
    for signed, absolute in zip(
        *(make().explain(model, range(9)) for make in (gg.InputXGradient, gg.Saliency)), strict=True
    ):
        assert torch.equal(signed.edge_score.abs(), absolute.edge_score)


class ManyArguments(nn.Module):
    """Takes what data has in another order than data has it."""

    def __init__(self):
        super().__init__()
        self.one, self.two = GATConv(6, 8, edge_dim=3), GCNConv(8, 4)

    def forward(self, x, edge_index, edge_weight, scale=1.0, edge_attr=None):
        return self.two(self.one(x, edge_index, edge_attr).relu() * scale, edge_index, edge_weight)


@pytest.mark.parametrize("explainer", EXPLAINERS.values(), ids=EXPLAINERS)
def test_further_arguments_go_by_name(explainer):
    """PyG's bridge to Captum passes them by position."""
    data = random_graph()
    data.edge_attr, data.edge_weight = (
        torch.rand(data.num_edges, 3),
        torch.rand(data.num_edges) + 0.5,
    )
    net = build(ManyArguments)
    model = gg.NodeClassificationModel(net, data)
    expected = net(data.x, data.edge_index, data.edge_weight, edge_attr=data.edge_attr).softmax(1)
    for x in explainer(
        **{name: 2 for name in ("epochs", "steps") if name in explainer.__dataclass_fields__}
    ).explain(model, [3]):
        assert torch.allclose(x.prediction, expected[3], atol=1e-6)
        assert x.edge_score.isfinite().all()


# --- one bar --------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def bars(explainer, monkeypatch, where):
    monkeypatch.setattr(sys, "stderr", where)
    monkeypatch.setattr(progress, "_SECONDS_BEFORE_SHOWN", 0)
    explainer.explain(fresh_model(), range(30))
    return where.getvalue()


@pytest.mark.parametrize("explainer", ALL.values(), ids=ALL)
def test_a_terminal_gets_one_bar_that_reaches_its_end(explainer, monkeypatch):
    ends = []
    leave = progress.use_bar

    def watched(bar):
        ends.append(bar)
        return leave(bar)

    monkeypatch.setattr(progress, "use_bar", watched)
    text = bars(explainer, monkeypatch, Terminal())
    assert set(re.findall(r"\r([\w: ,]+): ", text)) == {explainer.name}
    (bar,) = [bar for bar in ends if bar]
    assert bar.n == pytest.approx(30, abs=1e-6)


def test_a_file_gets_no_bar(monkeypatch):
    assert bars(gg.GNNExplainer(epochs=5), monkeypatch, io.StringIO()) == ""


def test_calls_inside_a_call_draw_no_bar_of_their_own(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "_SECONDS_BEFORE_SHOWN", 0)
    with progress.progress_bar(10, "outer"):
        gg.InputXGradient().explain(fresh_model(), range(30))
        progress.advance_progress(4)
        assert progress._current.get().n == 4
    assert "input_x_gradient" not in sys.stderr.getvalue()
