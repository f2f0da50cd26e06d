"""Weights of a network from a file: safetensors, every name and shape as the network has them,
never a pickle.
"""

import os
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.nn import Module

from graphgauge.core.errors import BadFile, BadModel

MOST_TOLD = 4  #: weights that do not fit
CONVERT = (
    "from safetensors.torch import save_file; save_file(torch.load('net.pt', weights_only=True), 'net.safetensors'), "
    "or safetensors.torch.save_model(net, 'net.safetensors') where the network is at hand"
)


def load_weights(net: Module, path: str | os.PathLike[str]) -> None:
    """Put the weights in ``path`` into ``net``; none may be missing, and none left over."""
    state = read_weights(Path(path))
    check_values(net, state, path)
    try:
        net.load_state_dict(state, strict=True)
    except RuntimeError as error:
        wrong = misfits(net.state_dict(), state) or [" ".join(str(error).split())]
        more = f"; and {len(wrong) - MOST_TOLD} more" if len(wrong) > MOST_TOLD else ""
        told = "; ".join(wrong[:MOST_TOLD])
        raise BadModel(
            f"the weights in {os.fspath(path)} are not those of {type(net).__name__}: {told}{more}."
        ) from error


def misfits(own: dict[str, Tensor], given: dict[str, Tensor]) -> list[str]:
    """What of the given weights is not as the network's own: other shapes first, then what is
    missing and left over.
    """
    shapes = {
        name: (tuple(given[name].shape), tuple(value.shape))
        for name, value in own.items()
        if name in given
    }
    other = [
        f"{name} is {there} in the file and {here} in the network"
        for name, (there, here) in shapes.items()
        if there != here
    ]
    missing = [f"{name} is missing in the file" for name in own if name not in given]
    return other + missing + [f"{name} is not in the network" for name in given if name not in own]


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name; one that `save_model` wrote once for several names is given
    under each of them.
    """
    if path.suffix in (".pt", ".pth", ".bin", ".pkl", ".ckpt"):
        raise BadFile(
            f"{path} may be a pickle, and reading one can run whatever code is in it. Convert it first: {CONVERT}."
        )
    try:
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            aliases = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise BadFile(
            f"{path} cannot be read as weights: {error}. safetensors.torch.save_model writes such files."
        ) from error
    return {**{alias: state[name] for alias, name in aliases.items() if name in state}, **state}


def check_values(net: Module, state: dict[str, Tensor], path: str | os.PathLike[str]) -> None:
    """Refuse values that are no numbers, and numbers of another kind, which would be rounded
    without a word.
    """
    own = net.state_dict()
    for name, value in state.items():
        wanted = own.get(name, value)
        if (
            value.is_floating_point() != wanted.is_floating_point()
            or value.is_complex() != wanted.is_complex()
        ):
            raise BadModel(
                f"{name} in {os.fspath(path)} holds {value.dtype}, but the network has {wanted.dtype} there."
            )
        if value.is_floating_point() and bool(value.double().isnan().any()):
            raise BadModel(
                f"{name} in {os.fspath(path)} holds NaN: the training failed, or the file is damaged."
            )
