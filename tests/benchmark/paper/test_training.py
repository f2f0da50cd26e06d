"""Networks trained together are what each would be alone, trained by PyTorch's own Adam on PyG's
own layers.
"""

import pytest
import torch
from support.tiny_tasks import KINDS, made_task
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

from graphgauge.benchmark.paper.early_stopping import StoppingRule
from graphgauge.benchmark.paper.training import TrainingRecipe, _BatchedDropout, train_networks
from graphgauge.core.errors import BadSetting, OutOfMemory
from graphgauge.datasets.networks import (
    create_network,
    decoder_name,
    edge_inputs,
    plan_architecture,
    rebuild_network,
    task_labels,
)

RATES = [(1e-2, 1e-3), (3e-2, 0.0)]


def raw_rows(net, data, conv):
    if data.level == "node":
        return net(data.x, data.edge_index, **edge_inputs(data, conv))
    return net.decode(net.encode(data.x, data.edge_index), data.edge_label_index)


def literal_loss(net, data, conv, mask):
    rows, label = raw_rows(net, data, conv)[mask], task_labels(data)[mask]
    if data.task == "regression":
        return mse_loss(rows.reshape(-1), label)
    if decoder_name(data) == "inner_product":
        return binary_cross_entropy_with_logits(rows, label.to(rows.dtype))
    return cross_entropy(rows, label)


