"""What the tests of the data look at: the distribution of each column, and how columns go together.

Both become columns of numbers, one row per target, whose sums over the new rows `columns.movement`
compares with those of random rows. Whatever is chosen or fitted here looks at new and old rows
together and not at which is which, so the p-values stay exact. r: mean ranks of a column over all
rows, moved to mean 0 and SD 1; u: the same ranks between -1 and 1.

    shift      P_1(u) to P_4(u), Legendre's polynomials: larger values, more spread, skewness, tails (Neyman's smooth test); of a
               column with v different values the first v - 1 of them, which are all it can differ
               in
    pair       r_i r_j: large where two columns rise together;  |r_i -+ r_j| of clearly related columns: large where they differ
    residual   |r_i - its ridge regression on the 2, or 8, columns most related to it|: large where it does not follow them
    gap        the rank of how far a feature of the target is from its neighbours'

Scrambling or swapping columns leaves `shift` alone, and moves the other three. Pairs: all of up to
64 columns, else the MOST_PAIRS most correlated ones. What the network predicts follows whatever
columns it is given, so that columns are not predicted from it. Columns with one value in more than
95 % of the rows are in no pair and have no residual: they are watched by `shift` and `gap`. Of more
than MOST_RELATED other columns those whose ranks vary most are taken.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphgauge.monitor.columns import ranked, standardised
from graphgauge.monitor.samples import Sample
from graphgauge.monitor.triggers import signed
from graphgauge.monitor.two_samples import Values

MOST_PAIRS = 2016  #: 64 columns have so many
MOST_RELATED = 512  #: columns among which relations are looked for
RELATED = 0.3  #: correlation above which two columns also have a distance
PREDICTORS = (2, 8)  #: columns from which another one is predicted: a few, and more
RIDGE = 0.01  #: beside a variance of 1
COMMON = 0.95  #: share of rows with one value above which a column has no relations
MOST_CLASSES = 10  #: classes up to which each has a label column of its own
SHAPES = ("", "spread", "skewness", "tails")  #: what Legendre's polynomials say
PAIR, RESIDUAL, GAP = "pair", "residual", "gap"


class About(NamedTuple):
    """What one column of a test is about."""

    kind: str  #: '' (larger values), 'spread', 'skewness', 'tails', 'pair', 'residual' or 'gap'
    own: int  #: number of the column; of the feature for 'gap'
    others: tuple[
        int, ...
    ] = ()  #: the other one of a pair; those that predict, the most related first


@dataclass(frozen=True)
class Looked:
    """Columns for a test, and what they are about; the first rows are the new ones."""

    rows: Values  # (n + m, K)
    about: tuple[About, ...]
    names: tuple[str, ...] = ()  #: of label columns, which come after those of the data


def shift_columns(new: Sample, old: Sample) -> Looked:
    """The distribution of every column of the data, and of the labels where all are known."""
    rows, names = data_and_labels(new, old)
    u = (2 * ranked(rows) - 1) / len(rows) - 1
    levels = np.array([len(np.unique(column)) for column in u.T])
    polynomials = (u, (3 * u**2 - 1) / 2, (5 * u**3 - 3 * u) / 2, (35 * u**4 - 30 * u**2 + 3) / 8)
    kept = [
        np.flatnonzero(levels > k + 1) if k else np.arange(len(levels)) for k in range(len(SHAPES))
    ]
    about = tuple(About(SHAPES[k], int(own)) for k, chosen in enumerate(kept) for own in chosen)
    found = [values[:, chosen] for values, chosen in zip(polynomials, kept, strict=True)]
    return Looked(np.concatenate(found, axis=1), about, names)


def relation_columns(new: Sample, old: Sample, predictions: Collection[int] = ()) -> Looked:
    """How columns of the data and labels go together, and how far features are from those of the
    neighbours.

    ``predictions`` are the numbers of the columns that hold what the network says.
    """
    values, names = data_and_labels(new, old)
    eligible = related_columns(values)
    r = (
        standardised(ranked(values[:, eligible])).numpy()
        if len(eligible)
        else np.zeros((len(values), 0))
    )
    usable = ~np.isin(eligible, list(predictions))
    parts, about = [], []
    for rows, told in (
        pairs(r),
        *(residuals(r, usable, count) for count in PREDICTORS),
        neighbour_gaps(new, old),
    ):
        parts.append(rows)
        about += told if told and told[0].kind == GAP else [numbered(own, eligible) for own in told]
    return Looked(np.concatenate(parts, axis=1), tuple(about), names)


def numbered(about: About, eligible: NDArray[np.int64]) -> About:
    """With the numbers of the data instead of those among eligible columns."""
    return About(
        about.kind, int(eligible[about.own]), tuple(int(eligible[k]) for k in about.others)
    )


def data_and_labels(new: Sample, old: Sample) -> tuple[Values, tuple[str, ...]]:
    """Columns of the data, then those of the labels, and what the latter are called.
    (n + m, D + L)
    """
    labels, names = label_columns(new, old)
    data = np.concatenate([own.data for own in (new, old) if own.data is not None])
    return np.concatenate([data, labels], axis=1), names


def label_columns(new: Sample, old: Sample) -> tuple[Values, tuple[str, ...]]:
    """Labels as columns: one of values, or one per class where there are three to ten; none unless
    all are known.  (n + m, L)
    """
    if new.labels is None or old.labels is None:
        return np.zeros((len(new) + len(old), 0)), ()
    labels = np.concatenate([new.labels, old.labels])
    if not np.isfinite(labels).all():
        return np.zeros((len(labels), 0)), ()
    classes = np.unique(labels)
    if not 2 < len(classes) <= MOST_CLASSES or (classes != np.round(classes)).any():
        return labels[:, None], ("label",)
    return (labels[:, None] == classes).astype(np.float64), tuple(
        f"label is {own:g}" for own in classes
    )


def related_columns(values: Values) -> NDArray[np.int64]:
    """Numbers of the columns that vary enough to have relations, in rising order."""
    common = np.array([np.unique(column, return_counts=True)[1].max() for column in values.T])
    eligible = np.flatnonzero(common <= COMMON * len(values))
    if len(eligible) > MOST_RELATED:
        eligible = np.sort(eligible[np.argsort(common[eligible], kind="stable")[:MOST_RELATED]])
    return eligible


def pairs(r: Values) -> tuple[Values, list[About]]:
    """r_i r_j of the most correlated pairs, then |r_i -+ r_j| of those that are clearly related.
    (N, D) -> (N, P)
    """
    first, second = np.triu_indices(r.shape[1], 1)
    correlation = (r.T @ r / len(r))[first, second].round(6)
    if len(first) > MOST_PAIRS:
        chosen = np.sort(np.argsort(-np.abs(correlation), kind="stable")[:MOST_PAIRS])
        first, second, correlation = first[chosen], second[chosen], correlation[chosen]
    near = np.abs(correlation) >= RELATED
    apart = np.abs(r[:, first[near]] - np.sign(correlation[near]) * r[:, second[near]]).round(9)
    rows = np.concatenate([r[:, first] * r[:, second], apart], axis=1)
    own, other = np.concatenate([first, first[near]]), np.concatenate([second, second[near]])
    return rows, [About(PAIR, int(i), (int(j),)) for i, j in zip(own, other, strict=True)]


def residuals(r: Values, usable: NDArray[np.bool_], predictors: int) -> tuple[Values, list[About]]:
    """|r_i - its prediction from so many usable columns, those most correlated with it|.
    (N, D) -> (N, D)
    """
    total, width = r.shape
    if usable.sum() < 2:
        return np.zeros((total, 0)), []
    correlation = r.T @ r / total
    strength = np.where(usable, np.abs(correlation).round(6), -1.0) - 2 * np.eye(width)
    chosen = np.argsort(-strength, axis=1, kind="stable")[
        :, : min(predictors, int(usable.sum()) - 1)
    ]  # (D, K)
    inner = correlation[chosen[:, :, None], chosen[:, None, :]] + RIDGE * np.eye(chosen.shape[1])
    weights = np.linalg.solve(inner, np.take_along_axis(correlation, chosen, 1)[:, :, None])[
        :, :, 0
    ]
    predicted = np.stack(
        [r[:, own] @ weight for own, weight in zip(chosen, weights, strict=True)], axis=1
    )
    about = [About(RESIDUAL, k, tuple(own)) for k, own in enumerate(chosen.tolist())]
    return np.abs(r - predicted).round(9), about


def neighbour_gaps(new: Sample, old: Sample) -> tuple[Values, list[About]]:
    """Ranks of the gaps; none where they are not known.  (N, F)"""
    if new.gaps is None or old.gaps is None:
        return np.zeros((len(new) + len(old), 0)), []
    rows = (
        ranked(np.concatenate([new.gaps, old.gaps]))
        if new.gaps.shape[1]
        else np.zeros((len(new) + len(old), 0))
    )
    return rows, [About(GAP, k) for k in range(rows.shape[1])]


def told_shift(about: About, z: float, name: str) -> str:
    """One column that moved, for a sentence: 'income (+4.1)' or 'spread of income (-5.0)'."""
    return f"{f'{about.kind} of ' if about.kind else ''}{name} ({signed(z, 1)})"


def told_relation(about: About, z: float, names: Sequence[str]) -> str:
    """One relation that broke, for a sentence; ``names`` are those of its own column and of the
    others that are named.
    """
    own, others, far = names[0], names[1:], f"(z {signed(z, 1)})"
    if about.kind == GAP:
        return f"{own} of targets is {'farther from' if z > 0 else 'closer to'} that of their neighbours than it was {far}"
    return f"{own} no longer varies with {' and '.join(others)} as it did {far}"
