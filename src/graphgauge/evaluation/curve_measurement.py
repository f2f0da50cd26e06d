"""Curves of one side (features or edges) of many targets, for all explainers at once.

    1  curves in the order of each explanation           (case, explainer)
    2  curves in random orders of all candidates         (case, trial), shared by all explainers
       or, for the calibrated forms of features, in random orders that keep the blocks of an
       explanation's order                               (case, explainer, trial), the same for all
                                                         references of a target
    3  the paper's comparison of both, stopped early     (case, explainer, trial)

A case is a target and, for features, one of its references. Everything is a tensor over cases (Q),
explainers (E), trials (N) and steps (K); what was not measured is NaN. Random curves are
(Q, 1, N, K) where explainers share them, else (Q, E, N, K). What the curves are worth is the matter
of metrics (see `curve_metrics`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.core import Target
from graphgauge.evaluation.baseline_prediction import BaselinePrediction
from graphgauge.evaluation.settings import Settings
from graphgauge.metrics import Compactness, effective_compactness, min_over_cases, step_mask
from graphgauge.models import BaseModel
from graphgauge.perturbation import CurveLines, CurvePoints, GraphEdits, predict_curves

#: an EC is searched in growing blocks of steps, so an early flip costs little
_FIRST_BLOCKS = (4, 16, 64)


@dataclass(frozen=True)
class CurveCases:
    """The cases of one side."""

    edits: GraphEdits
    target: Tensor  #: (Q,) number of each case's target among the T of the group
    seeds: list[int]  #: (Q) for random orders
    reference: Sequence[Target | None]  #: (Q) the reference as people name it; None for edges
    #: (Q,) +1 / -1: a value is to rise / fall, as to that of its reference; 0: either will do
    way: Tensor

    @property
    def candidates(self) -> Tensor:
        """Number of edits that each case has.  (Q,)"""
        return self.edits.candidates


@dataclass(frozen=True)
class ComparedCurves:
    """Random curves of the paper's comparison, and how every explanation compared with them."""

    random: Tensor  #: (Q, 1 or E, N, K)
    trials: Tensor  #: (Q, E) trials that count
    reason: list[list[str]]  #: (Q, E) why no more
    score: Tensor  #: (Q, E) share of steps that were won, the mean over these trials


@dataclass(frozen=True)
class MeasuredCurves:
    """What was measured of one side."""

    cases: CurveCases
    baseline: BaselinePrediction
    is_valid: Tensor  #: (T, E) bool: which explanations have scores to measure
    order: Tensor  #: (Q, E, cap) candidates in the order of each explanation
    length: Tensor  #: (Q,) min(cap, candidates)
    curve: Tensor  #: (Q, E, K)
    flips: Tensor  #: (Q, E, K) bool
    #: (Q, D - 1, E, K) bool: flips under further draws of the map between neighbours; None: D is 1
    redrawn_flips: Tensor | None
    draws: Tensor  #: (Q, D, E) EC of each draw
    redrawn_gap: Tensor  #: (Q, E) bool: an EC of a further draw reads a NaN
    steps: Tensor  #: (T, E) steps that the paper's comparison covers: the least EC, first draw
    compared: ComparedCurves
    twin: Tensor  #: (Q, 1 or E, N, K) random curves of the calibrated forms


def measure_redrawn_curves(
    model: BaseModel,
    redrawn: CurveCases | None,
    order: Tensor,
    is_valid: Tensor,
    baseline: BaselinePrediction,
    settings: Settings,
) -> tuple[Tensor | None, Tensor | None, Tensor]:
    """Follow the explanations' orders under further draws of the map between neighbours.

    Args:
        model: The wrapped network.
        redrawn: The same cases again, D - 1 times one after the other; None where D is 1.
        order: Orders of edits.  (Q, E, cap)
        is_valid: Which explanations are measured.  (T, E)
        baseline: The first predictions.
        settings: The settings of the evaluation.

    Returns:
        Flips (Q, D - 1, E, K) and EC (Q, D - 1, E), or None; and whether such an EC reads a
        prediction that is no number (Q, E).
    """
    shape = order.shape[:2]
    if redrawn is None:
        return None, None, torch.zeros(shape, dtype=torch.bool, device=order.device)
    again = len(redrawn.target) // len(order)
    height, flips = measure_explanation_curves(
        model,
        redrawn,
        order.repeat(again, 1, 1),
        is_valid,
        baseline,
        all_steps=False,
    )
    ec = case_compactness(redrawn, flips, settings.cap).ec
    has_gap = (~height.isfinite() & step_mask(ec, height.size(2))).any(2)
    by_draw = flips.view(again, *shape, -1).transpose(0, 1)
    return by_draw, ec.view(again, *shape).transpose(0, 1), has_gap.view(again, *shape).any(0)


def case_compactness(cases: CurveCases, flips: Tensor, cap: int) -> Compactness:
    """The EC of each case and explainer.  (Q, E, K) -> (Q, E) twice

    Args:
        cases: The Q cases.
        flips: Whether the prediction differs after each step.
        cap: The largest number of edits that counts.
    """
    found = effective_compactness(
        flips.flatten(0, 1), cases.candidates.repeat_interleave(flips.size(1)), cap
    )
    return Compactness(*(part.view(flips.shape[:2]) for part in found))


