"""One side (features or edges) of many targets, judged for all explainers at once.

    1  curves in the order of each explanation           (case, explainer)     → EC
    2  curves in random orders of all candidates         (case, trial), shared by all explainers
       or, for the twins of features, in random orders
       that keep the blocks of an explanation's order    (case, explainer, trial), the same for all references of a target
    3  both compared                                     (case, explainer, trial) → Pertinence, early stopped, and its twins

A case is a target and, for features, one of its references. Everything is a tensor over cases (Q),
explainers (E), trials (N) and steps (K); what was not measured is NaN. Random curves are (Q, 1, N,
K) where explainers share them, else (Q, E, N, K).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from graphgauge.evaluation.settings import Settings
from graphgauge.metrics import (
    Compactness,
    StoppingPoints,
    betting_test,
    class_flips,
    effective_compactness,
    mean_height,
    mean_over_cases,
    min_over_cases,
    p_of_heights,
    rank_of_heights,
    step_mask,
    stop_early,
    tied_win_share,
    unsqueeze_like,
    value_flips,
    win_share,
)
from graphgauge.models import BaseModel
from graphgauge.perturbation import (
    CurveLines,
    CurvePoints,
    GraphEdits,
    predict_curves,
    random_orders,
)

_FIRST_BLOCKS = (
    4,
    16,
    64,
)  #: an EC is searched in growing blocks of steps, so an early flip costs little
_TRIAL_INCREMENTS = (10, 20, 40)  #: further trials at a time


@dataclass(frozen=True)
class BaselinePrediction:
    """What predictions along curves say of T targets.

    Curves are drawn of the probability of the explained class. Where that is not the predicted one
    there is no flip: nothing that could be lost is there at first.
    """

    prediction: Tensor  #: (T, C) or (T,) on the whole graph
    first: Tensor  #: (T,) probability of the explained class, or value
    label: Tensor | None  #: (T,) that class, by default the one first predicted; None: regression
    width: float  #: a value has changed when it moved by more
    tolerance: float  #: smaller differences are ties
    can_flip: Tensor | None = None  #: (T,) bool: the explained class is predicted; None: all are
    #: of values: "raw", "towards" the reference, "abs" change, or "moved" the way of `Side.way`
    curve: str = "raw"

    @staticmethod
    def from_model(
        model: BaseModel, targets: Any, settings: Settings, label: Tensor | None = None
    ) -> "BaselinePrediction":
        """From the predictions on the whole graph; ``label`` (T,) are the explained classes, by
        default the predicted ones.
        """
        prediction = model.pred_continuous(targets)
        if model.task == "regression":
            spread: float = model.spread  # type: ignore[attr-defined]
            noise = (
                model.tolerance() if spread <= model.tolerance() else 0.0
            )  # constant predictions: rounding is no change
            width, tolerance = (
                max(settings.flip * spread, noise),
                max(settings.tolerance * spread, noise),
            )
            return BaselinePrediction(
                prediction,
                prediction,
                None,
                width,
                tolerance,
                curve=_regression_curve_kind(settings),
            )
        predicted = model.pred_discrete(targets)
        label = predicted if label is None else label
        first, is_predicted = prediction.gather(1, label[:, None])[:, 0], label == predicted
        can_flip = None if bool(is_predicted.all()) else is_predicted
        return BaselinePrediction(
            prediction, first, label, 0.0, settings.tolerance, can_flip=can_flip
        )

    def height(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The number whose curve is drawn; NaN where any class has no finite probability.  (P, C) or (P,), (P,) -> (P,)"""
        if self.label is None:
            return prediction
        return prediction.gather(1, self.label[target][:, None])[:, 0].where(
            prediction.isfinite().all(1), torch.nan
        )

    def flips(self, prediction: Tensor, target: Tensor, way: Tensor) -> Tensor:
        """Whether predictions differ from the first one; values: the way they are to move.
        (P, ...), (P,), (P,) -> (P,) bool
        """
        if self.label is None:
            has_moved = value_flips(prediction[:, None], self.first[target], self.width)[:, 0]
            return (
                has_moved & ((way * (prediction - self.first[target]) > 0) | (way == 0))
                if self.curve == "moved"
                else has_moved
            )
        flips = class_flips(prediction[:, None], self.label[target], self.tolerance)[:, 0]
        return flips if self.can_flip is None else flips & self.can_flip[target]

    def is_predicted(self, t: int) -> bool:
        """Whether the explained class of target t is the predicted one, so that an EC can be
        counted; values always can flip.
        """
        return self.can_flip is None or bool(self.can_flip[t])


