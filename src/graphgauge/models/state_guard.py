"""Restore the user's network after every call, also after one that failed, bit for bit.

`preserve_network(net)` puts the network into evaluation mode and switches its caches of normalised
edges off. Afterwards it restores parameters, buffers, gradients, `requires_grad`, hooks, training
flags and every other attribute of every module (tensors, arrays and containers by value, at any
depth), and the global random states of torch, NumPy and Python.

`borrow_network(model, borrower)` gives the network to an explainer and restores everything that it
leaves behind: training mode, hooks, frozen parameters, attributes. An explainer that changes
weights or data has explained another network, so this raises `ChangedModel`, naming the explainer.
A network may change itself when it is called (an embedding with ``max_norm``, a counter): that is
no explainer's error.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from graphgauge.core import ChangedModel, preserve_rng_state

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel

#: attributes in which PyG's layers keep normalised edges or propagated features between calls
_CACHE_ATTRIBUTES = ("_cached_edge_index", "_cached_adj_t", "_cached_x", "_cached_h")
#: attributes that hold parameters, buffers and modules: their members are restored one by one
_MEMBER_ATTRIBUTES = ("_parameters", "_buffers", "_modules")

#: whole numbers by their bytes
_INTEGER_BY_BYTES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

_Restore = Callable[[], None]
_Checksum = tuple[int, int]


@contextmanager
def preserve_network(net: Module) -> Iterator[None]:
    """Use ``net`` in evaluation mode, and restore its state afterwards."""
    restores = [
        *(_snapshot_module(module) for module in net.modules()),
        *(_snapshot_tensor(tensor) for tensor in network_tensors(net)),
    ]
    precision = torch.get_float32_matmul_precision()
    restores.append(lambda: torch.set_float32_matmul_precision(precision))
    try:
        # no TF32: results must not depend on the card
        torch.set_float32_matmul_precision("highest")
        net.eval()
        _disable_caches(net)
        with preserve_rng_state():
            yield
    finally:
        _run_restores(restores)


def _run_restores(restores: list[_Restore]) -> None:
    """Restore everything that can be restored, then raise the first failure."""
    failures: list[Exception] = []
    for restore in restores:
        try:
            restore()
        except Exception as error:  # noqa: PERF203 (the others must be restored all the same)
            failures.append(error)
    if failures:
        raise failures[0]


def network_tensors(net: Module) -> list[Tensor]:
    """Parameters and buffers, each once."""
    return [*net.parameters(), *net.buffers()]


def _snapshot_module(module: Module) -> _Restore:
    """Snapshot a module's attributes; the returned function restores them."""
    if isinstance(module, torch.jit.ScriptModule):
        return _snapshot_scripted_module(module)
    held = {
        name: value if name not in _MEMBER_ATTRIBUTES else dict(value)
        for name, value in vars(module).items()
    }
    kept = {
        name: _snapshot_value(value)
        for name, value in vars(module).items()
        if name not in _MEMBER_ATTRIBUTES
    }

    def restore() -> None:
        now = vars(module)
        for name in [name for name in now if name not in held]:
            del now[name]
        for name, value in held.items():
            if name in _MEMBER_ATTRIBUTES:
                now[name].clear()
                now[name].update(value)
            else:
                kept[name]()
                now[name] = value

    return restore


def _snapshot_scripted_module(module: torch.jit.ScriptModule) -> _Restore:
    """Snapshot a module of `torch.jit`; its members cannot be exchanged, and reading an attribute
    gives a copy.
    """
    before = {name: deepcopy(value) for name, value in _scripted_attributes(module).items()}

    def restore() -> None:
        for name, value in _scripted_attributes(module).items():
            if not _equal_values(value, before[name]):
                setattr(module, name, before[name])

    return restore


def _scripted_attributes(module: torch.jit.ScriptModule) -> dict[str, Any]:
    """Attributes of a module of `torch.jit`, with the training flag but without parameters, buffers
    and members.
    """
    names = module._concrete_type.get_attributes()
    members = {
        *dict(module.named_parameters(recurse=False)),
        *dict(module.named_buffers(recurse=False)),
    }
    return {name: getattr(module, name) for name in names if name not in members}


