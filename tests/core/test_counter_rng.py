"""Counted random numbers: the definition in plain whole numbers, and that they look random."""

import pytest
import torch

from graphgauge.core.counter_rng import _as_signed_int64, normal_at, random_streams, uniform_at

GOLDEN = 0x9E3779B97F4A7C15


def literal_mix(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def literal_uniform(seed, place, number):
    stream = literal_mix((seed + place * GOLDEN) % 2**64)
    return (literal_mix((stream + (number + 1) * GOLDEN) % 2**64) >> 11) / 2**53


@pytest.mark.numeric
def test_numbers_are_their_definition(device):
    seeds, places = torch.tensor([0, 7, 2**62 + 5, 2**63 - 1]), torch.tensor([0, 1, 10**6, 3])
    own = random_streams(seeds.to(device), places.to(device))
    for number in (0, 1, 199, 10**9):
        wanted = [
            literal_uniform(*given, number)
            for given in zip(seeds.tolist(), places.tolist(), strict=True)
        ]
        assert uniform_at(own, number).tolist() == wanted
        assert uniform_at(own, torch.tensor(number, device=device)).tolist() == wanted


def test_splitmix64_from_seed_0_gives_its_published_numbers():
    """The first three outputs of the generator: the mixer of G, 2 G and 3 G."""
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [literal_mix((k + 1) * GOLDEN % 2**64) for k in range(3)] == published
    assert (
        random_streams(torch.zeros(3, dtype=torch.int64), torch.arange(1, 4))
        == torch.tensor([_as_signed_int64(v) for v in published])
    ).all()


def test_the_streams_stay_as_they_are():
    own = random_streams(torch.zeros(5, dtype=torch.int64), torch.arange(5))
    before = own.clone()
    uniform_at(own, 3)
    assert torch.equal(own, before)


@pytest.mark.parametrize("along", ["places", "numbers", "seeds"])
def test_numbers_fill_the_unit_interval_evenly_and_do_not_follow_each_other(along):
    """A chi-square of 100 bins and the correlation of neighbours are as for uniform numbers.

    Each is within four standard errors.
    """
    count, zero = 20000, torch.zeros(20000, dtype=torch.int64)
    number = torch.arange(count)
    if along == "places":
        u = uniform_at(random_streams(zero, number), 5)
    elif along == "seeds":
        u = uniform_at(random_streams(number, zero), 5)
    else:
        own = random_streams(zero[:1], zero[:1])
        u = torch.cat([uniform_at(own, k) for k in range(count)])
    seen = torch.bincount((u * 100).long(), minlength=100).double()
    chi = float(((seen - count / 100) ** 2 / (count / 100)).sum())
    assert abs(chi - 99) < 4 * (2 * 99) ** 0.5
    centred = u - 0.5
    assert abs(float((centred[1:] * centred[:-1]).mean() * 12)) < 4 / count**0.5


def test_normal_numbers_are_those_whose_share_below_is_the_uniform_number():
    own = random_streams(torch.arange(2000), torch.arange(2000))
    z = normal_at(own, 7)
    below = torch.special.ndtr(z)
    assert (below - uniform_at(own, 7)).abs().max() < 1e-14
    assert torch.isfinite(z).all()


def test_the_least_uniform_number_is_no_infinite_normal_one():
    assert torch.special.ndtri(torch.zeros(1, dtype=torch.float64) + 2.0**-54).isfinite()
