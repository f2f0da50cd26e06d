"""GraphMask: what is learned has moved and is right; and PyG's own, reproduced."""

import pytest
import torch
from support.planted_networks import decisive
from support.small_networks import (
    CLASSES,
    FEATURES,
    EncodeDecode,
    LinkForward,
    Pooled,
    Stack,
    build,
    random_graph,
)
from torch import nn
from torch_geometric.explain import Explainer, GraphMaskExplainer
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.core.errors import BadModel, BadSetting
from graphgauge.core.seeds import derive_seed, make_generator
from graphgauge.datasets import ba_shapes, trained_gcn
from graphgauge.explainers.graphmask import (
    _GATE_START,
    _GraphMaskOptimisation,
    learn_baselines,
    prediction_divergence,
)
from graphgauge.explainers.graphmask_pyg import _draw_random_weights
from graphgauge.explainers.message_gates import open_probability, sample_hard_concrete

TWO_HEADS = lambda a, b: GATConv(a, b, heads=2, concat=False)  # noqa: E731
LAYERS = {"GCN": GCNConv, "GAT": GATConv, "GAT 2 heads": TWO_HEADS, "SAGE": SAGEConv}


def node_model(layer=GCNConv, **kwargs):
    return gg.NodeClassificationModel(
        build(Stack, layer, dtype=torch.float64, **kwargs), random_graph(dtype=torch.float64)
    )


# --- the definition -------------------------------------------------------------------------------


def test_gates_are_their_definition():
    uniform, logit = torch.tensor([0.3, 0.5, 0.9]).double(), torch.tensor([-2.0, 0.0, 0.4]).double()
    for z, u, a in zip(sample_hard_concrete(logit, uniform), uniform, logit, strict=True):
        s = 1 / (1 + torch.exp(-(torch.log(u / (1 - u)) + a) * 3))
        assert z == pytest.approx(min(1.0, max(0.0, float(1.4 * s - 0.2))), abs=1e-12)


def test_the_chance_to_be_open_is_how_often_a_gate_is():
    stream = make_generator(0)
    for a in (-2.0, -0.5, 0.0, 1.0, 3.0):
        logit = torch.full((20000,), a, dtype=torch.float64)
        is_open = (
            sample_hard_concrete(logit, torch.rand(20000, generator=stream, dtype=torch.float64))
            > 0
        ).double()
        assert abs(is_open.mean() - open_probability(logit)[0]) < 4 * (
            is_open.std() / 20000**0.5 + 1e-4
        )


def test_the_divergence_is_kl_or_squared_in_sd():
    model = node_model()
    first = model.pred_continuous(range(5))
    raw = torch.randn(5, CLASSES, generator=make_generator(0), dtype=torch.float64)
    now = raw.softmax(1)
    wanted = [
        sum(p * torch.log(p / q) for p, q in zip(ps, qs, strict=True))
        for ps, qs in zip(first, now, strict=True)
    ]
    assert (prediction_divergence(model, first, raw) - torch.stack(wanted)).abs().max() <= 1e-12
    values = gg.NodeRegressionModel(
        build(Stack, GCNConv, out=1, dtype=torch.float64), random_graph(dtype=torch.float64)
    )
    spread = values.pred_continuous(values.population()).std(correction=0)
    assert torch.allclose(
        prediction_divergence(values, torch.zeros(3).double(), torch.full((3, 1), 2.0).double()),
        (2 / spread) ** 2,
    )


class Literal(nn.Module):
    """The second layer's messages of a two-layer network by hand, with one baseline for closed
    edges.
    """

    def __init__(self, net, baselines, closed):
        super().__init__()
        self.net, self.baselines, self.closed = net, baselines, closed

    def forward(self, x, edge_index):
        for number, conv in enumerate(self.net.convs):
            h = x if number == 0 else x.relu()
            total, count = torch.zeros_like(h), torch.zeros(len(h), 1, dtype=h.dtype)
            for edge, (u, v) in enumerate(edge_index.t().tolist()):
                total[v] += self.baselines[number] if (number, edge) in self.closed else h[u]
                count[v] += 1
            x = conv.lin_l(total / count.clamp(min=1)) + conv.lin_r(h)
        return x


