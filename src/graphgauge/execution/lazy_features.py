"""Lazy features: a tensor that stands for the features of a union, which are not written out before
they are needed.

A network is given a `LazyFeatureTensor`. Its linear map is computed in the short way
(`batch_features`), also after steps on whole rows (`row_expressions`). Any other operation writes
the features out first and gets an ordinary tensor. With 1,433 features a copy takes a hundredth of
the memory.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_map

from graphgauge.core import BadModel
from graphgauge.execution.batch_features import BatchFeatures, DenseFeatures
from graphgauge.execution.row_expressions import ZeroRows, express_function, join_columns

#: what can be asked of features without writing them out
_METADATA_CALLS = {
    *(
        getattr(Tensor, name).__get__
        for name in ("shape", "dtype", "device", "layout", "ndim", "is_cuda", "requires_grad")
    ),
    *(
        getattr(Tensor, name)
        for name in (
            "size",
            "dim",
            "numel",
            "is_floating_point",
            "element_size",
            "__len__",
            "stride",
        )
    ),
}
#: functions that make a new tensor and only ask for type and device
_FACTORIES = ("new_zeros", "new_ones", "new_full", "new_empty", "new_tensor")
#: functions whose second argument is the transposed weight of a linear map
_PRODUCTS = ("matmul", "mm", "__matmul__")
_JOINS = ("cat", "concat", "concatenate")
_IN_PLACE_OPERATORS = ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__")


class LazyFeatureTensor(Tensor):
    """A tensor that stands for features inside a network; see above.

    Args:
        features: What it stands for.
        is_input: Whether it is the network's input. A network may write into what it has computed
            itself, but not into its input.
    """

    features: BatchFeatures
    is_input: bool

    @staticmethod
    def __new__(cls, features: BatchFeatures, is_input: bool = True) -> "LazyFeatureTensor":
        like = features.like
        shell: LazyFeatureTensor = Tensor._make_wrapper_subclass(
            cls, features.shape, dtype=like.dtype, device=like.device
        )
        shell.features, shell.is_input = features, is_input
        return shell

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Take the short way for a linear map and for steps on whole rows, skip inactive dropout,
        and write out for all else if gradients are needed.
        """
        kwargs = kwargs or {}
        if func not in _METADATA_CALLS:
            done, answer = _answer_unwritten(func, args, kwargs)
            if done:
                return answer
            if torch.is_grad_enabled():
                # above autograd, so that gradients find their way
                args, kwargs = tree_map(materialise_features, (args, kwargs))
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Write the features out and run the operation."""
        if func._schema.is_mutable:
            raise _refusal_to_write(func)
        return func(
            *tree_map(materialise_features, args), **tree_map(materialise_features, kwargs or {})
        )

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Unwritten{tuple(self.shape)}"


def materialise_features(value: Any) -> Any:
    """An `LazyFeatureTensor` as an ordinary tensor; anything else unchanged."""
    return value.features.written if isinstance(value, LazyFeatureTensor) else value


def _answer_unwritten(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[bool, Any]:
    """Whether a torch function needs no features in full, and what it gives then."""
    name = getattr(func, "__name__", "")
    first = args[0] if args else None
    if not isinstance(first, LazyFeatureTensor):
        return _answer_for_later_argument(name, args, kwargs)
    features = first.features
    if func is F.linear:
        return True, features.linear(*_linear_arguments(*args[1:], **kwargs))
    if name in _PRODUCTS and not kwargs and _is_matrix(args[1]):
        return True, features.linear(args[1].t(), None)
    if func is F.dropout and not _is_dropout_active(*args[1:], **kwargs):
        return True, first
    if name in _FACTORIES:
        return True, _new_tensor(features, name, args[1:], kwargs)
    found = None if kwargs else express_function(name, [_features_of(value) for value in args])
    if _is_in_place(name, kwargs):
        return _change_in_place(first, found, func, args[1:], kwargs)
    return (False, None) if found is None else (True, LazyFeatureTensor(found, is_input=False))


def _answer_for_later_argument(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[bool, Any]:
    """As `_answer_unwritten`, where the first argument is an ordinary tensor or a number."""
    if name in _JOINS and isinstance(args[0], Sequence):
        return _join(args[0], *args[1:], **kwargs)
    if name == "expand_as" and isinstance(args[1], LazyFeatureTensor):
        return True, args[0].expand(tuple(args[1].features.shape))
    if kwargs or _is_in_place(name, kwargs):
        return False, None
    found = express_function(name, [_features_of(value) for value in args])
    return (False, None) if found is None else (True, LazyFeatureTensor(found, is_input=False))


def _join(
    tensors: Sequence[Any], dim: Any = 0, axis: Any = None, out: Any = None
) -> tuple[bool, Any]:
    """``torch.cat(tensors, dim)`` of features and of matrices that were computed from them."""
    parts = [
        DenseFeatures(value) if _is_matrix(value) else _features_of(value) for value in tensors
    ]
    is_known = out is None and all(isinstance(part, BatchFeatures) for part in parts)
    found = join_columns(parts, dim if axis is None else axis) if is_known else None
    return (False, None) if found is None else (True, LazyFeatureTensor(found, is_input=False))


def _new_tensor(
    features: BatchFeatures, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Tensor:
    """``x.new_zeros(...)`` and the like; zeros with as many columns as x may stay unwritten."""
    if name == "new_zeros" and not kwargs:
        size = tuple(args[0]) if args and isinstance(args[0], Sequence) else tuple(args)
        if len(size) == 2 and size[1] == features.shape[1]:
            return LazyFeatureTensor(ZeroRows(features.like, size), is_input=False)
    made: Tensor = getattr(features.like, name)(*args, **kwargs)
    return made


def _change_in_place(
    tensor: LazyFeatureTensor,
    found: BatchFeatures | None,
    func: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> tuple[bool, Any]:
    """Let the tensor stand for what the function makes of it. What was computed from it before
    keeps the old features.
    """
    if tensor.is_input:
        raise _refusal_to_write(func)
    if found is not None:
        tensor.features = found
        return True, tensor
    changed = tensor.features.written.clone()
    with torch._C.DisableTorchFunctionSubclass():
        func(
            changed,
            *tree_map(materialise_features, tuple(args)),
            **tree_map(materialise_features, dict(kwargs)),
        )
    tensor.features = DenseFeatures(changed)
    return True, tensor


def _refusal_to_write(func: object) -> BadModel:
    """The error for a network that writes into its input."""
    return BadModel(
        f"features of a union cannot be changed in place ({func}): work on a copy, x = x.clone()."
    )


def _is_in_place(name: str, kwargs: Mapping[str, Any]) -> bool:
    """Whether a torch function writes into its first argument."""
    is_underscored = name.endswith("_") and not name.endswith("__")
    return is_underscored or name in _IN_PLACE_OPERATORS or bool(kwargs.get("inplace"))


def _features_of(value: Any) -> Any:
    """The features that a tensor stands for; anything else unchanged."""
    return value.features if isinstance(value, LazyFeatureTensor) else value


def _is_matrix(value: object) -> bool:
    """Whether it is an ordinary tensor with two dimensions."""
    if not isinstance(value, Tensor) or isinstance(value, LazyFeatureTensor):
        return False
    return value.dim() == 2 and value.layout == torch.strided


def _linear_arguments(weight: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """The arguments of F.linear besides its input."""
    return weight, bias


def _is_dropout_active(p: float = 0.5, training: bool = True, inplace: bool = False) -> bool:
    """Whether F.dropout would drop something. Takes its arguments besides the input."""
    return training
