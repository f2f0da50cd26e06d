"""State guard: after every call, also one that failed, the user's network is bit for bit what it
was.

`untouched(net)` puts the network into evaluation mode with its caches of normalised edges switched
off. Afterwards it restores parameters, buffers, gradients, `requires_grad`, hooks, training flags
and every other attribute of every module (tensors, arrays and containers by value, at any depth),
and the global random states of torch, NumPy and Python.

`lent(model, borrower)` gives the network to an explainer and restores everything that it leaves
behind: training mode, hooks, frozen parameters, attributes. An explainer that changes weights or
data has explained another network, so this raises `ChangedModel`, naming the explainer. A network
may change itself when it is called (an embedding with ``max_norm``, a counter): that is no
explainer's error.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from graphgauge.core.errors import ChangedModel
from graphgauge.core.randomness import preserved_randomness

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel

#: attributes in which PyG's layers keep normalised edges or propagated features between calls
CACHES = ("_cached_edge_index", "_cached_adj_t", "_cached_x", "_cached_h")
#: attributes that hold parameters, buffers and modules: their members are restored one by one
MEMBERS = ("_parameters", "_buffers", "_modules")

#: whole numbers by their bytes
WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

Restore = Callable[[], None]
Checksum = tuple[int, int]


@contextmanager
def untouched(net: Module) -> Iterator[None]:
    """Use ``net`` in evaluation mode, and restore its state afterwards."""
    restores = [
        *(keep_module(module) for module in net.modules()),
        *(keep_tensor(tensor) for tensor in all_tensors(net)),
    ]
    precision = torch.get_float32_matmul_precision()
    restores.append(lambda: torch.set_float32_matmul_precision(precision))
    try:
        torch.set_float32_matmul_precision(
            "highest"
        )  # no TF32: results must not depend on the card
        net.eval()
        without_caches(net)
        with preserved_randomness():
            yield
    finally:
        run_all(restores)


def run_all(restores: list[Restore]) -> None:
    """Restore everything that can be restored, then raise the first failure."""
    failures: list[Exception] = []
    for restore in restores:
        try:
            restore()
        except Exception as error:  # noqa: PERF203 (the others must be restored all the same)
            failures.append(error)
    if failures:
        raise failures[0]


def all_tensors(net: Module) -> list[Tensor]:
    """Parameters and buffers, each once."""
    return [*net.parameters(), *net.buffers()]


def keep_module(module: Module) -> Restore:
    """Snapshot a module's attributes; the returned function restores them."""
    if isinstance(module, torch.jit.ScriptModule):
        return keep_scripted(module)
    held = {
        name: value if name not in MEMBERS else dict(value) for name, value in vars(module).items()
    }
    kept = {name: keep_value(value) for name, value in vars(module).items() if name not in MEMBERS}

    def restore() -> None:
        now = vars(module)
        for name in [name for name in now if name not in held]:
            del now[name]
        for name, value in held.items():
            if name in MEMBERS:
                now[name].clear()
                now[name].update(value)
            else:
                kept[name]()
                now[name] = value

    return restore


def keep_scripted(module: torch.jit.ScriptModule) -> Restore:
    """Snapshot a module of `torch.jit`; its members cannot be exchanged, and reading an attribute
    gives a copy.
    """
    before = {name: deepcopy(value) for name, value in scripted_attributes(module).items()}

    def restore() -> None:
        for name, value in scripted_attributes(module).items():
            if not is_same(value, before[name]):
                setattr(module, name, before[name])

    return restore


def scripted_attributes(module: torch.jit.ScriptModule) -> dict[str, Any]:
    """Attributes of a module of `torch.jit`, with the training flag but without parameters, buffers
    and members.
    """
    names = module._concrete_type.get_attributes()
    members = {
        *dict(module.named_parameters(recurse=False)),
        *dict(module.named_buffers(recurse=False)),
    }
    return {name: getattr(module, name) for name in names if name not in members}


