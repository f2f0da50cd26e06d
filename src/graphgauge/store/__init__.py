"""The one append-only store: entries with keys, each with its rows, in one SQLite file."""

from graphgauge.store.database import Entry, Store
from graphgauge.store.lock import Lock

__all__ = ["Entry", "Lock", "Store"]
