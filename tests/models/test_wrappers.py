"""The six wrappers: calling conventions, outputs, embeddings, populations."""

import numpy as np
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
    mlp,
    random_graph,
)
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, NNConv, SAGEConv, global_add_pool

import graphgauge as gg
from graphgauge.core.errors import BadGraph, BadModel, BadSetting

# --- outputs --------------------------------------------------------------------------------------


class Final(nn.Module):
    def __init__(self, function, out=CLASSES):
        super().__init__()
        self.stack, self.function = Stack(GCNConv, out=out), function

    def forward(self, x, edge_index):
        return self.function(self.stack(x, edge_index))


MANY = {
    "logits": lambda z: z,
    "log_probs": lambda z: z.log_softmax(1),
    "probs": lambda z: z.softmax(1),
}


@pytest.mark.parametrize("said", [True, False], ids=["said", "found"])
@pytest.mark.parametrize("kind", MANY)
def test_all_forms_of_class_outputs_become_the_same_probabilities(kind, said):
    data = random_graph()
    model = gg.NodeClassificationModel(
        build(Final, MANY[kind]), data, output=kind if said else None
    )
    expected = build(Final, MANY["probs"])(data.x, data.edge_index)
    assert model.kind == kind
    assert (model.pred_continuous(list(range(60))) - expected).abs().max() <= 1e-6
    assert model.pred_discrete(list(range(60))).equal(expected.argmax(1))
    assert model.num_classes == CLASSES


ONE = {
    "logits": lambda z: z,
    "log_probs": lambda z: F.logsigmoid(z),
    "probs": lambda z: z.sigmoid(),
}


@pytest.mark.parametrize("flat", [True, False], ids=["(N,)", "(N, 1)"])
@pytest.mark.parametrize("kind", ONE)
def test_one_column_is_the_second_of_two_classes(kind, flat):
    data = random_graph()
    net = build(Final, lambda z: ONE[kind](z)[:, 0] if flat else ONE[kind](z), out=1)
    model = gg.NodeClassificationModel(net, data, output=kind)
    prob = build(Final, ONE["probs"], out=1)(data.x, data.edge_index)[:, 0]
    assert (
        model.pred_continuous(list(range(60))) - torch.stack([1 - prob, prob], 1)
    ).abs().max() <= 1e-6
    assert model.pred_discrete(list(range(60))).equal((prob > 0.5).long())
    assert model.num_classes == 2


def test_one_column_of_logits_is_found_and_one_inside_the_unit_interval_is_refused():
    data = random_graph()
    assert gg.NodeClassificationModel(build(Final, ONE["logits"], out=1), data).kind == "logits"
    with pytest.raises(
        BadModel, match=r"one column inside \[0, 1\].*output='probs' or output='logits'"
    ):
        gg.NodeClassificationModel(build(Final, ONE["probs"], out=1), data).pred_continuous([0])


@pytest.mark.parametrize(
    ("made", "said", "message"),
    [
        ("logits", "probs", "output='probs' was said, but the net's rows are not that"),
        ("logits", "log_probs", "output='log_probs' was said"),
        ("probs", "log_probs", "output='log_probs' was said"),
        ("log_probs", "probs", "output='probs' was said"),
        (
            "probs",
            "logits",
            "output='logits' was said, but all rows are probabilities.*use output='probs'",
        ),
    ],
)
def test_mislabelled_outputs_are_refused(made, said, message):
    with pytest.raises(BadModel, match=message):
        gg.NodeClassificationModel(
            build(Final, MANY[made]), random_graph(), output=said
        ).pred_continuous([0])


def test_log_probabilities_said_to_be_logits_are_the_same_model():
    data = random_graph()
    one, other = (
        gg.NodeClassificationModel(build(Final, MANY["log_probs"]), data, output=kind)
        for kind in ("logits", "log_probs")
    )
    assert (one.pred_continuous([0, 1]) - other.pred_continuous([0, 1])).abs().max() <= 1e-6


def test_an_unknown_kind_of_output_is_refused_at_once():
    with pytest.raises(BadSetting, match="output must be one of 'logits', 'log_probs', 'probs'"):
        gg.NodeClassificationModel(build(Stack, GCNConv), random_graph(), output="softmax")


