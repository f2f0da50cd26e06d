"""Training of the paper's networks, and a table of what came out beside the paper's figure."""

import json
import shlex
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import typer

from graphgauge.benchmark import (
    SCORED_PARTS,
    GridSearch,
    PairBatches,
    PairBatchTraining,
    SearchResult,
    StoppingRule,
    search_grid,
    train_on_pair_batches,
    write_network,
)
from graphgauge.core import BadSetting, GraphgaugeError, JsonObject, resolve_device
from graphgauge.datasets import NetworkTask, cache_folder, data_digest, find_network_tasks

_TrainingRow = JsonObject  #: what people see of one network, or its task and an "error"
_TrainingRequest = GridSearch | PairBatchTraining
_ONE_POINT = PairBatchTraining()  #: the usual point of ``--pair-batches``


@dataclass(frozen=True)
class _TrainingPaths:
    """Where the data sets are (None: GRAPHGAUGE_DATA), what computes, where finished runs go, and
    the networks (None: nowhere).
    """

    data: str | None
    device: torch.device
    runs: Path
    networks: Path | None


def _training_paths(
    data: str | None, device: str | None, folder: str | None, keep: str | None
) -> _TrainingPaths:
    """As typed, or as usual."""
    return _TrainingPaths(
        data,
        resolve_device(device),
        Path(folder) if folder else _default_training_folder(),
        Path(keep) if keep else None,
    )


def _show_training(
    name: str, wanted: _TrainingRequest, where: _TrainingPaths, json_at_end: bool
) -> list[str]:
    """Train what ``name`` stands for, show each network as soon as it is there, and return the
    names of those that failed.

    ``json_at_end``: instead of lines, all rows as JSON when the last is there.
    """
    rows = (_train_or_report_error(task, wanted, where) for task in find_network_tasks(name))
    done = list(rows if json_at_end else _print_rows(rows))
    if json_at_end:
        typer.echo(_training_json(done))
    return [row["task"] for row in done if "error" in row]


def _print_rows(rows: Iterator[_TrainingRow]) -> Iterator[_TrainingRow]:
    """The rows, each printed (and flushed) when it comes."""
    typer.echo(_table_heading())
    for row in rows:
        typer.echo(_table_line(row))
        yield row


def _train_or_report_error(
    task: NetworkTask, wanted: _TrainingRequest, where: _TrainingPaths
) -> _TrainingRow:
    """A network's row, or the error that stopped it; so the other tasks go on."""
    try:
        return _train_one(task, wanted, where)
    except GraphgaugeError as error:
        return {"task": task.name, "error": str(error)}
    except Exception as error:  # a defect, or a device that gave up: where it was is worth knowing
        typer.echo(traceback.format_exc(), err=True)
        return {"task": task.name, "error": f"{type(error).__name__}: {error}"}


def _train_one(task: NetworkTask, wanted: _TrainingRequest, where: _TrainingPaths) -> _TrainingRow:
    """Search, or train one point on batches of pairs, and write down the best."""
    start = time.perf_counter()
    data = task.load(where.data).to(where.device)
    found = (
        search_grid(data, task.conv, wanted, where.runs / f"{task.name}.jsonl", task.name)
        if isinstance(wanted, GridSearch)
        else train_on_pair_batches(data, task.conv, wanted, task.name)
    )
    if where.networks is not None:
        facts = {
            "command": _train_command_line(task, wanted),
            "device": _device_name(where.device),
            "data": data_digest(data),
        }
        write_network(task, found, wanted, facts, where.networks)
    return _network_row(task, found, time.perf_counter() - start)


def _network_row(task: NetworkTask, found: SearchResult, seconds: float) -> _TrainingRow:
    """What people see of one network."""
    recipe = found.recipe
    return {
        "task": task.name,
        "hidden": recipe.hidden,
        "learning_rate": recipe.learning_rate,
        "weight_decay": recipe.weight_decay,
        "dropout": recipe.dropout,
        "decoder_bias": recipe.bias,
        "scores": {part: {"mean": found.mean(part), "sd": found.sd(part)} for part in SCORED_PARTS},
        "paper": task.paper,
        "points": found.points,
        "seconds": seconds,
    }


def _train_command_line(task: NetworkTask, wanted: _TrainingRequest) -> str:
    """What to type for the same training: the options that are not the usual ones."""
    options = [
        name if value is True else f"{name} {value}"
        for name, value in _changed_options(wanted).items()
    ]
    if isinstance(wanted, PairBatchTraining):
        options = [f"--pair-batches {wanted.batches.pairs}", *options]
    return " ".join(["graphgauge train", shlex.quote(task.name), *options])


def _changed_options(wanted: _TrainingRequest) -> JsonObject:
    """The options that have another value than usual, without ``--pair-batches``."""
    given, usual = _request_options(wanted), _request_options(type(wanted)())
    return {name: value for name, value in given.items() if value != usual[name]}


