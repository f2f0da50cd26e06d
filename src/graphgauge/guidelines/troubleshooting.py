"""The paper's troubleshooting table as checks on a run; each yields findings with numbers, or none.

The table gives a limit in two of its seven rows (pertinence 0.5, 200 targets). The other rows need
one to become checks. Ours are

    pertinence below 0.5    the mean is, or the values of a quarter of the targets are
    low stability           the mean is below 0.8 (the threshold)
    high EC                 above the limit for features if that is known, otherwise above half
                            the cap
    too slow                above the limit of the use
    unstable                fewer than 200 targets, and a 95 % interval of the mean pertinence
                            wider than +- 0.05 (its tolerance)
    unlike the benchmark    a mean further from the table's than two of its SDs, and further than
                            0.1 or 10 edits
"""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from graphgauge.evaluation import interval_of_mean
from graphgauge.guidelines.aggregation import JUDGED_METRICS, infer_task_kind
from graphgauge.guidelines.findings import (
    DiagnosedRun,
    DiagnosticCheck,
    Finding,
    format_share,
    load_rules,
)
from graphgauge.guidelines.reference_data import (
    load_guideline,
    metric_family,
    rename_edges_to_links,
    shipped_benchmark,
    troubleshooting_entry,
)
from graphgauge.guidelines.thresholds import Limit, find_limit, format_metric_value, metric_title
from graphgauge.metrics import MetricName

if TYPE_CHECKING:
    import pandas as pd


def _make_paper_finding(
    name: str,
    text: str,
    numbers: Mapping[str, float],
    explainer: str,
    advice: str | None = None,
) -> Finding:
    """Build a finding; by default its advice is cause and remedy of the paper's table."""
    if advice is None:
        entry = troubleshooting_entry(name)
        advice = f"likely {entry['cause']}; {entry['remedy']}"
    return Finding(name, text, advice, numbers, explainer, "paper")


def _find_pertinence_below_half(run: DiagnosedRun) -> Iterator[Finding]:
    """Find pertinence below 0.5, with the share of ties and the value of the tied variant."""
    entry = troubleshooting_entry("pertinence_below_half")
    limit, notable = entry["below"], load_rules()["troubleshooting"]["notable_share"]
    for explainer, metric, values in run.values_per_side("pertinence"):
        low = values[values < limit]
        if values.mean() >= limit and len(low) < notable * len(values):
            continue
        numbers = {"low": float(len(low)), "n": float(len(values)), "mean": float(values.mean())}
        text = (
            f"{metric_title(metric)} of {explainer} is below {limit:g} on "
            f"{format_share(len(low), len(values))} targets, mean {values.mean():.4g}"
        )
        ties = _share_of_ties(run, explainer, metric, low)
        if ties is not None:
            numbers["ties"] = ties
            text += f", and {100 * ties:.3g} % of their curve points are ties, which count as lost"
        tied = run.values(f"{metric}_tied", explainer)
        if len(tied):
            numbers["tied"] = float(tied.mean())
            text += f"; with ties as half the mean is {tied.mean():.4g}"
        if len(tied) and tied.mean() < limit:
            advice = f"also the tied variant is below {limit:g}: {entry['remedy']}"
        else:
            chance = _tied_chance_phrase(run, metric)
            advice = f"use the tied variant (preset='calibrated'), where {chance}"
        yield _make_paper_finding("pertinence_below_half", text, numbers, explainer, advice)


def _tied_chance_phrase(run: DiagnosedRun, metric: str) -> str:
    """Say what the random explainer reaches if ties count half."""
    values = run.values(f"{metric}_tied", run.wanted.baseline)
    if not len(values):
        return "a random ranking scores 0.5"
    return f"{run.wanted.baseline!r} reaches {values.mean():.4g} here"


def _share_of_ties(
    run: DiagnosedRun, explainer: str, metric: str, low: "pd.Series"
) -> float | None:
    """Return the mean share of tied points behind low values.

    It is None for a run that was read from disk, because it has no curves.
    """
    most = load_rules()["troubleshooting"]["most_traces"]
    side, traces = MetricName.parse(metric).side, run.results.stories
    keys = [(explainer, target, occurrence, side) for _, _, target, occurrence in low.index]
    cases = [case for key in keys[:most] if key in traces for case in traces[key]().cases]
    return sum(case.tied for case in cases) / len(cases) if cases else None


def _find_low_stability(run: DiagnosedRun) -> Iterator[Finding]:
    """Find stability below the threshold."""
    for explainer, metric, values in run.values_per_side("stability"):
        limit = find_limit(metric, "node_classification", run.wanted)  # the same for all kinds
        if not isinstance(limit, Limit) or limit.is_met(values.mean()):
            continue
        text = (
            f"{metric_title(metric)} of {explainer} is {values.mean():.4g} over {len(values)} "
            f"targets, below {limit.value:.4g}"
        )
        mean, n = float(values.mean()), float(len(values))
        numbers = {"mean": mean, "n": n, "limit": limit.value}
        yield _make_paper_finding("low_stability", text, numbers, explainer)


