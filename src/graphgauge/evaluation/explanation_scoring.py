"""Every metric for sets of explanations: curves of both sides, stability, time.

Targets, explainers, references, trials and steps are axes of the same tensors. Random curves of
edges, and those that the paper compares features with, are made once per target (and reference) and
serve every explainer; the calibrated forms of features have random orders for each explanation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from torch import Tensor

from graphgauge.core import Target, UnknownName, derive_seed
from graphgauge.evaluation.curve_metrics import SideValues, stability_metric_names
from graphgauge.evaluation.explanation_set import ExplanationSet, explainer_key
from graphgauge.evaluation.feature_references import take_references
from graphgauge.evaluation.fingerprints import digest_of_scores
from graphgauge.evaluation.metric_value import NOT_PREDICTED, OK, MetricValue, missing_value
from graphgauge.evaluation.phases import EvaluationPhases
from graphgauge.evaluation.score_trace import ScoreTrace, build_score_trace
from graphgauge.evaluation.settings import Settings
from graphgauge.evaluation.stability import measure_stability
from graphgauge.evaluation.target_batch import TargetBatch
from graphgauge.evaluation.timing import REPEATS, seconds_alone
from graphgauge.explainers import OtherTaskExplainer, parse_labels
from graphgauge.metrics import AnyMetric
from graphgauge.models import BaseModel, borrow_network
from graphgauge.perturbation import References, find_references

#: heights of random curves held at a time; targets are measured in groups of so many
_MOST_HEIGHTS = 2**25

#: (number of the set, target) -> metric -> value
ValueTable: TypeAlias = dict[tuple[int, Target], dict[str, MetricValue]]
#: (explainer, target, occurrence, side) -> what makes the trace of its numbers
TraceMakers: TypeAlias = dict[tuple[str, Target, int, str], Callable[[], ScoreTrace]]


@dataclass(frozen=True)
class ExplanationScorer:
    """Measures sets of explanations of one network."""

    model: BaseModel
    settings: Settings
    metrics: tuple[AnyMetric, ...]  #: of each side
    seed: int
    seed_scope: tuple[str, str]

    def score_sets(
        self, entries: Sequence[ExplanationSet], phases: EvaluationPhases
    ) -> tuple[ValueTable, TraceMakers]:
        """The values of all sets and targets, and the traces behind them."""
        values: ValueTable = {
            (k, target): {} for k, entry in enumerate(entries) for target in entry.xs
        }
        traces: TraceMakers = {}
        for classes, some in _split_by_class(entries):
            self.add_curves(some, classes, values, traces, phases)
        for k, entry in enumerate(entries):
            own = [values[k, target] for target in entry.xs]
            repeated = phases.loads[entry.label].repeats(self.settings) * len(entry.xs)
            timed = self.settings.timed * REPEATS
            key = _kept_key([entry], list(entry.xs)) if phases.kept.folder else ""
            is_new = phases.measure(
                "stability",
                own,
                partial(self.add_stability, entry, k, values),
                key,
                entry.label,
                repeated,
            )
            # where stability was measured, the explainer has just been run
            is_warm = is_new and self.settings.stability != "none"
            add_time = partial(self.add_time, entry, k, values, is_warm)
            phases.measure("timing", own, add_time, key, entry.label, timed)
        return values, traces

    def add_curves(
        self,
        entries: Sequence[ExplanationSet],
        classes: dict[Target, int | None],
        values: ValueTable,
        traces: TraceMakers,
        phases: EvaluationPhases,
    ) -> None:
        """The metrics of curves, in groups of targets.

        Args:
            entries: The sets, with these targets only.
            classes: The explained class of each target; None: the predicted one.
            values: What is filled.
            traces: What is filled.
            phases: The phases of the call.
        """
        sides, targets = self.settings.curve_sides, list(classes)
        label = None
        if any(one is not None for one in classes.values()):
            parsed = self.model.parse_targets(targets)
            label = parse_labels(self.model, parsed, list(classes.values()))
        with phases.run("feature_curves"):
            references = self.references(targets, label) if "feature" in sides else None
        size = self.group_size(references, len(entries))
        for start in range(0, len(targets), size):
            chosen = targets[start : start + size]
            group = TargetBatch.from_targets(
                self.model,
                self.settings,
                self.metrics,
                list(entries),
                chosen,
                self.seed_of,
                None if label is None else label[start : start + size],
            )
            own = [
                values[e, target]
                for e, entry in enumerate(entries)
                for target in chosen
                if target in entry.xs
            ]
            key = _kept_key(entries, chosen) if phases.kept.folder else ""
            part = None
            if references is not None:
                part = _slice_references(references, start, start + len(chosen))
            for side in sides:
                score = partial(
                    self.score_group, side, group, part, entries, chosen, values, traces
                )
                if not phases.measure(f"{side}_curves", own, score, key, steps=len(chosen)):
                    self.add_later_traces(side, group, entries, chosen, values, traces)

    def score_group(
        self,
        side: str,
        group: TargetBatch,
        references: References | None,
        entries: Sequence[ExplanationSet],
        targets: list[Target],
        values: ValueTable,
        traces: TraceMakers,
    ) -> None:
        """Measure one side of a group of targets."""
        if references is None or side == "edge":
            found, status = group.score_edges()
        else:
            found, status = group.score_features(references)
        self.write_side(side, found, status, entries, targets, values, traces)

    def add_later_traces(
        self,
        side: str,
        group: TargetBatch,
        entries: Sequence[ExplanationSet],
        targets: list[Target],
        values: ValueTable,
        traces: TraceMakers,
    ) -> None:
        """Traces of values that an earlier call measured; their curves are measured when asked for.

        Args:
            side: "edge" or "feature".
            group: The targets and explanations.
            entries: The sets of these explanations.
            targets: The targets.
            values: The values by metric.
            traces: What is filled.
        """
        chosen = group.baseline.label

        def trace(e: int, t: int) -> ScoreTrace:
            target, label = targets[t], None if chosen is None else chosen[t : t + 1]
            with self.model.session():
                alone = TargetBatch.from_targets(
                    self.model,
                    self.settings,
                    self.metrics,
                    list(entries),
                    [target],
                    self.seed_of,
                    label,
                )
                found, _ = (
                    alone.score_edges()
                    if side == "edge"
                    else alone.score_features(self.references([target], label))
                )
            if found is None:
                raise UnknownName(f"there are no curves of {target}: it could not be measured.")
            return build_score_trace(found, side, entries[e].label, e, target, 0)

        for t, target in enumerate(targets):
            for e, entry in enumerate(entries):
                cell = values[e, target].get(f"{side}_ec") if target in entry.xs else None
                if cell is not None and cell.status in (OK, NOT_PREDICTED):
                    key = (entry.label, target, entry.occurrence, side)
                    traces[key] = partial(trace, e, t)

    def group_size(self, references: References | None, num_entries: int) -> int:
        """How many targets are measured at a time, so that their random curves fit."""
        cases = int(references.count().max()) if references is not None and len(references) else 1
        curves = max(
            self.settings.trials[1],
            self.settings.twin_trials,
            num_entries * self.settings.feature_trials,
        )
        return max(1, _MOST_HEIGHTS // (cases * curves * self.settings.cap))

    def references(self, targets: list[Target], label: Tensor | None) -> References:
        """What features are substituted from.

        Where values are to rise or fall, only what lies above or below.
        """
        found = find_references(self.model, targets, self.settings.medoids, label)
        side = {"up": 1, "down": -1}.get(self.settings.direction)
        if side is None or self.model.task != "regression":
            return found
        return take_references(found, (found.kind == side).nonzero()[:, 0])

    def write_side(
        self,
        side: str,
        found: SideValues | None,
        status: list[list[str]],
        entries: Sequence[ExplanationSet],
        targets: list[Target],
        values: ValueTable,
        traces: TraceMakers,
    ) -> None:
        """Write one value for each set, target and metric of a side."""
        for t, target in enumerate(targets):
            for e, entry in enumerate(entries):
                if target not in entry.xs:
                    continue
                own = {
                    f"{side}_{metric.name}": missing_value(status[t][e])
                    if found is None or status[t][e]
                    else found.values[e][metric.name][t]
                    for metric in self.metrics
                }
                values[e, target].update(own)
                if found is not None and own[f"{side}_ec"].status in (OK, NOT_PREDICTED):
                    key = (entry.label, target, entry.occurrence, side)
                    traces[key] = partial(build_score_trace, found, side, entry.label, e, target, t)

    def add_stability(self, entry: ExplanationSet, k: int, values: ValueTable) -> None:
        """Stability of both sides; only what can be run again has one."""
        names = stability_metric_names(self.settings)
        if not names:
            return
        targets = list(entry.xs)
        runner = entry.runner
        if runner is None or isinstance(entry.explainer, OtherTaskExplainer):
            why = "no_explainer" if entry.explainer is None else "no_scores"
            for target in targets:
                values[k, target].update(dict.fromkeys(names, missing_value(why)))
            return
        seed = derive_seed(self.seed_for(entry), *self.seed_scope, entry.occurrence)
        with borrow_network(self.model, runner.name):
            found = measure_stability(runner, self.model, targets, self.settings, seed)
        for target in targets:
            values[k, target].update(found[target])

    def add_time(
        self, entry: ExplanationSet, k: int, values: ValueTable, is_warm: bool = False
    ) -> None:
        """Add the seconds of one explanation alone, and its share of the batch.

        Only the first few targets are explained alone.

        Args:
            entry: The set.
            k: Its number.
            values: What is filled.
            is_warm: Whether the explainer has just been run.
        """
        timed = list(entry.xs)[: self.settings.timed] if entry.occurrence == 0 else []
        seconds: dict[Target, float] = {}
        if entry.runner is not None:
            # borrowed once for all calls, so that looking after the network is not in their time
            with borrow_network(self.model, entry.runner.name):
                found = seconds_alone(
                    entry.runner, self.model, timed, self.seed_for(entry), is_warm
                )
            seconds = dict(zip(timed, found, strict=True))
        why = "no_explainer" if entry.explainer is None else "not_timed"
        for target, x in entry.xs.items():
            own = values[k, target]
            own["time"] = MetricValue(seconds[target]) if target in seconds else missing_value(why)
            own["time_batched"] = (
                missing_value("no_explainer") if x.seconds is None else MetricValue(x.seconds)
            )

    def seed_of(self, target: Target, *purpose: object) -> int:
        """The seed of what is drawn for one target.

        Args:
            target: The target.
            purpose: What is drawn.
        """
        return derive_seed(self.seed, *self.seed_scope, target, *purpose)

    def seed_for(self, entry: ExplanationSet) -> int:
        """The seed that a set's explainer is run with."""
        return self.seed if entry.seed is None else entry.seed


