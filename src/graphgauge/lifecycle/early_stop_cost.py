"""The cost of early stopping: every trial, compared with production, on the same targets.

    exhaustive   the most trials for every number, no early stopping
    production   early stopping (the paper's rule, where the settings have none), stability from a
                 few calls (binomial), no twins or extras

Random curves are drawn from the same seeds, so a number that stopped early used the first of the
very same curves. The loss of precision is |difference| per target; the time saved is wall-clock
time of both measurements, after a warm-up, on this machine. Production is accepted if no mean moves
by more than epsilon and no verdict changes; otherwise every trial is kept.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from graphgauge.core import FAIL, JsonObject, Target
from graphgauge.evaluation import OK, Evaluator, Results, Settings, StabilityForm
from graphgauge.explainers import BaseExplainer
from graphgauge.guidelines import Requirements, load_guideline, verdicts
from graphgauge.metrics import MetricName

#: metrics that are estimated by trials
_TRIAL_METRICS = ("feature_pertinence", "edge_pertinence", "feature_stability", "edge_stability")


@dataclass(frozen=True)
class _PrecisionLoss:
    """One number in both forms: means, and mean and largest |difference| over shared targets."""

    metric: str
    exhaustive: float
    production: float
    mean_difference: float
    largest_difference: float
    n: int


@dataclass(frozen=True)
class TradeOff:
    """The precision lost and the time saved for one explainer.

    Seconds are those of all explainers together.
    """

    explainer: str
    losses: tuple[_PrecisionLoss, ...]
    #: mean random curves per target and reference: exhaustive, production
    trials: tuple[float, float]
    seconds: tuple[float, float]
    changed_verdicts: tuple[str, ...]
    epsilon: float

    @property
    def saved(self) -> float:
        """The share of time saved; it is negative if production took longer."""
        return 1 - self.seconds[1] / self.seconds[0]

    @property
    def is_accepted(self) -> bool:
        """Whether production may stop early."""
        moved = [abs(loss.exhaustive - loss.production) for loss in self.losses]
        return not self.changed_verdicts and max(moved, default=0.0) <= self.epsilon

    def record(self) -> JsonObject:
        """Return the trade-off as plain data."""
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
        saving = f"early stopping saves {format_saving(self.saved)} of {self.seconds[0]:.3g} s"
        return f"{saving}{lost}; {verdict}"


def format_saving(saved: float) -> str:
    """Format a share of saved time; a negative share is nothing.

    >>> format_saving(0.564), format_saving(0.004), format_saving(-0.42)
    ('56%', 'nothing', 'nothing')
    """
    return f"{saved:.0%}" if round(saved, 2) > 0 else "nothing"


def exhaustive_settings(settings: Settings) -> Settings:
    """Return the settings with every trial."""
    return replace(settings, early_stop="none", trials=(settings.trials[1],) * 2)


def production_settings(settings: Settings) -> Settings:
    """Return the settings with as few trials as early stopping allows, and without twins.

    Stability comes from all pairs of a few calls.
    """
    least = min(load_guideline("practice")["early_stopping"]["least_trials"], settings.trials[1])
    rule = settings.early_stop if settings.early_stop != "none" else "paper"
    stability: StabilityForm = "none" if settings.stability == "none" else "binomial"
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
    """Return an Evaluator that differs in its settings only.

    Metrics of the user need the twins' curves, and are left out without them.

    Args:
        evaluator: Where model, seed, labels and metrics come from.
        settings: All settings of the new Evaluator.
    """
    return Evaluator(
        evaluator.model,
        seed=evaluator.seed,
        task=evaluator.task,
        name=evaluator.name,
        metrics=evaluator.metrics if settings.twins else (),
        seed_scope=evaluator.seed_scope,
        **asdict(settings),
    )


def compare_with_timing(
    evaluator: Evaluator, explainers: Mapping[str, BaseExplainer], targets: list[Target]
) -> tuple[Results, float]:
    """Compare explainers, and measure how many seconds that takes.

    Args:
        evaluator: What measures.
        explainers: The explainers by the names that results show.
        targets: The targets to explain.

    Returns:
        The results, and the wall-clock time of all explainers together in seconds.
    """
    start = time.perf_counter()
    results = evaluator.compare(explainers, targets)
    return results, time.perf_counter() - start


def measure_trade_off(
    exhaustive: tuple[Results, float],
    production: tuple[Results, float],
    explainer: str,
    requirements: Requirements,
) -> TradeOff:
    """Compare both measurements for one explainer.

    Args:
        exhaustive: Results with every trial, and their seconds.
        production: Results of the same targets with early stopping, and their seconds.
        explainer: The explainer's name in both results.
        requirements: Thresholds, for the verdicts that may change.
    """
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
    """Compare one number of both measurements over shared targets; None if there are none."""
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


def _values_by_target(
    results: Results, explainer: str, metric: str
) -> dict[tuple[Target, int], float]:
    """Return values by target and occurrence."""
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
    """Return the metrics made of trials that meet their threshold in one measurement only.

    Both are judged in the paper's form.
    """
    every, short = (
        _failed_metrics(own, explainer, requirements) for own in (exhaustive, production)
    )
    return [metric for metric in _TRIAL_METRICS if (metric in every) != (metric in short)]


def _failed_metrics(results: Results, explainer: str, requirements: Requirements) -> list[str]:
    """Return the metrics that miss their threshold."""
    judged = verdicts(
        replace(results, settings=replace(results.settings, headline="paper")), requirements
    )
    return [each.metric for each in judged if each.explainer == explainer and each.outcome == FAIL]


def _mean_trials(results: Results, explainer: str) -> float:
    """Return the mean number of random curves per target and reference; 0 if none is recorded."""
    rows = [
        row
        for row in results.rows
        if row.explainer == explainer and MetricName.parse(row.metric).without_side == "pertinence"
    ]
    counts = [count for row in rows for count in row.cell.trials or ()]
    return sum(counts) / len(counts) if counts else 0.0
