"""The raw rows that a network returns: their shape, whether they are finite, and the column of a
label.
"""

import torch
from torch import Tensor

from graphgauge.core import BadModel


def as_rows(raw: Tensor) -> Tensor:
    """One column for networks with one number per target.  (T,) or (T, columns) -> (T, columns)"""
    return raw[:, None] if raw.dim() == 1 else raw


def check_rows(raw: Tensor, count: int, what: str) -> Tensor:
    """Raw rows as (count, columns).

    Args:
        raw: What the network returned, (count,) or (count, columns).
        count: Number of rows that it must have.
        what: What there is one row for, as a word of the error message: "node", "link" or "graph".

    Raises:
        BadModel: There is another number of rows or dimensions, or no column.
    """
    rows = as_rows(raw)
    if rows.dim() != 2 or len(rows) != count or rows.size(1) == 0:
        raise BadModel(
            f"the net must return one row per {what}, here ({count}, C), but returned shape "
            f"{tuple(raw.shape)}."
        )
    return rows


def check_finite_rows(raw: Tensor, what: str) -> None:
    """Raise BadModel for NaN and infinity.

    Minus infinity passes beside a finite entry: a log-probability of zero, or a masked logit.
    """
    is_number = raw.isfinite() | (
        (raw == -torch.inf) & (raw.size(-1) > 1) & raw.isfinite().any(-1, keepdim=True)
    )
    bad = (~is_number).any(-1).nonzero()
    if len(bad):
        raise BadModel(
            f"the net gives NaN or infinity for {len(bad)} of {len(raw)} {what}s, the first is "
            f"number {int(bad[0])}."
        )


def label_column(rows: Tensor, label: Tensor) -> Tensor:
    """The column of each row's label.  (T, columns), (T,) -> (T, 1)"""
    if rows.size(1) == 0 or (len(label) and int(label.max()) >= rows.size(1)):
        raise BadModel(
            f"label {int(label.max())} was asked for, but the net returned {rows.size(1)} columns "
            "this time."
        )
    return rows.gather(1, label[:, None])