def _regression_curve_kind(settings: Settings) -> str:
    """How curves of values are seen under these settings."""
    return {"paper": settings.regression_curve, "any": "abs"}.get(settings.direction, "moved")


@dataclass(frozen=True)
class CurveCases:
    """The cases of one side."""

    edits: GraphEdits
    target: Tensor  #: (Q,) number of each case's target among the T of the group
    seeds: list[int]  #: (Q) for random orders
    reference: list[Any]  #: (Q) the reference as people name it; None for edges
    #: (Q,) +1 / -1: a value is to rise / fall, as to that of its reference; 0: either will do
    reference_direction: Tensor

    @property
    def candidates(self) -> Tensor:
        """Edits that each case has.  (Q,)"""
        return self.edits.candidates


@dataclass
class CurveScores:
    """What was measured of one side. ``values`` holds the metrics (T, E); NaN where there is none."""

    side: CurveCases
    reading: BaselinePrediction
    order: Tensor  #: (Q, E, cap) candidates in the order of each explanation
    length: Tensor  #: (Q,) min(cap, candidates)
    curve: Tensor  #: (Q, E, K)
    flips: Tensor  #: (Q, E, K) bool
    random: Tensor  #: (Q, 1 or E, N, K) of the paper's comparison
    twin: Tensor  #: (Q, 1 or E, N, K) of the twins
    per_case: Compactness  #: (Q, E) EC for each reference, the mean over its draws
    draws: Tensor  #: (Q, D, E) EC of each draw of the map between neighbours
    redrawn_gap: Tensor  #: (Q, E) an EC of a further draw reads a prediction that is no number
    steps: (
        Tensor  #: (T, E) steps that the paper's comparison covers: the least EC of the first draw
    )
    ec: Tensor  #: (T, E) least EC over the references
    flipped: Tensor  #: (T, E)
    trials: Tensor  #: (Q, E) trials that count
    reason: list[list[str]]  #: (Q, E) why no more
    score: Tensor  #: (Q, E) the paper's pertinence against one reference
    is_finite: Tensor  #: (T, E) no metric read NaN or infinity
    values: dict[str, Tensor] = field(default_factory=dict)
    levels: dict[str, Tensor] = field(
        default_factory=dict
    )  #: (T, E, 9) what areas over 10 .. 90 % of the candidates are made of
    insertion: dict[int, Tensor] = field(
        default_factory=dict
    )  #: e -> (Q, K) heights while edits are taken back, best first
    gaps: dict[tuple[str, int, int], str] = field(
        default_factory=dict
    )  #: (metric, t, e) -> why there is no value, where known

    def on_cpu(self) -> "CurveScores":
        """The same, with what is read one by one on the CPU; curves stay where they are."""
        read = {
            name: getattr(self, name).cpu()
            for name in (
                "ec",
                "steps",
                "draws",
                "flipped",
                "trials",
                "score",
                "is_finite",
                "length",
            )
        }
        read["per_case"] = Compactness(*(part.cpu() for part in self.per_case))
        read["values"] = {name: value.cpu() for name, value in self.values.items()}
        return replace(self, side=replace(self.side, target=self.side.target.cpu()), **read)


