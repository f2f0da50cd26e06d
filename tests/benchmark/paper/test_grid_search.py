"""The search: the paper's points, chosen on validation only, resumed where it stopped, kept with
all that made it.
"""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file
from support.tiny_tasks import made_task
from typer.testing import CliRunner

from graphgauge.benchmark.paper import grid_search as grid
from graphgauge.benchmark.paper.early_stopping import StoppingRule
from graphgauge.benchmark.paper.grid_search import GridSearch, _best_recipe, search_grid
from graphgauge.benchmark.paper.model_accuracy import score_parts
from graphgauge.cli.main import app
from graphgauge.core.errors import BadFile, BadSetting, UnknownName
from graphgauge.datasets import trained, trained_record
from graphgauge.datasets.network_tasks import NETWORK_TASKS, PAPER_SCORES, find_network_tasks

SMALL = GridSearch(StoppingRule(6), points=9)
FIELDS = {"learning_rate": 0.01, "weight_decay": 0.0, "dropout": 0.0, "seed": 0}


def row(hidden, val_score, val_loss, bias=False):
    return {**FIELDS, "hidden": hidden, "bias": bias, "val_score": val_score, "val_loss": val_loss}


@pytest.fixture
def stacks_trained(monkeypatch):
    """The sizes of all stacks that are trained."""
    sizes, train = [], grid.train_networks
    monkeypatch.setattr(
        grid,
        "train_networks",
        lambda data, conv, recipes, *rest: (
            sizes.append(len(recipes)) or train(data, conv, recipes, *rest)
        ),
    )
    return sizes


def test_the_grid_is_the_papers():
    recipes = GridSearch().recipes(made_task("classes"))
    assert len(set(recipes)) == len(recipes) == 225
    assert sorted({r.hidden for r in recipes}) == [8, 16, 32, 64, 128]
    assert sorted({r.learning_rate for r in recipes}) == [1e-4, 1e-3, 1e-2]
    assert sorted({r.weight_decay for r in recipes}) == [1e-5, 1e-4, 1e-3]
    assert sorted({r.dropout for r in recipes}) == [0.0, 0.2, 0.3, 0.4, 0.5]
    assert [len(stack) for stack in grid._group_stacks(recipes)] == [45] * 5


def test_a_decoder_bias_doubles_the_grid_of_inner_products_only():
    wanted = GridSearch(decoder_bias=True)
    sizes = {
        kind: len(wanted.recipes(made_task(kind)))
        for kind in ("existence", "link_values", "link_classes", "sums", "classes")
    }
    assert sizes == {
        "existence": 450,
        "link_values": 450,
        "link_classes": 225,
        "sums": 225,
        "classes": 225,
    }


def test_more_points_than_there_are_is_refused():
    with pytest.raises(BadSetting, match="from 1 to 225"):
        GridSearch(points=226).recipes(made_task("classes"))


def test_validation_score_decides_then_loss_then_size():
    assert _best_recipe([row(8, 0.5, 0.1), row(16, 0.6, 0.9)]).hidden == 16
    assert _best_recipe([row(8, 0.6, 0.9), row(16, 0.6, 0.8)]).hidden == 16
    assert _best_recipe([row(16, 0.6, 0.8), row(8, 0.6, 0.8)]).hidden == 8
    assert _best_recipe([row(8, 0.6, 0.8, bias=True), row(8, 0.6, 0.8)]).bias is False
    assert _best_recipe([row(8, float("nan"), float("inf")), row(16, -3.0, 2.0)]).hidden == 16


