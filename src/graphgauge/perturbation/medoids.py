"""Medoids: the member of a set of points with the least total squared distance to all members.

Let μ be the mean of the P points of a set. With squared Euclidean distance,

    Σ_j |z_i - z_j|²  =  P |z_i - μ|²  +  Σ_j |z_j - μ|²

so the medoid is the member nearest to the mean. Finding it takes O(P D); comparing all pairs takes
O(P² D).

Means and distances are computed in double precision, in parts, so that no call holds more than the
points and a few numbers per point. If only some points are ``eligible``, the mean is still that of
all members, and the medoid is chosen among the eligible ones.

The lowest row wins ties, and rounding must not break a tie: a set of two points is always a tie,
and nodes in equivalent positions of a graph have embeddings that differ in their last digits. So
distances d count as equal to the least distance d₀ if d <= d₀ (1 + 1e-6) + 1e-12 s, where s is the
mean |z|² of all points.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

_TIE, _NOISE = 1e-6, 1e-12
_MAX_ROUNDS = 100
_AT_ONCE = 2**22  #: numbers that are processed in one call


def _label_medoids(
    points: Tensor, label: Tensor, num_labels: int, eligible: Tensor | None = None
) -> Tensor:
    """Row of the medoid of each label's points; -1 for a label without eligible points.

    points (P, D), label (P,) -> (num_labels,)

    >>> _label_medoids(torch.tensor([[0.0], [1.0], [5.0], [9.0]]), torch.tensor([0, 0, 0, 2]), 3)
    tensor([ 1, -1,  3])
    """
    distance = _distance_to_centre(points, _label_means(points, label, num_labels), label)
    row = torch.arange(len(points), device=points.device)
    if eligible is not None:
        row = row[eligible]
    label, distance = label[row], distance[row]
    least = distance.new_full((num_labels,), torch.inf).scatter_reduce(0, label, distance, "amin")
    is_near = distance <= (least * (1 + _TIE) + _rounding_floor(points))[label]
    medoid = row.new_full((num_labels,), len(points)).scatter_reduce(
        0, label[is_near], row[is_near], "amin"
    )
    return medoid.where(medoid < len(points), -1)


def _k_medoids(points: Tensor, k: int, eligible: Tensor | None = None) -> Tensor:
    """Rows of up to k medoids, each of one part of the points. (P, D) -> (at most k,)

    The first is the medoid of all points; each further one is the eligible point that is farthest
    from those before it (lowest row wins ties). Then every point joins its nearest medoid (the
    first one wins ties) and each part gets its medoid, until nothing changes or 100 times. Nothing
    is random. Fewer than k rows are returned if there are fewer different eligible points.

    >>> _k_medoids(torch.tensor([[0.0], [1.0], [2.0], [10.0], [11.0], [13.0]]), 2)
    tensor([4, 1])
    """
    chosen = _farthest_first(points, k, eligible)
    for _ in range(_MAX_ROUNDS if len(chosen) > 1 else 0):
        part = _squared_distances(points, points[chosen]).argmin(0)
        update = _label_medoids(points, part, len(chosen), eligible)
        if torch.equal(update, chosen):
            break
        chosen = update
    return chosen


def _farthest_first(points: Tensor, k: int, eligible: Tensor | None = None) -> Tensor:
    """The medoid, then repeatedly the eligible point farthest from all before it. (P, D) -> (at
    most k,)
    """
    chosen = _label_medoids(points, torch.zeros_like(points[:, 0], dtype=torch.int64), 1, eligible)
    chosen = chosen[chosen >= 0]
    gap = points.new_full((len(points),), torch.inf, dtype=torch.float64)
    for _ in range(min(k, len(points)) - 1 if len(chosen) else 0):
        gap = torch.minimum(gap, _squared_distances(points, points[chosen[-1:]])[0])
        farthest = (gap if eligible is None else gap.where(eligible, -1)).argmax()
        if gap[farthest] <= _rounding_floor(points):
            break
        chosen = torch.cat([chosen, farthest[None]])
    return chosen


def label_k_medoids(
    points: Tensor, label: Tensor, num_labels: int, number: int = 1, eligible: Tensor | None = None
) -> Tensor:
    """Rows of up to ``number`` medoids of each label's points, then -1.

    points (P, D), label (P,) -> (num_labels, number)
    """
    if number == 1:
        return _label_medoids(points, label, num_labels, eligible)[:, None]
    if not num_labels:
        return label.new_zeros(0, number)
    return torch.stack(
        [_medoids_of_subset(points, label == one, number, eligible) for one in range(num_labels)]
    )


def medoids_above_thresholds(
    points: Tensor,
    value: Tensor,
    threshold: Tensor,
    number: int = 1,
    eligible: Tensor | None = None,
) -> Tensor:
    """Rows of up to ``number`` medoids of the points whose value reaches a threshold, then -1.

    points (P, D), value (P,), threshold (T,) -> (T, number)

    The sets are nested, so one pass over the points gives all means: points are summed between
    adjacent thresholds, and these sums are accumulated from the top. Thresholds that the same
    points reach form one set.
    """
    value, threshold = value.contiguous(), threshold.contiguous()
    ranked = value.sort().values
    below = torch.searchsorted(ranked, threshold)
    is_reached = below < len(ranked)
    bound, which = ranked[below[is_reached]].unique(return_inverse=True)
    rows = threshold.new_full((len(threshold), number), -1, dtype=torch.int64)
    if number == 1:
        rows[is_reached] = _medoids_of_nested_sets(points, value, bound, eligible)[which][:, None]
    elif len(bound):
        rows[is_reached] = torch.stack(
            [_medoids_of_subset(points, value >= one, number, eligible) for one in bound]
        )[which]
    return rows


def _medoids_of_nested_sets(
    points: Tensor, value: Tensor, bound: Tensor, eligible: Tensor | None = None
) -> Tensor:
    """Row of the medoid of the points whose value reaches each of the rising bounds.

    points (P, D), value (P,), bound (S,) -> (S,)
    """
    reached = torch.searchsorted(bound, value, right=True)  # number of bounds that a point reaches
    total, size = _label_sums(points, reached, len(bound) + 1)
    mean = _reverse_cumsum(total)[1:] / _reverse_cumsum(size)[1:, None].clamp(min=1)
    floor, number = _rounding_floor(points), torch.arange(len(bound), device=bound.device)
    rows = []
    for part in number.split(max(1, _AT_ONCE // max(len(points), 1))):
        is_open = reached > part[:, None]
        is_open = is_open if eligible is None else is_open & eligible
        rows.append(_first_of_nearest(_squared_distances(points, mean[part]), is_open, floor))
    return torch.cat(rows) if rows else number


def _medoids_of_subset(
    points: Tensor, is_member: Tensor, number: int, eligible: Tensor | None = None
) -> Tensor:
    """Rows of up to ``number`` medoids of one set, then -1. (P, D), (P,) bool -> (number,)"""
    row = is_member.nonzero()[:, 0]
    chosen = _k_medoids(points[row], number, None if eligible is None else eligible[row])
    padded = row.new_full((number,), -1)
    padded[: len(chosen)] = row[chosen]
    return padded


def _first_of_nearest(distance: Tensor, is_open: Tensor, floor: Tensor) -> Tensor:
    """The first open entry that equals the least open entry of its row, or -1. (S, P), (S, P) ->
    (S,)
    """
    distance = distance.masked_fill_(~is_open, torch.inf)
    least = distance.amin(1, keepdim=True)
    is_near = (distance <= least * (1 + _TIE) + floor) & is_open
    return is_near.int().argmax(1).where(is_near.any(1), -1)


def _label_means(points: Tensor, label: Tensor, num_labels: int) -> Tensor:
    """Mean of each label's points; 0 for a label without points. (P, D), (P,) -> (num_labels, D)"""
    total, size = _label_sums(points, label, num_labels)
    return total / size[:, None].clamp(min=1)


