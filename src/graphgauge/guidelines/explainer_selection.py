"""Select an explainer in steps: verdicts, faithfulness, stability, the paper's hierarchy."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from graphgauge.core import FAIL, Verdict, dominates
from graphgauge.guidelines.aggregation import AggregatedScores, Subject
from graphgauge.guidelines.explainer_verdicts import (
    CONTRADICTED,
    NO_BETTER_THAN_RANDOM,
    TOO_FEW_TARGETS,
    WORSE_THAN_RANDOM,
    judge_mean,
)
from graphgauge.guidelines.paired_comparisons import PairedComparison, compare_explainers
from graphgauge.guidelines.reference_data import hierarchy_rank, load_guideline, metric_family
from graphgauge.guidelines.requirements import Requirements

HeadlineMeans = dict[str, float]  #: rounded means by metric
FAITHFULNESS = ("pertinence", "ec")  #: families of metrics that are compared first
STABILITY = ("stability",)


@dataclass(frozen=True)
class ExplainerSelection:
    """The explainers of one task that remain after each step.

    ``subjects`` are in tie-breaking order; ``verdicts`` and ``means`` are by explainer too.
    """

    scores: AggregatedScores
    subjects: dict[str, Subject]
    verdicts: dict[str, list[Verdict]]
    means: dict[str, HeadlineMeans]

    @staticmethod
    def from_scores(
        scores: AggregatedScores, task: str, requirements: Requirements
    ) -> "ExplainerSelection":
        """Judge all explainers of a task that have a quality metric, except the baseline."""
        subjects = {
            subject[2]: subject
            for subject in scores.subjects(task)
            if subject[2] != requirements.baseline
        }
        means = {name: _headline_means(scores, subject) for name, subject in subjects.items()}
        means = {name: own for name, own in means.items() if any(key != "time" for key in own)}
        order = sorted(means, key=lambda name: tie_break_key(name, means[name]))
        verdicts = {
            name: [
                judge_mean(scores, subjects[name], metric, requirements)
                for metric in scores.judged_metrics()
            ]
            for name in means
        }
        return ExplainerSelection(scores, {name: subjects[name] for name in order}, verdicts, means)

    # --- verdicts ---------------------------------------------------------------------------------

    def failed(self, name: str) -> list[Verdict]:
        """Return the verdicts that an explainer fails."""
        return [verdict for verdict in self.verdicts[name] if verdict.outcome == FAIL]

    def has_few_targets(self, name: str) -> bool:
        """Whether verdicts on an explainer are undecided because there are too few targets."""
        return any(verdict.status == TOO_FEW_TARGETS for verdict in self.verdicts[name])

    def tier(self, name: str) -> int:
        """Return how much speaks against an explainer.

        0: no verdict; 1: nothing shows that some side is better than random; 2: it misses a
        threshold; 3: some measure is clearly worse than random.
        """
        failed = self.failed(name)
        if any(verdict.status in (WORSE_THAN_RANDOM, CONTRADICTED) for verdict in failed):
            return 3
        if failed:
            return 2
        return int(any(each.status == NO_BETTER_THAN_RANDOM for each in self.verdicts[name]))

    # --- steps ------------------------------------------------------------------------------------

    @property
    def chosen(self) -> str:
        """The recommended explainer."""
        return self.finalists[0]

    @cached_property
    def viable(self) -> list[str]:
        """The explainers of the best tier."""
        best = min(map(self.tier, self.subjects))
        return [name for name in self.subjects if self.tier(name) == best]

    @cached_property
    def faithful(self) -> list[str]:
        """The viable explainers that are equally faithful, and more so than the others."""
        return self._unbeaten(self.viable, FAITHFULNESS)

    @cached_property
    def finalists(self) -> list[str]:
        """The faithful explainers that are equally stable; the first one is chosen."""
        return self._unbeaten(self.faithful, STABILITY)

    def _unbeaten(self, names: list[str], families: tuple[str, ...]) -> list[str]:
        """Return the explainers that no other one beats, of these the most frequent winners."""
        left = [
            name for name in names if not any(self.beats(other, name, families) for other in names)
        ] or names
        wins = {
            name: sum(each.sign for other in left for each in self.compare(name, other, families))
            for name in left
        }
        return [name for name in left if wins[name] == max(wins.values())]

    def beats(self, first: str, second: str, families: tuple[str, ...]) -> bool:
        """Whether the first explainer is clearly better in some measure, and worse in none."""
        signs = np.array([each.sign for each in self.compare(first, second, families)], dtype=float)
        return bool(dominates(signs, np.zeros_like(signs)))

    def compare(self, first: str, second: str, families: tuple[str, ...]) -> list[PairedComparison]:
        """Compare two explainers in those metrics of some families that both have."""
        if first == second:
            return []
        comparisons = [
            compare_explainers(self.scores, self.subjects[first], self.subjects[second], metric)
            for metric in self.scores.judged_metrics()
            if metric_family(metric) in families
        ]
        return [each for each in comparisons if each is not None]


def tie_break_key(name: str, means: HeadlineMeans) -> tuple[int, float, str]:
    """Return what breaks ties: the rank in the paper's hierarchy, then time, then the name."""
    return hierarchy_rank(name), means.get("time", float("inf")), name


def _headline_means(scores: AggregatedScores, subject: Subject) -> HeadlineMeans:
    """Return the means that are compared, rounded as they are printed."""
    digits = load_guideline("rules")["comparison"]["digits"]
    means = {metric: scores.get(subject, metric) for metric in scores.judged_metrics()}
    return {
        metric: round(score.mean, digits[metric_family(metric)])
        for metric, score in means.items()
        if score is not None and score.mean is not None
    }
