"""The worker behind the service: one thread owns the model and the audit log, and answers questions in batches.

The first question of a batch waits a few milliseconds for others; while a batch is being explained the next one gathers. A target
that is asked for several times in a batch is explained once. Seeds derive from the target alone, and the library's batches do
not change a number, so an answer does not depend on who else asked (on a CPU to the last bit).

Within the time budget the asked explainer answers. A question goes to the fallback, with a flag, when the explainer

    is expected to take longer than what is left of the budget (see `budget`),
    or has taken longer: it is ended at its next step (learned explainers take one per epoch, gradients one per pass).

The fallback itself is not cut. Nothing is sent before its entry is on the disk; a batch shares one transaction.
"""

import logging
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from graphgauge.core.errors import BadExplanation, BadSetting, GraphgaugeError, OutOfTime
from graphgauge.core.progress import time_limit
from graphgauge.core.xplanation import Target, Xplanation
from graphgauge.explainers import BaseExplainer, InputXGradient
from graphgauge.explainers.base import check_wrapped
from graphgauge.models import BaseModel
from graphgauge.narrative.quality import Quality
from graphgauge.serve.answers import Draft, answer_body, plain_value
from graphgauge.serve.budget import Costs
from graphgauge.serve.figures import Figures
from graphgauge.serve.identity import digests, settings_digest, versions
from graphgauge.serve.questions import Question, Reader, Refused
from graphgauge.serve.settings import Settings
from graphgauge.serve.telling import Teller
from graphgauge.store import AuditLog, Link
from graphgauge.store.audit import START, STOP, Where
from graphgauge.store.database import now

Explainers = BaseExplainer | Sequence[BaseExplainer] | Mapping[str, BaseExplainer]
Digests = Mapping[str, str]  #: of model and data
log = logging.getLogger("graphgauge.serve")
#: why a question gets no answer
REFUSALS: Mapping[str, tuple[int, str, int | None]] = {
    "not_explained": (500, "no explainer could answer this question; the service's own log says why.", None),
    "audit_unavailable": (503, "the audit log cannot be written, so nothing is answered.", 30),
    "starting": (503, "the service is starting.", 1),
    "stopping": (503, "the service is stopping.", 5),
    "busy": (503, "too many questions are waiting.", 1),
}


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
        return {"label": self.label, "name": self.explainer.name, "params": params_of(self.explainer)}


@dataclass(frozen=True)
class Explained:
    """A question with its explanation, who made it, of which model and data, and why it was not the one asked for ("": it was)."""

    waiting: Waiting
    x: Xplanation
    choice: Choice
    digests: Digests
    flag: str


