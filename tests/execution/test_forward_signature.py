"""Networks that are called in unusual ways: outputs that are no tensor, compiled ones, whole
numbers as features.
"""

import copy
import warnings
from collections import namedtuple
from dataclasses import replace

import pytest
import torch
from support.small_networks import (
    CLASSES,
    FEATURES,
    EncodeDecode,
    Pooled,
    Stack,
    build,
    random_graph,
)
from torch import nn
from torch.testing import assert_close
from torch_geometric.nn import GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.checks.model_checks import fail_if_network_changes
from graphgauge.core.errors import BadGraph, BadModel
from graphgauge.explainers import GNNExplainer, InputXGradient, RandomExplainer

Answer = namedtuple("Answer", "count logits")


class Returning(nn.Module):
    """A network that packs its rows into something."""

    def __init__(self, pack):
        super().__init__()
        self.inner, self.pack = Stack(GCNConv), pack

    def forward(self, x, edge_index):
        return self.pack(self.inner(x, edge_index))


@pytest.mark.parametrize(
    ("pack", "message"),
    [
        (
            lambda rows: {"loss": 0.5, "logits": rows},
            r"a dict with 'loss': float, 'logits': tensor \(40, 4\);.*\['logits'\]\.",
        ),
        (lambda rows: {3: rows}, r"a dict with 3: tensor \(40, 4\);.*\[3\]\."),
        (lambda rows: (None, rows), r"a tuple with 0: NoneType, 1: tensor \(40, 4\);.*\[1\]\."),
        (lambda rows: [rows], r"a list with 0: tensor \(40, 4\);.*\[0\]\."),
        (lambda rows: Answer(3, rows), r"a Answer with 0: int, 1: tensor \(40, 4\);.*\.logits\."),
        (lambda rows: None, r"a NoneType, one tensor is needed"),
        (lambda rows: {}, r"a dict with no keys"),
    ],
)
def test_what_is_no_tensor_is_refused_with_its_parts_and_the_way_to_pick_one(pack, message):
    with pytest.raises(BadModel, match=message):
        gg.NodeClassificationModel(build(Returning, pack), random_graph(40, 100)).pred_continuous(
            [0]
        )


def test_the_advice_about_a_dictionary_works():
    net, data = build(Returning, lambda rows: {"loss": 0.5, "logits": rows}), random_graph(40, 100)
    model = gg.NodeClassificationModel(
        net, data, forward=lambda net, g: net(g.x, g.edge_index)["logits"]
    )
    assert_close(
        model.pred_continuous([3]), net.inner(data.x, data.edge_index)[[3]].softmax(1).detach()
    )


# --- torch.jit ------------------------------------------------------------------------------------


class Remembering(nn.Module):
    """Counts its calls and keeps what it saw, which a compiled module can, too."""

    count: int
    seen: list[torch.Tensor]

    def __init__(self):
        super().__init__()
        self.inner, self.count = Stack(GCNConv), 0
        self.seen = torch.jit.annotate(list[torch.Tensor], [torch.zeros(1)])
        self.register_buffer("total", torch.zeros(1))

    def forward(self, x, edge_index):
        self.count += 1
        self.total += x.sum()
        self.seen[0] = x
        return self.inner(x, edge_index)


def compiled(how, net, *inputs):
    """A module that `torch.jit` made."""
    with torch.random.fork_rng(), warnings.catch_warnings():
        # torch.jit is deprecated, and tracing takes sizes for constants
        warnings.simplefilter("ignore")
        return (
            torch.jit.script(net)
            if how == "script"
            else torch.jit.trace(net, inputs, check_trace=False)
        )


NO_EDGES = pytest.mark.filterwarnings("ignore:there are no edge scores")


