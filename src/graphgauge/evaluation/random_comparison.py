"""The paper's comparison of explanations with random orders, stopped early.

Random curves are added stage by stage, until the comparison of every explanation has stopped. All
explanations of a case are compared with the same curves.
"""

from dataclasses import dataclass, field
from itertools import accumulate

import torch
from torch import Tensor

from graphgauge.core import advance_progress
from graphgauge.evaluation.baseline_prediction import BaselinePrediction
from graphgauge.evaluation.curve_measurement import (
    ComparedCurves,
    CurveCases,
    MeasuredCurves,
    case_compactness,
    least_compactness,
    measure_explanation_curves,
    measure_random_curves,
    measure_redrawn_curves,
    scatter_heights,
    select_random_curves,
)
from graphgauge.evaluation.settings import Settings
from graphgauge.metrics import Pertinence, turn_curves, win_share
from graphgauge.models import BaseModel
from graphgauge.perturbation import CurveLines, predict_curves, random_orders

_TRIAL_INCREMENTS = (10, 20, 40)  #: further trials at a time


def measure_curves(
    model: BaseModel,
    cases: CurveCases,
    order: Tensor,
    is_valid: Tensor,
    baseline: BaselinePrediction,
    settings: Settings,
    twin_orders: Tensor | None = None,
    redrawn: CurveCases | None = None,
) -> MeasuredCurves:
    """Measure everything that the metrics of one side read.

    Args:
        model: The wrapped network.
        cases: The Q cases of T targets.
        order: Candidates in the order of each explanation, then -1.  (Q, E, cap)
        is_valid: Which explanations are measured.  (T, E) bool
        baseline: The first predictions.
        settings: The settings of the evaluation.
        twin_orders: Random orders of the calibrated forms; without them these use the orders of the
            paper's comparison.  (Q, 1 or E, N, cap)
        redrawn: The same cases again, D - 1 times one after the other, under other draws of the map
            between neighbours.
    """
    length = cases.candidates.clamp(max=settings.cap)
    curve, flips = measure_explanation_curves(
        model, cases, order, is_valid, baseline, settings.twins
    )
    num_twins = 0 if twin_orders is None else twin_orders.size(1) * twin_orders.size(2)
    per_curve = len(is_valid) / (
        order.size(1) + num_twins + settings.trials[1]
    )  # the bar's steps: targets
    advance_progress(per_curve * order.size(1))
    first_ec = case_compactness(cases, flips, settings.cap).ec
    steps = least_compactness(cases, first_ec, len(is_valid))
    twin = None
    if twin_orders is not None:
        twin = measure_random_curves(model, cases, twin_orders, is_valid, baseline, curve.size(2))
        advance_progress(per_curve * num_twins)
    comparison = _RandomComparison(
        model,
        cases,
        curve,
        steps[cases.target],
        is_valid[cases.target],
        length,
        baseline,
        settings,
        given=twin if settings.random_orders == "blocks" else None,
        serves_twins=twin is None,
        steps_per_curve=per_curve,
    )
    compared = comparison.run()
    redrawn_flips, further_ec, has_gap = measure_redrawn_curves(
        model, redrawn, order, is_valid, baseline, settings
    )
    draws = first_ec[:, None]
    return MeasuredCurves(
        cases=cases,
        baseline=baseline,
        is_valid=is_valid,
        order=order,
        length=length,
        curve=curve,
        flips=flips,
        redrawn_flips=redrawn_flips,
        draws=draws if further_ec is None else torch.cat([draws, further_ec], 1),
        redrawn_gap=has_gap,
        steps=steps,
        compared=compared,
        twin=compared.random[:, :, : settings.twin_trials] if twin is None else twin,
    )


