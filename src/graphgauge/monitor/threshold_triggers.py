"""Triggers other than drift: thresholds, changed weights, an old baseline, and manual triggers.

A threshold is crossed if the mean of a run is beyond it and chance does not explain that. With n
values of standard deviation s, the mean must lie beyond the limit by more than

    t s / sqrt(n)    t: the quantile of Student's distribution with n - 1 degrees of freedom
                        at budget / (looks * number of thresholds)

So a metric whose true mean is just inside its limit is reported as crossed in at most the budget's
share of cases over all looks. (This is nearly so: Student's distribution is exact for normal values
only.) A mean that lies beyond the limit by less is "near": it is noted, but raises no trigger.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from graphgauge.core import student_quantile
from graphgauge.models import is_same_network
from graphgauge.monitor.monitoring_plan import THRESHOLD_TOLERANCE, Plan, Threshold
from graphgauge.monitor.run_sample import Sample
from graphgauge.monitor.triggers import (
    MANUAL_TRIGGER,
    MODEL_CHANGED,
    THRESHOLD_CROSSED,
    VALIDATION_AGE,
    Trigger,
)

INSIDE, CLOSE, _CROSSED = "inside", "near", "crossed"


@dataclass(frozen=True)
class _ThresholdCheck:
    """The mean of a metric, checked against its threshold."""

    metric: str
    threshold: Threshold
    mean: float
    n: int
    margin: float  #: how far beyond the limit chance may carry the mean
    state: str

    def __str__(self) -> str:
        """Say how far the mean is beyond its limit, and how much of that chance explains."""
        miss, chance = self.threshold.excess(self.mean), self.margin
        return (
            f"the mean of {self.metric} is {self.mean:.4g} ({self.n} targets) and should be "
            f"{self.threshold}: it misses that by {miss:.2g}, "
            f"and chance explains a miss of up to {chance:.2g}"
        )


def check_thresholds(sample: Sample, plan: Plan) -> list[_ThresholdCheck]:
    """Check every metric that has a threshold and at least two values."""
    chance = plan.budget / (plan.looks * max(1, len(plan.thresholds)))
    return [
        _check_threshold(sample, metric, limit, chance)
        for metric, limit in plan.thresholds.items()
        if len(sample.known(metric)) >= 2
    ]


def _check_threshold(
    sample: Sample, metric: str, limit: Threshold, chance: float
) -> _ThresholdCheck:
    """Check the mean of one metric against its limit."""
    values = sample.known(metric)
    mean, n = float(values.mean()), len(values)
    margin = student_quantile(chance, n - 1) * float(values.std(ddof=1)) / n**0.5
    excess = limit.excess(mean)
    least = -THRESHOLD_TOLERANCE if limit.direction == "below" else THRESHOLD_TOLERANCE
    state = INSIDE if excess <= least else _CROSSED if excess > margin + least else CLOSE
    return _ThresholdCheck(metric, limit, mean, n, margin, state)


def find_threshold_triggers(sample: Sample, plan: Plan) -> list[Trigger]:
    """Raise one trigger for each threshold that is crossed."""
    return [
        Trigger(
            THRESHOLD_CROSSED,
            own.metric,
            f"{own}.",
            own.mean,
            own.threshold.value,
            details={"n": own.n, "margin": own.margin},
        )
        for own in check_thresholds(sample, plan)
        if own.state == _CROSSED
    ]


def model_triggers(now: str, validated: str) -> list[Trigger]:
    """Raise a trigger if the weights differ from those that were validated."""
    if is_same_network(now, validated):
        return []
    told = f"the network's weights ({now}) are not those of the baseline ({validated})."
    return [Trigger(MODEL_CHANGED, "", told, details={"now": now, "validated": validated})]


def age_triggers(
    taken: datetime, now: datetime, plan: Plan, what: str = "the baseline"
) -> list[Trigger]:
    """Raise a trigger if a baseline, or the validation before it, is too old."""
    days = math.ceil((now - taken) / timedelta(days=1))
    if days <= plan.age:
        return []
    return [
        Trigger(
            VALIDATION_AGE,
            "",
            f"{what} is {days} days old, the limit is {plan.age}.",
            float(days),
            float(plan.age),
        )
    ]


def manual_trigger(reason: str, who: str) -> Trigger:
    """Raise a trigger because a person says that validation is due."""
    return Trigger(
        MANUAL_TRIGGER,
        reason,
        f"{reason}{f' (raised by {who})' if who else ''}.",
        details={"who": who} if who else {},
    )
