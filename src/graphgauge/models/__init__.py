"""Wrappers that give every network the same predictions for nodes, links and graphs."""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
