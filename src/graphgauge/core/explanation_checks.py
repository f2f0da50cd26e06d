"""Checks of an explanation's tensors: its ids are different and in range, its scores fit them."""

import torch
from torch import Tensor

from graphgauge.core.errors import BadExplanation

_SHORT_LIST_LENGTH = 1000  #: ids


def check_target_nodes(target_nodes: tuple[int, ...], nodes: Tensor) -> None:
    """Raise BadExplanation if a node of the target is not among those of its explanation.

    Args:
        target_nodes: The node, the two ends of a link, or nothing for a graph.
        nodes: Ids of the explained nodes.  (n,)
    """
    missing = set(target_nodes) - set(nodes.tolist())
    if missing:
        raise BadExplanation(
            f"target node {min(missing)} is not among the {len(nodes)} nodes of its explanation."
        )


def check_ids(name: str, ids: Tensor, size: int) -> None:
    """Raise BadExplanation unless ids are different whole numbers in [0, size).

    Args:
        name: What to call them in messages.
        ids: The ids.  (n,) int64
        size: Number of nodes or edges in the whole graph.
    """
    if not isinstance(ids, Tensor) or ids.dim() != 1 or ids.dtype != torch.int64:
        raise BadExplanation(f"{name} must be a list of int64 ids, but is {_type_and_shape(ids)}.")
    if not len(ids):
        return
    least, most, different = _id_range(ids)
    if not (least >= 0 and most < size):
        raise BadExplanation(f"{name} must lie in 0..{size - 1}, but reach from {least} to {most}.")
    if different < len(ids):
        raise BadExplanation(
            f"{name} must name each id once, but {len(ids) - different} come again."
        )


def _id_range(ids: Tensor) -> tuple[int, int, int]:
    """The least and the most of ids, and how many different ones there are.

    For a short list this is fastest in Python.

    >>> _id_range(torch.tensor([4, 1, 4]))
    (1, 4, 2)
    """
    if len(ids) <= _SHORT_LIST_LENGTH:
        listed = ids.tolist()
        return min(listed), max(listed), len(set(listed))
    ordered = ids.sort().values
    least, most, steps = torch.stack(
        [ordered[0], ordered[-1], (ordered[1:] != ordered[:-1]).sum()]
    ).tolist()
    return least, most, steps + 1


def check_scores(name: str, score: Tensor | None, ids: Tensor, dims: int) -> None:
    """Raise BadExplanation unless scores are real numbers, with one row for each id.

    NaN passes, because the Evaluator records it as a gap.

    Args:
        name: What to call them in messages.
        score: The scores, (n,) or (n, F); None is a side that the explainer does not give.
        ids: The ids that are scored.  (n,)
        dims: Number of dimensions that the scores must have, 1 or 2.
    """
    if score is None:
        return
    wanted = f"{len(ids)} rows of floats" if dims == 2 else f"{len(ids)} floats"
    if (
        not isinstance(score, Tensor)
        or not score.is_floating_point()
        or score.dim() != dims
        or len(score) != len(ids)
    ):
        raise BadExplanation(f"{name} must hold {wanted}, but is {_type_and_shape(score)}.")


def _type_and_shape(value: object) -> str:
    """The type of a value, and the shape of a tensor, for error messages."""
    return (
        f"{value.dtype} of shape {tuple(value.shape)}"
        if isinstance(value, Tensor)
        else type(value).__name__
    )
