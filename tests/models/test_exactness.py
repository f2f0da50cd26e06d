"""The extracted graph is the model, for every layer of the list; and where it cannot be, the
fall-back is taken and said.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.literal_models import whole_graph_prediction
from support.small_networks import (
    CLASSES,
    FEATURES,
    HIDDEN,
    LAYERS,
    EncodeDecode,
    LinkForward,
    Propagated,
    Stack,
    build,
    graphs,
    random_graph,
)
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import (
    DirGNNConv,
    GATConv,
    GCN2Conv,
    GCNConv,
    GraphNorm,
    InstanceNorm,
    LayerNorm,
    MessagePassing,
    PairNorm,
    SAGEConv,
    SimpleConv,
)
from torch_geometric.utils import softmax, to_undirected

import graphgauge as gg
from graphgauge.core.errors import BadModel, OutOfMemory

CASES = [(name, depth) for name, (_, _, depths) in LAYERS.items() for depth in depths]
NUM_TARGETS = 200


def expected_rows(net, data, targets, level):
    """All predictions by the bare network on the whole graph."""
    with torch.no_grad():
        if level == "node":
            return net(data.x, data.edge_index).softmax(1)[targets]
        return torch.stack([whole_graph_prediction(net, data, target, level) for target in targets])


def assert_exact(model, net, data, targets, depth):
    batch = model.computation_graphs(targets)
    whole = expected_rows(net, data, targets, model.level)
    assert (model.pred_copies(batch) - whole).abs().max() <= 1e-5
    assert (model.pred_continuous(targets) - whole).abs().max() <= 1e-6
    assert model.hops == depth
    assert "whole graph" not in batch.notes()


@pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"])
@pytest.mark.parametrize(("name", "num_layers"), CASES)
def test_nodes_of_every_layer(name, num_layers, undirected):
    layer, depth, _ = LAYERS[name]
    data = random_graph(250, 400, seed=num_layers, undirected=undirected)
    net = build(Stack, layer, num_layers)
    assert_exact(
        gg.NodeClassificationModel(net, data),
        net,
        data,
        list(range(NUM_TARGETS)),
        depth * num_layers,
    )


def some_links(data):
    """A hundred stored links and a hundred absent ones."""
    stored = [tuple(pair) for pair in data.edge_index.t().tolist() if pair[0] != pair[1]][
        : NUM_TARGETS // 2
    ]
    absent = [(node, (7 * node + 3) % 250) for node in range(1, 1 + NUM_TARGETS // 2)]
    return stored + absent


@pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"])
@pytest.mark.parametrize("wrap", [EncodeDecode, LinkForward])
@pytest.mark.parametrize(("name", "num_layers"), CASES)
def test_links_of_every_layer(name, num_layers, wrap, undirected):
    layer, depth, _ = LAYERS[name]
    data = random_graph(250, 400, seed=num_layers, undirected=undirected)
    net = build(wrap, layer, num_layers)
    model = gg.LinkClassificationModel(net, data, output="logits")
    assert_exact(model, net, data, some_links(data), depth * num_layers)


class PropagatedLinks(EncodeDecode):
    def __init__(self):
        super().__init__()
        self.encoder = Propagated(out=HIDDEN)


@pytest.mark.parametrize("undirected", [False, True], ids=["directed", "undirected"])
def test_ten_steps_of_propagation(undirected):
    """The number of layers is not the number of hops."""
    data = random_graph(250, 300, undirected=undirected)
    net = build(Propagated)
    assert_exact(gg.NodeClassificationModel(net, data), net, data, list(range(NUM_TARGETS)), 10)
    links = build(PropagatedLinks)
    assert_exact(
        gg.LinkClassificationModel(links, data, output="logits"), links, data, some_links(data), 10
    )


@given(graphs(), st.sampled_from(sorted(LAYERS)), st.integers(0, 3))
def test_any_small_graph_in_double_precision(data, name, seed):
    layer, _, depths = LAYERS[name]
    net = build(Stack, layer, depths[0], seed=seed, dtype=torch.float64)
    targets = list(range(data.num_nodes))
    model = gg.NodeClassificationModel(net, data, output="logits")
    whole = expected_rows(net, data, targets, "node")
    assert (model.pred_copies(model.computation_graphs(targets)) - whole).abs().max() <= 1e-12


@given(graphs(), st.sampled_from([EncodeDecode, LinkForward]), st.data())
def test_any_link_of_any_small_graph(data, wrap, draw):
    if data.num_nodes < 2:
        return
    node = st.integers(0, data.num_nodes - 1)
    targets = draw.draw(
        st.lists(
            st.tuples(node, node).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=4
        )
    )
    net = build(wrap, GCNConv, dtype=torch.float64)
    model = gg.LinkClassificationModel(net, data, output="logits")
    whole = expected_rows(net, data, targets, "link")
    assert (model.pred_copies(model.computation_graphs(targets)) - whole).abs().max() <= 1e-12


# --- layers that look at more than their messages -------------------------------------------------


class Normed(nn.Module):
    """A norm that may be told which copy a node belongs to."""

    def __init__(self, norm):
        super().__init__()
        self.first, self.norm, self.second = (
            GCNConv(FEATURES, HIDDEN),
            norm,
            GCNConv(HIDDEN, CLASSES),
        )

    def forward(self, x, edge_index, batch=None):
        return self.second(self.norm(self.first(x, edge_index), batch).relu(), edge_index)


NORMS = {
    "GraphNorm": lambda: GraphNorm(HIDDEN),
    "PairNorm": lambda: PairNorm(),
    "LayerNorm": lambda: LayerNorm(HIDDEN, mode="graph"),
    "InstanceNorm": lambda: InstanceNorm(HIDDEN),
}


@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_a_norm_over_all_nodes_takes_the_whole_graph_and_runs_copies_one_by_one(norm):
    data = random_graph(60, 120)
    net = build(Stack, GCNConv, norm=norm())
    model = gg.NodeClassificationModel(net, data)
    batch = model.computation_graphs([0, 5, 9])
    assert batch.notes() == {"whole graph": 3}
    record = model.record()
    assert record.pop("edges_beyond_hops")["largest_change"] > 0
    assert record | {"mask": ""} == {
        "hops": 2,
        "propagations": 2,
        "flow": "source_to_target",
        "edge_scope": "messages",
        "halo": "whole graph",
        "copies": "one by one",
        "mask": "",
        "edge_scores": "every explainer",
    }
    whole = expected_rows(net, data, [0, 5, 9], "node")
    assert (model.pred_copies(batch) - whole).abs().max() <= 1e-6
    assert len(batch[1].all_nodes) == 60
    assert (
        batch[1].edges.tolist()
        == gg.NodeClassificationModel(build(Stack, GCNConv), data)
        .computation_graphs([5])[0]
        .edges.tolist()
    )


@pytest.mark.parametrize(
    "norm", [NORMS[name] for name in ("GraphNorm", "PairNorm", "InstanceNorm")]
)
def test_a_norm_that_is_told_the_copies_shares_calls(norm):
    data = random_graph(60, 120)
    net = build(Normed, norm())
    model = gg.NodeClassificationModel(net, data)
    batch = model.computation_graphs([0, 5, 9])
    assert model.record()["copies"] == "together with batch="
    assert batch.notes() == {"whole graph": 3}
    assert (
        model.pred_copies(batch) - expected_rows(net, data, [0, 5, 9], "node")
    ).abs().max() <= 1e-6


def test_a_norm_that_is_another_function_with_batch_runs_one_by_one():
    """PyG's graph-mode LayerNorm adds its epsilon outside the root without ``batch`` and inside
    with it.
    """
    model = gg.NodeClassificationModel(
        build(Normed, LayerNorm(HIDDEN, eps=0.01, mode="graph")), random_graph(60, 120)
    )
    assert model.record()["copies"] == "one by one"


def test_a_norm_against_the_flow_takes_the_whole_graph_too():
    data = random_graph(60, 120)
    net = build(Stack, lambda a, b: SAGEConv(a, b, flow="target_to_source"), norm=GraphNorm(HIDDEN))
    model = gg.NodeClassificationModel(net, data)
    batch = model.computation_graphs([0, 5])
    assert batch.notes() == {"whole graph": 2}
    assert (model.pred_copies(batch) - expected_rows(net, data, [0, 5], "node")).abs().max() <= 1e-6


def test_one_huge_logit_does_not_hide_that_copies_disturb_each_other():
    def masked(z):
        return torch.cat([z[:, :3], torch.full_like(z[:, :1], -1e9)], 1)

    model = gg.NodeClassificationModel(
        build(Stack, GCNConv, norm=PairNorm(), final=Function(masked)), random_graph(60, 120)
    )
    assert model.record()["copies"] == "one by one"


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("required", [True, False])
def test_the_batch_of_the_data_is_the_batch_of_the_net(required):
    """Two graphs stored as one, in a node task: the norm works within each."""

    class Required(Normed):
        def forward(self, x, edge_index, batch):
            return super().forward(x, edge_index, batch)

    data = Batch.from_data_list([random_graph(20, 40, seed=1), random_graph(25, 50, seed=2)])
    net = build(Required if required else Normed, GraphNorm(HIDDEN))
    whole = net(data.x, data.edge_index, data.batch).softmax(1)
    model = gg.NodeClassificationModel(net, data)
    assert (model.pred_continuous(range(45)) - whole).abs().max() <= 1e-6
    assert (
        model.pred_copies(model.computation_graphs([0, 30])) - whole[[0, 30]]
    ).abs().max() <= 1e-6
    single = random_graph()
    alone = gg.NodeClassificationModel(net, single)
    expected = net(single.x, single.edge_index, torch.zeros(60, dtype=torch.int64)).softmax(1)
    assert (alone.pred_continuous(range(60)) - expected).abs().max() <= 1e-6
    assert (alone.pred_copies(alone.computation_graphs([3])) - expected[[3]]).abs().max() <= 1e-6


def test_a_norm_per_node_needs_no_fall_back():
    model = gg.NodeClassificationModel(
        build(Stack, GCNConv, norm=LayerNorm(HIDDEN, mode="node")), random_graph()
    )
    assert model.record()["copies"] == "together"
    assert model.computation_graphs([3]).notes() == {"in": 1}


class Partner(nn.Module):
    """Looks at what lies beside its messages, but only where the first feature says so."""

    def __init__(self):
        super().__init__()
        self.conv = SAGEConv(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        out = self.conv(x, edge_index)
        return out + (x[:, :1] > 50) * x.mean() * torch.arange(CLASSES)


def test_only_the_targets_that_need_it_get_a_larger_halo():
    data = random_graph(80, 200)
    data.x[2, 0] = 100.0
    model = gg.NodeClassificationModel(build(Partner), data)
    batch = model.computation_graphs([0, 1, 2, 3])
    assert [graph.halo for graph in batch] == ["none", "none", "whole graph", "none"]
    assert (
        model.pred_copies(batch.take(torch.tensor([0, 1, 3]))) - model.pred_continuous([0, 1, 3])
    ).abs().max() <= 1e-6


def test_whole_graphs_beyond_the_memory_budget_are_refused_before_they_are_made():
    net = build(Stack, GCNConv, norm=GraphNorm(HIDDEN))
    model = gg.NodeClassificationModel(net, random_graph(200, 400), memory_budget="2MB")
    assert len(model.computation_graphs(list(range(3)))) == 3
    with pytest.raises(OutOfMemory, match="needs the whole graph for each target, and 200 copies"):
        model.computation_graphs(list(range(200)))


# --- depth ----------------------------------------------------------------------------------------


class Shared(nn.Module):
    """One layer called three times."""

    def __init__(self):
        super().__init__()
        self.conv, self.out = SAGEConv(FEATURES, FEATURES), nn.Linear(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        for _ in range(3):
            x = self.conv(x, edge_index).tanh()
        return self.out(x)


class Parallel(nn.Module):
    """Two layers side by side."""

    def __init__(self):
        super().__init__()
        self.one, self.other = SAGEConv(FEATURES, CLASSES), GATConv(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        return self.one(x, edge_index) + self.other(x, edge_index)


def test_a_layer_called_three_times_is_three_hops_deep():
    assert gg.NodeClassificationModel(build(Shared), random_graph()).hops == 3


def test_layers_side_by_side_are_one_hop_deep_as_their_gradients_show():
    model = gg.NodeClassificationModel(build(Parallel), random_graph())
    assert (model.record()["propagations"], model.hops) == (2, 1)
    assert max(graph.hops.max() for graph in model.computation_graphs(list(range(20)))) == 1


def test_num_hops_overrides_and_is_verified():
    data = random_graph()
    deeper = gg.NodeClassificationModel(build(Stack, SAGEConv), data, num_hops=3)
    assert deeper.hops == 3
    with pytest.warns(
        UserWarning,
        match="num_hops=1 was given, but the prediction depends on features further away",
    ):
        assert gg.NodeClassificationModel(build(Stack, SAGEConv), data, num_hops=1).hops == 1


def test_depth_does_not_depend_on_weights_or_features():
    """Dead activations and features that are all zero have no gradients, but the messages are
    there.
    """
    data = random_graph()
    data.x.zero_()
    net = build(Stack, lambda a, b: SAGEConv(a, b, bias=False))
    assert gg.NodeClassificationModel(net, data).hops == 2
    dead = build(Stack, SAGEConv)
    with torch.no_grad():
        dead.convs[0].lin_l.bias.fill_(-1e6)
    assert gg.NodeClassificationModel(dead, random_graph()).hops == 2


def test_layers_side_by_side_in_a_graph_of_diameter_one():
    pairs = [(u, v) for u in range(8) for v in range(8) if u != v]
    data = Data(x=torch.rand(8, FEATURES), edge_index=torch.tensor(pairs).t().contiguous())
    model = gg.NodeClassificationModel(build(Parallel), data)
    assert (model.hops, len(model.computation_graphs([0])[0].edges)) == (1, 7)


class Mixed(nn.Module):
    """One propagation by a layer, a second one by hand."""

    def __init__(self):
        super().__init__()
        self.conv, self.out = SAGEConv(FEATURES, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x, edge_index):
        hidden = self.conv(x, edge_index).tanh()
        return self.out(
            hidden + torch.zeros_like(hidden).index_add(0, edge_index[1], hidden[edge_index[0]])
        )


def test_propagation_outside_the_layers_is_noticed():
    data = random_graph(200, 400)
    net = build(Mixed)
    model = gg.NodeClassificationModel(net, data)
    assert (model.trace.chain, model.hops) == (1, 2)
    assert (
        model.pred_copies(model.computation_graphs(range(50)))
        - expected_rows(net, data, list(range(50)), "node")
    ).abs().max() <= 1e-6
    assert model.mask_support.startswith("refused: edges act outside the messages")


def path_to_node_0(num_nodes):
    """... -> 2 -> 1 -> 0: edge k goes from node k + 1 to node k."""
    source = torch.arange(1, num_nodes)
    x = torch.rand(num_nodes, FEATURES, generator=torch.Generator().manual_seed(1)) - 0.5
    return Data(x=x, edge_index=torch.stack([source, source - 1]))


def edges_that_matter(net, data):
    """By trying: without which single edges node 0 gets another output."""
    with torch.no_grad():
        kept = [torch.arange(data.num_edges) != edge for edge in range(data.num_edges)]
        rows = [net(data.x, data.edge_index[:, rest])[0] for rest in kept]
        return [
            edge
            for edge, row in enumerate(rows)
            if not torch.equal(row, net(data.x, data.edge_index)[0])
        ]


class WithoutGradient(Stack):
    """Gradients end on the way; the data does not."""

    def __init__(self, where):
        super().__init__(SAGEConv)
        self.where = where

    def forward(self, x, edge_index):
        x = {"compared": (x > 0).to(x), "detached": x.detach()}.get(self.where, x)
        with torch.set_grad_enabled(self.where != "no_grad"):
            hidden = self.convs[0](x, edge_index).relu()
        if self.where == "filled in":
            hidden = hidden.new_zeros(hidden.shape).index_copy_(
                0, torch.arange(len(hidden)), hidden.detach()
            )
        return self.convs[1](hidden.detach() if self.where == "hidden" else hidden, edge_index)


@pytest.mark.parametrize(
    "where", ["nowhere", "compared", "detached", "no_grad", "hidden", "filled in"]
)
@pytest.mark.parametrize("frozen", [False, True])
def test_depth_does_not_depend_on_gradients(where, frozen):
    net, data = build(WithoutGradient, where).requires_grad_(not frozen), path_to_node_0(6)
    model = gg.NodeClassificationModel(net, data, output="logits")
    assert model.hops == 2
    assert model.computation_graphs([0])[0].edges.tolist() == edges_that_matter(net, data) == [0, 1]


class ByHandWithoutGradient(Mixed):
    """Its second propagation is no layer's, and has no gradient in the features."""

    def forward(self, x, edge_index):
        return super().forward((x > 0).to(x), edge_index)