def score_curves(
    model: BaseModel,
    side: CurveCases,
    order: Tensor,
    valid: Tensor,
    reading: BaselinePrediction,
    settings: Settings,
    twin_orders: Tensor | None = None,
    redrawn: CurveCases | None = None,
) -> CurveScores:
    """Judge explanations whose orders of edits are ``order`` (Q, E, cap), where ``valid`` (T, E).

    ``twin_orders`` (Q, 1 or E, N, cap) are the random orders of the twins; without them they use
    those of the paper's comparison. ``redrawn`` has the same cases again, D - 1 times one after the
    other, with other draws of the map between neighbours.
    """
    length = side.candidates.clamp(max=settings.cap)
    curve, flips = _measure_explanation_curves(model, side, order, valid, reading, settings)
    first = _case_compactness(side, flips, settings)
    steps = min_over_cases(first.ec, side.target, len(valid)).nan_to_num(1).long()
    twin = (
        None
        if twin_orders is None
        else _measure_random_curves(model, side, twin_orders, valid, length, reading, curve.size(2))
    )
    given = twin if settings.random_orders == "blocks" else None
    race = _RandomOrderComparison(
        model,
        side,
        curve,
        steps[side.target],
        valid[side.target],
        length,
        reading,
        settings,
        given,
        twin is None,
    )
    race.run()
    draws, has_flipped, has_gap = _compactness_of_draws(
        model, first, order, valid, reading, redrawn, settings
    )
    per_case = Compactness(draws.double().mean(1), has_flipped.double().mean(1) >= 0.5)
    ec = min_over_cases(per_case.ec, side.target, len(valid)).nan_to_num(1)
    is_least = per_case.ec == ec[side.target]
    result = CurveScores(
        side=side,
        reading=reading,
        order=order,
        length=length,
        curve=curve,
        flips=flips,
        random=race.random,
        twin=race.random[:, :, : settings.twin_trials] if twin is None else twin,
        per_case=per_case,
        draws=draws,
        redrawn_gap=has_gap,
        steps=steps,
        ec=ec,
        flipped=torch.zeros_like(steps).index_add(
            0, side.target, (per_case.flipped & is_least).long()
        )
        > 0,
        trials=race.trials,
        reason=race.reason,
        score=race.score,
        is_finite=valid,
    )
    for name, value in _metric_values(result, settings).items():
        is_bad = (
            torch.zeros_like(valid, dtype=torch.int64).index_add(
                0, side.target, _cases_with_gaps(result, name).long()
            )
            > 0
        )
        result.values[name] = value.where(valid & ~is_bad, torch.nan)
    result.is_finite = torch.stack([value.isfinite() for value in result.values.values()]).all(0)
    return result


def _case_compactness(side: CurveCases, flips: Tensor, settings: Settings) -> Compactness:
    """The EC of each case and explainer, from flips (Q, E, K).  (Q, E)"""
    found = effective_compactness(
        flips.flatten(0, 1), side.candidates.repeat_interleave(flips.size(1)), settings.cap
    )
    return Compactness(*(part.view(flips.shape[:2]) for part in found))


def _compactness_of_draws(
    model: BaseModel,
    first: Compactness,
    order: Tensor,
    valid: Tensor,
    reading: BaselinePrediction,
    redrawn: CurveCases | None,
    settings: Settings,
) -> tuple[Tensor, Tensor, Tensor]:
    """EC and "has flipped" of each case under every draw of the map, the first one's as measured.  (Q, D, E) twice

    And whether a further draw's EC reads a prediction that is no number.  (Q, E)
    """
    if redrawn is None:
        return first.ec[:, None], first.flipped[:, None], torch.zeros_like(first.flipped)
    again = len(redrawn.target) // len(order)
    height, flips = _measure_explanation_curves(
        model, redrawn, order.repeat(again, 1, 1), valid, reading, settings, at_once=False
    )
    others = _case_compactness(redrawn, flips, settings)
    shape, is_gap = (
        (again, *first.ec.shape),
        (~height.isfinite() & step_mask(others.ec, height.size(2))).any(2),
    )
    ec, flipped = (
        torch.cat([one[:, None], more.view(shape).transpose(0, 1)], 1)
        for one, more in zip(first, others, strict=True)
    )
    return ec, flipped, is_gap.view(shape).any(0)


def _cases_with_gaps(found: CurveScores, name: str) -> Tensor:
    """Whether a metric reads a prediction that is no number: an EC of its own curve, the others of random ones too.  (Q, E) bool"""
    Q, E, K = found.curve.shape
    is_paper = name in ("ec", "pertinence")
    upto = found.draws[:, 0] if is_paper else found.length[:, None].expand(Q, E)
    is_bad = (~found.curve.isfinite() & step_mask(upto, K)).any(2)
    if name == "ec":
        return is_bad | found.redrawn_gap
    steps = found.steps[found.side.target] if is_paper else upto
    random = found.random if is_paper else found.twin
    trials = found.trials if is_paper else torch.full_like(found.trials, random.size(2))
    number, gap = torch.arange(random.size(2), device=upto.device), ~random.isfinite()
    for e in range(E):
        is_read = step_mask(steps[:, e], K)[:, None] & (number < trials[:, e, None])[:, :, None]
        is_bad[:, e] |= (select_random_curves(gap, e) & is_read).any(2).any(1)
    return is_bad


