"""The columns that the drift tests of the data compare: distributions and relations of columns.

Both become columns of numbers with one row per target. The permutation test compares their sums
over the new rows with those over random rows. Everything that is chosen or fitted here uses new and
old rows together, without knowing which are new, so the p-values stay exact. Below, r are the mean
ranks of a column over all rows, scaled to mean 0 and standard deviation 1, and u the same ranks
scaled to between -1 and 1.

    shift      P_1(u) to P_4(u), Legendre polynomials: they react to larger values, more spread,
               skewness and heavier tails (Neyman's smooth test); a column with v different values
               has the first v - 1 of them, because it can differ in no more ways
    pair       r_i r_j: large where two columns rise together; and |r_i -+ r_j| of clearly
               correlated columns: large where the two differ
    residual   |r_i - its ridge regression on the 2, or 8, most correlated columns|: large where a
               column does not follow them
    gap        the rank of how far a feature of the target is from that of its neighbours

Scrambling or swapping columns does not change `shift`, but changes the other three. Pairs are all
pairs of up to 64 columns, otherwise the MOST_PAIRS most correlated ones. The predictions of the
network follow from its input columns, so they are not used to predict other columns. Columns with
one value in more than 95 % of the rows have no pairs and no residual; `shift` and `gap` cover them.
Among more than MOST_RELATED columns, those whose ranks vary most are taken.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphgauge.monitor.multivariate_drift import column_ranks, standardise_columns
from graphgauge.monitor.run_sample import Sample
from graphgauge.monitor.triggers import format_signed
from graphgauge.monitor.two_sample_tests import FloatArray

_MOST_PAIRS = 2016  #: 64 columns have so many
_MOST_RELATED = 512  #: columns among which relations are looked for
_LEAST_CORRELATION = 0.3  #: correlation above which two columns also have a distance
_PREDICTOR_COUNTS = (2, 8)  #: columns from which another one is predicted: a few, and more
_RIDGE_PENALTY = 0.01  #: beside a variance of 1
_COMMON_SHARE = 0.95  #: share of rows with one value above which a column has no relations
_MOST_CLASSES = 10  #: classes up to which each has a label column of its own
_SHAPE_NAMES = ("", "spread", "skewness", "tails")  #: what Legendre's polynomials say
_PAIR, _RESIDUAL, _GAP = "pair", "residual", "gap"


class _ColumnMeaning(NamedTuple):
    """What one column of a test describes."""

    kind: str  #: '' (larger values), 'spread', 'skewness', 'tails', 'pair', 'residual' or 'gap'
    column: int  #: number of the column; of the feature for 'gap'
    others: tuple[
        int, ...
    ] = ()  #: the other one of a pair; those that predict, the most related first


@dataclass(frozen=True)
class DriftColumns:
    """Columns for a permutation test and what they describe; the first rows are the new ones."""

    rows: FloatArray  # (n + m, K)
    about: tuple[_ColumnMeaning, ...]
    names: tuple[str, ...] = ()  #: of label columns, which come after those of the data


def shift_columns(new: Sample, old: Sample) -> DriftColumns:
    """Describe the distribution of every data column, and of the labels where all are known."""
    rows, names = _data_and_labels(new, old)
    u = (2 * column_ranks(rows) - 1) / len(rows) - 1
    levels = np.array([len(np.unique(column)) for column in u.T])
    polynomials = (u, (3 * u**2 - 1) / 2, (5 * u**3 - 3 * u) / 2, (35 * u**4 - 30 * u**2 + 3) / 8)
    kept = [
        np.flatnonzero(levels > k + 1) if k else np.arange(len(levels))
        for k in range(len(_SHAPE_NAMES))
    ]
    about = tuple(
        _ColumnMeaning(_SHAPE_NAMES[k], int(own)) for k, chosen in enumerate(kept) for own in chosen
    )
    found = [values[:, chosen] for values, chosen in zip(polynomials, kept, strict=True)]
    return DriftColumns(np.concatenate(found, axis=1), about, names)


def relation_columns(new: Sample, old: Sample, predictions: Collection[int] = ()) -> DriftColumns:
    """Describe how data columns and labels relate, and how far features are from the neighbours'.

    Args:
        new: The targets of this run.
        old: The targets of the baseline.
        predictions: Numbers of the data columns that hold predictions of the network.
    """
    values, names = _data_and_labels(new, old)
    eligible = _related_columns(values)
    r = (
        standardise_columns(column_ranks(values[:, eligible])).numpy()
        if len(eligible)
        else np.zeros((len(values), 0))
    )
    usable = ~np.isin(eligible, list(predictions))
    parts, about = [], []
    for rows, told in (
        _pair_columns(r),
        *(_residual_columns(r, usable, count) for count in _PREDICTOR_COUNTS),
        _gap_columns(new, old),
    ):
        parts.append(rows)
        about += (
            told
            if told and told[0].kind == _GAP
            else [_with_data_numbers(own, eligible) for own in told]
        )
    return DriftColumns(np.concatenate(parts, axis=1), tuple(about), names)


def _with_data_numbers(about: _ColumnMeaning, eligible: NDArray[np.int64]) -> _ColumnMeaning:
    """Replace the numbers among the eligible columns by the numbers among all data columns."""
    return _ColumnMeaning(
        about.kind, int(eligible[about.column]), tuple(int(eligible[k]) for k in about.others)
    )


def _data_and_labels(new: Sample, old: Sample) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the data columns followed by the label columns, and the names of the latter.

    The array has shape (n + m, D + L).
    """
    labels, names = _label_columns(new, old)
    data = np.concatenate([own.data for own in (new, old) if own.data is not None])
    return np.concatenate([data, labels], axis=1), names


