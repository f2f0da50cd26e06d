"""Fidelity and its relatives, against their equations in plain Python; and what peers get wrong."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.metric_bundles import one_target, tensor

from graphgauge.core.errors import BadSetting, UndefinedScore
from graphgauge.metrics import (
    Characterization,
    FidelityMinus,
    FidelityPlus,
    Unfaithfulness,
    characterization,
    deletion_auc,
    sparsity,
    unfaithfulness,
)

HEIGHTS = st.lists(st.floats(0, 1), min_size=6, max_size=6)


@given(HEIGHTS, st.floats(0, 1), st.integers(1, 6), st.integers(1, 8))
def test_fidelity_plus_and_deletion_auc_equal_their_definitions(curve, start, length, top):
    inside = curve[:length]
    plus = FidelityPlus(top)(one_target((start, inside, [False] * length, [inside]))).item()
    wanted = start - inside[top - 1] if top < length else math.nan  # all are selected
    assert plus == pytest.approx(wanted, abs=1e-12, nan_ok=True)
    rows = tensor([inside + [math.nan] * (6 - length)])
    assert deletion_auc(rows, torch.tensor([length])).item() == pytest.approx(
        sum(curve[:length]) / length, abs=1e-12
    )


@given(st.floats(0.01, 1), st.floats(0, 0.99), st.floats(0.1, 2), st.floats(0.1, 2))
def test_characterization_is_the_weighted_harmonic_mean(plus, minus, first, second):
    wanted = (first + second) / (first / plus + second / (1 - minus))
    assert characterization(tensor([plus]), tensor([minus]), first, second).item() == pytest.approx(
        wanted, abs=1e-12
    )


def test_characterization_has_the_unit_values_of_its_peer():
    found = characterization(tensor([1.0, 0.6, 0.5, 1.0]), tensor([0.0, 0.2, 0.5, 1.0]), 0.2, 0.8)
    assert found.tolist() == pytest.approx([1.0, 0.75, 0.5, 0.0], abs=1e-12)


def test_characterization_equals_its_peer_for_random_values():
    """PyG wants weights that sum to 1."""
    peer = pytest.importorskip("torch_geometric.explain.metric").characterization_score
    plus, minus = torch.rand(2, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert (
        characterization(plus, minus, 0.3, 0.7) - peer(plus, minus, 0.3, 0.7)
    ).abs().max() <= 1e-12


def test_a_fidelity_below_zero_counts_as_zero():
    assert characterization(tensor([-0.5, 0.5]), tensor([0.0, -0.5])).tolist() == pytest.approx(
        [0.0, 2 / 3], abs=1e-12
    )


def literal_unfaithfulness(first, kept):
    """KL(first || kept), class by class."""
    divergence = 0.0
    for p, q in zip(first, kept, strict=True):
        if p > 0:
            divergence += p * math.log(p / q) if q > 0 else math.inf
    return 1 - math.exp(-divergence)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=5))
def test_unfaithfulness_equals_its_definition(weights):
    first, kept = zip(*weights, strict=True)
    first, kept = (
        [w / sum(side) for w in side] if sum(side) else [1.0] + [0.0] * (len(side) - 1)
        for side in (first, kept)
    )
    assert unfaithfulness(tensor([first]), tensor([kept])).item() == pytest.approx(
        literal_unfaithfulness(first, kept), abs=1e-12
    )


def test_unfaithfulness_takes_the_direction_its_definition_gives():
    """PyG documents KL(first || kept) and computes KL(kept || first); the two differ."""
    first, kept = tensor([[0.9, 0.1]]), tensor([[0.5, 0.5]])
    documented = 0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.5)
    other_way = 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1)
    assert unfaithfulness(first, kept).item() == pytest.approx(1 - math.exp(-documented), abs=1e-12)
    assert abs(documented - other_way) > 0.1


def test_one_column_is_refused_and_two_tell_the_difference():
    """The softmax over one column is 1, so that PyG's value for one-logit models is always 0."""
    with pytest.raises(UndefinedScore, match=r"give both classes, \(Q, 2\)"):
        unfaithfulness(tensor([[1.0]]), tensor([[1.0]]))
    assert unfaithfulness(tensor([[0.9, 0.1]]), tensor([[0.1, 0.9]])).item() > 0.5


def test_fidelity_depends_on_the_order_only_not_on_sign_or_scale_of_scores():
    """A linear model p = 0.5 + Σ w_i, edits set w_i to 0.

    The top two lose 0.35. One minus the scores as a mask, as PyG applies it, loses Σ s_i w_i: 0.075
    for s = w, 0.00075 for s = w / 100, and -3.9 for s = w - 10, all of one order.
    """
    weight = tensor([0.2, 0.15, -0.05, 0.1])
    for score in (weight, weight / 100, weight - 10, weight * 7 + 3):
        order = score.argsort(descending=True)
        start, kept = 0.5 + weight.sum(), 0.5 + weight[order[:2]].sum()
        curve = (start - weight[order].cumsum(0)).tolist()
        curves = one_target((start, curve, [False] * 4, [curve]), kept=[float(kept)], top=2)
        assert (FidelityPlus(top=2)(curves).item(), FidelityMinus()(curves).item()) == (
            pytest.approx(0.35, abs=1e-12),
            pytest.approx(0.05, abs=1e-12),
        )


@given(st.lists(st.sampled_from([0.0, -1.0, 1.0, 0.009, -0.02, 0.5]), min_size=1, max_size=9))
def test_sparsity_equals_its_definition(scores):
    largest = max(abs(score) for score in scores)
    large = [score for score in scores if abs(score) > 0.01 * largest]
    assert sparsity(tensor(scores)).item() == pytest.approx(1 - len(large) / len(scores), abs=1e-12)


CURVES = one_target((0.9, [0.5, 0.4], [False, True], [[0.8, 0.4]]))


@pytest.mark.parametrize(
    ("metric", "named"),
    [
        (FidelityMinus(), "'kept'"),
        (Characterization(), "'kept'"),
        (Unfaithfulness(), "'start_prob'"),
    ],
)
def test_what_was_not_measured_is_named(metric, named):
    with pytest.raises(UndefinedScore, match=f"{metric.name} needs {named} of the curves"):
        metric(CURVES)


def test_values_that_do_not_exist_are_refused():
    with pytest.raises(BadSetting, match="top must be 1 or more"):
        FidelityPlus(top=0)(CURVES)
    with pytest.raises(BadSetting, match="the curves end at the cap of 100"):
        FidelityPlus(top=101)(CURVES)
    with pytest.raises(BadSetting, match="weights of a characterization"):
        characterization(tensor([0.5]), tensor([0.5]), 0.0, 1.0)
    with pytest.raises(UndefinedScore, match="leave regression out"):
        characterization(tensor([3.5]), tensor([0.5]))
    with pytest.raises(UndefinedScore, match="a sum other than 1"):
        unfaithfulness(tensor([[0.5, 0.5]]), tensor([[0.5, 0.4]]))
    with pytest.raises(UndefinedScore, match="there are none"):
        sparsity(torch.zeros(0))
