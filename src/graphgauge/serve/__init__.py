"""Serve: explanations of one model over HTTP, each in the audit log before it is sent (extra
``serve``).
"""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