@pytest.mark.parametrize("make", [Mixed, ByHandWithoutGradient])
@pytest.mark.parametrize("num_nodes", [2, 3, 4, 8])
def test_depth_grows_on_graphs_that_end_where_the_network_looks(make, num_nodes):
    net, data = build(make), path_to_node_0(num_nodes)
    model = gg.NodeClassificationModel(net, data, output="logits")
    assert (
        model.computation_graphs([0])[0].edges.tolist()
        == edges_that_matter(net, data)
        == list(range(num_nodes - 1))[:2]
    )


class ThroughNumpy(Stack):
    """A step between the layers that torch does not compute."""

    def forward(self, x, edge_index):
        for conv in self.convs[:-1]:
            x = torch.from_numpy(conv(x, edge_index).tanh().detach().numpy())
        return self.convs[-1](x, edge_index)


@pytest.mark.parametrize("num_layers", [2, 3, 7])
def test_depth_is_found_where_the_data_cannot_be_followed(num_layers):
    net, data = build(ThroughNumpy, SAGEConv, num_layers), path_to_node_0(12)
    model = gg.NodeClassificationModel(net, data, output="logits")
    assert (model.trace.chain, model.hops) == (1, num_layers)
    assert (
        model.computation_graphs([0])[0].edges.tolist()
        == edges_that_matter(net, data)
        == list(range(num_layers))
    )


