"""A network and a graph of one's own: which accounts will default?"""

from sage_example.graph import accounts
from sage_example.network import EdgeSAGE, EdgeSAGENet, make_net

__all__ = ["EdgeSAGE", "EdgeSAGENet", "accounts", "make_net"]
