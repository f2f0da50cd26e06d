"""Stability, against algorithms 2 and 3 in plain Python; and what chance is."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphgauge.core.errors import UndefinedScore
from graphgauge.metrics import binomial, corrected, edge_stability, feature_stability

SCORES = st.floats(-3, 3).map(lambda value: 0.0 if abs(value) < 0.5 else value)


def literal_distance(first, second):
    """Half the distance of the normalised vectors; a vector of zeros stays what it is."""
    sizes = [math.sqrt(sum(value * value for value in vector)) for vector in (first, second)]
    units = [[value / size if size else 0.0 for value in vector] for vector, size in zip((first, second), sizes, strict=True)]
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(*units, strict=True))) / 2


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(SCORES, min_size=n, max_size=n), min_size=2, max_size=2)))
def test_stability_pair_edge_is_algorithm_2(pair):
    first, second = torch.tensor(pair, dtype=torch.float64)[:, None]
    assert edge_stability(first, second).item() == pytest.approx(1 - literal_distance(*pair), abs=1e-12)


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
    assert feature_stability(first, second, is_target).item() == pytest.approx(1 - sum(apart) / len(apart), abs=1e-12)


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
    assert edge_stability(torch.tensor([first]).double(), torch.tensor([second]).double()).item() == pytest.approx(
        wanted, abs=1e-12
    )


CHANCE = {
    "normal": (lambda z: z, 0.293),
    "uniform": (lambda z: torch.special.ndtr(z), 0.647),
    "start of a learned mask": (lambda z: (0.1 * z).sigmoid(), 0.965),
}


@pytest.mark.parametrize(("law", "wanted"), CHANCE.values(), ids=CHANCE)
def test_independent_scores_are_not_at_zero(law, wanted):
    draws = law(torch.randn(2, 200, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    mean = edge_stability(*draws).mean()
    assert abs(mean - wanted) < 0.003
    order = torch.randperm(2000, generator=torch.Generator().manual_seed(1))
    chance = edge_stability(draws[0], draws[1][:, order]).mean()
    assert abs(corrected(mean, chance)) < 0.02


def test_corrected_stability_has_its_ends():
    mean, chance = torch.tensor([1.0, 0.4, 1.0]), torch.tensor([0.4, 0.4, 1.0])
    assert corrected(mean, chance)[:2].tolist() == [1.0, 0.0]
    assert corrected(mean, chance)[2].isnan()


def test_the_binomial_form_is_the_mean_of_pairs_with_the_jackknifes_error():
    values = torch.rand(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    likeness = (values + values.t()) / 2
    pairs = [likeness[i, j].item() for i in range(6) for j in range(i)]
    left_out = [sum(likeness[i, j].item() for i in range(6) for j in range(i) if k not in (i, j)) / 10 for k in range(6)]
    middle = sum(left_out) / 6
    found = binomial(likeness)
    assert found.mean.item() == pytest.approx(sum(pairs) / 15, abs=1e-12)
    assert found.error.item() == pytest.approx(math.sqrt(5 / 6 * sum((value - middle) ** 2 for value in left_out)), abs=1e-12)


def test_nothing_to_compare_is_an_error():
    with pytest.raises(UndefinedScore, match="there is no edge"):
        edge_stability(torch.zeros(1, 0), torch.zeros(1, 0))
    with pytest.raises(UndefinedScore, match="there are none"):
        feature_stability(torch.zeros(1, 0, 3), torch.zeros(1, 0, 3), torch.zeros(0, dtype=torch.bool))
    with pytest.raises(UndefinedScore, match="needs 3 explanations"):
        binomial(torch.ones(2, 2))
