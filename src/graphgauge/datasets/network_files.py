"""Writes a trained network to two files: its description (``.toml``) and its weights
(``.safetensors``).

Each file is written as a whole. The description holds the command that trained the network and the
checksum of the weights. `graphgauge.datasets.trained` reads both files.
"""

import json
import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch_geometric
from safetensors.torch import save

from graphgauge.datasets.files import sha256, write_whole
from graphgauge.datasets.grid import Found, Search
from graphgauge.datasets.kept import Sections
from graphgauge.datasets.scores import SCORED_PARTS
from graphgauge.datasets.tasks import Task


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
