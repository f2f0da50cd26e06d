"""Guidelines: thresholds, verdicts, recommendation, diagnosis and checklist; data and rules on
results.
"""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
