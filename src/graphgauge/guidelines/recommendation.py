"""Which explainer to use for a task, from what was measured.

    1. verdicts       explainers that fail a verdict are left out, then those that nothing shows to be better than random; where
                      that leaves nobody, it is left undone, and the reason says so
    2. faithfulness   pertinence and EC, of edges and features: who is clearly worse than another one in some measure and clearly
                      better in none is left out; of the rest, those that are better most often,
                      less worse, stay
    3. stability      in the same way
    4. hierarchy      the paper's hierarchy breaks ties, then time, then the name

What is clearly better is decided by paired differences over targets and their 95 % intervals
(`comparisons`); the rest are ties. Time below its limit is no reason to prefer an explainer. The
paper's own choice and its methods to avoid stand beside the answer, with every disagreement.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graphgauge.core import FAIL, UndefinedScore, Verdict
from graphgauge.evaluation import Results
from graphgauge.guidelines.aggregation import AggregatedScores, Subject, aggregate_scores
from graphgauge.guidelines.explainer_verdicts import (
    CONTRADICTED,
    NO_BETTER_THAN_RANDOM,
    TOO_FEW_TARGETS,
    WORSE_THAN_RANDOM,
    judge_mean,
)
from graphgauge.guidelines.paired_comparisons import (
    LEAST_TARGETS,
    TIE_TOLERANCE,
    PairedComparison,
    compare_explainers,
)
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
from graphgauge.guidelines.thresholds import format_metric_value

if TYPE_CHECKING:
    import pandas as pd

_HEADLINE_DIGITS = {"pertinence": 2, "stability": 2, "ec": 1, "time": 2}
_HeadlineMeans = dict[str, float]  #: rounded headline numbers by metric


@dataclass(frozen=True)
class Recommendation:
    """The answer for one task, why, and what else was considered."""

    task: str
    kind: str | None
    chosen: str
    reason: str
    others: dict[str, str]  #: why each other explainer was not chosen
    numbers: dict[str, _HeadlineMeans]  #: headline means by explainer, rounded
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


def recommend(
    given: "Results | pd.DataFrame", requirements: Requirements | None = None
) -> list[Recommendation]:
    """One recommendation for each task of a run, or of a table of means (columns task, explainer,
    metric, mean, and sd, n).
    """
    wanted = requirements or Requirements()
    found = aggregate_scores(given, wanted, merge_models=True)
    tasks = list(dict.fromkeys(task for task, _, _ in found.subjects()))
    return [recommend_for(found, task, wanted) for task in tasks]


def recommend_for(found: AggregatedScores, task: str, wanted: Requirements) -> Recommendation:
    """Verdicts, then faithfulness, then stability, then the hierarchy."""
    numbers = {
        subject[2]: _headline_means(found, subject)
        for subject in found.subjects(task)
        if subject[2] != wanted.baseline
    }
    numbers = {
        name: own for name, own in numbers.items() if any(metric != "time" for metric in own)
    }
    if not numbers:
        raise UndefinedScore(
            f"no explainer of task {task!r} has a value of any quality metric: evaluate some explainers first."
        )
    judged = {
        name: _judge_explainer(found, _find_subject(found, task, name), wanted) for name in numbers
    }
    order = sorted(numbers, key=lambda name: _tie_break_key(name, numbers[name]))
    contest = _ExplainerSelection(
        found, {name: _find_subject(found, task, name) for name in order}, judged, numbers
    )
    chosen = contest.finalists[0]
    others = {
        name: contest.why_not(name)
        for name in sorted(order, key=lambda name: _listing_key(name, numbers[name]))
        if name != chosen
    }
    kind = found.kinds.get(task)
    return Recommendation(
        task=task,
        kind=kind,
        chosen=chosen,
        reason=contest.why(),
        others=others,
        numbers=numbers,
        verdicts=tuple(judged[chosen]),
        paper=_paper_sentence(kind),
        disagreements=tuple(
            _find_disagreements(
                kind, chosen, others, {name: contest.failed(name) for name in numbers}
            )
        ),
        transfer=tuple(_transfer_sentences(found.judged_metrics())),
    )


def _find_subject(found: AggregatedScores, task: str, explainer: str) -> Subject:
    """The one subject of a task and explainer (networks are merged)."""
    return next(subject for subject in found.subjects(task) if subject[2] == explainer)


def _headline_means(found: AggregatedScores, subject: Subject) -> _HeadlineMeans:
    """The means that are compared, as they are printed."""
    own = {metric: found.get(subject, metric) for metric in found.judged_metrics()}
    return {
        name: round(each.mean, _HEADLINE_DIGITS[metric_family(name)])
        for name, each in own.items()
        if each is not None and each.mean is not None
    }


def _judge_explainer(
    found: AggregatedScores, subject: Subject, wanted: Requirements
) -> list[Verdict]:
    """The verdicts on one explainer."""
    return [judge_mean(found, subject, metric, wanted) for metric in found.judged_metrics()]


def _tie_break_key(name: str, own: _HeadlineMeans) -> tuple[int, float, str]:
    """What breaks ties: the place in the paper's hierarchy, then time, then the name."""
    return hierarchy_rank(name), own.get("time", float("inf")), name


