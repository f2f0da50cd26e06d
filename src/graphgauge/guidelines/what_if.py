"""What-if analysis: how verdicts and recommendation change with other thresholds.

A slider moves one threshold. It starts where the requirements put the threshold, or has no start if
they give none (the paper prescribes no edge EC). Scores run from 0 to 1, EC from 0 to the cap, and
time to twice its threshold or to the slowest mean.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from graphgauge.core.errors import UndefinedScore
from graphgauge.core.verdicts import Verdict
from graphgauge.guidelines.book import family_of, threshold_entry
from graphgauge.guidelines.judging import verdict
from graphgauge.guidelines.limits import Limit, limit_of, title
from graphgauge.guidelines.measures import Measured
from graphgauge.guidelines.recommendation import recommend_for
from graphgauge.guidelines.requirements import Requirements


@dataclass(frozen=True)
class Knob:
    """A threshold that can be moved between 0 and ``most``; ``start`` None: there is none yet."""

    metric: str  #: as `Requirements.limits` names it
    title: str
    direction: str
    start: float | None
    most: float
    step: float


@dataclass(frozen=True)
class WhatIf:
    """Verdicts on all explainers of a task before and after, and the recommended one ('': none)."""

    before: tuple[Verdict, ...]
    after: tuple[Verdict, ...]
    chosen_before: str
    chosen_after: str

    @property
    def changed(self) -> list[tuple[Verdict, Verdict]]:
        """Pairs of verdicts whose outcomes differ."""
        return [
            pair
            for pair in zip(self.before, self.after, strict=True)
            if pair[0].outcome != pair[1].outcome
        ]


def knobs(found: Measured, task: str, wanted: Requirements) -> list[Knob]:
    """List the thresholds of a task that can be moved, in the order of the tables."""
    return [knob(found, task, metric, wanted) for metric in found.judged()]


def knob(found: Measured, task: str, metric: str, wanted: Requirements) -> Knob:
    """Build the slider of one threshold."""
    limit = limit_of(metric, found.kinds.get(task), wanted)
    start = limit.value if isinstance(limit, Limit) else None
    most, step = reach_of(found, task, metric, start)
    name = metric.removesuffix("_tied")
    return Knob(name, title(metric), str(threshold_entry(metric)["direction"]), start, most, step)


def reach_of(found: Measured, task: str, metric: str, start: float | None) -> tuple[float, float]:
    """Return how far a threshold can be moved, and in which steps."""
    family = family_of(metric)
    if family == "ec":
        return max(float(found.cap), start or 0.0), 0.5
    if family != "time":
        return max(1.0, start or 0.0), 0.01
    means = [
        own.mean
        for subject in found.subjects(task)
        if (own := found.get(subject, metric)) and own.mean is not None
    ]
    return float(math.ceil(max([2 * (start or 0.0), 1.0, *means]))), 0.01


def what_if(
    found: Measured, task: str, wanted: Requirements, limits: Mapping[str, float]
) -> WhatIf:
    """Compute what moving some thresholds to ``limits`` changes; the others stay."""
    moved = replace(wanted, limits={**wanted.limits, **limits})
    before, after = (judged_by(found, task, own) for own in (wanted, moved))
    return WhatIf(before, after, chosen_by(found, task, wanted), chosen_by(found, task, moved))


def judged_by(found: Measured, task: str, wanted: Requirements) -> tuple[Verdict, ...]:
    """Judge every explainer of a task."""
    return tuple(
        verdict(found, subject, metric, wanted)
        for subject in found.subjects(task)
        for metric in found.judged()
    )


def chosen_by(found: Measured, task: str, wanted: Requirements) -> str:
    """Return the recommended explainer; '' if nothing was measured."""
    try:
        return recommend_for(found, task, wanted).chosen
    except UndefinedScore:
        return ""
