"""Input data: the user's graph, or list of graphs, checked once and laid out flat.

The graphs of a list are numbered one after another: graph g owns the nodes
``node_ptr[g]..node_ptr[g+1]-1`` and the edges ``edge_ptr[g]..edge_ptr[g+1]-1``. A single graph is
the case G = 1. Nothing in this package writes to these tensors.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from graphgauge.core import BadGraph
from graphgauge.subgraphs.graph_checks import check_graph


@dataclass(frozen=True)
class InputGraphs:
    """Checked graphs in flat tensors.

    Args:
        edge_index: Edges of all graphs.  (2, E)
        node_attrs: "x" (N, F) and the other node attributes that the network takes, (N, ...).
        edge_attrs: The edge attributes that the network takes, (E, ...).
        graph_attrs: Other attributes, passed as they are, or with one row per graph.
        node_ptr: First node of each graph, and N.  (G + 1,)
        edge_ptr: First edge of each graph, and E.  (G + 1,)
    """

    edge_index: Tensor
    node_attrs: dict[str, Tensor]
    edge_attrs: dict[str, Tensor]
    graph_attrs: dict[str, Any]
    node_ptr: Tensor
    edge_ptr: Tensor

    def __repr__(self) -> str:
        return f"Graphs({self.num_graphs} graphs, {self.num_nodes} nodes, {self.num_edges} edges)"

    @property
    def x(self) -> Tensor:
        """Node features.  (N, F)"""
        return self.node_attrs["x"]

    @property
    def num_nodes(self) -> int:
        """Number of nodes N of all graphs."""
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        """Number of edges E of all graphs."""
        return self.edge_index.size(1)

    @property
    def num_graphs(self) -> int:
        """Number of graphs G."""
        return len(self.node_ptr) - 1

    @cached_property
    def pointer_lists(self) -> tuple[list[int], list[int]]:
        """``node_ptr`` and ``edge_ptr`` as lists."""
        return self.node_ptr.tolist(), self.edge_ptr.tolist()

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.x.device


def read_single_graph(data: Any, names: set[str] | None) -> InputGraphs:
    """Check one ``Data``. Other attributes are taken if they are in ``names`` (None: all
    tensors).
    """
    check_graph(data, "data")
    node, edge, rest = _split_attributes([data], _select_attributes(data, names))
    x, edge_index = data.x, data.edge_index
    return InputGraphs(
        edge_index=edge_index.detach().to(torch.int64).contiguous(),
        node_attrs={"x": x.detach(), **{name: data[name].detach() for name in sorted(node)}},
        edge_attrs={name: data[name].detach() for name in sorted(edge)},
        graph_attrs={name: data[name] for name in sorted(rest)},
        node_ptr=torch.tensor([0, x.size(0)], device=x.device),
        edge_ptr=torch.tensor([0, edge_index.size(1)], device=x.device),
    )


def read_graph_list(data: Any, names: set[str] | None) -> InputGraphs:
    """Check a list or dataset of ``Data`` and lay the graphs out flat."""
    graphs = list_graphs(data)
    for number, graph in enumerate(graphs):
        check_graph(graph, f"data[{number}]")
    _check_same_attributes(graphs)
    batch = Batch.from_data_list(graphs)
    node, edge, rest = _split_attributes(graphs, _select_attributes(graphs[0], names))
    for name in rest:
        _check_one_row_per_graph(name, batch[name], len(graphs))
    return InputGraphs(
        edge_index=batch.edge_index.detach().to(torch.int64).contiguous(),
        node_attrs={name: batch[name].detach() for name in ("x", *sorted(node))},
        edge_attrs={name: batch[name].detach() for name in sorted(edge)},
        graph_attrs={name: batch[name] for name in sorted(rest)},
        node_ptr=batch.ptr.to(batch.x.device),
        edge_ptr=batch._slice_dict["edge_index"].to(batch.x.device),
    )


def select_part(source: InputGraphs, nodes: Tensor, edges: Tensor) -> tuple[InputGraphs, Tensor]:
    """The subgraph of some edges, their ends and some more nodes.

    Args:
        source: A single graph.
        nodes: Node ids to keep besides the ends of the edges, in any shape.
        edges: Numbers of the edges to keep.  (M,)

    Returns:
        The subgraph, whose nodes are in the order of their ids and whose edges are in the order
        given, and the position of each of ``nodes`` in it, in the shape of ``nodes``.
    """
    kept, row = torch.cat([nodes.reshape(-1), source.edge_index[:, edges].reshape(-1)]).unique(
        return_inverse=True
    )
    part = InputGraphs(
        edge_index=row[nodes.numel() :].view(2, -1),
        node_attrs={name: value[kept] for name, value in source.node_attrs.items()},
        edge_attrs={name: value[edges] for name, value in source.edge_attrs.items()},
        graph_attrs=source.graph_attrs,
        node_ptr=kept.new_tensor([0, len(kept)]),
        edge_ptr=kept.new_tensor([0, len(edges)]),
    )
    return part, row[: nodes.numel()].view(nodes.shape)


def list_graphs(data: Any) -> list[Data]:
    """The graphs of a list or dataset. Raises BadGraph for anything else."""
    if isinstance(data, Data) or not (isinstance(data, Iterable) and hasattr(data, "__len__")):
        raise BadGraph(
            "data of a graph model must be a list or Dataset of Data, but is "
            f"{type(data).__name__}: write [data]."
        )
    graphs = list(data)
    if not graphs:
        raise BadGraph("data of a graph model must hold at least one graph, but the list is empty.")
    return graphs


def _check_same_attributes(graphs: Sequence[Data]) -> None:
    """Raise BadGraph if graphs differ in their attributes, or in the width or type of their
    rows.
    """
    first = graphs[0]
    for number, graph in enumerate(graphs):
        if set(graph.keys()) != set(first.keys()):
            differ = ", ".join(sorted(set(graph.keys()) ^ set(first.keys())))
            raise BadGraph(
                f"data[{number}] and data[0] must have the same attributes, but differ in: "
                f"{differ}."
            )
        for name in first.keys():  # noqa: SIM118
            here, there = graph[name], first[name]
            if (
                isinstance(there, Tensor)
                and _is_joined_by_rows(first, name)
                and _describe_rows(here) != _describe_rows(there)
            ):
                raise BadGraph(
                    f"data[{number}].{name} has rows of {_describe_rows(here)}, data[0].{name} of "
                    f"{_describe_rows(there)}: make them alike."
                )


def _describe_rows(value: Any) -> str:
    """Width and type of a tensor's rows, for error messages."""
    return (
        f"{tuple(value.shape[1:])} {value.dtype}"
        if isinstance(value, Tensor)
        else type(value).__name__
    )