@NO_EDGES
@pytest.mark.parametrize("how", ["script", "trace"])
def test_compiled_modules_give_what_the_plain_ones_give(how):
    net, data, targets = build(Stack, SAGEConv), random_graph(40, 100), [0, 3, 8]
    given = compiled(how, net, data.x, data.edge_index)
    with pytest.raises(
        BadModel, match=r"torch.jit hides the last hidden space.*embedding=lambda net, g:"
    ):
        gg.NodeClassificationModel(given, data, num_hops=2).embed(targets)
    model = gg.NodeClassificationModel(
        given, data, num_hops=2, embedding=lambda _, g: net.convs[0](g.x, g.edge_index).relu()
    )
    plain = gg.NodeClassificationModel(net, data)
    assert_close(model.pred_continuous(targets), plain.pred_continuous(targets))
    for x, y in zip(
        InputXGradient().explain(model, targets),
        InputXGradient().explain(plain, targets),
        strict=True,
    ):
        assert x.edge_score is None
        assert_close(x.feature_matrix(), y.feature_matrix())
    settings = {
        "preset": "paper",
        "cap": 6,
        "edge_removal": "drop",
        "stability": "none",
        "timed": 0,
    }
    xs = RandomExplainer().explain(plain, targets)
    found, own = (
        gg.Evaluator(each, **settings).evaluate([replace(x) for x in xs]) for each in (model, plain)
    )
    values, wanted = ([(row.metric, row.cell.value) for row in each.rows] for each in (found, own))
    assert [value for name, value in values if "edge" in name] == [
        value for name, value in wanted if "edge" in name
    ]
    gg.check_model(model)


@NO_EDGES
@pytest.mark.parametrize("training", [True, False])
def test_a_compiled_module_is_what_it_was_after_a_call(training):
    data, net = random_graph(40, 100), compiled("script", build(Remembering)).train(training)
    net(data.x, data.edge_index)
    before = (
        net.count,
        copy.deepcopy(net.total),
        copy.deepcopy(net.seen),
        [part.training for part in net.modules()],
    )
    model = gg.NodeClassificationModel(net, data, num_hops=2)
    with fail_if_network_changes(model):
        model.pred_continuous([0, 3])
        GNNExplainer(epochs=2).explain(model, [0, 3])
    assert (net.count, net.total, [part.training for part in net.modules()]) == (
        before[0],
        before[1],
        before[3],
    )
    assert torch.equal(net.seen[0], before[2][0])


def test_a_buffer_that_something_with_a_gradient_was_added_to_is_plain_again():
    net, data = build(Remembering), random_graph(40, 100)
    InputXGradient().explain(gg.NodeClassificationModel(net, data), [0, 3])
    assert (net.total.is_leaf, net.total.requires_grad, float(net.total)) == (True, False, 0.0)


