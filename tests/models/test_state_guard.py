"""The user's network is bit for bit the same after every public call, and after a forward that
raises.
"""

import copy
import random

import numpy as np
import pytest
import torch
from support.small_networks import (
    CLASSES,
    FEATURES,
    HIDDEN,
    EncodeDecode,
    LinkForward,
    Pooled,
    Stack,
    build,
    random_graph,
)
from torch import nn
from torch_geometric.nn import BatchNorm, GATConv, GCNConv

import graphgauge as gg
from graphgauge.core.errors import BadModel
from graphgauge.models.state_guard import preserve_network

WRONG = RuntimeError("the network broke")
PLAIN = (bool, int, float, str, list, dict, set, tuple, torch.Tensor, np.ndarray, type(None))


class Rich(nn.Module):
    """Dropout, batch norm in training mode, frozen and shared parts, hooks, caches, counters,
    gradients.
    """

    def __init__(self):
        super().__init__()
        self.first, self.norm = GCNConv(FEATURES, HIDDEN, cached=True), BatchNorm(HIDDEN)
        self.second, self.drop = GATConv(HIDDEN, CLASSES), nn.Dropout(0.5)
        self.alias = self.drop
        self.register_buffer("seen", torch.zeros(1))
        self.log, self.calls, self.table = [], 0, {}
        self.plain, self.array, self.nested = torch.zeros(2), np.zeros(2), {"a": [[]]}
        self.fail = False

    def forward(self, x, edge_index):
        self.calls += 1
        self.log.append(len(x))
        self.table[len(x)] = True
        self.seen += 1
        self.plain += 1
        self.array += 1
        self.nested["a"][0].append(1)
        self.config = {}
        self.scratch = x
        if self.fail and self.calls > 1:
            raise WRONG
        out = self.second(self.drop(self.norm(self.first(x, edge_index))).relu(), edge_index)
        return out + 0 * torch.rand(1)


def everything(net):
    """A deep picture of a module: values, identities, flags, hooks, all attributes."""
    picture = {"state": {name: value.clone() for name, value in net.state_dict().items()}}
    for name, module in net.named_modules():
        attributes = {
            key: value
            for key, value in vars(module).items()
            if not key.startswith("_") and isinstance(value, PLAIN)
        }
        picture[name, "attributes"] = {
            key: copy.deepcopy(value) for key, value in attributes.items()
        }
        picture[name, "identities"] = {key: id(value) for key, value in vars(module).items()}
        picture[name, "hooks"] = {
            key: list(value) for key, value in vars(module).items() if key.endswith("_hooks")
        }
        picture[name, "cache"] = [
            id(vars(module).get(key)) for key in ("_cached_edge_index", "_cached_adj_t")
        ]
        picture[name, "names"] = sorted(vars(module))
        picture[name, "explain"] = vars(module).get("_explain")
    picture["tensors"] = [
        (
            id(tensor),
            tensor.data_ptr(),
            tensor.requires_grad,
            id(tensor.grad),
            None if tensor.grad is None else tensor.grad.clone(),
        )
        for tensor in [*net.parameters(), *net.buffers()]
    ]
    picture["random"] = (torch.get_rng_state(), repr(np.random.get_state()), random.getstate())
    return picture


def assert_same(first, second, where="net"):
    if isinstance(first, torch.Tensor):
        assert first.equal(second), where
    elif isinstance(first, np.ndarray):
        assert np.array_equal(first, second), where
    elif isinstance(first, dict):
        assert first.keys() == second.keys(), where
        for key in first:
            assert_same(first[key], second[key], f"{where}.{key}")
    elif isinstance(first, (list, tuple)):
        assert len(first) == len(second), where
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            assert_same(one, other, f"{where}[{number}]")
    else:
        assert first == second, where


@pytest.fixture
def rich():
    """A network in a state that is easy to disturb."""
    net = build(Rich)
    data = random_graph()
    net(data.x, data.edge_index).sum().backward()
    net.train()
    net.second.eval()
    net.first.lin.weight.requires_grad_(False)
    net.register_forward_hook(lambda *_: None)
    net.second.register_message_forward_hook(lambda *_: None)
    return net, data