class Service:
    """Answers questions about one model.

    ``explainers``  those that may be asked for, also as {label: explainer}; the first is the selected one
    ``fallback``    who answers when the time budget is spent
    ``quality``     what validation found, by label: {metric: (value, threshold, passed)} or statements
    ``flags``       gives what every answer must say besides, of `FLAGS`; asked for each answer
    ``decision``    the digest of the decision that selected the explainer, for the log
    """

    def __init__(
        self,
        model: BaseModel,
        explainers: Explainers,
        audit: Where,
        *,
        names: Any = None,
        quality: Mapping[str, Quality] | None = None,
        fallback: BaseExplainer | None = None,
        flags: Callable[[], list[str]] = list,
        decision: str = "",
        settings: Settings | None = None,
    ) -> None:
        self.model, self.audit_path = check_wrapped(model), audit
        self.choices = choices_of(explainers)
        self.selected = next(iter(self.choices))
        self.fallback = fallback_of(fallback or InputXGradient(), self.choices)
        self.settings, self.figures, self.costs = settings or Settings(), Figures(), Costs()
        self.flags, self.decision = flags, decision
        self.teller = Teller(model, names, quality)
        self.reader = Reader.of(model, list(self.choices), sorted(self.teller.languages), self.settings.max_top)
        self.settings_digest = settings_digest(self.record())
        self.queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self.audit_count, self.is_audit_well = 0, True
        self.opened, self.warmed = Future[None](), Future[None]()
        self.thread: threading.Thread | None = None
        self.is_stopping, self.stopping = False, threading.Lock()

    def record(self) -> dict[str, Any]:
        """What decides the answers, as plain data; its digest is in every entry of the log."""
        made = [choice.record() for choice in self.choices.values()]
        deciding = {"decision": self.decision, "flags": self.flags(), "telling": self.teller.record()}
        return {"explainers": made, "fallback": self.fallback.record(), "service": self.settings.record(), **deciding}

    # --- from any thread -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the worker; returns when the audit log is open, or raises why it is not."""
        self.thread = threading.Thread(target=self.work, name="graphgauge-serve", daemon=True)
        self.thread.start()
        self.opened.result()

    def wait_until_warm(self) -> None:
        """Return when every explainer has run once, or raise why one cannot."""
        self.warmed.result()

    @property
    def is_ready(self) -> bool:
        """Whether questions are answered now."""
        is_warm = self.warmed.done() and self.warmed.exception() is None
        return is_warm and self.is_audit_well and not self.is_stopping

    def ask(self, question: Question) -> "Future[dict[str, Any]]":
        """Queue a question; its future gets the answer, or `Refused`."""
        if not self.warmed.done():
            raise refusal("starting")
        if self.queue.qsize() >= self.settings.max_waiting:
            raise refusal("busy")
        waiting = Waiting(question, time.monotonic(), Future())
        waiting.answer.set_running_or_notify_cancel()  # a caller who goes away takes nothing from the batch
        with self.stopping:
            if self.is_stopping:
                raise refusal("stopping")
            self.queue.put(waiting)
        return waiting.answer

    def stop(self) -> None:
        """Answer what waits, write "stop" into the log and close it."""
        with self.stopping:
            self.is_stopping = True
            self.queue.put(None)
        if self.thread is not None:
            self.thread.join()

    # --- in the worker ---------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Open the log, warm up, answer until told to stop."""
        try:
            audit = self.open()
        except Exception as error:
            self.opened.set_exception(error)
            self.warmed.set_exception(error)
            return
        with audit:
            self.opened.set_result(None)
            settle(self.warmed, self.warm_up)
            while (batch := self.gathered()) is not None:
                self.answer(batch, audit)
            self.append(audit, [{"what": STOP, "time": now()}])

    def open(self) -> AuditLog:
        """The log, with the start of this service in it."""
        audit = AuditLog(self.audit_path)
        begun = {"what": START, "time": now(), "settings": self.settings_digest, "service": self.record(), "versions": versions()}
        try:
            audit.append([begun])
        except Exception:
            audit.close()
            raise
        return audit

    def warm_up(self) -> None:
        """Run every explainer on one target, twice: the first call finds out about the network, the second is timed."""
        target = self.model.population()[:1].tolist()
        probe = [tuple(item) if isinstance(item, list) else item for item in target]
        for choice in (*self.choices.values(), self.fallback):
            for _ in range(2):
                self.explained(choice, probe, float("inf"))

    def gathered(self) -> list[Waiting] | None:
        """The next batch; None: stop."""
        first = self.queue.get()
        if first is None:
            return None
        batch, end = [first], time.monotonic() + self.settings.gather_ms / 1000
        while len(batch) < self.settings.max_batch:
            try:
                item = self.queue.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            if item is None:
                self.queue.put(None)  # stop after this batch
                break
            batch.append(item)
        return batch

    def answer(self, batch: list[Waiting], audit: AuditLog) -> None:
        """Explain, log, answer: in this order."""
        self.figures.batch.observe(len(batch))
        try:
            drafts = [(one.waiting, draft) for one in self.explanations(batch) if (draft := self.draft(one)) is not None]
            links = self.append(audit, [draft.record(self.selected) for _, draft in drafts])
            for (waiting, draft), link in zip(drafts, links, strict=False):
                waiting.answer.set_result(answer_body(draft, link))
                self.figures.seconds.observe(time.monotonic() - waiting.arrived)
        except Exception:
            log.exception("a batch of %d questions failed", len(batch))
        for waiting in batch:
            if not waiting.answer.done():
                code = "not_explained" if self.is_audit_well else "audit_unavailable"
                self.figures.failures.labels(code).inc()
                waiting.answer.set_exception(refusal(code))

    def append(self, audit: AuditLog, records: list[Any]) -> list[Link]:
        """Entries that are on the disk; none if the log cannot be written, which is told by `is_ready`."""
        try:
            links = audit.append(records)
        except (GraphgaugeError, ValueError):
            log.exception("the audit log could not be written")
            self.is_audit_well = False
            return []
        self.is_audit_well, self.audit_count = True, audit.chain.count
        self.figures.entries.set(self.audit_count)
        return links

    def draft(self, one: Explained) -> Draft | None:
        """The answer to a question; None if it cannot be told."""
        asked, choice = one.waiting.question, one.choice
        try:
            flags = [*([one.flag] if one.flag else []), *self.flags()]
            told = self.teller.tell(one.x, choice.label, choice.explainer.signed, asked, flags)
            own = {**one.digests, "settings": self.settings_digest}
            return Draft(asked, one.x, choice.explainer, told, own, time.monotonic() - one.waiting.arrived)
        except Exception:
            log.exception("an explanation by %s could not be told", choice.label)
            return None

    # --- explaining --------------------------------------------------------------------------------------------------------

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

    def together(self, choice: Choice, waiting: list[Waiting], seconds: float, flag: str) -> list[Explained]:
        """One call of the explainer for all questions, each target once."""
        if not waiting:
            return []
        xs, made_of = self.explained(choice, dict.fromkeys(one.question.target for one in waiting), seconds)
        return [Explained(one, xs[one.question.target], choice, made_of, flag) for one in waiting]

    def explained(self, choice: Choice, targets: Iterable[Target], seconds: float) -> tuple[dict[Target, Xplanation], Digests]:
        """Explanations by target within so many seconds, and the digests of the model and the data that they are of."""
        start, asked = time.monotonic(), list(targets)
        try:
            with time_limit(seconds), warnings.catch_warnings(), self.model.session():
                warnings.simplefilter("ignore")  # what they tell of one answer is among its flags
                xs, made_of = choice.explainer.explain(self.model, asked, seed=self.settings.seed), digests(self.model)
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
        raise BadSetting(f"a service needs explainers such as gg.InputXGradient(), but got {found}.")
    if len(dict(pairs)) < len(pairs):
        raise BadSetting("two of the service's explainers have one name: give labels, {'short': ..., 'long': ...}.")
    return {label: Choice(label, item) for label, item in pairs}


def fallback_of(explainer: BaseExplainer, choices: Mapping[str, Choice]) -> Choice:
    """The fallback, under the label that it has among the explainers, if it is one of them."""
    return next((choice for choice in choices.values() if choice.explainer == explainer), Choice(explainer.name, explainer))


def refusal(code: str) -> Refused:
    """Why there is no answer."""
    status, message, retry_after = REFUSALS[code]
    return Refused(status, code, message, retry_after)


def params_of(explainer: BaseExplainer) -> dict[str, Any]:
    """Parameters as plain data."""
    return {name: plain_value(value) for name, value in explainer.params.items()}


def settle(future: "Future[None]", work: Callable[[], None]) -> None:
    """Do the work and tell the future how it went."""
    try:
        work()
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(None)
