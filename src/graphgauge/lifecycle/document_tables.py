"""Tables of the documents: numbers, thresholds, all explainers, early stopping, the benchmark."""

from collections.abc import Iterable

import yaml

from graphgauge.core import JsonObject, Verdict
from graphgauge.evaluation import Results
from graphgauge.guidelines import (
    AggregatedScores,
    Requirements,
    aggregate_scores,
    format_metric_value,
    load_guideline,
    metric_title,
)
from graphgauge.lifecycle.markdown import SafeMarkdown, safe_markdown_table

_LOSS_HEADING = ("number", "every trial", "production", "mean difference", "largest", "n")
_LOSS_COLUMNS = ("exhaustive", "production", "mean_difference", "largest_difference")


def numbers_table(
    results: Results, requirements: Requirements, verdicts: Iterable[Verdict]
) -> SafeMarkdown:
    """Tabulate the numbers of one explainer: mean, n, interval, verdict and reason."""
    scores = aggregate_scores(results, requirements, merge_models=True)
    rows = [
        [
            metric_title(verdict.metric),
            _format_or_none(verdict.metric, verdict.number),
            verdict.n,
            _interval_text(scores, verdict),
            verdict.outcome,
            drop_paper_praise(verdict.reason),
        ]
        for verdict in verdicts
    ]
    return safe_markdown_table(["number", "mean", "n", "95 % interval", "verdict", "why"], rows)


def _interval_text(scores: AggregatedScores, verdict: Verdict) -> str | None:
    """Return the interval behind a verdict on an explainer."""
    subject = next(each for each in scores.subjects(verdict.task) if each[2] == verdict.explainer)
    score = scores.get(subject, verdict.metric)
    if score is None or score.interval is None:
        return None
    low, high = (format_metric_value(verdict.metric, end) for end in score.interval)
    return f"{low} to {high}"


def limits_table(verdicts: Iterable[Verdict]) -> SafeMarkdown:
    """Tabulate each measured number with its threshold."""
    rows = [
        [
            metric_title(verdict.metric),
            _format_or_none(verdict.metric, verdict.number),
            _format_or_none(verdict.metric, verdict.threshold),
            verdict.n,
        ]
        for verdict in verdicts
    ]
    return safe_markdown_table(["number", "at validation", "threshold", "n"], rows)


def explainers_table(results: Results, requirements: Requirements) -> SafeMarkdown:
    """Tabulate the headline means of every explainer."""
    scores = aggregate_scores(results, requirements, merge_models=True)
    metrics = scores.judged_metrics()
    rows = []
    for subject in scores.subjects():
        means = [score.mean if (score := scores.get(subject, m)) else None for m in metrics]
        rows.append([subject[2], *map(_format_or_none, metrics, means)])
    return safe_markdown_table(["explainer", *map(metric_title, metrics)], rows)


def losses_table(losses: Iterable[JsonObject]) -> SafeMarkdown:
    """Compare numbers with every trial and with early stopping; losses are plain data."""
    rows = [
        [metric_title(loss["metric"]), *(f"{loss[key]:.4g}" for key in _LOSS_COLUMNS), loss["n"]]
        for loss in losses
    ]
    return safe_markdown_table(_LOSS_HEADING, rows)


def benchmark_table(comparisons: Iterable[JsonObject]) -> SafeMarkdown:
    """Compare one's own numbers with the benchmark's; comparisons are plain data."""
    rows = [
        [
            metric_title(each["metric"]),
            format_metric_value(each["metric"], each["own"]),
            each["n"],
            format_metric_value(each["metric"], each["benchmark"]),
            each["note"],
        ]
        for each in comparisons
    ]
    return safe_markdown_table(["number", "here", "n", "benchmark", "remark"], rows)


def front_matter(explainer: str, verdicts: Iterable[Verdict]) -> SafeMarkdown:
    """Format the numbers as YAML, for programs that read model cards."""
    quality = {
        verdict.metric: {"mean": verdict.number, "n": verdict.n}
        for verdict in verdicts
        if verdict.number is not None
    }
    content = {
        "tags": ["graph-neural-network", "explainability"],
        "explainer": " ".join(explainer.split()),
        "explanation_quality": quality,
    }
    return SafeMarkdown(yaml.safe_dump(content, sort_keys=False, allow_unicode=False))


def drop_paper_praise(text: str) -> str:
    """Remove the paper's praise of a band ("fit for reports to a regulator").

    Such a claim is not ours to make.

    >>> drop_paper_praise(
    ...     "Edge stability 1 meets the threshold; "
    ...     "close to deterministic: fit for reports to a regulator; left out: 4 empty."
    ... )
    'Edge stability 1 meets the threshold; left out: 4 empty.'
    """
    for family in ("stability", "pertinence"):
        for band in load_guideline("thresholds")[family]["band"]:
            text = text.replace(f"; {band['meaning']}", "")
    return text


def _format_or_none(metric: str, value: float | None) -> str | None:
    """Format a number for people; None stays None."""
    return None if value is None else format_metric_value(metric, value)
