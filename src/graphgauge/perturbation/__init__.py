"""Perturbation: edits of computation graphs, in the order of an explanation or at random."""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