def _split_by_class(
    entries: Sequence[ExplanationSet],
) -> list[tuple[dict[Target, int | None], list[ExplanationSet]]]:
    """Sets in which each target is explained for one class, with these classes.

    One part where no target has two.
    """
    classes: dict[Target, list[int | None]] = {}
    for entry in entries:
        for target, x in entry.xs.items():
            known = classes.setdefault(target, [])
            if x.label not in known:
                known.append(x.label)
    parts = []
    for number in range(max(map(len, classes.values()), default=0)):
        own = {target: known[number] for target, known in classes.items() if len(known) > number}
        some = [
            replace(entry, xs={t: x for t, x in entry.xs.items() if t in own and x.label == own[t]})
            for entry in entries
        ]
        parts.append((own, some))
    return parts


def _kept_key(entries: Sequence[ExplanationSet], targets: Sequence[Target]) -> str:
    """What kept values of these targets depend on, beside network and settings."""
    parts = [
        (
            entry.label,
            entry.occurrence,
            entry.seed,
            "" if entry.explainer is None else explainer_key(entry.explainer),
            [digest_of_scores(entry.xs[target]) for target in targets if target in entry.xs],
            [entry.xs[target].label for target in targets if target in entry.xs],
        )
        for entry in entries
    ]
    return str((parts, list(targets)))


def _slice_references(references: References, start: int, end: int) -> References:
    """The cases of targets start..end-1, renumbered from 0."""
    chosen = (references.target >= start) & (references.target < end)
    return References(
        end - start,
        references.target[chosen] - start,
        references.reference[chosen],
        references.kind[chosen],
        references.rank[chosen],
        references.graphs,
        references.graph[chosen],
    )