def _listing_key(name: str, own: _HeadlineMeans) -> tuple[int, float, float, str]:
    """Where an explainer that is not chosen stands in the list: by the hierarchy, then by mean
    pertinence, time and name.
    """
    pertinence = [number for metric, number in own.items() if metric_family(metric) == "pertinence"]
    return (
        hierarchy_rank(name),
        -sum(pertinence) / max(len(pertinence), 1),
        own.get("time", float("inf")),
        name,
    )


@dataclass(frozen=True)
class _ExplainerSelection:
    """Who is left after each step; ``subjects`` come in the order that breaks ties."""

    found: AggregatedScores
    subjects: dict[str, Subject]
    judged: dict[str, list[Verdict]]
    numbers: dict[str, _HeadlineMeans]

    def failed(self, name: str) -> list[Verdict]:
        """The verdicts that an explainer fails."""
        return [each for each in self.judged[name] if each.outcome == FAIL]

    def is_worse_than_random(self, name: str) -> bool:
        """Whether some measure is clearly worse than random."""
        return any(each.status in (WORSE_THAN_RANDOM, CONTRADICTED) for each in self.failed(name))

    def is_unproven(self, name: str) -> bool:
        """Whether nothing shows that some side is better than random."""
        return any(each.status == NO_BETTER_THAN_RANDOM for each in self.judged[name])

    def tier(self, name: str) -> int:
        """0: no verdict speaks against it; 1: unproven; 2: it misses a threshold; 3: it is worse
        than random.
        """
        if self.failed(name):
            return 3 if self.is_worse_than_random(name) else 2
        return 1 if self.is_unproven(name) else 0

    @cached_property
    def viable(self) -> list[str]:
        """Those of the best tier there is."""
        best = min(map(self.tier, self.subjects))
        return [name for name in self.subjects if self.tier(name) == best]

    @cached_property
    def faithful(self) -> list[str]:
        """Those of the viable that are equally faithful, and more so than the rest."""
        return self.unbeaten(self.viable, ("pertinence", "ec"))

    @cached_property
    def finalists(self) -> list[str]:
        """Those of the faithful that are equally stable; the first is chosen."""
        return self.unbeaten(self.faithful, ("stability",))

    def unbeaten(self, names: list[str], families: tuple[str, ...]) -> list[str]:
        """Those that no other one beats; where some are better here and worse there, those that are
        better most often.
        """
        left = [
            name for name in names if not any(self.beats(other, name, families) for other in names)
        ] or names
        wins = {
            name: sum(each.sign for other in left for each in self.between(name, other, families))
            for name in left
        }
        return [name for name in left if wins[name] == max(wins.values())]

    def beats(self, first: str, second: str, families: tuple[str, ...]) -> bool:
        """Whether the first explainer is clearly better in some measure and clearly worse in none."""
        signs = [each.sign for each in self.between(first, second, families)]
        return 1 in signs and -1 not in signs

    def between(self, first: str, second: str, families: tuple[str, ...]) -> list[PairedComparison]:
        """The comparisons of two explainers, in the metrics of some families that both have."""
        metrics = (
            [metric for metric in self.found.judged_metrics() if metric_family(metric) in families]
            if first != second
            else []
        )
        own = [
            compare_explainers(self.found, self.subjects[first], self.subjects[second], metric)
            for metric in metrics
        ]
        return [each for each in own if each is not None]

    # --- sentences --------------------------------------------------------------------------------

    def why(self) -> str:
        """Why the chosen one was."""
        start = self.start(self.finalists[0])
        return start if len(self.viable) == 1 else f"{start}; {self.decided_by(self.finalists[0])}"

    def start(self, chosen: str) -> str:
        """What the verdicts say."""
        total, viable, tier = len(self.subjects), len(self.viable), self.tier(chosen)
        few = (
            f" (undecided: fewer than {LEAST_TARGETS} targets)"
            if self.has_few_targets(chosen)
            else ""
        )
        if tier >= 2:
            who = (
                f"every one of {total} explainers fails a verdict ({chosen}: " if total > 1 else "("
            )
            return f"{who}{_describe_failures(self.failed(chosen))}), so do not rely on it"
        if tier == 1:
            who = f"{chosen} is not" if total == 1 else f"no explainer of {total} is"
            return f"{who} shown to be better than random on every side, so do not rely on it"
        if total == 1:
            return f"it fails no verdict{few}, and it is the only one"
        return (
            f"it alone of {total} explainers fails no verdict{few}"
            if viable == 1
            else f"{viable} of {total} explainers fail no verdict{few}"
        )

    def has_few_targets(self, name: str) -> bool:
        """Whether its verdicts are undecided for want of targets."""
        return any(each.status == TOO_FEW_TARGETS for each in self.judged[name])

    def decided_by(self, chosen: str) -> str:
        """What singled one out among the viable."""
        if len(self.faithful) == 1:
            return f"of these {chosen} is the most faithful (pertinence and EC)"
        tied = f"{', '.join(self.faithful)} are equally faithful {self.within(*self.faithful[:2])}"
        if len(self.finalists) == 1:
            return f"{tied}, and {chosen} is the most stable of them"
        return f"{tied}, and {_tie_break_phrase(self.finalists[1], chosen, self.numbers)}"

    def within(self, first: str, second: str) -> str:
        """What makes a tie of two explainers."""
        decided = any(each.is_decided for each in self.between(first, second, ("pertinence", "ec")))
        tolerance = f"to within {TIE_TOLERANCE['pertinence']:g} (pertinence) and {TIE_TOLERANCE['ec']:g} edits (EC)"
        return "within their 95 % intervals" if decided else tolerance

    def why_not(self, name: str) -> str:
        """Why an explainer was not chosen."""
        chosen = self.finalists[0]
        if name not in self.viable:
            failed = self.failed(name)
            return (
                _describe_failures(failed)
                if failed
                else "nothing shows that all its scores are better than random"
            )
        for names, families in (
            (self.faithful, ("pertinence", "ec")),
            (self.finalists, ("stability",)),
        ):
            if name not in names:
                return self.lost(name, chosen, families)
        more = [metric for metric in self.numbers[name] if metric not in self.numbers[chosen]]
        extra = f", and it alone has {', '.join(more)}" if more else ""
        return f"as good as {chosen} {self.within(name, chosen)}{extra}; {_tie_break_phrase(name, chosen, self.numbers)}"

    def lost(self, name: str, chosen: str, families: tuple[str, ...]) -> str:
        """In which measures an explainer is worse than the chosen one, or than the one that beats
        it.
        """
        rivals = [
            other
            for other in (chosen, *self.viable)
            if other != name and self.beats(other, name, families)
        ]
        rival = rivals[0] if rivals else chosen
        comparisons = self.between(rival, name, families)
        ahead, behind = (
            _describe_comparisons([each for each in comparisons if each.sign == sign])
            for sign in (1, -1)
        )
        if not ahead:
            return f"it is behind more often than {chosen} in pertinence and EC, all explainers considered"
        return f"{rival} is better in {ahead}" + (f", though worse in {behind}" if behind else "")


