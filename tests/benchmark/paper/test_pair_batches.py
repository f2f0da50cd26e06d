"""Training on batches of pairs is what PyG's layers and torch's Adam give, one network at a time
with the same batches. A network that diverges goes back to its best weights.
"""

import json
from dataclasses import asdict

import pytest
import torch
from support.tiny_tasks import made_task
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss
from typer.testing import CliRunner

from graphgauge.benchmark.paper.early_stopping import StoppingRule
from graphgauge.benchmark.paper.grid_search import PairBatchTraining, train_on_pair_batches
from graphgauge.benchmark.paper.model_accuracy import score_parts
from graphgauge.benchmark.paper.pair_batches import PairBatches, draw_batches
from graphgauge.benchmark.paper.training import TrainingRecipe, train_networks
from graphgauge.cli.main import app
from graphgauge.core import derive_seed
from graphgauge.core.errors import BadSetting, UnknownName
from graphgauge.datasets import trained, trained_record
from graphgauge.datasets.networks import create_network, decoder_name

SHORT = PairBatches(pairs=8, steps=20, check_every=3)
PARTS = ("train", "val", "test", "all")


def literal_batches(data, seed, size):
    """The training pairs, ordered by their nodes, shuffled once an epoch; an epoch's last pairs,
    too few for a batch, are left out.
    """
    pairs = data.train_mask.nonzero()[:, 0].tolist()
    pairs.sort(key=lambda pair: data.edge_label_index[:, pair].tolist())
    random = torch.Generator().manual_seed(derive_seed(seed, "pair batches"))
    while True:
        order = [pairs[place] for place in torch.randperm(len(pairs), generator=random).tolist()]
        while len(order) >= size:
            yield torch.tensor(order[:size])
            order = order[size:]


def literal_loss(net, data, pairs):
    output = net.decode(net.encode(data.x, data.edge_index), data.edge_label_index)[pairs]
    label = data.edge_label[pairs]
    if data.task == "regression":
        return mse_loss(output, label)
    if decoder_name(data) == "inner_product":
        return binary_cross_entropy_with_logits(output, label.to(output.dtype))
    return cross_entropy(output, label)


def literal_training(data, conv, recipe, batches):
    """One network, one step after another. Returns its best weights, their validation loss, their
    step, and the learning rate at the end.
    """
    net = create_network(data, conv, recipe.hidden, 0.0, recipe.bias, recipe.seed)
    rate = recipe.learning_rate

    def new_adam():
        return torch.optim.Adam(net.parameters(), lr=rate, weight_decay=recipe.weight_decay)

    def copied_weights():
        return {name: value.clone() for name, value in net.state_dict().items()}

    def losses():
        with torch.no_grad():
            return [
                float(literal_loss(net, data, data[f"{part}_mask"]))
                for part in (batches.watch, "val")
            ]

    optimiser, (lowest, val_loss) = new_adam(), losses()
    best = copied_weights(), val_loss, 0
    size = min(batches.pairs, int(data.train_mask.sum()))
    for step, pairs in zip(
        range(1, batches.steps + 1), literal_batches(data, recipe.seed, size), strict=False
    ):
        if step == round(batches.steps * (1 - batches.final_share)) + 1:
            rate *= batches.final_rate_factor
            optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        literal_loss(net, data, pairs).backward()
        optimiser.step()
        if step % batches.check_every != 0 and step != batches.steps:
            continue
        loss, val_loss = losses()
        if loss < lowest:
            lowest, best = loss, (copied_weights(), val_loss, step)
        if not loss <= batches.max_loss_ratio * lowest or loss == float("inf"):
            net.load_state_dict(best[0])
            rate /= 2
            optimiser = new_adam()
    return *best, rate


