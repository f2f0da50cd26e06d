"""Trained networks that travel with the library: one ``.toml`` with all about it and one ``.safetensors`` with the weights.

Nobody has to train before evaluating, and whoever wants to, finds the command in the file.
"""

import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch_geometric
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from graphgauge.core.errors import BadFile
from graphgauge.datasets.grid import Found, Search
from graphgauge.datasets.networks import Architecture
from graphgauge.datasets.scores import SCORED_PARTS
from graphgauge.datasets.tasks import Task, find_task
from graphgauge.datasets.training import rebuilt

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "trained"
Sections = dict[str, dict[str, Any]]


def trained(name: str, level: str, conv: str, folder: str | Path | None = None) -> nn.Module:
    """The kept network of a task, in evaluation mode, on the CPU: ``trained("Cora", "node", "gcn")``."""
    task = find_task(name, level, conv)
    plan = Architecture(**trained_record(name, level, conv, folder)["architecture"])
    path = Path(folder or FOLDER) / f"{task.name}.safetensors"
    try:
        return rebuilt(plan, load_file(path))
    except (SafetensorError, RuntimeError, OSError) as error:
        raise BadFile(f"{path} does not hold the weights its .toml tells of: {error}. Install graphgauge again.") from error


def trained_record(name: str, level: str, conv: str, folder: str | Path | None = None) -> Sections:
    """What is known of a kept network: settings, scores, versions, data, command."""
    task = find_task(name, level, conv)
    path = Path(folder or FOLDER) / f"{task.name}.toml"
    if not path.exists():
        raise BadFile(f"there is no trained network {task.name} in {path.parent}. `graphgauge train {task.name}` makes it.")
    return tomllib.loads(path.read_text())


def keep(task: Task, found: Found, wanted: Search, facts: dict[str, str], folder: Path) -> Path:
    """Write a network and all about it; ``facts``: the command, the device and the data's digest."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{task.name}.toml"
    save_file({name: value.contiguous() for name, value in found.state.items()}, path.with_suffix(".safetensors"))
    path.write_text(as_toml(described(task, found, wanted, facts)))
    return path


def described(task: Task, found: Found, wanted: Search, facts: dict[str, str]) -> Sections:
    """A network for its file."""
    return {
        "task": {**asdict(task), **facts},
        "architecture": asdict(found.plan),
        "settings": {
            **{name: value for name, value in asdict(found.recipe).items() if name not in ("seed", "bias")},
            "points": found.points,
            "epochs": wanted.epochs,
            "patience": wanted.patience,
            "grid_seed": wanted.seed,
            "seeds": found.seeds,
            "kept_seed": found.recipe.seed,
            "kept_epoch": found.best_epoch,
        },
        "scores": {part: found.mean(part) for part in SCORED_PARTS},
        "scores_sd": {part: found.sd(part) for part in SCORED_PARTS},
        "scores_kept": found.scores[found.seeds.index(found.recipe.seed)],
        "versions": {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "torch_geometric": torch_geometric.__version__,
        },
    }


def as_toml(sections: Sections) -> str:
    """Sections of plain values.

    >>> print(as_toml({"a": {"x": 1e-05, "y": [1, 2], "z": True, "t": "q"}}), end="")
    [a]
    x = 1e-05
    y = [1, 2]
    z = true
    t = "q"
    """
    return "\n".join(
        f"[{title}]\n" + "".join(f"{name} = {as_value(v)}\n" for name, v in rows.items()) for title, rows in sections.items()
    )


def as_value(value: Any) -> str:
    """A text, number, yes/no or list of these in TOML; JSON writes them alike, but for infinity and NaN."""
    return repr(value) if isinstance(value, float) else json.dumps(value)
