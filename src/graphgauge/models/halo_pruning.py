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

from graphgauge.core import BadModel
from graphgauge.execution import TOGETHER, compute_edge_weights, normalises_edges
from graphgauge.models.capability_probes import mirrored_rows
from graphgauge.models.graph_cache import find_recent_graphs
from graphgauge.models.probe_errors import FORWARD_ERRORS
from graphgauge.models.tolerances import is_close
from graphgauge.subgraphs import (
    HALOS,
    ComputationGraphs,
    EdgeWeights,
    Targets,
    layer_halo,
    message_layers,
    pointers_from_counts,
)

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel


def provide_graphs(
    model: "BaseModel", target: Targets, scope: str, lean: bool
) -> ComputationGraphs:
    """The checked computation graphs of ``target``; repeated targets are cut once."""
    distinct, own = target.rows.unique(dim=0, return_inverse=True)
    is_repeated = len(distinct) < len(target)
    graphs = find_recent_graphs(model, target.with_rows(distinct) if is_repeated else target, scope)
    graphs = _prune_halo(model, graphs) if lean else graphs
    return graphs.take(own) if is_repeated else graphs


def _prune_halo(model: "BaseModel", graphs: ComputationGraphs) -> ComputationGraphs:
    """``graphs`` without edges that only set degrees, or unchanged if the network does not allow
    it.
    """
    if not model.cached_fact(
        "lean", lambda: _can_prune_halo(model)
    ) or graphs.widest_halo > HALOS.index("in"):
        return graphs
    return _drop_halo_edges(
        graphs, model.hops, model.cached_fact("weights", lambda: _whole_graph_weights(model))
    )


def _can_prune_halo(model: "BaseModel") -> bool:
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
    if any(
        layer_halo(layer) > 0 and not normalises_edges(layer) for layer in message_layers(model.net)
    ):
        return False
    graphs = model.extract_graphs(model.probes, model.hops, model.base_halo, "messages")
    lean = _drop_halo_edges(graphs, model.hops, _whole_graph_weights(model))
    of = torch.arange(len(graphs), device=graphs.node.device).repeat(2)
    model.prepare_engine()
    try:
        return is_close(*(mirrored_rows(model.executor, each, of) for each in (lean, graphs)))
    except (BadModel, *FORWARD_ERRORS):
        return False


def _whole_graph_weights(model: "BaseModel") -> EdgeWeights:
    """The factors by which the layers multiply the messages of the whole graph."""
    return compute_edge_weights(model.net, model.source.edge_index, model.source.x)


def _drop_halo_edges(
    graphs: ComputationGraphs, hops: int, weights: EdgeWeights
) -> ComputationGraphs:
    """Keep the relevant edges, and others whose messages can arrive: those into nodes fewer than
    ``hops`` away.
    """
    owner = graphs.edge_owner
    hop = graphs.hop[graphs.node_ptr[owner] + graphs.edge_index[1]]
    (kept,) = ((graphs.edge_position < graphs.num_edges[owner]) | (hop < hops)).nonzero(
        as_tuple=True
    )
    return replace(
        graphs,
        weights=weights,
        edge=graphs.edge[kept],
        edge_index=graphs.edge_index[:, kept],
        edge_ptr=pointers_from_counts(torch.bincount(owner[kept], minlength=len(graphs))),
    )
