"""The benchmark: experiment files, the runner that measures them in shards, and tables of what a
run says.
"""

from graphgauge.core import attach_exports

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