def test_a_closed_gate_replaces_the_message_by_the_baseline():
    model = node_model(SAGEConv)
    data, graphs = model.data, model.computation_graphs([3])
    baselines = [torch.linspace(-1, 1, width).double() for width in (FEATURES, 8)]
    edges = graphs[0].edges.tolist()
    closed = {(0, edges[0]), (0, edges[-1]), (1, edges[1])}
    outcome = []

    def look(union):
        run = _GraphMaskOptimisation(gg.GraphMask(), model, union, [0], baselines)
        run.copies.set_gates(torch.ones(run.copies.features.size, dtype=torch.float64))
        gates = {number: torch.ones(run.edges.size, dtype=torch.float64) for number in range(2)}
        for number, edge in closed:
            gates[number][run.edges.slot[edges.index(edge)]] = 0.0
        return run.run(gates)

    model.for_each(look, outcome.append, graphs)
    literal = Literal(model.net, baselines, closed)(data.x, data.edge_index)
    assert (outcome[0][0] - literal[3]).abs().max() <= 1e-12


# --- what is learned ------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_gates_baselines_and_feature_mask_have_moved(layer, monkeypatch):
    """In PyG the feature mask and the gates stay at their start, and several heads crash."""
    model, runs = node_model(layer), []
    learn = _GraphMaskOptimisation.learn

    def watched(self, first, epochs, *chosen):
        start = self.mask.logit.clone()
        learn(self, first, epochs, *chosen)
        if epochs:
            runs.append((self, start))

    monkeypatch.setattr(_GraphMaskOptimisation, "learn", watched)
    gg.GraphMask(epochs=10).explain(model, range(8))
    for run, start in runs:
        slot = run.mask.entries.slot
        assert ((run.mask.logit - start)[slot][run.mask.is_alive[slot]] != 0).all()
        for logit, is_alive in zip(run.logits, run.is_alive, strict=True):
            assert (logit[is_alive] != _GATE_START).all()
            assert (logit[~is_alive] == _GATE_START).all()
        assert all(baseline.abs().min() > 0 for baseline in run.baselines)
    assert sum(len(run.union) for run, _ in runs) == 8


@pytest.mark.numeric
def test_a_decisive_edge_and_a_decisive_feature_come_out_on_top():
    planted = decisive(against=0.03)
    for x in gg.GraphMask().explain(planted.model, [planted.target] * 20):
        planted.assert_on_top(x)


def test_motifs_are_found_while_predictions_are_kept(monkeypatch):
    """On a trained network the gates that stay open are those of the motif, and the constraint
    holds.
    """
    data = ba_shapes()
    model, left = gg.NodeClassificationModel(trained_gcn(data, epochs=200), data), []
    learn = _GraphMaskOptimisation.learn

    def watched(self, first, epochs, *chosen):
        learn(self, first, epochs, *chosen)
        with torch.no_grad():
            self.copies.set_gates(self.mask.gates())
            raw = self.run(
                {
                    number: (open_probability(logit) > 0.5).to(logit)
                    for number, logit in enumerate(self.logits)
                }
            )
        if epochs:
            left.append(prediction_divergence(self.model, first, raw))

    monkeypatch.setattr(_GraphMaskOptimisation, "learn", watched)
    in_motif = (data.y[data.edge_index] > 0).all(0)
    found = []
    for x in gg.GraphMask().explain(model, range(300, 700, 20)):
        inside, outside = x.edge_score[in_motif[x.edges]], x.edge_score[~in_motif[x.edges]]
        if len(inside) and len(outside):
            found.append(
                (
                    (inside[:, None] > outside).double().mean()
                    + (inside[:, None] == outside).double().mean() / 2
                ).item()
            )
    assert sum(found) / len(found) > 0.85
    assert (torch.cat(left) < 0.1).double().mean() >= 0.95


