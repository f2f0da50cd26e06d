"""Trained networks that travel with the library: one ``.toml`` with all about it and one
``.safetensors`` with the weights.

Nobody has to train before evaluating, and whoever wants to, finds the command in the file. Each of
the two files is written as a whole, and the ``.toml`` holds the checksum of the weights, so that
files of two different networks are noticed.
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
from safetensors.torch import load, save
from torch import nn

from graphgauge.core.errors import BadFile
from graphgauge.datasets.files import sha256, write_whole
from graphgauge.datasets.grid import Found, Search
from graphgauge.datasets.networks import Architecture, rebuilt
from graphgauge.datasets.scores import SCORED_PARTS
from graphgauge.datasets.tasks import Task, find_task

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "trained"
Sections = dict[str, dict[str, Any]]


def trained(name: str, level: str, conv: str, folder: str | Path | None = None) -> nn.Module:
    """The kept network of a task, in evaluation mode, on the CPU: ``trained("Cora", "node",
    "gcn")``.
    """
    record = trained_record(name, level, conv, folder)
    path = Path(folder or FOLDER) / f"{find_task(name, level, conv).name}.safetensors"
    try:
        content = path.read_bytes()
        if sha256(content) != record["task"].get("weights"):
            raise OSError("their checksum is another")
        return rebuilt(Architecture(**record["architecture"]), load(content))
    except (SafetensorError, RuntimeError, OSError) as error:
        raise BadFile(
            f"{path} does not hold the weights its .toml tells of: {error}. Install graphgauge again."
        ) from error


def trained_record(name: str, level: str, conv: str, folder: str | Path | None = None) -> Sections:
    """What is known of a kept network: settings, scores, versions, data, command."""
    task = find_task(name, level, conv)
    path = Path(folder or FOLDER) / f"{task.name}.toml"
    if not path.exists():
        raise BadFile(
            f"there is no trained network {task.name} in {path.parent}. `graphgauge train {task.name}` makes it."
        )
    return tomllib.loads(path.read_text())


def keep(task: Task, found: Found, wanted: Search, facts: dict[str, str], folder: Path) -> Path:
    """Write a network and all about it; ``facts``: the command, the device and the data's digest."""
    path, weights = (
        folder / f"{task.name}.toml",
        save({name: value.contiguous() for name, value in found.state.items()}),
    )
    write_whole(path.with_suffix(".safetensors"), weights)
    write_whole(
        path,
        as_toml(described(task, found, wanted, {**facts, "weights": sha256(weights)})).encode(),
    )
    return path


def described(task: Task, found: Found, wanted: Search, facts: dict[str, str]) -> Sections:
    """A network for its file."""
    return {
        "task": {**asdict(task), **facts},
        "architecture": asdict(found.plan),
        "settings": {
            **{
                name: value
                for name, value in asdict(found.recipe).items()
                if name not in ("seed", "bias")
            },
            "points": found.points,
            **asdict(wanted.stopping),
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
        f"[{title}]\n" + "".join(f"{name} = {as_value(v)}\n" for name, v in rows.items())
        for title, rows in sections.items()
    )


def as_value(value: Any) -> str:
    """A text, number, yes/no or list of these in TOML; JSON writes them alike, but for infinity and
    NaN.
    """
    return repr(value) if isinstance(value, float) else json.dumps(value)