def literal_training(data, conv, recipe, epochs, patience, watch="val"):
    """One network, one step after another, as the paper tells it."""
    net = create_network(data, conv, recipe.hidden, recipe.dropout, recipe.bias, recipe.seed)
    optimiser = torch.optim.Adam(
        net.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    lowest, best, waited = float("inf"), None, 0
    for epoch in range(1, epochs + 1):
        net.train()
        optimiser.zero_grad()
        literal_loss(net, data, conv, data.train_mask).backward()
        optimiser.step()
        net.eval()
        with torch.no_grad():
            val_loss, train_loss = (
                float(literal_loss(net, data, conv, mask))
                for mask in (data.val_mask, data.train_mask)
            )
        loss = {"val": val_loss, "train": train_loss}[watch]
        if loss < lowest:
            lowest, its_val_loss, waited = loss, val_loss, 0
            best = {name: value.clone() for name, value in net.state_dict().items()}, epoch
        else:
            waited += 1
        if waited == patience:
            break
    return best[0], its_val_loss, best[1], epoch


def assert_same(done, state, tolerance):
    assert done.state.keys() == state.keys()
    for name, value in state.items():
        torch.testing.assert_close(done.state[name], value, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("kind", "bias", "sparse"),
    [
        *((kind, False, False) for kind in KINDS),
        ("existence", True, False),
        ("link_values", True, True),
        ("classes", False, True),
    ],
)
@pytest.mark.parametrize("conv", ["gcn", "gat"])
@pytest.mark.numeric
def test_stacked_networks_are_those_of_torch_and_pyg(conv, kind, bias, sparse, device):
    data = made_task(kind, sparse=sparse)
    recipes = [
        TrainingRecipe(8, rate, decay, 0.0, bias, seed) for seed, (rate, decay) in enumerate(RATES)
    ]
    for recipe, done in zip(
        recipes,
        train_networks(data.clone().to(device), conv, recipes, StoppingRule(30, 30)),
        strict=True,
    ):
        state, val_loss, best_epoch, _ = literal_training(data, conv, recipe, 30, 30)
        if device == "cpu":
            assert_same(done, state, 1e-10)
            assert (done.val_loss, done.best_epoch) == (
                pytest.approx(val_loss, abs=1e-10),
                best_epoch,
            )
        # slopes that are 0 but for rounding have other signs there, and Adam's first steps are
        # nothing but signs
        else:
            assert done.val_loss == pytest.approx(val_loss, abs=2e-3)


@pytest.mark.parametrize(
    ("kind", "conv", "highest"), [("classes", "gcn", 1.0), ("link_values", "gat", 0.3)]
)
@pytest.mark.parametrize("watch", ["val", "train"])
def test_each_network_stops_where_it_would_stop_alone_and_keeps_its_best_weights(
    watch, kind, conv, highest
):
    data = made_task(kind, seed=3)
    recipes = [
        TrainingRecipe(8, rate, 1e-4, 0.0, seed=seed)
        for seed in range(3)
        for rate in (highest, 0.1)
    ]
    found = train_networks(data, conv, recipes, StoppingRule(60, 5, watch))
    for recipe, done in zip(recipes, found, strict=True):
        state, val_loss, best_epoch, last_epoch = literal_training(data, conv, recipe, 60, 5, watch)
        assert (done.best_epoch, done.epochs) == (best_epoch, last_epoch)
        assert done.val_loss == pytest.approx(val_loss, abs=1e-6)
        # a slope that is 0 but for rounding is scaled up by Adam: 1e-16 / 1e-8 in one step
        assert_same(done, state, 1e-6)
    assert len({done.epochs for done in found}) > 1


@pytest.mark.parametrize("kind", ["classes", "weighted_values", "existence", "sums"])
@pytest.mark.parametrize("conv", ["gcn", "gat"])
def test_dropout_does_not_depend_on_the_company(conv, kind):
    data = made_task(kind)
    recipes = [
        TrainingRecipe(8, 0.05, 1e-4, dropout, seed=seed)
        for seed, dropout in enumerate((0.5, 0.0, 0.2, 0.3))
    ]
    together = train_networks(data, conv, recipes, StoppingRule(40, 5))
    for recipe, done in zip(recipes, together, strict=True):
        (alone,) = train_networks(data, conv, [recipe], StoppingRule(40, 5))
        assert (alone.best_epoch, alone.epochs) == (done.best_epoch, done.epochs)
        # not 0: a product with more columns may be summed in another order
        assert_same(done, alone.state, 1e-10)


def test_dropout_silences_the_right_share_and_keeps_the_mean():
    dropout = _BatchedDropout(
        [TrainingRecipe(64, 0.01, 0.0, share) for share in (0.0, 0.2, 0.5)], torch.device("cpu")
    )
    kept = torch.cat([dropout.factors(torch.empty(0), 24, 64) for _ in range(20)], 1)
    assert [row.unique().tolist() for row in kept] == [[1.0], [0.0, 1.25], [0.0, 2.0]]
    share = (kept == 0).double().mean((1, 2))
    assert (share - torch.tensor([0.0, 0.2, 0.5])).abs().max() < 4 * 0.5 / kept[0].numel() ** 0.5
    assert not kept[1, :24].equal(kept[1, 24:48])


def test_dropout_changes_what_is_learnt():
    data = made_task("classes")
    with_it, without = train_networks(
        data, "gcn", [TrainingRecipe(8, 0.05, 0.0, p) for p in (0.5, 0.0)], StoppingRule(5)
    )
    assert (
        with_it.state["first.lin.weight"] - without.state["first.lin.weight"]
    ).abs().max() > 1e-3


def test_a_small_memory_budget_splits_the_stack_and_changes_no_network():
    data = made_task("existence")
    recipes = [TrainingRecipe(8, 0.05, 1e-4, 0.2, seed=seed) for seed in range(5)]
    whole, split = (
        train_networks(data, "gat", recipes, StoppingRule(10), budget)
        for budget in ("1GiB", "100KB")
    )
    for one, other in zip(whole, split, strict=True):
        assert_same(one, other.state, 1e-10)
    with pytest.raises(OutOfMemory, match="not even one network"):
        train_networks(data, "gat", recipes, budget="1KB")


def test_training_moves_no_global_random_state_and_is_repeatable():
    data, before = made_task("classes"), torch.get_rng_state()
    one, other = (
        train_networks(data, "gat", [TrainingRecipe(8, 0.01, 0.0, 0.5)], StoppingRule(5))[0]
        for _ in range(2)
    )
    assert torch.get_rng_state().equal(before)
    assert all(value.equal(other.state[name]) for name, value in one.state.items())


@pytest.mark.parametrize("watch", ["val", "train"])
def test_a_network_rebuilt_from_its_weights_has_the_validation_loss_that_was_kept(watch):
    data = made_task("link_classes")
    (done,) = train_networks(
        data, "gcn", [TrainingRecipe(8, 0.05, 0.0, 0.3)], StoppingRule(20, watch=watch)
    )
    net = rebuild_network(plan_architecture(data, "gcn", 8, 0.3), done.state)
    assert not net.training
    assert literal_loss(net, data, "gcn", data.val_mask).item() == pytest.approx(
        done.val_loss, abs=1e-12
    )


def test_recipes_of_two_sizes_are_refused():
    with pytest.raises(BadSetting, match="one hidden size"):
        train_networks(
            made_task("classes"),
            "gcn",
            [TrainingRecipe(8, 0.1, 0.0, 0.0), TrainingRecipe(16, 0.1, 0.0, 0.0)],
        )


def test_a_network_that_watches_the_training_loss_learns_on_where_the_validation_loss_rises():
    data = made_task("classes", seed=3)
    recipe = [TrainingRecipe(8, 0.1, 0.0, 0.0)]
    (by_val,), (by_train,) = (
        train_networks(data, "gcn", recipe, StoppingRule(60, 5, watch))
        for watch in ("val", "train")
    )
    assert by_val.epochs < by_train.epochs
    assert by_val.val_loss < by_train.val_loss


@pytest.mark.parametrize("given", [{"epochs": 0}, {"patience": 0}])
def test_training_of_no_length_is_refused(given):
    with pytest.raises(BadSetting, match="epochs and patience must be at least 1"):
        StoppingRule(**given)
