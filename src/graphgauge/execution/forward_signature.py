"""How to call the user's network, found from its signature.

    net(x, edge_index)                        passes other attributes of ``data`` that forward names
                                              by keyword
    net(x, edge_index, edge_label_index=...)  for links
    net.decode(net.encode(x, edge_index), edge_label_index)     also for links
    forward(net, g)                           a user's function; g is a ``Data`` with everything

``batch`` is passed if data has it, if forward requires it, and if copies in one union have to be
told apart.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data

from graphgauge.core import BadModel

ForwardFunction = Callable[[Module, Data], Tensor]
#: arguments that come from us, not from ``data``
_RESERVED_ARGUMENTS = ("edge_label_index", "batch")


@dataclass(frozen=True)
class ForwardAdapter:
    """A network and the way to call it.

    Args:
        net: The network.
        style: "forward", "edge_label_index", "encode_decode" or "custom".
        names: Attributes of ``data`` that it takes by keyword; None for all.
        takes_batch: Whether it takes ``batch``.
        needs_batch: Whether it cannot be called without.
        forward: The user's function, if there is one.
        column: The only column of the output that is used; None for all.
    """

    net: Module
    style: str
    names: tuple[str, ...] | None
    takes_batch: bool
    needs_batch: bool = False
    forward: ForwardFunction | None = None
    column: int | None = None

    def __call__(self, g: Data) -> Tensor:
        """Raw rows of the network on ``g``: one per node, link or graph."""
        if self.style == "encode_decode":
            return self.decode(self.encode(g), g.edge_label_index)
        if self.forward is not None:
            return self.rows_of(self.forward(self.net, g))
        links = {"edge_label_index": g.edge_label_index} if self.style == "edge_label_index" else {}
        return self.rows_of(self.net(g.x, g.edge_index, **self.arguments(g), **links))

    def encode(self, g: Data) -> Tensor:
        """Node embeddings of an encode/decode network."""
        arguments = self.arguments(g)
        nodes = self.net.encode(g.x, g.edge_index, **arguments)  # type: ignore[operator]
        return _check_output_tensor(nodes)

    def decode(self, z: Tensor, pairs: Tensor) -> Tensor:
        """Raw rows for ``pairs`` (2, P) of nodes with embeddings ``z``."""
        return self.rows_of(self.net.decode(z, pairs))  # type: ignore[operator]

    def rows_of(self, output: Any) -> Tensor:
        """The network's output as rows, or the chosen column of it."""
        rows = _check_output_tensor(output)
        return rows if self.column is None else _select_output_column(rows, self.column)

    def arguments(self, g: Data) -> dict[str, Any]:
        """The keyword arguments."""
        named = {name: g[name] for name in self.names or ()}
        return (
            {**named, "batch": g.batch}
            if self.takes_batch and g.get("batch") is not None
            else named
        )


def build_forward_adapter(
    net: Any, level: str, held: set[str], forward: ForwardFunction | None
) -> ForwardAdapter:
    """Find out how to call a network.

    Args:
        net: The network.
        level: "node", "link" or "graph".
        held: Names of the attributes of ``data``.
        forward: The user's function ``forward(net, g)``, if there is one.

    Raises:
        BadModel: If the network cannot be called; the message says how to help.
    """
    net = _check_network(net)
    if forward is not None:
        if not callable(forward):
            raise BadModel(
                f"forward must be a function (net, g) -> tensor, but is {type(forward).__name__}."
            )
        return ForwardAdapter(net, "custom", None, takes_batch=True, forward=forward)
    style, entry = _find_calling_style(net, level)
    takes = _forward_parameters(entry)
    missing = [
        name
        for name, needed in takes.items()
        if needed and name not in held and name not in _RESERVED_ARGUMENTS
    ]
    if missing:
        raise BadModel(
            f"{type(net).__name__}.{entry.__name__} needs {missing[0]!r}, which data does not "
            "have. "
            f"Set data.{missing[0]}, or say how to call the net: forward=lambda net, g: net(...)."
        )
    ours = _RESERVED_ARGUMENTS if level == "graph" else _RESERVED_ARGUMENTS[:1]
    names = tuple(name for name in takes if name in held and name not in ours)
    return ForwardAdapter(
        net, style, names, takes_batch="batch" in takes, needs_batch=takes.get("batch", False)
    )


def _check_network(net: Any) -> Module:
    """The plain module inside ``net``. Raises BadModel if it cannot be used."""
    if isinstance(net, torch.export.ExportedProgram) or (
        isinstance(net, torch.fx.GraphModule) and "eval" in vars(net)
    ):
        raise BadModel(
            "net was made by torch.export: its graph is fixed, and it has no evaluation mode. Wrap "
            "the module that was exported; "
            "its weights are in net.state_dict()."
        )
    if not isinstance(net, Module):
        raise BadModel(f"net must be a torch.nn.Module, but is {type(net).__name__}.")
    net = getattr(net, "_orig_mod", net)  # torch.compile would trace anew for every union
    from torch.nn.parameter import is_lazy

    tensors = [*net.named_parameters(), *net.named_buffers()]
    lazy = [name for name, value in tensors if is_lazy(value)]
    if lazy:
        raise BadModel(
            f"net has lazy parameters without a shape yet ({lazy[0]}): run one forward pass, or "
            "train it, first."
        )
    frozen = [name for name, value in tensors if value.is_inference()]
    if frozen:
        raise BadModel(
            f"{frozen[0]} of the net was made inside torch.inference_mode() and has no gradients: "
            "build the net outside."
        )
    return net


