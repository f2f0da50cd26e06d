"""Bundles: what metrics measure on. Each is checked once, when it is built."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import BadExplanation, BadSetting, UndefinedScore
from graphgauge.metrics.curve_direction import CurveDirection, turn_curves
from graphgauge.metrics.early_stopping import RandomComparison

TOLERANCE = 1e-6  #: heights that differ by at most this are tied
NUM_LEVELS = 9  #: 10, 20 .. 90 % of the candidates


@dataclass(frozen=True, eq=False)
class Curves:
    """Outputs along the edits of one side, for one explainer's explanations of T targets.

    A side is features or edges. There are Q cases, each of one target. An output's *height* is the
    probability of the class first predicted, or the regression value. Curves hold heights up to
    min(cap, candidates) edits; entries behind that are ignored.

    Raises:
        BadSetting: A cap, top, tolerance or number of targets that is not possible.
        BadExplanation: Tensors that do not fit together.
        UndefinedScore: NaN or infinity within a curve, or a case without candidates.
    """

    target: Tensor  #: (Q,) int64, number of each case's target, 0..T-1
    num_targets: int  #: T
    start: Tensor  #: (Q,) height before the first edit
    curve: Tensor  #: (Q, K) height after 1..K edits in the explanation's order
    flips: Tensor  #: (Q, K) bool, whether the prediction differs after k edits
    random: Tensor  #: (Q, N, K) heights in N random orders
    candidates: Tensor  #: (Q,) int64, how many edits are possible, 1 or more
    tolerance: float = TOLERANCE  #: heights that differ by at most this are tied
    cap: int = 100  #: the largest number of edits that counts
    top: int | float = 10  #: how many edits are the top ones; below 1: that share of the candidates
    kept: Tensor | None = None  #: (Q,) height when all edits but the top ones are made
    kept_prob: Tensor | None = None  #: (Q, C) prediction when all edits but the top ones are made
    start_prob: Tensor | None = None  #: (Q, C) prediction before the first edit
    removed: Tensor | None = None  #: (Q,) height when the top edits are made
    #: (Q, K) height when all edits but the first 1..K are made: from all edits back to none
    insertion: Tensor | None = None
    #: (Q, 9) height when the first 10, 20 .. 90 % of the edits are made
    removed_levels: Tensor | None = None
    #: (Q, 9) height when all edits but the first 10, 20 .. 90 % are made
    kept_levels: Tensor | None = None
    #: (Q,) steps that were measured in the explanation's order; None: all within the length
    reach: Tensor | None = None
    #: (Q, D - 1, K) bool, the same flips under further draws of what is random in the edits
    redrawn_flips: Tensor | None = None
    #: the paper's comparison, where it was made while random curves were measured
    comparison: RandomComparison | None = None
    direction: CurveDirection = "raw"  #: which movement of a value is a good one
    way: Tensor | None = None  #: (Q,) +1 / -1: values are to rise / fall; 0: either will do

    def __post_init__(self) -> None:
        _check_curve_settings(self)
        _check_curve_shapes(self)
        _check_curve_cases(self)
        _check_curve_heights(self)

    @property
    def length(self) -> Tensor:
        """Number of steps within each curve: min(cap, candidates).  (Q,)"""
        return self.candidates.clamp(max=self.cap)

    def turned(self) -> "tuple[Tensor, Tensor]":
        """The explanation's curve and the random ones, turned so that lower is better.

        (Q, K), (Q, N, K)
        """
        curve, random = (
            turn_curves(heights, self.start, self.direction, self.way)
            for heights in (self.curve, self.random)
        )
        return curve, random


def is_valid_top(value: object) -> bool:
    """Whether ``value`` says which edits are the top ones.

    It is a number of edits, 1 or more, or a share of the candidates between 0 and 1.

    >>> is_valid_top(10), is_valid_top(0.2), is_valid_top(0), is_valid_top(1.5)
    (True, True, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return value >= 1 if isinstance(value, int) else 0 < value < 1


@dataclass(frozen=True, eq=False)
class Pairs:
    """Scores of R pairs of independent explanations for each of T targets.

    A side that the explainer does not score stays empty, (). R may differ from target to target.

    Raises:
        BadExplanation: Parts that do not list the same targets, or tensors that do not fit.
        UndefinedScore: A target without a pair, or scores with NaN or infinity.
    """

    first_feature: Sequence[Tensor] = ()  #: T times (R, n, F)
    second_feature: Sequence[Tensor] = ()  #: T times (R, n, F)
    is_target: Sequence[Tensor] = ()  #: T times (n,) bool
    first_edge: Sequence[Tensor] = ()  #: T times (R, E)
    second_edge: Sequence[Tensor] = ()  #: T times (R, E)
    seeds: Sequence[int] = ()  #: T, of the permutations in the corrected forms; empty: 0 for all

    def __post_init__(self) -> None:
        sides = (
            (self.first_feature, self.second_feature, self.is_target),
            (self.first_edge, self.second_edge),
        )
        lists_differ = any(len({len(part) for part in side}) > 1 for side in sides)
        if lists_differ or len({len(part) for part in self.present_parts}) > 1:
            sizes = [len(part) for side in sides for part in side]
            raise BadExplanation(
                f"each part of the pairs must list the same targets, but they list {sizes}, with "
                f"{len(self.seeds)} seeds."
            )
        for first, second, is_target in zip(*sides[0], strict=True):
            _check_pair("feature", first, second, 3)
            _check_shape("is_target", is_target, (first.size(1),))
            _check_dtype("is_target", is_target, torch.bool)
        for first, second in zip(*sides[1], strict=True):
            _check_pair("edge", first, second, 2)

    @property
    def present_parts(self) -> list[Sequence[Tensor] | Sequence[int]]:
        """Feature scores, edge scores and seeds, as far as they are there."""
        return [part for part in (self.first_feature, self.first_edge, self.seeds) if len(part)]

    def generators(self, num_targets: int) -> list[torch.Generator]:
        """A generator for each target, from the target's own seed."""
        seeds = self.seeds or [0] * num_targets
        return [torch.Generator().manual_seed(seed) for seed in seeds]


@dataclass(frozen=True, eq=False)
class Vectors:
    """The scores of one explanation for each of T targets, as vectors of any length."""

    score: Sequence[Tensor]  #: T times (E,)

    def __post_init__(self) -> None:
        for number, score in enumerate(self.score):
            _check_shape("score", score, (None,))
            if not bool(score.isfinite().all()):
                raise UndefinedScore(
                    f"the scores of target {number} hold NaN or infinity: leave this target out "
                    "and record the reason."
                )


@dataclass(frozen=True, eq=False)
class Truths(Vectors):
    """Scores, and which of the scored things truly matter."""

    is_true: Sequence[Tensor]  #: T times (E,) bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.is_true) != len(self.score):
            raise BadExplanation(
                f"there are scores of {len(self.score)} targets, but truths of {len(self.is_true)}."
            )
        for score, is_true in zip(self.score, self.is_true, strict=True):
            _check_shape("is_true", is_true, tuple(score.shape))
            _check_dtype("is_true", is_true, torch.bool)


AnyBundle = Curves | Pairs | Vectors  #: `Truths` are `Vectors`


# --- checks ---------------------------------------------------------------------------------------


def _check_curve_settings(curves: Curves) -> None:
    is_possible = (
        curves.cap >= 1
        and is_valid_top(curves.top)
        and curves.num_targets >= 0
        and 0 <= curves.tolerance < torch.inf
    )
    if not is_possible:
        raise BadSetting(
            "curves need a cap and a top of 1 or more (or a share between 0 and 1 as top), and a "
            f"tolerance and a number of targets of 0 or more, but cap is {curves.cap}, top is "
            f"{curves.top}, tolerance is {curves.tolerance} and num_targets is "
            f"{curves.num_targets}."
        )


def _check_curve_shapes(curves: Curves) -> None:
    num_cases, num_steps = len(curves.target), curves.curve.size(-1)
    num_classes = None if curves.kept_prob is None else curves.kept_prob.size(-1)
    shapes: dict[str, tuple[int | None, ...]] = {
        "target": (num_cases,),
        "start": (num_cases,),
        "curve": (num_cases, num_steps),
        "flips": (num_cases, num_steps),
        "random": (num_cases, None, num_steps),
        "candidates": (num_cases,),
        "kept": (num_cases,),
        "kept_prob": (num_cases, None),
        "start_prob": (num_cases, num_classes),
        "removed": (num_cases,),
        "insertion": (num_cases, num_steps),
        "removed_levels": (num_cases, NUM_LEVELS),
        "kept_levels": (num_cases, NUM_LEVELS),
        "reach": (num_cases,),
        "redrawn_flips": (num_cases, None, num_steps),
        "way": (num_cases,),
    }
    for name, shape in shapes.items():
        _check_shape(name, getattr(curves, name), shape)
    _check_dtype("target", curves.target, torch.int64)
    _check_dtype("candidates", curves.candidates, torch.int64)
    _check_dtype("flips", curves.flips, torch.bool)


def _check_curve_cases(curves: Curves) -> None:
    if bool(((curves.target < 0) | (curves.target >= curves.num_targets)).any()):
        raise BadExplanation(
            f"cases must name targets 0 to {curves.num_targets - 1}, but they name "
            f"{curves.target.unique().tolist()}."
        )
    if bool((curves.candidates < 1).any()):
        raise UndefinedScore(
            f"{_describe_first_case(curves, curves.candidates < 1)} has no edit to make: leave it "
            "out and record the status 'empty'."
        )
    if bool((curves.length > curves.curve.size(1)).any()):
        raise BadExplanation(
            f"curves must reach min(cap, candidates) = {int(curves.length.max())} edits, but they "
            f"have {curves.curve.size(1)} steps."
        )


def _check_curve_heights(curves: Curves) -> None:
    step = torch.arange(curves.curve.size(1), device=curves.curve.device)
    is_inside = step < curves.length[:, None]
    is_measured = is_inside if curves.reach is None else step < curves.reach[:, None]
    has_gap = {
        "start": ~curves.start.isfinite(),
        "curve": (is_measured & ~curves.curve.isfinite()).any(1),
        "random": (is_inside[:, None] & ~curves.random.isfinite()).any(2).any(1),
    }
    for name in ("kept", "kept_prob", "start_prob", "removed", "removed_levels", "kept_levels"):
        part: Tensor | None = getattr(curves, name)
        if part is not None:
            is_gap = ~part.isfinite()
            has_gap[name] = is_gap if is_gap.dim() == 1 else is_gap.any(1)
    if curves.insertion is not None:
        has_gap["insertion"] = (is_inside & ~curves.insertion.isfinite()).any(1)
    for name, is_gap in has_gap.items():
        if bool(is_gap.any()):
            raise UndefinedScore(
                f"{_describe_first_case(curves, is_gap)} has NaN or infinity in '{name}': the "
                "model gave no usable output there. Leave the case out and record why."
            )


def _describe_first_case(curves: Curves, is_chosen: Tensor) -> str:
    case = int(is_chosen.int().argmax())
    return f"case {case} (target {int(curves.target[case])})"


def _check_pair(side: str, first: Tensor, second: Tensor, num_axes: int) -> None:
    _check_shape(f"first_{side}", first, (None,) * num_axes)
    _check_shape(f"second_{side}", second, tuple(first.shape))
    if len(first) == 0:
        raise UndefinedScore(
            f"stability needs one pair of explanations or more, but a target has none ({side} "
            "scores)."
        )
    if not bool(first.isfinite().all() and second.isfinite().all()):
        raise UndefinedScore(
            f"{side} scores hold NaN or infinity: leave the target out and record the reason."
        )


def _check_shape(name: str, tensor: Tensor | None, shape: tuple[int | None, ...]) -> None:
    """Raise BadExplanation for another shape; None in ``shape`` allows any size."""
    if tensor is None:
        return
    fits = tensor.dim() == len(shape) and all(
        expected in (None, size) for expected, size in zip(shape, tensor.shape, strict=True)
    )
    if not fits:
        sizes = ", ".join("any" if size is None else str(size) for size in shape)
        raise BadExplanation(
            f"'{name}' must have the shape ({sizes}) here, but has {tuple(tensor.shape)}."
        )


def _check_dtype(name: str, tensor: Tensor, dtype: torch.dtype) -> None:
    if tensor.dtype != dtype:
        raise BadExplanation(f"'{name}' must be {dtype}, but is {tensor.dtype}.")