def test_among_equal_probabilities_the_lowest_class_is_named():
    model = gg.NodeClassificationModel(
        build(Final, lambda z: torch.tensor([[0.1, 0.4, 0.4, 0.1]]).expand(len(z), 4)),
        random_graph(),
    )
    assert model.pred_discrete([0, 5]).tolist() == [1, 1]


# --- regression -----------------------------------------------------------------------------------


@pytest.mark.parametrize("flat", [True, False])
def test_regression_gives_values_and_sides(flat):
    data = random_graph()
    net = build(Final, lambda z: z[:, 0] if flat else z, out=1)
    model = gg.NodeRegressionModel(net, data)
    value = net(data.x, data.edge_index).detach().reshape(-1)
    nodes = list(range(60))
    assert model.pred_continuous(nodes).equal(value)
    mean, spread = float(value.double().mean()), float(value.double().std(correction=0))
    assert (model.mean, model.spread) == (pytest.approx(mean), pytest.approx(spread))
    expected = [
        1 if v > mean + 0.2 * spread else -1 if v < mean - 0.2 * spread else 0
        for v in value.tolist()
    ]
    assert model.pred_discrete(nodes).tolist() == expected
    assert {-1, 0, 1} == set(expected)
    assert model.pred_discrete([0], around=float(value[0])).tolist() == [0]
    assert model.pred_discrete([0, 1], around=value[:2] + 2 * spread).tolist() == [-1, -1]
    assert model.pred_discrete(nodes, flip=100.0).eq(0).all()


def test_a_centre_that_does_not_fit_the_targets_is_refused():
    model = gg.NodeRegressionModel(build(Stack, GCNConv, out=1), random_graph())
    with pytest.raises(BadSetting, match="around must be one number, or one for each of 2 targets"):
        model.pred_discrete([0, 1], around=[1.0, 2.0, 3.0])
    with pytest.raises(BadSetting, match="around= is the centre of a regression's flip band"):
        gg.NodeClassificationModel(build(Stack, GCNConv), random_graph()).pred_discrete(
            [0], around=1.0
        )


def test_a_regression_with_several_columns_is_refused():
    with pytest.raises(BadModel, match="one value per node, but the net returns 4 columns"):
        gg.NodeRegressionModel(build(Stack, GCNConv), random_graph()).pred_continuous([0])


def test_a_constant_regression_is_still_exact():
    model = gg.NodeRegressionModel(build(Final, lambda z: 0 * z + 3.0, out=1), random_graph())
    batch = model.computation_graphs([0, 1])
    assert model.spread == 0
    assert model.pred_copies(batch).tolist() == [3.0, 3.0]
    assert model.pred_discrete([0, 1]).tolist() == [0, 0]


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e6])
def test_values_far_from_zero_are_compared_as_finely_as_floats_allow(shift):
    model = gg.NodeRegressionModel(build(Final, lambda z: z + shift, out=1), random_graph())
    assert "whole graph" not in model.computation_graphs(list(range(40))).notes()


