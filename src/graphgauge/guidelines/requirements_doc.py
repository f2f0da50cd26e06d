"""The requirements document of the paper's phase 1 (before a model is built), as Markdown.

It contains what is known by then: the kind of task, the thresholds that will be checked, the
shortlist with its numbers, how well these transfer, and the plan for phases 2 and 3. A line to fill
in stands for everything that only the owner knows.
"""

import re

from graphgauge.guidelines.aggregation import JUDGED_METRICS
from graphgauge.guidelines.recommendation import Recommendation
from graphgauge.guidelines.reference_data import load_guideline
from graphgauge.guidelines.requirements import Requirements
from graphgauge.guidelines.thresholds import (
    NO_LIMIT_REASONS,
    find_limit,
    format_metric_value,
    metric_title,
    reachability_note,
    vacuity_reason,
)

_OWNER_PLACEHOLDER = "_to be filled in by the owner_"


def requirements_document(recommendation: Recommendation, requirements: Requirements) -> str:
    """Write the requirements document, filled with what is known.

    Args:
        recommendation: The shortlist and its numbers, from `consult`.
        requirements: What the explanations will be used for.

    Returns:
        The document as Markdown.
    """
    parts = [
        "# Requirements on explanations",
        _use_section(recommendation, requirements),
        _threshold_section(recommendation, requirements),
        _shortlist_section(recommendation),
        _rules_section(),
        _plan_section(),
    ]
    return "\n\n".join(parts) + "\n"


def escape_markup(text: object) -> str:
    """Escape Markdown and HTML in a text, so that it cannot break a table or a page.

    >>> escape_markup("<x>")
    '&lt;x&gt;'
    """
    safe = str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*\[\]|#])", r"\\\1", " ".join(safe.split()))


def markdown_table(heading: list[str], rows: list[list[str]]) -> str:
    """Format a Markdown table."""
    lines = [
        heading,
        ["---"] * len(heading),
        *([escape_markup(cell) for cell in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _use_section(recommendation: Recommendation, requirements: Requirements) -> str:
    """Describe what the explanations are for."""
    kind = (recommendation.kind or recommendation.task).replace("_", " ")
    latency = requirements.latency or "not said: the paper's 5 s hold"
    lines = [
        f"Kind of task: {escape_markup(kind)}",
        f"Stakes: {requirements.stakes}",
        f"Use: {latency}",
        f"Features: {requirements.num_features or _OWNER_PLACEHOLDER}",
    ]
    return "\n".join(
        [
            "## 1. The task",
            *(f"- {line}" for line in lines),
            f"- Who reads the explanations: {_OWNER_PLACEHOLDER}",
        ]
    )


def _threshold_section(recommendation: Recommendation, requirements: Requirements) -> str:
    """List the thresholds that phase 2 will check, with remarks on unusual ones."""
    rows = []
    for metric in JUDGED_METRICS:
        limit = find_limit(metric, recommendation.kind, requirements)
        if isinstance(limit, str):
            rows.append([metric_title(metric), "-", NO_LIMIT_REASONS[limit]])
            continue
        cap = load_guideline("thresholds")["compactness"]["cap"]
        odd = "; ".join(
            filter(
                None,
                [
                    vacuity_reason(metric, limit, cap, *_known_chance(metric)),
                    reachability_note(metric, limit),
                ],
            )
        )
        rows.append(
            [
                metric_title(metric),
                f"{limit.direction} {format_metric_value(metric, limit.value)}",
                "; ".join(filter(None, [limit.source, odd])),
            ]
        )
    return "## 2. Thresholds\n" + markdown_table(
        ["number", "threshold", "from, and what is odd"], rows
    )


def _known_chance(metric: str) -> tuple[float | None, str]:
    """Return what chance is known to reach before anything is measured."""
    return (
        (load_guideline("chance")["stability"]["untrained_masks"], "a mask that was never trained")
        if metric.endswith("stability")
        else (None, "")
    )


def _shortlist_section(recommendation: Recommendation) -> str:
    """List the candidates with their numbers and reasons."""
    metrics = list(
        dict.fromkeys(metric for own in recommendation.numbers.values() for metric in own)
    )
    ranked = [recommendation.chosen, *recommendation.others]
    rows = [
        [
            name,
            *(
                format_metric_value(m, recommendation.numbers[name][m])
                if m in recommendation.numbers[name]
                else "-"
                for m in metrics
            ),
        ]
        for name in ranked
    ]
    said = [
        f"- {escape_markup(name)}: {escape_markup(reason)}"
        for name, reason in recommendation.others.items()
    ]
    return "\n".join(
        [
            "## 3. Shortlist",
            f"From {escape_markup(recommendation.source)}. "
            f"First choice: **{escape_markup(recommendation.chosen)}**, "
            f"because {escape_markup(recommendation.reason)}.",
            "",
            markdown_table(["explainer", *metrics], rows),
            "",
            "Not chosen:",
            *said,
            "",
            f"The paper: {escape_markup(recommendation.paper)}.",
            *(f"- Disagreement: {escape_markup(each)}" for each in recommendation.disagreements),
            "",
            "What these numbers are worth on other data:",
            *(f"- {escape_markup(each)}" for each in recommendation.transfer),
        ]
    )


def _rules_section() -> str:
    """List the rules that may apply, and what explanations must do for them."""
    aims = load_guideline("practice")["regulation"]["aims"]
    lines = [f"- {name.capitalize()} ({what}): {_OWNER_PLACEHOLDER}" for name, what in aims.items()]
    return "\n".join(
        [
            "## 4. Rules",
            f"- Rules that apply (EU AI Act, rules of the domain): {_OWNER_PLACEHOLDER}",
            *lines,
        ]
    )


def _plan_section() -> str:
    """List the steps of phases 2 and 3."""
    lines = ["## 5. Plan"]
    for number, phase in enumerate(load_guideline("practice")["phase"][1:], 2):
        lines += [
            f"Phase {number}, {phase['name']}:",
            *(f"- [ ] {step}" for step in phase["steps"]),
            "",
        ]
    triggers = load_guideline("practice")["phase"][2]["triggers"]
    return "\n".join(
        [
            *lines,
            f"Validate again when {', when '.join(triggers)}; "
            f"otherwise every: {_OWNER_PLACEHOLDER}",
        ]
    )