def test_what_is_found_is_the_best_point_trained_with_five_other_seeds(tmp_path):
    data = made_task("classes")
    found = search_grid(data, "gcn", SMALL, tmp_path / "made.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "made.jsonl").read_text().splitlines()][1:]
    best = max(rows, key=lambda row: (row["val_score"], -row["val_loss"]))
    assert (found.recipe.hidden, found.recipe.dropout, found.recipe.learning_rate) == (
        best["hidden"],
        best["dropout"],
        best["learning_rate"],
    )
    assert found.seeds == [1, 2, 3, 4, 5]
    results = grid.train_networks(
        data, "gcn", [replace(found.recipe, seed=seed) for seed in found.seeds], StoppingRule(6)
    )
    nets = [grid.rebuild_network(found.plan, done.state) for done in results]
    assert found.scores == [score_parts(net, data, ("train", "val", "test", "all")) for net in nets]
    kept = max(
        range(5), key=lambda number: (found.scores[number]["val"], -results[number].val_loss)
    )
    assert found.recipe.seed == found.seeds[kept]
    assert all(value.equal(results[kept].state[name]) for name, value in found.state.items())
    values = torch.tensor([row["test"] for row in found.scores], dtype=torch.float64)
    assert (found.mean("test"), found.sd("test")) == (
        pytest.approx(float(values.mean())),
        pytest.approx(float(values.std())),
    )


def test_the_test_part_decides_nothing(tmp_path):
    data = made_task("classes")
    changed = data.clone()
    changed.y = torch.where(data.test_mask, (data.y + 1) % 3, data.y)
    one, other = (search_grid(task, "gcn", SMALL) for task in (data, changed))
    assert one.recipe == other.recipe
    assert all(value.equal(other.state[name]) for name, value in one.state.items())
    assert one.mean("test") != other.mean("test")


def test_a_search_that_broke_off_goes_on_and_finds_the_same(tmp_path, stacks_trained, monkeypatch):
    data, path = made_task("existence"), tmp_path / "runs" / "made.jsonl"
    whole = search_grid(data, "gat", SMALL)
    assert stacks_trained == [2, 2, 2, 2, 1, 5]
    stacks_trained.clear()
    add = grid._SearchFile.add
    monkeypatch.setattr(
        grid._SearchFile, "add", lambda rows, new: add(rows, new) if len(rows.known) < 4 else 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        search_grid(data, "gat", SMALL, path)
    assert len(path.read_text().splitlines()) == 1 + 4
    monkeypatch.setattr(grid._SearchFile, "add", add)
    stacks_trained.clear()
    resumed = search_grid(data, "gat", SMALL, path)
    assert stacks_trained == [2, 2, 1, 5]
    assert (resumed.recipe, resumed.scores) == (whole.recipe, whole.scores)
    stacks_trained.clear()
    search_grid(data, "gat", SMALL, path)
    assert stacks_trained == [5]


def test_rows_of_other_settings_are_refused_with_what_changed(tmp_path):
    data, path = made_task("classes"), tmp_path / "made.jsonl"
    wanted = GridSearch(StoppingRule(2), points=1)
    search_grid(data, "gcn", wanted, path)
    with pytest.raises(BadFile, match="epochs was 2 and is 3, seed was 0 and is 7"):
        search_grid(data, "gcn", GridSearch(StoppingRule(3), seed=7, points=1), path)
    with pytest.raises(BadFile, match="patience was 10 and is 9, watch was 'val' and is 'train'"):
        search_grid(data, "gcn", GridSearch(StoppingRule(2, 9, "train"), points=1), path)
    with pytest.raises(BadFile, match="data was"):
        search_grid(made_task("classes", seed=1), "gcn", wanted, path)
    search_grid(data, "gcn", replace(wanted, points=2), path)  # another part of the same grid
    path.write_text("nonsense\n")
    with pytest.raises(BadFile, match="is not a file of finished training runs"):
        search_grid(data, "gcn", wanted, path)


def test_twenty_tasks_with_the_papers_figures():
    assert (len(NETWORK_TASKS), len(PAPER_SCORES)) == (20, 10)
    assert (
        NETWORK_TASKS["movielens-node-gat"].paper,
        NETWORK_TASKS["synthetic-link-gcn"].paper,
    ) == (0.64, 0.31)
    assert [len(find_network_tasks(name)) for name in ("all", "cora-link", "github-node-gat")] == [
        20,
        2,
        1,
    ]
    with pytest.raises(
        UnknownName, match=r"No task is called 'cora-nod'\. Did you mean 'cora-node'"
    ):
        find_network_tasks("cora-nod")


def test_the_grid_is_judged_by_validation_also_where_the_training_loss_is_watched(tmp_path):
    data, path = made_task("classes", seed=2), tmp_path / "made.jsonl"
    found = search_grid(data, "gcn", GridSearch(StoppingRule(30, 3, "train"), points=9), path)
    first, *rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert first["watch"] == "train"
    best = max(rows, key=lambda row: (row["val_score"], -row["val_loss"]))
    assert replace(found.recipe, seed=0) == grid._parse_recipe(best)
    assert best["train_score"] < max(row["train_score"] for row in rows)


@pytest.fixture
def made_loader(monkeypatch):
    """A loader that gives small made data in place of the real ones."""
    made = {"node": "weighted_values", "link": "link_values"}
    monkeypatch.setattr(
        "graphgauge.datasets.network_tasks.load",
        lambda name, level, folder=None: made_task(made[level]),
    )


@pytest.fixture
def command(made_loader, tmp_path):
    """Runs ``graphgauge train`` for a moment."""
    usual = [
        "--device",
        "cpu",
        "--epochs",
        "3",
        "--points",
        "2",
        "--folder",
        str(tmp_path / "runs"),
    ]
    return lambda *given: CliRunner().invoke(app, ["train", *given, *usual], catch_exceptions=False)


def test_the_command_prints_a_table_beside_the_papers_figure(command):
    done = command("movielens-node")
    heading, gcn, gat = done.stdout.splitlines()
    assert heading.split() == ["task", "train", "val", "test", "all", "paper", "settings"]
    assert [line.split()[0] for line in (gcn, gat)] == ["movielens-node-gcn", "movielens-node-gat"]
    assert "0.44  hidden" in gcn


@pytest.mark.parametrize("conv", ["gcn", "gat"])
def test_a_kept_network_comes_back_with_its_scores_and_its_story(command, tmp_path, conv):
    changed = ["--decoder-bias", "--patience", "4", "--watch", "train"]
    done = command(f"movielens-link-{conv}", "--json", "--keep", str(tmp_path / "kept"), *changed)
    (shown,) = json.loads(done.stdout)
    record = trained_record("MovieLens", "link", conv, tmp_path / "kept")
    assert record["scores"] == {part: value["mean"] for part, value in shown["scores"].items()}
    options = "--epochs 3 --patience 4 --watch train --points 2 --decoder-bias"
    assert record["task"]["command"] == f"graphgauge train movielens-link-{conv} {options}"
    assert [record["settings"][name] for name in ("epochs", "patience", "watch")] == [3, 4, "train"]
    assert record["settings"]["hidden"] == shown["hidden"]
    assert record["task"]["data"] == grid.data_digest(made_task("link_values"))
    net = trained("MovieLens", "link", conv, tmp_path / "kept")
    assert not net.training
    assert (
        score_parts(net, made_task("link_values"), ("train", "val", "test", "all"))
        == record["scores_kept"]
    )


def test_a_network_that_is_not_there_or_damaged_is_told(command, tmp_path):
    with pytest.raises(
        BadFile, match=r"`graphgauge train movielens-link-gcn --keep .*` trains and writes it"
    ):
        trained("MovieLens", "link", "gcn", tmp_path)
    command("movielens-link-gcn", "--keep", str(tmp_path))
    kept = trained("MovieLens", "link", "gcn", tmp_path).state_dict()
    save_file(
        {name: value + 1 for name, value in kept.items()},
        tmp_path / "movielens-link-gcn.safetensors",
    )
    with pytest.raises(BadFile, match="describes: the checksum of the weights differs"):
        trained("MovieLens", "link", "gcn", tmp_path)
    (tmp_path / "movielens-link-gcn.safetensors").unlink()
    with pytest.raises(BadFile, match="does not hold the weights"):
        trained("MovieLens", "link", "gcn", tmp_path)
    with pytest.raises(UnknownName, match="Did you mean 'Cora'"):
        trained("corra", "link", "gcn")


def test_runs_go_to_the_cache_unless_said_otherwise(monkeypatch, tmp_path):
    from graphgauge.cli.train import _default_training_folder

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("GRAPHGAUGE_CACHE", raising=False)
    assert _default_training_folder() == tmp_path / "xdg" / "graphgauge" / "train"
    monkeypatch.setenv("GRAPHGAUGE_CACHE", str(tmp_path / "own"))
    assert _default_training_folder() == tmp_path / "own" / "train"


def test_an_unknown_device_is_refused(made_loader):
    from graphgauge.core.devices import resolve_device

    with pytest.raises(BadSetting, match="device 'gpu' cannot be used here"):
        resolve_device("gpu")


@pytest.fixture
def failing_gcn(monkeypatch):
    """GCNs fail as a device does that gives up, GATs work."""
    search = grid.search_grid
    monkeypatch.setattr(
        "graphgauge.cli.train.search_grid",
        lambda data, conv, *rest: search(data, conv, *rest) if conv == "gat" else [][0],
    )


def test_a_task_that_fails_does_not_lose_the_others(command, failing_gcn, tmp_path):
    done = command("movielens-node", "--keep", str(tmp_path / "kept"))
    _, gcn, gat = done.stdout.splitlines()
    assert gcn.split(maxsplit=1) == [
        "movielens-node-gcn",
        "failed: IndexError: list index out of range",
    ]
    assert gat.startswith("movielens-node-gat")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[0] == "Traceback (most recent call last):"
    assert (
        done.stderr.splitlines()[-1]
        == "graphgauge: error: no network was made for movielens-node-gcn"
    )
    assert {path.stem for path in (tmp_path / "kept").iterdir()} == {"movielens-node-gat"}
    rows = json.loads(command("movielens-node", "--json").stdout)
    assert [row.get("error", "fine") for row in rows] == [
        "IndexError: list index out of range",
        "fine",
    ]


def test_each_line_is_there_as_soon_as_its_network_is(made_loader, tmp_path, capsys, monkeypatch):
    from graphgauge.cli import train as cli

    seen, train_one = [], cli._train_one
    monkeypatch.setattr(
        cli, "_train_one", lambda *given: seen.append(capsys.readouterr().out) or train_one(*given)
    )
    cli._show_training(
        "movielens-node",
        GridSearch(StoppingRule(1), points=1),
        cli._training_paths(None, "cpu", str(tmp_path), None),
        False,
    )
    assert [text.split()[0] for text in [*seen, capsys.readouterr().out]] == [
        "task",
        "movielens-node-gcn",
        "movielens-node-gat",
    ]


def test_a_network_is_kept_as_a_whole_or_not_at_all(command, tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    command("movielens-node-gcn", "--keep", str(kept))
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    monkeypatch.setattr("os.replace", lambda *names: 1 / 0)
    done = command("movielens-node-gcn", "--keep", str(kept))
    assert "failed: ZeroDivisionError" in done.stdout
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before
