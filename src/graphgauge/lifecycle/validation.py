"""Validation (the paper's phase 2): measure a shortlist on one's own data, and decide.

1. shortlist   from a benchmark; explainers that are named take its place
2. measure     every trial on 100 targets or more, spread over classes and confidence, and once more
               with the settings for production
3. compare     with the thresholds, with the benchmark, and both measurements with each other
4. choose      by verdicts, faithfulness, stability and hierarchy (`guidelines.recommend`)
5. decide      a `Decision` with digests, numbers, warnings, an expiry date, and a signature
"""

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from graphgauge.core import (
    FAIL,
    UNDECIDED,
    WARN,
    BadFile,
    BadSetting,
    JsonObject,
    Target,
    package_versions,
)
from graphgauge.evaluation import Evaluator, ModelAccuracy, Results, label_explainers
from graphgauge.explainers import BaseExplainer, find_explainer
from graphgauge.guidelines import (
    CheckAnswer,
    Finding,
    Recommendation,
    Requirements,
    check,
    diagnose,
    load_guideline,
    recommend,
)
from graphgauge.lifecycle.assessment import split_usable_explainers
from graphgauge.lifecycle.benchmark_comparison import BenchmarkComparison, compare_with_benchmark
from graphgauge.lifecycle.decision import (
    DECISION_FILE,
    DEFAULT_DAYS,
    Decision,
    expiry_time,
    format_time,
)
from graphgauge.lifecycle.digests import digest_of_results
from graphgauge.lifecycle.early_stop_cost import (
    TradeOff,
    compare_with_timing,
    exhaustive_settings,
    measure_trade_off,
    production_settings,
    with_settings,
)
from graphgauge.lifecycle.run_folder import PRODUCTION_FOLDER, VALIDATION_PAGE, clear_folder
from graphgauge.lifecycle.shortlist import Shortlist, build_shortlist, list_named_explainers
from graphgauge.models import BaseModel, digest_of_data, digest_of_network
from graphgauge.narrative import NamesLike, check_names_fit_model, complete_names

_Explainers = BaseExplainer | Iterable[BaseExplainer] | Mapping[str, BaseExplainer]
#: called with the finished validation and the folder of its files
_ValidationCallback = Callable[["Validation", Path], object]


@dataclass(frozen=True)
class SignOff:
    """Who signs the decision, how long it holds, and how good the network is at its task.

    Args:
        signed_by: Name of the person who signs; '': nobody yet.
        days: How many days the decision holds.
        accuracy: A share such as 0.81, or see `ModelAccuracy`; None: measured on the labels in
            the data, if there are any.
        now: Time of the decision.
    """

    signed_by: str = ""
    days: int = DEFAULT_DAYS
    accuracy: Any = None
    now: datetime = field(default_factory=lambda: datetime.now(timezone.utc))


@dataclass(frozen=True)
class Validation:
    """Both measurements, and the conclusions."""

    results: Results  #: every trial
    production: Results  #: as production would measure
    recommendation: Recommendation
    check: CheckAnswer  #: of the chosen explainer
    comparison: tuple[BenchmarkComparison, ...]
    trade_off: TradeOff
    findings: tuple[Finding, ...]
    left_out: Mapping[str, str]  #: explainers that cannot be run on this network, and why
    decision: Decision
    names: NamesLike = None  #: of features, nodes and classes, for the examples that are kept

    def save(
        self,
        folder: str | Path,
        callbacks: Sequence[_ValidationCallback] = (),
        *,
        replace: bool = False,
    ) -> Path:
        """Write rows, settings, the decision and a page to read, then call the callbacks.

        Args:
            folder: Where to write.
            callbacks: Called with the validation and the folder, such as `Tracker(uri).validation`.
            replace: Whether to take the place of an earlier run in the folder; an earlier one that
                somebody signed moves to ``earlier/``.

        Returns:
            The folder.

        Raises:
            BadFile: The folder holds a run and ``replace`` is False, or it cannot be written to.
        """
        from graphgauge.lifecycle.documents import validation_page

        place = clear_folder(folder, replace)
        self.results.save(place, self.names)
        self.production.save(place / PRODUCTION_FOLDER, self.names)
        self.decision.write(place / DECISION_FILE)
        try:
            (place / VALIDATION_PAGE).write_text(validation_page(self), encoding="utf-8")
        except OSError as error:
            raise BadFile(f"{place / VALIDATION_PAGE} could not be written: {error}.") from error
        for callback in callbacks:
            callback(self, place)
        return place


