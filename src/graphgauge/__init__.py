"""graphgauge: how good are the explanations of a graph neural network, and which explainer can be
trusted?

Importing graphgauge loads nothing heavy: each name is imported when it is first used. The names are
listed in ``__init__.pyi``, which type checkers and editors read, too.
"""

from graphgauge.core import attach_exports

__version__ = "0.1.0.dev0"

__getattr__, __dir__, __all__ = attach_exports(__name__, __file__)
