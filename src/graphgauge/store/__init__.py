"""The one append-only store: entries with keys, each with its rows, in one SQLite file; and the
audit log on top of it.
"""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
