"""The audit log: every answer of a service, on the disk before it is sent, chained so that a change
is found (see `hash_chain`).

A record is plain data. Its `what` is "start" (the service's settings in full), "answer" or "stop";
a log that ends without a "stop" belongs to a service that runs or was killed. An answer holds

    time                             UTC, ISO 8601
    answer                           the answer's id
    asked_by                         the name that the caller gave
    target                           a node, a pair of nodes or a graph
    asked_explainer                  the explainer that was asked for
    explainer, params                the explainer that made the answer
    language, audience, top_k        as in the question
    seed                             of the explanation
    prediction, text, flags          as in the answer
    scores                           the digest of all scores
    model, data, settings            the SHA-256 of each
    versions                         of the packages that made the answer
    seconds                          from the arrival of the question to this record
"""

import csv
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from graphgauge.store.database import Store
from graphgauge.store.hash_chain import (
    ChainEntry,
    HashChain,
    Verification,
    read_chain,
    verify_chain,
)
from graphgauge.store.lock import WriterLock

_AUDIT_KIND = "audit"
START_RECORD, ANSWER_RECORD, STOP_RECORD = "start", "answer", "stop"
_CSV_COLUMNS = (
    "what time answer asked_by target explainer params asked_explainer seed language audience "
    "top_k prediction text flags scores model data settings versions seconds"
).split()
#: what makes a spreadsheet compute a cell
_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
LogPath = str | os.PathLike[str]


class AuditLog:
    """A log that is open for writing, by this process alone.

    >>> import tempfile
    >>> records = [{"what": "answer", "text": "yes"}, {"what": "answer", "text": "no"}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with AuditLog(Path(folder) / "audit.sqlite") as log:
    ...         [link.number for link in log.append(records)]
    [1, 2]
    """

    def __init__(self, path: LogPath) -> None:
        self.path = Path(path)
        self.resources = ExitStack()
        with ExitStack() as opened:
            opened.enter_context(WriterLock(self.path.with_name(f"{self.path.name}.lock")))
            self.hash_chain = HashChain(
                opened.enter_context(Store(self.path, write=True)), _AUDIT_KIND
            )
            self.resources = opened.pop_all()

    def __enter__(self) -> "AuditLog":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self.resources.close()

    def append(self, records: Sequence[Any]) -> list[ChainEntry]:
        """Write records in one transaction; returns when all are on the disk, with their numbers
        and digests.
        """
        return self.hash_chain.append_records(records)


def verify_log(path: LogPath, noted: str | None = None) -> Verification:
    """Whether the log is whole, and holds the head that was noted earlier; see `hash_chain`."""
    with Store(path) as store:
        return verify_chain(read_chain(store, _AUDIT_KIND), noted)


def json_lines(path: LogPath) -> Iterator[str]:
    """The log as one JSON object a line: number, previous, digest, record."""
    with Store(path) as store:
        for link in read_chain(store, _AUDIT_KIND):
            yield json.dumps(vars(link), ensure_ascii=False, allow_nan=False)


def csv_lines(path: LogPath) -> Iterator[str]:
    """The log as CSV, a header first; what holds more than one value is JSON, and no cell is a
    formula to a spreadsheet.
    """
    yield _format_csv_line(["number", *_CSV_COLUMNS, "digest"])
    with Store(path) as store:
        for link in read_chain(store, _AUDIT_KIND):
            record = link.record if isinstance(link.record, dict) else {}
            yield _format_csv_line(
                [
                    link.number,
                    *(_spreadsheet_cell(record.get(name)) for name in _CSV_COLUMNS),
                    link.digest,
                ]
            )


def _format_csv_line(values: Sequence[Any]) -> str:
    """One line, quoted where needed."""
    line = io.StringIO()
    # so that line breaks inside cells are quoted
    csv.writer(line, lineterminator="\r\n").writerow(values)
    return line.getvalue().removesuffix("\r\n")


def _spreadsheet_cell(value: Any) -> Any:
    """A value for a spreadsheet: numbers as they are; a text that would be computed gets an
    apostrophe in front.

    >>> _spreadsheet_cell("=1+1"), _spreadsheet_cell(-1)
    ("'=1+1", -1)
    >>> _spreadsheet_cell(["=1"]), _spreadsheet_cell(None)
    ('["=1"]', '')
    """
    if value is None or isinstance(value, (int, float)):
        return "" if value is None else value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA_PREFIXES) else text