# --- calling conventions --------------------------------------------------------------------------


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = GCNConv(FEATURES, HIDDEN), GCNConv(HIDDEN, CLASSES)

    def forward(self, x, edge_index, edge_weight=None):
        return self.two(self.one(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


class Attributed(nn.Module):
    """Takes attributes of nodes, edges and the graph, required and optional, in an order of its
    own.
    """

    def __init__(self):
        super().__init__()
        self.one, self.two = (
            GATConv(FEATURES + 3, HIDDEN, edge_dim=2),
            NNConv(HIDDEN, CLASSES, nn.Linear(2, HIDDEN * CLASSES)),
        )

    def forward(self, x, edge_index, *, temperature, edge_attr, pos, unknown=None):
        assert unknown is None
        hidden = self.one(torch.cat([x, pos], 1), edge_index, edge_attr).relu()
        return self.two(hidden, edge_index, edge_attr) / temperature


def test_edge_weights_and_all_other_attributes_are_cut_along():
    data = random_graph(120, 240)
    random = torch.Generator().manual_seed(0)
    data.edge_weight = torch.rand(data.num_edges, generator=random) + 0.1
    data.edge_attr = torch.rand(data.num_edges, 2, generator=random)
    data.pos = torch.rand(120, 3, generator=random)
    data.temperature = torch.tensor(2.0)
    nodes = list(range(100))
    for net, arguments in (
        (build(Weighted), {"edge_weight": data.edge_weight}),
        (
            build(Attributed),
            {"edge_attr": data.edge_attr, "pos": data.pos, "temperature": data.temperature},
        ),
    ):
        model = gg.NodeClassificationModel(net, data)
        whole = net(data.x, data.edge_index, **arguments).softmax(1)[nodes]
        batch = model.computation_graphs(nodes)
        assert "whole graph" not in batch.notes()
        assert (model.pred_copies(batch) - whole).abs().max() <= 1e-5
        graph = batch[3].data
        assert all(
            graph[name].size(0) in (graph.num_nodes, graph.num_edges)
            for name in arguments
            if name != "temperature"
        )


def test_as_many_edges_as_nodes_do_not_confuse_the_attributes():
    data = Data(
        x=torch.rand(6, FEATURES),
        edge_index=torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]),
        edge_weight=torch.rand(6),
    )
    net = build(Weighted)
    model = gg.NodeClassificationModel(net, data)
    whole = net(data.x, data.edge_index, data.edge_weight).softmax(1)
    assert (model.pred_copies(model.computation_graphs(range(6))) - whole).abs().max() <= 1e-6


def test_a_missing_argument_is_named():
    with pytest.raises(
        BadModel, match=r"Attributed.forward needs 'temperature', which data does not have"
    ):
        gg.NodeClassificationModel(build(Attributed), random_graph())


