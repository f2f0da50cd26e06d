"""The same bundle written in another way: other orders, numbers of nodes, scales and precisions,
targets on their own.

What is measured stays the same, so a metric must not notice. A *part* is a field of a bundle: a
tensor with one row per case in curves, a sequence with one tensor per target elsewhere.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from graphgauge.core import derive_seed, make_generator
from graphgauge.metrics import Curves, Pairs, Vectors

_TINY_SCALE, _HUGE_SCALE = 2.0**-40, 2.0**40  #: powers of 2, so that scaling rounds nothing
_FEATURE_PARTS = ("first_feature", "second_feature", "is_target")
_EDGE_PARTS = ("first_edge", "second_edge")
_TensorChange = Callable[[Tensor, int], Tensor]  #: of a tensor, and the number of its target


def _bundle_parts(bundle: Any) -> dict[str, Any]:
    """Everything the bundle holds, by name."""
    return {field.name: getattr(bundle, field.name) for field in fields(bundle)}


def _map_tensors(bundle: Any, change: _TensorChange, only: tuple[str, ...] | None = None) -> Any:
    """The bundle with each tensor changed, or those of some parts; in curves the number of the
    target is 0.
    """
    found: dict[str, Any] = {}
    for name, part in _bundle_parts(bundle).items():
        if only is not None and name not in only:
            continue
        if isinstance(part, Tensor):
            found[name] = change(part, 0)
        elif isinstance(part, (list, tuple)) and all(isinstance(item, Tensor) for item in part):
            found[name] = [change(item, number) for number, item in enumerate(part)]
    return replace(bundle, **found)


def copy_bundle(bundle: Any) -> Any:
    """The same in memory of its own."""
    return _map_tensors(bundle, lambda tensor, _: tensor.clone())


def number_of_targets(bundle: Any) -> int:
    """T"""
    if isinstance(bundle, Curves):
        return bundle.num_targets
    return (
        len(bundle.score)
        if isinstance(bundle, Vectors)
        else max(len(bundle.first_feature), len(bundle.first_edge))
    )


def has_case(bundle: Any) -> Tensor:
    """Whether there is anything to measure for each target.  (T,) bool"""
    if isinstance(bundle, Curves):
        return bundle.target.bincount(minlength=bundle.num_targets) > 0
    lists = (
        [bundle.score] if isinstance(bundle, Vectors) else [bundle.first_feature, bundle.first_edge]
    )
    there = [[tensor.numel() > 0 for tensor in listed] for listed in lists if len(listed)]
    return torch.tensor(there, dtype=torch.bool).reshape(-1, number_of_targets(bundle)).any(0)


def take_targets(bundle: Any, targets: list[int]) -> Any:
    """Some of the targets, in this order."""
    if not isinstance(bundle, Curves):
        return replace(
            bundle,
            **{
                name: [part[t] for t in targets]
                for name, part in _bundle_parts(bundle).items()
                if len(part)
            },
        )
    rows = [(bundle.target == t).nonzero()[:, 0] for t in targets]
    number = torch.arange(len(targets)).repeat_interleave(
        torch.tensor([len(row) for row in rows], dtype=torch.int64)
    )
    found = _with_cases(bundle, torch.cat(rows) if rows else bundle.target[:0])
    return replace(found, target=number, num_targets=len(targets))


def _with_cases(curves: Curves, order: Tensor) -> Curves:
    """The cases in this order.  (Q,)"""
    return _map_tensors(curves, lambda rows, _: rows[order])


def with_cases_turned(curves: Curves) -> Curves:
    """The cases from the last to the first, so that each target's come in another order."""
    return _with_cases(curves, torch.arange(len(curves.target) - 1, -1, -1))


def with_trials_shuffled(bundle: Any, first: int | None = None) -> Any:
    """Random curves (all, or the ``first``; one order for all cases), or each target's pairs, in
    another order.
    """
    if isinstance(bundle, Curves):
        size = bundle.random.size(1)
        return replace(
            bundle, random=bundle.random[:, _shuffle_first(size if first is None else first, size)]
        )
    return _map_tensors(
        bundle, lambda scores, _: scores.flip(0), ("first_feature", "second_feature", *_EDGE_PARTS)
    )


def _shuffle_first(number: int, size: int) -> Tensor:
    """The first ``number`` of ``size`` things shuffled, the others as they were.  (size,)"""
    return torch.cat([_shuffled_order(number, 0), torch.arange(number, size)])


