"""The monitoring plan: the targets of a run, the limits, and how many false alarms to allow.

Every run tests many hypotheses, and there are many runs. `budget` bounds the probability that any
drift at all is reported in any `looks` consecutive runs, although nothing has changed. The budget
is spent evenly over the runs:

    level of one kind of drift in one run  =  share of the kind * budget / looks

Metrics have the largest share, because they have the most tests. Within one kind, Holm's correction
(metrics, accuracy) or one p-value for all columns (ranking, data, relations) corrects for the
number of tests. By Boole's inequality the probability of a false alarm is at most the budget,
however tests and runs depend on each other; they do depend, because all runs share one baseline.
Every run has the same power.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from graphgauge.core import BadSetting, JsonObject

METRIC_DRIFT, RANKING_DRIFT, DATA_SHIFT = "metric drift", "ranking drift", "data shift"
BROKEN_RELATION, ACCURACY_DROP = "broken relation", "accuracy drop"
#: of the budget, by kind of drift
_BUDGET_SHARES = {
    METRIC_DRIFT: 0.8,
    RANKING_DRIFT: 0.05,
    DATA_SHIFT: 0.05,
    BROKEN_RELATION: 0.05,
    ACCURACY_DROP: 0.05,
}
_DIRECTIONS = ("at least", "at most", "below")
THRESHOLD_TOLERANCE = 1e-9  #: rounding that never decides


@dataclass(frozen=True)
class Threshold:
    """A limit for the mean of a metric.

    Args:
        value: The limit.
        direction: "at least", "at most" or "below".

    >>> str(Threshold(0.6))
    'at least 0.6'
    """

    value: float
    direction: str = "at least"

    def __post_init__(self) -> None:
        if self.direction not in _DIRECTIONS:
            known = ", ".join(map(repr, _DIRECTIONS))
            raise BadSetting(
                f"the direction of a threshold is one of {known}, but {self.direction!r} was given."
            )

    def excess(self, mean: float) -> float:
        """Return how far a mean lies beyond the limit; 0 or less if it meets the limit."""
        return self.value - mean if self.direction == "at least" else mean - self.value

    def __str__(self) -> str:
        return f"{self.direction} {self.value:.4g}"


@dataclass(frozen=True)
class Plan:
    """What is monitored. The plan is stored with every baseline and run."""

    number: int = 50  #: targets of a run
    budget: float = 0.01  #: chance of a false drift trigger in ``looks`` looks
    looks: int = 26
    window: int = (
        4  #: the last so many runs are also tested together: a slow drift shows there first
    )
    top: int = 10  #: features of an explanation that count for the ranking, at most a third of all
    age: int = 180  #: days after which a validation is too old
    overdue: int | None = None  #: days after which the next run should have come; None: not watched
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)

    def __post_init__(self) -> None:
        counts = {
            name: getattr(self, name)
            for name in ("number", "looks", "window", "top", "age", "overdue")
        }
        problems = [
            f"{name} must be a whole number, 1 or more, but is {value!r}"
            for name, value in counts.items()
            if not _is_count(value)
        ]
        if not 0 < self.budget < 1:
            problems.append(f"budget must be a share between 0 and 1, but is {self.budget!r}")
        if problems:
            raise BadSetting("; ".join(problems) + ".")

    def level(self, kind: str = METRIC_DRIFT) -> float:
        """Return the significance level of one kind of drift in one run."""
        return _BUDGET_SHARES[kind] * self.budget / self.looks

    def record(self) -> JsonObject:
        """Return the plan as plain data."""
        return asdict(self)

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> "Plan":
        """Build a plan from what `record` returned."""
        limits = {metric: Threshold(**limit) for metric, limit in record["thresholds"].items()}
        return Plan(**{**record, "thresholds": limits})


def _is_count(value: Any) -> bool:
    """Whether a value is None or a whole number from 1 on."""
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1)


def holm_correction(ps: Mapping[Any, float]) -> dict[Any, float]:
    """Apply Holm's correction: the k-th smallest p-value times (number - k + 1), never decreasing.

    >>> holm_correction({"a": 0.01, "b": 0.02, "c": 0.5})
    {'a': 0.03, 'b': 0.04, 'c': 0.5}
    """
    found, highest = {}, 0.0
    for place, (name, p) in enumerate(sorted(ps.items(), key=lambda item: item[1])):
        highest = max(highest, min(1.0, p * (len(ps) - place)))
        found[name] = highest
    return {name: found[name] for name in ps}