def _equal_values(first: Any, second: Any) -> bool:
    """Whether values are equal, also with tensors inside."""
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return first.shape == second.shape and torch.equal(first, second)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(map(_equal_values, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            _equal_values(value, second[key]) for key, value in first.items()
        )
    return type(first) is type(second) and bool(first == second)


def _snapshot_value(value: Any, depth: int = 0) -> _Restore:
    """Snapshot the content of an attribute: the numbers of tensors and arrays, the items of
    containers.
    """
    if isinstance(value, Tensor):
        return _snapshot_tensor(value)
    if isinstance(value, np.ndarray):
        numbers = value.copy()
        return lambda: np.copyto(value, numbers)
    if not isinstance(value, (dict, list, set, tuple)) or depth > 8:
        return lambda: None
    items = value.copy() if isinstance(value, (dict, list, set)) else value
    inner = [
        _snapshot_value(item, depth + 1)
        for item in (items.values() if isinstance(items, dict) else items)
    ]

    def restore() -> None:
        _refill_container(value, items)
        for restore_item in inner:
            restore_item()

    return restore


def _refill_container(container: Any, items: Any) -> None:
    """Restore the items of a container, which stays the same object."""
    if isinstance(container, list):
        container[:] = items
    elif isinstance(container, (dict, set)):
        container.clear()
        container.update(items)


def _snapshot_tensor(tensor: Tensor) -> _Restore:
    """Snapshot a tensor's numbers, gradient and `requires_grad`.

    Restoring writes only what differs, so that autograd's versions stay.
    """
    data, values, version = (
        tensor.data,
        tensor.detach().clone(),
        tensor._version if not tensor.is_inference() else 0,
    )
    was_leaf, needs_grad, grad = (
        tensor.is_leaf,
        tensor.requires_grad,
        tensor.grad if tensor.is_leaf else None,
    )
    keep_grad = None if grad is None else _snapshot_tensor(grad)

    def restore() -> None:
        if _has_other_memory(tensor, data):
            tensor.data = data
        if was_leaf and not tensor.is_leaf:  # something that has a gradient was written into it
            tensor.detach_()
        if _has_other_values(tensor, values, version):
            tensor.data.copy_(values)
        if tensor.is_leaf and tensor.requires_grad != needs_grad:
            tensor.requires_grad_(needs_grad)
        if tensor.is_leaf and tensor.grad is not grad:
            tensor.grad = grad
        if keep_grad is not None:
            keep_grad()

    return restore


def _has_other_memory(tensor: Tensor, data: Tensor) -> bool:
    """Whether a tensor was given other memory."""
    return tensor.layout == torch.strided and (
        tensor.data_ptr() != data.data_ptr() or tensor.shape != data.shape
    )


def _has_other_values(tensor: Tensor, values: Tensor, version: int) -> bool:
    """Whether a tensor holds other numbers; sparse tensors cannot be compared and go by their
    version.
    """
    return (
        not torch.equal(tensor.detach(), values)
        if tensor.layout == torch.strided
        else tensor._version != version
    )


def _disable_caches(net: Module) -> None:
    """Clear caches of edges and features and switch them off: a cached layer ignores the graph it
    is given.
    """
    for module in net.modules():
        held = _module_attributes(module)
        for name in _CACHE_ATTRIBUTES:
            if held.get(name) is not None:
                setattr(module, name, None)
        if held.get("cached") is True:
            module.cached = False  # type: ignore[assignment]


def _module_attributes(module: Module) -> dict[str, Any]:
    """The attributes of a module by name."""
    return {
        **vars(module),
        **(_scripted_attributes(module) if isinstance(module, torch.jit.ScriptModule) else {}),
    }


def network_fingerprint(net: Module) -> Any:
    """A value that changes with the network: the numbers in its tensors, and its plain
    attributes.
    """
    plain = [
        (name, key, value)
        for name, module in net.named_modules()
        for key, value in _module_attributes(module).items()
        if key != "training" and isinstance(value, (bool, int, float, str, type(None)))
    ]
    tensors = network_tensors(net)
    return [id(tensor) for tensor in tensors], _tensor_checksums(tensors), plain


def _parameter_checksums(net: Module) -> dict[str, _Checksum]:
    """The checksum of each parameter by name."""
    named = dict(net.named_parameters())
    return dict(zip(named, _tensor_checksums(list(named.values())), strict=True))


def _tensor_checksums(tensors: list[Tensor]) -> list[_Checksum]:
    """The checksum of each tensor, all read from the device at once."""
    found = [_tensor_checksum(tensor) for tensor in tensors]
    numbers = torch.stack([pair.to(found[0].device) for pair in found]).tolist() if found else []
    return [(first, second) for first, second in numbers]


def _tensor_checksum(tensor: Tensor) -> Tensor:
    """The sum of the bits of all values as integers, and that of each times its position.  (2,)

    For tensors without such values it is the version. Integers add up to the same in any order, and
    NaN counts like any other bits.
    """
    if tensor.layout not in (torch.strided, torch.sparse_coo) or tensor.is_quantized:
        return torch.tensor([0, tensor._version])
    values = tensor.detach() if tensor.layout == torch.strided else tensor.detach()._values()
    plain = torch.view_as_real(values.resolve_conj()) if values.is_complex() else values
    bits = (
        plain.resolve_neg()
        .contiguous()
        .flatten()
        .view(_INTEGER_BY_BYTES[plain.element_size()])
        .long()
    )
    return torch.stack(
        [bits.sum(), (bits * torch.arange(1, len(bits) + 1, device=bits.device)).sum()]
    )


# --- lending the network to an explainer -------------------------------------------------------


@contextmanager
def borrow_network(model: "BaseModel", borrower: str) -> Iterator[None]:
    """Let ``borrower`` use the network in a session; a loan inside a loan is the same loan."""
    if model.is_lent:
        yield
        return
    data, before = model.versions_of_data(), _parameter_checksums(model.net)
    model.is_lent = True
    try:
        with preserve_network(model.net):
            yield
            after = _parameter_checksums(model.net)
    finally:
        model.is_lent = False
    if _has_changed_weights(model, before, after):
        raise ChangedModel(
            f"{borrower} changed the network's weights while explaining. They were put back."
        )
    if model.versions_of_data() != data:
        raise ChangedModel(
            f"{borrower} wrote into the data while explaining. Load the data again and wrap the "
            "network anew."
        )


def _has_changed_weights(
    model: "BaseModel", before: dict[str, _Checksum], after: dict[str, _Checksum]
) -> bool:
    """Whether weights have changed, except for weights that the network writes itself when it is
    called.
    """
    changed = [name for name, bits in before.items() if after.get(name) != bits]
    if not changed:
        return False
    with preserve_network(model.net), torch.no_grad():
        model.run_once()
        called = _parameter_checksums(model.net)
    return any(called.get(name) == before[name] for name in changed)
