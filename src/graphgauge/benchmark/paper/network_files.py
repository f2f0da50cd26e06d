"""Writes a trained network to two files: its description (``.toml``) and its weights
(``.safetensors``).

Each file is written as a whole. The description holds the command that trained the network and the
checksum of the weights. `graphgauge.datasets.trained` reads both files.
"""

import json
import platform
from dataclasses import asdict
from pathlib import Path

import torch
import torch_geometric
from safetensors.torch import save

from graphgauge.benchmark.paper.grid_search import (
    GridSearch,
    PairBatchTraining,
    SearchResult,
)
from graphgauge.benchmark.paper.model_accuracy import SCORED_PARTS
from graphgauge.core import sha256_hex
from graphgauge.datasets import NetworkTask, TomlSections, write_atomically


def write_network(
    task: NetworkTask,
    result: SearchResult,
    request: GridSearch | PairBatchTraining,
    facts: dict[str, str],
    folder: Path,
) -> Path:
    """Write a network and its description, and return the path of the description.

    Args:
        task: The network's task.
        result: The result of the search.
        request: What was searched, or trained on batches of pairs.
        facts: The command, the device and the digest of the data.
        folder: Where to write.
    """
    path, weights = (
        folder / f"{task.name}.toml",
        save({name: value.contiguous() for name, value in result.state.items()}),
    )
    write_atomically(path.with_suffix(".safetensors"), weights)
    write_atomically(
        path,
        _format_toml(
            _describe_network(task, result, request, {**facts, "weights": sha256_hex(weights)})
        ).encode(),
    )
    return path


def _describe_network(
    task: NetworkTask,
    result: SearchResult,
    request: GridSearch | PairBatchTraining,
    facts: dict[str, str],
) -> TomlSections:
    """The description of a network, as sections of plain values."""
    schedule = request.stopping if isinstance(request, GridSearch) else request.batches
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
            **asdict(schedule),
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


def _format_toml(sections: TomlSections) -> str:
    """Format sections of plain values as TOML.

    >>> print(_format_toml({"a": {"x": 1e-05, "y": [1, 2], "z": True, "t": "q"}}), end="")
    [a]
    x = 1e-05
    y = [1, 2]
    z = true
    t = "q"
    """
    return "\n".join(
        f"[{title}]\n" + "".join(f"{name} = {_format_toml_value(v)}\n" for name, v in rows.items())
        for title, rows in sections.items()
    )


def _format_toml_value(value: object) -> str:
    """A text, number, truth value or list of these in TOML. JSON writes all of them alike, except
    infinity and NaN.
    """
    return repr(value) if isinstance(value, float) else json.dumps(value)
