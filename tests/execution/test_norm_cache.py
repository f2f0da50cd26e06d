"""Normalised edges are shared between layers and passes, and nothing about the network shows it."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv
from torch_geometric.nn.conv import gcn_conv

from graphgauge.core.seeds import make_generator
from graphgauge.execution.norm_cache import (
    NormalisedEdges,
    SelfLoopEdges,
    share_normalisation,
    share_self_loops,
)


class Chain(nn.Module):
    """Three GCN layers; the last has options of its own. ``turn``: the middle one sees the edges
    the other way round.
    """

    def __init__(self, turn: bool = False) -> None:
        super().__init__()
        self.first, self.second = GCNConv(3, 4), GCNConv(4, 4)
        self.third, self.turn = GCNConv(4, 2, improved=True), turn

    def forward(self, x, edge_index, edge_weight=None):
        hidden = self.first(x, edge_index, edge_weight).tanh()
        hidden = self.second(
            hidden, edge_index.flip(0) if self.turn else edge_index, edge_weight=edge_weight
        ).tanh()
        return self.third(x=hidden, edge_index=edge_index, edge_weight=edge_weight)


@pytest.fixture
def case():
    random = make_generator(0)
    edge_index = torch.randint(9, (2, 30), generator=random)
    return torch.randn(9, 3, generator=random), edge_index, torch.rand(30, generator=random)


@pytest.fixture
def counted(monkeypatch):
    """How often edges were normalised."""
    calls, real = [], gcn_conv.gcn_norm
    monkeypatch.setattr(
        gcn_conv, "gcn_norm", lambda *args, **kwargs: calls.append(1) or real(*args, **kwargs)
    )
    return calls


@pytest.mark.parametrize("turn", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_outputs_are_the_same_bits_in_every_pass(case, turn, weighted):
    x, edge_index, weight = case
    net, memo = Chain(turn), NormalisedEdges()
    args = (edge_index, weight) if weighted else (edge_index,)
    for scale in (1.0, 2.0):
        with share_normalisation(net, memo):
            found = net(scale * x, *args)
        assert torch.equal(found, net(scale * x, *args))


def test_layers_and_passes_share_what_has_the_same_options(case, counted):
    x, edge_index, _ = case
    net, memo = Chain(), NormalisedEdges()
    for _ in range(5):
        with share_normalisation(net, memo):
            net(x, edge_index)
    assert len(counted) == 2  # without and with improved=True
    with share_normalisation(net, memo):
        net(x, edge_index.clone())
    assert len(counted) == 4  # equal edges are not the same edges


def test_edges_or_weights_that_were_written_to_are_normalised_anew(case):
    x, edge_index, weight = case
    net, memo = Chain(), NormalisedEdges()
    for change in (lambda: edge_index[0].fill_(3), lambda: weight.mul_(2), lambda: None):
        with share_normalisation(net, memo):
            net(x, edge_index, weight)
            change()
            found = net(x, edge_index, weight)
        assert torch.equal(found, net(x, edge_index, weight))


def test_more_nodes_or_another_precision_are_normalised_anew(case):
    x, edge_index, _ = case
    net, memo = Chain(), NormalisedEdges()
    with share_normalisation(net, memo):
        net(x, edge_index)
        found = net(torch.cat([x, x]), edge_index)
        assert torch.equal(found, net(torch.cat([x, x]), edge_index))
    wide = Chain().double()
    with share_normalisation(wide, memo):
        assert torch.equal(wide(x.double(), edge_index), wide(x.double(), edge_index))


def test_weights_with_a_gradient_keep_it(case):
    x, edge_index, weight = case
    net, memo = Chain(), NormalisedEdges()
    gradients = []
    for shared in (False, True, True):
        leaf = weight.clone().requires_grad_(True)
        with share_normalisation(net if shared else nn.Module(), memo):
            gradients.append(torch.autograd.grad(net(x, edge_index, leaf).square().sum(), leaf)[0])
    assert torch.equal(gradients[0], gradients[1])
    assert torch.equal(gradients[0], gradients[2])


def test_the_network_is_what_it_was_also_after_a_failure(case):
    x, edge_index, _ = case
    net, memo = Chain(), NormalisedEdges()
    layers = (net.first, net.second, net.third)
    with pytest.raises(RuntimeError, match="mat1 and mat2"), share_normalisation(net, memo):
        net(x[:, :2], edge_index)
    for layer in layers:
        assert (layer.cached, layer._cached_edge_index) == (False, None)
        assert not layer._forward_hooks
        assert not layer._forward_pre_hooks


def test_a_layer_with_a_cache_of_its_own_and_one_that_does_not_normalise_are_left_alone(case):
    x, edge_index, _ = case
    own, plain = GCNConv(3, 2, cached=True), GCNConv(3, 2, normalize=False)
    with share_normalisation(nn.ModuleList([own, plain]), NormalisedEdges()):
        own(x, edge_index)
        plain(x, edge_index)
    assert own._cached_edge_index is not None
    assert plain._cached_edge_index is None


# --- self-loops -----------------------------------------------------------------------------------


class Attentive(nn.Module):
    """Two attention layers.

    The second one fills the attributes of its self-loops in another way.
    """

    def __init__(self, conv, edge_dim=None) -> None:
        super().__init__()
        self.first, self.second = (
            conv(3, 4, edge_dim=edge_dim),
            conv(4, 2, edge_dim=edge_dim, fill_value=0.5),
        )

    def forward(self, x, edge_index, edge_attr=None):
        return self.second(
            self.first(x, edge_index, edge_attr).tanh(), edge_index, edge_attr=edge_attr
        )


@pytest.fixture
def looking(monkeypatch):
    """How often stored self-loops were looked for, by layers and by us."""
    import torch_geometric.nn.conv.gat_conv as gat_conv

    import graphgauge.execution.norm_cache as ours

    calls = []
    for module in (gat_conv, ours):
        real = module.remove_self_loops
        monkeypatch.setattr(
            module, "remove_self_loops", lambda *args, real=real: calls.append(1) or real(*args)
        )
    return calls


@pytest.mark.parametrize("conv", [GATConv, GATv2Conv])
@pytest.mark.parametrize("width", [None, 1])
def test_attention_gives_the_same_bits_in_every_pass(case, conv, width):
    x, edge_index, weight = case  # some of the 30 edges are self-loops
    assert bool((edge_index[0] == edge_index[1]).any())
    net, memo = Attentive(conv, width), SelfLoopEdges()
    args = (edge_index,) if width is None else (edge_index, weight[:, None])
    for scale in (1.0, 2.0):
        with share_self_loops(net, memo):
            found = net(scale * x, *args)
        assert torch.equal(found, net(scale * x, *args))
    assert net.first.add_self_loops
    assert net.second.add_self_loops


def test_self_loops_are_looked_for_once_for_each_filling(case, looking):
    x, edge_index, weight = case
    net, memo = Attentive(GATConv, 1), SelfLoopEdges()
    attribute = weight[:, None]
    for _ in range(5):
        with share_self_loops(net, memo):
            net(x, edge_index, attribute)
    assert len(looking) == 2
    with share_self_loops(net, memo):
        attribute.mul_(2)
        found = net(x, edge_index, attribute)
    assert len(looking) == 4
    assert torch.equal(found, net(x, edge_index, attribute))


def test_attributes_with_a_gradient_keep_it_under_attention(case):
    x, edge_index, weight = case
    net, gradients = Attentive(GATConv, 1), []
    for shared in (False, True, True):
        leaf = weight[:, None].clone().requires_grad_(True)
        with share_self_loops(net if shared else nn.Module(), SelfLoopEdges()):
            gradients.append(torch.autograd.grad(net(x, edge_index, leaf).square().sum(), leaf)[0])
    assert torch.equal(gradients[0], gradients[1])
    assert torch.equal(gradients[0], gradients[2])


def test_attention_adds_its_self_loops_again_after_a_failure(case):
    x, edge_index, _ = case
    net = Attentive(GATConv)
    with pytest.raises(RuntimeError, match="mat1 and mat2"), share_self_loops(net, SelfLoopEdges()):
        net(x[:, :2], edge_index)
    assert net.first.add_self_loops
    assert not net.first._forward_hooks
    assert not net.first._forward_pre_hooks


def test_a_layer_without_self_loops_gets_none(case):
    x, edge_index, _ = case
    net = GATConv(3, 2, add_self_loops=False)
    with share_self_loops(net, SelfLoopEdges()):
        found = net(x, edge_index)
    assert torch.equal(found, net(x, edge_index))
    assert net.add_self_loops is False
