"""Halo pruning: computation graphs without the edges that only set degrees.

GCN layers divide messages by the degrees of sender and receiver. So the graph of a target with L
hops holds all edges into nodes L hops away, though no message along them arrives. Around a hub
there are hundreds of them for each edge that counts. As long as no edge is removed, degrees are
those of the whole graph, and so are the weights of its messages: they are computed once, and the
edges are left out.

This applies to networks whose only use of degrees is that of GCNConv, on edges without weights of
their own, after a probe. Degrees are integers, so the weights have the same bits as those of the
graph with its halo.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from graphgauge.core.errors import BadModel
from graphgauge.models.arcs import starts
from graphgauge.models.computation import HALOS, ComputationGraphs
from graphgauge.models.depth import layer_halo, message_layers
from graphgauge.models.edge_weights import Weights
from graphgauge.models.engine import TOGETHER
from graphgauge.models.normalisation import normalised_weights, normalises
from graphgauge.models.probing import FORWARD_ERRORS, is_close, mirrored_rows
from graphgauge.models.recent import recent_graphs
from graphgauge.models.targets import Targets

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel


def graphs_of(model: "BaseModel", target: Targets, scope: str, lean: bool) -> ComputationGraphs:
    """The checked computation graphs of ``target``; repeated targets are cut once."""
    distinct, own = target.rows.unique(dim=0, return_inverse=True)
    is_repeated = len(distinct) < len(target)
    graphs = recent_graphs(model, target.with_rows(distinct) if is_repeated else target, scope)
    graphs = leaned(model, graphs) if lean else graphs
    return graphs.take(own) if is_repeated else graphs


def leaned(model: "BaseModel", graphs: ComputationGraphs) -> ComputationGraphs:
    """``graphs`` without edges that only set degrees, or unchanged if the network does not allow
    it.
    """
    if not model.known("lean", lambda: can_be_lean(model)) or graphs.widest_halo > HALOS.index(
        "in"
    ):
        return graphs
    return without_halo_edges(graphs, model.hops, model.known("weights", lambda: weights_of(model)))


def can_be_lean(model: "BaseModel") -> bool:
    """Whether only GCNConv uses degrees, and the probes' rows stay the same."""
    is_plain = (
        model.level != "graph"
        and model.joining == TOGETHER
        and model.trace.flow == "source_to_target"
    )
    if (
        not is_plain
        or "edge_weight" in model.source.edge_attrs
        or model.base_halo != HALOS.index("in")
    ):
        return False
    if any(layer_halo(layer) > 0 and not normalises(layer) for layer in message_layers(model.net)):
        return False
    graphs = model.cut(model.probes, model.hops, model.base_halo, "messages")
    lean = without_halo_edges(graphs, model.hops, weights_of(model))
    of = torch.arange(len(graphs), device=graphs.node.device).repeat(2)
    model.prepare_engine()
    try:
        return is_close(*(mirrored_rows(model.engine, each, of) for each in (lean, graphs)))
    except (BadModel, *FORWARD_ERRORS):
        return False


def weights_of(model: "BaseModel") -> Weights:
    """The factors by which the layers multiply the messages of the whole graph."""
    return normalised_weights(model.net, model.source.edge_index, model.source.x)


def without_halo_edges(graphs: ComputationGraphs, hops: int, weights: Weights) -> ComputationGraphs:
    """Keep the relevant edges, and others whose messages can arrive: those into nodes fewer than
    ``hops`` away.
    """
    owner = graphs.edge_owner
    hop = graphs.hop[graphs.node_ptr[owner] + graphs.edge_index[1]]
    (kept,) = ((graphs.edge_place < graphs.num_edges[owner]) | (hop < hops)).nonzero(as_tuple=True)
    return replace(
        graphs,
        weights=weights,
        edge=graphs.edge[kept],
        edge_index=graphs.edge_index[:, kept],
        edge_ptr=starts(torch.bincount(owner[kept], minlength=len(graphs))),
    )