def assert_same(state, expected, tolerance=1e-10):
    assert state.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(state[name], value, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("kind", "bias"),
    [
        ("link_values", False),
        ("link_values", True),
        ("existence", True),
        ("link_classes", False),
        ("sums", False),
    ],
)
@pytest.mark.parametrize("watch", ["val", "train"])
@pytest.mark.parametrize("conv", ["gcn", "gat"])
@pytest.mark.numeric
def test_batches_of_pairs_train_the_networks_of_torch_and_pyg(conv, watch, kind, bias):
    data = made_task(kind)
    batches = PairBatches(pairs=8, steps=20, check_every=3, watch=watch)
    recipes = [
        TrainingRecipe(8, rate, decay, 0.0, bias, seed)
        for seed, (rate, decay) in enumerate([(1e-2, 1e-3), (3e-2, 0.0)])
    ]
    together = train_networks(data, conv, recipes, batches)
    for recipe, done in zip(recipes, together, strict=True):
        state, val_loss, step, _ = literal_training(data, conv, recipe, batches)
        assert_same(done.state, state)
        assert done.val_loss == pytest.approx(val_loss, abs=1e-10)
        assert (done.best_epoch, done.epochs) == (step, 20)


@pytest.mark.parametrize("conv", ["gcn", "gat"])
def test_a_network_learns_the_same_alone_and_in_a_stack(conv):
    data = made_task("link_values")
    recipes = [
        TrainingRecipe(8, rate, 1e-4, dropout, True, seed)
        for seed, (rate, dropout) in enumerate([(0.02, 0.0), (0.01, 0.5), (5.0, 0.0), (0.05, 0.2)])
    ]
    together = train_networks(data, conv, recipes, SHORT)
    for recipe, done in zip(recipes, together, strict=True):
        (alone,) = train_networks(data, conv, [recipe], SHORT)
        assert alone.best_epoch == done.best_epoch
        assert_same(done.state, alone.state)


@pytest.mark.parametrize("conv", ["gcn", "gat"])
def test_a_network_that_diverges_goes_back_to_its_best_weights_with_a_lower_rate(conv):
    data = made_task("link_values")
    recipe = TrainingRecipe(8, 1.0, 0.0, 0.0, True, 1)
    guarded = PairBatches(pairs=8, steps=150, check_every=5)
    unguarded = PairBatches(pairs=8, steps=150, check_every=5, max_loss_ratio=float("inf"))
    (by_guard,), (without,) = (
        train_networks(data, conv, [recipe], batches) for batches in (guarded, unguarded)
    )
    state, val_loss, step, rate = literal_training(data, conv, recipe, guarded)
    assert rate <= guarded.final_rate_factor / 4  # at least two restarts
    assert by_guard.best_epoch == step
    assert by_guard.val_loss == pytest.approx(val_loss, rel=1e-6)
    assert_same(by_guard.state, state, 1e-6)
    assert by_guard.val_loss < 0.6 * without.val_loss


def test_a_network_that_overflows_starts_again_until_it_learns():
    data = made_task("link_values", dtype=torch.float32)
    recipe = TrainingRecipe(8, 1e12, 0.0, 0.0, True)
    batches = PairBatches(pairs=8, steps=150, check_every=1)
    (done,) = train_networks(data, "gat", [recipe], batches)
    (without,) = train_networks(data, "gat", [recipe], StoppingRule(150, 150))
    assert all(value.isfinite().all() for value in done.state.values())
    assert done.best_epoch > 0
    assert without.best_epoch == 0  # it never had a finite loss
    assert done.val_loss < without.val_loss


def test_divergence_is_a_loss_far_above_the_lowest_or_none():
    lowest = torch.tensor([1.0, 1.0, 1.0, 1.0, torch.inf])
    loss = torch.tensor([1.9, 2.1, torch.nan, torch.inf, torch.inf])
    assert PairBatches().has_diverged(loss, lowest).tolist() == [False, True, True, True, True]
    only_no_number = PairBatches(max_loss_ratio=float("inf")).has_diverged(loss, lowest)
    assert only_no_number.tolist() == [False, False, True, True, True]


def test_an_epoch_holds_each_pair_once_and_every_network_has_its_own_order():
    batches = draw_batches([1, 2], 10, 3, torch.device("cpu"))
    first, second = (torch.cat([next(batches) for _ in range(3)], 1) for _ in range(2))
    for row in (*first, *second):
        assert len(row.unique()) == 9
        assert 0 <= row.min() <= row.max() < 10
    assert not first[0].equal(first[1])
    assert not first[0].equal(second[0])
    alone = draw_batches([2], 10, 3, torch.device("cpu"))
    assert torch.cat([next(alone) for _ in range(3)], 1)[0].equal(first[1])
    assert next(draw_batches([0], 10, 4096, torch.device("cpu"))).shape == (1, 10)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pairs": 0}, "at least 1"),
        ({"steps": 0}, "at least 1"),
        ({"check_every": 0}, "at least 1"),
        ({"final_share": 1.5}, "final_share must be from 0 to 1"),
        ({"final_rate_factor": 0.0}, "final_rate_factor above 0"),
        ({"max_loss_ratio": 0.5}, "max_loss_ratio at least 1"),
    ],
)
def test_batches_that_cannot_be_are_refused(given, message):
    with pytest.raises(BadSetting, match=message):
        PairBatches(**given)