def test_baselines_are_learned_once_for_a_network_and_again_when_it_changes(monkeypatch):
    model, calls = node_model(), []
    monkeypatch.setattr(
        "graphgauge.explainers.graphmask.learn_baselines",
        lambda m: calls.append(m) or learn_baselines(m),
    )
    for targets in ([0], [1, 2], [0]):
        gg.GraphMask(epochs=1).explain(model, targets)
    assert len(calls) == 1
    with torch.no_grad():
        model.net.convs[0].bias.add_(1)
    gg.GraphMask(epochs=1).explain(model, [0])
    assert len(calls) == 2


def test_baselines_do_not_depend_on_the_memory_budget():
    net, data = build(Stack, GCNConv), random_graph(120, 300)
    free, tight = (
        learn_baselines(gg.NodeClassificationModel(net, data, memory_budget=b))
        for b in (None, "300kB")
    )
    assert all(map(torch.equal, free, tight))


def test_every_kind_of_model_is_explained():
    data, many = random_graph(), [random_graph(5 + seed, 9, seed=seed) for seed in range(4)]
    for model, targets in [
        (gg.NodeRegressionModel(build(Stack, GATConv, out=1), data), [0, 59]),
        (
            gg.LinkClassificationModel(build(EncodeDecode), data, output="logits"),
            [(0, 1), (59, 58)],
        ),
        (gg.LinkRegressionModel(build(LinkForward, out=1), data), [(0, 1), (59, 58)]),
        (gg.GraphClassificationModel(build(Pooled), many), [0, 3]),
    ]:
        for x in gg.GraphMask(epochs=3).explain(model, targets):
            assert ((x.edge_score >= 0) & (x.edge_score <= 1)).all()
            assert ((x.feature_score >= 0) & (x.feature_score <= 1)).all()


def test_a_network_without_messages_has_feature_scores_only_of_use():
    net = build(lambda: nn.Linear(FEATURES, CLASSES))
    model = gg.NodeClassificationModel(
        net, random_graph(), num_hops=0, forward=lambda net, g: net(g.x)
    )
    for x in gg.GraphMask(epochs=3).explain(model, range(7)):
        assert (x.feature_score > 0).all()


class Certain(nn.Module):
    """Probabilities that round to 0 and 1."""

    def __init__(self, final):
        super().__init__()
        self.encoder, self.final = Stack(GCNConv, out=CLASSES if final == "softmax" else 1), final

    def forward(self, x, edge_index):
        raw = 300 * self.encoder(x, edge_index)
        return raw.softmax(1) if self.final == "softmax" else raw.sigmoid()


@pytest.mark.parametrize("final", ["softmax", "sigmoid"])
def test_predictions_that_are_certain_do_not_make_scores_that_are_no_numbers(final):
    model = gg.NodeClassificationModel(build(Certain, final), random_graph(), output="probs")
    for explainer in (gg.GraphMask(epochs=10), gg.GNNExplainer(epochs=30)):
        for x in explainer.explain(model, range(60)):
            assert (x.feature_score.isfinite().all(), x.edge_score.isfinite().all()) == (True, True)


def test_impossible_settings_are_refused():
    with pytest.raises(BadSetting, match="epochs must be a whole number"):
        gg.GraphMask(epochs=0)
    with pytest.raises(BadSetting, match="variant must be 'default' or 'pyg'"):
        gg.GraphMask(variant="captum")


# --- PyG's own ------------------------------------------------------------------------------------


class GivenStart(GraphMaskExplainer):
    """PyG's own, whose gate networks start where we say."""

    seed = 0

    def _set_masks(self, i_dim, j_dim, h_dim, x):
        super()._set_masks(i_dim, j_dim, h_dim, x)
        for number, (i, j, h) in enumerate(zip(i_dim, j_dim, h_dim, strict=True)):
            reach = (6 / (2 * i + j + h)) ** 0.5
            with torch.no_grad():
                for place, width in enumerate((i, j, i)):
                    weight = _draw_random_weights(
                        self.seed, ("gate", number, place), reach, width, h
                    )
                    self.gates[number * 4][place].weight.copy_(weight.t())
                last = _draw_random_weights(self.seed, ("gate", number, "last"), h**-0.5, h + 1)
                self.gates[number * 4 + 3].weight.copy_(last[:-1])
                self.gates[number * 4 + 3].bias.copy_(last[-1:])
                self.baselines[number].copy_(
                    _draw_random_weights(self.seed, ("baseline", number), j**-0.5, 1)[0]
                )
        noise = torch.randn(
            x.shape,
            generator=make_generator(derive_seed(self.seed, "features")),
            dtype=torch.float64,
        )
        with torch.no_grad():
            self.node_feat_mask.copy_(0.1 * noise)


