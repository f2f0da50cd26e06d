"""The paper's troubleshooting table as checks on a run; each gives findings with numbers, or none.

The table gives a limit in two of its seven lines (pertinence 0.5, 200 targets). The others need one
to become checks. Ours:
    pertinence below 0.5    its mean is, or that of a quarter of the targets
    low stability           mean below 0.8 (the threshold)
    high EC                 above the limit for features, where that is known; else above half the cap
    too slow                the limit of the use
    unstable                fewer than 200 targets, and a 95 % interval of the mean pertinence wider than ± 0.05 (its tolerance)
    unlike the benchmark    a mean of the paper's metrics further from the table's than two of its SDs, and than 0.1 or 10 edits
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphgauge.evaluation import interval_of_mean
from graphgauge.guidelines.aggregation import JUDGED_METRICS, infer_task_kind
from graphgauge.guidelines.findings import DiagnosedRun, Finding, format_share
from graphgauge.guidelines.reference_data import (
    load_guideline,
    metric_family,
    rename_edges_to_links,
    shipped_benchmark,
    troubleshooting_entry,
)
from graphgauge.guidelines.thresholds import Limit, find_limit, format_metric_value, metric_title

if TYPE_CHECKING:
    import pandas as pd

_NOTABLE_SHARE = 0.25  #: share of targets that is worth a finding
_MOST_TRACES = 200  #: curves that are looked at for ties
_NOTABLE_SDS = 2.0  #: SDs
_NEGLIGIBLE_DIFFERENCES = {
    "pertinence": 0.1,
    "stability": 0.1,
    "ec": 10.0,
}  #: differences that are none, however small the SD


def _pertinence_below_half(run: DiagnosedRun) -> Iterator[Finding]:
    """Pertinence below 0.5: how often, how many of the points are ties, and what the tied variant
    says.
    """
    limit = troubleshooting_entry("pertinence_below_half")["below"]
    for explainer, metric, own in run.values_per_side("pertinence"):
        low = own[own < limit]
        if own.mean() >= limit and len(low) < _NOTABLE_SHARE * len(own):
            continue
        numbers = {"low": float(len(low)), "n": float(len(own)), "mean": float(own.mean())}
        text = f"{metric_title(metric)} of {explainer} is below {limit:g} on {format_share(len(low), len(own))} targets, mean {own.mean():.4g}"
        tied = run.values(f"{metric}_tied", explainer)
        ties = _share_of_ties(run, explainer, metric, low)
        if ties is not None:
            numbers["ties"] = ties
            text += f", and {100 * ties:.3g} % of their curve points are ties, which count as lost"
        if len(tied):
            numbers["tied"] = float(tied.mean())
            text += f"; with ties as half the mean is {tied.mean():.4g}"
        chance = run.values(f"{metric}_tied", run.wanted.baseline)
        reaches = (
            f"{run.wanted.baseline!r} reaches {chance.mean():.4g} here"
            if len(chance)
            else "a random ranking scores 0.5"
        )
        advice = f"use the tied variant (preset='calibrated'), where {reaches}"
        if len(tied) and tied.mean() < limit:
            advice = f"also the tied variant is below {limit:g}: {troubleshooting_entry('pertinence_below_half')['remedy']}"
        yield Finding("pertinence_below_half", text, advice, numbers, explainer, "paper")


def _share_of_ties(
    run: DiagnosedRun, explainer: str, metric: str, low: "pd.Series"
) -> float | None:
    """Mean share of tied points behind low values; None for a run read from disk, which has no
    curves.
    """
    side, stories = metric.split("_")[0], run.results.stories
    keys = [(explainer, target, occurrence, side) for _, _, target, occurrence in low.index]
    cases = [case for key in keys[:_MOST_TRACES] if key in stories for case in stories[key]().cases]
    return sum(case.tied for case in cases) / len(cases) if cases else None


def _low_stability(run: DiagnosedRun) -> Iterator[Finding]:
    """Stability below the threshold."""
    for explainer, metric, own in run.values_per_side("stability"):
        limit = find_limit(metric, "node_classification", run.wanted)  # the same for all kinds
        if not isinstance(limit, Limit) or limit.is_met(own.mean()):
            continue
        text = f"{metric_title(metric)} of {explainer} is {own.mean():.4g} over {len(own)} targets, below {limit.value:.4g}"
        numbers = {"mean": float(own.mean()), "n": float(len(own)), "limit": limit.value}
        yield Finding(
            "low_stability",
            text,
            _troubleshooting_advice("low_stability"),
            numbers,
            explainer,
            "paper",
        )


def _high_compactness(run: DiagnosedRun) -> Iterator[Finding]:
    """Effective compactness above its limit."""
    for explainer, metric, own in run.values_per_side("ec"):
        limit = find_limit(metric, _run_task_kind(run), run.wanted)
        most, which = (
            (limit.value, limit.source)
            if isinstance(limit, Limit)
            else (run.results.settings.cap / 2, "half the cap")
        )
        if own.mean() <= most:
            continue
        text = f"{metric_title(metric)} of {explainer} is {own.mean():.4g} over {len(own)} targets, above {most:.4g} ({which})"
        numbers = {"mean": float(own.mean()), "n": float(len(own)), "limit": most}
        yield Finding(
            "high_compactness",
            text,
            _troubleshooting_advice("high_compactness"),
            numbers,
            explainer,
            "paper",
        )


def _slow_explainers(run: DiagnosedRun) -> Iterator[Finding]:
    """Time beyond the limit of the use."""
    limit = find_limit("time", _run_task_kind(run), run.wanted)
    for explainer in run.explainers:
        own = run.values("time", explainer)
        if not len(own) or not isinstance(limit, Limit) or limit.is_met(own.mean()):
            continue
        most = format_metric_value("time", limit.value)
        text = f"{explainer} takes {format_metric_value('time', own.mean())} for an explanation, and {most} is the limit ({limit.source})"
        numbers = {"mean": float(own.mean()), "limit": limit.value}
        yield Finding("slow", text, _troubleshooting_advice("slow"), numbers, explainer, "paper")


def _unstable_across_samples(run: DiagnosedRun) -> Iterator[Finding]:
    """Few targets, and a mean that is not known well."""
    enough, width = (
        troubleshooting_entry("unstable_across_samples")["least_targets"],
        load_guideline("practice")["early_stopping"]["epsilon"],
    )
    for explainer, metric, own in run.values_per_side("pertinence"):
        if not 2 <= len(own) < enough:
            continue
        span = interval_of_mean(metric, own)
        if span is None or (span[1] - span[0]) / 2 <= width:
            continue
        low, high = span
        half, from_to = (high - low) / 2, f"{low:.3g} to {high:.3g}"
        text = f"{metric_title(metric)} of {explainer} is known to ± {half:.3g} only ({from_to}) from {len(own)} targets"
        numbers = {"half": half, "low": low, "high": high, "n": float(len(own))}
        yield Finding(
            "unstable_across_samples",
            text,
            _troubleshooting_advice("unstable_across_samples"),
            numbers,
            explainer,
            "paper",
        )


def _unlike_benchmark(run: DiagnosedRun) -> Iterator[Finding]:
    """Means far from those of a benchmark for the same kind of task."""
    table, source = _reference_benchmark(run)
    wanted = [metric for metric in JUDGED_METRICS if metric != "time"]
    near = table[
        (table["task"] == _run_task_kind(run))
        & table["explainer"].isin(run.explainers)
        & table["metric"].isin(wanted)
    ]
    for line in near.to_dict("records"):
        own = run.values(str(line["metric"]), str(line["explainer"]))
        if not len(own) or math.isnan(line["sd"]):
            continue
        mean = float(own.mean())
        if abs(mean - line["mean"]) <= max(
            _NOTABLE_SDS * line["sd"], _NEGLIGIBLE_DIFFERENCES[metric_family(line["metric"])]
        ):
            continue
        there = f"{line['mean']:.4g} ± {line['sd']:.3g} in {source}"
        text = f"{metric_title(line['metric'])} of {line['explainer']} is {mean:.4g}, and {there}"
        numbers = {"mean": mean, "there": float(line["mean"]), "sd": float(line["sd"])}
        yield Finding(
            "unlike_benchmark",
            text,
            _troubleshooting_advice("unlike_benchmark"),
            numbers,
            str(line["explainer"]),
            "paper",
        )


def _invalid_scores(run: DiagnosedRun) -> Iterator[Finding]:
    """Scores or predictions that are no numbers."""
    for explainer in run.explainers:
        rows = run.table[run.table["explainer"] == explainer]
        for status, what in (
            ("nan_attribution", "a score"),
            ("nan_prediction", "a prediction of an edited graph"),
        ):
            hit = rows[rows["status"] == status]
            if len(hit):
                bad, n = (
                    hit[["task", "model", "target"]].drop_duplicates(),
                    rows[["task", "model", "target"]].drop_duplicates(),
                )
                text = f"{what} is NaN or infinite for {explainer} on {format_share(len(bad), len(n))} targets".capitalize()
                numbers = {"bad": float(len(bad)), "n": float(len(n))}
                yield Finding(
                    "invalid_scores",
                    text,
                    _troubleshooting_advice("invalid_scores"),
                    numbers,
                    explainer,
                    "paper",
                )


def _run_task_kind(run: DiagnosedRun) -> str | None:
    """The kind of task of a run (of its first task)."""
    if run.wanted.task_kind or not len(run.table):
        return run.wanted.task_kind
    first = run.table["task"].iloc[0]
    return infer_task_kind(str(first), run.table[run.table["task"] == first])


def _reference_benchmark(run: DiagnosedRun) -> "tuple[pd.DataFrame, str]":
    """The table to compare with."""
    if run.summary is None:
        return shipped_benchmark(), "the benchmark that comes with graphgauge"
    return rename_edges_to_links(run.summary), "the given benchmark"


def _troubleshooting_advice(name: str) -> str:
    """Cause and remedy of the paper's table, in our words."""
    entry = troubleshooting_entry(name)
    return f"likely {entry['cause']}; {entry['remedy']}"


TROUBLESHOOTING_CHECKS = (
    _pertinence_below_half,
    _low_stability,
    _high_compactness,
    _slow_explainers,
    _unstable_across_samples,
    _unlike_benchmark,
    _invalid_scores,
)
