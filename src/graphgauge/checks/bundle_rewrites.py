"""The same bundle written in another way: other orders, numbers of nodes, scales and precisions.

What is measured stays the same, so the values of a metric must not change. A *part* is a field of a
bundle: a tensor with one row per case in `Curves`, a sequence with one tensor per target elsewhere.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from graphgauge.core import derive_seed, make_generator
from graphgauge.metrics import AnyBundle, Curves, Pairs, Vectors

_TINY_SCALE, _HUGE_SCALE = 2.0**-40, 2.0**40  #: powers of 2, so that scaling rounds nothing
_FEATURE_PARTS = ("first_feature", "second_feature")
_EDGE_PARTS = ("first_edge", "second_edge")
_TensorChange = Callable[[Tensor, int], Tensor]  #: of a tensor, and the number of its target
_BundleT = TypeVar("_BundleT", bound=AnyBundle)


def bundle_parts(bundle: AnyBundle) -> dict[str, Any]:
    """Everything that a bundle holds, by name."""
    return {field.name: getattr(bundle, field.name) for field in fields(bundle)}


def _map_tensors(
    bundle: _BundleT, change: _TensorChange, only: tuple[str, ...] | None = None
) -> _BundleT:
    """Change each tensor of a bundle, or of some parts; in curves the target's number is 0."""
    changed: dict[str, Any] = {}
    for name, part in bundle_parts(bundle).items():
        if only is not None and name not in only:
            continue
        if isinstance(part, Tensor):
            changed[name] = change(part, 0)
        elif isinstance(part, (list, tuple)) and all(isinstance(item, Tensor) for item in part):
            changed[name] = [change(item, number) for number, item in enumerate(part)]
    return replace(bundle, **changed)


def copy_bundle(bundle: _BundleT) -> _BundleT:
    """Copy a bundle into memory of its own."""
    return _map_tensors(bundle, lambda tensor, _: tensor.clone())


def number_of_targets(bundle: AnyBundle) -> int:
    """T"""
    if isinstance(bundle, Curves):
        return bundle.num_targets
    if isinstance(bundle, Vectors):
        return len(bundle.score)
    return max(len(bundle.first_feature), len(bundle.first_edge))


def has_case(bundle: AnyBundle) -> Tensor:
    """Whether there is anything to measure for each target.  (T,) bool"""
    if isinstance(bundle, Curves):
        return bundle.target.bincount(minlength=bundle.num_targets) > 0
    parts = (
        [bundle.score] if isinstance(bundle, Vectors) else [bundle.first_feature, bundle.first_edge]
    )
    is_there = [[tensor.numel() > 0 for tensor in part] for part in parts if len(part)]
    return torch.tensor(is_there, dtype=torch.bool).reshape(-1, number_of_targets(bundle)).any(0)


def take_targets(bundle: AnyBundle, targets: list[int]) -> AnyBundle:
    """Some of the targets, in this order."""
    if not isinstance(bundle, Curves):
        parts: dict[str, Any] = {
            name: [part[t] for t in targets]
            for name, part in bundle_parts(bundle).items()
            if len(part)
        }
        return replace(bundle, **parts)
    rows = [(bundle.target == t).nonzero()[:, 0] for t in targets]
    sizes = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    curves = _with_cases(bundle, torch.cat(rows) if rows else bundle.target[:0])
    number = torch.arange(len(targets)).repeat_interleave(sizes)
    return replace(curves, target=number, num_targets=len(targets))


def _with_cases(curves: Curves, order: Tensor) -> Curves:
    """The cases in this order.  (Q,)"""
    return _map_tensors(curves, lambda rows, _: rows[order])


def with_cases_reversed(bundle: AnyBundle) -> AnyBundle:
    """The cases of curves from the last to the first, so that each target's change their order."""
    if not isinstance(bundle, Curves):
        return bundle
    return _with_cases(bundle, torch.arange(len(bundle.target) - 1, -1, -1))


def with_trials_shuffled(bundle: AnyBundle, first: int | None = None) -> AnyBundle:
    """Random curves, or each target's pairs, in another order.

    Curves get one order for all cases; with ``first`` only so many random curves change places.
    """
    if isinstance(bundle, Curves):
        size = bundle.random.size(1)
        num_shuffled = size if first is None else first
        rest = torch.arange(num_shuffled, size)
        order = torch.cat([_shuffled_order(num_shuffled, 0), rest])
        return replace(bundle, random=bundle.random[:, order])
    return _map_tensors(bundle, lambda scores, _: scores.flip(0), (*_FEATURE_PARTS, *_EDGE_PARTS))