def embedding_layers(net: Any) -> list[str]:
    """Names of the layers that look integers up in an embedding."""
    if not isinstance(net, Module):
        return []
    return [
        name
        for name, module in net.named_modules()
        if name and isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag))
    ]


def _find_calling_style(net: Module, level: str) -> tuple[str, Callable[..., Any]]:
    """The calling style, and the method whose signature names the inputs."""
    if level != "link":
        return "forward", net.forward
    if "edge_label_index" in _forward_parameters(net.forward, skip=0):
        return "edge_label_index", net.forward
    if callable(getattr(net, "encode", None)) and callable(getattr(net, "decode", None)):
        return "encode_decode", net.encode  # type: ignore[return-value]
    raise BadModel(
        f"{type(net).__name__} cannot be asked for links: its forward takes no edge_label_index "
        "and it has no encode and "
        "decode. Add one of these, or say how to call it: forward=lambda net, g: ... (the pairs "
        "are in g.edge_label_index)."
    )


def _forward_parameters(entry: Callable[..., Any], skip: int = 2) -> dict[str, bool]:
    """The parameters of a function behind the first ``skip`` (x and edge_index), and whether each
    is required.
    """
    try:
        signature = _read_signature(entry)
    except ValueError as error:
        raise BadModel(
            "the net's forward cannot be read. Say how to call it: forward=lambda net, g: net(g.x, "
            "g.edge_index)."
        ) from error
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    given = [item for item in signature.parameters.values() if item.kind not in variadic]
    open_ended = any(item.kind in variadic for item in signature.parameters.values())
    if len(given) < skip and not open_ended:
        raise BadModel(
            f"the net is called as net(x, edge_index), but {entry.__qualname__} takes {len(given)} "
            "argument(s). "
            "Say how to call it, for example forward=lambda net, g: net(g)."
        )
    if skip and len(given) > 1 and given[1].name == "adj_t":
        raise BadModel(
            f"{entry.__qualname__} takes a sparse adj_t; graphgauge passes edge_index. Use "
            "forward=lambda net, g: ..."
        )
    return {item.name: item.default is inspect.Parameter.empty for item in given[skip:]}


def _read_signature(entry: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, or of a method made by `torch.jit.trace`, which only has a
    schema.
    """
    if not isinstance(entry, torch.ScriptMethod):
        return inspect.signature(entry)
    empty = inspect.Parameter.empty
    return inspect.Signature(
        [
            inspect.Parameter(
                item.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=None if item.has_default_value() else empty,
            )
            for item in entry.schema.arguments[1:]
        ]
    )


def _select_output_column(rows: Tensor, column: int) -> Tensor:
    """One column of raw rows. Raises BadModel if there is no such column.  (rows, columns) ->
    (rows, 1)
    """
    columns = rows.size(1) if rows.dim() == 2 else 1
    if column >= columns:
        raise BadModel(
            f"output_column={column} was asked for, but the net returns {columns} column(s), "
            "counted from 0."
        )
    return rows.reshape(len(rows), columns)[:, column : column + 1]


def _describe_non_tensor(output: Any) -> str:
    """Describe what a network returned instead of a tensor, and how to select the right part."""
    call = "forward=lambda net, g: net(g.x, g.edge_index)"
    if isinstance(output, Mapping):
        kept = [key for key, value in output.items() if isinstance(value, Tensor)]
        listed = ", ".join(map(_describe_entry, output.items())) or "no keys"
        pick = f"[{kept[0]!r}]" if kept else "[key]"
        return (
            f"a {type(output).__name__} with {listed}; one tensor is needed. Pick the right part, "
            f"for example {call}{pick}."
        )
    if isinstance(output, (tuple, list)):
        kept = [k for k, value in enumerate(output) if isinstance(value, Tensor)]
        listed = ", ".join(map(_describe_entry, enumerate(output))) or "nothing in it"
        names = getattr(output, "_fields", None)
        pick = (f".{names[kept[0]]}" if names else f"[{kept[0]}]") if kept else "[0]"
        return (
            f"a {type(output).__name__} with {listed}; one tensor is needed. Pick the right part, "
            f"for example {call}{pick}."
        )
    return (
        f"a {type(output).__name__}, one tensor is needed. Pick the right part of it, for example "
        f"{call}.logits."
    )


def _describe_entry(entry: tuple[Any, Any]) -> str:
    """Describe a key and its value."""
    key, value = entry
    return (
        f"{key!r}: "
        f"{f'tensor {tuple(value.shape)}' if isinstance(value, Tensor) else type(value).__name__}"
    )


def _check_output_tensor(output: Any) -> Tensor:
    """The network's output. Raises BadModel unless it is a tensor of floats with a row per
    target.
    """
    if not isinstance(output, Tensor):
        raise BadModel(f"the net returned {_describe_non_tensor(output)}")
    if output.dim() == 0:
        raise BadModel(
            "the net returned a single number; one row per node, link or graph is needed."
        )
    if not output.is_floating_point():
        raise BadModel(
            f"the net returned {output.dtype}; probabilities, logits or values (floats) are needed."
        )
    return output