def select_random_curves(random: Tensor, e: int) -> Tensor:
    """The random curves that explainer number e is compared with.  (Q, 1 or E, N, K) -> (Q, N, K)"""
    return random[:, e if random.size(1) > 1 else 0]


# --- curves ---------------------------------------------------------------------------------------


def _measure_explanation_curves(
    model: BaseModel,
    side: CurveCases,
    order: Tensor,
    valid: Tensor,
    reading: BaselinePrediction,
    settings: Settings,
    at_once: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Heights and flips along each explanation's order: all steps for the twins, else up to the first flip.  (Q, E, K) twice"""
    case, explainer = valid[side.target].nonzero(as_tuple=True)
    all_steps = settings.twins if at_once is None else at_once
    height, flips = curves_until_flip(
        model, side, CurveLines(case, order[case, explainer]), reading, all_steps
    )
    shape = (len(side.target), order.size(1), height.size(1))
    full = height.new_full(shape, torch.nan).index_put((case, explainer), height)
    return full, torch.zeros_like(full, dtype=torch.bool).index_put((case, explainer), flips)


def curves_until_flip(
    model: BaseModel,
    side: CurveCases,
    lines: CurveLines,
    reading: BaselinePrediction,
    at_once: bool,
) -> tuple[Tensor, Tensor]:
    """Heights and flips along lines, up to the block of steps that holds the first flip, or all of them.  (M, K) twice"""
    length = side.candidates.clamp(max=lines.order.size(1))
    size = int(length.max())
    height = reading.first.new_full((len(lines), size), torch.nan)
    flips = torch.zeros_like(height, dtype=torch.bool)
    left = torch.arange(len(lines), device=height.device)
    for after, upto in _search_blocks(size, at_once):
        some = CurveLines(lines.case[left], lines.order[left])
        own = length[some.case]
        found = predict_curves(model, side.edits, some, own.clamp(max=after), own.clamp(max=upto))
        target = side.target[some.case[found.line]]
        height[left[found.line], found.step - 1] = reading.height(found.prediction, target)
        flips[left[found.line], found.step - 1] = reading.flips(
            found.prediction, target, side.reference_direction[some.case[found.line]]
        )
        left = left[~flips[left].any(1) & (own > upto)]
    return height, flips


def _search_blocks(size: int, at_once: bool) -> Iterator[tuple[int, int]]:
    """Steps (after, up to] to be searched one after another.

    >>> list(_search_blocks(20, at_once=False))
    [(0, 4), (4, 16), (16, 20)]
    """
    ends = [size] if at_once else [*(end for end in _FIRST_BLOCKS if end < size), size]
    return zip([0, *ends], ends, strict=False)


def _scatter_heights(found: CurvePoints, shape: tuple[int, int], height: Tensor) -> Tensor:
    """Heights at points as a tensor over lines and steps; NaN elsewhere.  (P,) -> (M, K)"""
    return height.new_full(shape, torch.nan).index_put((found.line, found.step - 1), height)


def _measure_random_curves(
    model: BaseModel,
    side: CurveCases,
    order: Tensor,
    valid: Tensor,
    length: Tensor,
    reading: BaselinePrediction,
    size: int,
) -> Tensor:
    """Heights along random orders of the valid cases, each over its whole length.
    (Q, G, N, cap) -> (Q, G, N, size)
    """
    is_used = valid[side.target] if order.size(1) > 1 else valid[side.target].any(1, keepdim=True)
    case, group, trial = is_used[:, :, None].expand(*order.shape[:3]).nonzero(as_tuple=True)
    upto = length[case]
    found = predict_curves(
        model, side.edits, CurveLines(case, order[case, group, trial]), torch.zeros_like(upto), upto
    )
    height = _scatter_heights(
        found, (len(case), size), reading.height(found.prediction, side.target[case[found.line]])
    )
    return height.new_full((*order.shape[:3], size), torch.nan).index_put(
        (case, group, trial), height
    )


# --- the race against random orders ---------------------------------------------------------------


@dataclass
class _RandomOrderComparison:
    """Random curves are added until every explanation's comparison has stopped. ``length`` and
    ``K`` say how far curves reach.

    Where random curves are ``given`` (Q, 1 or E, N, K), they are compared with, and none are added.
    """

    model: BaseModel
    side: CurveCases
    curve: Tensor  #: (Q, E, K)
    K: Tensor  #: (Q, E) steps that the paper's comparison covers
    valid: Tensor  #: (Q, E)
    length: Tensor  #: (Q,)
    reading: BaselinePrediction
    settings: Settings
    given: Tensor | None = None
    serves_twins: bool = True  #: whether the first curves are the twins', too
    random: Tensor = field(init=False)
    trials: Tensor = field(init=False)
    score: Tensor = field(init=False)
    reason: list[list[str]] = field(init=False)
    won: Tensor = field(init=False)  #: (Q, E, N)

    def __post_init__(self) -> None:
        Q, E, K = self.curve.shape
        self.random = self.curve.new_zeros(Q, 1, 0, K)
        self.trials = torch.zeros(Q, E, dtype=torch.int64, device=self.curve.device)
        self.score = torch.full((Q, E), torch.nan, dtype=torch.float64, device=self.curve.device)
        self.reason = [[""] * E for _ in range(Q)]
        self.won = torch.zeros(Q, E, 0, dtype=torch.float64, device=self.curve.device)

    def run(self) -> None:
        """Add trials stage by stage."""
        is_open = self.valid.clone()
        if self.given is not None:
            self.random, self.won = self.given, self.compare(self.given)
            self.close_finished(is_open, self.given.size(2))
            return
        for end in self.schedule():
            if not bool(is_open.any()) and self.random.size(2):
                return
            self.add_trials(is_open, end)
            is_open = self.close_finished(is_open, end)

    def schedule(self) -> list[int]:
        """Numbers of trials after which the rule is applied."""
        least, most = self.settings.trials
        start = {"paper": least, "betting": min(10, most), "none": most}[self.settings.early_stop]
        return trial_schedule(max(start, self.twin_trials), most)

    @property
    def twin_trials(self) -> int:
        """The first curves, which the twins use as well; 0 where the twins have their own."""
        return self.settings.twin_trials if self.settings.twins and self.serves_twins else 0

    def add_trials(self, is_open: Tensor, end: int) -> None:
        """Random curves up to trial number ``end`` of the cases that still need them."""
        start = self.random.size(2)
        order = random_orders(self.side.candidates, self.side.seeds, self.settings.cap, start, end)
        needed = torch.where(is_open, self.K, 0).amax(1)
        is_twin = torch.arange(start, end, device=needed.device) < self.twin_trials
        upto = torch.where(
            is_twin & self.valid.any(1)[:, None], self.length[:, None], needed[:, None]
        ).flatten()
        case = torch.arange(len(order), device=needed.device).repeat_interleave(end - start)
        found = predict_curves(
            self.model,
            self.side.edits,
            CurveLines(case, order.flatten(0, 1)),
            torch.zeros_like(upto),
            upto,
        )
        height = self.reading.height(found.prediction, self.side.target[case[found.line]])
        fresh = _scatter_heights(found, (len(case), self.curve.size(2)), height).view(
            len(order), 1, end - start, -1
        )
        self.random = torch.cat([self.random, fresh], 2)
        self.won = torch.cat([self.won, self.compare(fresh)], 2)

    def compare(self, fresh: Tensor) -> Tensor:
        """The paper's comparison of each explanation with each new random curve.
        (Q, 1 or E, N, K) -> (Q, E, N)
        """
        theirs, own, tolerance = self.orient(fresh), self.orient(self.curve), self.reading.tolerance
        return torch.stack(
            [
                win_share(own[:, e], select_random_curves(theirs, e), self.K[:, e], tolerance)
                for e in range(own.size(1))
            ],
            1,
        )

    def orient(self, curve: Tensor) -> Tensor:
        """Curves as regression looks at them.  (Q, ..., K)"""
        return orient_curves(curve, self.side, self.reading)

    def close_finished(self, is_open: Tensor, end: int) -> Tensor:
        """Which comparisons go on after ``end`` trials; those that stop are written down."""
        case, explainer = is_open.nonzero(as_tuple=True)
        values = self.won[case, explainer]
        found = _apply_stopping_rule(values, end, self.settings)
        goes_on = torch.tensor([r == "most" for r in found.reason], device=values.device) & (
            end < self.settings.trials[1]
        )
        self.trials[case, explainer], self.score[case, explainer] = found.trials, found.mean(values)
        for q, e, why in zip(case.tolist(), explainer.tolist(), found.reason, strict=True):
            self.reason[q][e] = why
        return is_open.index_put((case, explainer), goes_on)


def trial_schedule(first: int, most: int) -> list[int]:
    """Numbers of trials after which a rule is applied: the first, then a few more at a time.

    >>> trial_schedule(30, 100), trial_schedule(120, 100)
    ([30, 40, 60, 100], [120])
    """
    ends = list(accumulate((first, *_TRIAL_INCREMENTS)))
    return [first] if first >= most else [*(end for end in ends if end < most), most]


def _apply_stopping_rule(values: Tensor, end: int, settings: Settings) -> StoppingPoints:
    """Where series of trials stop by the chosen rule.  (R, n)"""
    least, most = settings.trials
    end = min(end, most)
    if settings.early_stop == "paper":
        return stop_early(values, min(least, end), end, settings.tau, settings.epsilon)
    if settings.early_stop == "betting":
        return betting_test(
            values[:, :end], 0.5 if settings.tau is None else settings.tau, most=end
        )
    trials = torch.full((len(values),), end, device=values.device)
    return StoppingPoints(trials, ["most"] * len(values))


def orient_curves(curve: Tensor, side: CurveCases, reading: BaselinePrediction) -> Tensor:
    """Curves of values so that lower is better; those of probabilities as they are.  (Q, ..., K)"""
    if reading.label is not None or reading.curve == "raw":
        return curve
    way = unsqueeze_like(side.reference_direction, curve)
    if reading.curve == "towards":
        return torch.where(way > 0, -1, 1) * curve
    start = unsqueeze_like(reading.first[side.target], curve)
    is_either = reading.curve == "abs" or way == 0
    return -torch.where(
        torch.as_tensor(is_either, device=curve.device),
        (curve - start).abs(),
        way * (curve - start),
    )


# --- metrics --------------------------------------------------------------------------------------


def _metric_values(found: CurveScores, settings: Settings) -> dict[str, Tensor]:
    """The metrics of one side.  name -> (T, E)"""
    values = {
        "ec": found.ec.double(),
        "pertinence": mean_over_cases(found.score, found.side.target, len(found.ec)),
    }
    return {**values, **_twin_values(found)} if settings.twins else values


def _twin_values(found: CurveScores) -> dict[str, Tensor]:
    """The calibrated pertinences, over full curves.  name -> (T, E)"""
    values = _compare_full_curves(found, found.reading)
    if found.reading.label is None:
        values["pertinence_abs"] = _compare_full_curves(found, replace(found.reading, curve="abs"))[
            "pertinence_tied"
        ]
    return values


def _compare_full_curves(found: CurveScores, reading: BaselinePrediction) -> dict[str, Tensor]:
    """Each explanation's whole curve against the twins' random curves.  name -> (T, E)

    The random orders of a target are the same for all its references, so its rank and p-value are
    those of the mean over them.
    """
    curve, random = (
        orient_curves(found.curve, found.side, reading),
        orient_curves(found.twin, found.side, reading),
    )
    target, count, tied, ranks, p = found.side.target, len(found.ec), [], [], []
    for e in range(curve.size(1)):
        theirs, own = select_random_curves(random, e), curve[:, e]
        tied.append(
            mean_over_cases(
                tied_win_share(own, theirs, found.length, reading.tolerance).mean(1), target, count
            )
        )
        heights = mean_over_cases(mean_height(theirs, found.length), target, count)
        height = mean_over_cases(mean_height(own[:, None], found.length)[:, 0], target, count)
        ranks.append(rank_of_heights(height, heights, reading.tolerance))
        p.append(p_of_heights(height, heights, reading.tolerance))
    return {
        f"pertinence_{name}": torch.stack(part, 1)
        for name, part in (("tied", tied), ("rank", ranks), ("p", p))
    }
