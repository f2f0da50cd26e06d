"""Normalised weights of a whole graph's edges, for computation graphs that leave some edges out."""

from dataclasses import dataclass

from torch import Tensor

NormalisationOptions = tuple[bool, bool, str]  #: a GCN layer's improved, add_self_loops, flow


@dataclass(frozen=True)
class EdgeWeights:
    """The weights of a graph's edges for each way in which the layers of a network normalise them.

    Args:
        edge: Weights of the edges; those of stored self-loops count only if no others are added.
            (E,)
        loop: Weights of the self-loops that a layer adds.  (N,)
    """

    edge: dict[NormalisationOptions, Tensor]
    loop: dict[NormalisationOptions, Tensor]
