"""Checks of the user's graphs: each field of a Data that cannot be used is named."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from graphgauge.core import BadGraph

_MAX_NAME_LENGTH = 500


_INTEGER_TYPES = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def check_graph(data: Any, name: str, embeddings: Sequence[str] = ()) -> None:
    """Raise BadGraph, naming the field, if a graph cannot be used as it is.

    Args:
        data: What should be a ``Data``.
        name: What to call it in messages.
        embeddings: Names of the network's embedding layers, for advice.
    """
    if isinstance(data, HeteroData):
        raise BadGraph(
            f"{name} is a HeteroData; graphgauge works on one node and one edge type: use "
            f"{name}.to_homogeneous()."
        )
    if not isinstance(data, Data):
        raise BadGraph(f"{name} must be a torch_geometric.data.Data, but is {type(data).__name__}.")
    places = {
        field: data[field].device
        for field in ("x", "edge_index")
        if isinstance(data.get(field), Tensor)
    }
    if len(set(places.values())) > 1:
        raise BadGraph(
            f"{name}.x is on {places['x']} and {name}.edge_index on {places['edge_index']}: use "
            f"{name}.to(device)."
        )
    _check_features(data.x, f"{name}.x", embeddings)
    _check_edges(data, f"{name}.edge_index", data.x.size(0))
    for attribute in ("edge_weight", "edge_attr"):
        _check_edge_values(data.get(attribute), f"{name}.{attribute}", data.edge_index.size(1))


def _check_features(x: Any, name: str, embeddings: Sequence[str] = ()) -> None:
    """Raise BadGraph unless features are a dense, finite float matrix with a row and a column."""
    if not isinstance(x, Tensor):
        raise BadGraph(
            f"{name} must be a tensor of node features (N, F), but is {type(x).__name__}."
        )
    if x.layout != torch.strided:
        raise BadGraph(f"{name} is stored as {x.layout}: use {name}.to_dense().")
    if x.dtype in _INTEGER_TYPES and embeddings:
        raise BadGraph(
            f"{name} is {x.dtype} and the network looks whole numbers up in an embedding "
            f"(net.{', net.'.join(embeddings[:2])}), "
            "which .float() would break. Scores need real numbers, and explaining whole numbers is "
            "not supported yet: embed "
            f"first, such as data.x = net.{embeddings[0]}(data.x).flatten(1).detach(), and say how "
            "to call the rest of the "
            "network, such as forward=lambda net, g: net.head(net.conv(g.x, g.edge_index))."
        )
    if x.dtype not in (torch.float32, torch.float64):
        raise BadGraph(f"{name} is {x.dtype}; scores need float32 or float64: use {name}.float().")
    if x.dim() != 2 or 0 in x.shape:
        raise BadGraph(
            f"{name} must be (N, F) with at least one node and one feature, but has shape "
            f"{tuple(x.shape)}."
        )
    _check_finite_values(x, name)


def _check_finite_values(values: Tensor, name: str) -> None:
    """Raise BadGraph for NaN and infinity, naming the first row."""
    if values.is_floating_point() and not bool(torch.isfinite(values).all()):
        bad = (~torch.isfinite(values)).nonzero()
        raise BadGraph(
            f"{name} has {len(bad)} entries that are NaN or infinite, the first in row "
            f"{int(bad[0, 0])}: fill or drop them."
        )


def _check_edges(data: Data, name: str, num_nodes: int) -> None:
    """Raise BadGraph unless edges are (2, E) whole numbers in [0, N)."""
    edge_index = data.edge_index
    if edge_index is None and data.get("adj_t") is not None:
        raise BadGraph(
            f"the graph is stored as a sparse adj_t; {name} is needed: leave out the "
            "ToSparseTensor transform."
        )
    if not isinstance(edge_index, Tensor):
        raise BadGraph(
            f"{name} must be an integer tensor (2, E), but is {type(edge_index).__name__}."
        )
    if edge_index.layout != torch.strided:
        raise BadGraph(
            f"{name} is stored as {edge_index.layout}; (2, E) pairs are needed: use "
            "torch_geometric.utils.to_edge_index."
        )
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise BadGraph(
            f"{name} must hold whole numbers (int64), but is {edge_index.dtype}: use {name}.long()."
        )
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        hint = f": use {name}.t()" if edge_index.dim() == 2 and edge_index.size(1) == 2 else ""
        raise BadGraph(f"{name} must have shape (2, E), but has {tuple(edge_index.shape)}{hint}.")
    outside = ((edge_index < 0) | (edge_index >= num_nodes)).any(0).nonzero()
    if len(outside):
        edge = int(outside[0])
        raise BadGraph(
            f"{name} joins {edge_index[0, edge].item()} and {edge_index[1, edge].item()} in edge "
            f"{edge}, "
            f"but the {num_nodes} nodes are 0..{num_nodes - 1} ({len(outside)} such edges)."
        )


def _check_edge_values(values: Any, name: str, num_edges: int) -> None:
    """Raise BadGraph for edge weights or attributes that do not match the edges or are not
    finite.
    """
    if not isinstance(values, Tensor):
        return
    if values.dim() == 0 or values.size(0) != num_edges:
        raise BadGraph(
            f"{name} must have one row for each of the {num_edges} edges, but has shape "
            f"{tuple(values.shape)}."
        )
    _check_finite_values(values, name)


def check_feature_names(names: Sequence[str] | None, num_features: int) -> tuple[str, ...] | None:
    """The names of the features. Raises BadGraph for a name that cannot be used."""
    if names is None:
        return None
    if isinstance(names, str) or len(names) != num_features:
        raise BadGraph(
            f"feature_names must name each of the {num_features} features once, but {len(names)} "
            "were given."
        )
    for number, name in enumerate(names):
        if not isinstance(name, str) or not name.strip() or len(name) > _MAX_NAME_LENGTH:
            found = (
                f"{len(name)} characters" if isinstance(name, str) and name.strip() else repr(name)
            )
            raise BadGraph(
                f"feature_names[{number}] must be a text of 1 to {_MAX_NAME_LENGTH} characters, "
                f"but is {found}."
            )
    twice = (
        {name for name in names if list(names).count(name) > 1}
        if len(set(names)) < len(names)
        else set()
    )
    if twice:
        raise BadGraph(f"feature_names must differ, but {min(twice)!r} is given more than once.")
    return tuple(names)