class Ensemble(nn.Module):
    """Two networks of two layers, run as one by `vmap`."""

    def __init__(self):
        super().__init__()
        self.first = nn.ModuleList([Stack(SAGEConv), Stack(SAGEConv)])

    def forward(self, x, edge_index):
        weights, buffers = torch.func.stack_module_state(list(self.first))

        def of_one(own, kept):
            return torch.func.functional_call(self.first[0], (own, kept), (x, edge_index))

        return torch.func.vmap(of_one)(weights, buffers).mean(0)


def test_depth_under_vmap():
    assert gg.NodeClassificationModel(build(Ensemble), path_to_node_0(6), output="logits").hops == 2


class NeedsEdges(Stack):
    """Cannot work without edges, and takes copies only one by one."""

    def forward(self, x, edge_index):
        return super().forward(x - x.mean(0) + 0 * edge_index.max(), edge_index)


def test_a_network_that_needs_edges_is_measured_without_masks():
    model = gg.NodeClassificationModel(build(NeedsEdges, SAGEConv), random_graph(), output="logits")
    assert model.joining == "one by one"
    assert model.mask_support.startswith("refused: the network cannot work without edges (")
    settings = {
        "trials": (4, 4),
        "twin_trials": 4,
        "sides": "features",
        "timed": 0,
        "stability": "none",
    }
    found = gg.Evaluator(model, **settings).compare(gg.RandomExplainer(), [0, 1])
    assert {row.metric.partition("_")[0] for row in found.rows if row.cell.status == "ok"} == {
        "feature",
        "time",
    }


