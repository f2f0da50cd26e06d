"""Sums of messages as products with sparse matrices, against the layers' own sums."""

import pytest
import torch
import zoo
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.core.seeds import generator
from graphgauge.models.engine import Copies
from graphgauge.models.fused import Fused, by_head, fused_messages, is_product

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
    random = generator(seed)
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=random)
    if not loops:
        edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    x = torch.randn(num_nodes, zoo.FEATURES, generator=random, dtype=torch.float64)
    return Data(x=x, edge_index=edge_index)


def model_of(conv, **options):
    torch.manual_seed(0)
    return gg.NodeClassificationModel(zoo.Stack(conv, 2).double(), random_data(**options))


def rows(model, edit, fuses, align):
    """Raw rows of copies in one union, and how many messages layers wrote out."""
    graphs, written = model.computation_graphs(torch.arange(0, 50, 9)), []
    copies = Copies(graphs, torch.arange(len(graphs)).repeat(2))
    hooks = [
        layer.register_propagate_forward_hook(lambda layer, inputs, out: written.append(inputs[0].size(1)))
        for layer in model.net.convs
    ]
    with model.session(), torch.no_grad():
        model.prepare_engine()
        model.engine.fuses = fuses
        found = model.engine.outputs(edit(copies.union(0, len(copies), align)))
    for hook in hooks:
        hook.remove()
    return found, written


@pytest.mark.parametrize("align", [1, 16])
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("conv", CONVS.values(), ids=CONVS)
def test_products_are_the_sums_of_messages(conv, edit, align):
    model = model_of(conv)
    wanted, all_messages = rows(model, edit, False, align)
    found, left = rows(model, edit, True, align)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-14)
    is_taken = getattr(model.net.convs[0], "normalize", True)
    assert left == ([0, 0] if is_taken else all_messages)


@pytest.mark.parametrize("conv", [GCNConv, GATConv])
def test_layers_that_drop_stored_self_loops_add_up_themselves(conv):
    model = model_of(conv, loops=True)
    wanted, all_messages = rows(model, EDITS["none"], False, 1)
    found, left = rows(model, EDITS["none"], True, 1)
    assert torch.equal(found, wanted)
    assert left == all_messages


def test_every_node_with_a_stored_self_loop_is_not_taken_for_none():
    """As many edges as before, in another order."""
    data = random_data()
    every = torch.arange(50).expand(2, 50)
    data.edge_index = torch.cat([every, data.edge_index], 1)
    torch.manual_seed(0)
    model = gg.NodeClassificationModel(zoo.Stack(GATConv, 2).double(), data)
    torch.testing.assert_close(
        rows(model, EDITS["none"], True, 1)[0], rows(model, EDITS["none"], False, 1)[0], rtol=1e-12, atol=1e-14
    )


def test_masks_gradients_and_onlookers_see_every_message():
    model = model_of(GCNConv)
    _, all_messages = rows(model, EDITS["none"], False, 1)
    assert rows(model, lambda union: union.with_mask(torch.ones(union.num_edges, dtype=torch.float64)), True, 1)[1] == all_messages
    hook = model.net.convs[0].register_message_forward_hook(lambda layer, inputs, out: None)
    assert rows(model, EDITS["none"], True, 1)[1] == [all_messages[0], 0]
    hook.remove()
    model.engine.fuses = True
    graphs = model.computation_graphs([3])
    with torch.enable_grad():
        union = Copies(graphs, torch.zeros(1, dtype=torch.int64)).union(0, 1, 1)
        x = union.x.clone().requires_grad_(True)
        out = model.engine.outputs(union.with_x(x))
    assert torch.autograd.grad(out.sum(), x)[0].abs().sum() > 0


def test_which_layers_are_products():
    assert is_product(GCNConv(2, 2))
    assert is_product(GATConv(2, 2))
    assert not is_product(SAGEConv(2, 2))
    assert not is_product(GCNConv(2, 2, aggr="mean"))
    assert not is_product(GCNConv(2, 2, flow="target_to_source"))


def test_edges_of_a_union_come_in_the_order_of_their_heads():
    graphs = model_of(GCNConv).computation_graphs([0, 7, 20])
    of = torch.tensor([2, 0, 2, 1])
    union = Copies(graphs, of).union(0, 4, 1)
    assert by_head(union).tolist() == union.edge_index[1].argsort(stable=True).tolist()
    fewer = union.without_edges(union.edge_position % 2 == 0)
    assert by_head(fewer).tolist() == fewer.edge_index[1].argsort(stable=True).tolist()


def test_hooks_are_gone_after_a_failure():
    model = model_of(GCNConv)
    union = Copies(model.computation_graphs([0]), torch.zeros(1, dtype=torch.int64)).union(0, 1, 1)
    with pytest.raises(ZeroDivisionError), fused_messages(model.net, Fused(union, None)):
        raise ZeroDivisionError
    assert not model.net.convs[0]._propagate_forward_pre_hooks
    assert not model.net.convs[0]._propagate_forward_hooks
