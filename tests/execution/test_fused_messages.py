"""Sums of messages as products with sparse matrices, against the layers' own sums."""

import pytest
import torch
from support import small_networks
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.core.seeds import make_generator
from graphgauge.execution.fused_messages import (
    MessageFusion,
    _edges_by_head,
    _is_fusable_layer,
    can_be_fused,
    fuse_messages,
)
from graphgauge.execution.graph_copies import GraphCopies
from graphgauge.execution.message_masking import MessageScaling

CONVS = {
    "GCN": GCNConv,
    "GCN, no loops": lambda a, b: GCNConv(a, b, add_self_loops=False),
    "GCN, not normalised": lambda a, b: GCNConv(a, b, normalize=False, add_self_loops=False),
    "GAT": GATConv,
    "GAT, 3 heads": lambda a, b: GATConv(a, b, heads=3, concat=False),
    "GAT, no loops": lambda a, b: GATConv(a, b, add_self_loops=False),
}
EDITS = {
    "none": lambda union: union,
    "x": lambda union: union.with_x(union.x.flip(0)),
    "drop": lambda union: union.without_edges(union.edge_position % 3 == 0),
}


def random_data(seed=0, num_nodes=50, num_edges=160, loops=False):
    random = make_generator(seed)
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=random)
    if not loops:
        edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    x = torch.randn(num_nodes, small_networks.FEATURES, generator=random, dtype=torch.float64)
    return Data(x=x, edge_index=edge_index)


def model_of(conv, **options):
    torch.manual_seed(0)
    return gg.NodeClassificationModel(
        small_networks.Stack(conv, 2).double(), random_data(**options)
    )


def rows(model, edit, fuses, align):
    """Raw rows of copies in one union, and how many messages layers wrote out."""
    graphs, written = model.computation_graphs(torch.arange(0, 50, 9)), []
    copies = GraphCopies(graphs, torch.arange(len(graphs)).repeat(2))
    hooks = [
        layer.register_propagate_forward_hook(
            lambda layer, inputs, out: written.append(inputs[0].size(1))
        )
        for layer in model.net.convs
    ]
    with model.session(), torch.no_grad():
        model.prepare_engine()
        model.executor.fuses = fuses
        found = model.executor.outputs(edit(copies.union(0, len(copies), align)))
    for hook in hooks:
        hook.remove()
    return found, written


@pytest.mark.parametrize("align", [1, 16])
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("conv", CONVS.values(), ids=CONVS)
def test_products_are_the_sums_of_messages(conv, edit, align):
    model = model_of(conv)
    wanted, _ = rows(model, edit, False, align)
    found, left = rows(model, edit, True, align)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-14)
    assert left == [0, 0]


class Mixed(MessageScaling):
    """z m + (1 - z) b, z (E,) for the graph's edges; with or without b."""

    def __init__(self, z, baselines):
        self.z, self.baselines = z, baselines

    def scaling_of_round(self, number, column):
        z = torch.where(column >= 0, self.z[column.clamp(min=0)], 1.0)
        return (
            None
            if number == 0 and self.baselines
            else (z, self.baselines[number] if self.baselines else None)
        )

    def __call__(self, sent):
        z, rows = sent.factors(self.z, 1.0), sent.value.flatten(1)
        if self.baselines is None:
            return (rows * z[:, None]).view(sent.value.shape)
        if sent.number == 0:
            return None
        return (rows * z[:, None] + (1 - z)[:, None] * self.baselines[sent.number]).view(
            sent.value.shape
        )


@pytest.mark.parametrize("align", [1, 16])
@pytest.mark.parametrize("baselines", [False, True])
@pytest.mark.parametrize("conv", CONVS.values(), ids=CONVS)
def test_gradients_of_features_factors_and_baselines_are_those_of_written_messages(
    conv, baselines, align
):
    model = model_of(conv)
    graphs = model.computation_graphs(torch.arange(0, 50, 9))
    union = GraphCopies(graphs, torch.arange(len(graphs)).repeat(2)).union(
        0, 2 * len(graphs), align
    )
    random = make_generator(5)
    z = torch.rand(union.edge_index.size(1), generator=random, dtype=torch.float64).requires_grad_(
        True
    )
    heads = getattr(model.net.convs[0], "heads", 1)
    own = [
        torch.randn(heads * width, generator=random, dtype=torch.float64).requires_grad_(True)
        for width in (small_networks.HIDDEN, small_networks.CLASSES)
    ]
    x = union.x.clone().requires_grad_(True)
    found = []
    for fuses in (False, True):
        with model.session(), torch.enable_grad():
            model.prepare_engine()
            model.executor.fuses = fuses
            out = model.executor.outputs(union.with_x(x), Mixed(z, own if baselines else None))
            found.append(
                [
                    out,
                    *torch.autograd.grad(
                        out.square().sum(), [x, z, own[1]], materialize_grads=True
                    ),
                ]
            )
            assert model.executor.fuses is fuses
    for written, product in zip(*found, strict=True):
        torch.testing.assert_close(product, written, rtol=1e-11, atol=1e-13)
    assert found[0][2].abs().sum() > 0


