"""A log whose entries are chained: each holds the digest of the one before, so that a change or a
removal is found.

Entry n of the records r_1, r_2, ... holds

    d_n = SHA-256 of the JSON of [n, d_(n-1), r_n]        keys sorted, ASCII only;  d_0 = 64 zeros

`verify_chain` computes every digest again. An entry that was changed, removed, inserted or moved
breaks the chain there. If entries were cut off at the end, the shorter chain is still valid. Only
somebody who noted a later head can find this, so note heads elsewhere. (Who can write the file can
also write a whole new chain, but that chain does not hold the heads that were noted.)
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphgauge.core import BadFile, JsonObject, canonical_json, sha256_hex
from graphgauge.store.database import Store, StoreEntry

_GENESIS_DIGEST = "0" * 64  #: stands before the first entry


@dataclass(frozen=True)
class ChainEntry:
    """One entry of a chain."""

    number: int
    previous: str
    digest: str
    record: Any


@dataclass(frozen=True)
class Verification:
    """How many entries are whole, the digest of the last of them, and what is wrong with the next
    ("": nothing).
    """

    count: int
    head: str
    fault: str


class HashChain:
    """The end of a chain in a store that is open for writing; `append_records` writes on."""

    def __init__(self, store: Store, kind: str) -> None:
        self.store, self.kind = store, kind
        last = store.last(kind)
        self.count, self.head = (
            (0, _GENESIS_DIGEST) if last is None else _resume_point(_parse_entry(last), store)
        )

    def append_records(self, records: Sequence[Any]) -> list[ChainEntry]:
        """Append records in one transaction; returns their links when all are on the disk."""
        links = list(_chain_records(records, self.count, self.head))
        self.store.append_all(self.kind, {str(link.number): _entry_body(link) for link in links})
        if links:
            self.count, self.head = links[-1].number, links[-1].digest
        return links


def _resume_point(last: ChainEntry, store: Store) -> tuple[int, str]:
    """Number and digest of the last entry; refuses to write on after one that was changed."""
    fault = _find_fault(last, last.number - 1, last.previous)
    if fault:
        raise BadFile(
            f"nothing can be added to {store.path}: {fault}. Keep the file for a check, and start "
            "a new log."
        )
    return last.number, last.digest


def _chain_records(records: Iterable[Any], number: int, head: str) -> Iterator[ChainEntry]:
    """Records as links that follow entry ``number`` with the digest ``head``."""
    for record in records:
        number, previous = number + 1, head
        head = _entry_digest(number, previous, record)
        yield ChainEntry(number, previous, head, record)


def _entry_digest(number: int, previous: str, record: Any) -> str:
    """The digest of one entry.

    >>> digest = _entry_digest(1, _GENESIS_DIGEST, {"b": 1, "a": 2})
    >>> digest == _entry_digest(1, _GENESIS_DIGEST, {"a": 2, "b": 1})
    True
    """
    return sha256_hex(canonical_json([number, previous, record]))


def _entry_body(link: ChainEntry) -> JsonObject:
    """What is stored of a link; its number is the key."""
    return {"previous": link.previous, "digest": link.digest, "record": link.record}


def read_chain(store: Store, kind: str) -> Iterator[ChainEntry]:
    """The entries of a chain as they are stored, not verified."""
    return map(_parse_entry, store.scan(kind))


def _parse_entry(entry: StoreEntry) -> ChainEntry:
    """One entry; what somebody else wrote there is taken as it is, and then found not to fit."""
    body = entry.body if isinstance(entry.body, dict) else {}
    number = int(entry.key) if entry.key.isdecimal() else -1
    return ChainEntry(
        number, str(body.get("previous")), str(body.get("digest")), body.get("record")
    )


def verify_chain(found: Iterable[ChainEntry], noted: str | None = None) -> Verification:
    """Make every digest again; ``noted`` is a head seen earlier, which must be in the chain (or be
    its beginning).
    """
    count, head, is_seen = 0, _GENESIS_DIGEST, noted in (None, _GENESIS_DIGEST)
    for link in found:
        fault = _find_fault(link, count, head)
        if fault:
            return Verification(count, head, fault)
        count, head = link.number, link.digest
        is_seen = is_seen or head == noted
    lost = (
        ""
        if is_seen
        else f"no entry has the digest {noted}: entries were cut off, or this is another log"
    )
    return Verification(count, head, lost)


def _find_fault(link: ChainEntry, count: int, head: str) -> str:
    """Why an entry does not follow entry ``count``; "" if it does."""
    if link.number != count + 1:
        return (
            f"entry {count + 1} was expected, but entry {link.number} is there: entries were "
            "removed, added or moved"
        )
    if link.previous != head:
        return (
            f"entry {link.number} does not follow the entry before it: one of the two was changed"
        )
    if _entry_digest(link.number, link.previous, link.record) != link.digest:
        return f"entry {link.number} was changed: its digest is another"
    return ""