def _find_high_compactness(run: DiagnosedRun) -> Iterator[Finding]:
    """Find effective compactness above its limit."""
    for explainer, metric, values in run.values_per_side("ec"):
        limit = find_limit(metric, _run_task_kind(run), run.wanted)
        most, source = run.results.settings.cap / 2, "half the cap"
        if isinstance(limit, Limit):
            most, source = limit.value, limit.source
        mean = float(values.mean())
        if mean <= most:
            continue
        text = (
            f"{metric_title(metric)} of {explainer} is {mean:.4g} over {len(values)} targets, "
            f"above {most:.4g} ({source})"
        )
        numbers = {"mean": mean, "n": float(len(values)), "limit": most}
        yield _make_paper_finding("high_compactness", text, numbers, explainer)


def _find_slow_explainers(run: DiagnosedRun) -> Iterator[Finding]:
    """Find explainers that take longer than the use allows."""
    limit = find_limit("time", _run_task_kind(run), run.wanted)
    for explainer in run.explainers:
        values = run.values("time", explainer)
        if not len(values) or not isinstance(limit, Limit) or limit.is_met(values.mean()):
            continue
        mean = float(values.mean())
        text = (
            f"{explainer} takes {format_metric_value('time', mean)} for an explanation, and "
            f"{format_metric_value('time', limit.value)} is the limit ({limit.source})"
        )
        yield _make_paper_finding("slow", text, {"mean": mean, "limit": limit.value}, explainer)


def _find_unstable_across_samples(run: DiagnosedRun) -> Iterator[Finding]:
    """Find means that few targets leave uncertain."""
    enough = troubleshooting_entry("unstable_across_samples")["least_targets"]
    tolerance = load_guideline("practice")["early_stopping"]["epsilon"]
    for explainer, metric, values in run.values_per_side("pertinence"):
        interval = interval_of_mean(metric, values) if 2 <= len(values) < enough else None
        if interval is None:
            continue
        low, high = interval
        half = (high - low) / 2
        if half <= tolerance:
            continue
        text = (
            f"{metric_title(metric)} of {explainer} is known to ± {half:.3g} only "
            f"({low:.3g} to {high:.3g}) from {len(values)} targets"
        )
        numbers = {"half": half, "low": low, "high": high, "n": float(len(values))}
        yield _make_paper_finding("unstable_across_samples", text, numbers, explainer)


def _find_unlike_benchmark(run: DiagnosedRun) -> Iterator[Finding]:
    """Find means that are far from a benchmark's for the same kind of task."""
    rules = load_rules()["troubleshooting"]
    table, source = _reference_benchmark(run)
    rows = table[
        (table["task"] == _run_task_kind(run))
        & table["explainer"].isin(run.explainers)
        & table["metric"].isin([metric for metric in JUDGED_METRICS if metric != "time"])
    ]
    for row in rows.to_dict("records"):
        metric, explainer = str(row["metric"]), str(row["explainer"])
        values = run.values(metric, explainer)
        if not len(values) or math.isnan(row["sd"]):
            continue
        mean, negligible = float(values.mean()), rules["negligible"][metric_family(metric)]
        if abs(mean - row["mean"]) <= max(rules["notable_sds"] * row["sd"], negligible):
            continue
        text = (
            f"{metric_title(metric)} of {explainer} is {mean:.4g}, "
            f"and {row['mean']:.4g} ± {row['sd']:.3g} in {source}"
        )
        numbers = {"mean": mean, "there": float(row["mean"]), "sd": float(row["sd"])}
        yield _make_paper_finding("unlike_benchmark", text, numbers, explainer)


def _reference_benchmark(run: DiagnosedRun) -> "tuple[pd.DataFrame, str]":
    """Return the table to compare with, and its name."""
    if run.summary is None:
        return shipped_benchmark(), "the benchmark that comes with graphgauge"
    return rename_edges_to_links(run.summary), "the given benchmark"


def _find_invalid_scores(run: DiagnosedRun) -> Iterator[Finding]:
    """Find scores or predictions that are NaN or infinite."""
    target = ["task", "model", "target"]
    for explainer in run.explainers:
        rows = run.table[run.table["explainer"] == explainer]
        for status, what in (
            ("nan_attribution", "A score"),
            ("nan_prediction", "A prediction of an edited graph"),
        ):
            invalid = len(rows.loc[rows["status"] == status, target].drop_duplicates())
            if invalid:
                n = len(rows[target].drop_duplicates())
                share = format_share(invalid, n)
                text = f"{what} is NaN or infinite for {explainer} on {share} targets"
                numbers = {"bad": float(invalid), "n": float(n)}
                yield _make_paper_finding("invalid_scores", text, numbers, explainer)


def _run_task_kind(run: DiagnosedRun) -> str | None:
    """Return the kind of the first task of a run."""
    if run.wanted.task_kind or not len(run.table):
        return run.wanted.task_kind
    first = run.table["task"].iloc[0]
    return infer_task_kind(str(first), run.table[run.table["task"] == first])


TROUBLESHOOTING_CHECKS: tuple[DiagnosticCheck, ...] = (
    _find_pertinence_below_half,
    _find_low_stability,
    _find_high_compactness,
    _find_slow_explainers,
    _find_unstable_across_samples,
    _find_unlike_benchmark,
    _find_invalid_scores,
)
