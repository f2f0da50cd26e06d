"""Deletion curves, against one forward pass per point over the whole graph."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.literal_curves import edge_curve, feature_curve
from support.small_networks import (
    EncodeDecode,
    LinkForward,
    Pooled,
    Stack,
    build,
    graphs,
    random_graph,
)
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.core.errors import BadModel, BadSetting
from graphgauge.core.seeds import make_generator
from graphgauge.execution.lazy_features import LazyFeatureTensor
from graphgauge.perturbation import (
    CurveLines,
    EdgeEdits,
    FeatureEdits,
    predict_curves,
    random_orders,
)

LAYERS = {"GCN": GCNConv, "GAT": GATConv, "SAGE": SAGEConv}


def tasks(layer):
    """A model of each level in double precision, its targets, its data per target, and how one is
    asked for on the whole graph.
    """
    data = random_graph(30, 60, dtype=torch.float64)
    many = [random_graph(5 + seed, 9, seed=seed, dtype=torch.float64) for seed in range(3)]
    node = gg.NodeClassificationModel(
        build(Stack, layer, dtype=torch.float64), data, output="logits"
    )
    yield node, [3, 8, 29], [data] * 3, lambda t: lambda net, x, e: net(x, e)[t].softmax(0)
    value = gg.NodeRegressionModel(build(Stack, layer, out=1, dtype=torch.float64), data)
    yield value, [3, 8], [data] * 2, lambda t: lambda net, x, e: net(x, e)[t, 0]
    link = gg.LinkClassificationModel(
        build(EncodeDecode, layer, dtype=torch.float64), data, output="logits"
    )
    pair = lambda t: torch.tensor([t]).t()  # noqa: E731
    yield (
        link,
        [(0, 5), (7, 3)],
        [data] * 2,
        lambda t: (
            lambda net, x, e: torch.stack(
                [1 - (p := net.decode(net.encode(x, e), pair(t))[0].sigmoid()), p]
            )
        ),
    )
    three = gg.LinkClassificationModel(
        build(LinkForward, layer, dtype=torch.float64), data, output="logits"
    )
    yield three, [(2, 9)], [data], lambda t: lambda net, x, e: net(x, e, pair(t))[0].softmax(0)
    graph = gg.GraphClassificationModel(build(Pooled, layer, dtype=torch.float64), many)
    yield graph, [0, 1, 2], many, lambda t: lambda net, x, e: net(x, e)[0].softmax(0)


def all_steps(lines, edits):
    return torch.zeros_like(lines.case), (lines.order >= 0).sum(1)


def found_curves(model, edits, lines):
    """Curves of all lines as lists of rows."""
    found = predict_curves(model, edits, lines, *all_steps(lines, edits))
    return [found.prediction[found.line == m] for m in range(len(lines))]


def drawn_lines(edits, number, size=12, seed=0):
    order = random_orders(
        edits.candidates, [seed + q for q in range(len(edits.candidates))], size, 0, number
    )
    case = torch.arange(len(edits.candidates)).repeat_interleave(number)
    return CurveLines(case, order.flatten(0, 1))


def drawn_donors(model, graphs, cases, seed=0):
    """Any rows of the data as donors, two cases for each graph."""
    graph = torch.arange(len(graphs)).repeat_interleave(cases)
    size = graphs.num_nodes[graph]
    ptr = torch.cat([torch.zeros(1, dtype=torch.int64), size.cumsum(0)])
    donor = torch.randint(
        model.source.num_nodes, (int(size.sum()),), generator=make_generator(seed)
    )
    return FeatureEdits(graphs, graph, donor, ptr)


@pytest.mark.parametrize("unit", ["directed", "undirected"])
@pytest.mark.parametrize("removal", ["mask", "drop"])
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_edge_curves_of_every_task_are_one_forward_pass_per_point(layer, removal, unit):
    for model, targets, data, ask in tasks(layer):
        batch = model.computation_graphs(targets)
        edits = EdgeEdits.from_graphs(model, batch, removal, unit)
        lines = drawn_lines(edits, 3)
        for m, curve in enumerate(found_curves(model, edits, lines)):
            graph = batch[int(lines.case[m])]
            units = units_of(graph, unit)
            removed = [units[u] for u in lines.order[m].tolist() if u >= 0]
            wanted = edge_curve(
                model.net, ask(graph.target), data[int(lines.case[m])], removed, removal
            )
            assert len(wanted) == len(curve) == min(12, len(units))
            assert all((a - b).abs().max() <= 1e-12 for a, b in zip(curve, wanted, strict=True))


def units_of(graph, unit):
    """Ids of the edges that go together, in the order of the first of them."""
    ids, ends = graph.edges.tolist(), graph.edge_index[:, : len(graph.edges)].t().tolist()
    if unit == "directed":
        return [[e] for e in ids]
    groups = {}
    for e, pair in zip(ids, ends, strict=True):
        groups.setdefault(frozenset(pair), []).append(e)
    return list(groups.values())


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_feature_curves_of_every_task_are_one_forward_pass_per_point(layer):
    for model, targets, data, ask in tasks(layer):
        batch = model.computation_graphs(targets)
        edits = drawn_donors(model, batch, 2)
        lines = drawn_lines(edits, 3)
        for m, curve in enumerate(found_curves(model, edits, lines)):
            case = int(lines.case[m])
            graph = batch[int(edits.graph[case])]
            donor = edits.donor[edits.donor_ptr[case] : edits.donor_ptr[case + 1]]
            ends = graph.nodes[graph.target_rows].tolist()
            rows = dict(zip(graph.nodes.tolist(), model.source.x[donor], strict=True))
            order = [c for c in lines.order[m].tolist() if c >= 0]
            wanted = feature_curve(
                model.net, ask(graph.target), data[int(edits.graph[case])], ends, rows, order
            )
            assert len(wanted) == len(curve)
            assert all((a - b).abs().max() <= 1e-12 for a, b in zip(curve, wanted, strict=True))


@pytest.mark.parametrize("removal", ["mask", "drop"])
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("scope", ["messages", "induced"])
@settings(max_examples=6)
@given(data=graphs(), draw=st.data())
def test_curves_on_any_graph_are_one_forward_pass_per_point(layer, removal, scope, data, draw):
    net = build(Stack, layer, dtype=torch.float64)
    model = gg.NodeClassificationModel(net, data, output="logits", edge_scope=scope)
    batch = model.computation_graphs(
        draw.draw(st.lists(st.integers(0, data.num_nodes - 1), min_size=1, max_size=4))
    )
    ask = lambda t: lambda net, x, e: net(x, e)[t].softmax(0)  # noqa: E731
    edges = EdgeEdits.from_graphs(model, batch, removal)
    lines = drawn_lines(edges, 2)
    for m, curve in enumerate(found_curves(model, edges, lines)):
        graph = batch[int(lines.case[m])]
        removed = [[int(graph.edges[u])] for u in lines.order[m].tolist() if u >= 0]
        wanted = edge_curve(net, ask(graph.target), data, removed, removal)
        assert len(wanted) == len(curve)
        assert all((a - b).abs().max() <= 1e-12 for a, b in zip(curve, wanted, strict=True))
    features = drawn_donors(model, batch, 1)
    lines = drawn_lines(features, 2)
    for m, curve in enumerate(found_curves(model, features, lines)):
        graph, case = batch[int(lines.case[m])], int(lines.case[m])
        donor = features.donor[features.donor_ptr[case] : features.donor_ptr[case + 1]]
        rows = dict(zip(graph.nodes.tolist(), data.x[donor], strict=True))
        order = [c for c in lines.order[m].tolist() if c >= 0]
        wanted = feature_curve(net, ask(graph.target), data, [graph.target], rows, order)
        assert len(wanted) == len(curve)
        assert all((a - b).abs().max() <= 1e-12 for a, b in zip(curve, wanted, strict=True))


def sparse_case(layer, dtype=torch.float32, budget=None):
    """A graph whose features are mostly 0, so that most substitutions change nothing."""
    data = random_graph(40, 100, dtype=dtype)
    data.x = (torch.rand(data.x.shape, generator=make_generator(1)) < 0.2).to(dtype)
    model = gg.NodeClassificationModel(
        build(Stack, layer, dtype=dtype), data, memory_budget=budget, output="logits"
    )
    batch = model.computation_graphs(range(8))
    return model, batch, drawn_donors(model, batch, 2)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_any_part_of_a_curve_has_the_bits_it_has_in_the_whole(layer):
    model, _, edits = sparse_case(layer)
    lines = drawn_lines(edits, 4)
    whole = predict_curves(model, edits, lines, *all_steps(lines, edits))
    for a, b in ((0, 1), (3, 8), (8, 12)):
        ends = [torch.full_like(lines.case, k).minimum((lines.order >= 0).sum(1)) for k in (a, b)]
        part = predict_curves(model, edits, lines, *ends)
        chosen = (whole.step > a) & (whole.step <= b)
        assert torch.equal(part.prediction, whole.prediction[chosen])
        assert torch.equal(part.line, whole.line[chosen])
        assert torch.equal(part.step, whole.step[chosen])


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_curves_do_not_depend_on_the_memory_budget(layer):
    for make in (
        lambda model, batch, edits: EdgeEdits.from_graphs(model, batch),
        lambda model, batch, edits: edits,
    ):
        found = []
        for budget in (None, "200kB"):
            model, batch, features = sparse_case(layer, budget=budget)
            edits = make(model, batch, features)
            lines = drawn_lines(edits, 4)
            found.append(predict_curves(model, edits, lines, *all_steps(lines, edits)).prediction)
        assert torch.equal(*found)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_features_that_stay_unwritten_give_what_written_ones_give(layer, monkeypatch):
    model, _, edits = sparse_case(layer)
    lines = drawn_lines(edits, 4)
    short = predict_curves(model, edits, lines, *all_steps(lines, edits)).prediction
    monkeypatch.setattr(
        LazyFeatureTensor, "__torch_function__", torch._C._disabled_torch_function_impl
    )
    model.refresh()
    assert (
        predict_curves(model, edits, lines, *all_steps(lines, edits)).prediction - short
    ).abs().max() <= 2e-7


def test_a_step_that_changes_nothing_is_not_run_again(monkeypatch):
    model, _, edits = sparse_case(GCNConv)
    lines, copies = drawn_lines(edits, 4), []
    ask = type(model).pred_copies
    monkeypatch.setattr(
        type(model),
        "pred_copies",
        lambda self, graphs, of, *rest, **k: (
            copies.append(len(of)) or ask(self, graphs, of, *rest, **k)
        ),
    )
    found = predict_curves(model, edits, lines, *all_steps(lines, edits))
    changed = 0
    for m in range(len(lines)):
        case = int(lines.case[m])
        graph = edits.graphs[int(edits.graph[case])]
        donor = edits.donor[edits.donor_ptr[case] : edits.donor_ptr[case + 1]]
        for candidate in lines.order[m].tolist():
            if candidate >= 0:
                rows = [0] if candidate < 6 else list(range(1, len(graph.nodes)))
                changed += any(
                    model.source.x[donor[r], candidate % 6] != graph.x[r, candidate % 6]
                    for r in rows
                )
    unchanged_starts = len(
        {
            int(edits.graph[lines.case[m]])
            for m in range(len(lines))
            if not bool(edits.changes(lines)[m, 0])
        }
    )
    assert copies == [changed + unchanged_starts]
    assert changed < len(found.line)


def test_impossible_removals_are_refused():
    model = gg.NodeClassificationModel(
        build(Stack, lambda a, b: SAGEConv(a, b, aggr="max")), random_graph()
    )
    batch = model.computation_graphs([3])
    with pytest.raises(BadSetting, match="edge_removal must be 'mask' or 'drop'"):
        EdgeEdits.from_graphs(model, batch, "cut")
    with pytest.raises(BadModel, match="edge_removal='mask' is not possible for Stack: doubtful"):
        EdgeEdits.from_graphs(model, batch, "mask")
    with pytest.raises(
        BadSetting, match="removal_unit must be 'directed' or 'undirected', but 'pair'"
    ):
        EdgeEdits.from_graphs(model, batch, "drop", "pair")