class TakesData(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GCNConv(FEATURES, CLASSES)

    def forward(self, data):
        return self.conv(data.x, data.edge_index), "and more"


def test_forward_says_how_to_call_anything_else():
    data = random_graph()
    with pytest.raises(BadModel, match="for example forward=lambda net, g: net"):
        gg.NodeClassificationModel(build(TakesData), data)
    net = build(TakesData)
    with pytest.raises(BadModel, match=r"the net returned a tuple"):
        gg.NodeClassificationModel(net, data, forward=lambda net, g: net(g)).pred_continuous([0])
    model = gg.NodeClassificationModel(net, data, forward=lambda net, g: net(g)[0])
    whole = net(data)[0].softmax(1)[:20]
    assert (model.pred_copies(model.computation_graphs(range(20))) - whole).abs().max() <= 1e-6
    assert model.record()["copies"] == "together"


def test_a_compiled_network_is_used_as_it_was_written():
    data = random_graph()
    net = build(Stack, GCNConv)
    model = gg.NodeClassificationModel(torch.compile(net), data)
    assert model.net is net
    assert model.pred_continuous([0]).equal(net(data.x, data.edge_index).softmax(1)[:1])


# --- links ----------------------------------------------------------------------------------------


def test_links_stored_and_absent_through_both_conventions():
    data = random_graph()
    stored, absent = tuple(data.edge_index[:, 0].tolist()), (59, 0)
    net = build(EncodeDecode)
    model = gg.LinkClassificationModel(net, data)
    z = net.encode(data.x, data.edge_index).detach()
    for pair in (stored, absent, stored[::-1]):
        prob = (z[pair[0]] * z[pair[1]]).sum().sigmoid()
        assert model.pred_continuous([pair])[0].tolist() == pytest.approx(
            [1 - float(prob), float(prob)], abs=1e-6
        )
    forward = build(LinkForward)
    expected = forward(data.x, data.edge_index, torch.tensor([stored, absent]).t()).softmax(1)
    assert (
        gg.LinkClassificationModel(forward, data).pred_continuous([stored, absent]) - expected
    ).abs().max() <= 1e-6


def test_a_network_that_cannot_be_asked_for_links_is_told_what_to_add():
    with pytest.raises(BadModel, match="takes no edge_label_index and it has no encode and decode"):
        gg.LinkClassificationModel(build(Stack, GCNConv), random_graph())
    net = build(Stack, GCNConv, out=HIDDEN)

    def forward(net, g):
        z = net(g.x, g.edge_index)
        return (z[g.edge_label_index[0]] * z[g.edge_label_index[1]]).sum(1)

    model = gg.LinkRegressionModel(net, random_graph(), forward=forward)
    batch = model.computation_graphs([(0, 5), (59, 2)])
    assert (model.pred_copies(batch) - model.pred_continuous([(0, 5), (59, 2)])).abs().max() <= 1e-5


def test_encoding_happens_once_for_all_links():
    class Counting(EncodeDecode):
        calls: list = []

        def encode(self, x, edge_index):
            Counting.calls.append(len(x))
            return super().encode(x, edge_index)

    model = gg.LinkClassificationModel(build(Counting), random_graph())
    model.pred_continuous([(0, 1)])
    before = len(Counting.calls)
    model.pred_continuous([(node, 59) for node in range(50)])
    assert len(Counting.calls) == before


def test_the_population_of_links_is_the_stored_ones_and_as_many_others():
    data = random_graph()
    pairs = gg.LinkClassificationModel(build(EncodeDecode), data).population()
    stored = [tuple(pair) for pair in data.edge_index.t().tolist() if pair[0] != pair[1]]
    assert [tuple(pair) for pair in pairs[: len(stored)].tolist()] == stored
    absent = {tuple(pair) for pair in pairs[len(stored) :].tolist()}
    assert len(absent) == len(stored)
    assert not absent & set(stored)
    assert all(one != other for one, other in absent)


def test_a_complete_graph_has_no_absent_links_and_two_nodes_suffice():
    data = Data(
        x=torch.rand(3, FEATURES), edge_index=torch.tensor([[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]])
    )
    assert len(gg.LinkClassificationModel(build(EncodeDecode), data).population()) == 6
    lone = Data(x=torch.rand(2, FEATURES), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    model = gg.LinkClassificationModel(build(EncodeDecode), lone, output="logits")
    assert sorted(model.population().tolist()) == [[0, 1], [1, 0]]
    assert model.pred_continuous([(0, 1)]).shape == (1, 2)
    single = Data(x=torch.rand(1, FEATURES), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    with pytest.raises(BadGraph, match="link targets need two nodes"):
        gg.LinkClassificationModel(build(EncodeDecode), single).population()


def test_absent_links_of_a_large_graph_are_drawn_not_listed():
    from graphgauge.models.non_edges import sample_non_edges

    stored = torch.randint(5000, (4000, 2), generator=torch.Generator().manual_seed(0))
    absent = sample_non_edges(stored, 5000, 4000)
    keys = (absent[:, 0] * 5000 + absent[:, 1]).tolist()
    assert len(set(keys)) == 4000
    assert not set(keys) & set((stored[:, 0] * 5000 + stored[:, 1]).tolist())
    assert (absent[:, 0] != absent[:, 1]).all()
    assert absent.equal(sample_non_edges(stored, 5000, 4000))


# --- graphs ---------------------------------------------------------------------------------------


def many_graphs(count=12, **options):
    return [random_graph(4 + seed, 6 + seed, seed=seed, **options) for seed in range(count)]


def test_each_graph_is_answered_as_if_it_were_alone():
    data, net = many_graphs(), build(Pooled)
    model = gg.GraphClassificationModel(net, data)
    expected = torch.cat([net(graph.x, graph.edge_index) for graph in data]).softmax(1)
    assert (model.pred_continuous(range(12)) - expected).abs().max() <= 1e-6
    batch = model.computation_graphs([3, 3, 7])
    assert (model.pred_copies(batch) - expected[[3, 3, 7]]).abs().max() <= 1e-6
    for graph, number in zip(batch, [3, 3, 7], strict=True):
        links = (data[number].edge_index[0] != data[number].edge_index[1]).nonzero().flatten()
        assert graph.target == number
        assert graph.nodes.tolist() == list(range(4 + number))
        assert graph.edges.tolist() == links.tolist()
        assert sorted(graph.all_edges.tolist()) == list(range(data[number].num_edges))
        assert graph.edge_index.equal(data[number].edge_index[:, graph.all_edges])
        assert graph.x.equal(data[number].x)
        assert graph.target_rows.tolist() == []


def test_a_graph_network_without_batch_runs_graph_by_graph():
    class Alone(Pooled):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index)

    data, net = many_graphs(), build(Alone)
    model = gg.GraphClassificationModel(net, data)
    expected = torch.cat([net(graph.x, graph.edge_index) for graph in data]).softmax(1)
    assert (model.pred_continuous(range(12)) - expected).abs().max() <= 1e-6
    assert model.record()["copies"] == "one by one"


def test_graph_attributes_come_one_row_per_graph():
    class Global(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.lin = GINConv(mlp(FEATURES, HIDDEN)), nn.Linear(HIDDEN + 2, 1)

        def forward(self, x, edge_index, batch, u):
            return self.lin(torch.cat([global_add_pool(self.conv(x, edge_index), batch), u], 1))

    data, net = many_graphs(), build(Global)
    for number, graph in enumerate(data):
        graph.u = torch.tensor([[float(number), 1.0]])
    model = gg.GraphRegressionModel(net, data)
    expected = torch.cat(
        [
            net(graph.x, graph.edge_index, torch.zeros(len(graph.x), dtype=torch.int64), graph.u)
            for graph in data
        ]
    )
    assert (model.pred_continuous(range(12)) - expected[:, 0]).abs().max() <= 1e-4
    data[3].u = torch.zeros(2, 2)
    with pytest.raises(BadGraph, match=r"data.u is neither per node nor per edge"):
        gg.GraphRegressionModel(net, data)


# --- hidden space ---------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", [GCNConv, GATConv, SAGEConv, lambda a, b: GINConv(mlp(a, b))])
def test_the_embedding_of_nodes_is_what_enters_the_last_layer(layer):
    data, net = random_graph(), build(Stack, layer)
    hidden = net.convs[0](data.x, data.edge_index).relu()
    assert gg.NodeClassificationModel(net, data).embed([4, 0]).equal(hidden[[4, 0]].detach())


def test_the_embedding_of_links():
    data, pairs = random_graph(), [(0, 5), (7, 2)]
    net = build(EncodeDecode)
    z = net.encode(data.x, data.edge_index)
    expected = torch.cat([z[[0, 7]], z[[5, 2]]], 1)
    assert gg.LinkClassificationModel(net, data).embed(pairs).equal(expected.detach())
    forward = build(LinkForward)
    z = forward.encoder(data.x, data.edge_index)
    model = gg.LinkClassificationModel(forward, data)
    assert model.embed(pairs).equal((z[[0, 7]] * z[[5, 2]]).detach())
    every = [(node, (node + 1) % 60) for node in range(60)]
    assert model.embed(every).shape == (60, HIDDEN)


def test_the_embedding_of_graphs_is_what_was_pooled():
    data, net = many_graphs(), build(Pooled)
    hidden = torch.stack([net.encoder(graph.x, graph.edge_index).mean(0) for graph in data])
    assert (
        gg.GraphClassificationModel(net, data).embed([5, 2]) - hidden[[5, 2]]
    ).abs().max() <= 1e-6


def test_an_embedding_can_be_given():
    data, table = random_graph(), torch.rand(60, 3)
    assert (
        gg.NodeClassificationModel(build(Stack, GCNConv), data, embedding=table)
        .embed([3])
        .equal(table[[3]])
    )
    model = gg.NodeClassificationModel(
        build(Stack, GCNConv), data, embedding=lambda net, g: g.x[:, :2]
    )
    assert model.embed([3]).equal(data.x[[3], :2])
    link = gg.LinkClassificationModel(build(EncodeDecode), data, embedding=table)
    assert link.embed([(1, 2)]).equal(torch.cat([table[1], table[2]])[None])
    link = gg.LinkClassificationModel(build(EncodeDecode), data, embedding=lambda net, g: g.x)
    assert link.embed([(1, 2)]).equal(torch.cat([data.x[1], data.x[2]])[None])
    graphs = many_graphs()
    assert (
        gg.GraphClassificationModel(build(Pooled), graphs, embedding=table[:12])
        .embed([4])
        .equal(table[[4]])
    )
    pooled = gg.GraphClassificationModel(
        build(Pooled), graphs, embedding=lambda net, g: global_add_pool(g.x, g.batch)
    )
    assert (
        pooled.embed([4, 1]) - torch.stack([graphs[4].x.sum(0), graphs[1].x.sum(0)])
    ).abs().max() <= 1e-5


def test_an_embedding_that_cannot_be_found_is_asked_for():
    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.conv = (
                nn.Parameter(torch.rand(FEATURES, CLASSES)),
                GCNConv(FEATURES, FEATURES),
            )
            self.conv.lin.weight.data = torch.eye(FEATURES)

        def forward(self, x, edge_index):
            return global_add_pool(self.conv(x, edge_index), None) @ self.weight

    with pytest.raises(
        BadModel, match=r"where 12 \(nodes\) were expected|Say what it is: embedding="
    ):
        gg.GraphClassificationModel(
            build(Bare), many_graphs(), forward=lambda net, g: net(g.x, g.edge_index)
        ).embed([0])
    with pytest.raises(BadModel, match="Say what it is: embedding="):
        gg.NodeClassificationModel(
            build(Stack, GCNConv), random_graph(), embedding=torch.rand(5, 2)
        ).embed([0])


# --- targets in all forms -------------------------------------------------------------------------


def test_targets_may_be_lists_tensors_arrays_and_ranges():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    expected = model.pred_continuous([0, 1, 2])
    arrays = [
        torch.arange(3),
        np.arange(3),
        torch.arange(3).int(),
        np.array([0, 1, 2], dtype=np.uint8),
    ]
    for targets in [range(3), (0, 1, 2), *arrays, [torch.tensor(0), np.int64(1), 2]]:
        assert model.pred_continuous(targets).equal(expected)
    links = gg.LinkClassificationModel(build(EncodeDecode), random_graph())
    expected = links.pred_continuous([(0, 1), (2, 3)])
    for targets in (
        [[0, 1], [2, 3]],
        torch.tensor([[0, 1], [2, 3]]),
        np.array([[0, 1], [2, 3]]),
        [torch.tensor([0, 1]), (2, 3)],
    ):
        assert links.pred_continuous(targets).equal(expected)


def test_no_targets_keep_the_number_of_columns():
    for model in (
        gg.NodeClassificationModel(build(Stack, GCNConv), random_graph()),
        gg.LinkClassificationModel(build(LinkForward), random_graph()),
        gg.GraphClassificationModel(build(Pooled), many_graphs()),
    ):
        batch = model.computation_graphs([])
        assert (
            model.pred_continuous([]).shape
            == model.pred_copies(batch).shape
            == (0, model.num_classes)
        )
        assert model.embed([]).shape[0] == 0
        assert model.embed([]).dim() == 2


def test_link_labels_and_lists_of_nodes_are_not_cut_along():
    from torch_geometric.transforms import RandomLinkSplit

    data = RandomLinkSplit(num_val=0.1, num_test=0.1)(random_graph(undirected=True))[0]
    net = build(Stack, GCNConv)
    model = gg.NodeClassificationModel(net, data, forward=lambda net, g: net(g.x, g.edge_index))
    assert (
        model.pred_copies(model.computation_graphs([0]))
        - net(data.x, data.edge_index).softmax(1)[:1]
    ).abs().max() <= 1e-6

    class Pairs(Stack):
        def forward(self, x, edge_index, face_index):
            return super().forward(x, edge_index)

    data.face_index = torch.zeros(2, 5, dtype=torch.int64)
    with pytest.raises(BadGraph, match=r"data.face_index lists nodes of the whole graph"):
        gg.NodeClassificationModel(build(Pairs, GCNConv), data)


def test_kinds_of_attributes_are_read_off_all_graphs():
    class Weighing(Pooled):
        def forward(self, x, edge_index, batch, weight, u):
            return super().forward(x * 1.0, edge_index, batch) + u + 0 * weight.sum()

    data = many_graphs()
    data[0] = random_graph(1, 1, seed=0)
    for graph in data:
        graph.weight, graph.u = torch.ones(graph.num_edges), torch.zeros(1, 3)
    data[1].edge_index = data[1].edge_index[:, : data[1].num_nodes]
    data[1].weight = torch.ones(data[1].num_edges)
    model = gg.GraphClassificationModel(build(Weighing), data)
    assert set(model.source.edge_attrs) == {"weight"}
    assert set(model.source.graph_attrs) == {"u"}


def test_one_node_with_one_feature():
    net = build(lambda: GCNConv(1, 2))
    data = Data(x=torch.ones(1, 1), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    model = gg.NodeClassificationModel(net, data)
    assert model.computation_graphs([0])[0].nodes.tolist() == [0]