def validate(
    evaluator: Evaluator,
    targets: Iterable[Target],
    explainers: _Explainers | None = None,
    requirements: Requirements | None = None,
    terms: SignOff | None = None,
    names: NamesLike = None,
) -> Validation:
    """Measure explainers on one's own data, choose one of them, and write down why.

    Args:
        evaluator: What measures, with the model. Each explainer is measured twice: with every
            trial, and with the settings for production.
        targets: What is explained, such as ``evaluator.sample(100)``.
        explainers: The candidates; None: the benchmark's shortlist. The baseline is measured too.
        requirements: Thresholds; default: the paper's.
        terms: Who signs, and how long the decision holds; default: unsigned.
        names: What features, nodes and classes are called in the examples that are kept.

    Returns:
        Both measurements and the decision; ``.save(folder)`` writes them.

    Raises:
        BadSetting: There is no target, or no explainer besides the baseline, or ``requirements``
            are for another kind of task.
        BadModel: No explainer can be run on the network.
    """
    model, agreed = evaluator.model, terms or SignOff()
    check_names_fit_model(complete_names(evaluator, names), model)
    wanted = _complete_requirements(requirements or Requirements(), model)
    named, listed = _choose_candidates(explainers, wanted)
    asked = list(targets)
    _check_candidates(named, asked, wanted)
    possible, left_out = split_usable_explainers(named, model, asked[0])
    candidates = _with_baseline(possible, wanted)
    stated = ModelAccuracy.from_value(agreed.accuracy)
    every, short = _measure_both_ways(evaluator, candidates, asked)
    every = every[0].with_accuracy(stated), every[1]
    (recommendation,) = recommend(every[0], wanted)  # one network on one task
    cost = measure_trade_off(every, short, recommendation.chosen, wanted)
    found = Validation(
        results=every[0],
        production=short[0],
        recommendation=recommendation,
        check=check(every[0], wanted, [recommendation.chosen]),
        comparison=tuple(compare_with_benchmark(every[0], model, wanted)),
        trade_off=cost,
        findings=tuple(diagnose(every[0], wanted)),
        left_out=left_out,
        decision=_blank_decision(evaluator, candidates[recommendation.chosen], wanted, agreed),
        names=names,
    )
    return replace(found, decision=_complete_decision(found, listed))


def _complete_requirements(requirements: Requirements, model: BaseModel) -> Requirements:
    """Complete the requirements by what the model knows: kind of task and number of features."""
    kind, size = f"{model.level}_{model.task}", model.source.x.size(1)
    given = requirements.task_kind
    if given is not None and given != kind:
        raise BadSetting(
            f"the requirements are for {given}, but the model is for {kind}: leave task_kind out."
        )
    return replace(requirements, task_kind=kind, num_features=requirements.num_features or size)


def _choose_candidates(
    explainers: _Explainers | None, wanted: Requirements
) -> tuple[dict[str, BaseExplainer], Shortlist]:
    """Return the explainers to measure, and the list they come from."""
    kind = str(wanted.task_kind)
    if explainers is None:
        listed = build_shortlist(kind, wanted)
        return {name: find_explainer(name) for name in listed.names}, listed
    named = label_explainers(explainers)
    return named, list_named_explainers(named, kind)


def _check_candidates(
    named: Mapping[str, BaseExplainer], targets: Sequence[Target], wanted: Requirements
) -> None:
    """Raise `BadSetting` if there is nothing to validate."""
    if not [name for name in named if name != wanted.baseline]:
        raise BadSetting(
            f"validate needs an explainer besides {wanted.baseline!r}: "
            "name one, or none for the shortlist."
        )
    if not targets:
        raise BadSetting(
            "validate needs targets, but there is none: `evaluator.sample(100)` draws some."
        )


