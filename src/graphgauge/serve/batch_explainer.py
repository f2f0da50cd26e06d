"""Explaining a batch of questions within their time budgets.

A target that is asked for several times in a batch is explained once. Seeds derive from the target
alone, and the library's batches do not change a number, so an explanation does not depend on who
else asked (on a CPU to the last bit).

Within the time budget the asked explainer answers. A question goes to the fallback, with a flag,
when the explainer

    is expected to take longer than what is left of the budget (see `latency_estimate`), or
    has taken longer: it is ended at its next step (learned explainers take one per epoch,
    gradients one per pass), or
    fails.

The fallback itself is not cut.
"""

import logging
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from graphgauge.core import (
    BadExplanation,
    BadSetting,
    JsonObject,
    OutOfTime,
    Target,
    Xplanation,
    time_limit,
)
from graphgauge.explainers import BaseExplainer
from graphgauge.models import BaseModel
from graphgauge.serve.digests import model_and_data_digests
from graphgauge.serve.latency_estimate import LatencyEstimates
from graphgauge.serve.prometheus import PrometheusMetrics
from graphgauge.serve.requests import Question
from graphgauge.serve.responses import json_value
from graphgauge.serve.settings import Settings

Explainers = BaseExplainer | Sequence[BaseExplainer] | Mapping[str, BaseExplainer]
_ModelDigests = Mapping[str, str]  #: of model and data
log = logging.getLogger("graphgauge.serve")


@dataclass(frozen=True, eq=False)
class PendingQuestion:
    """A question, when it came (`time.monotonic`), and where its answer goes."""

    question: Question
    arrived: float
    answer: "Future[JsonObject]"


@dataclass(frozen=True)
class _LabelledExplainer:
    """An explainer and the name under which it is asked for."""

    label: str
    explainer: BaseExplainer

    def record(self) -> JsonObject:
        """As plain data."""
        return {
            "label": self.label,
            "name": self.explainer.name,
            "params": _plain_params(self.explainer),
        }


@dataclass(frozen=True)
class ExplainedQuestion:
    """A question with its explanation, who made it, of which model and data, and why it was not the
    one asked for ("": it was).
    """

    pending: PendingQuestion
    x: Xplanation
    choice: _LabelledExplainer
    digests: _ModelDigests
    flag: str


