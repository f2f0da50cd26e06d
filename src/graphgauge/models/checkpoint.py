"""Checkpoints: load the weights of a network from a safetensors file, never from a pickle.

Every name and shape in the file must be that of the network.
"""

import os
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.nn import Module

from graphgauge.core import BadFile, BadModel

_MAX_LISTED_MISFITS = 4  #: weights that do not fit
_CONVERSION_ADVICE = (
    "from safetensors.torch import save_file; save_file(torch.load('net.pt', weights_only=True), "
    "'net.safetensors'), "
    "or safetensors.torch.save_model(net, 'net.safetensors') where the network is at hand"
)


def load_weights(net: Module, path: str | os.PathLike[str]) -> None:
    """Load the weights in ``path`` into ``net``.

    Raises:
        BadFile: If the file cannot be read, or may be a pickle.
        BadModel: If a weight is missing, left over, or of another shape or type.
    """
    state = _read_safetensors(Path(path))
    _check_weight_values(net, state, path)
    try:
        net.load_state_dict(state, strict=True)
    except RuntimeError as error:
        wrong = _list_misfits(net.state_dict(), state) or [" ".join(str(error).split())]
        more = (
            f"; and {len(wrong) - _MAX_LISTED_MISFITS} more"
            if len(wrong) > _MAX_LISTED_MISFITS
            else ""
        )
        told = "; ".join(wrong[:_MAX_LISTED_MISFITS])
        raise BadModel(
            f"the weights in {os.fspath(path)} are not those of {type(net).__name__}: {told}{more}."
        ) from error


def _list_misfits(own: dict[str, Tensor], given: dict[str, Tensor]) -> list[str]:
    """List the weights that do not fit: other shapes first, then missing weights and those left
    over.
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


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name; a tensor that `save_model` stored once has all its names."""
    if path.suffix in (".pt", ".pth", ".bin", ".pkl", ".ckpt"):
        raise BadFile(
            f"{path} may be a pickle, and reading one can run whatever code is in it. Convert it "
            f"first: {_CONVERSION_ADVICE}."
        )
    try:
        with safe_open(path, framework="pt") as file:
            # The file is not a mapping, so its names come from keys().
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            aliases = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise BadFile(
            f"{path} cannot be read as weights: {error}. safetensors.torch.save_model writes such "
            "files."
        ) from error
    return {**{alias: state[name] for alias, name in aliases.items() if name in state}, **state}


def _check_weight_values(
    net: Module, state: dict[str, Tensor], path: str | os.PathLike[str]
) -> None:
    """Raise BadModel for NaN, and for numbers of another type, which would be rounded silently."""
    own = net.state_dict()
    for name, value in state.items():
        wanted = own.get(name, value)
        if (
            value.is_floating_point() != wanted.is_floating_point()
            or value.is_complex() != wanted.is_complex()
        ):
            raise BadModel(
                f"{name} in {os.fspath(path)} holds {value.dtype}, but the network has "
                f"{wanted.dtype} there."
            )
        if value.is_floating_point() and bool(value.double().isnan().any()):
            raise BadModel(
                f"{name} in {os.fspath(path)} holds NaN: the training failed, or the file is "
                "damaged."
            )
