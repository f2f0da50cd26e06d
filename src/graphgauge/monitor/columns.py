"""Has any of many columns moved? One exact p-value for all of them together, and how far each has
moved.

For N rows (targets), n of them new, and a column with mean 0 and SD 1 over all rows, the sum S over
the new rows has variance n (N - n) / (N - 1) if new rows are drawn at random, so

    z = S / sqrt(n (N - n) / (N - 1))        one for each column;        the statistic is max |z|

Its distribution comes from drawing the new rows at random again and again. Rows move as a whole, so
columns may depend on each other in any way, and no correction for their number is needed. With B
draws, p = (1 + draws at least as large) / (1 + B), valid for any B. Draws end early once ten were
as large and p is far above the level: such a p-value decides nothing. A column whose |z| cannot
reach what was seen, whichever rows are new, is left out of the draws: no p-value changes.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from graphgauge.core.errors import UndefinedScore
from graphgauge.monitor.two_samples import Values, double_ranks

STAGES = (99, 999, 9999)  #: draws after which to see whether they are enough
ENOUGH, CLEAR = 10, 10.0  #: so many as large, at so many times the level, are


@dataclass(frozen=True)
class Movement:
    """How the columns have moved."""

    p: float
    z: Values  #: (D,) above 0 where the new rows are larger

    @property
    def largest(self) -> list[int]:
        """Columns, the one that moved most first."""
        return [int(k) for k in np.argsort(-np.abs(self.z), kind="stable")]


def movement(
    new: Values,
    old: Values,
    level: float,
    generator: torch.Generator,
    counted: NDArray[np.bool_] | None = None,
) -> Movement:
    """Compare rows new (n, D) and old (m, D); p-values near ``level`` are known well enough to
    decide at it.

    ``counted`` (D,) says which columns the statistic is the largest |z| of (default: all). It may
    be chosen by looking at the data, because the draws still take the largest of all columns: p can
    only grow.
    """
    if not len(new) or not len(old) or new.shape[1] != old.shape[1]:
        raise UndefinedScore(
            f"rows of shape {new.shape} and {old.shape} were to be compared: both must have rows, and the same columns."
        )
    columns = standardised(np.concatenate([new, old]))
    z = column_scores(columns, torch.arange(len(columns))[None, : len(new)])[0]
    chosen = z if counted is None else z[torch.from_numpy(counted)]
    seen, count, made = float(chosen.abs().max() if len(chosen) else 0.0) - 1e-9, 0, 0
    columns = columns[:, most_extreme(columns, len(new)) >= seen]
    most = max(STAGES[1] + 1, math.ceil(2 / level) - 1)
    for draws in (*(stage for stage in STAGES if stage < most), most):
        count, made = count + exceeding(columns, len(new), seen, draws - made, generator), draws
        if count >= ENOUGH and (1 + count) / (1 + made) > CLEAR * level:
            break
    return Movement((1 + count) / (1 + made), z.numpy())


def ranked(rows: Values) -> Values:
    """Each column's values replaced by their mean ranks, so that no single value weighs more than
    another.  (N, D)
    """
    return np.stack([double_ranks(column) / 2 for column in rows.T], axis=1)


def standardised(rows: Values) -> torch.Tensor:
    """Columns with mean 0 and SD 1; those that do not vary stay 0.  (N, D)"""
    centred = rows - rows.mean(0)
    spread = centred.std(0)
    varies = spread > 1e-12 * np.maximum(1.0, np.abs(rows).max(0))
    return torch.from_numpy(np.where(varies, centred / np.where(varies, spread, 1.0), 0.0))


def column_scores(columns: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """The z of every column for rows chosen (B, n) as new.  (B, D)"""
    total, n = len(columns), chosen.size(1)
    is_new = torch.zeros(len(chosen), total, dtype=columns.dtype).scatter_(1, chosen, 1.0)
    return is_new @ columns / math.sqrt(max(1, n * (total - n)) / max(1, total - 1))


def most_extreme(columns: torch.Tensor, n: int) -> torch.Tensor:
    """The largest |z| that each column can have, whichever n rows are new.  (D,)"""
    ordered = columns.sort(0).values
    scale = math.sqrt(max(1, n * (len(columns) - n)) / max(1, len(columns) - 1))
    return torch.maximum(ordered[-n:].sum(0), -ordered[:n].sum(0)) / scale + 1e-9


def exceeding(
    columns: torch.Tensor, n: int, seen: float, draws: int, generator: torch.Generator
) -> int:
    """In how many of so many random draws max |z| is at least what was seen."""
    found = 0
    for start in range(0, draws, 1000):
        size = min(1000, draws - start)
        chosen = torch.rand(size, len(columns), generator=generator).topk(n, dim=1).indices
        found += int((column_scores(columns, chosen).abs().amax(1) >= seen).sum())
    return found


def as_indicators(lists: list[tuple[int, ...]], size: int) -> NDArray[np.float64]:
    """Lists of column numbers as rows of 0 and 1.

    >>> as_indicators([(0, 2), ()], 3)
    array([[1., 0., 1.],
           [0., 0., 0.]])
    """
    rows = np.zeros((len(lists), size))
    for row, chosen in zip(rows, lists, strict=True):
        row[list(chosen)] = 1.0
    return rows