class AllNodes(Mixed):
    """One propagation, and the mean over all nodes."""

    def forward(self, x, edge_index):
        hidden = self.conv(x, edge_index)
        return self.out(hidden - hidden.mean(0))


@pytest.mark.parametrize("num_nodes", [4, 8])
def test_a_network_that_mixes_all_nodes_is_no_deeper_for_that(num_nodes):
    model = gg.NodeClassificationModel(build(AllNodes), path_to_node_0(num_nodes), output="logits")
    assert (model.hops, model.record()["halo"]) == (1, "whole graph")


class Sparse(nn.Module):
    """Message passing without a MessagePassing layer."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        source, target = edge_index
        return self.lin(x).index_add(0, target, self.lin(x)[source])


def test_a_network_without_message_passing_layers_has_to_say_its_hops():
    data = random_graph()
    with pytest.raises(BadModel, match="Say it: num_hops=2"):
        gg.NodeClassificationModel(build(Sparse), data).computation_graphs([0])
    net = build(Sparse)
    model = gg.NodeClassificationModel(net, data, num_hops=1)
    batch = model.computation_graphs(list(range(20)))
    assert "whole graph" not in batch.notes()
    assert model.mask_support.startswith(
        "refused: edges act outside the messages of MessagePassing layers"
    )
    assert (
        model.pred_copies(batch) - expected_rows(net, data, list(range(20)), "node")
    ).abs().max() <= 1e-6


@pytest.mark.parametrize("flow", ["target_to_source", "both"])
def test_messages_that_flow_the_other_way_or_both_ways(flow):
    def layer(a, b):
        reverse = SAGEConv(a, b, flow="target_to_source")
        return reverse if flow == "target_to_source" else DirGNNConv(SAGEConv(a, b))

    data = random_graph(120, 200)
    net = build(Stack, layer)
    model = gg.NodeClassificationModel(net, data)
    batch = model.computation_graphs(list(range(100)))
    assert model.record()["flow"] == flow
    assert (model.hops, batch.notes()) == (2, {"none": 100})
    assert (
        model.pred_copies(batch) - expected_rows(net, data, list(range(100)), "node")
    ).abs().max() <= 1e-6


class HomeMade(MessagePassing):
    """A layer of the user's own that divides by the sender's out-degree."""

    def __init__(self, a, b):
        super().__init__(aggr="sum")
        self.lin = nn.Linear(a, b)

    def forward(self, x, edge_index):
        degree = torch.bincount(edge_index[0], minlength=len(x)).clamp(min=1).to(x)
        return self.propagate(edge_index, x=self.lin(x) / degree[:, None])


def test_an_unknown_layer_gets_edges_in_and_out():
    data = random_graph(120, 200)
    net = build(Stack, HomeMade)
    model = gg.NodeClassificationModel(net, data)
    batch = model.computation_graphs(list(range(100)))
    assert batch.notes() == {"in and out": 100}
    assert (
        model.pred_copies(batch) - expected_rows(net, data, list(range(100)), "node")
    ).abs().max() <= 1e-6


class Positional(nn.Module):
    """Keeps a number for each node by its position."""

    def __init__(self, num_nodes):
        super().__init__()
        self.offset, self.conv = (
            nn.Parameter(torch.randn(num_nodes, FEATURES)),
            SAGEConv(FEATURES, CLASSES),
        )

    def forward(self, x, edge_index):
        return self.conv(x + self.offset[: len(x)] if len(x) <= len(self.offset) else x, edge_index)


def test_a_network_that_depends_on_node_numbers_is_refused():
    with pytest.raises(
        BadModel, match="gives other predictions when nodes and edges are renumbered"
    ):
        gg.NodeClassificationModel(build(Positional, 60), random_graph()).computation_graphs([0])


def test_cached_normalisation_is_ignored_and_kept():
    """A cached layer ignores the graph that it is given."""
    data = random_graph()
    net = build(Stack, LAYERS["GCN cached"][0])
    net(data.x, data.edge_index)
    cache = net.convs[0]._cached_edge_index
    model = gg.NodeClassificationModel(net, data)
    batch = model.computation_graphs(list(range(20)))
    gone = model.pred_copies(
        batch,
        edit=lambda union: union.without_edges(torch.ones_like(union.edge_at, dtype=torch.bool)),
    )
    alone = build(Stack, GCNConv)(data.x, data.edge_index[:, :0]).softmax(1)[:20]
    assert (gone - alone).abs().max() <= 1e-6
    assert net.convs[0]._cached_edge_index is cache
    assert net.convs[0].cached is True


# --- targets with little around them --------------------------------------------------------------


def test_an_isolated_target_has_itself_and_no_edges():
    data = random_graph(60, 100)
    model = gg.NodeClassificationModel(build(Stack, GCNConv), data)
    graph = model.computation_graphs([59])[0]
    assert (graph.nodes.tolist(), graph.edges.tolist(), graph.hops.tolist()) == ([59], [], [0])


def test_parameter_free_propagation_needs_no_weights():
    data = random_graph(60, 100)
    net = nn.Module()
    net.conv = SimpleConv(aggr="mean")
    model = gg.NodeClassificationModel(
        net, data, forward=lambda net, g: net.conv(g.x, g.edge_index)
    )
    assert (model.hops, model.computation_graphs([1]).notes()) == (1, {"in and out": 1})


# --- networks that are easily misread -------------------------------------------------------------


class InPlace(nn.Module):
    """GCNII goes on in place behind its propagations; so does the ReLU."""

    def __init__(self):
        super().__init__()
        self.lin, self.out, self.act = (
            nn.Linear(FEATURES, HIDDEN),
            nn.Linear(HIDDEN, CLASSES),
            nn.ReLU(inplace=True),
        )
        self.convs = nn.ModuleList(GCN2Conv(HIDDEN, 0.1, 0.5, layer + 1) for layer in range(3))

    def forward(self, x, edge_index):
        hidden = first = self.lin(x).relu()
        for conv in self.convs:
            hidden = self.act(conv(hidden, first, edge_index))
        return self.out(hidden)


def test_layers_that_go_on_in_place():
    data = random_graph(120, 200)
    net = build(InPlace)
    assert_exact(gg.NodeClassificationModel(net, data), net, data, list(range(100)), 3)


class SenderSoftmax(MessagePassing):
    """Each sender shares its attention among all receivers, wherever they are."""

    def __init__(self, a, b):
        super().__init__(aggr="sum")
        self.lin, self.att = nn.Linear(a, b), nn.Linear(b, 1)

    def forward(self, x, edge_index):
        hidden = self.lin(x)
        weight = softmax(self.att(hidden)[edge_index[1], 0], edge_index[0], num_nodes=len(x))
        return self.propagate(edge_index, x=hidden, weight=weight)

    def message(self, x_j, weight):
        return x_j * weight[:, None]


class Undirected(nn.Module):
    """Merges duplicates of edges inside forward."""

    def __init__(self):
        super().__init__()
        self.one, self.two = GCNConv(FEATURES, HIDDEN), GCNConv(HIDDEN, CLASSES)

    def forward(self, x, edge_index):
        edge_index = to_undirected(edge_index, num_nodes=len(x))
        return self.two(self.one(x, edge_index).relu(), edge_index)


class Gated(nn.Module):
    """Looks at a node's degree only where its first feature is positive."""

    def __init__(self):
        super().__init__()
        self.one, self.two = SAGEConv(FEATURES, HIDDEN), SAGEConv(HIDDEN, CLASSES)

    def forward(self, x, edge_index):
        degree = torch.bincount(edge_index[1], minlength=len(x)).to(x)
        x = x * (1 + (x[:, :1] > 0) * degree[:, None])
        return self.two(self.one(x, edge_index).relu(), edge_index)