def is_same(first: Any, second: Any) -> bool:
    """Whether values are equal, also with tensors inside."""
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return first.shape == second.shape and torch.equal(first, second)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(map(is_same, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            is_same(value, second[key]) for key, value in first.items()
        )
    return type(first) is type(second) and bool(first == second)


def keep_value(value: Any, depth: int = 0) -> Restore:
    """Snapshot the content of an attribute: the numbers of tensors and arrays, the items of
    containers.
    """
    if isinstance(value, Tensor):
        return keep_tensor(value)
    if isinstance(value, np.ndarray):
        numbers = value.copy()
        return lambda: np.copyto(value, numbers)
    if not isinstance(value, (dict, list, set, tuple)) or depth > 8:
        return lambda: None
    items = value.copy() if isinstance(value, (dict, list, set)) else value
    inner = [
        keep_value(item, depth + 1)
        for item in (items.values() if isinstance(items, dict) else items)
    ]

    def restore() -> None:
        refill(value, items)
        for restore_item in inner:
            restore_item()

    return restore


def refill(container: Any, items: Any) -> None:
    """Restore the items of a container, which stays the same object."""
    if isinstance(container, list):
        container[:] = items
    elif isinstance(container, (dict, set)):
        container.clear()
        container.update(items)


def keep_tensor(tensor: Tensor) -> Restore:
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
    keep_grad = None if grad is None else keep_tensor(grad)

    def restore() -> None:
        if is_elsewhere(tensor, data):
            tensor.data = data
        if was_leaf and not tensor.is_leaf:  # something that has a gradient was written into it
            tensor.detach_()
        if is_changed(tensor, values, version):
            tensor.data.copy_(values)
        if tensor.is_leaf and tensor.requires_grad != needs_grad:
            tensor.requires_grad_(needs_grad)
        if tensor.is_leaf and tensor.grad is not grad:
            tensor.grad = grad
        if keep_grad is not None:
            keep_grad()

    return restore


def is_elsewhere(tensor: Tensor, data: Tensor) -> bool:
    """Whether a tensor was given other memory."""
    return tensor.layout == torch.strided and (
        tensor.data_ptr() != data.data_ptr() or tensor.shape != data.shape
    )


def is_changed(tensor: Tensor, values: Tensor, version: int) -> bool:
    """Whether a tensor holds other numbers; sparse tensors cannot be compared and go by their
    version.
    """
    return (
        not torch.equal(tensor.detach(), values)
        if tensor.layout == torch.strided
        else tensor._version != version
    )


def without_caches(net: Module) -> None:
    """Clear caches of edges and features and switch them off: a cached layer ignores the graph it
    is given.
    """
    for module in net.modules():
        held = attributes_of(module)
        for name in CACHES:
            if held.get(name) is not None:
                setattr(module, name, None)
        if held.get("cached") is True:
            module.cached = False  # type: ignore[assignment]


def attributes_of(module: Module) -> dict[str, Any]:
    """The attributes of a module by name."""
    return {
        **vars(module),
        **(scripted_attributes(module) if isinstance(module, torch.jit.ScriptModule) else {}),
    }


def fingerprint(net: Module) -> Any:
    """A value that changes with the network: the numbers in its tensors, and its plain
    attributes.
    """
    plain = [
        (name, key, value)
        for name, module in net.named_modules()
        for key, value in attributes_of(module).items()
        if key != "training" and isinstance(value, (bool, int, float, str, type(None)))
    ]
    tensors = all_tensors(net)
    return [id(tensor) for tensor in tensors], checksums(tensors), plain


def weights_of(net: Module) -> dict[str, Checksum]:
    """The checksum of each parameter by name."""
    named = dict(net.named_parameters())
    return dict(zip(named, checksums(list(named.values())), strict=True))


def checksums(tensors: list[Tensor]) -> list[Checksum]:
    """The checksum of each tensor, all read from the device at once."""
    found = [checksum(tensor) for tensor in tensors]
    numbers = torch.stack([pair.to(found[0].device) for pair in found]).tolist() if found else []
    return [(first, second) for first, second in numbers]


def checksum(tensor: Tensor) -> Tensor:
    """The sum of the bits of all values as integers, and that of each times its position.  (2,)

    For tensors without such values it is the version. Integers add up to the same in any order, and
    NaN counts like any other bits.
    """
    if tensor.layout not in (torch.strided, torch.sparse_coo) or tensor.is_quantized:
        return torch.tensor([0, tensor._version])
    values = tensor.detach() if tensor.layout == torch.strided else tensor.detach()._values()
    plain = torch.view_as_real(values.resolve_conj()) if values.is_complex() else values
    bits = plain.resolve_neg().contiguous().flatten().view(WHOLE[plain.element_size()]).long()
    return torch.stack(
        [bits.sum(), (bits * torch.arange(1, len(bits) + 1, device=bits.device)).sum()]
    )


# --- lending the network to an explainer -------------------------------------------------------


@contextmanager
def lent(model: "BaseModel", borrower: str) -> Iterator[None]:
    """Let ``borrower`` use the network in a session; a loan inside a loan is the same loan."""
    if model.is_lent:
        yield
        return
    data, before = model.versions_of_data(), weights_of(model.net)
    model.is_lent = True
    try:
        with untouched(model.net):
            yield
            after = weights_of(model.net)
    finally:
        model.is_lent = False
    if was_changed(model, before, after):
        raise ChangedModel(
            f"{borrower} changed the network's weights while explaining. They were put back."
        )
    if model.versions_of_data() != data:
        raise ChangedModel(
            f"{borrower} wrote into the data while explaining. Load the data again and wrap the network anew."
        )


def was_changed(
    model: "BaseModel", before: dict[str, Checksum], after: dict[str, Checksum]
) -> bool:
    """Whether weights have changed, except for weights that the network writes itself when it is
    called.
    """
    changed = [name for name, bits in before.items() if after.get(name) != bits]
    if not changed:
        return False
    with untouched(model.net), torch.no_grad():
        model.run_once()
        called = weights_of(model.net)
    return any(called.get(name) == before[name] for name in changed)
