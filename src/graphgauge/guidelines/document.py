"""The requirements document of the paper's phase 1 (before a model is built), as Markdown.

It contains what is known by then: the kind of task, the thresholds that will be checked, the
shortlist with its numbers, how well these transfer, and the plan for phases 2 and 3. A line to fill
in stands for everything that only the owner knows.
"""

import re

from graphgauge.guidelines.book import guide
from graphgauge.guidelines.limits import NO_LIMIT, limit_of, reach, title, told, vacuity
from graphgauge.guidelines.measures import JUDGED
from graphgauge.guidelines.recommendation import Recommendation
from graphgauge.guidelines.requirements import Requirements

OPEN = "_to be filled in by the owner_"


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
        use_section(recommendation, requirements),
        threshold_section(recommendation, requirements),
        shortlist_section(recommendation),
        rules_section(),
        plan_section(),
    ]
    return "\n\n".join(parts) + "\n"


def plain(text: object) -> str:
    """Escape Markdown and HTML in a text, so that it cannot break a table or a page.

    >>> plain("<x>")
    '&lt;x&gt;'
    """
    safe = str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*\[\]|#])", r"\\\1", " ".join(safe.split()))


def table(heading: list[str], rows: list[list[str]]) -> str:
    """Format a Markdown table."""
    lines = [heading, ["---"] * len(heading), *([plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def use_section(recommendation: Recommendation, requirements: Requirements) -> str:
    """Describe what the explanations are for."""
    kind = (recommendation.kind or recommendation.task).replace("_", " ")
    latency = requirements.latency or "not said: the paper's 5 s hold"
    lines = [
        f"Kind of task: {plain(kind)}",
        f"Stakes: {requirements.stakes}",
        f"Use: {latency}",
        f"Features: {requirements.num_features or OPEN}",
    ]
    return "\n".join(
        [
            "## 1. The task",
            *(f"- {line}" for line in lines),
            f"- Who reads the explanations: {OPEN}",
        ]
    )


def threshold_section(recommendation: Recommendation, requirements: Requirements) -> str:
    """List the thresholds that phase 2 will check, with remarks on unusual ones."""
    rows = []
    for metric in JUDGED:
        limit = limit_of(metric, recommendation.kind, requirements)
        if isinstance(limit, str):
            rows.append([title(metric), "-", NO_LIMIT[limit]])
            continue
        cap = guide("thresholds")["compactness"]["cap"]
        odd = "; ".join(
            filter(None, [vacuity(metric, limit, cap, *known_chance(metric)), reach(metric, limit)])
        )
        rows.append(
            [
                title(metric),
                f"{limit.direction} {told(metric, limit.value)}",
                "; ".join(filter(None, [limit.source, odd])),
            ]
        )
    return "## 2. Thresholds\n" + table(["number", "threshold", "from, and what is odd"], rows)


def known_chance(metric: str) -> tuple[float | None, str]:
    """Return what chance is known to reach before anything is measured."""
    return (
        (guide("chance")["stability"]["untrained_masks"], "a mask that was never trained")
        if metric.endswith("stability")
        else (None, "")
    )


def shortlist_section(recommendation: Recommendation) -> str:
    """List the candidates with their numbers and reasons."""
    metrics = list(
        dict.fromkeys(metric for own in recommendation.numbers.values() for metric in own)
    )
    ranked = [recommendation.chosen, *recommendation.others]
    rows = [
        [
            name,
            *(
                told(m, recommendation.numbers[name][m])
                if m in recommendation.numbers[name]
                else "-"
                for m in metrics
            ),
        ]
        for name in ranked
    ]
    said = [f"- {plain(name)}: {plain(reason)}" for name, reason in recommendation.others.items()]
    return "\n".join(
        [
            "## 3. Shortlist",
            f"From {plain(recommendation.source)}. "
            f"First choice: **{plain(recommendation.chosen)}**, because {plain(recommendation.reason)}.",
            "",
            table(["explainer", *metrics], rows),
            "",
            "Not chosen:",
            *said,
            "",
            f"The paper: {plain(recommendation.paper)}.",
            *(f"- Disagreement: {plain(each)}" for each in recommendation.disagreements),
            "",
            "What these numbers are worth on other data:",
            *(f"- {plain(each)}" for each in recommendation.transfer),
        ]
    )


def rules_section() -> str:
    """List the rules that may apply, and what explanations must do for them."""
    aims = guide("practice")["regulation"]["aims"]
    lines = [f"- {name.capitalize()} ({what}): {OPEN}" for name, what in aims.items()]
    return "\n".join(
        ["## 4. Rules", f"- Rules that apply (EU AI Act, rules of the domain): {OPEN}", *lines]
    )


def plan_section() -> str:
    """List the steps of phases 2 and 3."""
    lines = ["## 5. Plan"]
    for number, phase in enumerate(guide("practice")["phase"][1:], 2):
        lines += [
            f"Phase {number}, {phase['name']}:",
            *(f"- [ ] {step}" for step in phase["steps"]),
            "",
        ]
    triggers = guide("practice")["phase"][2]["triggers"]
    return "\n".join(
        [*lines, f"Validate again when {', when '.join(triggers)}; otherwise every: {OPEN}"]
    )