def _label_columns(new: Sample, old: Sample) -> tuple[FloatArray, tuple[str, ...]]:
    """Turn labels into columns: one column of values, or one per class of three to ten.

    Returns no column unless all labels are known.  (n + m, L)
    """
    if new.labels is None or old.labels is None:
        return np.zeros((len(new) + len(old), 0)), ()
    labels = np.concatenate([new.labels, old.labels])
    if not np.isfinite(labels).all():
        return np.zeros((len(labels), 0)), ()
    classes = np.unique(labels)
    if not 2 < len(classes) <= _MOST_CLASSES or (classes != np.round(classes)).any():
        return labels[:, None], ("label",)
    return (labels[:, None] == classes).astype(np.float64), tuple(
        f"label is {own:g}" for own in classes
    )


def _related_columns(values: FloatArray) -> NDArray[np.int64]:
    """Return the numbers of the columns that vary enough to have relations, in rising order."""
    common = np.array([np.unique(column, return_counts=True)[1].max() for column in values.T])
    eligible = np.flatnonzero(common <= _COMMON_SHARE * len(values))
    if len(eligible) > _MOST_RELATED:
        eligible = np.sort(eligible[np.argsort(common[eligible], kind="stable")[:_MOST_RELATED]])
    return eligible


def _pair_columns(r: FloatArray) -> tuple[FloatArray, list[_ColumnMeaning]]:
    """Return r_i r_j of the most correlated pairs, then |r_i -+ r_j| of clearly correlated ones.

    The argument has shape (N, D), the result (N, P).
    """
    first, second = np.triu_indices(r.shape[1], 1)
    correlation = (r.T @ r / len(r))[first, second].round(6)
    if len(first) > _MOST_PAIRS:
        chosen = np.sort(np.argsort(-np.abs(correlation), kind="stable")[:_MOST_PAIRS])
        first, second, correlation = first[chosen], second[chosen], correlation[chosen]
    near = np.abs(correlation) >= _LEAST_CORRELATION
    apart = np.abs(r[:, first[near]] - np.sign(correlation[near]) * r[:, second[near]]).round(9)
    rows = np.concatenate([r[:, first] * r[:, second], apart], axis=1)
    own, other = np.concatenate([first, first[near]]), np.concatenate([second, second[near]])
    return rows, [_ColumnMeaning(_PAIR, int(i), (int(j),)) for i, j in zip(own, other, strict=True)]


def _residual_columns(
    r: FloatArray, usable: NDArray[np.bool_], predictors: int
) -> tuple[FloatArray, list[_ColumnMeaning]]:
    """Return |r_i - its prediction from the most correlated usable columns|.  (N, D) -> (N, D)"""
    total, width = r.shape
    if usable.sum() < 2:
        return np.zeros((total, 0)), []
    correlation = r.T @ r / total
    strength = np.where(usable, np.abs(correlation).round(6), -1.0) - 2 * np.eye(width)
    # (D, K)
    chosen = np.argsort(-strength, axis=1, kind="stable")[
        :, : min(predictors, int(usable.sum()) - 1)
    ]
    inner = correlation[chosen[:, :, None], chosen[:, None, :]] + _RIDGE_PENALTY * np.eye(
        chosen.shape[1]
    )
    weights = np.linalg.solve(inner, np.take_along_axis(correlation, chosen, 1)[:, :, None])[
        :, :, 0
    ]
    predicted = np.stack(
        [r[:, own] @ weight for own, weight in zip(chosen, weights, strict=True)], axis=1
    )
    about = [_ColumnMeaning(_RESIDUAL, k, tuple(own)) for k, own in enumerate(chosen.tolist())]
    return np.abs(r - predicted).round(9), about


def _gap_columns(new: Sample, old: Sample) -> tuple[FloatArray, list[_ColumnMeaning]]:
    """Return the ranks of the gaps to neighbours; no columns where gaps are not known.  (N, F)"""
    if new.gaps is None or old.gaps is None:
        return np.zeros((len(new) + len(old), 0)), []
    rows = (
        column_ranks(np.concatenate([new.gaps, old.gaps]))
        if new.gaps.shape[1]
        else np.zeros((len(new) + len(old), 0))
    )
    return rows, [_ColumnMeaning(_GAP, k) for k in range(rows.shape[1])]


def describe_shift(about: _ColumnMeaning, z: float, name: str) -> str:
    """Describe a shifted column, such as 'income (+4.1)' or 'spread of income (-5.0)'."""
    return f"{f'{about.kind} of ' if about.kind else ''}{name} ({format_signed(z, 1)})"


def describe_relation(about: _ColumnMeaning, z: float, names: Sequence[str]) -> str:
    """Describe a relation that broke; ``names`` are those of its own column, then of the others."""
    own, others, far = names[0], names[1:], f"(z {format_signed(z, 1)})"
    if about.kind == _GAP:
        side = "farther from" if z > 0 else "closer to"
        return f"{own} of targets is {side} that of their neighbours than it was {far}"
    return f"{own} no longer varies with {' and '.join(others)} as it did {far}"
