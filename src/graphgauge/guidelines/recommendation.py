"""Recommend an explainer for a task, from what was measured.

    1. verdicts       Explainers that fail a verdict are excluded, then those that nothing shows to
                      be better than random. A step that would exclude all of them is skipped, and
                      the reason says so.
    2. faithfulness   Pertinence and EC of edges and features: explainers that are clearly worse
                      than another one in some measure, and clearly better in none, are excluded. Of
                      the others, those stay that are better most often, minus worse.
    3. stability      In the same way.
    4. hierarchy      The paper's hierarchy breaks ties, then time, then the name.

Paired differences over targets and their 95 % intervals decide what is clearly better (see the
paired comparisons); all others are ties. Time below its limit is no reason to prefer an explainer.
The answer also states the paper's own choice, its methods to avoid, and every disagreement.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from graphgauge.core import JsonObject, UndefinedScore, Verdict
from graphgauge.evaluation import Results
from graphgauge.guidelines.aggregation import AggregatedScores, aggregate_scores
from graphgauge.guidelines.explainer_selection import ExplainerSelection, HeadlineMeans
from graphgauge.guidelines.reference_data import (
    TASK_KINDS,
    hierarchy_rank,
    methods_to_avoid,
    metric_family,
    paper_choice,
    rename_edges_to_links,
    shipped_benchmark,
    transferability_entry,
)
from graphgauge.guidelines.requirements import Requirements
from graphgauge.guidelines.selection_reasons import reason_against, reason_for

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Recommendation:
    """The recommended explainer of one task, the reason, and what else was considered."""

    task: str
    kind: str | None
    chosen: str
    reason: str
    others: dict[str, str]  #: why each other explainer was not chosen
    numbers: dict[str, HeadlineMeans]  #: headline means by explainer, rounded
    verdicts: tuple[Verdict, ...]  #: of the chosen one
    paper: str  #: what the paper recommends
    disagreements: tuple[str, ...]
    transfer: tuple[str, ...]  #: how well each number transfers to other data
    source: str = "your own results"

    def record(self) -> JsonObject:
        """Return the recommendation as plain data."""
        return {
            **vars(self),
            "verdicts": [verdict.record() for verdict in self.verdicts],
            "disagreements": list(self.disagreements),
            "transfer": list(self.transfer),
        }

    def __str__(self) -> str:
        name = (self.task or self.kind or "this task").replace("_", " ")
        lines = [
            f"Recommended for {name}: {self.chosen} (from {self.source})",
            f"  because {self.reason}",
            f"  paper: {self.paper}",
        ]
        lines += [f"  disagreement: {each}" for each in self.disagreements]
        lines += [f"  not {other}: {why}" for other, why in self.others.items()]
        return "\n".join([*lines, *(f"  transfer: {each}" for each in self.transfer)])


def recommend(
    given: "Results | pd.DataFrame", requirements: Requirements | None = None
) -> list[Recommendation]:
    """Recommend one explainer for each task.

    Args:
        given: Results of a run, or a table of means with the columns task, explainer, metric and
            mean, and perhaps sd and n.
        requirements: Thresholds and use (default: the paper's table).

    Raises:
        UndefinedScore: No explainer of a task has a value of any quality metric.
    """
    wanted = requirements or Requirements()
    scores = aggregate_scores(given, wanted, merge_models=True)
    tasks = dict.fromkeys(task for task, _, _ in scores.subjects())
    return [recommend_for(scores, task, wanted) for task in tasks]


def recommend_for(
    scores: AggregatedScores, task: str, requirements: Requirements
) -> Recommendation:
    """Recommend an explainer for one task: by verdicts, faithfulness, stability, then hierarchy.

    Args:
        scores: Scores of a run or a table, networks merged.
        task: Name of the task.
        requirements: Thresholds and use.

    Raises:
        UndefinedScore: No explainer of the task has a value of any quality metric.
    """
    selection = ExplainerSelection.from_scores(scores, task, requirements)
    if not selection.subjects:
        raise UndefinedScore(
            f"no explainer of task {task!r} has a value of any quality metric: "
            "evaluate some explainers first."
        )
    chosen, means, kind = selection.chosen, selection.means, scores.kinds.get(task)
    listed = sorted(selection.subjects, key=lambda name: _listing_key(name, means[name]))
    others = {name: reason_against(selection, name) for name in listed if name != chosen}
    return Recommendation(
        task=task,
        kind=kind,
        chosen=chosen,
        reason=reason_for(selection),
        others=others,
        numbers=means,
        verdicts=tuple(selection.verdicts[chosen]),
        paper=_paper_sentence(kind),
        disagreements=tuple(_find_disagreements(kind, selection, others)),
        transfer=tuple(_transfer_sentences(scores.judged_metrics())),
    )


def _listing_key(name: str, means: HeadlineMeans) -> tuple[int, float, float, str]:
    """Return where an explainer that was not chosen is listed.

    The order is by hierarchy, then by mean pertinence, time and name.
    """
    pertinence = [mean for metric, mean in means.items() if metric_family(metric) == "pertinence"]
    mean_pertinence = sum(pertinence) / max(len(pertinence), 1)
    return hierarchy_rank(name), -mean_pertinence, means.get("time", float("inf")), name


def _paper_sentence(kind: str | None) -> str:
    """Say what the paper recommends for a kind of task."""
    avoid = f"it says to avoid {', '.join(methods_to_avoid())}"
    if kind not in TASK_KINDS:
        return f"it has no recommendation for this kind of task; {avoid}"
    choice = paper_choice(str(kind))
    alternatives = [
        name + (f" ({choice['only_for'][name]})" if name in choice["only_for"] else "")
        for name in choice["alternatives"]
    ]
    return f"{choice['primary']}, else {' or '.join(alternatives)}; {avoid}"


def _find_disagreements(
    kind: str | None, selection: ExplainerSelection, others: Mapping[str, str]
) -> list[str]:
    """List where the measurement and the paper disagree."""
    sentences = []
    primary = paper_choice(str(kind))["primary"] if kind in TASK_KINDS else selection.chosen
    if primary != selection.chosen:
        reason = others.get(primary, "it was not measured here")
        sentences.append(f"the paper recommends {primary}; {reason}")
    for name, entry in methods_to_avoid().items():
        if name in selection.subjects and not selection.failed(name):
            sentences.append(
                f"the paper says to avoid {name} ({entry['why']}), but it misses no threshold "
                f"here; {entry['doubt']}"
            )
    return sentences


def _transfer_sentences(metrics: list[str]) -> list[str]:
    """Say how well each kind of number transfers to other data."""
    entries = {metric_family(metric): transferability_entry(metric) for metric in metrics}
    return [
        f"{family}: {entry['level']}, since {entry['why']}" for family, entry in entries.items()
    ]


# --- without results of one's own -----------------------------------------------------------------


def consult(
    task_kind: str, requirements: Requirements | None = None, summary: "pd.DataFrame | None" = None
) -> Recommendation:
    """Recommend an explainer for a kind of task without results of one's own.

    Args:
        task_kind: Such as "node-classification" or "node_classification".
        requirements: Stakes, latency and limits of the use.
        summary: A table of means (default: the benchmark that comes with graphgauge).

    Raises:
        UndefinedScore: The table has no rows for this kind of task.
    """
    table = shipped_benchmark() if summary is None else rename_edges_to_links(summary)
    source = "the benchmark that comes with graphgauge" if summary is None else "the given summary"
    kind = task_kind.replace("-", "_")
    rows = table[table["task"] == kind]
    if not len(rows):
        known = ", ".join(name for name in TASK_KINDS if name in set(table["task"]))
        raise UndefinedScore(
            f"{source} has no rows for {kind!r}. It has: {known or 'no kind of task'}."
        )
    wanted = replace(requirements or Requirements(), task_kind=kind)
    return replace(recommend(rows, wanted)[0], source=source)
