"""A network and its graph in the form that the algorithms of `torch_geometric.explain` expect."""

from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from graphgauge.core import BadModel
from graphgauge.execution import ForwardAdapter
from graphgauge.models import BaseModel
from graphgauge.subgraphs import ComputationGraph


class PyGNetwork(Module):
    """A network with the signature that PyG's algorithms expect, ``net(x, edge_index)``.

    All other inputs are taken from the graph. ``mode`` and ``kind`` describe the output to PyG. A
    single column of log-probabilities, which PyG does not know, is converted to probabilities; with
    ``as_probs`` a single column of logits is, too.
    """

    def __init__(self, call: ForwardAdapter, g: Data, model: BaseModel, as_probs: bool) -> None:
        super().__init__()
        self.net, self.call, self.g, self.copies_input = call.net, call, g, model.writes_input
        self.turn, self.mode, self.kind = "", "regression", "raw"
        if model.task == "classification":
            kind = model.kind  # type: ignore[attr-defined]
            columns = model.whole_rows(model.population_rows[:1]).size(1)
            self.mode = "binary_classification" if columns == 1 else "multiclass_classification"
            if columns == 1 and (kind == "log_probs" or (kind == "logits" and as_probs)):
                self.turn, kind = kind, "probs"
            self.kind = "raw" if kind == "logits" else kind

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Raw outputs: a row for each node, or one for the link or graph."""
        g = self.g.clone()
        g.x, g.edge_index = x.clone() if self.copies_input else x, edge_index
        rows = self.call(g)
        if self.turn == "log_probs":
            return rows.exp()
        return rows.sigmoid() if self.turn == "logits" else rows


def copy_network_adapter(call: ForwardAdapter) -> ForwardAdapter:
    """The forward adapter for a copy of the network."""
    try:
        return replace(call, net=deepcopy(call.net))
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise BadModel(
            "PyG's algorithms change the network they explain and need a copy, but "
            f"{type(call.net).__name__} cannot be copied: {error}. Detach the tensors it keeps."
        ) from error


def source_graph(model: BaseModel, graph: ComputationGraph) -> Data:
    """The graph from which a target's computation graph was cut, as the network receives it."""
    if model.level != "graph":
        pairs = graph.batch.targets.ids[graph.number][None].t() if model.level == "link" else None
        g: Data = model.whole_data(pairs)  # type: ignore[attr-defined]
        return g
    source, number = model.source, int(graph.batch.target[graph.number, 0])
    nodes, edges = (
        slice(int(ptr[number]), int(ptr[number + 1])) for ptr in (source.node_ptr, source.edge_ptr)
    )
    g = Data(edge_index=source.edge_index[:, edges] - nodes.start)
    for rows, attrs in (
        (nodes, source.node_attrs),
        (edges, source.edge_attrs),
        (slice(number, number + 1), source.graph_attrs),
    ):
        for name, value in attrs.items():
            g[name] = value[rows].clone()
    if model.call.takes_batch:
        g.batch = torch.zeros(len(g.x), dtype=torch.int64, device=g.x.device)
    return g


def move_loops_last(g: Data) -> tuple[Data, Tensor]:
    """Move self-loops behind all other edges, sorted by node.

    Returns:
        The graph, and the old position of each edge (E,).
    """
    source, end = g.edge_index
    order = torch.where(source == end, 1 + source, 0).argsort(stable=True)
    names = [str(name) for name in g.keys() if name != "edge_index"]  # noqa: SIM118
    for name in names:
        if _is_edge_attribute(g, name):
            g[name] = g[name][order]
    g.edge_index = g.edge_index[:, order]
    return g, order


def _is_edge_attribute(g: Data, name: str) -> bool:
    """Whether an attribute has a row for each edge."""
    return (
        isinstance(g[name], Tensor)
        and name not in ("x", "batch", "edge_label_index")
        and g.is_edge_attr(name)
    )