@pytest.mark.parametrize("hide", ["constant", "zero", "negative"])
@pytest.mark.parametrize(
    "make", [lambda: build(Stack, SenderSoftmax), lambda: build(Undirected), lambda: build(Gated)]
)
def test_features_that_hide_a_difference_do_not_hide_it_from_the_trial(make, hide):
    """The unedited prediction would pass with a smaller halo; edited copies follow the whole graph
    only with the right one.
    """
    data = random_graph(200, 400, dtype=torch.float64)
    data.x = {
        "constant": torch.ones_like(data.x),
        "zero": torch.zeros_like(data.x),
        "negative": -data.x.abs(),
    }[hide]
    net = make().double()
    model = gg.NodeClassificationModel(net, data)
    batch = model.computation_graphs(range(20))
    changed = torch.randn(
        data.x.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )

    def edit(union):
        return union.with_x(
            union.x.index_copy(0, union.node_at, changed[batch.node[union.node_row]])
        )

    whole = net(changed, data.edge_index).softmax(1)[:20]
    assert (model.pred_copies(batch, edit=edit) - whole).abs().max() <= 1e-9


class Centred(EncodeDecode):
    """Compares the asked links with each other."""

    def decode(self, z, edge_label_index):
        score = super().decode(z, edge_label_index)
        return score - score.mean()