class BatchExplainer:
    """The explainers of a service at work on its model; by the worker's thread only."""

    def __init__(
        self,
        model: BaseModel,
        explainers: Explainers,
        fallback: BaseExplainer,
        settings: Settings,
        figures: PrometheusMetrics,
    ) -> None:
        self.model, self.settings, self.prometheus, self.latencies = (
            model,
            settings,
            figures,
            LatencyEstimates(),
        )
        self.choices = _labelled_explainers(explainers)
        self.selected = next(iter(self.choices))
        self.fallback = _labelled_fallback(fallback, self.choices)

    def record(self) -> JsonObject:
        """The explainers as plain data."""
        return {
            "explainers": [choice.record() for choice in self.choices.values()],
            "fallback": self.fallback.record(),
        }

    def warm_up(self) -> None:
        """Run every explainer on one target, twice: the first call finds out about the network, the
        second is timed.
        """
        target = self.model.population()[:1].tolist()
        probe = [tuple(item) if isinstance(item, list) else item for item in target]
        for choice in (*self.choices.values(), self.fallback):
            for _ in range(2):
                self.call_explainer(choice, probe, float("inf"))

    def explain_batch(self, batch: list[PendingQuestion]) -> list[ExplainedQuestion]:
        """What could be explained of a batch, the fastest explainer first."""
        groups: dict[str, list[PendingQuestion]] = {}
        for waiting in batch:
            groups.setdefault(waiting.question.explainer or self.selected, []).append(waiting)
        found: list[ExplainedQuestion] = []
        for name in sorted(groups, key=self.latencies.expected):
            found += self.explain_group(self.choices[name], groups[name])
        return found

    def explain_group(
        self, choice: _LabelledExplainer, waiting: list[PendingQuestion]
    ) -> list[ExplainedQuestion]:
        """The explanations of one explainer; by the fallback where its time is over or it fails."""
        if choice == self.fallback:
            return self.explain_with_retry(choice, waiting, "")
        late = [
            one for one in waiting if self.seconds_left(one) < self.latencies.expected(choice.label)
        ]
        early = [one for one in waiting if one not in late]
        for _ in late:
            self.latencies.record_skip(choice.label)
        found = self.explain_by_fallback(late, "fallback_time")
        try:
            return found + self.explain_together(
                choice, early, min(map(self.seconds_left, early), default=0.0), ""
            )
        except OutOfTime:
            return found + self.explain_by_fallback(early, "fallback_time")
        except Exception:
            log.exception("%s failed on a batch of %d", choice.label, len(early))
            return found + self.explain_by_fallback(early, "fallback_error")

    def seconds_left(self, waiting: PendingQuestion) -> float:
        """Seconds that are left of a question's budget."""
        return self.settings.budget_ms / 1000 - (time.monotonic() - waiting.arrived)

    def explain_by_fallback(
        self, waiting: list[PendingQuestion], flag: str
    ) -> list[ExplainedQuestion]:
        """Explanations by the fallback."""
        self.prometheus.fallbacks.labels(flag.removeprefix("fallback_")).inc(len(waiting))
        return self.explain_with_retry(self.fallback, waiting, flag)

    def explain_with_retry(
        self, choice: _LabelledExplainer, waiting: list[PendingQuestion], flag: str
    ) -> list[ExplainedQuestion]:
        """Explain all targets in one call.

        If this fails, each is explained alone, so that a bad target does not affect the others.
        """
        try:
            return self.explain_together(choice, waiting, float("inf"), flag)
        except Exception:
            log.exception("%s failed on a batch of %d", choice.label, len(waiting))
        alone = waiting if len(waiting) > 1 else []
        return [found for one in alone for found in self.explain_with_retry(choice, [one], flag)]

    def explain_together(
        self, choice: _LabelledExplainer, waiting: list[PendingQuestion], seconds: float, flag: str
    ) -> list[ExplainedQuestion]:
        """One call of the explainer for all questions, each target once."""
        if not waiting:
            return []
        xs, made_of = self.call_explainer(
            choice, dict.fromkeys(one.question.target for one in waiting), seconds
        )
        return [
            ExplainedQuestion(one, xs[one.question.target], choice, made_of, flag)
            for one in waiting
        ]

    def call_explainer(
        self, choice: _LabelledExplainer, targets: Iterable[Target], seconds: float
    ) -> tuple[dict[Target, Xplanation], _ModelDigests]:
        """Explanations by target within so many seconds, and the digests of the model and the data
        that they are of.
        """
        start, asked = time.monotonic(), list(targets)
        try:
            with time_limit(seconds), warnings.catch_warnings(), self.model.session():
                warnings.simplefilter("ignore")  # what they tell of one answer is among its flags
                xs, made_of = (
                    choice.explainer.explain(self.model, asked, seed=self.settings.seed),
                    model_and_data_digests(self.model),
                )
        except OutOfTime:
            self.latencies.record_timeout(choice.label, time.monotonic() - start)
            raise
        except SystemExit as error:  # an explainer must not end the worker
            raise BadExplanation(f"{choice.label} called sys.exit({error.code!r}).") from error
        self.latencies.record_batch(choice.label, time.monotonic() - start)
        return dict(zip(asked, xs, strict=True)), made_of


def _labelled_explainers(explainers: Explainers) -> dict[str, _LabelledExplainer]:
    """Explainers by label, or by name where they have none; the first is the selected one."""
    if isinstance(explainers, Mapping):
        pairs = list(explainers.items())
    else:
        given = [explainers] if isinstance(explainers, BaseExplainer) else list(explainers)
        pairs = [(str(getattr(item, "name", "")), item) for item in given]
    wrong = [item for _, item in pairs if not isinstance(item, BaseExplainer)]
    if wrong or not pairs:
        found = repr(wrong[0]) if wrong else "none"
        raise BadSetting(
            f"a service needs explainers such as gg.InputXGradient(), but got {found}."
        )
    if len(dict(pairs)) < len(pairs):
        raise BadSetting(
            "two of the service's explainers have one name: give labels, {'short': ..., 'long': "
            "...}."
        )
    return {label: _LabelledExplainer(label, item) for label, item in pairs}


def _labelled_fallback(
    explainer: BaseExplainer, choices: Mapping[str, _LabelledExplainer]
) -> _LabelledExplainer:
    """The fallback, under the label that it has among the explainers, if it is one of them."""
    return next(
        (choice for choice in choices.values() if choice.explainer == explainer),
        _LabelledExplainer(explainer.name, explainer),
    )


def _plain_params(explainer: BaseExplainer) -> JsonObject:
    """Parameters as plain data."""
    return {name: json_value(value) for name, value in explainer.params.items()}
