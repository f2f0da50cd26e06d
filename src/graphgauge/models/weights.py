"""Weights of a network from a file: safetensors, every name and shape as the network has them, never a pickle."""

import os
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.nn import Module

from graphgauge.core.errors import BadFile, BadModel

CONVERT = (
    "from safetensors.torch import save_file; save_file(torch.load('net.pt', weights_only=True), 'net.safetensors'), "
    "or safetensors.torch.save_model(net, 'net.safetensors') where the network is at hand"
)


def load_weights(net: Module, path: str | os.PathLike[str]) -> None:
    """Put the weights in ``path`` into ``net``; none may be missing, and none left over."""
    state = read_weights(Path(path))
    try:
        net.load_state_dict(state, strict=True)
    except RuntimeError as error:
        told = " ".join(str(error).split())
        raise BadModel(f"the weights in {os.fspath(path)} are not those of {type(net).__name__}: {told}") from error


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name; one that `save_model` wrote once for several names is given under each of them."""
    if path.suffix in (".pt", ".pth", ".bin", ".pkl", ".ckpt"):
        raise BadFile(f"{path} may be a pickle, and reading one can run whatever code is in it. Convert it first: {CONVERT}.")
    try:
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            aliases = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise BadFile(f"{path} cannot be read as weights: {error}. safetensors.torch.save_model writes such files.") from error
    return {**{alias: state[name] for alias, name in aliases.items() if name in state}, **state}
