"""The threshold of each metric, and whether that threshold means anything.

Limits come from the user (`Requirements.limits`), from the latency of the use, or from the paper's
table for the kind of task. A feature limit is a share of the F features: 10 % for nodes, 25 % for
links. A share of few features is at least one edit, because no explanation needs less.

A threshold is vacuous if chance meets it too:

    feature EC        its limit is the cap or more (10 % of Cora's 1,433 features are 143.3, but
                      no EC exceeds 100)
    stability         randomly permuted scores are as similar (masks that were never trained reach
                      0.965, the threshold is 0.80)
    pertinence, EC    the random explainer of the same run meets it
"""

from dataclasses import dataclass

from graphgauge.core import FAIL, PASS, WARN
from graphgauge.guidelines.reference_data import load_guideline, metric_family, threshold_entry
from graphgauge.guidelines.requirements import (
    GRAPH_KINDS,
    LEAST_EDITS,
    Requirements,
    edits_for_share,
)
from graphgauge.metrics import MetricName

ROUNDING_TOLERANCE = 1e-9  #: rounding that never decides
_FAMILY_TITLES = {
    "ec": "effective compactness",
    "pertinence": "pertinence",
    "stability": "stability",
    "time": "time",
}

#: why there is no threshold, for people
NO_LIMIT_REASONS = {
    "not_prescribed": "the paper prescribes no number, for density and degrees differ too much: "
    "measure a baseline or give a limit",
    "unknown_size": "its limit is a share of the features, and their number is not known: "
    "give num_features (--features)",
    "unknown_kind": "thresholds depend on the kind of task, which is not known: "
    "give task_kind (--task)",
}


@dataclass(frozen=True)
class Limit:
    """A threshold. A number that meets ``value`` but not ``safe`` is a warning."""

    value: float
    direction: str  #: "at least", "at most", "below"
    source: str
    safe: float | None = None
    never_fails: bool = False

    def is_met(self, number: float, value: float | None = None) -> bool:
        """Whether a number is on the right side of the limit, or of another value."""
        limit = self.value if value is None else value
        if self.direction == "at least":
            return number >= limit - ROUNDING_TOLERANCE
        return (
            number <= limit + ROUNDING_TOLERANCE
            if self.direction == "at most"
            else number < limit - ROUNDING_TOLERANCE
        )


def find_limit(metric: str, kind: str | None, requirements: Requirements) -> Limit | str:
    """Return the threshold of a metric, or why there is none.

    The user's own limit comes first, then that of the latency (for time), then the paper's table.

    Args:
        metric: Name of a metric that gets verdicts, such as "feature_pertinence".
        kind: Kind of the task, such as "node_classification"; None if it is not known.
        requirements: The user's limits, the latency, and the number of features that shares need.

    Returns:
        The threshold, or a key of ``NO_LIMIT_REASONS``.
    """
    entry = threshold_entry(metric)
    own = requirements.limit(metric)
    if own is not None:
        return Limit(own, entry["direction"], "your own limit")
    if metric == "time" and requirements.latency:
        return _latency_limit(requirements.latency)
    if entry["unit"] == "not prescribed":
        return "not_prescribed"
    return _missing_requirement(metric, kind, requirements) or _table_limit(
        metric, str(kind), requirements
    )


def _missing_requirement(metric: str, kind: str | None, requirements: Requirements) -> str:
    """Return which information the table's limit needs but lacks; '' if nothing is missing."""
    if kind is None:
        return "unknown_kind"
    if metric != "feature_ec":
        return ""
    return (
        "not_prescribed"
        if kind in GRAPH_KINDS
        else ""
        if requirements.num_features
        else "unknown_size"
    )


def _table_limit(metric: str, kind: str, requirements: Requirements) -> Limit:
    """Read the paper's table.

    Graph tasks have no column; they use the bands, which are the same in all columns.
    """
    entry = threshold_entry(metric)
    column = kind if kind not in GRAPH_KINDS else kind.replace("graph", "node")
    value, source = entry[column], f"the paper's table for {kind.replace('_', ' ')}"
    if kind in GRAPH_KINDS:
        source = "the paper's bands; its table has no graph tasks"
    if entry["unit"] == "share of features" and requirements.num_features:
        return _share_limit(value, requirements.num_features, source)
    safe = (
        load_guideline("thresholds")["stability"]["band"][0]["least"]
        if _needs_safe_band(metric, requirements)
        else None
    )
    return Limit(value, entry["direction"], source, safe)


