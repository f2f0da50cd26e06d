"""Messages that cannot arrive are not sent, and nothing about the outputs shows it."""

import pytest
import torch
from support import small_networks
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, MessagePassing, PairNorm, SAGEConv

import graphgauge as gg
from graphgauge.core.seeds import make_generator
from graphgauge.execution.disjoint_union import build_batch
from graphgauge.execution.message_pruning import MessagePruner, arriving_shares, prune_messages

EDITS = {
    "none": lambda union: union,
    "mask": lambda union: union.with_mask((union.edge_position % 3 > 0).float()),
    "drop": lambda union: union.without_edges((union.edge_position % 3 == 0) & union.is_relevant),
    "x": lambda union: union.with_x(union.x.flip(0)),
}


def random_data(seed=0, num_nodes=60, num_edges=170, loops=False):
    random = make_generator(seed)
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=random)
    if not loops:
        edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    return Data(
        x=torch.randn(num_nodes, small_networks.FEATURES, generator=random), edge_index=edge_index
    )


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize(
    "name", ["GCN", "GAT", "GATv2", "SAGE", "SAGE max", "GIN", "GraphConv", "Transformer"]
)
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_outputs_and_gradients_are_those_of_all_messages(name, layers, edit):
    torch.manual_seed(layers)
    net = small_networks.Stack(small_networks.LAYERS[name][0], layers)
    model = gg.NodeClassificationModel(net, random_data())
    graphs = model.computation_graphs(torch.arange(0, 60, 7))
    assert len(model.cuts) == layers

    def work(union, every_message):
        edited = edit(union)
        x = edited.x.detach().clone().requires_grad_(True)
        with torch.enable_grad():
            rows = model.executor.outputs(edited.with_x(x), every_message=every_message)
            (slope,) = torch.autograd.grad(rows.square().sum(), x)
        total = slope.new_zeros(len(union), slope.size(1)).index_add(
            0, union.node_copy, slope[union.node_at]
        )
        return torch.cat([rows.detach(), total], 1)

    few, every = (
        model.map(lambda union, all_=all_: work(union, all_), graphs, kind=str(all_))
        for all_ in (False, True)
    )
    torch.testing.assert_close(few, every, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("conv", [GCNConv, GATConv, SAGEConv])
@pytest.mark.parametrize("seed", range(5))
def test_links_masks_and_stored_self_loops(conv, seed):
    torch.manual_seed(seed)
    data = random_data(seed, loops=True)
    model = gg.LinkClassificationModel(small_networks.EncodeDecode(conv), data)
    graphs = model.computation_graphs([[0, 5], [7, 8], [3, 40]])
    of = torch.tensor([0, 1, 2, 0, 1])
    rows = [
        model.map(
            lambda union, all_=all_: model.executor.outputs(
                EDITS["mask"](union), every_message=all_
            ),
            graphs,
            of,
            kind=str(all_),
        )
        for all_ in (False, True)
    ]
    torch.testing.assert_close(*rows, rtol=1e-5, atol=1e-6)


def test_each_round_sends_what_can_still_arrive_and_no_more():
    """A path 0 → 1 → ... → 9 with target 9, three rounds: 3, 2 and 1 messages arrive."""
    data = Data(
        x=torch.randn(10, small_networks.FEATURES),
        edge_index=torch.stack([torch.arange(9), torch.arange(1, 10)]),
    )
    model = gg.NodeClassificationModel(small_networks.Stack(SAGEConv, 3), data)
    graphs = model.computation_graphs([9])
    assert messages_sent(model.net, graphs) == [3, 2, 1]


def messages_sent(net, graphs):
    """Messages of a union of one copy without filling, round by round."""
    first, counts = torch.zeros(1, dtype=torch.int64), []
    union = build_batch(graphs, first, first, align=1)
    hooks = [
        layer.register_message_forward_hook(lambda layer, inputs, out: counts.append(len(out)))
        for layer in net.convs
    ]
    with torch.no_grad(), prune_messages(net, MessagePruner(union, (True,) * len(hooks))):
        net(union.x, union.edge_index)
    for hook in hooks:
        hook.remove()
    return counts


def test_the_share_that_arrives():
    """The same path with two rounds: of two edges and three nodes, 2 + 2 arrive in the first, 1 + 1
    in the second.
    """
    data = Data(
        x=torch.randn(10, small_networks.FEATURES),
        edge_index=torch.stack([torch.arange(9), torch.arange(1, 10)]),
    )
    model = gg.NodeClassificationModel(small_networks.Stack(SAGEConv, 2), data)
    assert arriving_shares(model.computation_graphs([9]), 2) == pytest.approx([4 / 5, 2 / 5])


def test_networks_whose_rounds_are_no_chain_send_everything():
    class Beside(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = (
                SAGEConv(small_networks.FEATURES, 4),
                SAGEConv(small_networks.FEATURES, 4),
            )

        def forward(self, x, edge_index):
            return self.left(x, edge_index) * self.right(x, edge_index)

    assert gg.NodeClassificationModel(Beside(), random_data()).cuts == ()


def test_networks_that_normalise_over_all_nodes_send_everything():
    net = small_networks.Stack(SAGEConv, 2, norm=PairNorm())
    assert gg.NodeClassificationModel(net, random_data()).cuts == ()


def test_fewer_hops_than_the_network_has_send_everything():
    with pytest.warns(UserWarning, match="num_hops=1"):
        assert (
            gg.NodeClassificationModel(
                small_networks.Stack(SAGEConv, 2), random_data(), num_hops=1
            ).cuts
            == ()
        )


class Mapped(MessagePassing):
    """Messages that are a linear map of what they carry, as in many layers that people write
    themselves.
    """

    def __init__(self, wide, out):
        super().__init__(aggr="mean")
        self.map = nn.Linear(wide, out)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_j):
        return self.map(x_j)


@pytest.mark.parametrize("conv", [Mapped, GCNConv, GATConv])
def test_a_copy_gets_the_same_bits_in_every_union(conv):
    torch.manual_seed(0)
    model = gg.NodeClassificationModel(small_networks.Stack(conv, 3), random_data(3))
    graphs = model.computation_graphs(torch.arange(60))
    together = model.map(model.executor.outputs, graphs)
    alone = torch.cat(
        [model.map(model.executor.outputs, graphs.take(torch.tensor([k]))) for k in range(60)]
    )
    assert any(model.cuts)
    assert torch.equal(together, alone)
