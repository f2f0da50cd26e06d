"""Evaluation: explainers x metrics x targets -> results; settings and presets."""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
