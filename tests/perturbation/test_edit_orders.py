"""Orders of edits, against sorting and shuffling one target at a time."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from graphgauge.core.seeds import derive_seed, make_generator
from graphgauge.perturbation import orders_by_score, random_orders
from graphgauge.perturbation.edit_orders import _partial_permutations


@given(
    st.lists(st.lists(st.integers(-2, 2), max_size=9), min_size=1, max_size=5), st.integers(1, 6)
)
def test_scores_sort_descending_and_signed_with_ties_drawn_from_the_seed(scores, size):
    count = torch.tensor([len(own) for own in scores])
    found = orders_by_score(
        torch.tensor([s for own in scores for s in own], dtype=torch.float32),
        count,
        range(len(scores)),
        size,
    )
    for seed, own in enumerate(scores):
        ties = torch.rand(
            len(own), generator=make_generator(derive_seed(seed, "ties")), dtype=torch.float64
        ).tolist()
        wanted = sorted(range(len(own)), key=lambda c, own=own, ties=ties: (-own[c], ties[c]))[
            :size
        ]
        assert found[seed].tolist() == wanted + [-1] * (size - len(wanted))


def literal_fisher_yates(draws, count):
    """Exchange entry k with a drawn entry of k..count-1, one after another."""
    entries = list(range(count))
    for k, u in enumerate(draws[:count]):
        other = k + int(u * (count - k))
        entries[k], entries[other] = entries[other], entries[k]
    return entries[: len(draws)] + [-1] * (len(draws) - count)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(1, 7), st.integers(0, 2**30)
)
def test_random_orders_are_fisher_and_yates(counts, size, seed):
    draws = torch.rand(len(counts), size, generator=make_generator(seed), dtype=torch.float64)
    found = _partial_permutations(draws, torch.tensor(counts))
    assert found.tolist() == [
        literal_fisher_yates(own.tolist(), count) for own, count in zip(draws, counts, strict=True)
    ]


def test_random_orders_are_uniform():
    found = random_orders(torch.tensor([4]), [0], 2, 0, 12_000)[0]
    share = torch.bincount(found[:, 0] * 4 + found[:, 1], minlength=16).view(4, 4) / 12_000
    assert (share.diagonal() == 0).all()
    assert ((share + torch.eye(4) / 12 - 1 / 12).abs() <= 4.5 * (1 / 12 / 12_000) ** 0.5).all()


def test_a_trial_is_the_same_alone_among_others_and_in_any_part():
    count, seeds = torch.tensor([50, 3, 0, 7]), [4, 5, 6, 7]
    whole = random_orders(count, seeds, 6, 0, 100)
    assert torch.equal(random_orders(count, seeds, 6, 0, 30), whole[:, :30])
    assert torch.equal(random_orders(count, seeds, 6, 37, 64), whole[:, 37:64])
    assert torch.equal(random_orders(count[3:], seeds[3:], 6, 0, 100), whole[3:])
    assert whole[2].eq(-1).all()
    assert len({tuple(order) for order in whole[0].tolist()}) == 100


def test_large_tables_are_swapped_in_parts(monkeypatch):
    count, seeds = torch.tensor([50, 3, 7]), [4, 5, 6]
    whole = random_orders(count, seeds, 6, 0, 20)
    monkeypatch.setattr("graphgauge.perturbation.edit_orders._MOST_PLACES", 64)
    assert torch.equal(random_orders(count, seeds, 6, 0, 20), whole)
