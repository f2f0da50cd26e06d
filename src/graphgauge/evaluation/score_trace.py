"""How one number came about: the curve of the explanation, the random ones, and what was counted.

`Results.explain(row)` gives the story of a row; printed, it is a short text, and `plot` draws it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphgauge.core import Target
from graphgauge.evaluation.curve_measurement import MeasuredCurves, select_random_curves
from graphgauge.evaluation.curve_metrics import SideValues
from graphgauge.metrics import turn_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAND = (0.1, 0.5, 0.9)  #: quantiles of the random curves that are shown


@dataclass(frozen=True)
class TracedCase:
    """One deletion curve of an explanation among random ones.

    For features, the curve belongs to one reference.
    """

    reference: Any  #: None for edges
    start: float  #: probability of the explained class, or value, before any edit
    curve: Tensor  #: (K,) after 1..K edits
    random: Tensor  #: (N, K) of the paper's comparison; NaN where it was not needed
    twin: Tensor  #: (N, K) of the twins
    candidates: int  #: edits there are
    ec: int  #: under the first draw of the map between neighbours, which the curves belong to
    flipped: bool
    draws: tuple[int, ...]  #: EC under every draw
    steps: int  #: K of the paper's comparison
    trials: int
    stop: str
    score: float  #: the paper's pertinence against this reference
    won: float  #: of all comparisons with a random curve's point: share below it,
    tied: float  #: equal to it,
    lost: float  #: above it
    insertion: Tensor | None = (
        None  #: (K,) all edits made, then 1..K taken back, best first; with ``extras=True``
    )

    def band(self) -> Tensor:
        """Quantiles of the random curves after each edit.  (3, K)"""
        return self.random.double().nanquantile(torch.tensor(_BAND, dtype=torch.float64), 0)


@dataclass(frozen=True)
class ScoreTrace:
    """What stands behind the numbers of one side of one explanation."""

    explainer: str
    target: Target
    side: str
    cases: tuple[TracedCase, ...]
    values: dict[str, float]  #: every metric of this side
    unpredicted: int | None = (
        None  #: the explained class, where it is not the predicted one, so that there is no flip
    )

    def plot(self, reference: int | None = None, ax: "Axes | None" = None) -> "Axes":
        """Draw one case: the curve of the explanation in the band of the random orders.

        Args:
            reference: Number of the reference of features; by default the one with the lowest EC.
            ax: Axes to draw on; a new figure by default.

        Returns:
            The axes with the picture.
        """
        from graphgauge.plots import plot_deletion_curve

        return plot_deletion_curve(self, reference, ax)

    def __str__(self) -> str:
        unit = "edges removed" if self.side == "edge" else "features substituted"
        chosen = (
            ""
            if self.unpredicted is None
            else f", of class {self.unpredicted}, which is not predicted"
        )
        lines = [
            (
                f"{self.explainer}, target {self.target}: {unit} in the order of the "
                f"explanation{chosen}"
            )
        ]
        for case in self.cases:
            against = "" if case.reference is None else f"reference {case.reference}: "
            change = (
                f"prediction changes after {case.ec}"
                if case.flipped
                else f"no change within {case.ec}"
            )
            change = change if self.unpredicted is None else f"after {case.ec}"
            median = float(case.band()[1, case.ec - 1])
            # not followed so far without twins
            random = f", random orders {median:.4g} (median)" if median == median else ""
            if len(case.draws) > 1:
                change += (
                    f" ({', '.join(map(str, case.draws))} under {len(case.draws)} draws of the "
                    "neighbours' map)"
                )
            lines.append(
                f"  {against}{change} of {case.candidates}; output {case.start:.4g} -> "
                f"{float(case.curve[case.ec - 1]):.4g}{random}"
            )
            lines.append(
                f"    over K = {case.steps} steps against {case.trials} random orders "
                f"({case.stop}): below in {case.won:.0%}, tied in {case.tied:.0%}, above in "
                f"{case.lost:.0%} of points; pertinence {case.score:.3f}"
            )
        lines += [f"  {name} = {value:.4g}" for name, value in self.values.items()]
        return "\n".join(lines)


def build_score_trace(
    found: SideValues, side: str, explainer: str, e: int, target: Target, t: int
) -> ScoreTrace:
    """The trace of one explanation.

    Args:
        found: What was measured of the side, and its metrics.
        side: "edge" or "feature".
        explainer: Label of the explainer.
        e: Its number.
        target: The target.
        t: Its number.
    """
    measured = found.measured
    own = (measured.cases.target == t).nonzero()[:, 0].tolist()
    values = {f"{side}_{name}": value[t].value for name, value in found.values[e].items()}
    label = measured.baseline.label
    return ScoreTrace(
        explainer,
        target,
        side,
        tuple(_trace_case(measured, found.insertion.get(e), q, e) for q in own),
        {name: value for name, value in values.items() if value is not None},
        None if label is None or measured.baseline.is_predicted(t) else int(label[t]),
    )


def _trace_case(found: MeasuredCurves, insertion: Tensor | None, q: int, e: int) -> TracedCase:
    """One case, with what was counted."""
    t, length = int(found.cases.target[q]), int(found.length[q])
    steps, trials = int(found.steps[t, e]), int(found.compared.trials[q, e])
    curve, random = found.curve[q, e], select_random_curves(found.compared.random, e)[q]
    share = _shares_of_points(found, q, curve[:steps], random[:trials, :steps])
    return TracedCase(
        reference=found.cases.reference[q],
        start=float(found.baseline.first[t]),
        curve=curve[:length].cpu(),
        random=random[:, :length].cpu(),
        twin=select_random_curves(found.twin, e)[q, :, :length].cpu(),
        candidates=int(found.cases.candidates[q]),
        ec=int(found.draws[q, 0, e]),
        flipped=bool(found.flips[q, e, :length].any()),
        draws=tuple(found.draws[q, :, e].tolist()),
        steps=steps,
        trials=trials,
        stop=found.compared.reason[q][e],
        score=float(found.compared.score[q, e]),
        won=share[0],
        tied=share[1],
        lost=share[2],
        insertion=None if insertion is None else insertion[q, :length],
    )


def _shares_of_points(
    found: MeasuredCurves, q: int, curve: Tensor, random: Tensor
) -> tuple[float, float, float]:
    """Shares of points of random curves that one curve is below, equal to, above.

    (steps,), (trials, steps)
    """
    baseline = found.baseline
    case = slice(q, q + 1)
    start = baseline.first[found.cases.target[case]]
    own, others = (
        turn_curves(part[None], start, baseline.direction, found.cases.way[case])[0]
        for part in (curve, random)
    )
    gap = (others - own).cpu()
    won, lost = gap > baseline.tolerance, gap < -baseline.tolerance
    shares = [
        float(part.double().mean()) if part.numel() else 0.0 for part in (won, ~won & ~lost, lost)
    ]
    return shares[0], shares[1], shares[2]
