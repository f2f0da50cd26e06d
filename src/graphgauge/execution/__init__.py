"""Many edited copies of graphs in one pass of a network.

Disjoint unions, message masks and memory budgets.
"""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