def test_an_unknown_part_to_watch_is_refused():
    with pytest.raises(UnknownName, match="No part to watch is called 'test'"):
        PairBatches(watch="test")


def test_node_tasks_are_refused():
    with pytest.raises(BadSetting, match="batches of pairs train networks for links"):
        train_networks(made_task("classes"), "gcn", [TrainingRecipe(8, 0.1, 0.0, 0.0)], SHORT)


def test_one_point_is_trained_with_five_seeds_and_the_best_by_validation_is_kept():
    data = made_task("link_values")
    result = train_on_pair_batches(data, "gcn", PairBatchTraining(SHORT, hidden=8, seed=10))
    assert (result.seeds, result.points) == ([11, 12, 13, 14, 15], 1)
    val = [row["val"] for row in result.scores]
    assert result.recipe.seed == result.seeds[val.index(max(val))]
    assert result.recipe == TrainingRecipe(8, 0.01, 0.0, 0.0, True, result.recipe.seed)
    assert result.plan.decoder_bias


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Runs ``graphgauge train`` on small made data."""
    made = {"node": "weighted_values", "link": "link_values"}
    monkeypatch.setattr(
        "graphgauge.datasets.network_tasks.load",
        lambda name, level, folder=None: made_task(made[level]),
    )
    usual = ["--device", "cpu", "--folder", str(tmp_path / "runs")]
    return lambda *given: CliRunner().invoke(app, ["train", *given, *usual])


OPTIONS = "--pair-batches 8 --watch train --steps 20 --hidden 16 --learning-rate 0.02"


@pytest.mark.parametrize("conv", ["gcn", "gat"])
def test_a_kept_network_comes_back_with_how_it_was_trained(command, tmp_path, conv):
    task, folder = f"movielens-link-{conv}", tmp_path / "kept"
    done = command(task, "--json", "--keep", str(folder), *OPTIONS.split())
    (shown,) = json.loads(done.stdout)
    record = trained_record("MovieLens", "link", conv, folder)
    assert record["task"]["command"] == f"graphgauge train {task} {OPTIONS}"
    assert record["scores"] == {part: value["mean"] for part, value in shown["scores"].items()}
    settings = record["settings"]
    batches = asdict(PairBatches(pairs=8, steps=20, watch="train"))
    assert {name: settings[name] for name in batches} == batches
    assert (settings["hidden"], settings["learning_rate"], settings["points"]) == (16, 0.02, 1)
    net = trained("MovieLens", "link", conv, folder)
    assert score_parts(net, made_task("link_values"), PARTS) == record["scores_kept"]
    assert not (tmp_path / "runs").exists()


def test_the_table_has_a_row_for_each_network(command):
    done = command("movielens-link", *OPTIONS.split())
    _, gcn, gat = done.stdout.splitlines()
    assert gcn.startswith("movielens-link-gcn")
    assert gat.startswith("movielens-link-gat")
    assert "hidden 16, lr 0.02, decay 0, dropout 0, decoder bias" in gat


def test_a_node_task_fails_by_name_with_batches_of_pairs(command):
    done = command("movielens-node-gcn", *OPTIONS.split())
    assert done.exit_code == 1
    assert "failed: batches of pairs train networks for links" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--steps", "20", "--hidden", "8"], "--hidden, --steps cannot be used in a search"),
        (["--pair-batches", "8", "--points", "3"], "--points cannot be used together with"),
        (["--pair-batches", "8", "--epochs", "3", "--decoder-bias"], "--decoder-bias, --epochs"),
    ],
)
def test_options_of_the_other_way_of_training_are_refused(command, options, message):
    done = command("movielens-link-gcn", *options)
    assert done.exit_code != 0
    assert isinstance(done.exception, BadSetting)
    assert message in str(done.exception)
