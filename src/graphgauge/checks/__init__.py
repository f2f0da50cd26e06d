"""The public suites `check_model`, `check_explainer` and `check_metric`, and their fixtures."""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
