"""The user's network is sacred: after every call, also one that failed, it is bit for bit what it was.

`untouched(net)` puts the network into evaluation mode with its caches of normalised edges switched off, and afterwards
restores parameters, buffers, gradients, `requires_grad`, hooks, training flags and every other attribute of every module,
and the global random states of torch, NumPy and Python.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from graphgauge.core.randomness import preserved_randomness

#: attributes in which PyG's layers keep normalised edges or propagated features between calls
CACHES = ("_cached_edge_index", "_cached_adj_t", "_cached_x", "_cached_h")


@contextmanager
def untouched(net: Module) -> Iterator[None]:
    """Use ``net`` in evaluation mode and leave no trace."""
    modules = [(module, contents(module)) for module in net.modules()]
    tensors = [(tensor, saved(tensor)) for tensor in all_tensors(net)]
    precision = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("highest")  # no TF32: results must not depend on the card
        net.eval()
        without_caches(net)
        with preserved_randomness():
            yield
    finally:
        torch.set_float32_matmul_precision(precision)
        for module, attributes in modules:
            restore(module, attributes)
        for tensor, state in tensors:
            restore_tensor(tensor, state)


def contents(module: Module) -> dict[str, Any]:
    """A module's attributes; containers are copied, so that what is added to them later does not stay."""
    return {name: value.copy() if isinstance(value, (dict, list, set)) else value for name, value in vars(module).items()}


def restore(module: Module, attributes: dict[str, Any]) -> None:
    """Give a module its attributes back, keeping the identity of its containers."""
    now = vars(module)
    for name in [name for name in now if name not in attributes]:
        del now[name]
    for name, value in attributes.items():
        held: Any = now.get(name)
        if isinstance(value, (dict, set)) and type(held) is type(value):
            held.clear()
            held.update(value)
        elif isinstance(value, list) and type(held) is list:
            held[:] = value
        else:
            now[name] = value


def all_tensors(net: Module) -> list[Tensor]:
    """Parameters and buffers, each once."""
    return [*net.parameters(), *net.buffers()]


def saved(tensor: Tensor) -> tuple[Tensor, bool, Tensor | None, Tensor | None]:
    """Values, requires_grad, gradient and the gradient's values."""
    grad = tensor.grad if tensor.is_leaf else None
    return tensor.detach().clone(), tensor.requires_grad, grad, None if grad is None else grad.detach().clone()


def restore_tensor(tensor: Tensor, state: tuple[Tensor, bool, Tensor | None, Tensor | None]) -> None:
    """Undo whatever happened to a parameter or buffer; writes only what differs, so that autograd's versions stay."""
    values, requires_grad, grad, grad_values = state
    copy_if_changed(tensor, values)
    if tensor.is_leaf:
        tensor.requires_grad_(requires_grad)
        tensor.grad = grad
        if grad is not None and grad_values is not None:
            copy_if_changed(grad, grad_values)


def copy_if_changed(tensor: Tensor, values: Tensor) -> None:
    """Write ``values`` into ``tensor`` unless they are there already."""
    if tensor.shape != values.shape or not torch.equal(tensor.detach(), values):
        tensor.data = tensor.data.new_empty(values.shape) if tensor.shape != values.shape else tensor.data
        tensor.data.copy_(values)


def without_caches(net: Module) -> None:
    """Forget cached edges and features, and keep none: a cached layer ignores the graph it is given."""
    for module in net.modules():
        for name in CACHES:
            if name in vars(module):
                setattr(module, name, None)
        if vars(module).get("cached") is True:
            module.cached = False  # type: ignore[assignment]
