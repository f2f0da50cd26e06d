"""One exact permutation test for a shift in any of many columns.

Of N rows (targets), n are new. For a column with mean 0 and standard deviation 1 over all rows, the
sum S over the new rows has variance n (N - n) / (N - 1) if the new rows are drawn at random. So

    z = S / sqrt(n (N - n) / (N - 1))    for each column;    the test statistic is max |z|

Its null distribution comes from drawing the new rows at random many times. Rows are drawn as a
whole, so columns may depend on each other in any way, and their number needs no correction. With B
draws, p = (1 + number of draws with a statistic at least as large) / (1 + B), which is valid for
any B. Drawing ends early once ten draws were as large and p is far above the level, because such a
p-value decides nothing. Columns whose |z| cannot reach the observed statistic, whichever rows are
new, are left out of the draws; this changes no p-value.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from graphgauge.core import UndefinedScore, mean_ranks
from graphgauge.monitor.two_sample_tests import FloatArray

_DRAW_STAGES = (99, 999, 9999)  #: draws after which to see whether they are enough
_ENOUGH_EXCEEDING, _CLEAR_FACTOR = 10, 10.0  #: so many as large, at so many times the level, are


@dataclass(frozen=True)
class PermutationResult:
    """How far the columns have shifted, and one p-value for all of them."""

    p: float
    z: FloatArray  #: (D,) above 0 where the new rows are larger

    @property
    def largest(self) -> list[int]:
        """Column numbers, ordered by falling |z|."""
        return [int(k) for k in np.argsort(-np.abs(self.z), kind="stable")]


def permutation_test(
    new: FloatArray,
    old: FloatArray,
    level: float,
    generator: torch.Generator,
    counted: NDArray[np.bool_] | None = None,
) -> PermutationResult:
    """Compare the rows new (n, D) with the rows old (m, D).

    Args:
        new: Rows of the targets of this run (n, D).
        old: Rows of the targets of the baseline (m, D).
        level: The level at which the caller decides; p-values near it are precise enough for that.
        generator: Draws the permutations.
        counted: Which columns (D,) enter the observed statistic (default: all). The caller may
            choose them by looking at the data, because each draw still takes the largest |z| of
            all columns: that can only make p larger.

    Raises:
        UndefinedScore: One of the samples is empty, or they have different columns.
    """
    if not len(new) or not len(old) or new.shape[1] != old.shape[1]:
        raise UndefinedScore(
            f"Rows of shapes {new.shape} and {old.shape} cannot be compared. "
            "Both need at least one row, and the same number of columns."
        )
    columns = standardise_columns(np.concatenate([new, old]))
    z = _column_scores(columns, torch.arange(len(columns))[None, : len(new)])[0]
    chosen = z if counted is None else z[torch.from_numpy(counted)]
    seen, count, made = float(chosen.abs().max() if len(chosen) else 0.0) - 1e-9, 0, 0
    columns = columns[:, _largest_possible_scores(columns, len(new)) >= seen]
    most = max(_DRAW_STAGES[1] + 1, math.ceil(2 / level) - 1)
    for draws in (*(stage for stage in _DRAW_STAGES if stage < most), most):
        count, made = (
            count + _count_exceeding(columns, len(new), seen, draws - made, generator),
            draws,
        )
        if count >= _ENOUGH_EXCEEDING and (1 + count) / (1 + made) > _CLEAR_FACTOR * level:
            break
    return PermutationResult((1 + count) / (1 + made), z.numpy())


def column_ranks(rows: FloatArray) -> FloatArray:
    """Replace the values of each column by their mean ranks, so that no value dominates.  (N, D)"""
    return np.stack([mean_ranks(column) for column in rows.T], axis=1)


def standardise_columns(rows: FloatArray) -> torch.Tensor:
    """Scale columns to mean 0 and standard deviation 1; constant columns become 0.  (N, D)"""
    centred = rows - rows.mean(0)
    spread = centred.std(0)
    varies = spread > 1e-12 * np.maximum(1.0, np.abs(rows).max(0))
    return torch.from_numpy(np.where(varies, centred / np.where(varies, spread, 1.0), 0.0))


def _column_scores(columns: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return z of every column, for each choice (B, n) of rows as the new ones.  (B, D)"""
    total, n = len(columns), chosen.size(1)
    is_new = torch.zeros(len(chosen), total, dtype=columns.dtype).scatter_(1, chosen, 1.0)
    return is_new @ columns / math.sqrt(max(1, n * (total - n)) / max(1, total - 1))


def _largest_possible_scores(columns: torch.Tensor, n: int) -> torch.Tensor:
    """Return the largest |z| that each column can have, whichever n rows are new.  (D,)"""
    ordered = columns.sort(0).values
    scale = math.sqrt(max(1, n * (len(columns) - n)) / max(1, len(columns) - 1))
    return torch.maximum(ordered[-n:].sum(0), -ordered[:n].sum(0)) / scale + 1e-9


def _count_exceeding(
    columns: torch.Tensor, n: int, seen: float, draws: int, generator: torch.Generator
) -> int:
    """Count the random draws in which max |z| is at least the observed statistic."""
    found = 0
    for start in range(0, draws, 1000):
        size = min(1000, draws - start)
        chosen = torch.rand(size, len(columns), generator=generator).topk(n, dim=1).indices
        found += int((_column_scores(columns, chosen).abs().amax(1) >= seen).sum())
    return found


def indicator_rows(lists: list[tuple[int, ...]], size: int) -> NDArray[np.float64]:
    """Turn lists of column numbers into rows of 0 and 1.

    >>> indicator_rows([(0, 2), ()], 3)
    array([[1., 0., 1.],
           [0., 0., 0.]])
    """
    rows = np.zeros((len(lists), size))
    for row, chosen in zip(rows, lists, strict=True):
        row[list(chosen)] = 1.0
    return rows
