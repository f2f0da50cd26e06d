"""Errors of networks in probes: what counts as a failure, and what to tell about it."""

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel


#: what networks raise on graphs they cannot work on, such as a norm on a single node
FORWARD_ERRORS = (RuntimeError, ValueError, LookupError, AssertionError, TypeError, AttributeError)


def explain_renumbering_failure(model: "BaseModel", found: str) -> str:
    """The error message for a network that fails, or gives other results, if nodes and edges are
    reordered.
    """
    source = model.source
    fits_both = (
        [name for name in source.node_attrs if name != "x"]
        if torch.equal(source.node_ptr, source.edge_ptr)
        else []
    )
    advice = [
        f" data.{name} has a row for each node and for each edge, and counts as the nodes': call "
        f"it edge_{name} if it is the edges'."
        for name in fits_both
    ]
    return (
        f"{type(model.net).__name__} {found} when nodes and edges are renumbered, so it cannot be "
        "evaluated on copies or parts of "
        "the graph. Does it keep something for each node or edge by its position, or need its "
        "edges in a certain order? Store "
        f"such things in data, one row per node or edge, where they are cut along.{''.join(advice)}"
    )
