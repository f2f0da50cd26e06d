"""Adjacency, computation graphs around targets, and receptive fields.

Together they give the part of a graph that a prediction can depend on.
"""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
