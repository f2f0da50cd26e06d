"""Bundles to try metrics on: seeded, and of every kind that can occur.

There are ties, regression values, one candidate, several references per target, targets without a
case, curves shorter than the cap, vectors of zeros, one side only, and more. All numbers are drawn
in double precision on the CPU.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Generator, Tensor

from graphgauge.core import derive_seed, make_generator
from graphgauge.metrics import (
    NUM_LEVELS,
    AnyBundle,
    BundleKind,
    Curves,
    Pairs,
    Truths,
    Vectors,
)

DrawFunction = Callable[[Sequence[int], Generator], Tensor]

NUM_RANDOM = 100  #: random curves of a case
_FLIP_THRESHOLD = 0.3  #: a prediction has flipped when its height moved by more

# --- numbers --------------------------------------------------------------------------------------


def draw_uniform(shape: Sequence[int], source: Generator) -> Tensor:
    """Anything between 0 and 1."""
    return torch.rand(*shape, generator=source, dtype=torch.float64)


def draw_normal(shape: Sequence[int], source: Generator) -> Tensor:
    """Signed scores."""
    return torch.randn(*shape, generator=source, dtype=torch.float64)


def draw_quarters(shape: Sequence[int], source: Generator) -> Tensor:
    """0, 1/4 .. 1: many ties, and sums without rounding."""
    return torch.randint(5, tuple(shape), generator=source).double() / 4


def _draw_bernoulli(shape: Sequence[int], source: Generator) -> Tensor:
    """0 or 1."""
    return torch.randint(2, tuple(shape), generator=source).double()


def draw_small_integers(shape: Sequence[int], source: Generator) -> Tensor:
    """-2 .. 2: ties, zeros and signs."""
    return torch.randint(-2, 3, tuple(shape), generator=source).double()


def draw_regression_values(shape: Sequence[int], source: Generator) -> Tensor:
    """Regression values, far from 0 and 1."""
    return 20 + 3 * draw_normal(shape, source)


def draw_learned_masks(shape: Sequence[int], source: Generator) -> Tensor:
    """What learned masks start from: close to 1/2, all of one sign."""
    return (0.1 * draw_normal(shape, source)).sigmoid()


def _draw_sparse(shape: Sequence[int], source: Generator) -> Tensor:
    """Mostly 0."""
    return draw_normal(shape, source) * (draw_uniform(shape, source) < 0.4)


def _draw_constant(shape: Sequence[int], source: Generator) -> Tensor:
    """One number throughout."""
    return torch.full(tuple(shape), 0.75, dtype=torch.float64)


def _draw_zeros(shape: Sequence[int], source: Generator) -> Tensor:
    """0 throughout."""
    return torch.zeros(*shape, dtype=torch.float64)


# --- every kind of bundle -------------------------------------------------------------------------


def example_bundles(needs: BundleKind, seed: int = 0) -> dict[str, AnyBundle]:
    """Bundles by the name of their kind. In each, some target has nothing to measure."""
    make: dict[BundleKind, Callable[[Generator], Mapping[str, AnyBundle]]] = {
        "curves": _example_curves,
        "pairs": _example_pairs,
        "scores": _example_vectors,
        "truth": _example_truths,
    }
    return dict(make[needs](make_generator(derive_seed(seed, "specimens", needs))))


def _example_curves(source: Generator) -> dict[str, Curves]:
    """Six targets in nine cases, in no order; target 4 has no case.

    All curves end before the cap, or some at it.
    """
    target = torch.tensor([3, 0, 5, 0, 2, 1, 2, 2, 5])
    candidates = torch.tensor([14, 12, 7, 9, 1, 3, 1, 1, 7])
    one, none = torch.ones_like(target), target[:0]

    def draw(function: DrawFunction, are_probabilities: bool = True) -> Curves:
        return draw_curves(
            function, source, target, 6, candidates, are_probabilities=are_probabilities
        )

    return {
        "probabilities": draw(draw_uniform),
        "many ties": draw(draw_quarters),
        "certain predictions": draw(_draw_bernoulli),
        "nothing moves": draw(_draw_constant),
        "regression values": draw(draw_regression_values, are_probabilities=False),
        "more candidates than the cap": draw_curves(
            draw_uniform, source, target, 6, 20 * candidates, cap=12
        ),
        "one candidate": draw_curves(draw_uniform, source, target, 6, one, steps=1),
        "no case at all": draw_curves(draw_uniform, source, none, 3, none),
        "many candidates": draw_curves(draw_uniform, source, target, 6, 20 + candidates, steps=34),
    }


def draw_curves(
    draw: DrawFunction,
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
    heights = draw((cases, 1 + NUM_RANDOM, steps), source)
    other = make_generator(derive_seed(0, "other parts", cases, steps))
    is_behind = torch.arange(1, steps + 1) > candidates.clamp(max=cap)[:, None]
    return Curves(
        target=target,
        num_targets=num_targets,
        start=start,
        curve=heights[:, 0].masked_fill(is_behind, torch.nan),
        flips=(heights[:, 0] - start[:, None]).abs() > _FLIP_THRESHOLD,
        random=heights[:, 1:].masked_fill(is_behind[:, None], torch.nan),
        candidates=candidates,
        cap=cap,
        kept=kept,
        kept_prob=three_class_probabilities(kept) if are_probabilities else None,
        start_prob=three_class_probabilities(start) if are_probabilities else None,
        insertion=draw((cases, steps), other).masked_fill(is_behind, torch.nan),
        removed_levels=draw((cases, NUM_LEVELS), other),
        kept_levels=draw((cases, NUM_LEVELS), other),
    )


def three_class_probabilities(height: Tensor) -> Tensor:
    """Predictions over three classes that give the first one this probability.  (Q,) -> (Q, 3)"""
    return torch.stack([height, (1 - height) / 2, (1 - height) / 2], 1)


def _example_pairs(source: Generator) -> dict[str, Pairs]:
    """A node, a lonely node with one edge, a graph, a link, and a target without any node."""
    drawn = {
        "scores": draw_normal,
        "masks": draw_learned_masks,
        "sparse scores": _draw_sparse,
        "ties": draw_small_integers,
        "zeros": _draw_zeros,
    }
    sizes = [(5, 4, 3, 8), (2, 1, 3, 1), (4, 6, 2, 15), (1, 3, 3, 6), (2, 0, 3, 0)]
    num_own = [1, 1, 0, 2, 0]
    pairs = {kind: draw_pairs(draw, source, sizes, num_own) for kind, draw in drawn.items()}
    both = draw_pairs(draw_normal, source, sizes[-2:], num_own[-2:])
    pairs["features only"] = Pairs(
        both.first_feature, both.second_feature, both.is_target, seeds=both.seeds
    )
    pairs["edges only"] = Pairs(
        first_edge=both.first_edge, second_edge=both.second_edge, seeds=both.seeds
    )
    return pairs


def draw_pairs(
    draw: DrawFunction,
    source: Generator,
    sizes: Sequence[tuple[int, int, int, int]],
    num_own: Sequence[int],
) -> Pairs:
    """Independent scores for targets of given sizes.

    Args:
        draw: Draws the scores.
        source: The generator that they are drawn from.
        sizes: Pairs, nodes, features and edges of each target.
        num_own: How many of the nodes are the target's own.
    """
    first_feature, second_feature = ([draw(size[:3], source) for size in sizes] for _ in range(2))
    first_edge, second_edge = (
        [draw((size[0], size[3]), source) for size in sizes] for _ in range(2)
    )
    is_target = [torch.arange(size[1]) < own for size, own in zip(sizes, num_own, strict=True)]
    seeds = list(range(len(sizes)))
    return Pairs(first_feature, second_feature, is_target, first_edge, second_edge, seeds)


def _example_truths(source: Generator) -> dict[str, Truths]:
    """Vectors of several lengths, one of them empty; some truths hold for all, or for none."""
    drawn = {
        "scores": draw_normal,
        "many ties": draw_small_integers,
        "sparse scores": _draw_sparse,
        "equal scores": _draw_constant,
        "zeros": _draw_zeros,
    }
    scores = {
        kind: [draw((size,), source) for size in (12, 0, 5, 30, 1, 6, 6)]
        for kind, draw in drawn.items()
    }
    return {kind: Truths(score, _draw_truths(score, source)) for kind, score in scores.items()}


def _draw_truths(score: list[Tensor], source: Generator) -> list[Tensor]:
    """Truths for the scores: at random, and in the last two for all and for none."""
    by_chance = [torch.rand(len(row), generator=source) < 0.4 for row in score[:-2]]
    for_all = torch.ones(len(score[-2]), dtype=torch.bool)
    for_none = torch.zeros(len(score[-1]), dtype=torch.bool)
    return [*by_chance, for_all, for_none]


def _example_vectors(source: Generator) -> dict[str, Vectors]:
    """The scores of the truths."""
    return {kind: Vectors(truths.score) for kind, truths in _example_truths(source).items()}


def empty_bundle(needs: BundleKind) -> AnyBundle:
    """The bundle of no targets."""
    if needs == "curves":
        none = torch.zeros(0, dtype=torch.int64)
        return draw_curves(draw_uniform, make_generator(0), none, 0, none)
    bundles: dict[BundleKind, AnyBundle] = {
        "pairs": Pairs(),
        "scores": Vectors([]),
        "truth": Truths([], []),
    }
    return bundles[needs]
