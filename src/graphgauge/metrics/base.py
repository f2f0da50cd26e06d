"""What metrics measure on, and what a metric is.

Nothing here runs a model. What was measured arrives in one of four bundles, each checked once, when
it is built:

    Curves    outputs along edits, in the explanation's order and in random ones      compactness, pertinence, fidelity
    Pairs     scores of independent explanations of the same targets                  stability
    Vectors   the scores of one explanation per target                                sparsity
    Truths    the same, with the right answer beside them                             auroc, average precision, jaccard

A *case* is a target and, for features, one of its references; edges have one case per target. A
target without a case, or with nothing to compare, has no value: NaN. NaN inside the measured
outputs is an error and never becomes a score.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from graphgauge.core import BadExplanation, BadSetting, UndefinedScore

BUNDLE_KINDS = ("curves", "pairs", "scores", "truth")
NUM_LEVELS = 9  #: 10, 20 .. 90 % of the candidates
_Bundle = TypeVar("_Bundle", contravariant=True)


@dataclass(frozen=True)
class Metric(ABC, Generic[_Bundle]):
    """Says what its number means; called on a bundle of T targets it gives their values (T,), NaN
    where there is none.
    """

    name: ClassVar[str]
    bounds: ClassVar[tuple[float, float]]  #: no value lies outside
    higher_is_better: ClassVar[bool]
    chance: ClassVar[
        float | None
    ]  #: mean value of scores that mean nothing; None: it depends on the case
    needs: ClassVar[str]  #: the bundle it is called on, of `BUNDLE_KINDS`
    ordered_trials: ClassVar[bool] = (
        False  #: are random curves, or pairs, looked at one after the other, as in early stopping?
    )
    randomised: ClassVar[bool] = False  #: does it draw from the seeds of its bundle?
    parts: ClassVar[tuple[str, ...]] = (
        "kept",
        "kept_prob",
        "start_prob",
    )  #: of `Curves`, what it reads beside the curves

    @abstractmethod
    def __call__(self, bundle: _Bundle) -> Tensor:
        """Values of the targets.  (T,), float64"""


@dataclass(frozen=True, eq=False)
class Curves:
    """Outputs along the edits of one side (features or edges), for one explainer's explanations of
    T targets in Q cases.

    An output's *height* is the probability of the class first predicted, or the regression value.
    Curves hold values up to min(cap, candidates) edits; what stands behind is ignored (NaN, as
    `graphgauge.perturbation` gives it).
    """

    target: Tensor  #: (Q,) int64, number of each case's target, 0..T-1
    num_targets: int  #: T
    start: Tensor  #: (Q,) height before the first edit
    curve: Tensor  #: (Q, K) height after 1..K edits in the explanation's order
    flips: Tensor  #: (Q, K) bool, does the prediction differ after k edits?
    random: Tensor  #: (Q, N, K) heights in N random orders
    candidates: Tensor  #: (Q,) int64, how many edits could be made, 1 or more
    tolerance: float = 1e-6  #: heights that differ by no more are tied
    cap: int = 100  #: the most edits that count
    top: int | float = 10  #: how many edits are the top ones; below 1: that share of the candidates
    kept: Tensor | None = None  #: (Q,) height when all edits but the top ones are made
    kept_prob: Tensor | None = None  #: (Q, C) prediction there
    start_prob: Tensor | None = None  #: (Q, C) prediction before the first edit
    removed: Tensor | None = None  #: (Q,) height when the top edits are made
    insertion: Tensor | None = (
        #: (Q, K) height when all edits but the first 1..K are made: from all edits back to none
        None
    )
    removed_levels: Tensor | None = (
        None  #: (Q, 9) height when the first 10, 20 .. 90 % of the edits are made
    )
    kept_levels: Tensor | None = None  #: (Q, 9) height when all but these are made

    def __post_init__(self) -> None:
        """Refuse what does not fit, and gaps."""
        _check_curve_settings(self)
        _check_curve_shapes(self)
        _check_curve_cases(self)
        _check_curve_heights(self)

    @property
    def length(self) -> Tensor:
        """Steps within each curve: min(cap, candidates).  (Q,)"""
        return self.candidates.clamp(max=self.cap)


def _check_curve_settings(curves: Curves) -> None:
    """Refuse a cap, top, tolerance or number of targets that cannot be."""
    if (
        curves.cap < 1
        or not is_valid_top(curves.top)
        or curves.num_targets < 0
        or not 0 <= curves.tolerance < torch.inf
    ):
        raise BadSetting(
            "curves need a cap and a top of 1 or more (or a share between 0 and 1 as top), a tolerance and a number of targets of "
            f"0 or more, but cap is {curves.cap}, top {curves.top}, tolerance {curves.tolerance} and num_targets "
            f"{curves.num_targets}."
        )


def is_valid_top(value: object) -> bool:
    """Whether a value says which edits are the top ones: a number of them, 1 or more, or a share
    between 0 and 1.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return value >= 1 if isinstance(value, int) else 0 < value < 1


