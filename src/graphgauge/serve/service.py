"""The worker behind the service: one thread owns the model and the audit log, and answers questions
in batches.

The first question of a batch waits a few milliseconds for others; while a batch is being explained
the next one gathers. How a batch is explained, and what happens when time is short, is told in
`batch_explainer`. Nothing is sent before its entry is on the disk; a batch shares one transaction.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from graphgauge.core import GraphgaugeError, JsonObject, package_versions
from graphgauge.explainers import BaseExplainer, InputXGradient, check_wrapped_model
from graphgauge.models import BaseModel
from graphgauge.narrative import QualityVerdicts
from graphgauge.serve.batch_explainer import (
    BatchExplainer,
    ExplainedQuestion,
    Explainers,
    PendingQuestion,
)
from graphgauge.serve.digests import settings_digest
from graphgauge.serve.prometheus import PrometheusMetrics
from graphgauge.serve.requests import Question, QuestionReader, RequestRefused
from graphgauge.serve.response_text import Narrator
from graphgauge.serve.responses import DraftAnswer, response_body
from graphgauge.serve.settings import Settings
from graphgauge.store import START_RECORD, STOP_RECORD, AuditLog, ChainEntry, LogPath, utc_now

log = logging.getLogger("graphgauge.serve")
#: why a question gets no answer
_REFUSAL_MESSAGES: Mapping[str, tuple[int, str, int | None]] = {
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

    ``explainers``  those that may be asked for, also as {label: explainer}; the first is the
                    selected one
    ``fallback``    who answers when the time budget is spent
    ``quality``     what validation found, by label: {metric: (value, threshold, passed)} or
                    statements
    ``flags``       gives what every answer must say besides, of `FLAGS`; asked for each answer
    ``decision``    the digest of the decision that selected the explainer, for the log
    """

    def __init__(
        self,
        model: BaseModel,
        explainers: Explainers,
        audit: LogPath,
        *,
        names: Any = None,
        quality: Mapping[str, QualityVerdicts] | None = None,
        fallback: BaseExplainer | None = None,
        flags: Callable[[], list[str]] = list,
        decision: str = "",
        settings: Settings | None = None,
    ) -> None:
        self.model, self.audit_path = check_wrapped_model(model), audit
        self.settings, self.prometheus = settings or Settings(), PrometheusMetrics()
        self.batch_explainer = BatchExplainer(
            model, explainers, fallback or InputXGradient(), self.settings, self.prometheus
        )
        self.flags, self.decision = flags, decision
        self.narrator = Narrator(model, names, quality)
        self.reader = QuestionReader.for_model(
            model,
            list(self.batch_explainer.choices),
            sorted(self.narrator.languages),
            self.settings.max_top,
        )
        self.settings_digest = settings_digest(self.record())
        self.queue: queue.SimpleQueue[PendingQuestion | None] = queue.SimpleQueue()
        self.audit_count, self.is_audit_well = 0, True
        self.log_opened, self.warmed_up = Future[None](), Future[None]()
        self.thread: threading.Thread | None = None
        self.is_stopping, self.stopping = False, threading.Lock()

    def record(self) -> JsonObject:
        """What decides the answers, as plain data; its digest is in every entry of the log."""
        deciding = {
            "decision": self.decision,
            "flags": self.flags(),
            "telling": self.narrator.record(),
        }
        return {**self.batch_explainer.record(), "service": self.settings.record(), **deciding}

    # --- from any thread --------------------------------------------------------------------------

    def start(self) -> None:
        """Start the worker; returns when the audit log is open, or raises why it is not."""
        self.thread = threading.Thread(target=self.run_worker, name="graphgauge-serve", daemon=True)
        self.thread.start()
        self.log_opened.result()

    def wait_until_warm(self) -> None:
        """Return when every explainer has run once, or raise why one cannot."""
        self.warmed_up.result()

    @property
    def is_ready(self) -> bool:
        """Whether questions are answered now."""
        is_warm = self.warmed_up.done() and self.warmed_up.exception() is None
        return is_warm and self.is_audit_well and not self.is_stopping

    def ask(self, question: Question) -> "Future[JsonObject]":
        """Queue a question; its future gets the answer, or `RequestRefused`."""
        if not self.warmed_up.done():
            raise _make_refusal("starting")
        if self.queue.qsize() >= self.settings.max_waiting:
            raise _make_refusal("busy")
        waiting = PendingQuestion(question, time.monotonic(), Future())
        # a caller who goes away takes nothing from the batch
        waiting.answer.set_running_or_notify_cancel()
        with self.stopping:
            if self.is_stopping:
                raise _make_refusal("stopping")
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

    def run_worker(self) -> None:
        """Open the log, warm up, answer until told to stop."""
        try:
            audit = self.open_log()
        except Exception as error:
            self.log_opened.set_exception(error)
            self.warmed_up.set_exception(error)
            return
        with audit:
            self.log_opened.set_result(None)
            _run_into_future(self.warmed_up, self.batch_explainer.warm_up)
            while (batch := self.gather_batch()) is not None:
                self.answer_batch(batch, audit)
            self.log_records(audit, [{"what": STOP_RECORD, "time": utc_now()}])

    def open_log(self) -> AuditLog:
        """The log, with the start of this service in it."""
        audit = AuditLog(self.audit_path)
        begun = {
            "what": START_RECORD,
            "time": utc_now(),
            "settings": self.settings_digest,
            "service": self.record(),
            "versions": package_versions(),
        }
        try:
            audit.append([begun])
        except Exception:
            audit.close()
            raise
        return audit

    def gather_batch(self) -> list[PendingQuestion] | None:
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

    def answer_batch(self, batch: list[PendingQuestion], audit: AuditLog) -> None:
        """Explain, log, answer: in this order."""
        self.prometheus.batch.observe(len(batch))
        try:
            drafts = [
                (one.pending, draft)
                for one in self.batch_explainer.explain_batch(batch)
                if (draft := self.draft_answer(one)) is not None
            ]
            links = self.log_records(
                audit, [draft.record(self.batch_explainer.selected) for _, draft in drafts]
            )
            for (waiting, draft), link in zip(drafts, links, strict=False):
                self.prometheus.seconds.observe(time.monotonic() - waiting.arrived)
                waiting.answer.set_result(response_body(draft, link))
        except Exception:
            log.exception("a batch of %d questions failed", len(batch))
        for waiting in batch:
            if not waiting.answer.done():
                code = "not_explained" if self.is_audit_well else "audit_unavailable"
                self.prometheus.failures.labels(code).inc()
                waiting.answer.set_exception(_make_refusal(code))

    def log_records(self, audit: AuditLog, records: list[Any]) -> list[ChainEntry]:
        """Entries that are on the disk; none if the log cannot be written, which is told by
        `is_ready`.
        """
        try:
            links = audit.append(records)
        except (GraphgaugeError, ValueError):
            log.exception("the audit log could not be written")
            self.is_audit_well = False
            return []
        self.is_audit_well, self.audit_count = True, audit.hash_chain.count
        self.prometheus.entries.set(self.audit_count)
        return links

    def draft_answer(self, one: ExplainedQuestion) -> DraftAnswer | None:
        """The answer to a question; None if it cannot be told."""
        asked, choice = one.pending.question, one.choice
        try:
            flags = [*([one.flag] if one.flag else []), *self.flags()]
            told = self.narrator.narrate(one.x, choice.label, choice.explainer.signed, asked, flags)
            own = {**one.digests, "settings": self.settings_digest}
            return DraftAnswer(
                asked, one.x, choice.explainer, told, own, time.monotonic() - one.pending.arrived
            )
        except Exception:
            log.exception("an explanation by %s could not be told", choice.label)
            return None


def _make_refusal(code: str) -> RequestRefused:
    """Why there is no answer."""
    status, message, retry_after = _REFUSAL_MESSAGES[code]
    return RequestRefused(status, code, message, retry_after)


def _run_into_future(future: "Future[None]", work: Callable[[], None]) -> None:
    """Do the work and tell the future how it went."""
    try:
        work()
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(None)
