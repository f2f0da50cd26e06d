"""Adjacency, computation graphs around targets, and receptive fields: what part of a graph a prediction can depend on."""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