def _shuffled_order(number: int, target: int) -> Tensor:
    """An order for the things of a target; not the identity unless there is but one.  (number,)"""
    order = torch.randperm(
        number, generator=make_generator(derive_seed(0, "order", target, number))
    )
    return order.roll(1) if torch.equal(order, torch.arange(number)) else order


def with_nodes_renumbered(bundle: Any) -> Any:
    """Feature scores with their nodes, or vectors with their truth, in another order."""
    if isinstance(bundle, Vectors):
        return _map_tensors(bundle, lambda row, t: row[_shuffled_order(len(row), t)])
    is_target = {
        "is_target": [
            part[_shuffled_order(len(part), t)] for t, part in enumerate(bundle.is_target)
        ]
    }
    scores = _map_tensors(
        bundle, lambda part, t: part[:, _shuffled_order(part.size(1), t)], _FEATURE_PARTS[:2]
    )
    return replace(scores, **is_target)


def with_edges_shuffled(pairs: Pairs) -> Pairs:
    """Edge scores with their edges in another order."""
    return _map_tensors(
        pairs, lambda part, t: part[:, _shuffled_order(part.size(1), t)], _EDGE_PARTS
    )


def with_scores_scaled(bundle: Any) -> Any:
    """All scores of a target times one number, far below 1 or far above."""
    return _map_tensors(
        bundle,
        lambda part, t: (
            part * (_TINY_SCALE, _HUGE_SCALE)[t % 2] if part.is_floating_point() else part
        ),
    )


def in_precision(bundle: Any, kind: torch.dtype) -> Any:
    """The same numbers in another precision."""
    return _map_tensors(bundle, lambda part, _: part.to(kind) if part.is_floating_point() else part)


def with_seeds(pairs: Pairs, draw: int) -> Pairs:
    """The same pairs with other seeds."""
    return replace(
        pairs,
        seeds=[derive_seed(draw, "seeds", number) for number in range(number_of_targets(pairs))],
    )


def with_value_behind(curves: Curves, value: float) -> Curves:
    """Curves that end in this value, and in flips, behind their length."""
    is_behind = torch.arange(1, curves.curve.size(1) + 1) > curves.length[:, None]
    return replace(
        curves,
        curve=curves.curve.masked_fill(is_behind, value),
        random=curves.random.masked_fill(is_behind[:, None], value),
        flips=curves.flips | is_behind,
    )


def gap_places(bundle: Any) -> list[tuple[str, int]]:
    """Where a number can be missing: a part, and a target that has numbers there."""
    found = []
    for name, part in _bundle_parts(bundle).items():
        if isinstance(part, Tensor) and part.is_floating_point() and part.numel():
            found.append((name, int(bundle.target[0])))
        elif isinstance(part, (list, tuple)):
            holding = [
                t
                for t, item in enumerate(part)
                if isinstance(item, Tensor) and item.is_floating_point() and item.numel()
            ]
            found += [(name, t) for t in holding[:1]]
    return found


def with_gap(bundle: Any, place: tuple[str, int], value: float) -> Any:
    """The bundle with the first number at this place replaced; the bundle may refuse."""
    name, target = place
    own = 0 if isinstance(bundle, Curves) else target
    return _map_tensors(
        bundle, lambda part, t: _with_first(part, value) if t == own else part, (name,)
    )


def _with_first(tensor: Tensor, value: float) -> Tensor:
    """A copy with another first entry."""
    found = tensor.clone()
    found.view(-1)[0] = value
    return found


def same_bits(first: Any, second: Any) -> bool:
    """Whether two bundles hold the same, NaN included, bit for bit."""
    return all(
        is_identical(part, _bundle_parts(second)[name])
        for name, part in _bundle_parts(first).items()
    )


def is_identical(first: Any, second: Any) -> bool:
    """The same numbers in the same shape and precision; sequences item by item."""
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        if first.dtype != second.dtype or first.shape != second.shape:
            return False
        return torch.equal(first.isnan(), second.isnan()) and torch.equal(
            _without_nan(first), _without_nan(second)
        )
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(map(is_identical, first, second))
    return bool(first == second)


def _without_nan(tensor: Tensor) -> Tensor:
    """NaN replaced by 0, infinity kept."""
    return torch.where(tensor.isnan(), 0, tensor) if tensor.is_floating_point() else tensor
