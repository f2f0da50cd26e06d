"""The Evaluator: explanations of many targets by many explainers in, every metric out.

    results = Evaluator(model, preset="paper", seed=0).compare([InputXGradient(), GNNExplainer()],
    targets)

Targets, explainers, references, trials and steps are axes of the same tensors. Random curves of
edges, and those that the paper compares features with, are made once per target (and reference) and
serve every explainer; the twins of the feature side have random orders for each explanation. Seeds
derive from what a draw is for, so that no number depends on which other targets or explainers take
part, on the batch size or on the number of threads.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

import graphgauge
from graphgauge.core import (
    BadExplanation,
    Target,
    Xplanation,
    advance_progress,
    check_seed,
    derive_seed,
    package_versions,
    progress_bar,
    timed_phase,
)
from graphgauge.evaluation.curve_scoring import CurveScores
from graphgauge.evaluation.explanation_set import (
    ChosenClassExplainer,
    ExplanationRebuilder,
    ExplanationSet,
    explainer_seed,
    group_by_explainer,
    label_explainers,
    split_by_occurrence,
)
from graphgauge.evaluation.extra_metrics import choose_extra_metrics
from graphgauge.evaluation.feature_references import take_references
from graphgauge.evaluation.fingerprints import digest_of_model, digest_of_scores
from graphgauge.evaluation.ground_truth import GroundTruth
from graphgauge.evaluation.metric_value import NOT_PREDICTED, OK, MetricValue, missing_value
from graphgauge.evaluation.results import LocalExplanationKey, Results, ResultsSource, Row
from graphgauge.evaluation.sampling import sample_targets
from graphgauge.evaluation.score_trace import ScoreTrace, build_score_trace
from graphgauge.evaluation.settings import Settings, settings_from_preset
from graphgauge.evaluation.stability import measure_stability
from graphgauge.evaluation.target_batch import TargetBatch, warn_of_unmeasured_edges
from graphgauge.evaluation.timing import seconds_alone
from graphgauge.explainers import (
    BaseExplainer,
    OtherTaskExplainer,
    check_wrapped_model,
    count_classes,
    parse_labels,
    silence_missing_edge_warnings,
    warn_about_missing_edge_scores,
)
from graphgauge.metrics import Metric
from graphgauge.models import BaseModel, borrow_network, digest_of_network, model_identity
from graphgauge.perturbation import References, find_references

if TYPE_CHECKING:
    from graphgauge.narrative import Names, QualityVerdicts

_MOST_HEIGHTS = (
    2**25
)  #: heights of random curves held at a time; targets are judged in groups of so many
_TraceMakers = dict[tuple[str, Target, int, str], Callable[[], ScoreTrace]]
_EVALUATION_RECORD = (
    "evaluation"  #: where `Xplanation.metrics` keeps what is needed not to measure again
)


@dataclass(frozen=True, init=False)
class Evaluator:
    """Measures explanations of ``model``. Any setting can be given by name: ``Evaluator(model,
    edge_removal="drop", cap=50)``.

    ``task`` and ``name`` are labels: they are written into every row and change no number. Seeds
    derive from ``seed``, from what a draw is for, and from ``seed_scope``, where a benchmark says
    which of its tasks and networks is measured. ``metrics`` are metrics of your own, on curves or
    on scores.
    """

    model: BaseModel
    settings: Settings
    seed: int
    task: str
    name: str
    metrics: tuple[Metric[Any], ...]
    seed_scope: tuple[str, str]

    def __init__(
        self,
        model: BaseModel,
        preset: str = "paper",
        seed: int = 0,
        *,
        task: str = "",
        name: str = "",
        metrics: Sequence[Metric[Any]] = (),
        seed_scope: tuple[str, str] = ("", ""),
        **settings: Any,
    ) -> None:
        check_wrapped_model(model)
        chosen = settings_from_preset(preset, **{"edge_scope": model.edge_scope, **settings})
        values = {
            "model": model,
            "settings": chosen,
            "seed": check_seed(seed),
            "task": task,
            "name": name,
        }
        values |= {
            "metrics": choose_extra_metrics(metrics, model.task, chosen),
            "seed_scope": seed_scope,
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def compare(
        self,
        explainers: Any,
        targets: Any,
        *,
        label: Any = None,
        truth: Mapping[str, Any] | None = None,
    ) -> Results:
        """Explain ``targets`` with each explainer (one, a list, or a dictionary of names) and
        evaluate.

        ``label`` chooses the class that is explained and whose probability curves show, as in
        `explain`; by default the predicted one. ``truth`` holds masks of what truly matters,
        ``{"edge": mask, "node": mask, "feature": mask}``: how well the scores agree with them
        stands beside the other numbers (see `graphgauge.evaluation.ground_truth`).

        Under a name of its own an explainer draws random numbers of its own, so two that are random
        can be compared.
        """
        named = label_explainers(explainers)
        with self.model.session():
            asked = self.model.parse_targets(targets)
            chosen = parse_labels(self.model, asked, label)
            first, every = (
                ({}, {}) if chosen is None else ({"label": chosen[:1]}, {"label": chosen})
            )
            known = (
                None if truth is None else GroundTruth.from_masks(truth, self.model, list(asked))
            )
            warn_of_unmeasured_edges(self.model, self.settings)
            warn_about_missing_edge_scores(self.model, named.values())
            with (
                progress_bar(len(named) * len(asked) * 2 + len(asked) * 2, "compare"),
                silence_missing_edge_warnings(),
            ):
                entries = []
                for label, explainer in named.items():
                    seed = explainer_seed(label, explainer, self.seed)
                    with timed_phase("explaining"):
                        explainer.explain(
                            self.model, asked[:1], seed=seed, **first
                        )  # a first call's start is in nobody's clock
                        xs = explainer.explain(self.model, asked, seed=seed, **every)
                    advance_progress(len(asked))
                    entries += split_by_occurrence(label, explainer, xs, seed)
                return replace(
                    self.evaluate_sets(entries, known), source=self.source(entries, again=True)
                )

    def evaluate(
        self,
        xs: Xplanation | Iterable[Xplanation],
        *,
        check_network: bool = True,
        truth: Mapping[str, Any] | None = None,
    ) -> Results:
        """Score explanations, from `explain` or from elsewhere, and fill their ``metrics``.
        ``truth`` as in `compare`.

        Explanations of another network are refused, also where the same one was trained on;
        ``check_network=False`` scores them all the same. Those that do not say which network they
        explain (from PyG, for example) pass.
        """
        given = [xs] if isinstance(xs, Xplanation) else list(xs)
        self.check_explanations(given)
        if check_network:
            _check_networks(given, digest_of_network(self.model))
        known = (
            None
            if truth is None
            else GroundTruth.from_masks(truth, self.model, [x.target for x in given])
        )
        entries = group_by_explainer(given)
        warn_of_unmeasured_edges(self.model, self.settings)
        with (
            self.model.session(),
            progress_bar(sum(len(entry.xs) for entry in entries) + 2 * len(given), "evaluate"),
        ):
            return replace(
                self.evaluate_sets(entries, known), source=self.source(entries, again=False)
            )

    def sample(self, count: int, among: Any = None) -> list[Target]:
        """Targets spread over predicted classes and over how sure the model is; see
        `sample_targets`.
        """
        return sample_targets(self.model, count, among, derive_seed(self.seed, *self.seed_scope))

    def get_textual_explanation(
        self,
        x: Xplanation,
        names: "Names | Mapping[str, Any] | None" = None,
        language: str = "en",
        audience: str = "expert",
        top_k: int = 3,
        template: str | Path | None = None,
        *,
        order: Literal["signed", "magnitude"] | None = None,
        redact: bool | None = None,
        quality: "QualityVerdicts" = None,
        at_validation: bool = False,
        signed: bool | None = None,
        languages: str | Path | None = None,
    ) -> str:
        """What an explanation says about its prediction, as text.

        Args:
            x: The explanation.
            names: What things are called; what is missing is taken from the data.
            language: Code of the language.
            audience: "expert", "internal" or "affected person".
            top_k: How many features and connections are named.
            template: A shipped template by name ("paper-loan", "paper-template"), a text with
                Jinja's braces, or a path.
            order: How scores are ranked; the evaluator's setting by default.
            redact: Whether neighbours stay unnamed; by default for affected persons only.
            quality: ``{metric: (value, threshold, passed)}``, or statements on what failed.
            at_validation: Whether ``quality`` is what validation found of the method; the text then
                says that ``x`` itself was not measured.
            signed: Whether scores carry a direction; by default what the explainer says.
            languages: A folder with further languages.

        Returns:
            The text.
        """
        from graphgauge.narrative import textual_explanation

        return textual_explanation(
            self,
            x,
            names,
            language,
            audience,
            top_k,
            template,
            order=order,
            redact=redact,
            quality=quality,
            at_validation=at_validation,
            signed=signed,
            languages=languages,
        )

    @property
    def metric_names(self) -> list[str]:
        """The metrics that every explanation gets a row for, in the order of the rows."""
        curves = [
            *curve_metric_names(self.model.task, self.settings),
            *(metric.name for metric in self.metrics),
        ]
        names = [f"{side}_{name}" for side in self.settings.curve_sides for name in curves]
        return [*names, *_stability_metric_names(self.settings), "time", "time_batched"]

    def check_explanations(self, xs: Sequence[Any]) -> None:
        """Refuse what are not explanations of this model's data."""
        for x in xs:
            if not isinstance(x, Xplanation):
                raise BadExplanation(
                    f"evaluate needs explanations (gg.Xplanation), but got {type(x).__name__}."
                )
            if x.level != self.model.level:
                raise BadExplanation(
                    f"the model has {self.model.level} targets, but an explanation is of a {x.level}."
                )
            _check_explained_class(x, self.model)

    def source(self, entries: list[ExplanationSet], again: bool) -> ResultsSource:
        """Where single explanations come from later: made again (nothing large is kept), or those
        that were given.
        """
        chosen: dict[str, dict[tuple[Target, int], int]] = {entry.label: {} for entry in entries}
        for entry in entries:
            chosen[entry.label] |= {
                (target, entry.occurrence): label for target, label in entry.chosen.items()
            }
        explainers = {
            entry.label: ExplanationRebuilder(
                entry.explainer, self.seed_for(entry), chosen[entry.label]
            )
            for entry in entries
            if again and entry.explainer
        }
        found: dict[LocalExplanationKey, Callable[[], Xplanation]] = {}
        for entry in entries:
            for target, x in entry.xs.items():
                key, made = (entry.label, target, entry.occurrence), explainers.get(entry.label)
                found[key] = (
                    partial(_stored_explanation, x)
                    if made is None
                    else partial(made.explain_occurrence, self.model, target, entry.occurrence)
                )
        return ResultsSource(self, found, explainers)

    # --- how it is done ---------------------------------------------------------------------------

    def evaluate_sets(
        self, entries: list[ExplanationSet], truth: GroundTruth | None = None
    ) -> Results:
        """All metrics of all entries; what an explanation carries for these very settings is taken
        from it. Truth comes last.
        """
        known = {
            (k, t): self.stored_values(x)
            for k, entry in enumerate(entries)
            for t, x in entry.xs.items()
        }
        fresh = [
            replace(entry, xs={t: x for t, x in entry.xs.items() if known[k, t] is None})
            for k, entry in enumerate(entries)
        ]
        made = {
            "versions": package_versions(),
            "device": str(self.model.source.device),
            "network": self.model.record(),
        }
        made["identity"] = model_identity(self.model)
        chosen = Counter(label for entry in entries for label in entry.chosen.values())
        if chosen:
            made["chosen_classes"] = {
                str(label): chosen[label] for label in sorted(chosen)
            }  # how many explanations of each
        cells, stories = self.measure_sets(fresh)
        agreement = (
            truth.metric_values(self.model, entries, self.settings) if truth is not None else {}
        )
        if truth is not None:
            made["truth"] = truth.record()
        rows: list[Row] = []
        for k, entry in enumerate(entries):
            for target, x in entry.xs.items():
                old = known[k, target]
                own = old if old is not None else cells[k, target]
                known_truth = agreement.get((k, target), {})
                self.write_metrics(x, own, known_truth)
                rows += [
                    self.row(entry, x, metric, cell) for metric, cell in (own | known_truth).items()
                ]
        return Results(tuple(rows), self.settings, stories, made=made)

    def measure_sets(
        self, entries: list[ExplanationSet]
    ) -> tuple[dict[tuple[int, Target], dict[str, MetricValue]], _TraceMakers]:
        """Cells of every entry and target, and the stories behind them."""
        cells: dict[tuple[int, Target], dict[str, MetricValue]] = {
            (k, target): {} for k, entry in enumerate(entries) for target in entry.xs
        }
        stories: _TraceMakers = {}
        for classes, some in _split_by_class(entries):
            self.add_curves(some, classes, cells, stories)
        for k, entry in enumerate(entries):
            with timed_phase("stability"):
                self.add_stability(entry, k, cells)
            with timed_phase("timing"):
                self.add_time(entry, k, cells)
        return cells, stories

    def add_curves(
        self,
        entries: list[ExplanationSet],
        classes: dict[Target, int | None],
        cells: Any,
        stories: Any,
    ) -> None:
        """EC, pertinence and their twins, in groups of targets, of which these classes are
        explained (None: the predicted).
        """
        sides, targets = self.settings.curve_sides, list(classes)
        label = None
        if any(one is not None for one in classes.values()):
            label = parse_labels(
                self.model, self.model.parse_targets(targets), list(classes.values())
            )
        with timed_phase("feature_curves"):
            references = self.references(targets, label) if "feature" in sides else None
        cases = int(references.count().max()) if references is not None and len(references) else 1
        curves = max(
            self.settings.trials[1],
            self.settings.twin_trials,
            len(entries) * self.settings.feature_trials,
        )
        size = max(1, _MOST_HEIGHTS // (cases * curves * self.settings.cap))
        for start in range(0, len(targets), size):
            chosen = targets[start : start + size]
            part_of_label = None if label is None else label[start : start + size]
            group = TargetBatch.from_targets(
                self.model,
                self.settings,
                self.metrics,
                entries,
                chosen,
                self.seed_of,
                part_of_label,
            )
            own = (
                None
                if references is None
                else _slice_references(references, start, start + len(chosen))
            )
            for side in sides:
                with timed_phase(f"{side}_curves"):
                    found = (
                        group.score_edges()
                        if own is None or side == "edge"
                        else group.score_features(own)
                    )
                    self.write_curves(side, *found, entries, chosen, cells, stories)
                advance_progress(2 * len(chosen) // len(sides))

    def references(self, targets: list[Target], label: Tensor | None) -> References:
        """What features are substituted from; where values are to rise or fall, only what lies
        above or below.
        """
        found = find_references(self.model, targets, self.settings.medoids, label)
        side = {"up": 1, "down": -1}.get(self.settings.direction)
        return (
            found
            if side is None or self.model.task != "regression"
            else take_references(found, (found.kind == side).nonzero()[:, 0])
        )

    def write_curves(
        self,
        side: str,
        found: CurveScores | None,
        status: list[list[str]],
        entries: list[ExplanationSet],
        targets: list[Target],
        cells: Any,
        stories: Any,
    ) -> None:
        """One cell for each entry, target and metric of a side."""
        names = [
            *curve_metric_names(self.model.task, self.settings),
            *(metric.name for metric in self.metrics),
        ]
        for t, target in enumerate(targets):
            for e, entry in enumerate(entries):
                if target not in entry.xs:
                    continue
                why = status[t][e]
                if why or found is None:
                    cells[e, target].update(
                        {f"{side}_{name}": missing_value(why) for name in names}
                    )
                    continue
                own = {f"{side}_{name}": _build_metric_value(found, name, t, e) for name in names}
                cells[e, target].update(own)
                if own[f"{side}_ec"].status in (OK, NOT_PREDICTED):
                    key = (entry.label, target, entry.occurrence, side)
                    stories[key] = partial(
                        build_score_trace, found, side, entry.label, e, target, t
                    )

    def add_stability(self, entry: ExplanationSet, k: int, cells: Any) -> None:
        """Stability of both sides; only what can be run again has one."""
        if self.settings.stability == "none":
            return
        names = _stability_metric_names(self.settings)
        targets = list(entry.xs)
        runner = entry.runner
        if runner is None or isinstance(entry.explainer, OtherTaskExplainer):
            why = "no_explainer" if entry.explainer is None else "no_scores"
            for target in targets:
                cells[k, target].update(dict.fromkeys(names, missing_value(why)))
            return
        seed = derive_seed(self.seed_for(entry), *self.seed_scope, entry.occurrence)
        with borrow_network(self.model, runner.name):
            found = measure_stability(runner, self.model, targets, self.settings, seed)
        for target in targets:
            cells[k, target].update(found[target])

    def add_time(self, entry: ExplanationSet, k: int, cells: Any) -> None:
        """Seconds of one explanation alone, for the first few targets, and the share of the batch."""
        timed = list(entry.xs)[: self.settings.timed] if entry.occurrence == 0 else []
        found = (
            []
            if entry.runner is None
            else self.seconds_alone(entry.runner, timed, self.seed_for(entry))
        )
        seconds = dict(zip(timed, found, strict=False))
        for target, x in entry.xs.items():
            why = "no_explainer" if entry.explainer is None else "not_timed"
            cells[k, target]["time"] = (
                MetricValue(seconds[target]) if target in seconds else missing_value(why)
            )
            cells[k, target]["time_batched"] = (
                missing_value("no_explainer") if x.seconds is None else MetricValue(x.seconds)
            )

    def seconds_alone(
        self, explainer: BaseExplainer | ChosenClassExplainer, targets: list[Target], seed: int
    ) -> list[float]:
        """Seconds of one explanation alone; where stability was measured, the explainer has just
        been run.
        """
        with borrow_network(
            self.model, explainer.name
        ):  # once for all calls, so that looking after the network is not in their time
            return seconds_alone(
                explainer, self.model, targets, seed, is_warm=self.settings.stability != "none"
            )

    def row(self, entry: ExplanationSet, x: Xplanation, metric: str, cell: MetricValue) -> Row:
        """One row of the results."""
        return Row(
            task=self.task,
            model=self.name,
            explainer=entry.label,
            target=x.target,
            occurrence=entry.occurrence,
            metric=metric,
            cell=cell,
            seconds=x.seconds,
            seed=self.seed,
            settings=self.settings.digest,
            version=graphgauge.__version__,
        )

    # --- seeds, and what has been measured before -------------------------------------------------

    def seed_of(self, target: Target, *purpose: Any) -> int:
        """The seed of what is drawn for one target."""
        return derive_seed(self.seed, *self.seed_scope, target, *purpose)

    def seed_for(self, entry: ExplanationSet) -> int:
        """The seed that an entry's explainer is run with."""
        return self.seed if entry.seed is None else entry.seed

    def key(self, x: Xplanation) -> str:
        """What must be the same for a stored number to hold: settings, seed, explainer, network,
        data, scores.
        """
        names = f"{self.settings.digest}/{self.seed}/{'/'.join(self.seed_scope)}/{self.metrics}"
        names = f"{names}/{x.explainer}/{sorted(x.params.items())}" + (
            "" if x.label is None else f"/class {x.label}"
        )
        return f"{names}/{digest_of_model(self.model)}/{digest_of_scores(x)}"

    def stored_values(self, x: Xplanation) -> dict[str, MetricValue] | None:
        """What an explanation carries from an evaluation just like this one."""
        record = x.metrics.get(_EVALUATION_RECORD)
        if not isinstance(record, dict) or record.get("key") != self.key(x):
            return None
        return {name: MetricValue.from_record(cell) for name, cell in record["cells"].items()}

    def write_metrics(
        self,
        x: Xplanation,
        cells: dict[str, MetricValue],
        agreement: Mapping[str, MetricValue] | None = None,
    ) -> None:
        """Write the values into the explanation, and what is needed not to measure again; the truth
        may be another next time.
        """
        before = x.metrics.get(_EVALUATION_RECORD)
        stale = (
            {*before["cells"], *before.get("truth", ())}
            if isinstance(before, dict) and "cells" in before
            else set()
        )
        kept = {name: value for name, value in x.metrics.items() if name not in stale}
        x.metrics = {
            **kept,
            **{name: cell.value for name, cell in {**cells, **(agreement or {})}.items()},
        }
        x.metrics[_EVALUATION_RECORD] = {
            "key": self.key(x),
            "cells": {name: cell.record() for name, cell in cells.items()},
        }
        if agreement:
            x.metrics[_EVALUATION_RECORD]["truth"] = list(agreement)


def _check_networks(xs: Sequence[Xplanation], network: str) -> None:
    """Refuse explanations of another network than the one with this digest."""
    others = [x for x in xs if x.network not in ("", network)]
    if others:
        raise BadExplanation(
            f"{len(others)} of {len(xs)} explanations, the first of target {others[0].target}, explain another network "
            f"({others[0].network}) than this model's ({network}): it was trained on, converted or wrapped in another way. "
            "Explain again, or give check_network=False to score them on this network all the same."
        )


def _check_explained_class(x: Xplanation, model: BaseModel) -> None:
    """Refuse an explanation of a class that the network does not have."""
    if x.label is None:
        return
    if model.task == "regression":
        raise BadExplanation(
            f"the model predicts values, but the explanation of target {x.target} is of class {x.label}."
        )
    if x.label >= count_classes(model):
        raise BadExplanation(
            f"the explanation of target {x.target} is of class {x.label}, but the model's classes are 0..{count_classes(model) - 1}."
        )


def _split_by_class(
    entries: list[ExplanationSet],
) -> list[tuple[dict[Target, int | None], list[ExplanationSet]]]:
    """Entries such that each target is explained for one class, with these classes; one list where
    no target has two.
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


def _stored_explanation(x: Xplanation) -> Xplanation:
    """The explanation itself."""
    return x


# --- cells of curves ------------------------------------------------------------------------------


def curve_metric_names(task: str, settings: Settings) -> list[str]:
    """Names of the metrics of a side that come from curves."""
    twins = [
        "pertinence_tied",
        "pertinence_rank",
        "pertinence_p",
        *(["pertinence_abs"] if task == "regression" else []),
    ]
    return ["ec", "pertinence", *(twins if settings.twins else [])]


def _stability_metric_names(settings: Settings) -> list[str]:
    """Names of the metrics of repeated explanations, both sides."""
    if settings.stability == "none":
        return []
    forms = ("stability", "stability_corrected") if settings.twins else ("stability",)
    return [f"{side}_{form}" for side in ("feature", "edge") for form in forms]


def _build_metric_value(found: CurveScores, name: str, t: int, e: int) -> MetricValue:
    """The cell of one metric; without a value where it would have read a prediction that is no
    number.
    """
    value, cases = (
        float(found.values[name][t, e]),
        (found.side.target == t).nonzero()[:, 0].tolist(),
    )
    if value != value:
        return missing_value(found.gaps.get((name, t, e), "nan_prediction"))
    if name in found.levels:
        return MetricValue(value, per_level=tuple(found.levels[name][t, e].tolist()))
    if name == "ec" and not found.reading.is_predicted(t):
        return missing_value(NOT_PREDICTED)
    if name == "ec":
        per = tuple(float(found.per_case.ec[q, e]) for q in cases)
        least = found.draws[cases[per.index(min(per))], :, e].double()
        cell = MetricValue(value, flipped=bool(found.flipped[t, e]), per_reference=per)
        spread = float(least.std() / len(least) ** 0.5) if len(least) > 1 else None
        return cell if spread is None else replace(cell, draws=tuple(least.tolist()), error=spread)
    if name == "pertinence":
        per = tuple(float(found.score[q, e]) for q in cases)
        trials, stop = (
            tuple(int(found.trials[q, e]) for q in cases),
            tuple(found.reason[q][e] for q in cases),
        )
        return MetricValue(value, trials=trials, stop=stop, per_reference=per)
    return MetricValue(value)


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