def least_compactness(cases: CurveCases, ec: Tensor, num_targets: int) -> Tensor:
    """The least EC of each target over its cases; 1 without a case.  (Q, E) -> (T, E)

    Args:
        cases: The Q cases.
        ec: Their EC.
        num_targets: T.
    """
    return min_over_cases(ec, cases.target, num_targets).nan_to_num(1).long()


def select_random_curves(random: Tensor, e: int) -> Tensor:
    """The random curves that explainer number ``e`` is compared with.

    (Q, 1 or E, N, K) -> (Q, N, K)

    Args:
        random: Those that explainers share, or those of each explainer.
        e: Number of the explainer.
    """
    return random[:, e if random.size(1) > 1 else 0]


def measure_explanation_curves(
    model: BaseModel,
    cases: CurveCases,
    order: Tensor,
    is_valid: Tensor,
    baseline: BaselinePrediction,
    all_steps: bool,
) -> tuple[Tensor, Tensor]:
    """Heights and flips along each explanation's order.  (Q, E, K) twice

    Args:
        model: The wrapped network.
        cases: The Q cases.
        order: Candidates in the order of each explanation, then -1.  (Q, E, cap)
        is_valid: Which explanations are measured; the others' heights are NaN.  (T, E)
        baseline: The first predictions.
        all_steps: Whether to measure all steps, or up to the block with the first flip.
    """
    case, explainer = is_valid[cases.target].nonzero(as_tuple=True)
    height, flips = curves_until_flip(
        model, cases, CurveLines(case, order[case, explainer]), baseline, all_steps
    )
    shape = (len(cases.target), order.size(1), height.size(1))
    full = height.new_full(shape, torch.nan).index_put((case, explainer), height)
    return full, torch.zeros_like(full, dtype=torch.bool).index_put((case, explainer), flips)


def curves_until_flip(
    model: BaseModel,
    cases: CurveCases,
    lines: CurveLines,
    baseline: BaselinePrediction,
    all_steps: bool,
) -> tuple[Tensor, Tensor]:
    """Heights and flips along lines.  (M, K) twice

    Args:
        model: The wrapped network.
        cases: The Q cases.
        lines: M orders of edits.
        baseline: The first predictions.
        all_steps: Whether to measure all steps, or up to the block with the first flip.
    """
    length = cases.candidates.clamp(max=lines.order.size(1))
    size = int(length.max())
    height = baseline.first.new_full((len(lines), size), torch.nan)
    flips = torch.zeros_like(height, dtype=torch.bool)
    left = torch.arange(len(lines), device=height.device)
    for after, upto in _search_blocks(size, all_steps):
        some = CurveLines(lines.case[left], lines.order[left])
        own = length[some.case]
        found = predict_curves(model, cases.edits, some, own.clamp(max=after), own.clamp(max=upto))
        target = cases.target[some.case[found.line]]
        height[left[found.line], found.step - 1] = baseline.height(found.prediction, target)
        flips[left[found.line], found.step - 1] = baseline.flips(
            found.prediction, target, cases.way[some.case[found.line]]
        )
        left = left[~flips[left].any(1) & (own > upto)]
    return height, flips


def _search_blocks(size: int, all_steps: bool) -> Iterator[tuple[int, int]]:
    """Steps (after, up to] to be searched one after another.

    >>> list(_search_blocks(20, all_steps=False))
    [(0, 4), (4, 16), (16, 20)]
    """
    ends = [size] if all_steps else [*(end for end in _FIRST_BLOCKS if end < size), size]
    return zip([0, *ends], ends, strict=False)


def scatter_heights(found: CurvePoints, shape: tuple[int, int], height: Tensor) -> Tensor:
    """Heights at points as a tensor over lines and steps; NaN elsewhere.  (P,) -> (M, K)

    Args:
        found: The points.
        shape: M and K.
        height: The height at each point.
    """
    return height.new_full(shape, torch.nan).index_put((found.line, found.step - 1), height)


def measure_random_curves(
    model: BaseModel,
    cases: CurveCases,
    order: Tensor,
    is_valid: Tensor,
    baseline: BaselinePrediction,
    size: int,
) -> Tensor:
    """Heights along random orders of the valid cases, each over its whole length.

    (Q, G, N, cap) -> (Q, G, N, size)

    Args:
        model: The wrapped network.
        cases: The Q cases.
        order: N random orders for each case and each of G explainers (one: shared by all).
        is_valid: Which explanations are measured.  (T, E)
        baseline: The first predictions.
        size: Number of steps of the result.
    """
    is_used = is_valid[cases.target]
    is_used = is_used if order.size(1) > 1 else is_used.any(1, keepdim=True)
    case, group, trial = is_used[:, :, None].expand(*order.shape[:3]).nonzero(as_tuple=True)
    upto = cases.candidates.clamp(max=order.size(3))[case]
    found = predict_curves(
        model,
        cases.edits,
        CurveLines(case, order[case, group, trial]),
        torch.zeros_like(upto),
        upto,
    )
    height = scatter_heights(
        found,
        (len(case), size),
        baseline.height(found.prediction, cases.target[case[found.line]]),
    )
    return height.new_full((*order.shape[:3], size), torch.nan).index_put(
        (case, group, trial), height
    )
