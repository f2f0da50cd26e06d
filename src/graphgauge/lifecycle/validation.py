"""Validation (the paper's phase 2): measure a shortlist on one's own data, compare, choose, and
write the decision down.

1. shortlist   by consultation of a benchmark; explainers that are named take its place
2. measure     every trial on 100 targets or more, spread over classes and confidence; and once more as production would
3. compare     with the thresholds, with the benchmark, and the two measurements with each other
4. choose      verdicts, Pareto, hierarchy (`guidelines.recommend`)
5. decide      a `Decision` with hashes, numbers, warnings, an end date, and who signed it
"""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from graphgauge.core.errors import BadFile, BadSetting
from graphgauge.core.verdicts import FAIL, UNDECIDED, WARN
from graphgauge.core.versions import versions
from graphgauge.evaluation import Evaluator, ModelAccuracy, Results
from graphgauge.evaluation.entries import labelled
from graphgauge.explainers import BaseExplainer, find_explainer
from graphgauge.guidelines import (
    Check,
    Finding,
    Recommendation,
    Requirements,
    check,
    diagnose,
    guide,
    recommend,
)
from graphgauge.lifecycle.assessment import usable
from graphgauge.lifecycle.comparison import Beside, beside_benchmark
from graphgauge.lifecycle.consultation import Shortlist, own_list, shortlist
from graphgauge.lifecycle.decision import DAYS, FILE, Decision, expiry, told_time
from graphgauge.lifecycle.evidence import digest_of_results
from graphgauge.lifecycle.run_folder import PAGE, PRODUCTION, clear_folder
from graphgauge.lifecycle.trade_off import (
    TradeOff,
    exhaustive_settings,
    production_settings,
    timed,
    trade_off,
    with_settings,
)
from graphgauge.models import BaseModel
from graphgauge.models.fingerprints import digest_of_data, digest_of_network
from graphgauge.narrative.facts import checked_sizes
from graphgauge.narrative.telling import all_names

Callback = Callable[
    ["Validation", Path], Any
]  #: called with the finished validation and the folder of its files


@dataclass(frozen=True)
class Terms:
    """Who answers for the decision, for how long, and how good the network is at its task.

    ``accuracy``: a share such as 0.81, or see `ModelAccuracy`; None: measured on the labels in the
    data, where there are any.
    """

    signed_by: str = ""
    days: int = DAYS
    accuracy: Any = None
    now: datetime = field(default_factory=lambda: datetime.now(timezone.utc))


@dataclass(frozen=True)
class Validation:
    """Both measurements, and what was concluded."""

    results: Results  #: every trial
    production: Results  #: as production would measure
    recommendation: Recommendation
    check: Check  #: of the chosen explainer
    comparison: tuple[Beside, ...]
    trade_off: TradeOff
    findings: tuple[Finding, ...]
    left_out: Mapping[str, str]  #: explainers that cannot be run on this network, and why
    decision: Decision
    names: Any = None  #: what things are called in the examples that are kept

    def save(
        self, folder: str | Path, callbacks: Sequence[Callback] = (), *, replace: bool = False
    ) -> Path:
        """Write rows, settings, the decision and a page to read; then call back, such as a
        `Tracker`'s ``validation``.

        A folder that holds a run or a decision is refused; with ``replace`` this validation takes
        its place, and an earlier one that somebody has signed is kept in ``earlier/`` (see
        `run_folder`).
        """
        from graphgauge.lifecycle.documents import validation_page

        place = clear_folder(folder, replace)
        self.results.save(place, self.names)
        self.production.save(place / PRODUCTION, self.names)
        self.decision.write(place / FILE)
        try:
            (place / PAGE).write_text(validation_page(self), encoding="utf-8")
        except OSError as error:
            raise BadFile(f"{place / PAGE} could not be written: {error}.") from error
        for callback in callbacks:
            callback(self, place)
        return place


def validate(
    evaluator: Evaluator,
    targets: Any,
    explainers: Any = None,
    requirements: Requirements | None = None,
    terms: Terms | None = None,
    names: Any = None,
) -> Validation:
    """Validate ``evaluator.model`` on ``targets``. ``explainers`` None: the shortlist; the baseline
    is always measured too.

    ``names``: what things are called in the examples that are kept (see `Names`).
    """
    model, agreed = evaluator.model, terms or Terms()
    checked_sizes(all_names(evaluator, names), model)
    wanted = complete(requirements or Requirements(), model)
    named, listed = candidates_of(explainers, wanted)
    asked = list(targets)
    check_candidates(named, asked, wanted)
    possible, left_out = usable(named, model, asked[0])
    candidates = with_baseline(possible, wanted)
    stated = ModelAccuracy.read(agreed.accuracy)
    every, short = both_ways(evaluator, candidates, asked)
    every = every[0].with_accuracy(stated), every[1]
    recommendation = only(recommend(every[0], wanted))
    cost = trade_off(every, short, recommendation.chosen, wanted)
    found = Validation(
        results=every[0],
        production=short[0],
        recommendation=recommendation,
        check=check(every[0], wanted, [recommendation.chosen]),
        comparison=tuple(beside_benchmark(every[0], model, wanted)),
        trade_off=cost,
        findings=tuple(diagnose(every[0], wanted)),
        left_out=left_out,
        decision=blank_decision(evaluator, candidates[recommendation.chosen], wanted, agreed),
        names=names,
    )
    return replace(found, decision=filled(found, listed))


