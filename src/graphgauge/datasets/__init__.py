"""The data sets of the paper, generated or loaded from checked files, and trained networks."""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
