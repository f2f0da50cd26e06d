"""Trained networks that come with the library: for each a ``.toml`` file that describes it and a
``.safetensors`` file with its weights.

Nobody has to train before evaluating. The description holds the command that trained the network
again, and the checksum of the weights, so that two files of different networks are noticed.
"""

import sys
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load
from torch import nn

from graphgauge.core import BadFile, sha256_hex
from graphgauge.datasets.network_tasks import find_network_task
from graphgauge.datasets.networks import Architecture, rebuild_network

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_NETWORKS_FOLDER = Path(__file__).parent / "trained"
TomlSections = dict[str, dict[str, Any]]


def trained(name: str, level: str, conv: str, folder: str | Path | None = None) -> nn.Module:
    """Load the trained network of a task, in evaluation mode, on the CPU: ``trained("Cora", "node",
    "gcn")``.

    Args:
        name: Name of the data set.
        level: "node" or "link".
        conv: "gcn" or "gat".
        folder: Where the network is; by default, those of the library.
    """
    record = trained_record(name, level, conv, folder)
    path = (
        Path(folder or _NETWORKS_FOLDER)
        / f"{find_network_task(name, level, conv).name}.safetensors"
    )
    try:
        content = path.read_bytes()
        if sha256_hex(content) != record["task"].get("weights"):
            raise OSError("the checksum of the weights differs")
        return rebuild_network(Architecture(**record["architecture"]), load(content))
    except (SafetensorError, RuntimeError, OSError) as error:
        raise BadFile(
            f"{path} does not hold the weights that its .toml describes: {error}. Install "
            "graphgauge "
            "again."
        ) from error


def trained_record(
    name: str, level: str, conv: str, folder: str | Path | None = None
) -> TomlSections:
    """What is known of a trained network: settings, scores, versions, data and command.

    Args:
        name: Name of the data set.
        level: "node" or "link".
        conv: "gcn" or "gat".
        folder: Where the network is; by default, those of the library.
    """
    task = find_network_task(name, level, conv)
    path = Path(folder or _NETWORKS_FOLDER) / f"{task.name}.toml"
    if not path.exists():
        raise BadFile(
            f"there is no trained network {task.name} in {path.parent}. "
            f"`graphgauge train {task.name} --keep {path.parent}` trains and writes it."
        )
    return tomllib.loads(path.read_text())
