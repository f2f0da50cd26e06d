"""Normalised weights of all edges of a graph, for computation graphs that leave some edges out."""

from dataclasses import dataclass

from torch import Tensor

Way = tuple[bool, bool, str]  #: a GCN layer's improved, add_self_loops, flow


@dataclass(frozen=True)
class Weights:
    """The weights of a whole graph's edges, for each way in which the layers of a network normalise
    them.
    """

    edge: dict[
        Way, Tensor
    ]  #: (E,) of the edges; those of stored self-loops count only where no others are added
    loop: dict[Way, Tensor]  #: (N,) of the self-loops that are added
