"""Metrics: pure functions on score tensors and curves, and a thin class for each. They run no model
and no explainer.
"""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