def _shuffled_order(number: int, target: int) -> Tensor:
    """An order for the things of a target; not the identity unless there is but one.  (number,)"""
    order = torch.randperm(
        number, generator=make_generator(derive_seed(0, "order", target, number))
    )
    return order.roll(1) if torch.equal(order, torch.arange(number)) else order


def with_nodes_renumbered(bundle: AnyBundle) -> AnyBundle:
    """Feature scores with their nodes, or vectors with their truth, in another order."""
    if isinstance(bundle, Vectors):
        return _map_tensors(bundle, lambda row, t: row[_shuffled_order(len(row), t)])
    scores = _map_tensors(
        bundle, lambda part, t: part[:, _shuffled_order(part.size(1), t)], _FEATURE_PARTS
    )
    return _map_tensors(scores, lambda part, t: part[_shuffled_order(len(part), t)], ("is_target",))


def with_edges_shuffled(bundle: AnyBundle) -> AnyBundle:
    """Edge scores with their edges in another order."""
    return _map_tensors(
        bundle, lambda part, t: part[:, _shuffled_order(part.size(1), t)], _EDGE_PARTS
    )


def with_scores_scaled(bundle: AnyBundle) -> AnyBundle:
    """All scores of a target times one number, far below 1 or far above."""

    def scale(part: Tensor, target: int) -> Tensor:
        factor = _HUGE_SCALE if target % 2 else _TINY_SCALE
        return part * factor if part.is_floating_point() else part

    return _map_tensors(bundle, scale)


def in_precision(bundle: AnyBundle, dtype: torch.dtype) -> AnyBundle:
    """The same numbers in another precision."""
    return _map_tensors(
        bundle, lambda part, _: part.to(dtype) if part.is_floating_point() else part
    )


def with_seeds(pairs: Pairs, draw: int) -> Pairs:
    """The same pairs with other seeds."""
    seeds = [derive_seed(draw, "seeds", number) for number in range(number_of_targets(pairs))]
    return replace(pairs, seeds=seeds)


def with_value_behind(curves: Curves, value: float) -> Curves:
    """Curves that end in ``value``, and in flips, behind their length."""
    is_behind = torch.arange(1, curves.curve.size(1) + 1) > curves.length[:, None]
    return replace(
        curves,
        curve=curves.curve.masked_fill(is_behind, value),
        random=curves.random.masked_fill(is_behind[:, None], value),
        flips=curves.flips | is_behind,
    )


def gap_places(bundle: AnyBundle) -> list[tuple[str, int]]:
    """Where a number can be missing: a part, and a target that has numbers there."""

    def holds_numbers(item: object) -> bool:
        return isinstance(item, Tensor) and item.is_floating_point() and item.numel() > 0

    places = []
    for name, part in bundle_parts(bundle).items():
        if isinstance(bundle, Curves) and holds_numbers(part):
            places.append((name, int(bundle.target[0])))
        elif isinstance(part, (list, tuple)):
            places += [(name, t) for t, item in enumerate(part) if holds_numbers(item)][:1]
    return places


def with_gap(bundle: AnyBundle, place: tuple[str, int], value: float) -> AnyBundle:
    """The bundle with the first number at this place replaced; the bundle may refuse."""
    name, target = place
    number = 0 if isinstance(bundle, Curves) else target
    return _map_tensors(
        bundle, lambda part, t: with_first(part, value) if t == number else part, (name,)
    )


def with_first(tensor: Tensor, value: float) -> Tensor:
    """A copy with another first entry."""
    changed = tensor.clone()
    changed.view(-1)[0] = value
    return changed


def same_bits(first: AnyBundle, second: AnyBundle) -> bool:
    """Whether two bundles hold the same, NaN included, bit for bit."""
    parts = bundle_parts(second)
    return all(is_identical(part, parts[name]) for name, part in bundle_parts(first).items())


def is_identical(first: object, second: object) -> bool:
    """The same numbers in the same shape and precision; sequences item by item."""
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        if first.dtype != second.dtype or first.shape != second.shape:
            return False
        is_same_nan = torch.equal(first.isnan(), second.isnan())
        return is_same_nan and torch.equal(_without_nan(first), _without_nan(second))
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(map(is_identical, first, second))
    return bool(first == second)


def _without_nan(tensor: Tensor) -> Tensor:
    """NaN replaced by 0, infinity kept."""
    return torch.where(tensor.isnan(), 0, tensor) if tensor.is_floating_point() else tensor
