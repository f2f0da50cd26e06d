"""Versions of single nodes in place of copies of whole graphs: the same rows, bit for bit on a CPU,
with fewer edges.
"""

import pytest
import torch
from support import small_networks
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, PairNorm, SAGEConv

import graphgauge as gg
from graphgauge.core.seeds import make_generator
from graphgauge.execution.graph_copies import GraphCopies
from graphgauge.perturbation import CurveLines, EdgeEdits, random_orders
from graphgauge.perturbation.deletion_curves import steps_between
from graphgauge.perturbation.edge_removal import _can_remove_incrementally, _count_nodes_and_edges

#: left to copies on a CPU, whose bits versions might change
NEVER = {"Transformer", "ChebConv"}


def random_data(seed=0, num_nodes=40, num_edges=150):
    """With stored self-loops and parallel edges."""
    random = make_generator(seed)
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=random)
    return Data(
        x=torch.randn(num_nodes, small_networks.FEATURES, generator=random), edge_index=edge_index
    )


def both_ways(model, edits, lines, first):
    """Raw rows of the points from step ``first`` on, by copies and by versions, the latter also in
    unions of a few points.
    """
    upto = (lines.order >= 0).sum(1)
    line, step = steps_between(torch.full_like(upto, first).clamp(max=upto), upto)
    engine, versioned = model.executor, edits.versioned_copies(model, lines, line, step)

    def edited(union):
        return engine.outputs(edits.edit(union, lines, line[union.copy], step[union.copy]))

    with model.session(), torch.no_grad():
        model.prepare_engine()
        copies = engine.rows(edited, GraphCopies(edits.graphs, lines.case[line]), "copies")
        together = engine.rows(engine.outputs, versioned, "versions")
        cut = [
            engine.outputs(engine.union(versioned, k, min(k + 7, len(line))))
            for k in range(0, len(line), 7)
        ]
    return copies, together, torch.cat(cut)


def drawn(edits, steps=12, trials=3):
    order = random_orders(edits.candidates, list(range(len(edits.candidates))), steps, 0, trials)
    return CurveLines(torch.arange(len(order)).repeat_interleave(trials), order.flatten(0, 1))