def test_links_that_depend_on_the_other_questions_are_refused():
    with pytest.raises(BadModel, match="answers a link differently when others are asked with it"):
        gg.LinkClassificationModel(build(Centred), random_graph(), output="logits").pred_continuous(
            [(0, 1)]
        )


class SparseProduct(nn.Module):
    """A sparse matrix product inside forward."""

    def __init__(self):
        super().__init__()
        self.conv = SAGEConv(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        values = torch.ones(edge_index.size(1), dtype=x.dtype)
        matrix = torch.sparse_coo_tensor(
            edge_index.flip(0), values, (len(x), len(x)), check_invariants=False
        )
        return self.conv(x, edge_index) + torch.sparse.mm(matrix.coalesce(), x)[:, :CLASSES]


def test_sparse_tensors_inside_do_not_keep_copies_apart():
    data = random_graph(120, 200)
    net = build(SparseProduct)
    model = gg.NodeClassificationModel(net, data)
    assert model.record()["copies"] == "together"
    assert (
        model.pred_copies(model.computation_graphs(range(50)))
        - expected_rows(net, data, list(range(50)), "node")
    ).abs().max() <= 1e-5


@pytest.mark.parametrize(
    "surrounded",
    [torch.inference_mode, torch.no_grad, lambda: torch.autocast("cpu", dtype=torch.bfloat16)],
)
def test_what_surrounds_a_call_does_not_matter(surrounded):
    data, net = random_graph(), build(Parallel)
    with surrounded():
        model = gg.NodeClassificationModel(net, data)
        inside = model.pred_continuous(range(60))
        assert model.hops == 1
    assert inside.dtype == torch.float32
    assert inside.equal(
        gg.NodeClassificationModel(build(Parallel), data).pred_continuous(range(60))
    )
