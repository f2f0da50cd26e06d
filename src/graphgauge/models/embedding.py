"""The last hidden layer of a network.

It is the input of the last parametrised module that forward calls.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import MessagePassing

from graphgauge.core import BadModel


def find_last_hidden(net: Module, run: Callable[[], Any]) -> Tensor:
    """Run the network once and return the input of its last module with parameters.  (rows, D)"""
    latest: list[Tensor] = []

    def keep(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        found = _first_tensor([*args, *kwargs.values()])
        if found is not None:
            latest[:] = [found.detach()]

    modules = list(_modules_with_parameters(net))
    if any(isinstance(module, torch.jit.ScriptModule) for module in modules):
        raise BadModel(
            "torch.jit hides the last hidden space of the net. Wrap the module that was compiled, "
            "or say what it is: "
            "embedding=lambda net, g: ..."
        )
    with ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_pre_hook(keep, with_kwargs=True).remove)
        run()
    if not latest or latest[0].dim() != 2:
        raise BadModel(
            "the last hidden space of the net was not found. Say what it is: embedding=lambda net, "
            "g: ..."
        )
    return latest[0]


def _modules_with_parameters(module: Module) -> Iterator[Module]:
    """Modules below ``module`` with parameters of their own; a message-passing layer counts
    as one.
    """
    for child in module.children():
        if isinstance(child, MessagePassing):
            if any(True for _ in child.parameters()):
                yield child
        else:
            if any(True for _ in child.parameters(recurse=False)):
                yield child
            yield from _modules_with_parameters(child)


def _first_tensor(values: list[Any]) -> Tensor | None:
    """The first tensor among the arguments, also inside tuples."""
    for value in values:
        if isinstance(value, (tuple, list)):
            value = _first_tensor(list(value))
        if isinstance(value, Tensor):
            return value
    return None


def check_embedding_rows(hidden: Any, wanted: int, what: str) -> Tensor:
    """Raise BadModel unless a hidden space has one row for each target."""
    if not isinstance(hidden, Tensor) or hidden.dim() != 2:
        found = tuple(hidden.shape) if isinstance(hidden, Tensor) else type(hidden).__name__
        raise BadModel(f"embedding must be a tensor (rows, D), but is {found}.")
    if len(hidden) != wanted:
        raise BadModel(
            f"the last hidden space of the net has {len(hidden)} rows where {wanted} ({what}) were "
            "expected. "
            "Say what it is: embedding=lambda net, g: ..."
        )
    return hidden
