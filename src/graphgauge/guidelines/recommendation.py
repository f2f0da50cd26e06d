"""Which explainer to use for a task, from what was measured.

    1. verdicts     who misses a threshold is out (if all do, nobody is, and the reason says so)
    2. Pareto       who is nowhere better and somewhere worse than another one, in the headline numbers, is out
    3. hierarchy    of those left, the one that the paper's hierarchy puts first; then by pertinence, time and name

Numbers are compared as the paper prints them: pertinence and stability to 0.01, EC to 0.1, time to 0.01 s; closer ones are tied.
The paper's own choice and its methods to avoid stand beside the answer, with every disagreement.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphgauge.core.errors import UndefinedScore
from graphgauge.core.verdicts import FAIL, Verdict
from graphgauge.evaluation import Results
from graphgauge.evaluation.meanings import higher_is_better
from graphgauge.guidelines.book import (
    KINDS,
    avoided,
    edges_as_links,
    family_of,
    paper_choice,
    rank_of,
    shipped_benchmark,
    transfer,
)
from graphgauge.guidelines.judging import verdict
from graphgauge.guidelines.limits import told
from graphgauge.guidelines.measures import Measured, Subject, measured
from graphgauge.guidelines.requirements import Requirements

if TYPE_CHECKING:
    import pandas as pd

DIGITS = {"pertinence": 2, "stability": 2, "ec": 1, "time": 2}
Numbers = dict[str, float]  #: rounded headline numbers by metric


@dataclass(frozen=True)
class Recommendation:
    """The answer for one task, why, and what else was considered."""

    task: str
    kind: str | None
    chosen: str
    reason: str
    others: dict[str, str]  #: why each other explainer was not chosen
    numbers: dict[str, Numbers]  #: headline means by explainer
    verdicts: tuple[Verdict, ...]  #: of the chosen one
    paper: str  #: what the paper recommends
    disagreements: tuple[str, ...]
    transfer: tuple[str, ...]  #: how far each number travels
    source: str = "your own results"

    def record(self) -> dict[str, Any]:
        """As plain data."""
        own = {**vars(self), "verdicts": [each.record() for each in self.verdicts]}
        return {**own, "disagreements": list(self.disagreements), "transfer": list(self.transfer)}

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


def recommend(given: "Results | pd.DataFrame", requirements: Requirements | None = None) -> list[Recommendation]:
    """One recommendation for each task of a run, or of a table of means (columns task, explainer, metric, mean, and sd, n)."""
    wanted = requirements or Requirements()
    found = measured(given, wanted, merge_models=True)
    tasks = list(dict.fromkeys(task for task, _, _ in found.subjects()))
    return [recommend_for(found, task, wanted) for task in tasks]


def recommend_for(found: Measured, task: str, wanted: Requirements) -> Recommendation:
    """Verdicts, then Pareto, then the hierarchy."""
    numbers = {subject[2]: headline(found, subject) for subject in found.subjects(task) if subject[2] != wanted.baseline}
    numbers = {name: own for name, own in numbers.items() if any(metric != "time" for metric in own)}
    if not numbers:
        raise UndefinedScore(f"no explainer of task {task!r} has a value of any quality metric: evaluate some explainers first.")
    judged = {name: judged_by(found, subject_of(found, task, name), wanted) for name in numbers}
    failed = {name: [each for each in own if each.outcome == FAIL] for name, own in judged.items()}
    viable = [name for name in numbers if not failed[name]] or list(numbers)
    front = [name for name in viable if not dominators(name, viable, numbers)]
    order = sorted(front, key=lambda name: preference(name, numbers[name]))
    chosen = order[0]
    rest = sorted((name for name in numbers if name != chosen), key=lambda name: preference(name, numbers[name]))
    others = {name: why_not(name, chosen, failed, viable, numbers) for name in rest}
    kind = found.kinds.get(task)
    return Recommendation(
        task=task,
        kind=kind,
        chosen=chosen,
        reason=why(chosen, viable, front, failed, numbers),
        others=others,
        numbers=numbers,
        verdicts=tuple(judged[chosen]),
        paper=paper_sentence(kind),
        disagreements=tuple(disagreements(kind, chosen, others, failed)),
        transfer=tuple(transfer_sentences(found.judged())),
    )


def subject_of(found: Measured, task: str, explainer: str) -> Subject:
    """The one subject of a task and explainer (networks are merged)."""
    return next(subject for subject in found.subjects(task) if subject[2] == explainer)


def headline(found: Measured, subject: Subject) -> Numbers:
    """The means that are compared, as they are printed."""
    own = {metric: found.get(subject, metric) for metric in found.judged()}
    return {
        name: round(each.mean, DIGITS[family_of(name)]) for name, each in own.items() if each is not None and each.mean is not None
    }


def judged_by(found: Measured, subject: Subject, wanted: Requirements) -> list[Verdict]:
    """The verdicts on one explainer."""
    return [verdict(found, subject, metric, wanted) for metric in found.judged()]


def goodness(metric: str, number: float) -> float:
    """A number that is larger when better."""
    return number if higher_is_better(metric) else -number


def is_dominated(own: Numbers, other: Numbers) -> bool:
    """Whether another one is nowhere worse and somewhere better, and measured wherever this one is."""
    if not own.keys() <= other.keys():
        return False
    gaps = [goodness(metric, other[metric]) - goodness(metric, own[metric]) for metric in own]
    return min(gaps) >= 0 and max(gaps) > 0


def dominators(name: str, among: list[str], numbers: dict[str, Numbers]) -> list[str]:
    """Who dominates an explainer."""
    return [other for other in among if other != name and is_dominated(numbers[name], numbers[other])]


def preference(name: str, own: Numbers) -> tuple[Any, ...]:
    """Place in the hierarchy, then pertinence, time, name."""
    pertinence = [number for metric, number in own.items() if family_of(metric) == "pertinence"]
    return rank_of(name), -sum(pertinence) / max(len(pertinence), 1), own.get("time", float("inf")), name


# --- sentences ---------------------------------------------------------------------------------------------------------


def why(chosen: str, viable: list[str], front: list[str], failed: dict[str, list[Verdict]], numbers: dict[str, Numbers]) -> str:
    """Why the chosen one was."""
    total = len(numbers)
    if failed[chosen]:
        start = f"none of {total} explainers meets every threshold ({chosen} misses {len(failed[chosen])}), so none was left out"
    elif len(viable) == 1:
        return f"it alone of {total} misses no threshold" if total > 1 else "it misses no threshold, and it is the only one"
    else:
        start = f"{len(viable)} of {total} explainers miss no threshold, and it is one of them"
    if len(front) == 1:
        return f"{start}; it is nowhere worse than any other of these and somewhere better"
    ties = [name for name in front if name != chosen and numbers[name] == numbers[chosen]]
    equal = f"; equal to {', '.join(ties)} in every printed number" if ties else ""
    rivals = f"{len(front)} of these have no rival that is as good everywhere and better somewhere"
    return f"{start}; {rivals}, and of them it is {place(chosen)}{equal}"


def place(name: str) -> str:
    """Where an explainer stands in the hierarchy.

    >>> place("lrp"), place("mine")
    ("number 4 in the paper's hierarchy", "not in the paper's hierarchy")
    """
    rank = rank_of(name)
    return (
        f"number {rank} in the paper's hierarchy"
        if rank < 5
        else "to be avoided by the paper"
        if rank == 6
        else "not in the paper's hierarchy"
    )


def why_not(name: str, chosen: str, failed: dict[str, list[Verdict]], viable: list[str], numbers: dict[str, Numbers]) -> str:
    """Why an explainer was not chosen."""
    if failed[name] and name not in viable:
        return "it misses " + ", ".join(missed(each) for each in failed[name])
    better = dominators(name, viable, numbers)
    if better:
        other = chosen if chosen in better else better[0]
        return f"{other} is nowhere worse and better in {advantages(numbers[name], numbers[other])}"
    if numbers[name] == numbers[chosen]:
        return f"its numbers equal those of {chosen}; {tie_break(name, chosen, numbers)}"
    return f"better in {advantages(numbers[chosen], numbers[name]) or 'nothing'}, but {tie_break(name, chosen, numbers)}"


def missed(verdict: Verdict) -> str:
    """A missed threshold in a few words."""
    number, threshold = float(verdict.number or 0), float(verdict.threshold or 0)
    return f"{verdict.metric} ({told(verdict.metric, number)} against {told(verdict.metric, threshold)})"


def advantages(own: Numbers, other: Numbers) -> str:
    """Where another one is better, with the numbers."""
    better = [metric for metric in other if metric in own and goodness(metric, other[metric]) > goodness(metric, own[metric])]
    extra = [metric for metric in other if metric not in own]
    said = [f"{metric} ({told(metric, other[metric])} against {told(metric, own[metric])})" for metric in better]
    return ", ".join([*said, *(f"{metric} ({told(metric, other[metric])} against no value)" for metric in extra)])


def tie_break(name: str, chosen: str, numbers: dict[str, Numbers]) -> str:
    """Which of hierarchy, pertinence, time and name decided."""
    own, other = preference(name, numbers[name]), preference(chosen, numbers[chosen])
    if own[0] != other[0]:
        return f"{chosen} is {place(chosen)}, {name} is {place(name)}"
    told_by = next(what for what, a, b in zip(("pertinence", "time", "name"), own[1:], other[1:], strict=True) if a != b)
    return f"{chosen} comes first by {told_by}"


def paper_sentence(kind: str | None) -> str:
    """What the paper recommends for a kind of task."""
    avoid = f"it says to avoid {', '.join(avoided())}"
    if kind not in KINDS:
        return f"it has no recommendation for this kind of task; {avoid}"
    own = paper_choice(str(kind))
    alternatives = [name + (f" ({own['only_for'][name]})" if name in own["only_for"] else "") for name in own["alternatives"]]
    return f"{own['primary']}, else {' or '.join(alternatives)}; {avoid}"


def disagreements(kind: str | None, chosen: str, others: dict[str, str], failed: dict[str, list[Verdict]]) -> list[str]:
    """Where what was measured and the paper differ."""
    found = []
    if kind in KINDS:
        primary = paper_choice(str(kind))["primary"]
        if primary != chosen:
            found.append(f"the paper recommends {primary}; {others.get(primary, 'it was not measured here')}")
    for name, entry in avoided().items():
        if name in failed and not failed[name]:
            found.append(f"the paper says to avoid {name} ({entry['why']}), but it misses no threshold here; {entry['doubt']}")
    return found


def transfer_sentences(metrics: list[str]) -> list[str]:
    """How far the numbers travel, one sentence for each kind of number."""
    entries = {family_of(metric): transfer(metric) for metric in metrics}
    return [f"{family}: {entry['level']}, since {entry['why']}" for family, entry in entries.items()]


# --- without results of one's own -----------------------------------------------------------------------------------------


def consult(task_kind: str, requirements: Requirements | None = None, summary: "pd.DataFrame | None" = None) -> Recommendation:
    """The recommendation for a kind of task ("node-classification" or "node_classification") from a summary, else our benchmark."""
    table = shipped_benchmark() if summary is None else edges_as_links(summary)
    source = "the benchmark that comes with graphgauge" if summary is None else "the given summary"
    kind = task_kind.replace("-", "_")
    own = table[table["task"] == kind]
    if not len(own):
        known = ", ".join(name for name in KINDS if name in set(table["task"]))
        raise UndefinedScore(f"{source} has no rows for {kind!r}. It has: {known or 'no kind of task'}.")
    wanted = replace(requirements or Requirements(), task_kind=kind)
    return replace(recommend(own, wanted)[0], source=source)
