"""An append-only store in one SQLite file. It knows entries and rows, not what they mean.

An entry has a kind, a key, the time it was written and a body (plain data); it may carry many rows.
`append` writes an entry with all its rows in one transaction and returns when they are on the disk:
what was acknowledged survives `kill -9`, and half an entry is never seen. Nothing is changed or
deleted: triggers refuse it. Each (kind, key) exists once.

One process writes (see `WriterLock`), and any number may read at the same time (write-ahead log).
Bodies are JSON, so that any SQLite client can read them:
`select json_extract(body, '$.seconds') from entries where kind = 'shard'`.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

from graphgauge.core import BadFile

_FORMAT_VERSION = 1  #: of the tables; a store of a later format is refused
_APPLICATION_ID = (
    0x67676167  #: "ggag": written into the file's head, so that other SQLite files are told apart
)
_SCHEMA = """
create table entries (id integer primary key, kind text not null, key text not null, \
at text not null, body text not null,
                      unique (kind, key));
create table rows (id integer primary key, entry integer not null references entries (id), \
body text not null);
create index rows_of_entry on rows (entry);
"""
_APPEND_ONLY_TRIGGERS = "".join(
    (
        f"create trigger {table}_{verb} before {verb} on {table} "
        "begin select raise(abort, 'this store is append-only'); end;"
    )
    for table in ("entries", "rows")
    for verb in ("update", "delete")
)


@dataclass(frozen=True)
class StoreEntry:
    """What was appended under a kind and a key."""

    id: int
    kind: str
    key: str
    at: str  #: UTC, ISO 8601
    body: Any


class Store:
    """A store opened for reading, or for reading and writing."""

    def __init__(self, path: str | os.PathLike[str], *, write: bool = False) -> None:
        self.path = Path(path)
        with self.report_errors("opened"):
            self.connection = _connect_sqlite(self.path, write)
            self.check_format(write)

    def __enter__(self) -> "Store":
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
        self.connection.close()

    def append(self, kind: str, key: str, body: Any, rows: Iterable[Any] = ()) -> int:
        """Write an entry and its rows, all or nothing; returns its id when both are on the disk.

        Args:
            kind: The kind of the entry, by which entries are listed.
            key: The name of the entry, of which each kind has only one.
            body: Its content, as plain data that JSON can hold. NaN and infinity are refused.
            rows: Further plain data that belongs to the entry and is read separately, in this
                order; by default none.

        Raises:
            BadFile: The entry was not written, for example because the key is taken.
            ValueError: The body or a row has NaN or infinity.
        """
        packed = [(_compact_json(row),) for row in rows]
        with self.report_errors("written"), self.connection:
            self.connection.execute("begin immediate")
            found = self.connection.execute(
                "insert into entries (kind, key, at, body) values (?, ?, ?, ?)",
                (kind, key, utc_now(), _compact_json(body)),
            )
            number = int(found.lastrowid or 0)
            self.connection.executemany(
                f"insert into rows (entry, body) values ({number}, ?)", packed
            )
        return number

    def append_all(self, kind: str, bodies: Mapping[str, Any]) -> None:
        """Write many entries without rows (key -> body) in one transaction, all or nothing; returns
        when they are on the disk.
        """
        packed = [(kind, key, utc_now(), _compact_json(body)) for key, body in bodies.items()]
        with self.report_errors("written"), self.connection:
            self.connection.execute("begin immediate")
            self.connection.executemany(
                "insert into entries (kind, key, at, body) values (?, ?, ?, ?)", packed
            )

    def append_numbered(self, kind: str, body: Any) -> int:
        """Append an entry that needs no key of its own: its number is its key."""
        with self.report_errors("read"):
            (last,) = self.connection.execute(
                "select count(*) from entries where kind = ?", (kind,)
            ).fetchone()
        return self.append(kind, str(last + 1), body)

    def entries(self, kind: str) -> list[StoreEntry]:
        """All entries of a kind, in the order of writing."""
        return list(self.scan(kind))

    def scan(self, kind: str) -> Iterator[StoreEntry]:
        """The entries of a kind one by one, in the order of writing: as many as there are take the
        memory of one.
        """
        with self.report_errors("read"):
            found = self.connection.execute(
                "select id, kind, key, at, body from entries where kind = ? order by id", (kind,)
            )
            for number, _, key, at, body in found:
                yield StoreEntry(number, kind, key, at, json.loads(body))

    def last(self, kind: str) -> StoreEntry | None:
        """The entry of a kind that was written last."""
        with self.report_errors("read"):
            found = self.connection.execute(
                "select id, key, at, body from entries where kind = ? order by id desc limit 1",
                (kind,),
            ).fetchone()
        return (
            None
            if found is None
            else StoreEntry(found[0], kind, found[1], found[2], json.loads(found[3]))
        )

    def keys(self, kind: str) -> set[str]:
        """The keys of a kind."""
        with self.report_errors("read"):
            return {
                key
                for (key,) in self.connection.execute(
                    "select key from entries where kind = ?", (kind,)
                )
            }

    def rows(self, entry: StoreEntry) -> list[Any]:
        """The rows of an entry, in the order they were given."""
        with self.report_errors("read"):
            found = self.connection.execute(
                "select body from rows where entry = ? order by id", (entry.id,)
            )
            return [json.loads(body) for (body,) in found]

    def check_format(self, write: bool) -> None:
        """Make the tables of a new file; refuse what is no store, or one of a later format."""
        (mark,), (found,) = (
            self.connection.execute(f"pragma {name}").fetchone()
            for name in ("application_id", "user_version")
        )
        is_empty = found == 0 and mark == 0 and not _has_tables(self.connection)
        if is_empty and not write:
            raise BadFile(f"the store {self.path} holds nothing yet.")
        if is_empty:
            marks = (
                f"pragma application_id = {_APPLICATION_ID}; pragma user_version = "
                f"{_FORMAT_VERSION};"
            )
            self.connection.executescript(
                f"begin immediate; {_SCHEMA} {_APPEND_ONLY_TRIGGERS} {marks} commit;"
            )
        elif mark != _APPLICATION_ID or found > _FORMAT_VERSION:
            why = (
                f"its format {found} is later than {_FORMAT_VERSION}"
                if mark == _APPLICATION_ID
                else "graphgauge did not make it"
            )
            raise BadFile(f"{self.path} cannot be used as a store: {why}.")

    @contextmanager
    def report_errors(self, what: str) -> Iterator[None]:
        """Say which file a failure of the database is about."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, BadFile):
                raise
            raise BadFile(
                f"the store {self.path} could not be {what}: {error}. {_ERROR_ADVICE[what]}"
            ) from error


_ERROR_ADVICE = {
    "opened": "Check the path and the rights.",
    "read": "If the disk is well, the file is damaged: use a copy.",
    "written": (
        "All that was stored before is intact. Check the space and the rights, then run the same "
        "command again."
    ),
}


def _connect_sqlite(path: Path, write: bool) -> sqlite3.Connection:
    """A connection; a writer waits for the disk with every commit."""
    if not write and not path.exists():
        raise BadFile(f"there is no store {path}.")
    mode = "rwc" if write else "ro"
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=30
    )
    if write:
        database.execute("pragma journal_mode = wal")
        database.execute("pragma synchronous = full")
    return database


def _has_tables(database: sqlite3.Connection) -> bool:
    """Whether something is in the file."""
    return bool(database.execute("select count(*) from sqlite_master").fetchone()[0])


def _compact_json(body: Any) -> str:
    """Plain data as JSON; what is no number has no place in it."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def utc_now() -> str:
    """The time, UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
