"""Comparing rows of predictions: what difference counts as rounding."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    pass


PREDICTION_TOLERANCE = 1e-5  #: of a probability, or of the SD of predictions


COARSE_TOLERANCE = 1e-3  #: of the SD of raw rows


FINE_TOLERANCE = 1e-4  #: of the SD of raw rows, for probes on changed data


def is_close(first: Tensor, second: Tensor) -> bool:
    """Whether rows are equal within 1e-5 of the larger of each number and its column's median
    size.
    """
    if not first.numel():
        return True
    size = torch.maximum(first.abs(), second.abs()).nan_to_num(posinf=0.0)
    usual = size.reshape(len(size), -1).median(0).values.reshape(size.shape[1:])
    return bool(
        (largest_gap(first, second, PREDICTION_TOLERANCE * torch.maximum(size, usual)) <= 0).all()
    )


def is_alike(here: Tensor, whole: Tensor, share: float) -> bool:
    """Whether rows are equal within ``share`` of their standard deviation, or 1e-5 of the largest.

    Columns that are not finite are left out.
    """
    finite = whole[:, whole.isfinite().all(0)].double()
    if not finite.numel():
        return True
    allowed = max(
        share * float(finite.std(0, correction=0).max()),
        PREDICTION_TOLERANCE * float(finite.abs().max()),
    )
    return bool((largest_gap(here, whole) <= allowed).all())


def largest_gap(first: Tensor, second: Tensor, allowed: Tensor | float = 0.0) -> Tensor:
    """Largest difference in each row beyond what is allowed; equal infinities do not differ.  (T,
    ...) -> (T,)
    """
    gap = torch.where(first == second, torch.zeros_like(first), (first - second).abs() - allowed)
    return gap.reshape(len(gap), -1).amax(1) if gap.numel() else gap.new_zeros(len(gap))
