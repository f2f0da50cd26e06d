"""The one append-only store: entries with keys, each with its rows, in one SQLite file; and the
audit log on top of it.
"""

from graphgauge.store.audit import AuditLog
from graphgauge.store.chain import Chain, Link, Verification
from graphgauge.store.database import Entry, Store
from graphgauge.store.lock import Lock

__all__ = ["AuditLog", "Chain", "Entry", "Link", "Lock", "Store", "Verification"]
