"""Explaining a batch of questions within their time budgets.

A target that is asked for several times in a batch is explained once. Seeds derive from the target
alone, and the library's batches do not change a number, so an explanation does not depend on who
else asked (on a CPU to the last bit).

Within the time budget the asked explainer answers. A question goes to the fallback, with a flag,
when the explainer

    is expected to take longer than what is left of the budget (see `budget`), or has taken longer:
    it is ended at its next step (learned explainers take one per epoch, gradients one per pass), or
    fails.

The fallback itself is not cut.
"""

import logging
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from graphgauge.core.errors import BadExplanation, BadSetting, OutOfTime
from graphgauge.core.progress import time_limit
from graphgauge.core.xplanation import Target, Xplanation
from graphgauge.explainers import BaseExplainer
from graphgauge.models import BaseModel
from graphgauge.serve.answers import plain_value
from graphgauge.serve.budget import Costs
from graphgauge.serve.figures import Figures
from graphgauge.serve.identity import digests
from graphgauge.serve.questions import Question
from graphgauge.serve.settings import Settings

Explainers = BaseExplainer | Sequence[BaseExplainer] | Mapping[str, BaseExplainer]
Digests = Mapping[str, str]  #: of model and data
log = logging.getLogger("graphgauge.serve")


@dataclass(frozen=True, eq=False)
class Waiting:
    """A question, when it came (`time.monotonic`), and where its answer goes."""

    question: Question
    arrived: float
    answer: "Future[dict[str, Any]]"


@dataclass(frozen=True)
class Choice:
    """An explainer and the name under which it is asked for."""

    label: str
    explainer: BaseExplainer

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "label": self.label,
            "name": self.explainer.name,
            "params": params_of(self.explainer),
        }


@dataclass(frozen=True)
class Explained:
    """A question with its explanation, who made it, of which model and data, and why it was not the
    one asked for ("": it was).
    """

    waiting: Waiting
    x: Xplanation
    choice: Choice
    digests: Digests
    flag: str


class Explaining:
    """The explainers of a service at work on its model; by the worker's thread only."""

    def __init__(
        self,
        model: BaseModel,
        explainers: Explainers,
        fallback: BaseExplainer,
        settings: Settings,
        figures: Figures,
    ) -> None:
        self.model, self.settings, self.figures, self.costs = model, settings, figures, Costs()
        self.choices = choices_of(explainers)
        self.selected = next(iter(self.choices))
        self.fallback = fallback_of(fallback, self.choices)

    def record(self) -> dict[str, Any]:
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
                self.explained(choice, probe, float("inf"))

    def explanations(self, batch: list[Waiting]) -> list[Explained]:
        """What could be explained of a batch, the fastest explainer first."""
        groups: dict[str, list[Waiting]] = {}
        for waiting in batch:
            groups.setdefault(waiting.question.explainer or self.selected, []).append(waiting)
        found: list[Explained] = []
        for name in sorted(groups, key=self.costs.expected):
            found += self.group(self.choices[name], groups[name])
        return found

    def group(self, choice: Choice, waiting: list[Waiting]) -> list[Explained]:
        """The explanations of one explainer; by the fallback where its time is over or it fails."""
        if choice == self.fallback:
            return self.one_by_one(choice, waiting, "")
        late = [one for one in waiting if self.left(one) < self.costs.expected(choice.label)]
        early = [one for one in waiting if one not in late]
        for _ in late:
            self.costs.skipped(choice.label)
        found = self.fallen_back(late, "fallback_time")
        try:
            return found + self.together(choice, early, min(map(self.left, early), default=0.0), "")
        except OutOfTime:
            return found + self.fallen_back(early, "fallback_time")
        except Exception:
            log.exception("%s failed on a batch of %d", choice.label, len(early))
            return found + self.fallen_back(early, "fallback_error")

    def left(self, waiting: Waiting) -> float:
        """Seconds that are left of a question's budget."""
        return self.settings.budget_ms / 1000 - (time.monotonic() - waiting.arrived)

    def fallen_back(self, waiting: list[Waiting], flag: str) -> list[Explained]:
        """Explanations by the fallback."""
        self.figures.fallbacks.labels(flag.removeprefix("fallback_")).inc(len(waiting))
        return self.one_by_one(self.fallback, waiting, flag)

    def one_by_one(self, choice: Choice, waiting: list[Waiting], flag: str) -> list[Explained]:
        """All in one call; if that fails each alone, so that one bad target takes no other with it."""
        try:
            return self.together(choice, waiting, float("inf"), flag)
        except Exception:
            log.exception("%s failed on a batch of %d", choice.label, len(waiting))
        alone = waiting if len(waiting) > 1 else []
        return [found for one in alone for found in self.one_by_one(choice, [one], flag)]

    def together(
        self, choice: Choice, waiting: list[Waiting], seconds: float, flag: str
    ) -> list[Explained]:
        """One call of the explainer for all questions, each target once."""
        if not waiting:
            return []
        xs, made_of = self.explained(
            choice, dict.fromkeys(one.question.target for one in waiting), seconds
        )
        return [Explained(one, xs[one.question.target], choice, made_of, flag) for one in waiting]

    def explained(
        self, choice: Choice, targets: Iterable[Target], seconds: float
    ) -> tuple[dict[Target, Xplanation], Digests]:
        """Explanations by target within so many seconds, and the digests of the model and the data
        that they are of.
        """
        start, asked = time.monotonic(), list(targets)
        try:
            with time_limit(seconds), warnings.catch_warnings(), self.model.session():
                warnings.simplefilter("ignore")  # what they tell of one answer is among its flags
                xs, made_of = (
                    choice.explainer.explain(self.model, asked, seed=self.settings.seed),
                    digests(self.model),
                )
        except OutOfTime:
            self.costs.overran(choice.label, time.monotonic() - start)
            raise
        except SystemExit as error:  # an explainer must not end the worker
            raise BadExplanation(f"{choice.label} called sys.exit({error.code!r}).") from error
        self.costs.ran(choice.label, time.monotonic() - start)
        return dict(zip(asked, xs, strict=True)), made_of


def choices_of(explainers: Explainers) -> dict[str, Choice]:
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
            "two of the service's explainers have one name: give labels, {'short': ..., 'long': ...}."
        )
    return {label: Choice(label, item) for label, item in pairs}


def fallback_of(explainer: BaseExplainer, choices: Mapping[str, Choice]) -> Choice:
    """The fallback, under the label that it has among the explainers, if it is one of them."""
    return next(
        (choice for choice in choices.values() if choice.explainer == explainer),
        Choice(explainer.name, explainer),
    )


def params_of(explainer: BaseExplainer) -> dict[str, Any]:
    """Parameters as plain data."""
    return {name: plain_value(value) for name, value in explainer.params.items()}