def _label_sums(points: Tensor, label: Tensor, num_labels: int) -> tuple[Tensor, Tensor]:
    """Sum and number of each label's points. (P, D), (P,) -> (num_labels, D), (num_labels,)"""
    total = points.new_zeros(num_labels, points.size(1), dtype=torch.float64)
    for rows in _split_rows(points):
        total.index_add_(0, label[rows], points[rows].double())
    return total, torch.bincount(label, minlength=num_labels)


def _reverse_cumsum(values: Tensor) -> Tensor:
    """Cumulative sums from the last entry. (S, ...) -> (S, ...)"""
    return values.flip(0).cumsum(0).flip(0)


def _distance_to_centre(points: Tensor, centre: Tensor, label: Tensor) -> Tensor:
    """Squared distance of each point to its label's centre. (P, D), (num_labels, D), (P,) ->
    (P,)
    """
    distance = points.new_zeros(len(points), dtype=torch.float64)
    for rows in _split_rows(points):
        distance[rows] = (points[rows].double() - centre[label[rows]]).square().sum(1)
    return distance


def _squared_distances(points: Tensor, centre: Tensor) -> Tensor:
    """Squared distance of each point to each centre, without cancellation. (P, D), (S, D) -> (S,
    P)
    """
    squared = points.new_zeros(len(centre), len(points), dtype=torch.float64)
    for rows in _split_rows(points):
        distance = torch.cdist(
            centre.double(), points[rows].double(), compute_mode="donot_use_mm_for_euclid_dist"
        )
        squared[:, rows] = distance.square_()
    return squared


def _rounding_floor(points: Tensor) -> Tensor:
    """The squared distance below which points are equal: 1e-12 of their mean |z|². (P, D) -> ()"""
    total = points.new_zeros((), dtype=torch.float64)
    for rows in _split_rows(points):
        total += points[rows].double().square().sum()
    return _NOISE * total / max(len(points), 1)


def _split_rows(points: Tensor) -> Iterator[slice]:
    """Split the rows of the points into slices of limited size."""
    size = max(1, _AT_ONCE // max(points.size(1), 1))
    return (slice(start, start + size) for start in range(0, len(points), size))