def _check_curve_shapes(curves: Curves) -> None:
    """Refuse tensors that do not belong together."""
    cases, steps = len(curves.target), curves.curve.size(-1)
    wanted: dict[str, tuple[int | None, ...]] = {
        "target": (cases,),
        "start": (cases,),
        "curve": (cases, steps),
        "flips": (cases, steps),
        "random": (cases, None, steps),
        "candidates": (cases,),
        "kept": (cases,),
        "kept_prob": (cases, None),
        "start_prob": (cases, None if curves.kept_prob is None else curves.kept_prob.size(-1)),
        "removed": (cases,),
        "insertion": (cases, steps),
        "removed_levels": (cases, NUM_LEVELS),
        "kept_levels": (cases, NUM_LEVELS),
    }
    for name, shape in wanted.items():
        _check_shape(name, getattr(curves, name), shape)
    for name, kind in {
        "target": torch.int64,
        "candidates": torch.int64,
        "flips": torch.bool,
    }.items():
        _check_dtype(name, getattr(curves, name), kind)


def _check_shape(name: str, found: Tensor | None, wanted: tuple[int | None, ...]) -> None:
    """Refuse another shape; None stands for any size, and a tensor that is None has none."""
    if found is None:
        return
    if found.dim() != len(wanted) or any(
        size not in (None, own) for size, own in zip(wanted, found.shape, strict=True)
    ):
        shown = ", ".join("any" if size is None else str(size) for size in wanted)
        raise BadExplanation(
            f"'{name}' must have the shape ({shown}) here, but has {tuple(found.shape)}."
        )


def _check_dtype(name: str, found: Tensor, wanted: torch.dtype) -> None:
    """Refuse another kind of number."""
    if found.dtype != wanted:
        raise BadExplanation(f"'{name}' must be {wanted}, but is {found.dtype}.")


def _check_curve_cases(curves: Curves) -> None:
    """Refuse cases of unknown targets, without edits, or with more of them than the curves have
    steps.
    """
    if bool(((curves.target < 0) | (curves.target >= curves.num_targets)).any()):
        raise BadExplanation(
            f"cases name targets 0 to {curves.num_targets - 1}, but found are {curves.target.unique().tolist()}."
        )
    if bool((curves.candidates < 1).any()):
        raise UndefinedScore(
            f"{_describe_case(curves, curves.candidates < 1)} has no edit to make: leave it out, as 'empty'."
        )
    if bool((curves.length > curves.curve.size(1)).any()):
        raise BadExplanation(
            f"curves must reach min(cap, candidates) = {int(curves.length.max())} edits, but have {curves.curve.size(1)} steps."
        )


def _check_curve_heights(curves: Curves) -> None:
    """Refuse NaN and infinity within the length of a curve."""
    counts = torch.arange(curves.curve.size(1), device=curves.curve.device) < curves.length[:, None]
    gaps = {
        "start": ~curves.start.isfinite(),
        "curve": (counts & ~curves.curve.isfinite()).any(1),
        "random": (counts[:, None] & ~curves.random.isfinite()).any(2).any(1),
    }
    for name in ("kept", "kept_prob", "start_prob", "removed", "removed_levels", "kept_levels"):
        given = getattr(curves, name)
        if given is not None:
            gaps[name] = ~given.isfinite() if given.dim() == 1 else (~given.isfinite()).any(1)
    if curves.insertion is not None:
        gaps["insertion"] = (counts & ~curves.insertion.isfinite()).any(1)
    for name, is_gap in gaps.items():
        if bool(is_gap.any()):
            raise UndefinedScore(
                f"{_describe_case(curves, is_gap)} has NaN or infinity in '{name}': the model gave no usable output there. "
                "Leave the case out and record why."
            )


def _describe_case(curves: Curves, is_so: Tensor) -> str:
    """The first case that is so, in words."""
    case = int(is_so.int().argmax())
    return f"case {case} (target {int(curves.target[case])})"