def _with_baseline(
    candidates: Mapping[str, BaseExplainer], wanted: Requirements
) -> dict[str, BaseExplainer]:
    """Add the random explainer, which shows what chance reaches, to the candidates."""
    return {
        **candidates,
        **({} if wanted.baseline in candidates else {wanted.baseline: find_explainer("random")}),
    }


_TimedResults = tuple[Results, float]


def _measure_both_ways(
    evaluator: Evaluator, candidates: Mapping[str, BaseExplainer], targets: list[Target]
) -> tuple[_TimedResults, _TimedResults]:
    """Measure with every trial, and as production would, after a warm-up on one target."""
    settings = evaluator.settings
    every, short = (
        with_settings(evaluator, own)
        for own in (exhaustive_settings(settings), production_settings(settings))
    )
    short.compare(candidates, targets[:1])
    return compare_with_timing(every, candidates, targets), compare_with_timing(
        short, candidates, targets
    )


# --- the decision ---------------------------------------------------------------------------------


def _blank_decision(
    evaluator: Evaluator, explainer: BaseExplainer, wanted: Requirements, terms: SignOff
) -> Decision:
    """Build a decision with what is known before the numbers are read."""
    model = evaluator.model
    unsigned = Decision(
        explainer=explainer.name,
        parameters=dict(explainer.params),
        label="",
        seed=evaluator.seed,
        settings={},
        production={},
        requirements=wanted.record(),
        network=digest_of_network(model),
        data=digest_of_data(model),
        description=_describe_model(model),
        reason="",
        verdicts=(),
        targets=0,
        rows="",
        consultation={},
        trade_off={},
        comparison=(),
        warnings=(),
        versions={**package_versions(), "machine": platform.machine()},
        made=format_time(terms.now),
        expires=expiry_time(terms.now, terms.days),
    )
    return unsigned.sign(terms.signed_by, terms.now) if terms.signed_by else unsigned


def _complete_decision(found: Validation, listed: Shortlist) -> Decision:
    """Complete the decision with the numbers."""
    settings, cost = found.results.settings, found.trade_off
    return replace(
        found.decision,
        label=found.recommendation.chosen,
        settings=settings.record(),
        production=(found.production.settings if cost.is_accepted else settings).record(),
        reason=found.recommendation.reason,
        verdicts=tuple(verdict.record() for verdict in found.check.verdicts),
        targets=len({row.target for row in found.results.rows}),
        rows=digest_of_results(found.results),
        consultation=listed.record(),
        trade_off=cost.record(),
        comparison=tuple(line.record() for line in found.comparison),
        warnings=tuple(_collect_warnings(found)),
        accuracy={} if found.results.accuracy is None else found.results.accuracy.record(),
    )


def _describe_model(model: BaseModel) -> JsonObject:
    """Describe the kind and size of model and data."""
    source = model.source
    sizes = {"nodes": source.num_nodes, "edges": source.num_edges, "features": source.x.size(1)}
    return {
        "wrapper": type(model).__name__,
        "network": type(model.net).__name__,
        "hops": model.hops,
        **sizes,
    }


def _collect_warnings(found: Validation) -> list[str]:
    """List everything that speaks against trusting the choice."""
    chosen = found.recommendation.chosen
    own = [
        verdict.reason
        for verdict in found.check.verdicts
        if verdict.outcome in (FAIL, UNDECIDED, WARN)
    ]
    beside = [line.note for line in found.comparison if line.explainer == chosen and line.note]
    findings = [
        str(each)
        for each in found.findings
        if each.explainer in ("", chosen) and each.name != "unlike_benchmark"
    ]
    absent = [
        f"{name} cannot be run on this network: {why}" for name, why in found.left_out.items()
    ]
    cost = [] if found.trade_off.is_accepted else [f"{chosen}: {found.trade_off}."]
    return list(
        dict.fromkeys(
            [*_few_targets_warning(found.results), *absent, *own, *beside, *findings, *cost]
        )
    )


def _few_targets_warning(results: Results) -> list[str]:
    """Return a warning if there are too few targets for a validation."""
    count, least = (
        len({row.target for row in results.rows}),
        load_guideline("practice")["samples"]["validation"],
    )
    return (
        []
        if count >= least
        else [f"Only {count} targets were measured; {least} or more are asked for."]
    )
