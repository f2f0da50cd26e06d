"""What saving costs: every trial, beside the form for production, on the same targets.

    exhaustive   the most trials for every number, no early stop
    production   the early stop (the paper's, where the settings have none), stability of a few calls (binomial), no twins or extras

Random curves are drawn from the same seeds, so a number that stopped early used the first of the
very same curves. Lost precision is |difference| per target; saved time is wall clock of both
measurements, after a warm-up, on this machine. Production is accepted where no mean moves by more
than epsilon and no verdict changes; else every trial is kept.
"""

import time
from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any

from graphgauge.core import FAIL, Target
from graphgauge.evaluation import OK, Evaluator, Results, Settings
from graphgauge.explainers import BaseExplainer
from graphgauge.guidelines import Requirements, load_guideline, verdicts

_TRIAL_METRICS = (
    "feature_pertinence",
    "edge_pertinence",
    "feature_stability",
    "edge_stability",
)  #: numbers made of trials


@dataclass(frozen=True)
class _PrecisionLoss:
    """One number both ways: means, mean and largest |difference| over the targets that have both."""

    metric: str
    exhaustive: float
    production: float
    mean_difference: float
    largest_difference: float
    n: int


@dataclass(frozen=True)
class TradeOff:
    """Precision lost and time saved for one explainer; seconds are those of all explainers
    together.
    """

    explainer: str
    losses: tuple[_PrecisionLoss, ...]
    trials: tuple[
        float, float
    ]  #: mean random curves per target and reference: exhaustive, production
    seconds: tuple[float, float]
    changed_verdicts: tuple[str, ...]
    epsilon: float

    @property
    def saved(self) -> float:
        """The share of time saved; negative: none."""
        return 1 - self.seconds[1] / self.seconds[0]

    @property
    def is_accepted(self) -> bool:
        """Whether production may stop early."""
        moved = [abs(loss.exhaustive - loss.production) for loss in self.losses]
        return not self.changed_verdicts and max(moved, default=0.0) <= self.epsilon

    def record(self) -> dict[str, Any]:
        """As plain data."""
        own = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
        return {**own, "saved": self.saved, "is_accepted": self.is_accepted}

    def __str__(self) -> str:
        worst = max(
            self.losses, key=lambda loss: abs(loss.exhaustive - loss.production), default=None
        )
        lost = (
            f"; {worst.metric} moves most, by {abs(worst.exhaustive - worst.production):.3g}"
            if worst
            else ""
        )
        verdict = "accepted" if self.is_accepted else "not accepted: every trial is kept"
        return f"early stopping saves {format_saving(self.saved)} of {self.seconds[0]:.3g} s{lost}; {verdict}"


def format_saving(saved: float) -> str:
    """A share of time that was saved, in words; no saving is negative.

    >>> format_saving(0.564), format_saving(0.004), format_saving(-0.42)
    ('56%', 'nothing', 'nothing')
    """
    return f"{saved:.0%}" if round(saved, 2) > 0 else "nothing"


def exhaustive_settings(settings: Settings) -> Settings:
    """Every trial."""
    return replace(settings, early_stop="none", trials=(settings.trials[1],) * 2)


def production_settings(settings: Settings) -> Settings:
    """As few trials as the early stop allows, stability from all pairs of a few calls, and no
    twins.
    """
    least = min(load_guideline("practice")["early_stopping"]["least_trials"], settings.trials[1])
    rule = settings.early_stop if settings.early_stop != "none" else "paper"
    stability = "none" if settings.stability == "none" else "binomial"
    trials = (least, settings.trials[1])
    return replace(
        settings,
        early_stop=rule,
        trials=trials,
        stability=stability,
        twins=False,
        extras=False,
        headline="paper",
    )


def with_settings(evaluator: Evaluator, settings: Settings) -> Evaluator:
    """The same Evaluator with other settings; metrics beside the paper's need the twins' curves,
    and go with them.
    """
    found = copy(evaluator)
    object.__setattr__(found, "settings", settings)
    object.__setattr__(found, "metrics", evaluator.metrics if settings.twins else ())
    return found


def compare_with_timing(
    evaluator: Evaluator, explainers: Mapping[str, BaseExplainer], targets: list[Target]
) -> tuple[Results, float]:
    """Results and seconds."""
    start = time.perf_counter()
    results = evaluator.compare(explainers, targets)
    return results, time.perf_counter() - start


def measure_trade_off(
    exhaustive: tuple[Results, float],
    production: tuple[Results, float],
    explainer: str,
    requirements: Requirements,
) -> TradeOff:
    """Both measurements (with their seconds), compared for one explainer."""
    both = exhaustive[0], production[0]
    losses = [
        loss
        for metric in _TRIAL_METRICS
        if (loss := _precision_loss(*both, explainer, metric)) is not None
    ]
    changed = _find_changed_verdicts(*both, explainer, requirements)
    trials = _mean_trials(both[0], explainer), _mean_trials(both[1], explainer)
    epsilon = both[0].settings.epsilon
    return TradeOff(
        explainer, tuple(losses), trials, (exhaustive[1], production[1]), tuple(changed), epsilon
    )


def _precision_loss(
    exhaustive: Results, production: Results, explainer: str, metric: str
) -> _PrecisionLoss | None:
    """One number both ways, over the targets that have both; None: there are none."""
    every, short = (
        _values_by_target(exhaustive, explainer, metric),
        _values_by_target(production, explainer, metric),
    )
    shared = [target for target in every if target in short]
    if not shared:
        return None
    gaps = [abs(every[target] - short[target]) for target in shared]
    first, second = (sum(own[target] for target in shared) / len(shared) for own in (every, short))
    return _PrecisionLoss(metric, first, second, sum(gaps) / len(gaps), max(gaps), len(gaps))


def _values_by_target(results: Results, explainer: str, metric: str) -> dict[Any, float]:
    """Values by target and occurrence."""
    return {
        (row.target, row.occurrence): float(row.cell.value)
        for row in results.rows
        if row.explainer == explainer
        and row.metric == metric
        and row.cell.status == OK
        and row.cell.value is not None
    }


def _find_changed_verdicts(
    exhaustive: Results, production: Results, explainer: str, requirements: Requirements
) -> list[str]:
    """Numbers made of trials that meet their threshold one way and miss it the other, both judged
    in the paper's form.
    """
    every, short = (
        _failed_metrics(own, explainer, requirements) for own in (exhaustive, production)
    )
    return [metric for metric in _TRIAL_METRICS if (metric in every) != (metric in short)]


def _failed_metrics(results: Results, explainer: str, requirements: Requirements) -> list[str]:
    """Numbers that miss their threshold."""
    judged = verdicts(
        replace(results, settings=replace(results.settings, headline="paper")), requirements
    )
    return [each.metric for each in judged if each.explainer == explainer and each.outcome == FAIL]


def _mean_trials(results: Results, explainer: str) -> float:
    """Mean number of random curves per target and reference; 0 where none is recorded."""
    rows = [
        row
        for row in results.rows
        if row.explainer == explainer and row.metric.endswith("_pertinence")
    ]
    counts = [count for row in rows for count in row.cell.trials or ()]
    return sum(counts) / len(counts) if counts else 0.0