def _request_options(wanted: _TrainingRequest) -> JsonObject:
    """The values of the options that belong to a search, or to batches of pairs."""
    if isinstance(wanted, PairBatchTraining):
        return {
            "--seed": wanted.seed,
            "--watch": wanted.batches.watch,
            "--steps": wanted.batches.steps,
            "--hidden": wanted.hidden,
            "--learning-rate": wanted.learning_rate,
            "--weight-decay": wanted.weight_decay,
        }
    return {
        "--seed": wanted.seed,
        "--epochs": wanted.stopping.epochs,
        "--patience": wanted.stopping.patience,
        "--watch": wanted.stopping.watch,
        "--points": wanted.points,
        "--decoder-bias": wanted.decoder_bias,
    }


def _check_unused(unused: _TrainingRequest) -> None:
    """Raise `BadSetting` if an option belongs to the way of training that was not chosen."""
    names = sorted(set(_changed_options(unused)) - {"--seed", "--watch"})
    if names:
        advice = (
            "be used together with --pair-batches, which trains one point without a search"
            if isinstance(unused, GridSearch)
            else "be used in a search. Add --pair-batches, or leave them out"
        )
        raise BadSetting(f"{', '.join(names)} cannot {advice}.")


def _device_name(device: torch.device) -> str:
    """For the record."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


def _default_training_folder() -> Path:
    """Where finished runs are kept unless said otherwise."""
    return cache_folder() / "train"


def _training_json(rows: list[_TrainingRow]) -> str:
    """The rows for programs; a score that is no number is null."""
    return json.dumps(
        json.loads(json.dumps(rows), parse_constant=lambda _: None), indent=2, allow_nan=False
    )


def _table_heading() -> str:
    """The first line of the table."""
    return (
        f"{'task':<20}"
        + "".join(f"{part:>17}" for part in SCORED_PARTS)
        + f"{'paper':>8}  settings"
    )


def _table_line(row: _TrainingRow) -> str:
    """One network: mean ± SD over five seeds, the paper's figure, the chosen settings."""
    if "error" in row:
        return f"{row['task']:<20}  failed: {row['error']}"
    cells = (
        f"{row['scores'][part]['mean']:.3f} ± {row['scores'][part]['sd']:.3f}"
        for part in SCORED_PARTS
    )
    chosen = (
        f"hidden {row['hidden']}, lr {row['learning_rate']:g}, decay {row['weight_decay']:g}, "
        f"dropout {row['dropout']:g}"
    )
    bias = ", decoder bias" if row["decoder_bias"] else ""
    return (
        f"{row['task']:<20}"
        + "".join(f"{cell:>17}" for cell in cells)
        + f"{row['paper']:>8.2f}  {chosen}{bias}"
    )


def train_command(
    task: Annotated[
        str, typer.Argument(help="Such as cora-node-gcn, cora-node (both networks) or all.")
    ],
    data: Annotated[
        str | None, typer.Option(help="Folder with the data sets (default: GRAPHGAUGE_DATA).")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Such as cpu or cuda (default: cuda where there is one).")
    ] = None,
    folder: Annotated[
        str | None, typer.Option(help="Where finished runs are kept (default: the cache folder).")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(help="Write the chosen network (.toml and .safetensors) to this folder."),
    ] = None,
    decoder_bias: Annotated[
        bool, typer.Option("--decoder-bias", help="Also try inner products plus a learned number.")
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Seed of the grid; the next five are those of the chosen network."
        ),
    ] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs at most.")] = 200,
    patience: Annotated[
        int, typer.Option(min=1, help="Epochs without a lower loss before training stops.")
    ] = 10,
    watch: Annotated[
        str, typer.Option(help="Whose loss early stopping watches: val or train.")
    ] = "val",
    points: Annotated[
        int | None, typer.Option(min=1, help="Try so many points of the grid, not all.")
    ] = None,
    pair_batches: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Link tasks: train one point on batches of so many pairs (such as 4096), without "
            "a search.",
        ),
    ] = None,
    steps: Annotated[
        int, typer.Option(min=1, help="Steps, with --pair-batches.")
    ] = _ONE_POINT.batches.steps,
    hidden: Annotated[
        int, typer.Option(min=1, help="Hidden size, with --pair-batches.")
    ] = _ONE_POINT.hidden,
    learning_rate: Annotated[
        float, typer.Option(min=0, help="Learning rate, with --pair-batches.")
    ] = _ONE_POINT.learning_rate,
    weight_decay: Annotated[
        float, typer.Option(min=0, help="Weight decay, with --pair-batches.")
    ] = _ONE_POINT.weight_decay,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Search the paper's grid for its networks, and train the best again with five seeds.

    Or train one point on batches of pairs.
    """
    search = GridSearch(StoppingRule(epochs, patience, watch), seed, points, decoder_bias)
    batches = PairBatches(pair_batches or _ONE_POINT.batches.pairs, steps, watch=watch)
    one_point = PairBatchTraining(batches, hidden, learning_rate, weight_decay, seed)
    wanted: _TrainingRequest = one_point if pair_batches else search
    _check_unused(search if pair_batches else one_point)
    if failed := _show_training(task, wanted, _training_paths(data, device, folder, keep), json):
        typer.echo(f"graphgauge: error: no network was made for {', '.join(failed)}", err=True)
        raise typer.Exit(1)
