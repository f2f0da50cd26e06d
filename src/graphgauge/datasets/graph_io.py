"""Graphs on disk: one safetensors file with all tensors, and everything else as JSON in its
metadata. No pickle.

    one graph      tensors "x", "edge_index", "edge_attr", "y", "train_mask" ...
                   metadata {"class_names": '["no", "yes"]'}
    many graphs    the same names after the number of the graph: "0/x", "0/edge_index", "1/x" ...

Any program that writes safetensors can write such a file. Metadata that is not JSON is read as
text.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from graphgauge.core import BadFile, BadGraph
from graphgauge.datasets.raw_files import write_atomically

_REQUIRED_TENSORS = ("x", "edge_index")
_RESERVED_METADATA = ("format",)  #: metadata that other programs write for themselves
_GraphPath = str | os.PathLike[str]


def save_graph(data: Data | Sequence[Data], path: _GraphPath) -> None:
    """Write a graph, or a list of graphs, for `load_graph`.

    Args:
        data: A graph or a list of graphs.
        path: The file to write.

    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "graph.safetensors"
    >>> graph = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), class_names=["no", "yes"])
    >>> save_graph(graph, path)
    >>> load_graph(path)
    Data(x=[2, 2], edge_index=[2, 1], class_names=[2])
    """
    graphs = (
        {"": data}
        if isinstance(data, BaseData)
        else {f"{number}/": graph for number, graph in enumerate(data)}
    )
    if not graphs:
        raise BadGraph("save_graph was given an empty list: there is no graph to write.")
    items = {
        prefix + name: value
        for prefix, graph in graphs.items()
        for name, value in _graph_items(graph, prefix).items()
    }
    tensors = {
        name: value.detach().cpu().clone().contiguous()
        for name, value in items.items()
        if _is_dense_tensor(value)
    }
    texts = {
        name: _encode_json(name, value) for name, value in items.items() if name not in tensors
    }
    try:
        write_atomically(Path(path), save(tensors, metadata=texts))
    except OSError as error:
        raise BadFile(f"{os.fspath(path)} could not be written: {error}.") from error


def _graph_items(graph: Any, prefix: str) -> dict[str, Any]:
    """The attributes of a graph by name. Raises `BadGraph` for what is not a plain graph."""
    where = f"data[{prefix.rstrip('/')}]" if prefix else "data"
    if not isinstance(graph, Data):
        raise BadGraph(
            f"{where} must be a torch_geometric.data.Data, but is {type(graph).__name__}."
        )
    attributes: dict[str, Any] = {
        name: value for name, value in graph.to_dict().items() if value is not None
    }
    reserved = [name for name in attributes if "/" in name or name in _RESERVED_METADATA]
    if reserved:
        raise BadGraph(
            f"{where} has an attribute {reserved[0]!r}, a name that files of graphs reserve: "
            "rename "
            "the attribute."
        )
    return attributes


def _is_dense_tensor(value: Any) -> bool:
    """Whether a value is a tensor that safetensors can store."""
    return isinstance(value, Tensor) and value.layout == torch.strided


def _encode_json(name: str, value: Any) -> str:
    """A value that is not a dense tensor, as JSON."""
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as error:
        raise BadGraph(
            f"{name} is {type(value).__name__}, but a file of a graph holds dense tensors, texts, "
            "numbers, and lists and dictionaries of these: convert it, or leave it out with "
            f"`del data.{name}`."
        ) from error


def load_graph(path: _GraphPath) -> Data | list[Data]:
    """Read the graph, or the list of graphs, in a file. All tensors are on the CPU."""
    tensors, texts = _read_contents(Path(path))
    items: dict[str, Any] = {
        **tensors,
        **{
            name: _decode_json(text)
            for name, text in sorted(texts.items())
            if name not in _RESERVED_METADATA
        },
    }
    if any("/" in name for name in tensors):
        return _split_graphs(items, path)
    _check_required_tensors(items, path, "")
    return Data(**items)


def _read_contents(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a file. Raises `BadFile` if it cannot be read."""
    if path.suffix in (".pt", ".pth", ".pkl"):
        raise BadFile(
            f"{path} may be a pickle, and reading one can run whatever code is in it. Load it "
            "where "
            "you trust it, and write it again: `from graphgauge.datasets import save_graph; "
            "save_graph(data, 'graph.safetensors')`."
        )
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())  # safe_open is not a mapping
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise BadFile(
            f"{path} cannot be read as a graph: {error}. `graphgauge.datasets.save_graph` writes "
            "such files."
        ) from error


def _split_graphs(items: Mapping[str, Any], path: _GraphPath) -> list[Data]:
    """The graphs of a list, in their order."""
    graphs: dict[int, dict[str, Any]] = {}
    for name, value in items.items():
        number, slash, attribute = name.partition("/")
        if not (slash and number.isdecimal()):
            raise BadFile(
                f"{os.fspath(path)} mixes a list of graphs (0/x, 1/x ...) with {name!r}, which "
                "belongs to no graph."
            )
        graphs.setdefault(int(number), {})[attribute] = value
    in_order = [graphs.get(position, {}) for position in range(len(graphs))]
    for position, attributes in enumerate(in_order):
        _check_required_tensors(attributes, path, f"{position}/")
    return [Data(**attributes) for attributes in in_order]


def _check_required_tensors(items: Mapping[str, Any], path: _GraphPath, prefix: str) -> None:
    """Raise `BadFile` for a graph without features or edges."""
    missing = [
        prefix + name for name in _REQUIRED_TENSORS if not isinstance(items.get(name), Tensor)
    ]
    if missing:
        raise BadFile(
            f"{os.fspath(path)} has no tensor {' and no '.join(missing)}: a graph needs x (N, F) "
            "and "
            "edge_index (2, E)."
        )


def _decode_json(text: str) -> Any:
    """A value from the metadata; what is not JSON is a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