@pytest.mark.parametrize("unit", ["directed", "undirected"])
@pytest.mark.parametrize("removal", ["mask", "drop"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("conv", [GCNConv, GATConv, SAGEConv])
def test_rows_are_those_of_copies_however_the_points_are_cut(conv, layers, removal, unit):
    torch.manual_seed(layers)
    model = gg.NodeClassificationModel(small_networks.Stack(conv, layers), random_data(layers))
    edits = EdgeEdits.from_graphs(model, model.computation_graphs([0, 5, 9, 33]), removal, unit)
    assert _can_remove_incrementally(model, edits)
    for first in (0, 4):
        copies, together, cut = both_ways(model, edits, drawn(edits), first)
        assert torch.equal(copies, together)
        assert torch.equal(copies, cut)


@pytest.mark.parametrize("removal", ["mask", "drop"])
@pytest.mark.parametrize("name", small_networks.LAYERS)
def test_every_layer_that_is_followed_by_versions_gives_the_rows_of_copies(name, removal):
    layer, *_ = small_networks.LAYERS[name]
    torch.manual_seed(1)
    model = gg.NodeClassificationModel(small_networks.Stack(layer, 2), random_data(1))
    if removal == "mask" and model.mask_support != "exact":
        return
    edits = EdgeEdits.from_graphs(model, model.computation_graphs([0, 5, 9, 33]), removal)
    if not _can_remove_incrementally(model, edits):
        assert name in NEVER
        return
    copies, together, cut = both_ways(model, edits, drawn(edits), 0)
    assert torch.equal(copies, together)
    assert torch.equal(copies, cut)


@pytest.mark.parametrize("removal", ["mask", "drop"])
@pytest.mark.parametrize("conv", [GCNConv, GATConv, SAGEConv])
def test_links_follow_both_ends(conv, removal):
    torch.manual_seed(2)
    model = gg.LinkClassificationModel(small_networks.EncodeDecode(conv), random_data(2))
    edits = EdgeEdits.from_graphs(
        model, model.computation_graphs([[0, 5], [7, 8], [3, 30]]), removal
    )
    assert _can_remove_incrementally(model, edits)
    copies, together, cut = both_ways(model, edits, drawn(edits), 0)
    assert torch.equal(copies, together)
    assert torch.equal(copies, cut)


def path(length):
    return Data(
        x=torch.randn(length, small_networks.FEATURES),
        edge_index=torch.stack([torch.arange(length - 1), torch.arange(1, length)]),
    )


@pytest.mark.parametrize(
    ("conv", "removal", "wanted"),
    [
        # the path 6 → 7 → 8 → 9, target 9, three rounds: an edge's head, and all nodes from there
        # on to the target
        (SAGEConv, "mask", {(7, 8): 2, (8, 9): 1, (6, 7): 3}),
        (SAGEConv, "drop", {(7, 8): 2, (8, 9): 1, (6, 7): 3}),
        (GCNConv, "mask", {(7, 8): 2, (8, 9): 1, (6, 7): 3}),
        (GCNConv, "drop", {(7, 8): 2, (8, 9): 1, (6, 7): 3}),
    ],
)
def test_a_removal_makes_a_version_of_each_node_that_it_reaches(conv, removal, wanted):
    model = gg.NodeClassificationModel(small_networks.Stack(conv, 3), path(10))
    graphs = model.computation_graphs([9])
    edits = EdgeEdits.from_graphs(model, graphs, removal)
    lines = CurveLines(torch.zeros(3, dtype=torch.int64), torch.arange(3)[:, None])
    versioned = edits.versioned_copies(
        model, lines, torch.arange(3), torch.ones(3, dtype=torch.int64)
    )
    graph = graphs[0]
    ends = [(int(graph.nodes[a]), int(graph.nodes[b])) for a, b in graph.edge_index[:, :3].t()]
    found = [len(engine_union(versioned, k).graph_index) - 1 for k in range(3)]
    assert dict(zip(ends, found, strict=True)) == wanted
    base = torch.tensor([len(graph.all_nodes), 0, 0])
    assert (versioned.sizes(1)[0] - base).tolist() == found


def engine_union(versioned, k):
    return versioned.union(k, k + 1, 1)


def test_a_star_costs_one_version_for_each_step_and_a_clique_uses_copies_if_they_are_smaller():
    leaves = torch.arange(1, 50)
    star = Data(
        x=torch.randn(50, small_networks.FEATURES),
        edge_index=torch.stack([leaves, torch.zeros_like(leaves)]),
    )
    model = gg.NodeClassificationModel(small_networks.Stack(SAGEConv, 2), star)
    edits = EdgeEdits.from_graphs(model, model.computation_graphs([0]))
    lines = CurveLines(torch.zeros(1, dtype=torch.int64), torch.arange(10)[None])
    nothing, ten = torch.zeros(10, dtype=torch.int64), torch.arange(1, 11)
    versioned = edits.versioned_copies(model, lines, nothing, ten)
    nodes, edges, _ = versioned.sizes(1)
    assert nodes.tolist() == [51, *[1] * 9]
    assert edges.tolist() == [98, *[49] * 9]
    assert _count_nodes_and_edges(versioned, 1) == 51 + 9 + 11 * 49
    assert edits.incremental_copies(model, lines, nothing, ten) is not None

    every = torch.cartesian_prod(torch.arange(9), torch.arange(9))
    clique = Data(
        x=torch.randn(9, small_networks.FEATURES),
        edge_index=every[every[:, 0] != every[:, 1]].t().contiguous(),
    )
    model = gg.NodeClassificationModel(small_networks.Stack(SAGEConv, 3), clique)
    edits = EdgeEdits.from_graphs(model, model.computation_graphs([0]))
    assert edits.incremental_copies(model, lines, nothing, ten) is None


def test_networks_that_look_beyond_messages_are_copied():
    data = random_data()
    model = gg.NodeClassificationModel(small_networks.Stack(SAGEConv, 2, norm=PairNorm()), data)
    edits = EdgeEdits.from_graphs(model, model.computation_graphs([0, 5]))
    assert not _can_remove_incrementally(model, edits)


def test_graph_targets_are_copied():
    model = gg.GraphClassificationModel(
        small_networks.Pooled(GCNConv), [random_data(seed) for seed in range(3)]
    )
    assert not _can_remove_incrementally(
        model, EdgeEdits.from_graphs(model, model.computation_graphs([0, 1]))
    )