def _share_limit(share: float, size: int, source: str) -> Limit:
    """Return a share of the features as a limit; at least one edit."""
    floor = (
        f" (at least {LEAST_EDITS} edit)" if share * size < LEAST_EDITS - ROUNDING_TOLERANCE else ""
    )
    return Limit(
        edits_for_share(size, share), "at most", f"{share:.0%} of {size} features{floor}, {source}"
    )


def _needs_safe_band(metric: str, requirements: Requirements) -> bool:
    """Whether the stricter band, for reports to a regulator, is asked for."""
    return metric_family(metric) == "stability" and requirements.stakes == "high-stakes"


def _latency_limit(latency: str) -> Limit:
    """Return the limit of the paper's bands of execution time, by use."""
    entry = load_guideline("thresholds")["latency"][latency]
    source = f"{latency} use, {entry['told']}"
    return Limit(
        entry.get("warn_below", entry["pass_below"]),
        "below",
        source,
        entry["pass_below"],
        never_fails="warn_below" not in entry,
    )


def outcome_before_doubts(number: float, limit: Limit, metric: str, wanted: Requirements) -> str:
    """Return pass, warn or fail before any doubt is considered."""
    if limit.is_met(number):
        return PASS
    is_pertinence = metric_family(metric) == "pertinence"
    is_excused = (
        wanted.is_difficult
        and is_pertinence
        and number >= load_guideline("thresholds")["pertinence"]["random"]
    )
    return WARN if is_excused or limit.never_fails else FAIL


def format_metric_value(metric: str, value: float) -> str:
    """Format a number for people.

    >>> format_metric_value("time", 0.0123456), format_metric_value("edge_stability", 1.0)
    ('0.01235 s', '1')
    """
    return f"{value:.4g} s" if metric == "time" else f"{value:.4g}"


def metric_title(metric: str) -> str:
    """Return the name of a metric for the start of a sentence.

    >>> metric_title("edge_pertinence_tied"), metric_title("time")
    ('Edge pertinence (ties half)', 'Time')
    >>> metric_title("edge_pertinence_abs")
    'Edge pertinence (by |change|)'
    """
    name = MetricName.parse(metric)
    form = {"tied": " (ties half)", "abs": " (by |change|)"}.get(name.form, "")
    return f"{name.side} {_FAMILY_TITLES[metric_family(metric)]}".strip().capitalize() + form


# --- vacuous thresholds ---------------------------------------------------------------------------


def vacuity_reason(metric: str, limit: Limit, cap: int, chance: float | None, who: str) -> str:
    """Return why a threshold means nothing here; '' if it does.

    Args:
        metric: The metric.
        limit: Its threshold.
        cap: The largest EC there can be.
        chance: What the baseline reaches, if known.
        who: Name of the baseline.
    """
    if MetricName.parse(metric).family == "ec" and limit.value >= cap:
        over = (
            f"{format_metric_value(metric, limit.value - cap)} above the cap"
            if limit.value > cap
            else "the cap itself"
        )
        value = format_metric_value(metric, limit.value)
        return f"vacuous threshold: no effective compactness exceeds {cap}, and {value} is {over}"
    if chance is None or not limit.is_met(chance) or metric == "time":
        return ""
    gap = abs(chance - limit.value)
    by = (
        f"passes by {format_metric_value(metric, gap)}"
        if gap > ROUNDING_TOLERANCE
        else "just passes"
    )
    return f"vacuous threshold: {who} reaches {format_metric_value(metric, chance)} and {by}"


def reachability_note(metric: str, limit: Limit) -> str:
    """Return a remark on a feature limit of less than two edits; '' for other limits."""
    if MetricName.parse(metric).family != "ec" or limit.value >= 2:
        return ""
    if limit.value < LEAST_EDITS:
        value = format_metric_value(metric, limit.value)
        return f"no explanation can meet {value}: a single edit exceeds it"
    return (
        "hardly reachable threshold: "
        "only explanations whose first edit changes the prediction meet it"
    )
