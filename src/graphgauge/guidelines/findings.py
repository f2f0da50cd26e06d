"""Findings: what a run shows that people should know, with its numbers and advice.

The checks of a diagnosis read a run by explainer and metric through the class in this file.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import comb, exp, fsum, lgamma, log, log1p
from typing import TYPE_CHECKING, Any

from graphgauge.core import JsonObject
from graphgauge.evaluation import OK, ModelAccuracy, Results
from graphgauge.guidelines.aggregation import SIDES
from graphgauge.guidelines.reference_data import find_entry, load_guideline
from graphgauge.guidelines.requirements import Requirements

if TYPE_CHECKING:
    import pandas as pd

SIGNIFICANCE_LEVEL: float = load_guideline("rules")["comparison"]["significance"]


@dataclass(frozen=True)
class Finding:
    """One finding about a run. ``source`` is "paper" (its troubleshooting table) or "ours"."""

    name: str
    text: str
    advice: str
    numbers: Mapping[str, float]  #: everything the text speaks of
    explainer: str = ""
    source: str = "ours"

    def record(self) -> JsonObject:
        """Return the finding as plain data."""
        return {**vars(self), "numbers": dict(self.numbers)}

    def __str__(self) -> str:
        return f"{self.text}: {self.advice}."


def load_rules() -> JsonObject:
    """Return our own rules: limits of the checks, and the advice of the findings."""
    return load_guideline("rules")


def find_rule(name: str) -> JsonObject:
    """Return the rule behind a finding of ours.

    >>> find_rule("worse_than_random")["advice"]
    'do not rely on it'
    """
    return find_entry(load_rules()["finding"], "name", name, "finding")


def make_finding(
    name: str,
    text: str,
    numbers: Mapping[str, float],
    explainer: str = "",
    advice: str | None = None,
) -> Finding:
    """Build a finding of ours.

    Args:
        name: Name of its rule.
        text: What was found.
        numbers: The numbers behind it.
        explainer: The explainer it is about; '': all.
        advice: What to do (default: what the rule says).
    """
    advice = find_rule(name)["advice"] if advice is None else advice
    return Finding(name, text, advice, numbers, explainer)


@dataclass(frozen=True)
class DiagnosedRun:
    """The rows of a run, by explainer and metric, as the checks of a diagnosis read them."""

    results: Results
    wanted: Requirements = field(default_factory=Requirements)
    accuracy: ModelAccuracy | None = None  #: of the network; None: not known
    summary: "pd.DataFrame | None" = None  #: a benchmark to compare with

    @cached_property
    def table(self) -> "pd.DataFrame":
        """All rows."""
        return self.results.to_pandas()

    @cached_property
    def explainers(self) -> list[str]:
        """The measured explainers without the baseline."""
        return [
            name for name in dict.fromkeys(self.table["explainer"]) if name != self.wanted.baseline
        ]

    @cached_property
    def rows_by_metric(self) -> "dict[Any, pd.DataFrame]":
        """Rows by metric and explainer."""
        return dict(iter(self.table.groupby(["metric", "explainer"], sort=False)))

    @cached_property
    def _known_values(self) -> "dict[tuple[str, str], pd.Series]":
        """Values by metric and explainer that were requested before."""
        return {}

    def rows(self, metric: str, explainer: str) -> "pd.DataFrame":
        """Return the rows of a metric and an explainer, with and without values."""
        return self.rows_by_metric.get((metric, explainer), self.table.iloc[:0])

    def values(self, metric: str, explainer: str) -> "pd.Series":
        """Return the values of a metric and an explainer, by (task, model, target, occurrence)."""
        if (metric, explainer) not in self._known_values:
            self._known_values[metric, explainer] = _values_by_target(self.rows(metric, explainer))
        return self._known_values[metric, explainer]

    def values_per_side(self, form: str) -> Iterator[tuple[str, str, "pd.Series"]]:
        """Yield (explainer, metric, values) of both sides, where there are values."""
        for explainer in self.explainers:
            for side in SIDES:
                values = self.values(f"{side}_{form}", explainer)
                if len(values):
                    yield explainer, f"{side}_{form}", values


DiagnosticCheck = Callable[[DiagnosedRun], Iterator[Finding]]


def _values_by_target(rows: "pd.DataFrame") -> "pd.Series":
    """Return the values of the rows that have one, by (task, model, target, occurrence)."""
    import pandas as pd

    good = rows[rows["status"] == OK]
    keys = list(zip(good["task"], good["model"], good["target"], good["occurrence"], strict=True))
    return pd.Series(
        good["value"].to_numpy(), index=pd.Index(keys, dtype=object, tupleize_cols=False)
    )


def format_share(count: int, n: int) -> str:
    """Format a count with its share.

    >>> format_share(31, 100)
    '31 of 100 (31 %)'
    """
    return f"{count} of {n} ({100 * count / n:.3g} %)"


def binomial_tail(count: int, n: int, chance: float) -> float:
    """Return P(X >= count) for binomial X, the p-value of a one-sided sign test if chance is 1/2.

    >>> binomial_tail(9, 10, 0.5) * 1024
    11.0
    """
    if chance >= 1:
        return 1.0
    return fsum(_binomial_probability(k, n, chance) for k in range(count, n + 1))


def _binomial_probability(k: int, n: int, chance: float) -> float:
    """Return P(X = k); logarithms serve where binomial coefficients are too large for a float.

    >>> _binomial_probability(1, 2, 0.5), round(_binomial_probability(1000, 2000, 0.5), 9)
    (0.5, 0.017839011)
    """
    if n <= 1000:
        return comb(n, k) * chance**k * (1 - chance) ** (n - k)
    ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return exp(ways + k * log(chance) + (n - k) * log1p(-chance))
