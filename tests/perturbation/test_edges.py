"""Deletion curves of edges, against one forward pass per point over the whole graph."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from zoo import EncodeDecode, Pooled, Stack, build, graphs, random_graph

import graphgauge as gg
from graphgauge.core.errors import BadModel, BadSetting
from graphgauge.core.seeds import derive_seed, generator
from graphgauge.models.masking import masked_messages
from graphgauge.perturbation import edge_curves, random_steps, steps_by_score

LAYERS = {"GCN": GCNConv, "GAT": GATConv, "SAGE": SAGEConv}


def literal_curve(net, data, ask, edges, order, length, removal):
    """RemoveEdge one by one from the whole graph, and one forward pass after each."""
    gone, rows = [], []
    for position in order[:length]:
        gone.append(int(edges[position]))
        kept = torch.ones(data.num_edges, dtype=torch.bool)
        kept[gone] = False
        with torch.no_grad():
            if removal == "drop":
                rows.append(ask(net, data.x, data.edge_index[:, kept]))
            else:
                with masked_messages(net, data.edge_index, kept.double()):
                    rows.append(ask(net, data.x, data.edge_index))
    return torch.stack(rows)


def order_of(steps, graph):
    """Positions of a graph's relevant edges in the order of their steps."""
    own = steps[graph.edge_slice][: len(graph.edges)].tolist()
    return sorted(range(len(own)), key=own.__getitem__)


@pytest.mark.parametrize("removal", ["mask", "drop"])
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("scope", ["messages", "induced"])
@settings(max_examples=15)
@given(data=graphs(), draw=st.data())
def test_edge_deletion_curves_are_one_forward_pass_per_point(layer, removal, scope, data, draw):
    net = build(Stack, layer, dtype=torch.float64)
    model = gg.NodeClassificationModel(net, data, output="logits", edge_scope=scope)
    batch = model.computation_graphs(draw.draw(st.lists(st.integers(0, data.num_nodes - 1), min_size=1, max_size=4)))
    length = torch.tensor([draw.draw(st.integers(0, int(count))) for count in batch.num_edges])
    steps = random_steps(batch, 3, list(range(len(batch))))
    curves = edge_curves(model, batch, steps, length, removal)
    for k, graph in enumerate(batch):
        for number in range(3 if length[k] else 0):
            ask = lambda net, x, e, t=graph.target: net(x, e)[t].softmax(0)  # noqa: E731
            wanted = literal_curve(net, data, ask, graph.edges, order_of(steps[number], graph), int(length[k]), removal)
            assert (curves[k, number, : length[k]] - wanted).abs().max() <= 1e-12
        assert curves[k, :, length[k] :].isnan().all()


@pytest.mark.parametrize("removal", ["mask", "drop"])
def test_curves_of_links_and_graphs_are_too(removal):
    data = random_graph(30, 60, dtype=torch.float64)
    net = build(EncodeDecode, dtype=torch.float64)
    model = gg.LinkClassificationModel(net, data, output="logits")
    batch = model.computation_graphs([(0, 5), (7, 3)])
    length, steps = batch.num_edges.clamp(max=12), random_steps(batch, 2, [0, 1])
    curves = edge_curves(model, batch, steps, length, removal)
    for k, graph in enumerate(batch):
        pair = torch.tensor([graph.target]).t()
        ask = lambda net, x, e, pair=pair: net.decode(net.encode(x, e), pair)[0].sigmoid()  # noqa: E731
        wanted = literal_curve(net, data, ask, graph.edges, order_of(steps[1], graph), int(length[k]), removal)
        assert (curves[k, 1, : length[k], 1] - wanted).abs().max() <= 1e-12
    many = [random_graph(5 + seed, 9, seed=seed, dtype=torch.float64) for seed in range(3)]
    net = build(Pooled, dtype=torch.float64)
    model = gg.GraphClassificationModel(net, many)
    batch = model.computation_graphs(range(3))
    steps = random_steps(batch, 1, [0, 1, 2])
    curves = edge_curves(model, batch, steps, batch.num_edges, removal)
    for k, (graph, whole) in enumerate(zip(batch, many, strict=True)):
        ask = lambda net, x, e: net(x, e)[0].softmax(0)  # noqa: E731
        wanted = literal_curve(net, whole, ask, graph.edges, order_of(steps[0], graph), len(graph.edges), removal)
        assert (curves[k, 0, : len(graph.edges)] - wanted).abs().max() <= 1e-12


def test_scores_sort_descending_and_signed_with_ties_drawn_from_the_seed():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    batch = model.computation_graphs([3, 8, 30])
    score = torch.randint(-2, 3, (len(batch.edge),), generator=generator(0)).float()
    steps = steps_by_score(score, batch, [5, 6, 7])
    for graph, seed in zip(batch, [5, 6, 7], strict=True):
        own = score[graph.edge_slice][: len(graph.edges)].tolist()
        ties = torch.rand(len(own), generator=generator(derive_seed(seed, "ties")), dtype=torch.float64).tolist()
        assert order_of(steps, graph) == sorted(range(len(own)), key=lambda e: (-own[e], ties[e]))
        assert sorted(steps[graph.edge_slice][: len(graph.edges)].tolist()) == list(range(1, len(own) + 1))
        assert (steps[graph.edge_slice][len(graph.edges) :] == 0).all()


def test_random_orders_do_not_depend_on_the_batch_and_are_uniform():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    both, alone = model.computation_graphs([3, 21]), model.computation_graphs([21])
    there, here = random_steps(both, 200, [1, 2]), random_steps(alone, 200, [2])
    assert torch.equal(there[:, both[1].edge_slice], here)
    own = here[:, : len(alone[0].edges)]
    assert (own.sort(1).values == torch.arange(1, own.size(1) + 1)).all()
    expected, spread = (own.size(1) + 1) / 2, own.double().std() / 200**0.5
    assert ((own.double().mean(0) - expected).abs() <= 4.5 * spread).all()


def test_curves_do_not_depend_on_the_memory_budget():
    net, data = build(Stack, GATConv), random_graph()
    found = []
    for budget in (None, "300kB"):
        model = gg.NodeClassificationModel(net, data, memory_budget=budget)
        batch = model.computation_graphs(range(12))
        found.append(
            edge_curves(model, batch, random_steps(batch, 4, list(range(12))), batch.num_edges.clamp(max=9)).nan_to_num(-1)
        )
    assert torch.equal(*found)


def test_impossible_removals_are_refused():
    model = gg.NodeClassificationModel(build(Stack, lambda a, b: SAGEConv(a, b, aggr="max")), random_graph())
    batch = model.computation_graphs([3])
    with pytest.raises(BadSetting, match="edge_removal must be 'mask' or 'drop'"):
        edge_curves(model, batch, random_steps(batch, 1, [0]), batch.num_edges, "cut")
    with pytest.raises(BadModel, match="edge_removal='mask' is not possible for Stack: doubtful"):
        edge_curves(model, batch, random_steps(batch, 1, [0]), batch.num_edges, "mask")