def test_a_compiled_layer_does_not_answer_from_its_cache():
    class Cached(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(FEATURES, CLASSES, cached=True)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    data = random_graph(40, 100)
    plain, net = build(Cached), compiled("script", build(Cached))
    plain.conv.cached = False
    model = gg.NodeClassificationModel(net, data, num_hops=1)
    net(data.x, data.edge_index)
    graphs = model.computation_graphs([0, 3])
    own = gg.NodeClassificationModel(plain, data)
    without = [
        each.pred_copies(
            each.computation_graphs([0, 3]),
            edit=lambda union: union.without_edges(union.edge_position == 0),
        )
        for each in (model, own)
    ]
    assert_close(*without)
    assert len(graphs) == 2
    assert net.conv._cached_edge_index is not None


def test_a_compiled_module_without_hops_is_refused_with_advice():
    net, data = build(Stack, GCNConv), random_graph(40, 100)
    with pytest.raises(
        BadModel,
        match=r"num_hops=2. torch.jit hides the layers: better wrap the module that was compiled",
    ):
        gg.NodeClassificationModel(compiled("script", net), data).computation_graphs([0])


@pytest.mark.parametrize("how", ["script", "trace"])
def test_compiled_graph_networks_need_no_hops(how):
    net, data = build(Pooled), [random_graph(10 + size, 25) for size in range(5)]
    g = data[0]
    plain = gg.GraphClassificationModel(net, data)
    model = gg.GraphClassificationModel(
        compiled(how, Whole(net), g.x, g.edge_index, torch.zeros(len(g.x), dtype=torch.int64)), data
    )
    assert_close(model.pred_continuous([0, 4]), plain.pred_continuous([0, 4]))


class Whole(nn.Module):
    """Calls `Pooled` with the number of graphs left open."""

    def __init__(self, inner):
        super().__init__()
        self.encoder, self.lin = inner.encoder, inner.lin

    def forward(self, x, edge_index, batch):
        z, size = self.encoder(x, edge_index), int(batch.max()) + 1
        ones = torch.ones_like(z[:, :1])
        total = torch.zeros(size, z.size(1)).index_add(0, batch, z)
        return self.lin(total / torch.zeros(size, 1).index_add(0, batch, ones).clamp(min=1.0))


def test_exported_programs_are_refused_by_name():
    net, data = build(Stack, GCNConv), random_graph(40, 100)
    program = torch.export.export(net, (data.x, data.edge_index), strict=False)
    for given in (program, program.module()):
        with pytest.raises(
            BadModel, match=r"made by torch.export.*Wrap the module that was exported"
        ):
            gg.NodeClassificationModel(given, data)


# --- whole numbers --------------------------------------------------------------------------------


class Words(nn.Module):
    """Looks up what a node is called."""

    def __init__(self):
        super().__init__()
        self.words, self.conv = nn.Embedding(10, FEATURES), GCNConv(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(self.words(x[:, 0]), edge_index)


def test_whole_numbers_are_not_made_floats_where_a_network_embeds_them():
    data = random_graph(40, 100)
    data.x = torch.randint(10, (40, 1), generator=torch.Generator().manual_seed(0))
    with pytest.raises(
        BadGraph,
        match=(
            r"looks whole numbers up in an embedding \(net\.words\), "
            r"which \.float\(\) would break"
        ),
    ) as told:
        gg.NodeClassificationModel(build(Words), data)
    assert (
        "not supported yet: embed first, such as data.x = net.words(data.x).flatten(1).detach()"
        in str(told.value)
    )
    with pytest.raises(
        BadGraph, match=r"data\[0\]\.x is torch.int64 and the network looks whole numbers up"
    ):
        gg.GraphClassificationModel(build(Words), [data])
    with pytest.raises(BadGraph, match=r"scores need float32 or float64: use data\.x\.float\(\)"):
        gg.NodeClassificationModel(build(Stack, GCNConv), data)


def test_the_advice_about_an_embedding_works():
    data, net = random_graph(40, 100), build(Words)
    data.x = torch.randint(10, (40, 1), generator=torch.Generator().manual_seed(0))
    wanted = net(data.x, data.edge_index)[[3, 8]].softmax(1).detach()
    data.x = net.words(data.x).flatten(1).detach()
    model = gg.NodeClassificationModel(
        net, data, forward=lambda net, g: net.conv(g.x, g.edge_index)
    )
    assert_close(model.pred_continuous([3, 8]), wanted)


def test_links_may_be_encoded_by_a_network_that_returns_a_dictionary():
    class Packed(EncodeDecode):
        def encode(self, x, edge_index):
            return {"z": self.encoder(x, edge_index)}

    with pytest.raises(BadModel, match=r"a dict with 'z': tensor \(40, 8\)"):
        gg.LinkClassificationModel(build(Packed), random_graph(40, 100)).pred_continuous([(0, 3)])


# --- what explainers make of such networks --------------------------------------------------------


@NO_EDGES
@pytest.mark.parametrize("how", ["script", "trace"])
def test_lrp_refuses_compiled_modules_whose_operations_it_cannot_follow(how):
    """Without biases their relevance would be handed back whole, though no rule was applied."""
    net, data = build(Stack, GCNConv), random_graph(40, 100)
    model = gg.NodeClassificationModel(
        compiled(how, net, data.x, data.edge_index), data, num_hops=2
    )
    with pytest.raises(
        BadModel, match=r"LRP follows the network's operations, which torch.jit hides"
    ):
        gg.LRP().explain(model, [0])


@pytest.mark.parametrize("explainer", [gg.LRP(), gg.GraphMask(epochs=1)])
def test_lower_precision_is_refused_by_name_where_it_cannot_be_mixed(explainer):
    net, data = build(Stack, GCNConv, dtype=torch.bfloat16), random_graph(40, 100)
    call = {"forward": lambda net, g: net(g.x.bfloat16(), g.edge_index).float()}
    model = gg.NodeClassificationModel(net, data, **call)
    assert InputXGradient().explain(model, [0])[0].feature_score.isfinite().all()
    with pytest.raises(BadModel, match=r"computes in bfloat16: use net\.float\(\)"):
        explainer.explain(model, [0])
