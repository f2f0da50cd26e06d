"""Disjoint unions: assembled as defined, the same bits however they are cut, edits that do what
they say.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.small_networks import (
    FEATURES,
    LAYERS,
    EncodeDecode,
    LinkForward,
    Pooled,
    Stack,
    build,
    graphs,
    random_graph,
)
from torch import nn
from torch_geometric.nn import CGConv, EdgeConv, EGConv, GATConv, GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.execution.aligned_layout import AlignedLayout
from graphgauge.execution.disjoint_union import build_batch
from graphgauge.execution.graph_copies import GraphCopies
from graphgauge.subgraphs.extraction import Extractor
from graphgauge.subgraphs.input_data import read_single_graph

SMOOTH = nn.Sequential(nn.ELU(), nn.Linear(4, 5), nn.Sigmoid(), nn.Linear(5, 3), nn.Softplus())


def weighted(data, seed=0):
    """The graph with a node, an edge and a graph attribute more."""
    random = torch.Generator().manual_seed(seed)
    data.edge_weight = torch.rand(data.num_edges, generator=random, dtype=data.x.dtype)
    data.mark = torch.randint(9, (data.num_nodes,), generator=random)
    return data


@given(
    graphs(),
    st.lists(st.integers(0, 4), min_size=1, max_size=7),
    st.sampled_from([1, 16]),
    st.booleans(),
)
def test_a_union_holds_each_copy_as_it_is(data, picks, align, drop):
    source = read_single_graph(weighted(data), {"edge_weight", "mark"})
    batch = Extractor(source).extract(torch.arange(min(5, data.num_nodes))[:, None], 2, 1)
    of = torch.tensor(picks) % len(batch)
    union = build_batch(batch, of, torch.arange(len(of)), align)
    gone = torch.zeros(union.num_edges, dtype=torch.bool)
    if drop:
        gone = torch.rand(union.num_edges, generator=torch.Generator().manual_seed(1)) < 0.4
        union = union.without_edges(gone)
    first = 0
    for k, number in enumerate(of.tolist()):
        graph = batch[number]
        rows = union.node_at[union.node_copy == k]
        assert rows.tolist() == list(range(int(rows[0]), int(rows[0]) + len(graph.all_nodes)))
        assert rows[0] % align == 0
        assert union.x[rows].equal(graph.x)
        assert union.node_attrs["mark"][rows].equal(data.mark[graph.all_nodes])
        kept = ~gone[first : first + len(graph.all_edges)]
        columns = union.edge_at[union.edge_copy == k]
        assert len(columns) == kept.sum()
        assert (columns[:1] % align == 0).all()
        assert (union.edge_index[:, columns] - rows[0]).equal(graph.edge_index[:, kept])
        assert union.edge_attrs["edge_weight"][columns].equal(
            data.edge_weight[graph.all_edges[kept]]
        )
        assert (
            union.edge_position[union.edge_copy == k].tolist() == kept.nonzero().flatten().tolist()
        )
        assert union.target_rows[k].tolist() == (graph.target_rows + rows[0]).tolist()
        first += len(graph.all_edges)
    filling = torch.ones(len(union.x), dtype=torch.bool)
    filling[union.node_at] = False
    assert union.x[filling].eq(0).all()
    others = torch.ones(union.edge_index.size(1), dtype=torch.bool)
    others[union.edge_at] = False
    assert filling[union.edge_index[:, others]].all()
    if align == 1:
        assert not filling.any()
        assert not others.any()
    else:
        assert len(union.x) % 64 == 0
        assert union.edge_index.size(1) % 64 == 0
        assert filling.sum() >= 2


@given(st.lists(st.integers(0, 40), max_size=6), st.sampled_from([1, 16]))
def test_runs_are_laid_out_without_overlap(counts, align):
    layout = AlignedLayout.from_counts(torch.tensor(counts, dtype=torch.int64), align, spare=2)
    ends = [start + count for start, count in zip(layout.start.tolist(), counts, strict=True)]
    assert all(end <= start for end, start in zip(ends, layout.start.tolist()[1:], strict=False))
    assert all(start % align == 0 for start in layout.start.tolist())
    assert layout.size == sum(counts) if align == 1 else layout.size >= max([*ends, 0]) + 2


# --- the same bits however a union is cut ---------------------------------------------------------


def assert_same_bits(model, targets, sizes=range(1, 71)):
    """Raw rows of 70 copies, cut into unions of every size from 1 to 70."""
    batch = model.computation_graphs(targets)
    every = torch.arange(len(batch))
    with model.session(), torch.no_grad():
        engine = model.executor
        engine.joining = model.joining
        whole = engine.outputs(engine.union(GraphCopies(batch, every), 0, len(batch)))
        for size in sizes:
            cuts = [(start, min(start + size, len(batch))) for start in range(0, len(batch), size)]
            rows = torch.cat(
                [engine.outputs(engine.union(GraphCopies(batch, every), *cut)) for cut in cuts]
            )
            assert rows.equal(whole), (
                f"unions of {size} copies differ by {(rows - whole).abs().max():.1e}"
            )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LAYERS)
def test_any_chunking_of_node_targets_gives_the_same_bits(name, dtype):
    layer, _, depths = LAYERS[name]
    net = build(Stack, layer, depths[-1], dtype=dtype, final=SMOOTH)
    data = random_graph(150, 300, dtype=dtype)
    assert_same_bits(gg.NodeClassificationModel(net, data, output="logits"), list(range(70)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("net", [EncodeDecode, LinkForward])
def test_any_chunking_of_link_targets_gives_the_same_bits(net, dtype):
    model = gg.LinkClassificationModel(
        build(net, dtype=dtype), random_graph(150, 300, dtype=dtype), output="logits"
    )
    assert_same_bits(model, [(node, node + 71) for node in range(70)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_chunking_of_graph_targets_gives_the_same_bits(dtype):
    data = [random_graph(3 + seed % 11, 5 + seed, seed=seed, dtype=dtype) for seed in range(70)]
    assert_same_bits(gg.GraphClassificationModel(build(Pooled, dtype=dtype), data), list(range(70)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "layer",
    [lambda a, b: EdgeConv(nn.Linear(2 * a, b)), lambda a, b: CGConv(a, dim=0)],
    ids=["EdgeConv", "CGConv"],
)
def test_layers_that_compute_on_edges_give_the_same_bits(layer, dtype):
    net = build(Stack, layer, 1, dtype=dtype)
    data = random_graph(150, 300, dtype=dtype)
    assert_same_bits(gg.NodeClassificationModel(net, data, output="logits"), list(range(70)))


class EdgeAware(nn.Module):
    """Attention over edge attributes; drops stored self-loops, then multiplies a matrix with each
    edge's row.
    """

    def __init__(self):
        super().__init__()
        self.conv = GATConv(FEATURES, 7, edge_dim=5)

    def forward(self, x, edge_index, edge_attr):
        return self.conv(x, edge_index, edge_attr)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_stored_loops_that_a_layer_drops_shift_no_other_edge(dtype):
    data = random_graph(150, 500, dtype=dtype)
    data.edge_attr = torch.rand(
        data.num_edges, 5, dtype=dtype, generator=torch.Generator().manual_seed(0)
    )
    assert_same_bits(
        gg.NodeClassificationModel(build(EdgeAware, dtype=dtype), data), list(range(70))
    )


@pytest.mark.parametrize("layer", [GCNConv, GATConv, SAGEConv])
def test_two_threads_give_the_same_bits_in_small_and_large_unions(layer, two_threads):
    """Large enough that torch really splits the work: 70 copies of about 250 nodes."""
    net = build(Stack, layer, 3, final=SMOOTH)
    model = gg.NodeClassificationModel(net, random_graph(400, 1600), output="logits")
    assert_same_bits(model, list(range(70)), sizes=(1, 2, 7, 33, 70))


@pytest.mark.parametrize("budget", ["1MB", "100kB", "10kB", "1B", None])
def test_the_memory_budget_does_not_change_a_bit(budget):
    net, data = build(Stack, GATConv), random_graph(300, 600)
    expected = gg.NodeClassificationModel(net, data)
    model = gg.NodeClassificationModel(net, data, memory_budget=budget)
    targets = list(range(100))
    batch, of = model.computation_graphs(targets), torch.arange(500) % 100

    def edit(union):
        generator = torch.Generator().manual_seed(0)
        factor = torch.rand(500, generator=generator)[union.copy]
        return union.with_mask(factor[union.edge_copy])

    assert model.pred_copies(batch, of, edit).equal(
        expected.pred_copies(expected.computation_graphs(targets), of, edit)
    )


# --- edits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", [GCNConv, GATConv, SAGEConv])
def test_dropped_edges_are_gone_from_the_whole_graph_too(layer):
    data = random_graph(60, 150, dtype=torch.float64)
    net = build(Stack, layer, dtype=torch.float64)
    model = gg.NodeClassificationModel(net, data)
    batch = model.computation_graphs([2, 3, 5])
    of = torch.tensor([0, 1, 2, 0, 1])
    gone = [batch[i].edges[:n] for i, n in zip(of.tolist(), [1, 2, 3, 4, 0], strict=True)]
    count = torch.tensor([1, 2, 3, 4, 0])
    pred = model.pred_copies(
        batch,
        of,
        lambda union: union.without_edges(union.edge_position < count[union.copy][union.edge_copy]),
    )
    for row, number, edges in zip(pred, of.tolist(), gone, strict=True):
        kept = torch.ones(data.num_edges, dtype=torch.bool)
        kept[edges] = False
        whole = net(data.x, data.edge_index[:, kept]).softmax(1)[batch[number].target]
        assert (row - whole).abs().max() <= 1e-12


def test_changed_features_are_the_features_of_the_whole_graph():
    data = random_graph(60, 150, dtype=torch.float64)
    net = build(Stack, GCNConv, dtype=torch.float64)
    model = gg.NodeClassificationModel(net, data)
    batch = model.computation_graphs([2, 3])

    def edit(union):
        x = union.x.clone()
        x[union.target_rows[:, 0], 1] = 7.0
        return union.with_x(x)

    pred = model.pred_copies(batch, edit=edit)
    for row, target in zip(pred, [2, 3], strict=True):
        x = data.x.clone()
        x[target, 1] = 7.0
        assert (row - net(x, data.edge_index).softmax(1)[target]).abs().max() <= 1e-12


@pytest.mark.parametrize(
    "layer", [GCNConv, GATConv, lambda a, b: GATConv(a, b, heads=3, concat=False), SAGEConv]
)
@pytest.mark.parametrize("loops", ["some", "all", "none"])
def test_masked_messages_equal_pygs_own_mask_wherever_pyg_aligns_it(layer, loops):
    from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

    data = random_graph(40, 90, dtype=torch.float64)
    is_link = data.edge_index[0] != data.edge_index[1]
    links = data.edge_index[:, is_link]
    every = torch.arange(40).repeat(2, 1)
    data.edge_index = {
        "some": torch.cat([links, every[:, :9]], 1),
        "all": torch.cat([every, links], 1),
        "none": links,
    }[loops]
    net = build(Stack, layer, dtype=torch.float64)
    factor = torch.rand(
        data.num_edges, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    factor[data.edge_index[0] == data.edge_index[1]] = 1.0
    model = gg.NodeClassificationModel(net, data)
    batch = model.computation_graphs(list(range(40)))
    pred = model.pred_copies(
        batch, edit=lambda union: union.with_mask(factor[batch.edge[union.edge_row]])
    )
    # PyG aligns a mask by the number of messages, which misleads it where every node stores a loop:
    # give it the links alone
    bare, order = (
        (data.edge_index, factor)
        if loops == "none" or layer is SAGEConv
        else (links, factor[data.edge_index[0] != data.edge_index[1]])
    )
    reference = build(Stack, layer, dtype=torch.float64)
    set_masks(reference, order, bare, apply_sigmoid=False)
    expected = reference(data.x, bare).softmax(1)
    clear_masks(reference)
    assert (pred - expected).abs().max() <= 1e-12


def test_masking_is_probed_once_and_said():
    data = random_graph()
    assert gg.NodeClassificationModel(build(Stack, GATConv), data).mask_support == "exact"
    by_max = gg.NodeClassificationModel(build(Stack, LAYERS["SAGE max"][0]), data)
    assert (
        by_max.mask_support
        == "doubtful: a silenced message can win in SAGEConv(aggr='max'); use drop"
    )
    egc = build(
        EGConv, FEATURES, 4, aggregators=["max"], num_heads=2, num_bases=2, add_self_loops=False
    )
    own = gg.NodeClassificationModel(egc, data)
    assert own.mask_support.startswith("doubtful: a silenced message can win in EGConv")


def test_a_layer_that_reroutes_its_messages_cannot_be_masked():
    from torch_geometric.nn import RGCNConv

    from graphgauge.core.errors import BadModel

    data = random_graph()
    data.edge_type = torch.arange(data.num_edges) % 3

    class Relational(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = RGCNConv(FEATURES, 4, 3)

        def forward(self, x, edge_index, edge_type):
            both = torch.cat([edge_index, edge_index.flip(0)], 1)
            return self.conv(x, both, edge_type.repeat(2))

    net = build(Relational)
    model = gg.NodeClassificationModel(net, data)
    batch = model.computation_graphs(list(range(30)))
    assert (model.hops, model.record()["propagations"], batch.notes()) == (1, 3, {"none": 30})
    assert (
        model.pred_copies(batch) - net(data.x, data.edge_index, data.edge_type).softmax(1)[:30]
    ).abs().max() <= 1e-6
    assert model.mask_support.startswith("refused: edges cannot be masked in RGCNConv")
    with pytest.raises(BadModel, match="Use edge_removal='drop'"):
        model.pred_copies(batch, edit=lambda union: union.with_mask(torch.ones(union.num_edges)))


def test_gradients_flow_through_a_union_to_each_copy():
    data = random_graph(60, 150, dtype=torch.float64)
    net = build(Stack, GATConv, dtype=torch.float64)
    model = gg.NodeClassificationModel(net, data)
    batch = model.computation_graphs([4, 9])

    def edge_gradient(union):
        factor = torch.ones(union.num_edges, dtype=torch.float64, requires_grad=True)
        prob = model.interpret(model.executor.outputs(union.with_mask(factor)))
        (grad,) = torch.autograd.grad(prob[:, 0].sum(), factor)
        return torch.zeros(len(union), 99, dtype=torch.float64).index_put(
            (union.edge_copy, union.edge_position), grad
        )

    slopes, step = model.map(edge_gradient, batch, kind="gradient"), 1e-6
    for k, graph in enumerate(batch):
        for e in range(len(graph.edges)):
            up, down = (
                model.pred_copies(
                    batch,
                    edit=lambda union, e=e, s=s: union.with_mask(
                        1.0 + s * (union.edge_position == e).double()
                    ),
                )[k, 0]
                for s in (step, -step)
            )
            assert slopes[k, e].item() == pytest.approx(float(up - down) / (2 * step), abs=1e-8)
    assert len(batch[0].edges) > 0


def test_unions_and_batches_are_shown_in_a_line():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    batch, seen = model.computation_graphs([3, 4]), []
    model.pred_copies(batch, edit=lambda union: (seen.append(repr(union)), union)[1])
    assert seen[-1].startswith("GraphBatch(2 copies, ")
    assert repr(batch).startswith("ComputationGraphs(2 graphs, ")
    assert repr(model.source) == "Graphs(1 graphs, 60 nodes, 164 edges)"


def test_graphs_of_another_model_are_refused():
    from graphgauge.core.errors import BadTarget

    one, other = (
        gg.NodeClassificationModel(build(Stack, GCNConv), random_graph(seed=seed))
        for seed in (1, 2)
    )
    with pytest.raises(BadTarget, match="were cut by another model"):
        one.pred_copies(other.computation_graphs([0]))


def test_a_union_of_the_same_graphs_is_put_together_once():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph(30, 80))
    copies = GraphCopies(model.computation_graphs([0, 5]), torch.tensor([0, 1, 0, 1, 1, 1]))
    first, second, third = (copies.union(start, start + 2, 1) for start in (0, 2, 4))
    assert second.edge_index is first.edge_index
    assert second.copy.tolist() == [2, 3]
    assert third.edge_index is not first.edge_index
    changed = second.without_edges(second.edge_position == 0)
    assert changed.num_edges == first.num_edges - 2
    assert copies.union(4, 6, 16).align == 16
