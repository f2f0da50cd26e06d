"""Medoids, against all pairs of points compared in whole numbers and fractions."""

from fractions import Fraction

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.live_memory import Live

from graphgauge.perturbation.medoids import (
    _AT_ONCE,
    _farthest_first,
    _k_medoids,
    _label_medoids,
    label_k_medoids,
    medoids_above_thresholds,
)

#: --device is the same for all examples
ON_ONE_DEVICE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def apart(a, b):
    """Squared distance."""
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def literal_medoid(points, rows, eligible):
    """The eligible row with the least sum of squared distances to all rows; the first of equals;
    None if there is none.
    """
    total = {i: sum(apart(points[i], points[j]) for j in rows) for i in rows if eligible[i]}
    return min(total, key=lambda i: (total[i], i)) if total else None


def literal_nearest_to_mean(points, rows, eligible):
    """The same by the mean, in fractions."""
    mean = (
        [sum(Fraction(points[i][d]) for i in rows) / len(rows) for d in range(len(points[0]))]
        if rows
        else []
    )
    allowed = [i for i in rows if eligible[i]]
    return min(allowed, key=lambda i: (apart(points[i], mean), i)) if allowed else None


def literal_k_medoids(points, rows, k, eligible):
    """Medoid, farthest first, then assignment and medoids of the parts in turn."""
    first = literal_medoid(points, rows, eligible)
    if first is None:
        return []
    chosen = [first]
    while len(chosen) < k:
        gap = {i: min(apart(points[i], points[c]) for c in chosen) for i in rows if eligible[i]}
        farthest = max(gap, key=lambda i: (gap[i], -i))
        if gap[farthest] == 0:
            break
        chosen.append(farthest)
    for _ in range(100):
        parts = [[] for _ in chosen]
        for i in rows:
            parts[
                min(range(len(chosen)), key=lambda c: (apart(points[i], points[chosen[c]]), c))
            ].append(i)
        update = [literal_medoid(points, part, eligible) for part in parts]
        if update == chosen:
            break
        chosen = update
    return chosen


@st.composite
def clouds(draw, max_size=14, biggest=3):
    """Points on a small grid, where ties and duplicates are common; eligible points; labels."""
    size, width = draw(st.integers(1, max_size)), draw(st.integers(1, 3))
    point = st.lists(st.integers(-biggest, biggest), min_size=width, max_size=width)
    points = draw(st.lists(point, min_size=size, max_size=size))
    eligible = draw(st.lists(st.booleans(), min_size=size, max_size=size) | st.just([True] * size))
    label = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    return points, eligible, label


def tensors(points, eligible, device="cpu", dtype=torch.float32):
    return torch.tensor(points, dtype=dtype, device=device), torch.tensor(eligible, device=device)


def padded(rows, number):
    return [*rows, *[-1] * (number - len(rows))]


@pytest.mark.numeric
@ON_ONE_DEVICE
@given(cloud=clouds())
def test_medoids_have_the_least_sum_of_squared_distances_to_all_members(cloud, device):
    points, eligible, label = cloud
    z, mask = tensors(points, eligible, device)
    found = _label_medoids(z, torch.tensor(label, device=device), 5, mask).tolist()
    for number in range(5):
        rows = [i for i, own in enumerate(label) if own == number]
        wanted = literal_medoid(points, rows, eligible)
        assert wanted == literal_nearest_to_mean(points, rows, eligible)
        assert found[number] == (-1 if wanted is None else wanted)


@pytest.mark.numeric
@ON_ONE_DEVICE
@given(cloud=clouds(), k=st.integers(1, 4))
def test_k_medoids_follow_their_definition(cloud, k, device):
    points, eligible, label = cloud
    z, mask = tensors(points, eligible, device)
    wanted = literal_k_medoids(points, range(len(points)), k, eligible)
    assert _k_medoids(z, k, mask).tolist() == wanted
    if all(eligible):
        assert _k_medoids(z, k).tolist() == wanted
    found = label_k_medoids(z, torch.tensor(label, device=device), 4, k, mask).tolist()
    members = [[i for i, own in enumerate(label) if own == number] for number in range(4)]
    assert found == [padded(literal_k_medoids(points, rows, k, eligible), k) for rows in members]