@pytest.mark.parametrize("conv", CONVS.values(), ids=CONVS)
def test_masks_are_factors(conv):
    model = model_of(conv)
    graphs = model.computation_graphs([0, 9, 18])
    union = GraphCopies(graphs, torch.arange(3)).union(0, 3, 1)
    factor = torch.rand(
        union.num_edges, generator=make_generator(3), dtype=torch.float64
    ).requires_grad_(True)
    found = []
    for fuses in (False, True):
        with model.session(), torch.enable_grad():
            model.prepare_engine()
            model.executor.fuses = fuses
            out = model.executor.outputs(union.with_mask(factor))
            found.append((out, torch.autograd.grad(out.square().sum(), factor)[0]))
    for written, product in zip(*found, strict=True):
        torch.testing.assert_close(product, written, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("conv", [GCNConv, GATConv])
def test_layers_that_drop_stored_self_loops_add_up_themselves(conv):
    model = model_of(conv, loops=True)
    wanted, all_messages = rows(model, EDITS["none"], False, 1)
    found, left = rows(model, EDITS["none"], True, 1)
    assert torch.equal(found, wanted)
    assert left == all_messages
    assert not model.executor.fuses


def test_every_node_with_a_stored_self_loop_is_not_taken_for_none():
    """As many edges as before, in another order."""
    data = random_data()
    every = torch.arange(50).expand(2, 50)
    data.edge_index = torch.cat([every, data.edge_index], 1)
    torch.manual_seed(0)
    model = gg.NodeClassificationModel(small_networks.Stack(GATConv, 2).double(), data)
    assert torch.equal(
        rows(model, EDITS["none"], True, 1)[0], rows(model, EDITS["none"], False, 1)[0]
    )


@pytest.mark.parametrize("conv", CONVS.values(), ids=CONVS)
@pytest.mark.parametrize("size", [1, 2])
def test_more_edges_than_pairs_of_nodes(conv, size):
    """Stored self-loops that a layer replaces by others that look the same, and more of them than a
    matrix has places.
    """
    torch.manual_seed(0)
    loops = torch.arange(size).repeat(6).expand(2, -1)
    data = Data(
        x=torch.randn(size, small_networks.FEATURES, dtype=torch.float64), edge_index=loops.clone()
    )
    model = gg.NodeClassificationModel(small_networks.Stack(conv, 2).double(), data)
    graphs = model.computation_graphs(list(range(size)))
    with model.session(), torch.no_grad():
        model.prepare_engine()
        found = []
        for fuses in (True, False):
            model.executor.fuses = fuses
            found.append(
                model.executor.outputs(GraphCopies(graphs, torch.arange(size)).union(0, size, 1))
            )
            assert not model.executor.fuses
    assert torch.equal(*found)


def test_whoever_looks_at_messages_sees_every_one():
    model = model_of(GCNConv)
    _, all_messages = rows(model, EDITS["none"], False, 1)
    hook = model.net.convs[0].register_message_forward_hook(lambda layer, inputs, out: None)
    assert rows(model, EDITS["none"], True, 1)[1] == all_messages
    hook.remove()
    graphs, seen = model.computation_graphs([3]), []
    with model.session(), torch.no_grad():
        model.executor.fuses = True
        model.executor.outputs(
            GraphCopies(graphs, torch.zeros(1, dtype=torch.int64)).union(0, 1, 1),
            lambda sent: seen.append(len(sent.value)),
        )
    assert min(seen) > 0


def test_which_layers_are_products():
    assert _is_fusable_layer(GCNConv(2, 2))
    assert _is_fusable_layer(GATConv(2, 2))
    assert not _is_fusable_layer(SAGEConv(2, 2))
    assert not _is_fusable_layer(GCNConv(2, 2, aggr="mean"))
    assert not _is_fusable_layer(GCNConv(2, 2, flow="target_to_source"))
    assert not can_be_fused(torch.nn.Sequential(GCNConv(2, 2), SAGEConv(2, 2)))
    assert not can_be_fused(torch.nn.Linear(2, 2))


def test_edges_of_a_union_come_in_the_order_of_their_heads():
    graphs = model_of(GCNConv).computation_graphs([0, 7, 20])
    of = torch.tensor([2, 0, 2, 1])
    union = GraphCopies(graphs, of).union(0, 4, 1)
    assert _edges_by_head(union).tolist() == union.edge_index[1].argsort(stable=True).tolist()
    fewer = union.without_edges(union.edge_position % 2 == 0)
    assert _edges_by_head(fewer).tolist() == fewer.edge_index[1].argsort(stable=True).tolist()


def test_hooks_are_gone_after_a_failure():
    model = model_of(GCNConv)
    union = GraphCopies(model.computation_graphs([0]), torch.zeros(1, dtype=torch.int64)).union(
        0, 1, 1
    )
    with pytest.raises(ZeroDivisionError), fuse_messages(model.net, MessageFusion(union, None)):
        raise ZeroDivisionError
    assert not model.net.convs[0]._propagate_forward_pre_hooks
    assert not model.net.convs[0]._propagate_forward_hooks


@pytest.mark.parametrize(
    "explainer",
    [gg.GNNExplainer(epochs=4), gg.GraphMask(epochs=3), gg.Saliency(), gg.IntegratedGradients()],
)
@pytest.mark.parametrize("conv", [GCNConv, GATConv])
def test_explanations_are_those_of_written_messages(conv, explainer, monkeypatch):
    found = []
    for fuses in (False, True):
        model = model_of(conv)
        prepare = type(model).prepare_engine

        def prepared(self, prepare=prepare, fuses=fuses):
            prepare(self)
            self.executor.fuses = fuses

        monkeypatch.setattr(type(model), "prepare_engine", prepared)
        found.append(explainer.explain(model, [0, 9, 27], seed=3))
        monkeypatch.undo()
    for written, product in zip(*found, strict=True):
        torch.testing.assert_close(
            product.feature_score, written.feature_score, rtol=1e-9, atol=1e-11
        )
        torch.testing.assert_close(product.edge_score, written.edge_score, rtol=1e-9, atol=1e-11)