@dataclass
class _RandomComparison:
    """The state of the comparison while random curves are added."""

    model: BaseModel
    cases: CurveCases
    curve: Tensor  #: (Q, E, K)
    steps: Tensor  #: (Q, E) steps that the comparison covers
    is_valid: Tensor  #: (Q, E)
    length: Tensor  #: (Q,)
    baseline: BaselinePrediction
    settings: Settings
    #: (Q, 1 or E, N, K) random curves to compare with; where given, none are added
    given: Tensor | None = None
    serves_twins: bool = True  #: whether the calibrated forms use the first curves, too
    steps_per_curve: float = 0.0  #: how far the bar moves for one random curve of all cases
    random: Tensor = field(init=False)  #: (Q, 1 or E, N, K)
    trials: Tensor = field(init=False)  #: (Q, E)
    score: Tensor = field(init=False)  #: (Q, E)
    reason: list[list[str]] = field(init=False)  #: (Q, E)
    won: Tensor = field(init=False)  #: (Q, E, N) share of steps below each random curve

    def __post_init__(self) -> None:
        Q, E, K = self.curve.shape
        self.random = self.curve.new_zeros(Q, 1, 0, K)
        self.trials = torch.zeros(Q, E, dtype=torch.int64, device=self.curve.device)
        self.score = torch.full((Q, E), torch.nan, dtype=torch.float64, device=self.curve.device)
        self.reason = [[""] * E for _ in range(Q)]
        self.won = torch.zeros(Q, E, 0, dtype=torch.float64, device=self.curve.device)

    def run(self) -> ComparedCurves:
        """Add trials stage by stage, until nothing goes on."""
        is_open = self.is_valid.clone()
        if self.given is not None:
            self.random, self.won = self.given, self.compare(self.given)
            self.close_finished(is_open, self.given.size(2))
        else:
            for end in self.schedule():
                if not bool(is_open.any()) and self.random.size(2):
                    break
                self.add_trials(is_open, end)
                is_open = self.close_finished(is_open, end)
        return ComparedCurves(self.random, self.trials, self.reason, self.score)

    def schedule(self) -> list[int]:
        """Numbers of trials after which the rule is applied."""
        least, most = self.settings.trials
        start = {"paper": least, "betting": min(10, most), "none": most}[self.settings.early_stop]
        return trial_schedule(max(start, self.twin_trials), most)

    @property
    def twin_trials(self) -> int:
        """The first curves, which the calibrated forms use as well; 0 where they have their own."""
        return self.settings.twin_trials if self.settings.twins and self.serves_twins else 0

    def add_trials(self, is_open: Tensor, end: int) -> None:
        """Random curves up to trial number ``end`` of the cases that still need them."""
        start = self.random.size(2)
        cases = self.cases
        order = random_orders(cases.candidates, cases.seeds, self.settings.cap, start, end)
        needed = torch.where(is_open, self.steps, 0).amax(1)
        is_twin = torch.arange(start, end, device=needed.device) < self.twin_trials
        is_full = is_twin & self.is_valid.any(1)[:, None]
        upto = torch.where(is_full, self.length[:, None], needed[:, None]).flatten()
        case = torch.arange(len(order), device=needed.device).repeat_interleave(end - start)
        lines = CurveLines(case, order.flatten(0, 1))
        found = predict_curves(self.model, cases.edits, lines, torch.zeros_like(upto), upto)
        height = self.baseline.height(found.prediction, cases.target[case[found.line]])
        shape = (len(case), self.curve.size(2))
        fresh = scatter_heights(found, shape, height).view(len(order), 1, end - start, -1)
        self.random = torch.cat([self.random, fresh], 2)
        self.won = torch.cat([self.won, self.compare(fresh)], 2)
        advance_progress(self.steps_per_curve * (end - start))

    def compare(self, fresh: Tensor) -> Tensor:
        """Compare each explanation with each new random curve.  (Q, 1 or E, N, K) -> (Q, E, N)"""
        theirs, own = self.turn(fresh), self.turn(self.curve)
        return torch.stack(
            [
                win_share(
                    own[:, e],
                    select_random_curves(theirs, e),
                    self.steps[:, e],
                    self.baseline.tolerance,
                )
                for e in range(own.size(1))
            ],
            1,
        )

    def turn(self, curve: Tensor) -> Tensor:
        """Curves turned so that lower is better.  (Q, ..., K)"""
        start = self.baseline.first[self.cases.target]
        return turn_curves(curve, start, self.baseline.direction, self.cases.way)

    def close_finished(self, is_open: Tensor, end: int) -> Tensor:
        """Write down the comparisons that stop after ``end`` trials, and return which go on."""
        case, explainer = is_open.nonzero(as_tuple=True)
        values = self.won[case, explainer]
        found = Pertinence.from_settings(self.settings).stop(values, end)
        goes_on = torch.tensor([r == "most" for r in found.reason], device=values.device)
        goes_on &= end < self.settings.trials[1]
        self.trials[case, explainer], self.score[case, explainer] = found.trials, found.mean(values)
        for q, e, why in zip(case.tolist(), explainer.tolist(), found.reason, strict=True):
            self.reason[q][e] = why
        return is_open.index_put((case, explainer), goes_on)


def trial_schedule(first: int, most: int) -> list[int]:
    """Numbers of trials after which a rule is applied: the first, then a few more at a time.

    Args:
        first: The first number.
        most: The last one, where ``first`` is smaller.

    >>> trial_schedule(30, 100), trial_schedule(120, 100)
    ([30, 40, 60, 100], [120])
    """
    ends = list(accumulate((first, *_TRIAL_INCREMENTS)))
    return [first] if first >= most else [*(end for end in ends if end < most), most]
