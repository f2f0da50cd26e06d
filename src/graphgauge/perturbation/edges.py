"""Deletion curves of edges: the output after the first k edges of an order are gone, for many targets and orders at once.

``removal="mask"`` multiplies the messages of an edge by 0, normalisation and attention staying as they were; "drop" takes the
edge out of the graph. Each point of each curve is a copy of its target's computation graph; all of them are one stream of
disjoint unions inside the memory budget.
"""

import torch
from torch import Tensor

from graphgauge.core.errors import BadModel, BadSetting
from graphgauge.models import BaseModel, ComputationGraphs, Union

REMOVALS = ("mask", "drop")


def edge_curves(model: BaseModel, graphs: ComputationGraphs, steps: Tensor, length: Tensor, removal: str = "mask") -> Tensor:
    """Predictions after 1..K removals.  steps (R, edges), length (T,) -> (T, R, K, C) or (T, R, K), K the largest length

    ``steps`` says when each edge goes (see `orders`). Behind the length of a target's curves stands NaN.
    """
    check_removal(model, removal)
    target, order, step = points(length, len(steps))

    def edit(union: Union) -> Union:
        when = steps[order[union.copy][union.edge_copy], union.edge_row]
        is_gone = (when > 0) & (when <= step[union.copy][union.edge_copy])
        return union.without_edges(is_gone) if removal == "drop" else union.with_mask((~is_gone).to(union.x))

    found = model.pred_copies(graphs, target, edit)
    size = int(length.max()) if len(length) else 0
    curves = found.new_full((len(length), len(steps), size, *found.shape[1:]), torch.nan)
    curves[target, order, step - 1] = found
    return curves


def points(length: Tensor, orders: int) -> tuple[Tensor, Tensor, Tensor]:
    """Target, order and step (from 1) of every point; target by target, order by order.  (P,), (P,), (P,)"""
    target = torch.repeat_interleave(torch.arange(len(length), device=length.device), length * orders)
    within = torch.arange(len(target), device=length.device) - (orders * (length.cumsum(0) - length))[target]
    own = length[target].clamp(min=1)
    return target, within // own, within % own + 1


def check_removal(model: BaseModel, removal: str) -> None:
    """Refuse an unknown removal, and masks where messages cannot be masked."""
    if removal not in REMOVALS:
        raise BadSetting(f"edge_removal must be 'mask' or 'drop', but {removal!r} was given.")
    if removal == "mask" and model.mask_support != "exact":
        raise BadModel(f"edge_removal='mask' is not possible for {type(model.net).__name__}: {model.mask_support}.")
