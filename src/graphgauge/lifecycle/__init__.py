"""Lifecycle: a model of one's own from first look to production: project file, validation,
decision, gate, tracking, documents.
"""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