def _describe_comparisons(comparisons: list[PairedComparison]) -> str:
    """Metrics with the numbers of both."""
    return ", ".join(f"{each.metric} ({each.numbers()})" for each in comparisons)


def _describe_failures(verdicts: list[Verdict]) -> str:
    """Which verdicts an explainer fails, in a few words."""
    below = [
        _describe_miss(each)
        for each in verdicts
        if each.status not in (WORSE_THAN_RANDOM, CONTRADICTED)
    ]
    worse = [each.metric for each in verdicts if each.status == WORSE_THAN_RANDOM]
    contradicted = [each.metric for each in verdicts if each.status == CONTRADICTED]
    parts = [f"it misses {', '.join(below)}"] if below else []
    parts += [f"it is worse than random in {', '.join(worse)}"] if worse else []
    parts += (
        [f"another measure contradicts its {', '.join(contradicted)}"]
        if contradicted and not worse
        else []
    )
    return " and ".join(parts)


def _describe_miss(verdict: Verdict) -> str:
    """A missed threshold in a few words."""
    number, threshold = float(verdict.number or 0), float(verdict.threshold or 0)
    return f"{verdict.metric} ({format_metric_value(verdict.metric, number)} against {format_metric_value(verdict.metric, threshold)})"


def _hierarchy_phrase(name: str) -> str:
    """Where an explainer stands in the hierarchy.

    >>> _hierarchy_phrase("lrp"), _hierarchy_phrase("mine")
    ("number 4 in the paper's hierarchy", "not in the paper's hierarchy")
    """
    rank = hierarchy_rank(name)
    return (
        f"number {rank} in the paper's hierarchy"
        if rank < 5
        else "to be avoided by the paper"
        if rank == 6
        else "not in the paper's hierarchy"
    )