def complete(requirements: Requirements, model: BaseModel) -> Requirements:
    """The requirements with what the model itself says: the kind of task and the number of
    features.
    """
    kind, size = f"{model.level}_{model.task}", model.source.x.size(1)
    given = requirements.task_kind
    if given is not None and given != kind:
        raise BadSetting(
            f"the requirements are for {given}, but the model is for {kind}: leave task_kind out."
        )
    return replace(requirements, task_kind=kind, num_features=requirements.num_features or size)


def candidates_of(
    explainers: Any, wanted: Requirements
) -> tuple[dict[str, BaseExplainer], Shortlist]:
    """The explainers to measure, and the list that they come from: the one that was given, else the
    benchmark's.
    """
    kind = str(wanted.task_kind)
    if explainers is None:
        listed = shortlist(kind, wanted)
        return by_name(listed.names), listed
    named = labelled(explainers)
    return named, own_list(named, kind)


def by_name(names: Sequence[str]) -> dict[str, BaseExplainer]:
    """Explainers with their defaults."""
    return {name: find_explainer(name) for name in names}


def check_candidates(
    named: Mapping[str, BaseExplainer], targets: Sequence[Any], wanted: Requirements
) -> None:
    """Refuse a validation of nothing."""
    if not [name for name in named if name != wanted.baseline]:
        raise BadSetting(
            f"validate needs an explainer besides {wanted.baseline!r}: name one, or none for the shortlist."
        )
    if not targets:
        raise BadSetting(
            "validate needs targets, but there is none: `evaluator.sample(100)` draws some."
        )


def with_baseline(
    candidates: Mapping[str, BaseExplainer], wanted: Requirements
) -> dict[str, BaseExplainer]:
    """The candidates and, for what chance reaches, the random explainer."""
    return {
        **candidates,
        **({} if wanted.baseline in candidates else {wanted.baseline: find_explainer("random")}),
    }


Timed = tuple[Results, float]


def both_ways(
    evaluator: Evaluator, candidates: Mapping[str, BaseExplainer], targets: list[Any]
) -> tuple[Timed, Timed]:
    """Every trial, and as production would; both after a warm-up on one target."""
    settings = evaluator.settings
    every, short = (
        with_settings(evaluator, own)
        for own in (exhaustive_settings(settings), production_settings(settings))
    )
    short.compare(candidates, targets[:1])
    return timed(every, candidates, targets), timed(short, candidates, targets)


def only(recommendations: Sequence[Recommendation]) -> Recommendation:
    """The one recommendation of a run of one network on one task."""
    (found,) = recommendations
    return found


# --- the decision ---------------------------------------------------------------------------------


def blank_decision(
    evaluator: Evaluator, explainer: BaseExplainer, wanted: Requirements, terms: Terms
) -> Decision:
    """What is known of a decision before the numbers are looked at."""
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
        description=description(model),
        reason="",
        verdicts=(),
        targets=0,
        rows="",
        consultation={},
        trade_off={},
        comparison=(),
        warnings=(),
        versions={**versions(), "machine": platform.machine()},
        made=told_time(terms.now),
        expires=expiry(terms.now, terms.days),
    )
    return unsigned.sign(terms.signed_by, terms.now) if terms.signed_by else unsigned


def filled(found: Validation, listed: Shortlist) -> Decision:
    """The decision with the numbers."""
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
        warnings=tuple(warnings_of(found)),
        accuracy={} if found.results.accuracy is None else found.results.accuracy.record(),
    )


def description(model: BaseModel) -> dict[str, Any]:
    """Kind and size of model and data."""
    source = model.source
    sizes = {"nodes": source.num_nodes, "edges": source.num_edges, "features": source.x.size(1)}
    return {
        "wrapper": type(model).__name__,
        "network": type(model.net).__name__,
        "hops": model.hops,
        **sizes,
    }


def warnings_of(found: Validation) -> list[str]:
    """Whatever speaks against trusting the choice, in one list."""
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
    return list(dict.fromkeys([*few(found.results), *absent, *own, *beside, *findings, *cost]))


def few(results: Results) -> list[str]:
    """Too few targets for a validation."""
    count, least = (
        len({row.target for row in results.rows}),
        guide("practice")["samples"]["validation"],
    )
    return (
        []
        if count >= least
        else [f"Only {count} targets were measured; {least} or more are asked for."]
    )
