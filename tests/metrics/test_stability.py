"""Stability, against algorithms 2 and 3 in plain Python; and what chance is."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphgauge.core.errors import BadSetting, UndefinedScore
from graphgauge.metrics import (
    correct_for_chance,
    edge_stability,
    edge_stability_by_chance,
    edge_stability_corrected,
    feature_stability,
    feature_stability_by_chance,
    feature_stability_corrected,
    jackknife_over_pairs,
    stability_by_chance,
)
from graphgauge.metrics.stability_by_chance import _draw_permutations, _permute_rows

SCORES = st.floats(-3, 3).map(lambda value: 0.0 if abs(value) < 0.5 else value)


def literal_distance(first, second):
    """Half the distance of the normalised vectors; a vector of zeros stays what it is."""
    sizes = [math.sqrt(sum(value * value for value in vector)) for vector in (first, second)]
    units = [
        [value / size if size else 0.0 for value in vector]
        for vector, size in zip((first, second), sizes, strict=True)
    ]
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(*units, strict=True))) / 2


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(SCORES, min_size=n, max_size=n), min_size=2, max_size=2)
    )
)
def test_stability_pair_edge_is_algorithm_2(pair):
    first, second = torch.tensor(pair, dtype=torch.float64)[:, None]
    assert edge_stability(first, second).item() == pytest.approx(
        1 - literal_distance(*pair), abs=1e-12
    )


@given(st.integers(1, 4), st.integers(0, 2), st.data())
def test_stability_pair_feature_is_algorithm_3(nodes, targets, draw):
    targets = min(targets, nodes)
    rows = st.lists(st.lists(SCORES, min_size=3, max_size=3), min_size=nodes, max_size=nodes)
    pair = [draw.draw(rows), draw.draw(rows)]
    is_target = torch.arange(nodes) < targets
    parts = (slice(targets), slice(targets, None))
    blocks = [[[score for row in rows[part] for score in row] for rows in pair] for part in parts]
    apart = [literal_distance(*block) for block in blocks if block[0]]
    first, second = torch.tensor(pair, dtype=torch.float64)[:, None]
    assert feature_stability(first, second, is_target).item() == pytest.approx(
        1 - sum(apart) / len(apart), abs=1e-12
    )


CASES = {
    "equal": ([1.0, 2.0], [1.0, 2.0], 1.0),
    "equal up to scale": ([1.0, 2.0], [3.0, 6.0], 1.0),
    "opposite": ([1.0, 2.0], [-1.0, -2.0], 0.0),
    "orthogonal": ([1.0, 0.0], [0.0, 5.0], 1 - math.sqrt(2) / 2),
    "both zero": ([0.0, 0.0], [0.0, 0.0], 1.0),
    "one zero": ([0.0, 0.0], [0.0, 5.0], 0.5),
    "one edge": ([0.3], [7.0], 1.0),
    "one edge, other sign": ([0.3], [-7.0], 0.0),
}


@pytest.mark.parametrize(("first", "second", "wanted"), CASES.values(), ids=CASES)
def test_closed_cases(first, second, wanted):
    assert edge_stability(
        torch.tensor([first]).double(), torch.tensor([second]).double()
    ).item() == pytest.approx(wanted, abs=1e-12)


CHANCE = {
    "normal": (lambda z: z, 0.293),
    "uniform": (lambda z: torch.special.ndtr(z), 0.647),
    "start of a learned mask": (lambda z: (0.1 * z).sigmoid(), 0.965),
}


@pytest.mark.parametrize(("law", "wanted"), CHANCE.values(), ids=CHANCE)
def test_independent_scores_are_not_at_zero(law, wanted):
    draws = law(
        torch.randn(2, 200, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    )
    mean = edge_stability(*draws).mean()
    assert abs(mean - wanted) < 0.003
    order = torch.randperm(2000, generator=torch.Generator().manual_seed(1))
    chance = edge_stability(draws[0], draws[1][:, order]).mean()
    assert abs(correct_for_chance(mean, chance)) < 0.02


def test_corrected_stability_has_its_ends():
    mean, chance = torch.tensor([1.0, 0.4, 1.0]), torch.tensor([0.4, 0.4, 1.0])
    assert correct_for_chance(mean, chance)[:2].tolist() == [1.0, 0.0]
    assert correct_for_chance(mean, chance)[2].isnan()


def test_the_binomial_form_is_the_mean_of_pairs_with_the_jackknifes_error():
    values = torch.rand(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    likeness = (values + values.t()) / 2
    pairs = [likeness[i, j].item() for i in range(6) for j in range(i)]
    left_out = [
        sum(likeness[i, j].item() for i in range(6) for j in range(i) if k not in (i, j)) / 10
        for k in range(6)
    ]
    middle = sum(left_out) / 6
    found = jackknife_over_pairs(likeness)
    assert found.mean.item() == pytest.approx(sum(pairs) / 15, abs=1e-12)
    assert found.error.item() == pytest.approx(
        math.sqrt(5 / 6 * sum((value - middle) ** 2 for value in left_out)), abs=1e-12
    )


def test_nothing_to_compare_is_an_error():
    with pytest.raises(UndefinedScore, match="there is no edge"):
        edge_stability(torch.zeros(1, 0), torch.zeros(1, 0))
    with pytest.raises(UndefinedScore, match="there are none"):
        feature_stability(
            torch.zeros(1, 0, 3), torch.zeros(1, 0, 3), torch.zeros(0, dtype=torch.bool)
        )
    with pytest.raises(UndefinedScore, match="needs 3 explanations"):
        jackknife_over_pairs(torch.ones(2, 2))


def literal_shuffles(first, second, generator):
    """Entries where either is not zero trade places in the second; all else stays."""
    places = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a or b]
    order = torch.randperm(len(places), generator=generator).tolist()
    moved = list(second)
    for place, source in zip(places, order, strict=True):
        moved[place] = second[places[source]]
    return moved


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(SCORES, min_size=n, max_size=n), min_size=4, max_size=4)
    )
)
def test_chance_is_the_likeness_after_a_permutation_inside_the_joint_support(rows):
    generator = torch.Generator().manual_seed(0)
    wanted = [
        1 - literal_distance(a, literal_shuffles(a, b, generator))
        for a, b in zip(rows[:2], rows[2:], strict=True)
    ]
    first, second = torch.tensor(rows, dtype=torch.float64).reshape(2, 2, -1)
    assert edge_stability_by_chance(
        first, second, torch.Generator().manual_seed(0)
    ).tolist() == pytest.approx(wanted, abs=1e-12)


@given(
    st.lists(st.lists(SCORES, min_size=6, max_size=6), min_size=4, max_size=4), st.integers(0, 3)
)
def test_chance_of_features_permutes_each_block_on_its_own(rows, targets):
    generator, cut, apart = torch.Generator().manual_seed(0), 2 * targets, []
    for part in (slice(cut), slice(cut, None)):
        pairs = [(a[part], b[part]) for a, b in zip(rows[:2], rows[2:], strict=True) if a[part]]
        apart += (
            [[literal_distance(a, literal_shuffles(a, b, generator)) for a, b in pairs]]
            if pairs
            else []
        )
    wanted = [1 - sum(both) / len(both) for both in zip(*apart, strict=True)]
    first, second = torch.tensor(rows, dtype=torch.float64).reshape(2, 2, 3, 2)
    found = feature_stability_by_chance(
        first, second, torch.arange(3) < targets, torch.Generator().manual_seed(0)
    )
    assert found.tolist() == pytest.approx(wanted, abs=1e-12)


@given(
    st.lists(st.lists(SCORES, min_size=7, max_size=7), min_size=2, max_size=2),
    st.integers(2, 5),
    st.integers(0, 7),
)
def test_more_permutations_of_one_pair_are_one_turned_by_random_steps(rows, number, cut):
    generator, apart = torch.Generator().manual_seed(0), []
    for part in (slice(cut), slice(cut, None)):
        a, b = (row[part] for row in rows)
        places = [i for i in range(len(a)) if a[i] or b[i]]
        if a:
            order = torch.randperm(len(places), generator=generator).tolist()
            steps = (
                torch.randint(len(places), (number,), generator=generator).tolist()
                if places
                else [0] * number
            )
            apart.append([])
            for step in steps:
                moved = list(b)
                for place, source in zip(places, order[step:] + order[:step], strict=True):
                    moved[place] = b[places[source]]
                apart[-1].append(literal_distance(a, moved))
    wanted = [1 - sum(both) / len(both) for both in zip(*apart, strict=True)]
    first, second = torch.tensor(rows, dtype=torch.float64).reshape(2, 1, 7, 1)
    found = feature_stability_by_chance(
        first, second, torch.arange(7) < cut, torch.Generator().manual_seed(0), number
    )
    assert found.tolist() == pytest.approx(wanted, abs=1e-12)


def test_each_of_many_permutations_is_as_likely_as_any_other():
    """Of 4 values all 24 orders come equally often, also in the last of five: chi-square with 23
    degrees of freedom, p > 0.001.
    """
    generator, count = torch.Generator().manual_seed(0), {}
    for _ in range(4800):
        rows = torch.arange(4.0)[None]
        drawn = _draw_permutations(1, 4, generator, 5)
        last = tuple(_permute_rows(rows, *drawn)[0, -1].tolist())
        count[last] = count.get(last, 0) + 1
    assert len(count) == 24
    assert sum((number - 200) ** 2 / 200 for number in count.values()) < 49.7


def test_chance_draws_pair_by_pair_and_leaves_its_input_alone():
    first, second = torch.randn(2, 5, 4, 3, generator=torch.Generator().manual_seed(0))
    kept, is_target = second.clone(), torch.zeros(4, dtype=torch.bool)  # one block
    five = feature_stability_by_chance(first, second, is_target, torch.Generator().manual_seed(1))
    two = feature_stability_by_chance(
        first[:2], second[:2], is_target, torch.Generator().manual_seed(1)
    )
    assert torch.equal(five[:2], two)
    assert torch.equal(second, kept)


def test_pairs_with_supports_of_their_own_are_permuted_as_those_that_share_one():
    """One more zero changes which code computes the values, but not the draws or the values."""
    first, second = torch.randn(
        2, 3, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    shared = edge_stability_by_chance(first, second, torch.Generator().manual_seed(1))
    wider = [
        torch.cat([rows, torch.zeros(3, 1, dtype=torch.float64)], 1) for rows in (first, second)
    ]
    wider[0] = torch.cat([wider[0], torch.tensor([[0.0] * 6 + [1.0]], dtype=torch.float64)])
    wider[1] = torch.cat([wider[1], torch.tensor([[0.0] * 6 + [2.0]], dtype=torch.float64)])
    apart = edge_stability_by_chance(*wider, torch.Generator().manual_seed(1))
    assert apart.tolist() == pytest.approx([*shared.tolist(), 1.0], abs=1e-12)


@pytest.mark.parametrize("number", [1, 3])
def test_long_rows_share_a_permutation_that_is_turned_for_each(number, monkeypatch):
    monkeypatch.setattr(stability_by_chance, "LONG_ROW", 6)
    rows = torch.stack([torch.arange(7), torch.arange(7) + 100])
    order = torch.randperm(
        7, generator=(generator := torch.Generator().manual_seed(3)), dtype=torch.int32
    ).tolist()
    steps = torch.randint(7, (2, number), generator=generator).tolist()
    wanted = [
        [[int(row[k]) for k in order[step:] + order[:step]] for step in own]
        for row, own in zip(rows, steps, strict=True)
    ]
    drawn = _draw_permutations(2, 7, torch.Generator().manual_seed(3), number)
    assert _permute_rows(rows, *drawn).tolist() == wanted


@pytest.mark.parametrize("number", [1, 4])
@pytest.mark.parametrize("long_row", [2**16, 100])
def test_chance_has_the_same_bits_in_any_number_of_parts(number, long_row, monkeypatch):
    monkeypatch.setattr(stability_by_chance, "LONG_ROW", long_row)
    first, second = torch.randn(2, 21, 300, generator=torch.Generator().manual_seed(0))
    found = []
    for cells in (1, 2000, 2**17):
        monkeypatch.setattr(stability_by_chance, "_CELLS_AT_ONCE", cells)
        found.append(
            edge_stability_by_chance(first, second, torch.Generator().manual_seed(1), number)
        )
    assert torch.equal(found[0], found[2])
    assert torch.equal(found[1], found[2])


def test_chance_of_long_rows_is_that_of_short_ones(monkeypatch):
    first, second = torch.randn(
        2, 400, 200, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    ).abs()
    apart = edge_stability_by_chance(first, second, torch.Generator().manual_seed(1))
    monkeypatch.setattr(stability_by_chance, "LONG_ROW", 100)
    shared = edge_stability_by_chance(first, second, torch.Generator().manual_seed(1))
    spread = float(apart.std() / 400**0.5)
    assert abs(float(apart.mean() - shared.mean())) < 4 * 2**0.5 * spread
    assert float(shared.std()) == pytest.approx(float(apart.std()), rel=0.25)


NOISE = {
    "normal": lambda z: z,
    "half-normal": torch.abs,
    "uniform": torch.special.ndtr,
    "start of a learned mask": lambda z: (0.1 * z).sigmoid(),
    "log-normal": torch.exp,
    "three values": lambda z: 1 + (z > -0.5).double() + (z > 0.5).double(),
    "on one entry in ten": lambda z: z * (torch.arange(z.size(-1)) % 10 == 0),
}


@pytest.mark.parametrize("law", NOISE.values(), ids=NOISE)
def test_noise_of_every_kind_is_corrected_to_zero(law):
    first, second = law(
        torch.randn(2, 40, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    )
    assert edge_stability(first, second).mean() > 0.28
    assert abs(edge_stability_corrected(first, second, torch.Generator().manual_seed(1), 40)) < 0.02
    blocks, is_target = (
        (first.reshape(40, 20, 100), second.reshape(40, 20, 100)),
        torch.arange(20) < 4,
    )
    assert (
        abs(feature_stability_corrected(*blocks, is_target, torch.Generator().manual_seed(2), 40))
        < 0.02
    )


def test_a_signal_survives_the_correction():
    """Logits of 3 on one entry in ten, plus noise: 0.97 as the paper counts, 0.84 above chance."""
    logit = 3.0 * (torch.arange(2000) % 10 == 0) + 0.1 * torch.randn(
        2, 30, 2000, generator=torch.Generator().manual_seed(0)
    )
    first, second = logit.double().sigmoid()
    assert abs(edge_stability(first, second).mean() - 0.971) < 0.003
    assert (
        abs(edge_stability_corrected(first, second, torch.Generator().manual_seed(1)) - 0.84) < 0.02
    )


def test_scores_on_other_entries_each_time_are_below_chance():
    drawn = (torch.rand(2, 30, 1000, generator=torch.Generator().manual_seed(0)) < 0.1).double()
    assert edge_stability_corrected(*drawn, torch.Generator().manual_seed(1)) < -0.1


def test_where_no_permutation_changes_anything_there_is_no_value():
    generator = torch.Generator().manual_seed(0)
    cases = {
        "one edge": ([[0.3], [0.5]], [[0.7], [-0.5]]),
        "one entry of many": ([[0.0, 0.3]], [[0.0, 0.7]]),
        "zeros": ([[0.0, 0.0]], [[0.0, 0.0]]),
        "equal scores": ([[0.1] * 7], [[0.3] * 7]),
    }
    for dtype in (torch.float32, torch.float64):
        for first, second in cases.values():
            rows = torch.tensor(first, dtype=dtype), torch.tensor(second, dtype=dtype)
            assert edge_stability_corrected(*rows, generator).isnan()
            blocks = rows[0][:, None], rows[1][:, None]
            assert feature_stability_corrected(*blocks, torch.tensor([True]), generator).isnan()
    with pytest.raises(BadSetting, match="one permutation or more"):
        edge_stability_corrected(torch.ones(1, 2), torch.ones(1, 2), generator, 0)