class Summed(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.encoder = Stack(layer, 2, out=3)

    def forward(self, x, edge_index, batch=None):
        rows = self.encoder(x, edge_index)
        batch = torch.zeros(len(rows), dtype=torch.int64) if batch is None else batch
        return rows.new_zeros(int(batch.max()) + 1, 3).index_add(0, batch, rows)


@pytest.mark.numeric
@pytest.mark.parametrize("layer", [GCNConv, GATConv], ids=["GCN", "GAT"])
def test_pygs_variant_is_pygs_own_with_the_same_draws(layer, monkeypatch):
    torch.set_default_dtype(torch.float64)
    try:
        many = [random_graph(8 + seed, 14, seed=seed, dtype=torch.float64) for seed in range(6)]
        for graph in many:
            graph.edge_index = graph.edge_index[:, graph.edge_index[0] != graph.edge_index[1]]
        net = build(Summed, layer, dtype=torch.float64)
        xs = gg.GraphMask(variant="pyg").explain(
            gg.GraphClassificationModel(net, many), range(6), seed=2
        )
        for graph, x in zip(many, xs, strict=True):
            own = derive_seed(2, x.explainer, x.target, 0)
            reference = pygs(build(Summed, layer, dtype=torch.float64), graph, own, monkeypatch)
            assert (x.feature_score - reference.node_mask).abs().max() <= 1e-12
            assert torch.equal(x.edge_score, reference.edge_mask)
            assert set(x.edge_score.tolist()) <= {0.0, 0.5, 1.0}
    finally:
        torch.set_default_dtype(torch.float32)


def pygs(net, graph, seed, monkeypatch):
    """One epoch of PyG's, the draws of its gates replaced by ours (layer after layer, the same
    number of messages each).
    """
    num_messages, calls = graph.num_edges + graph.num_nodes, []
    uniform = torch.Tensor.uniform_

    def given(self, low=0.0, high=1.0, **kwargs):
        if self.flatten().size(0) != num_messages:
            return uniform(self, low, high, **kwargs)
        number = len(calls) % 2
        calls.append(number)
        drawn = torch.rand(
            num_messages,
            generator=make_generator(derive_seed(seed, "noise", number)),
            dtype=torch.float64,
        )
        return self.copy_(drawn.clamp(1e-6, 1 - 1e-6).view_as(self))

    algorithm = GivenStart(num_layers=2, epochs=1, log=False)
    algorithm.seed = seed
    config = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
    peer = Explainer(
        net, algorithm, "model", config, node_mask_type="attributes", edge_mask_type="object"
    )
    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "uniform_", given)
        return peer(graph.x, graph.edge_index)


def test_pygs_variant_scores_features_by_their_random_start_whatever_the_network():
    """PyG's feature mask is frozen; its variant reproduces that on purpose."""
    first, second = (
        gg.GraphMask(variant="pyg").explain(node_model(seed=seed), [3, 8]) for seed in (0, 1)
    )
    for x, other in zip(first, second, strict=True):
        assert torch.equal(x.feature_score, other.feature_score)
    trained = [
        gg.GraphMask(epochs=5).explain(node_model(seed=seed), [3])[0].feature_score
        for seed in (0, 1)
    ]
    assert not torch.equal(*trained)


def test_pygs_variant_refuses_what_pygs_code_does_not_do():
    with pytest.raises(BadModel, match="cannot explain layers with several heads"):
        gg.GraphMask(variant="pyg").explain(node_model(TWO_HEADS), [0])
    with pytest.raises(BadModel, match="In this network none does"):
        gg.GraphMask(variant="pyg").explain(node_model(out=FEATURES, num_layers=1), [0])
