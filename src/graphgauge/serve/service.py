"""The worker behind the service: one thread owns the model and the audit log, and answers questions
in batches.

The first question of a batch waits a few milliseconds for others; while a batch is being explained
the next one gathers. How a batch is explained, and what happens when time is short, is told in
`explaining`. Nothing is sent before its entry is on the disk; a batch shares one transaction.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from graphgauge.core.errors import GraphgaugeError
from graphgauge.core.versions import versions
from graphgauge.explainers import BaseExplainer, InputXGradient
from graphgauge.explainers.base import check_wrapped
from graphgauge.models import BaseModel
from graphgauge.narrative.quality import Quality
from graphgauge.serve.answers import Draft, answer_body
from graphgauge.serve.explaining import Explained, Explainers, Explaining, Waiting
from graphgauge.serve.figures import Figures
from graphgauge.serve.identity import settings_digest
from graphgauge.serve.questions import Question, Reader, Refused
from graphgauge.serve.settings import Settings
from graphgauge.serve.telling import Teller
from graphgauge.store import AuditLog, Link
from graphgauge.store.audit import START, STOP, Where
from graphgauge.store.database import now

log = logging.getLogger("graphgauge.serve")
#: why a question gets no answer
REFUSALS: Mapping[str, tuple[int, str, int | None]] = {
    "not_explained": (
        500,
        "no explainer could answer this question; the service's own log says why.",
        None,
    ),
    "audit_unavailable": (503, "the audit log cannot be written, so nothing is answered.", 30),
    "starting": (503, "the service is starting.", 1),
    "stopping": (503, "the service is stopping.", 5),
    "busy": (503, "too many questions are waiting.", 1),
}


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
        self.settings, self.figures = settings or Settings(), Figures()
        self.explaining = Explaining(
            model, explainers, fallback or InputXGradient(), self.settings, self.figures
        )
        self.flags, self.decision = flags, decision
        self.teller = Teller(model, names, quality)
        self.reader = Reader.of(
            model,
            list(self.explaining.choices),
            sorted(self.teller.languages),
            self.settings.max_top,
        )
        self.settings_digest = settings_digest(self.record())
        self.queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self.audit_count, self.is_audit_well = 0, True
        self.opened, self.warmed = Future[None](), Future[None]()
        self.thread: threading.Thread | None = None
        self.is_stopping, self.stopping = False, threading.Lock()

    def record(self) -> dict[str, Any]:
        """What decides the answers, as plain data; its digest is in every entry of the log."""
        deciding = {
            "decision": self.decision,
            "flags": self.flags(),
            "telling": self.teller.record(),
        }
        return {**self.explaining.record(), "service": self.settings.record(), **deciding}

    # --- from any thread --------------------------------------------------------------------------

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
        # a caller who goes away takes nothing from the batch
        waiting.answer.set_running_or_notify_cancel()
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

    # --- in the worker ----------------------------------------------------------------------------

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
            settle(self.warmed, self.explaining.warm_up)
            while (batch := self.gathered()) is not None:
                self.answer(batch, audit)
            self.append(audit, [{"what": STOP, "time": now()}])

    def open(self) -> AuditLog:
        """The log, with the start of this service in it."""
        audit = AuditLog(self.audit_path)
        begun = {
            "what": START,
            "time": now(),
            "settings": self.settings_digest,
            "service": self.record(),
            "versions": versions(),
        }
        try:
            audit.append([begun])
        except Exception:
            audit.close()
            raise
        return audit

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
            drafts = [
                (one.waiting, draft)
                for one in self.explaining.explanations(batch)
                if (draft := self.draft(one)) is not None
            ]
            links = self.append(
                audit, [draft.record(self.explaining.selected) for _, draft in drafts]
            )
            for (waiting, draft), link in zip(drafts, links, strict=False):
                self.figures.seconds.observe(time.monotonic() - waiting.arrived)
                waiting.answer.set_result(answer_body(draft, link))
        except Exception:
            log.exception("a batch of %d questions failed", len(batch))
        for waiting in batch:
            if not waiting.answer.done():
                code = "not_explained" if self.is_audit_well else "audit_unavailable"
                self.figures.failures.labels(code).inc()
                waiting.answer.set_exception(refusal(code))

    def append(self, audit: AuditLog, records: list[Any]) -> list[Link]:
        """Entries that are on the disk; none if the log cannot be written, which is told by
        `is_ready`.
        """
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
            return Draft(
                asked, one.x, choice.explainer, told, own, time.monotonic() - one.waiting.arrived
            )
        except Exception:
            log.exception("an explanation by %s could not be told", choice.label)
            return None


def refusal(code: str) -> Refused:
    """Why there is no answer."""
    status, message, retry_after = REFUSALS[code]
    return Refused(status, code, message, retry_after)


def settle(future: "Future[None]", work: Callable[[], None]) -> None:
    """Do the work and tell the future how it went."""
    try:
        work()
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(None)
