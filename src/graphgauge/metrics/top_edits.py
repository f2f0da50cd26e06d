"""How many edits are the top ones, as a number or as a share of the candidates."""

import torch
from torch import Tensor

from graphgauge.core import BadSetting
from graphgauge.metrics.base import MetricSettings
from graphgauge.metrics.bundles import NUM_LEVELS, is_valid_top


def top_counts(top: int | float, candidates: Tensor) -> Tensor:
    """Number of top edits of each case.  (Q,) -> (Q,)

    Args:
        top: A number of edits, or a share of the candidates between 0 and 1. A share gives the
            nearest number, at least one and fewer than all.
        candidates: How many edits are possible.

    >>> top_counts(10, torch.tensor([7, 30])), top_counts(0.2, torch.tensor([7, 30]))
    (tensor([ 7, 10]), tensor([1, 6]))
    """
    if not is_valid_top(top):
        raise BadSetting(f"top must be 1 or more, or a share between 0 and 1, but is {top!r}.")
    if isinstance(top, int):
        return candidates.clamp(max=top)
    return _keep_some_and_leave_some((top * candidates.double() + 0.5).long(), candidates)


def effective_top(settings: MetricSettings) -> int | float:
    """The number of top edits that an evaluation asks for, within its cap, or their share.

    Args:
        settings: The settings of the evaluation.
    """
    return min(settings.top, settings.cap) if isinstance(settings.top, int) else settings.top


def selects_all(top: int | float, candidates: Tensor) -> Tensor:
    """Whether all candidates are top edits, as for every explanation.  (Q,) -> (Q,) bool

    Args:
        top: A number of edits, or a share of the candidates between 0 and 1.
        candidates: How many edits are possible.
    """
    return top_counts(top, candidates) >= candidates


def level_counts(candidates: Tensor) -> Tensor:
    """Numbers nearest to 10, 20 .. 90 % of the candidates.  (Q,) -> (Q, 9)

    Each is at least one and fewer than all.

    >>> level_counts(torch.tensor([7, 50]))
    tensor([[ 1,  1,  2,  3,  4,  4,  5,  6,  6],
            [ 5, 10, 15, 20, 25, 30, 35, 40, 45]])
    """
    tenths = torch.arange(1, NUM_LEVELS + 1, device=candidates.device)
    count = (candidates[:, None] * tenths + 5) // 10
    return _keep_some_and_leave_some(count, candidates[:, None])


def _keep_some_and_leave_some(count: Tensor, candidates: Tensor) -> Tensor:
    """At least one, and fewer than all where there are several."""
    return torch.minimum(count.clamp(min=1), (candidates - 1).clamp(min=1))
