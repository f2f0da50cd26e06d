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

from graphgauge.core.digests import sha256_hex
from graphgauge.datasets.files import write_whole
from graphgauge.datasets.grid import Found, Search
from graphgauge.datasets.kept import Sections
from graphgauge.datasets.scores import SCORED_PARTS
from graphgauge.datasets.tasks import Task


def keep(task: Task, result: Found, request: Search, facts: dict[str, str], folder: Path) -> Path:
    """Write a network and its description, and return the path of the description.

    Args:
        task: The network's task.
        result: The result of the search.
        request: What was searched.
        facts: The command, the device and the digest of the data.
        folder: Where to write.
    """
    path, weights = (
        folder / f"{task.name}.toml",
        save({name: value.contiguous() for name, value in result.state.items()}),
    )
    write_whole(path.with_suffix(".safetensors"), weights)
    write_whole(
        path,
        as_toml(
            described(task, result, request, {**facts, "weights": sha256_hex(weights)})
        ).encode(),
    )
    return path


def described(task: Task, result: Found, request: Search, facts: dict[str, str]) -> Sections:
    """The description of a network, as sections of plain values."""
    return {
        "task": {**asdict(task), **facts},
        "architecture": asdict(result.plan),
        "settings": {
            **{
                name: value
                for name, value in asdict(result.recipe).items()
                if name not in ("seed", "bias")
            },
            "points": result.points,
            **asdict(request.stopping),
            "grid_seed": request.seed,
            "seeds": result.seeds,
            "kept_seed": result.recipe.seed,
            "kept_epoch": result.best_epoch,
        },
        "scores": {part: result.mean(part) for part in SCORED_PARTS},
        "scores_sd": {part: result.sd(part) for part in SCORED_PARTS},
        "scores_kept": result.scores[result.seeds.index(result.recipe.seed)],
        "versions": {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "torch_geometric": torch_geometric.__version__,
        },
    }


def as_toml(sections: Sections) -> str:
    """Format sections of plain values as TOML.

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
    """A text, number, truth value or list of these in TOML. JSON writes all of them alike, except
    infinity and NaN.
    """
    return repr(value) if isinstance(value, float) else json.dumps(value)