def _check_one_row_per_graph(name: str, value: Any, num_graphs: int) -> None:
    """Raise BadGraph if a graph attribute cannot be split by graph."""
    if not isinstance(value, Tensor) or value.dim() == 0 or value.size(0) != num_graphs:
        raise BadGraph(
            f"data.{name} is neither per node nor per edge, so each graph must store it with one "
            "row, shape (1, ...)."
        )


def _select_attributes(data: Data, names: set[str] | None) -> set[str]:
    """Names of the attributes to take beside x and edge_index.

    Unless they are named, attributes that list nodes and the labels of links are left out.
    """
    held = {str(name) for name in data.keys() if name not in ("x", "edge_index")}  # noqa: SIM118
    if names is not None:
        return held & names
    return {
        name
        for name in held
        if isinstance(data[name], Tensor)
        and _is_joined_by_rows(data, name)
        and name != "edge_label"
    }


def _is_joined_by_rows(data: Data, name: str) -> bool:
    """Whether PyG joins this attribute by rows; lists of nodes such as ``edge_label_index`` are
    joined by columns.
    """
    return data.__cat_dim__(name, data[name]) == 0


def _split_attributes(
    graphs: Sequence[Data], names: set[str]
) -> tuple[set[str], set[str], set[str]]:
    """Sort attribute names into those per node, those per edge and the rest, looking at all
    graphs.
    """
    for name in names:
        if isinstance(graphs[0][name], Tensor) and not _is_joined_by_rows(graphs[0], name):
            raise BadGraph(
                f"data.{name} lists nodes of the whole graph, which cannot be cut along: compute "
                "it inside the net."
            )
    node = {name for name in names if _has_one_row_per(graphs, name, "num_nodes", "num_edges")}
    edge = {
        name for name in names - node if _has_one_row_per(graphs, name, "num_edges", "num_nodes")
    }
    return node, edge, names - node - edge


def _has_one_row_per(graphs: Sequence[Data], name: str, owner: str, other: str) -> bool:
    """Whether an attribute has one row per node (or edge) in all graphs. Where both fit, PyG
    decides by the name.
    """
    if not isinstance(graphs[0][name], Tensor) or graphs[0][name].dim() == 0:
        return False
    rows = [graph[name].size(0) for graph in graphs]
    fits, fits_other = (
        rows == [getattr(graph, size) for graph in graphs] for size in (owner, other)
    )
    return fits and (not fits_other or graphs[0].is_node_attr(name) == (owner == "num_nodes"))
