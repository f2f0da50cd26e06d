"""Bundles with explanations of known quality: ideal, mediocre, worst, or meaningless."""

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from graphgauge.checks.metric_bundles import (
    NUM_RANDOM,
    DrawFunction,
    draw_curves,
    draw_learned_masks,
    draw_normal,
    draw_pairs,
    draw_quarters,
    draw_regression_values,
    draw_small_integers,
    draw_uniform,
    three_class_probabilities,
)
from graphgauge.core import derive_seed, make_generator
from graphgauge.metrics import (
    AnyBundle,
    BundleKind,
    Curves,
    Pairs,
    Truths,
    Vectors,
    level_counts,
)

GradedBundles = tuple[AnyBundle, AnyBundle, AnyBundle]  #: ideal, mediocre, worst


def graded_bundles(needs: BundleKind) -> dict[str, GradedBundles]:
    """Bundles of the same targets with the ideal explanation, a mediocre one and the worst."""
    make: dict[BundleKind, Callable[[], dict[str, GradedBundles]]] = {
        "curves": _graded_curves,
        "pairs": _graded_pairs,
        "scores": _graded_vectors,
        "truth": _graded_truths,
    }
    return make[needs]()


def _graded_curves() -> dict[str, GradedBundles]:
    """The ideal order changes the output after 1 edit, a mediocre one after 6, the worst never.

    Random orders change it after 2..12 edits.
    """
    falls_after = torch.randint(2, 13, (4, NUM_RANDOM), generator=make_generator(0))

    def grade(high: float, middle: float, low: float) -> GradedBundles:
        return (
            _falling_curves(1, falls_after, high, low, high),
            _falling_curves(6, falls_after, high, low, middle),
            _falling_curves(99, falls_after, high, low, low),
        )

    return {"probabilities": grade(0.9, 0.5, 0.1), "regression values": grade(20.0, 15.0, 10.0)}


def _falling_curves(step: int, others: Tensor, high: float, low: float, kept: float) -> Curves:
    """Curves that fall from ``high`` to ``low`` after ``step`` edits; 12 candidates.

    Random curves fall after ``others`` (T, N) edits; ``kept`` is the height with only the top
    edits left unmade.
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
        kept_prob=three_class_probabilities(left) if is_probability else None,
        start_prob=three_class_probabilities(start) if is_probability else None,
        insertion=torch.where(has_fallen, high, low).double(),
        removed_levels=torch.where(level >= step, low, high).double(),
        kept_levels=torch.where(level >= step, high, low).double(),
    )


def _graded_pairs() -> dict[str, GradedBundles]:
    """The second explanation equals the first, has nothing to do with it, or is its opposite."""
    unrelated = draw_pairs(draw_normal, make_generator(0), [(5, 6, 4, 24)] * 4, [1] * 4)
    feature, edge = unrelated.first_feature, unrelated.first_edge
    is_target, seeds = unrelated.is_target, unrelated.seeds
    same = Pairs(feature, feature, is_target, edge, edge, seeds)
    opposite = Pairs(feature, [-x for x in feature], is_target, edge, [-x for x in edge], seeds)
    return {"pairs": (same, unrelated, opposite)}


def _graded_truths() -> dict[str, GradedBundles]:
    """Scores that equal the truth, get half of it right, or are its opposite."""
    truth = [torch.arange(size) < size // 2 for size in (8, 16)]
    half = [torch.arange(size) % 2 == 0 for size in (8, 16)]

    def bundle(scores: list[Tensor]) -> Truths:
        return Truths([score.double() for score in scores], truth)

    return {"truths": (bundle(truth), bundle(half), bundle([~row for row in truth]))}


def _graded_vectors() -> dict[str, GradedBundles]:
    """One entry is not 0, half of them are not, or none is: the fewer, the easier to read."""

    def bundle(share: float) -> Vectors:
        return Vectors([(torch.arange(size) < size * share).double() for size in (8, 16)])

    return {"scores": (bundle(1 / 16), bundle(1 / 2), bundle(1))}


def meaningless_bundles(needs: BundleKind) -> dict[str, AnyBundle]:
    """Bundles of many targets whose explanation is exchangeable with random ones.

    There are none for scores alone.
    """
    source = make_generator(derive_seed(0, "meaningless", needs))
    if needs == "curves":
        return {**_meaningless_curves(source, num_targets=600)}
    if needs == "pairs":
        sizes, num_own = [(2, 6, 3, 16)] * 80, [1] * 80
        return {
            "scores": draw_pairs(draw_normal, source, sizes, num_own),
            "masks": draw_pairs(draw_learned_masks, source, sizes, num_own),
        }
    if needs == "truth":
        return {
            "scores": _meaningless_truths(draw_normal, source, num_targets=400),
            "ties": _meaningless_truths(draw_small_integers, source, num_targets=400),
        }
    return {}


def _meaningless_curves(source: Generator, num_targets: int) -> dict[str, Curves]:
    """The explanation's order is one more random order; every other target has two cases."""
    target = torch.cat([torch.arange(num_targets), torch.arange(0, num_targets, 2)])
    candidates = torch.randint(1, 16, (len(target),), generator=source)

    def draw(function: DrawFunction, are_probabilities: bool = True) -> Curves:
        return draw_curves(
            function, source, target, num_targets, candidates, are_probabilities=are_probabilities
        )

    return {
        "probabilities": draw(draw_uniform),
        "many ties": draw(draw_quarters),
        "one decisive edit": draw(_draw_one_decisive_edit),
        "regression values": draw(draw_regression_values, are_probabilities=False),
    }


def _meaningless_truths(draw: DrawFunction, source: Generator, num_targets: int) -> Truths:
    """Scores that are independent of the truth; 6 of 20 things are true."""
    scores = [draw((20,), source) for _ in range(num_targets)]
    truths = [torch.randperm(20, generator=source) < 6 for _ in range(num_targets)]
    return Truths(scores, truths)


def _draw_one_decisive_edit(shape: Sequence[int], source: Generator) -> Tensor:
    """Curves that fall from 1 to 0 after any number of edits, some behind the last step."""
    falls_after = torch.randint(1, 2 + shape[-1], tuple(shape[:-1]), generator=source)
    return (torch.arange(1, 1 + shape[-1]) < falls_after[..., None]).double()
