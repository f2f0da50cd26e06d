"""Explainers: one file per method. A wrapped model and targets go in, explanations come out."""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