@dataclass(frozen=True, eq=False)
class Pairs:
    """Scores of R pairs of independent explanations for each of T targets; a side the explainer
    does not score stays empty, ().

    R may differ from target to target. ``seeds`` are those of the permutations in the corrected
    forms (none given: 0 for all).
    """

    first_feature: Sequence[Tensor] = ()  #: T times (R, n, F)
    second_feature: Sequence[Tensor] = ()
    is_target: Sequence[Tensor] = ()  #: T times (n,) bool
    first_edge: Sequence[Tensor] = ()  #: T times (R, E)
    second_edge: Sequence[Tensor] = ()
    seeds: Sequence[int] = ()  #: T

    def __post_init__(self) -> None:
        """Refuse sides that do not fit, and gaps."""
        sides = (
            (self.first_feature, self.second_feature, self.is_target),
            (self.first_edge, self.second_edge),
        )
        sizes = [len(part) for side in sides for part in side]
        if (
            any(len({len(part) for part in side}) > 1 for side in sides)
            or len({len(part) for part in self.present_parts}) > 1
        ):
            raise BadExplanation(
                f"each part of the pairs must list the same targets, but they list {sizes}, with {len(self.seeds)} seeds."
            )
        for first, second, is_target in zip(*sides[0], strict=True):
            _check_pair("feature", first, second, 3)
            _check_shape("is_target", is_target, (first.size(1),))
            _check_dtype("is_target", is_target, torch.bool)
        for first, second in zip(*sides[1], strict=True):
            _check_pair("edge", first, second, 2)

    @property
    def present_parts(self) -> list[Sequence[Tensor] | Sequence[int]]:
        """The parts that are there."""
        return [part for part in (self.first_feature, self.first_edge, self.seeds) if len(part)]

    def generators(self, number: int) -> list[torch.Generator]:
        """A generator for each target, from its own seed."""
        return [torch.Generator().manual_seed(seed) for seed in (self.seeds or [0] * number)]


def _check_pair(side: str, first: Tensor, second: Tensor, dim: int) -> None:
    """Refuse pairs that differ in shape, hold no pair, or hold NaN."""
    _check_shape(f"first_{side}", first, (None,) * dim)
    _check_shape(f"second_{side}", second, tuple(first.shape))
    if len(first) == 0:
        raise UndefinedScore(
            f"stability needs one pair of explanations or more, but a target has none ({side} scores)."
        )
    if not bool(first.isfinite().all() and second.isfinite().all()):
        raise UndefinedScore(
            f"{side} scores hold NaN or infinity: leave the target out, with the reason."
        )


@dataclass(frozen=True, eq=False)
class Vectors:
    """The scores of one explanation for each of T targets, as vectors of any length."""

    score: Sequence[Tensor]  #: T times (E,)

    def __post_init__(self) -> None:
        """Refuse what is no vector, and gaps."""
        for number, score in enumerate(self.score):
            _check_shape("score", score, (None,))
            if not bool(score.isfinite().all()):
                raise UndefinedScore(
                    f"the scores of target {number} hold NaN or infinity: leave it out, with the reason."
                )


@dataclass(frozen=True, eq=False)
class Truths(Vectors):
    """Scores, and which of the scored things truly matter."""

    is_true: Sequence[Tensor]  #: T times (E,) bool

    def __post_init__(self) -> None:
        """Refuse truths that do not fit their scores."""
        super().__post_init__()
        if len(self.is_true) != len(self.score):
            raise BadExplanation(
                f"there are scores of {len(self.score)} targets, but truths of {len(self.is_true)}."
            )
        for score, is_true in zip(self.score, self.is_true, strict=True):
            _check_shape("is_true", is_true, tuple(score.shape))
            _check_dtype("is_true", is_true, torch.bool)


def mean_over_cases(value: Tensor, target: Tensor, num_targets: int) -> Tensor:
    """The mean of each target's cases, NaN for a target without a case.  (Q, ...), (Q,) -> (T, ...)

    >>> mean_over_cases(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 2, 2]), 3)
    tensor([1., nan, 3.], dtype=torch.float64)
    """
    total = torch.zeros(
        num_targets, *value.shape[1:], dtype=torch.float64, device=value.device
    ).index_add(0, target, value.double())
    return total / _cases_per_target(target, num_targets, value.dim())


def _cases_per_target(target: Tensor, num_targets: int, dim: int) -> Tensor:
    """How many cases each target has, shaped to meet values of ``dim`` axes.  (Q,) -> (T, 1, ...)"""
    return target.bincount(minlength=num_targets).view(-1, *[1] * (dim - 1))


def min_over_cases(value: Tensor, target: Tensor, num_targets: int) -> Tensor:
    """The least of each target's cases, NaN for a target without a case.
    (Q, ...), (Q,) -> (T, ...)
    """
    gap = torch.full(
        (num_targets, *value.shape[1:]), torch.nan, dtype=torch.float64, device=value.device
    )
    index = target.view(-1, *[1] * (value.dim() - 1)).expand_as(value)
    return gap.scatter_reduce(0, index, value.double(), "amin", include_self=False)


def stack_values(values: Sequence[Tensor]) -> Tensor:
    """One value per target as one tensor.  T times () -> (T,)"""
    return (
        torch.stack([value.double() for value in values])
        if values
        else torch.zeros(0, dtype=torch.float64)
    )
