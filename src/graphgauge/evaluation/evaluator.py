"""The Evaluator: explanations of many targets by many explainers in, every metric out.

    results = Evaluator(model, preset="paper", seed=0).compare([InputXGradient()], targets)

Seeds derive from what a draw is for, so that no number depends on which other targets or explainers
take part, on the batch size or on the number of threads.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from typing_extensions import Unpack

import graphgauge
from graphgauge.core import (
    BadExplanation,
    JsonObject,
    Target,
    Xplanation,
    check_seed,
    derive_seed,
    package_versions,
    timed_phase,
)
from graphgauge.evaluation.baseline_prediction import warn_of_flip_threshold
from graphgauge.evaluation.curve_metrics import choose_curve_metrics, stability_metric_names
from graphgauge.evaluation.explanation_scoring import ExplanationScorer, ValueTable
from graphgauge.evaluation.explanation_set import (
    ExplainersLike,
    ExplanationRebuilder,
    ExplanationSet,
    explainer_key,
    explainer_seed,
    group_by_explainer,
    label_explainers,
    split_by_occurrence,
)
from graphgauge.evaluation.fingerprints import digest_of_model, digest_of_scores
from graphgauge.evaluation.ground_truth import GroundTruth, TruthLike
from graphgauge.evaluation.kept_phases import KeptPhases
from graphgauge.evaluation.metric_value import MetricValue
from graphgauge.evaluation.phases import (
    EvaluationPhases,
    ExplainerLoad,
    evaluation_phases,
    explainer_loads,
)
from graphgauge.evaluation.result_row import LocalExplanationKey, Row
from graphgauge.evaluation.results import Results, ResultsSource
from graphgauge.evaluation.sampling import sample_targets
from graphgauge.evaluation.settings import (
    EdgeScope,
    Order,
    Preset,
    SettingChanges,
    Settings,
    settings_from_preset,
)
from graphgauge.evaluation.stored_values import read_stored_values, store_values
from graphgauge.evaluation.target_batch import warn_of_unmeasured_edges
from graphgauge.explainers import (
    LabelsLike,
    check_wrapped_model,
    count_classes,
    parse_labels,
    silence_missing_edge_warnings,
    warn_about_missing_edge_scores,
)
from graphgauge.metrics import AnyMetric
from graphgauge.models import BaseModel, digest_of_network, model_identity
from graphgauge.subgraphs import TargetsLike

if TYPE_CHECKING:
    from graphgauge.narrative import Names, QualityVerdicts


@dataclass(frozen=True, init=False)
class Evaluator:
    """Measures explanations of a network, and compares explainers.

    Any setting can be given by name: ``Evaluator(model, edge_removal="drop", cap=50)``.
    `graphgauge.evaluation.Settings` says what each of them means.

    Args:
        model: The wrapped network.
        preset: "paper": the paper's numbers, with the calibrated ones beside them; "calibrated":
            those under which a random explanation scores 0.5 (0 for stability) come first.
        seed: Random seed of everything that is drawn.
        task: Label that is written into every row; it changes no number.
        name: Label of the network; it changes no number either.
        metrics: Metrics of your own, on curves or on scores.
        seed_scope: Task and network, where a benchmark measures several with one seed.
        settings: Settings that differ from the preset.

    Raises:
        BadSetting: If a setting has a value that is not possible.
        UnknownName: If the preset or a setting does not exist.

    >>> evaluator = gg.Evaluator(model, seed=0, timed=1)
    >>> results = evaluator.compare([gg.InputXGradient(), gg.RandomExplainer()], [302, 510])
    >>> results.headline()["edge_ec"].to_dict()
    {'input_x_gradient': 1.5, 'random': 7.0}
    """

    model: BaseModel
    settings: Settings
    seed: int
    task: str
    name: str
    metrics: tuple[AnyMetric, ...]
    seed_scope: tuple[str, str]

    def __init__(
        self,
        model: BaseModel,
        preset: Preset = "paper",
        seed: int = 0,
        *,
        task: str = "",
        name: str = "",
        metrics: Sequence[AnyMetric] = (),
        seed_scope: tuple[str, str] = ("", ""),
        **settings: Unpack[SettingChanges],
    ) -> None:
        check_wrapped_model(model)
        if "edge_scope" not in settings:
            settings["edge_scope"] = cast(EdgeScope, model.edge_scope)
        chosen = settings_from_preset(preset, **settings)
        values = {
            "model": model,
            "settings": chosen,
            "seed": check_seed(seed),
            "task": task,
            "name": name,
            "metrics": tuple(metrics),
            "seed_scope": seed_scope,
        }
        choose_curve_metrics(model.task, chosen, metrics)  # refuses what is no metric of curves
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def compare(
        self,
        explainers: ExplainersLike,
        targets: TargetsLike,
        *,
        label: LabelsLike = None,
        truth: TruthLike | None = None,
        keep_in: str | os.PathLike[str] | None = None,
    ) -> Results:
        """Explain targets with each explainer, and measure the explanations.

        Under a name of its own an explainer draws random numbers of its own, so that two random
        ones can be compared.

        Args:
            explainers: One, a list, or a dictionary with the names that results show.
            targets: Node ids, pairs of node ids, or graph numbers.
            label: The class that is explained and whose probability curves show, as in `explain`;
                by default the predicted one.
            truth: Masks of what truly matters, ``{"edge": mask, "node": mask, "feature": mask}``,
                for all targets or for each; how well the scores agree with them stands beside the
                other numbers.
            keep_in: A folder for what is finished. A call that was stopped (Ctrl-C, an error, a
                lost machine) continues from it when it is made again: explanations of an
                explainer, curves, and an explainer's stability and time are kept as soon as they
                are complete. The results have the same bits as without a stop. The folder can be
                removed once there are results.

        Returns:
            One row for each explanation and metric.

        Raises:
            BadTarget: If a target is none.
            BadSetting: If an explainer, label or truth is none.
            BadFile: If the folder cannot be written to.
            ChangedModel: If an explainer changed the network.
        """
        named = label_explainers(explainers)
        with self.model.session():
            parsed = self.model.parse_targets(targets)
            classes = parse_labels(self.model, parsed, label)
            first, every = (
                ({}, {}) if classes is None else ({"label": classes[:1]}, {"label": classes})
            )
            known = (
                None if truth is None else GroundTruth.from_masks(truth, self.model, list(parsed))
            )
            warn_of_unmeasured_edges(self.model, self.settings)
            warn_of_flip_threshold(self.model, self.settings)
            warn_about_missing_edge_scores(self.model, named.values())
            loads = {
                name: ExplainerLoad(explainer.deterministic, len(parsed))
                for name, explainer in named.items()
            }
            asked = [] if classes is None else classes.tolist()
            kept = self._kept_phases(keep_in, list(parsed), asked)
            with (
                evaluation_phases(self.settings, loads, kept) as phases,
                silence_missing_edge_warnings(),
            ):
                entries = []
                for name, explainer in named.items():
                    seed = explainer_seed(name, explainer, self.seed)
                    key = f"{name}/{explainer_key(explainer)}/{seed}"
                    known_xs = kept.read_explanations(key)
                    if known_xs is not None:
                        phases.skip("explaining", name, len(parsed) + 1)
                        entries += split_by_occurrence(name, explainer, known_xs, seed)
                        continue
                    with phases.run("explaining", name, len(parsed) + 1):
                        start = time.perf_counter()
                        # the start of a first call is in nobody's clock
                        explainer.explain(self.model, parsed[:1], seed=seed, **first)
                        middle = time.perf_counter()
                        xs = explainer.explain(self.model, parsed, seed=seed, **every)
                        end = time.perf_counter()
                        kept.write_explanations(key, explainer, xs)
                    phases.estimate_from(name, middle - start, end - middle)
                    entries += split_by_occurrence(name, explainer, xs, seed)
                return self._score(entries, known, phases, is_repeatable=True)

    def compare_times(self, explainers: ExplainersLike, targets: TargetsLike) -> Results:
        """Measure only how long explanations take: alone (``time``) and in a batch.

        Args:
            explainers: As in `compare`.
            targets: As in `compare`; the first ``timed`` of them are explained alone.

        Returns:
            Two rows for each explanation: "time" and "time_batched".

        >>> times = gg.Evaluator(model, timed=1).compare_times(gg.Saliency(), [302])
        >>> [row.metric for row in times.rows]
        ['time', 'time_batched']
        """
        rows: list[Row] = []
        made: list[ExplanationSet] = []
        with self.model.session():
            parsed = self.model.parse_targets(targets)
            for name, explainer in label_explainers(explainers).items():
                seed = explainer_seed(name, explainer, self.seed)
                with timed_phase("explaining"):
                    explainer.explain(self.model, parsed[:1], seed=seed)
                    xs = explainer.explain(self.model, parsed, seed=seed)
                for entry in split_by_occurrence(name, explainer, xs, seed):
                    values: ValueTable = {(0, target): {} for target in entry.xs}
                    with timed_phase("timing"):
                        self.scorer.add_time(entry, 0, values, is_warm=True)
                    rows += [
                        self._row(entry, x, metric, value)
                        for target, x in entry.xs.items()
                        for metric, value in values[0, target].items()
                    ]
                    made.append(entry)
        return Results(tuple(rows), self.settings, {}, made=self._origin(made))

    def evaluate(
        self,
        xs: Xplanation | Iterable[Xplanation],
        *,
        check_network: bool = True,
        truth: TruthLike | None = None,
    ) -> Results:
        """Measure explanations, from `explain` or from elsewhere, and fill their ``metrics``.

        Args:
            xs: One explanation or several.
            check_network: Whether explanations of another network are refused, also where the same
                one was trained on. Those that do not say which network they explain (from PyG, for
                example) pass.
            truth: As in `compare`.

        Returns:
            One row for each explanation and metric.

        Raises:
            BadExplanation: If one is no explanation of this model's data.

        >>> xs = gg.Saliency().explain(model, [302])
        >>> gg.Evaluator(model, timed=0).evaluate(xs).values("edge_ec").tolist()
        [7.0]
        """
        given = [xs] if isinstance(xs, Xplanation) else list(xs)
        self.check_explanations(given)
        if check_network:
            _check_networks(given, digest_of_network(self.model))
        targets = [x.target for x in given]
        known = None if truth is None else GroundTruth.from_masks(truth, self.model, targets)
        entries = group_by_explainer(given)
        warn_of_unmeasured_edges(self.model, self.settings)
        loads = explainer_loads(entries)
        with self.model.session():
            warn_of_flip_threshold(self.model, self.settings)
            with evaluation_phases(self.settings, loads) as phases:
                return self._score(entries, known, phases, is_repeatable=False)

    def sample(self, count: int, among: TargetsLike | None = None) -> list[Target]:
        """Draw targets, spread over predicted classes and over how sure the model is.

        Args:
            count: How many; all if there are fewer.
            among: Only these; by default the population of the model.

        Returns:
            The targets, the same for the same seed.

        >>> len(gg.Evaluator(model).sample(5))
        5
        """
        return sample_targets(self.model, count, among, derive_seed(self.seed, *self.seed_scope))

    def get_textual_explanation(
        self,
        x: Xplanation,
        names: "Names | Mapping[str, object] | None" = None,
        language: str = "en",
        audience: str = "expert",
        top_k: int = 3,
        template: str | Path | None = None,
        *,
        order: Order | None = None,
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
        names = [
            f"{side}_{metric.name}"
            for side in self.settings.curve_sides
            for metric in self.curve_metrics
        ]
        return [*names, *stability_metric_names(self.settings), "time", "time_batched"]

    @property
    def curve_metrics(self) -> tuple[AnyMetric, ...]:
        """The metrics of each side: those that the settings ask for, then ``metrics``."""
        return choose_curve_metrics(self.model.task, self.settings, self.metrics)

    @property
    def scorer(self) -> ExplanationScorer:
        """What measures sets of explanations."""
        return ExplanationScorer(
            self.model, self.settings, self.curve_metrics, self.seed, self.seed_scope
        )

    def check_explanations(self, xs: Sequence[object]) -> None:
        """Raise BadExplanation unless all are explanations of this model's data.

        Args:
            xs: What should be explanations.
        """
        for x in xs:
            if not isinstance(x, Xplanation):
                raise BadExplanation(
                    f"evaluate needs explanations (gg.Xplanation), but got {type(x).__name__}."
                )
            if x.level != self.model.level:
                raise BadExplanation(
                    f"the model has {self.model.level} targets, but an explanation is of a "
                    f"{x.level}."
                )
            _check_explained_class(x, self.model)

    def seed_of(self, target: Target, *purpose: object) -> int:
        """The seed of what is drawn for one target.

        Args:
            target: The target.
            purpose: What is drawn.
        """
        return self.scorer.seed_of(target, *purpose)

    def stored_values(self, x: Xplanation) -> dict[str, MetricValue] | None:
        """What an explanation carries from an evaluation just like this one; None without one.

        Args:
            x: The explanation.
        """
        return read_stored_values(x, self._key(x))

    def write_metrics(
        self,
        x: Xplanation,
        cells: Mapping[str, MetricValue],
        agreement: Mapping[str, MetricValue] | None = None,
    ) -> None:
        """Write values into an explanation's ``metrics``, so that they are not measured again.

        Args:
            x: The explanation.
            cells: Values by metric.
            agreement: Those that depend on a known truth, which are measured each time.
        """
        store_values(x, self._key(x), cells, agreement)

    def _key(self, x: Xplanation) -> str:
        """What must be the same for a stored number to hold."""
        label = "" if x.label is None else f"/class {x.label}"
        parts = [
            self.settings.digest,
            self.seed,
            "/".join(self.seed_scope),
            tuple(m for m in self.curve_metrics if m.role == "extra" or m in self.metrics),
            x.explainer,
            f"{sorted(x.params.items())}{label}",
            digest_of_model(self.model),
            digest_of_scores(x),
        ]
        return "/".join(map(str, parts))

    def _kept_phases(
        self,
        folder: str | os.PathLike[str] | None,
        targets: list[Target],
        classes: list[int],
    ) -> KeptPhases:
        """What an earlier call just like this one has finished."""
        if folder is None:
            return KeptPhases()
        return KeptPhases.in_folder(
            folder,
            self.settings.digest,
            self.seed,
            "/".join(self.seed_scope),
            self.curve_metrics,
            digest_of_model(self.model),
            self.model.record(),
            targets,
            classes,
        )

    def _score(
        self,
        entries: list[ExplanationSet],
        truth: GroundTruth | None,
        phases: EvaluationPhases,
        is_repeatable: bool,
    ) -> Results:
        """All metrics of all sets; values that an explanation carries are taken from it."""
        known = {
            (k, t): self.stored_values(x)
            for k, entry in enumerate(entries)
            for t, x in entry.xs.items()
        }
        fresh = [
            replace(entry, xs={t: x for t, x in entry.xs.items() if known[k, t] is None})
            for k, entry in enumerate(entries)
        ]
        made = self._origin(entries)
        values, traces = self.scorer.score_sets(fresh, phases)
        agreement = {}
        if truth is not None:
            agreement = truth.metric_values(self.model, entries, self.settings)
            made["truth"] = truth.record()
        rows: list[Row] = []
        for k, entry in enumerate(entries):
            for target, x in entry.xs.items():
                own = known[k, target] or values[k, target]
                known_truth = agreement.get((k, target), {})
                self.write_metrics(x, own, known_truth)
                rows += [
                    self._row(entry, x, metric, value)
                    for metric, value in {**own, **known_truth}.items()
                ]
        source = self._source(entries, is_repeatable)
        return Results(
            tuple(rows),
            self.settings,
            traces,
            source=source,
            made=made,
            phase_seconds=phases.seconds,
        )

    def _origin(self, entries: Sequence[ExplanationSet]) -> JsonObject:
        """With which versions, on which device, and how the network was treated."""
        made: JsonObject = {
            "versions": package_versions(),
            "device": str(self.model.source.device),
            "network": self.model.record(),
            "identity": model_identity(self.model),
        }
        chosen = Counter(label for entry in entries for label in entry.chosen.values())
        if chosen:  # how many explanations of each class
            made["chosen_classes"] = {str(label): chosen[label] for label in sorted(chosen)}
        return made

    def _source(self, entries: Sequence[ExplanationSet], is_repeatable: bool) -> ResultsSource:
        """Where single explanations come from later: made again, or those that were given."""
        chosen: dict[str, dict[tuple[Target, int], int]] = {entry.label: {} for entry in entries}
        for entry in entries:
            chosen[entry.label] |= {
                (target, entry.occurrence): label for target, label in entry.chosen.items()
            }
        explainers = {
            entry.label: ExplanationRebuilder(
                entry.explainer, self.scorer.seed_for(entry), chosen[entry.label]
            )
            for entry in entries
            if is_repeatable and entry.explainer
        }
        found: dict[LocalExplanationKey, Callable[[], Xplanation]] = {}
        for entry in entries:
            for target, x in entry.xs.items():
                key, rebuilder = (
                    (entry.label, target, entry.occurrence),
                    explainers.get(entry.label),
                )
                found[key] = (
                    partial(_stored_explanation, x)
                    if rebuilder is None
                    else partial(rebuilder.explain_occurrence, self.model, target, entry.occurrence)
                )
        return ResultsSource(self, found, explainers)

    def _row(self, entry: ExplanationSet, x: Xplanation, metric: str, cell: MetricValue) -> Row:
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


def _check_networks(xs: Sequence[Xplanation], network: str) -> None:
    """Refuse explanations of another network than the one with this digest."""
    others = [x for x in xs if x.network not in ("", network)]
    if others:
        raise BadExplanation(
            f"{len(others)} of {len(xs)} explanations, the first of target {others[0].target}, "
            f"explain another network ({others[0].network}) than this model's ({network}): it was "
            "trained on, converted or wrapped in another way. Explain again, or give "
            "check_network=False to score them on this network all the same."
        )


def _check_explained_class(x: Xplanation, model: BaseModel) -> None:
    """Refuse an explanation of a class that the network does not have."""
    if x.label is None:
        return
    if model.task == "regression":
        raise BadExplanation(
            f"the model predicts values, but the explanation of target {x.target} is of class "
            f"{x.label}."
        )
    if x.label >= count_classes(model):
        raise BadExplanation(
            f"the explanation of target {x.target} is of class {x.label}, but the model's classes "
            f"are 0..{count_classes(model) - 1}."
        )


def _stored_explanation(x: Xplanation) -> Xplanation:
    """The explanation itself."""
    return x