@pytest.mark.numeric
@ON_ONE_DEVICE
@given(cloud=clouds(), thresholds=st.lists(st.integers(-1, 5), max_size=5), k=st.integers(1, 3))
def test_medoids_above_a_threshold_are_those_of_the_points_that_reach_it(
    cloud, thresholds, k, device
):
    points, eligible, value = cloud
    z, mask = tensors(points, eligible, device)
    height, bound = (
        torch.tensor(numbers, dtype=torch.float64, device=device) for numbers in (value, thresholds)
    )
    found = medoids_above_thresholds(z, height, bound, k, mask).tolist()
    above = [[i for i, own in enumerate(value) if own >= one] for one in thresholds]
    assert found == [padded(literal_k_medoids(points, rows, k, eligible), k) for rows in above]


@given(cloud=clouds(), piece=st.integers(1, 9))
def test_the_size_of_the_pieces_changes_nothing(cloud, piece):
    points, eligible, label = cloud
    z, mask = tensors(points, eligible)
    number, height = torch.tensor(label), torch.tensor(label, dtype=torch.float64)
    found = []
    for size in (_AT_ONCE, piece):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("graphgauge.perturbation.medoids._AT_ONCE", size)
            found.append([label_k_medoids(z, number, 4, k, mask).tolist() for k in (1, 3)])
            found[-1].append(medoids_above_thresholds(z, height, height, 1, mask).tolist())
    assert found[0] == found[1]


def test_the_values_of_clear_cases():
    line = torch.tensor([[0.0], [1.0], [2.0], [100.0], [101.0], [103.0]])
    # the mean is 51 1/6: 100 is nearer to it than 2
    assert _label_medoids(line, torch.zeros(6, dtype=torch.int64), 1).tolist() == [3]
    assert _farthest_first(line, 3).tolist() == [3, 0, 5]
    assert _k_medoids(line, 2).tolist() == [4, 1]  # rank 0 grew out of the medoid of all points
    # of two as near, the first
    assert _k_medoids(line, 2, torch.tensor([True, False, True, True, False, True])).tolist() == [
        3,
        0,
    ]
    assert medoids_above_thresholds(
        line, line[:, 0].double(), torch.tensor([-5.0, 2.0, 101.5, 104.0]).double()
    ).tolist() == [
        [3],
        [3],
        [5],
        [-1],
    ]


def test_fewer_medoids_than_asked_for_where_points_are_few_or_equal():
    assert _k_medoids(torch.zeros(5, 2), 3).tolist() == [0]
    assert _k_medoids(torch.tensor([[1.0], [1.0], [4.0]]), 9).tolist() == [0, 2]
    assert _k_medoids(torch.zeros(3, 2), 2, torch.zeros(3, dtype=torch.bool)).tolist() == []
    assert _k_medoids(torch.zeros(0, 2), 2).tolist() == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_rounding_breaks_no_tie(dtype):
    """Two members are always equally near to their mean, and copies that differ in the last digits
    are copies.
    """
    random = torch.Generator().manual_seed(0)
    pairs = torch.randn(1000, 7, generator=random, dtype=dtype)
    assert _label_medoids(pairs, torch.arange(500).repeat(2), 500).tolist() == list(range(500))
    last_digit = torch.finfo(dtype).eps * torch.randint(-1, 2, (40, 7), generator=random).to(dtype)
    rough = torch.randn(1, 7, generator=random, dtype=dtype) * (1 + last_digit)
    assert len(rough.unique(dim=0)) > 30
    assert _k_medoids(rough, 3).tolist() == [0]
    height = torch.arange(40).double()
    assert medoids_above_thresholds(rough, height, height)[:, 0].tolist() == list(range(40))


@pytest.mark.parametrize("number", [1, 3])
def test_memory_does_not_grow_with_the_square_of_the_points(number):
    random, size = torch.Generator().manual_seed(0), 30_000
    points, height = (
        torch.randn(size, 4, generator=random),
        torch.randn(size, generator=random, dtype=torch.float64),
    )
    bound = height[:: size // (300 if number == 1 else 5)]
    allowed = 3 * 8 * _AT_ONCE  # a piece of distances and what is made of it
    assert size**2 > 2 * allowed
    assert len(bound) * size > _AT_ONCE or number > 1
    with Live() as live:
        label_k_medoids(points, (height > 0).long(), 2, number)
        medoids_above_thresholds(points, height, bound, number)
    assert 8 * size < live.peak <= allowed
