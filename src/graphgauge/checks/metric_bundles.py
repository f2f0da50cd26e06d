"""Bundles to try metrics on: seeded, of many kinds, with explanations that are known to be ideal,
mediocre, worst or random.

    specimens        every kind of bundle that can be met: ties, regression values, one candidate, several references per target,
                     targets without a case, curves shorter than the cap, vectors of zeros, one side
                     only ...
    graded           the same targets explained ideally, half-way and as badly as can be
    meaningless      explanations that are exchangeable with random ones

All numbers are drawn in double precision on the CPU.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Generator, Tensor

from graphgauge.core import derive_seed, make_generator
from graphgauge.metrics import NUM_LEVELS, Curves, Pairs, Truths, Vectors, level_counts

_DrawFunction = Callable[[Sequence[int], Generator], Tensor]

_NUM_RANDOM = 100  #: random curves of a case
_FLIP_THRESHOLD = 0.3  #: a prediction has flipped when its height moved by more
_NUM_MEANINGLESS = {"curves": 600, "pairs": 80, "truth": 400}  #: targets

# --- numbers --------------------------------------------------------------------------------------


def _draw_uniform(shape: Sequence[int], source: Generator) -> Tensor:
    """Anything between 0 and 1."""
    return torch.rand(*shape, generator=source, dtype=torch.float64)


def _draw_normal(shape: Sequence[int], source: Generator) -> Tensor:
    """Signed scores."""
    return torch.randn(*shape, generator=source, dtype=torch.float64)


def _draw_quarters(shape: Sequence[int], source: Generator) -> Tensor:
    """0, 1/4 .. 1: many ties, and sums without rounding."""
    return torch.randint(5, tuple(shape), generator=source).double() / 4


def _draw_bernoulli(shape: Sequence[int], source: Generator) -> Tensor:
    """0 or 1."""
    return torch.randint(2, tuple(shape), generator=source).double()


def _draw_small_integers(shape: Sequence[int], source: Generator) -> Tensor:
    """-2 .. 2: ties, zeros and signs."""
    return torch.randint(-2, 3, tuple(shape), generator=source).double()


def _draw_regression_values(shape: Sequence[int], source: Generator) -> Tensor:
    """Regression values, far from 0 and 1."""
    return 20 + 3 * _draw_normal(shape, source)


def _draw_learned_masks(shape: Sequence[int], source: Generator) -> Tensor:
    """What learned masks start from: close to 1/2, all of one sign."""
    return (0.1 * _draw_normal(shape, source)).sigmoid()


def _draw_sparse(shape: Sequence[int], source: Generator) -> Tensor:
    """Mostly 0."""
    return _draw_normal(shape, source) * (_draw_uniform(shape, source) < 0.4)


def _draw_constant(shape: Sequence[int], source: Generator) -> Tensor:
    """One number throughout."""
    return torch.full(tuple(shape), 0.75, dtype=torch.float64)


def _draw_zeros(shape: Sequence[int], source: Generator) -> Tensor:
    """Nothing throughout."""
    return torch.zeros(*shape, dtype=torch.float64)


# --- every kind of bundle -------------------------------------------------------------------------


def example_bundles(needs: str, seed: int = 0) -> dict[str, Any]:
    """Bundles by the name of their kind. In each, some target has nothing to measure (see
    `has_case`).
    """
    make: dict[str, Callable[[Generator], dict[str, Any]]] = {
        "curves": _example_curves,
        "pairs": _example_pairs,
        "scores": _example_vectors,
        "truth": _example_truths,
    }
    return make[needs](make_generator(derive_seed(seed, "specimens", needs)))


def _example_curves(source: Generator) -> dict[str, Curves]:
    """Six targets in nine cases, listed in no order; target 4 has none. All curves end before the
    cap, or some at it.
    """
    target = torch.tensor([3, 0, 5, 0, 2, 1, 2, 2, 5])
    candidates = torch.tensor([14, 12, 7, 9, 1, 3, 1, 1, 7])
    none = target[:0]
    return {
        "probabilities": _draw_curves(_draw_uniform, source, target, 6, candidates),
        "many ties": _draw_curves(_draw_quarters, source, target, 6, candidates),
        "certain predictions": _draw_curves(_draw_bernoulli, source, target, 6, candidates),
        "nothing moves": _draw_curves(_draw_constant, source, target, 6, candidates),
        "regression values": _draw_curves(
            _draw_regression_values, source, target, 6, candidates, are_probabilities=False
        ),
        "more candidates than the cap": _draw_curves(
            _draw_uniform, source, target, 6, 20 * candidates, cap=12
        ),
        "one candidate": _draw_curves(
            _draw_uniform, source, target, 6, torch.ones_like(target), steps=1
        ),
        "no case at all": _draw_curves(_draw_uniform, source, none, 3, none),
        "many candidates": _draw_curves(
            _draw_uniform, source, target, 6, 20 + candidates, steps=34
        ),
    }


def _draw_curves(
    draw: _DrawFunction,
    source: Generator,
    target: Tensor,
    num_targets: int,
    candidates: Tensor,
    steps: int = 15,
    cap: int = 100,
    are_probabilities: bool = True,
) -> Curves:
    """Curves of independent heights; NaN behind their length."""
    cases = len(target)
    start, kept = draw((2, cases), source)
    every = draw((cases, 1 + _NUM_RANDOM, steps), source)
    other = make_generator(derive_seed(0, "other parts", cases, steps))
    is_behind = torch.arange(1, steps + 1) > candidates.clamp(max=cap)[:, None]
    return Curves(
        target=target,
        num_targets=num_targets,
        start=start,
        curve=every[:, 0].masked_fill(is_behind, torch.nan),
        flips=(every[:, 0] - start[:, None]).abs() > _FLIP_THRESHOLD,
        random=every[:, 1:].masked_fill(is_behind[:, None], torch.nan),
        candidates=candidates,
        cap=cap,
        kept=kept,
        kept_prob=_three_class_probabilities(kept) if are_probabilities else None,
        start_prob=_three_class_probabilities(start) if are_probabilities else None,
        insertion=draw((cases, steps), other).masked_fill(is_behind, torch.nan),
        removed_levels=draw((cases, NUM_LEVELS), other),
        kept_levels=draw((cases, NUM_LEVELS), other),
    )


def _three_class_probabilities(height: Tensor) -> Tensor:
    """Predictions over three classes that give the first one this probability.  (Q,) -> (Q, 3)"""
    return torch.stack([height, (1 - height) / 2, (1 - height) / 2], 1)


def _example_pairs(source: Generator) -> dict[str, Pairs]:
    """A node, a lonely node with one edge, a graph, a link, and a target without nodes and edges."""
    drawn = {
        "scores": _draw_normal,
        "masks": _draw_learned_masks,
        "sparse scores": _draw_sparse,
        "ties": _draw_small_integers,
        "zeros": _draw_zeros,
    }
    sizes = [(5, 4, 3, 8), (2, 1, 3, 1), (4, 6, 2, 15), (1, 3, 3, 6), (2, 0, 3, 0)]
    own = [1, 1, 0, 2, 0]
    found = {kind: _draw_pairs(draw, source, sizes, own) for kind, draw in drawn.items()}
    both = _draw_pairs(_draw_normal, source, sizes[-2:], own[-2:])
    found["features only"] = Pairs(
        both.first_feature, both.second_feature, both.is_target, seeds=both.seeds
    )
    found["edges only"] = Pairs(
        first_edge=both.first_edge, second_edge=both.second_edge, seeds=both.seeds
    )
    return found


def _draw_pairs(
    draw: _DrawFunction,
    source: Generator,
    sizes: Sequence[tuple[int, int, int, int]],
    own: Sequence[int],
) -> Pairs:
    """Independent scores for targets of the given sizes (pairs, nodes, features, edges), with so
    many nodes of their own.
    """
    first_feature, second_feature = ([draw(size[:3], source) for size in sizes] for _ in range(2))
    first_edge, second_edge = (
        [draw((size[0], size[3]), source) for size in sizes] for _ in range(2)
    )
    is_target = [torch.arange(size[1]) < number for size, number in zip(sizes, own, strict=True)]
    return Pairs(
        first_feature,
        second_feature,
        is_target,
        first_edge,
        second_edge,
        seeds=list(range(len(sizes))),
    )


def _example_truths(source: Generator) -> dict[str, Truths]:
    """Vectors of several lengths, one of them empty; some truths hold for all, or for none."""
    drawn = {
        "scores": _draw_normal,
        "many ties": _draw_small_integers,
        "sparse scores": _draw_sparse,
        "equal scores": _draw_constant,
        "zeros": _draw_zeros,
    }
    found = {
        kind: [draw((size,), source) for size in (12, 0, 5, 30, 1, 6, 6)]
        for kind, draw in drawn.items()
    }
    return {kind: Truths(score, _draw_truths(score, source)) for kind, score in found.items()}


def _draw_truths(score: list[Tensor], source: Generator) -> list[Tensor]:
    """Truths for the scores: at random, and in the last two for all and for none."""
    by_chance = [torch.rand(len(row), generator=source) < 0.4 for row in score[:-2]]
    return [
        *by_chance,
        torch.ones(len(score[-2]), dtype=torch.bool),
        torch.zeros(len(score[-1]), dtype=torch.bool),
    ]


def _example_vectors(source: Generator) -> dict[str, Vectors]:
    """The scores of the truths."""
    return {kind: Vectors(truths.score) for kind, truths in _example_truths(source).items()}


def empty_bundle(needs: str) -> Any:
    """The bundle of no targets."""
    none = torch.zeros(0, dtype=torch.int64)
    if needs == "curves":
        return _draw_curves(_draw_uniform, make_generator(0), none, 0, none)
    return {"pairs": Pairs(), "scores": Vectors([]), "truth": Truths([], [])}[needs]


# --- explanations that are known to be good, or bad -----------------------------------------------


def graded_bundles(needs: str) -> dict[str, tuple[Any, Any, Any]]:
    """Bundles of the same targets with the ideal explanation, a mediocre one and the worst."""
    make: dict[str, Callable[[], dict[str, tuple[Any, Any, Any]]]] = {
        "curves": _graded_curves,
        "pairs": _graded_pairs,
        "scores": _graded_vectors,
        "truth": _graded_truths,
    }
    return make[needs]()


def _graded_curves() -> dict[str, tuple[Curves, Curves, Curves]]:
    """Random orders fall to the ground after 2..12 edits. The ideal order after one, a mediocre one
    after 6, the worst never.
    """
    falls_after = torch.randint(2, 13, (4, _NUM_RANDOM), generator=make_generator(0))
    probabilities = [
        _falling_curves(step, falls_after, 0.9, 0.1, kept)
        for step, kept in ((1, 0.9), (6, 0.5), (99, 0.1))
    ]
    values = [
        _falling_curves(step, falls_after, 20.0, 10.0, kept)
        for step, kept in ((1, 20.0), (6, 15.0), (99, 10.0))
    ]
    return {"probabilities": _as_triple(probabilities), "regression values": _as_triple(values)}


def _falling_curves(step: int, others: Tensor, high: float, low: float, kept: float) -> Curves:
    """Curves that fall from high to low after ``step`` edits, random ones after ``others`` (T, N);
    12 candidates.
    """
    steps, number = torch.arange(1, 13), len(others)
    has_fallen = (steps >= step).expand(number, -1)
    start, left = (torch.full((number,), height, dtype=torch.float64) for height in (high, kept))
    is_probability = high <= 1
    level = level_counts(torch.full((number,), 12))
    return Curves(
        target=torch.arange(number),
        num_targets=number,
        start=start,
        curve=torch.where(has_fallen, low, high).double(),
        flips=has_fallen.clone(),
        random=torch.where(steps >= others[..., None], low, high).double(),
        candidates=torch.full((number,), 12),
        kept=left,
        kept_prob=_three_class_probabilities(left) if is_probability else None,
        start_prob=_three_class_probabilities(start) if is_probability else None,
        insertion=torch.where(has_fallen, high, low).double(),
        removed_levels=torch.where(level >= step, low, high).double(),
        kept_levels=torch.where(level >= step, high, low).double(),
    )


def _graded_pairs() -> dict[str, tuple[Pairs, Pairs, Pairs]]:
    """The second explanation is the first, has nothing to do with it, or is its opposite."""
    found = _draw_pairs(_draw_normal, make_generator(0), [(5, 6, 4, 24)] * 4, [1] * 4)
    feature, edge, seeds = found.first_feature, found.first_edge, found.seeds
    same = Pairs(feature, feature, found.is_target, edge, edge, seeds)
    opposite = Pairs(
        feature, [-x for x in feature], found.is_target, edge, [-x for x in edge], seeds
    )
    return {"pairs": (same, found, opposite)}


def _graded_truths() -> dict[str, tuple[Truths, Truths, Truths]]:
    """Scores that equal the truth, get half of it right, or are its opposite."""
    truth = [torch.arange(size) < size // 2 for size in (8, 16)]
    half = [torch.arange(size) % 2 == 0 for size in (8, 16)]
    scores = (truth, half, [~row for row in truth])
    return {
        "truths": _as_triple([Truths([row.double() for row in score], truth) for score in scores])
    }


def _graded_vectors() -> dict[str, tuple[Vectors, Vectors, Vectors]]:
    """One entry says all, half of them do, or all say the same: the fewer, the easier to read."""
    scores = [
        [(torch.arange(size) < size * share).double() for size in (8, 16)]
        for share in (1 / 16, 1 / 2, 1)
    ]
    return {"scores": _as_triple([Vectors(score) for score in scores])}


def _as_triple(found: Sequence[Any]) -> tuple[Any, Any, Any]:
    """Three things."""
    first, second, third = found
    return first, second, third


# --- explanations that mean nothing ---------------------------------------------------------------


def meaningless_bundles(needs: str) -> dict[str, Any]:
    """Bundles of many targets whose explanation is exchangeable with random ones; none for scores
    alone.
    """
    source = make_generator(derive_seed(0, "meaningless", needs))
    number = _NUM_MEANINGLESS.get(needs, 0)
    if needs == "curves":
        return _meaningless_curves(source, number)
    if needs == "pairs":
        sizes = [(2, 6, 3, 16)] * number
        return {
            kind: _draw_pairs(draw, source, sizes, [1] * number)
            for kind, draw in (("scores", _draw_normal), ("masks", _draw_learned_masks))
        }
    if needs == "truth":
        return {
            kind: _meaningless_truths(draw, source, number)
            for kind, draw in (("scores", _draw_normal), ("ties", _draw_small_integers))
        }
    return {}


def _meaningless_curves(source: Generator, number: int) -> dict[str, Curves]:
    """The explanation's order is one more random order; every other target has two cases."""
    target = torch.cat([torch.arange(number), torch.arange(0, number, 2)])
    candidates = torch.randint(1, 16, (len(target),), generator=source)
    kinds = {
        "probabilities": _draw_uniform,
        "many ties": _draw_quarters,
        "one decisive edit": _draw_one_decisive_edit,
    }
    found = {
        kind: _draw_curves(draw, source, target, number, candidates) for kind, draw in kinds.items()
    }
    return found | {
        "regression values": _draw_curves(
            _draw_regression_values, source, target, number, candidates, are_probabilities=False
        )
    }


def _draw_one_decisive_edit(shape: Sequence[int], source: Generator) -> Tensor:
    """Curves that fall from 1 to 0 after any number of edits, some behind the last step."""
    falls_after = torch.randint(1, 2 + shape[-1], tuple(shape[:-1]), generator=source)
    return (torch.arange(1, 1 + shape[-1]) < falls_after[..., None]).double()


def _meaningless_truths(draw: _DrawFunction, source: Generator, number: int) -> Truths:
    """Scores that know nothing of the truth: 6 of 20 are true."""
    scores = [draw((20,), source) for _ in range(number)]
    return Truths(scores, [torch.randperm(20, generator=source) < 6 for _ in range(number)])