CALLS = {
    "pred_continuous": lambda model: model.pred_continuous([0, 1]),
    "pred_discrete": lambda model: model.pred_discrete([0, 1]),
    "embed": lambda model: model.embed([0, 1]),
    "computation_graphs": lambda model: model.computation_graphs([0, 1]),
    "pred_copies": lambda model: model.pred_copies(model.computation_graphs([0, 1])),
    "mask": lambda model: model.pred_copies(
        model.computation_graphs([0, 1]),
        edit=lambda union: union.with_mask(torch.zeros(union.num_edges)),
    ),
    "record": lambda model: model.record(),
    "check_model": lambda model: gg.check_model(model, on_fail="return"),
    "population": lambda model: model.population(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_public_call_leaves_the_network_as_it_was(rich, call):
    """Dropout and batch norm are in training mode before and after a call, never during it."""
    net, data = rich
    before = everything(net)
    call(gg.NodeClassificationModel(net, data))
    assert_same(before, everything(net))


@pytest.mark.parametrize(
    "call", [name for name in CALLS if name not in ("check_model", "population")]
)
def test_a_forward_that_raises_leaves_the_network_as_it_was(rich, call):
    net, data = rich
    model = gg.NodeClassificationModel(net, data)
    net.fail = True
    before = everything(net)
    with pytest.raises((RuntimeError, BadModel), match="the network broke"):
        CALLS[call](model)
    assert_same(before, everything(net))
    net.fail = False
    assert model.pred_continuous([0]).shape == (1, CLASSES)


def test_calls_on_every_level_leave_the_network_as_it_was():
    data, many = random_graph(), [random_graph(9, 12, seed=seed) for seed in range(5)]
    for model in (
        gg.LinkClassificationModel(build(EncodeDecode), data),
        gg.LinkRegressionModel(build(LinkForward, out=1), data),
        gg.GraphClassificationModel(build(Pooled), many),
        gg.GraphRegressionModel(build(Pooled, out=1), many),
        gg.NodeRegressionModel(build(Stack, GCNConv, out=1), data),
    ):
        model.net.train()
        before = everything(model.net)
        targets = [(0, 1), (2, 3)] if model.level == "link" else [0, 1]
        model.pred_discrete(targets)
        model.embed(targets)
        model.pred_copies(model.computation_graphs(targets))
        model.record()
        assert_same(before, everything(model.net))


def test_even_a_network_that_rewrites_itself_is_restored():
    class Vandal(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GCNConv(FEATURES, CLASSES)

        def forward(self, x, edge_index):
            out = self.conv(x, edge_index)
            with torch.no_grad():
                self.conv.bias.data.add_(1.0)
                self.conv.lin.weight.mul_(2.0)
            self.conv.bias.requires_grad_(False)
            self.extra = nn.Parameter(torch.zeros(1))
            return out

    net = build(Vandal)
    before = everything(net)
    with preserve_network(net):
        net(torch.rand(5, FEATURES), torch.tensor([[0, 1], [1, 2]]))
    assert_same(before, everything(net))


def test_versions_stay_so_that_a_training_step_can_go_on():
    net, data = build(Stack, GCNConv).train(), random_graph()
    loss = net(data.x, data.edge_index).sum()
    gg.NodeClassificationModel(net, data).pred_continuous([0])
    loss.backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_predictions_follow_a_network_that_is_trained_further():
    net, data = build(Stack, GCNConv), random_graph()
    model = gg.NodeClassificationModel(net, data)
    first = model.pred_continuous([0, 1])
    with torch.no_grad():
        net.convs[1].bias.add_(torch.arange(CLASSES))
    assert model.pred_continuous([0, 1]).equal(net(data.x, data.edge_index).softmax(1)[:2])
    assert not model.pred_continuous([0, 1]).equal(first)
    net.load_state_dict({name: torch.zeros_like(value) for name, value in net.state_dict().items()})
    assert model.pred_continuous([0, 1]).eq(1 / CLASSES).all()


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.convs[0].lin.weight.data.mul_(3),
        lambda net: setattr(net, "scale", 5.0),
        lambda net: setattr(net.convs[1], "normalize", False),
    ],
    ids=["data", "attribute", "setting"],
)
def test_changes_that_autograd_does_not_count_are_noticed(change):
    class Scaled(Stack):
        scale = 1.0

        def forward(self, x, edge_index):
            return super().forward(x, edge_index) * self.scale

    net, data = build(Scaled, GCNConv), random_graph()
    model = gg.NodeClassificationModel(net, data)
    before = model.pred_continuous(range(60))
    change(net)
    after = model.pred_continuous(range(60))
    assert after.equal(net(data.x, data.edge_index).softmax(1))
    assert not after.equal(before)


def test_features_changed_in_place_are_noticed():
    net, data = build(Stack, GCNConv), random_graph()
    model = gg.NodeClassificationModel(net, data)
    model.computation_graphs([0])
    data.x[:] = 2 * data.x + 1
    assert model.pred_continuous([0, 1]).equal(net(data.x, data.edge_index).softmax(1)[:2])
    assert "whole graph" not in model.computation_graphs([0, 1]).notes()


def test_a_network_that_counts_its_calls_in_a_buffer_is_not_probed_again():
    net, data = build(Rich), random_graph()
    net.first.cached = False
    calls = []
    net.register_forward_pre_hook(lambda *_: calls.append(1))
    model = gg.NodeClassificationModel(net, data)
    model.computation_graphs([0])
    first = len(calls)
    model.computation_graphs([1])
    assert len(calls) - first == 1


def test_a_sparse_buffer_does_no_harm():
    class Sparse(Stack):
        def __init__(self, layer):
            super().__init__(layer)
            self.register_buffer("table", torch.eye(3).to_sparse())

    net, data = build(Sparse, GCNConv), random_graph()
    assert gg.NodeClassificationModel(net, data).pred_continuous([0]).shape == (1, CLASSES)


def test_the_population_that_is_handed_out_is_a_copy():
    model = gg.NodeClassificationModel(build(Stack, GCNConv), random_graph())
    model.population().mul_(0)
    assert model.population().tolist() == list(range(60))


def test_a_network_that_changes_its_input_changes_only_a_copy():
    class Greedy(Stack):
        def forward(self, x, edge_index, u):
            x.add_(1.0)
            u.add_(1.0)
            return super().forward(x, edge_index) * u

    data = random_graph()
    data.u = torch.ones(1)
    x, edges = data.x.clone(), data.edge_index.clone()
    net = build(Greedy, GCNConv)
    model = gg.NodeClassificationModel(net, data)
    pred = model.pred_copies(model.computation_graphs([0, 3]))
    assert data.x.equal(x)
    assert data.edge_index.equal(edges)
    assert data.u.item() == 1.0
    assert (pred - net(x.clone(), edges, torch.ones(1)).softmax(1)[[0, 3]]).abs().max() <= 1e-6


def test_a_network_that_changes_its_input_can_be_asked_twice_and_has_gradients():
    class Greedy(Stack):
        def forward(self, x, edge_index):
            x.mul_(2.0)
            return super().forward(x, edge_index)

    model = gg.NodeClassificationModel(build(Greedy, GCNConv), random_graph())
    twice = model.map(
        lambda union: model.executor.outputs(union) - model.executor.outputs(union),
        model.computation_graphs([0, 1]),
    )
    assert twice.eq(0).all()
    gg.check_model(model)


def test_threads_take_turns_on_one_network():
    from concurrent.futures import ThreadPoolExecutor

    net, data = build(Rich), random_graph()
    net.train()
    wrappers = [gg.NodeClassificationModel(net, data) for _ in range(2)]
    expected = wrappers[0].pred_continuous([3])
    before = everything(net)
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(lambda number: wrappers[number % 2].pred_continuous([3]), range(40))
        )
    assert all(answer.equal(expected) for answer in answers)
    assert_same(before, everything(net))
