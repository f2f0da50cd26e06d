"""Training of the paper's networks, and a table of what came out beside the paper's figure."""

import json
import shlex
import time
from pathlib import Path
from typing import Any

import torch

from graphgauge.core.errors import BadSetting
from graphgauge.datasets.files import cache_folder
from graphgauge.datasets.grid import Found, Search, digest, search
from graphgauge.datasets.kept import keep as write_network
from graphgauge.datasets.scores import SCORED_PARTS
from graphgauge.datasets.tasks import Task, find_tasks


def run_training(
    name: str, wanted: Search, data: str | None, device: str | None, folder: str | None, keep: str | None
) -> list[dict[str, Any]]:
    """One row for each network that ``name`` stands for."""
    where, runs = chosen_device(device), Path(folder) if folder else default_folder()
    return [train_one(task, wanted, data, where, runs, keep) for task in find_tasks(name)]


def train_one(task: Task, wanted: Search, folder: str | None, device: torch.device, runs: Path, keep: str | None) -> dict[str, Any]:
    """Search, and write down the best."""
    start = time.perf_counter()
    data = task.load(folder).to(device)
    found = search(data, task.conv, wanted, runs / f"{task.name}.jsonl", task.name)
    if keep is not None:
        facts = {"command": command(task, wanted), "device": device_name(device), "data": digest(data)}
        write_network(task, found, wanted, facts, Path(keep))
    return row_of(task, found, time.perf_counter() - start)


def row_of(task: Task, found: Found, seconds: float) -> dict[str, Any]:
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


def command(task: Task, wanted: Search) -> str:
    """What to type for the same search."""
    given = {"--seed": wanted.seed, "--epochs": wanted.epochs, "--points": wanted.points}
    usual = {"--seed": 0, "--epochs": Search.epochs, "--points": None}
    options = [f"{name} {value}" for name, value in given.items() if value != usual[name]]
    return " ".join(["graphgauge train", shlex.quote(task.name), *options, *(["--decoder-bias"] if wanted.decoder_bias else [])])


def chosen_device(name: str | None) -> torch.device:
    """The device asked for, or a GPU where there is one."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BadSetting(f"device {name!r} cannot be used here: {str(error).splitlines()[0]}") from error
    return device


def device_name(device: torch.device) -> str:
    """For the record."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


def default_folder() -> Path:
    """Where finished runs are kept unless said otherwise."""
    return cache_folder() / "train"


def as_json(rows: list[dict[str, Any]]) -> str:
    """The rows for programs; a score that is no number is null."""
    return json.dumps(json.loads(json.dumps(rows), parse_constant=lambda _: None), indent=2, allow_nan=False)


def as_text(rows: list[dict[str, Any]]) -> str:
    """The rows for people."""
    heading = f"{'task':<20}" + "".join(f"{part:>17}" for part in SCORED_PARTS) + f"{'paper':>8}  settings"
    return "\n".join([heading, *(line_of(row) for row in rows)])


def line_of(row: dict[str, Any]) -> str:
    """One network: mean ± SD over five seeds, the paper's figure, the chosen settings."""
    cells = (f"{row['scores'][part]['mean']:.3f} ± {row['scores'][part]['sd']:.3f}" for part in SCORED_PARTS)
    chosen = f"hidden {row['hidden']}, lr {row['learning_rate']:g}, decay {row['weight_decay']:g}, dropout {row['dropout']:g}"
    bias = ", decoder bias" if row["decoder_bias"] else ""
    return f"{row['task']:<20}" + "".join(f"{cell:>17}" for cell in cells) + f"{row['paper']:>8.2f}  {chosen}{bias}"