def _tie_break_phrase(name: str, chosen: str, numbers: dict[str, _HeadlineMeans]) -> str:
    """Which of hierarchy, time and name decided."""
    own, other = _tie_break_key(name, numbers[name]), _tie_break_key(chosen, numbers[chosen])
    if own[0] != other[0]:
        return f"{chosen} is {_hierarchy_phrase(chosen)}, {name} is {_hierarchy_phrase(name)}"
    return f"{chosen} comes first by {'time' if own[1] != other[1] else 'name'}"


def _paper_sentence(kind: str | None) -> str:
    """What the paper recommends for a kind of task."""
    avoid = f"it says to avoid {', '.join(methods_to_avoid())}"
    if kind not in TASK_KINDS:
        return f"it has no recommendation for this kind of task; {avoid}"
    own = paper_choice(str(kind))
    alternatives = [
        name + (f" ({own['only_for'][name]})" if name in own["only_for"] else "")
        for name in own["alternatives"]
    ]
    return f"{own['primary']}, else {' or '.join(alternatives)}; {avoid}"


def _find_disagreements(
    kind: str | None, chosen: str, others: dict[str, str], failed: dict[str, list[Verdict]]
) -> list[str]:
    """Where what was measured and the paper differ."""
    found = []
    if kind in TASK_KINDS:
        primary = paper_choice(str(kind))["primary"]
        if primary != chosen:
            found.append(
                f"the paper recommends {primary}; {others.get(primary, 'it was not measured here')}"
            )
    for name, entry in methods_to_avoid().items():
        if name in failed and not failed[name]:
            found.append(
                f"the paper says to avoid {name} ({entry['why']}), but it misses no threshold here; {entry['doubt']}"
            )
    return found


def _transfer_sentences(metrics: list[str]) -> list[str]:
    """How far the numbers travel, one sentence for each kind of number."""
    entries = {metric_family(metric): transferability_entry(metric) for metric in metrics}
    return [
        f"{family}: {entry['level']}, since {entry['why']}" for family, entry in entries.items()
    ]


# --- without results of one's own -----------------------------------------------------------------


def consult(
    task_kind: str, requirements: Requirements | None = None, summary: "pd.DataFrame | None" = None
) -> Recommendation:
    """The recommendation for a kind of task ("node-classification" or "node_classification") from a
    summary, else our benchmark.
    """
    table = shipped_benchmark() if summary is None else rename_edges_to_links(summary)
    source = "the benchmark that comes with graphgauge" if summary is None else "the given summary"
    kind = task_kind.replace("-", "_")
    own = table[table["task"] == kind]
    if not len(own):
        known = ", ".join(name for name in TASK_KINDS if name in set(table["task"]))
        raise UndefinedScore(
            f"{source} has no rows for {kind!r}. It has: {known or 'no kind of task'}."
        )
    wanted = replace(requirements or Requirements(), task_kind=kind)
    return replace(recommend(own, wanted)[0], source=source)
