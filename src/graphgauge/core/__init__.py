"""Types, errors, seeds and small tools that all rooms share."""

from graphgauge.core.exports import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
