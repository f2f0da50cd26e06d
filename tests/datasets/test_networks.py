"""The paper's networks: what they compute, and how they start.

Wrappers accept each of them.
"""

import pytest
import torch
from support.tiny_tasks import KINDS, made_task
from torch import nn

import graphgauge as gg
from graphgauge.benchmark.paper.model_accuracy import (
    _class_accuracy,
    _network_outputs,
    _r2_score,
    score_parts,
)
from graphgauge.core.errors import UnknownName
from graphgauge.datasets import create_network, plan_architecture
from graphgauge.datasets.networks import _last_bias, task_labels

WRAPPERS = {
    ("node", "classification"): gg.NodeClassificationModel,
    ("node", "regression"): gg.NodeRegressionModel,
    ("link", "classification"): gg.LinkClassificationModel,
    ("link", "regression"): gg.LinkRegressionModel,
}
CHECKED = [  # every layer, decoder, edge input and wrapper
    ("classes", "gcn"),
    ("weighted_values", "gcn"),
    ("weighted_values", "gat"),
    ("existence", "gat"),
    ("link_classes", "gcn"),
    ("sums", "gat"),
]
DECODERS = {
    "existence": "inner_product",
    "link_values": "inner_product",
    "link_classes": "hadamard",
    "sums": "sum",
}


@pytest.mark.parametrize(("kind", "conv"), CHECKED)
def test_every_network_passes_the_checks_of_a_model(kind, conv):
    data = made_task(kind)
    net = create_network(data, conv, 8, 0.3, seed=1).eval()
    options = {"output": "logits"} if data.task == "classification" else {}
    model = WRAPPERS[data.level, data.task](net, data, **options)
    assert [
        result for result in gg.check_model(model, on_fail="return") if result.status == "failed"
    ] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_architecture_follows_the_task(kind):
    data = made_task(kind)
    plan = plan_architecture(data, "gat", 8, 0.3, bias=True)
    assert plan.decoder == DECODERS.get(kind, "none")
    assert plan.rectifier == ("relu" if data.task == "classification" else "leaky_relu")
    assert plan.edge_input == (kind == "weighted_values")
    assert plan.decoder_bias == (plan.decoder == "inner_product")
    assert plan.outputs == {"classes": 3, "weighted_values": 1, "values": 1, "sums": 1}.get(kind, 8)


def test_the_decoders_compute_what_they_are_called():
    z, pairs = torch.tensor([[1.0, 2.0], [3.0, -1.0]]), torch.tensor([[0, 1], [1, 1]])
    inner = create_network(made_task("existence"), "gcn", 2, 0.0, bias=True)
    inner.decoder.bias.data.fill_(0.5)
    assert inner.decode(z.double(), pairs).tolist() == [1.5, 10.5]
    several = create_network(made_task("link_classes"), "gcn", 2, 0.0).decoder.linear
    expected = torch.tensor([[3.0, -2.0], [9.0, 1.0]]).double() @ several.weight.T + several.bias
    torch.testing.assert_close(
        create_network(made_task("link_classes"), "gcn", 2, 0.0).decode(z.double(), pairs), expected
    )
    assert create_network(made_task("sums"), "gcn", 2, 0.0).decode(z[:, :1], pairs).tolist() == [
        4.0,
        6.0,
    ]


@pytest.mark.parametrize(
    ("kind", "share"),
    [("values", 1.0), ("weighted_values", 1.0), ("link_values", 1.0), ("sums", 0.5)],
)
def test_a_network_for_values_starts_at_the_mean_training_label(kind, share):
    data = made_task(kind)
    bias = _last_bias(create_network(data, "gcn", 8, 0.0, bias=True))
    assert float(bias.detach()) == pytest.approx(
        share * float(task_labels(data)[data.train_mask].mean()), abs=1e-6
    )


def test_a_network_for_classes_starts_with_no_bias_and_an_inner_product_has_none_unless_asked():
    assert _last_bias(create_network(made_task("classes"), "gcn", 8, 0.0)).tolist() == [
        0.0,
        0.0,
        0.0,
    ]
    assert _last_bias(
        create_network(made_task("existence"), "gcn", 8, 0.0, bias=True)
    ).tolist() == [0.0]
    assert _last_bias(create_network(made_task("link_values"), "gcn", 8, 0.0)) is None


def test_a_seed_means_one_network_and_leaves_the_global_state_alone():
    data, before = made_task("classes"), torch.get_rng_state()
    one, same, other = (
        create_network(data, "gat", 8, 0.0, seed=seed).state_dict() for seed in (3, 3, 4)
    )
    assert torch.get_rng_state().equal(before)
    assert all(value.equal(same[name]) for name, value in one.items())
    assert not one["first.lin.weight"].equal(other["first.lin.weight"])


def test_activations_and_dropout_are_modules():
    kinds = [
        type(module) for module in create_network(made_task("values"), "gat", 8, 0.4).modules()
    ]
    assert nn.LeakyReLU in kinds
    assert nn.ReLU in [
        type(module) for module in create_network(made_task("classes"), "gat", 8, 0.4).modules()
    ]
    assert [
        module.p
        for module in create_network(made_task("values"), "gcn", 8, 0.4).modules()
        if isinstance(module, nn.Dropout)
    ] == [0.4]


def test_an_unknown_network_is_refused_by_name():
    with pytest.raises(UnknownName, match="No network is called 'gin'"):
        create_network(made_task("classes"), "gin", 8, 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_equal_their_definition(kind):
    data = made_task(kind)
    net = create_network(data, "gcn", 8, 0.3, bias=True).eval()
    rows, label = _network_outputs(net, data).tolist(), task_labels(data).tolist()
    found = score_parts(net, data, ("val", "all"))
    for part, mask in (("val", data.val_mask.tolist()), ("all", [True] * len(label))):
        pairs = [(row, y) for row, y, chosen in zip(rows, label, mask, strict=True) if chosen]
        assert found[part] == pytest.approx(literal_score(pairs, data.task), abs=1e-12)


def literal_score(pairs, task):
    if task == "classification":
        named = [row.index(max(row)) if isinstance(row, list) else int(row > 0) for row, _ in pairs]
        return sum(a == y for a, (_, y) in zip(named, pairs, strict=True)) / len(pairs)
    mean = sum(y for _, y in pairs) / len(pairs)
    value = [row[0] if isinstance(row, list) else row for row, _ in pairs]
    return 1 - sum((f - y) ** 2 for f, (_, y) in zip(value, pairs, strict=True)) / sum(
        (y - mean) ** 2 for _, y in pairs
    )


def test_scores_of_perfect_and_of_mean_predictions():
    y = torch.tensor([1.0, 2.0, 6.0])
    assert (_r2_score(y, y), _r2_score(torch.full((3,), 3.0), y)) == (1.0, 0.0)
    assert _class_accuracy(torch.tensor([[0.0, 1.0], [3.0, 1.0]]), torch.tensor([1, 0])) == 1.0
