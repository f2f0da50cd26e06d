"""The test by betting, against its definition in plain Python; and how often both stopping rules
err.
"""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphgauge.core.errors import BadSetting
from graphgauge.metrics import betting_test, log_wealth, stop_early


def literal_wealth(values, tau, alpha):
    """Bet by bet: stakes from earlier trials only."""
    above = below = 1.0
    total, squares = 0.5, 0.25
    for i, x in enumerate(values, 1):
        variance = squares / i
        stake = math.sqrt(2 * math.log(2 / alpha) / (variance * i * math.log(1 + i)))
        above *= 1 + min(stake, 0.75 / tau) * (x - tau)
        below *= 1 - min(stake, 0.75 / (1 - tau)) * (x - tau)
        yield above, below
        total += x
        squares += (x - total / (i + 1)) ** 2


def literal_betting(values, tau, alpha, most):
    """The first trial at which one of the two has won enough."""
    for i, wealth in enumerate(literal_wealth(values[:most], tau, alpha), 1):
        if max(wealth) / 2 >= 1 / alpha:
            return i, "decided"
    return most, "most"


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]), min_size=40, max_size=40),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([0.5, 0.3, 0.8]),
    st.sampled_from([0.05, 0.2, 0.6]),
    st.integers(1, 40),
)
def test_betting_equals_its_definition(series, tau, alpha, most):
    values = torch.tensor(series, dtype=torch.float64)
    wealth = torch.stack(log_wealth(values, tau, alpha), 2).exp()
    slow = torch.tensor(
        [list(literal_wealth(row, tau, alpha)) for row in series], dtype=torch.float64
    )
    assert torch.allclose(wealth, slow, rtol=1e-9, atol=1e-12)
    found = betting_test(values, tau, alpha, most)
    wanted = [literal_betting(row, tau, alpha, most) for row in series]
    assert list(zip(found.trials.tolist(), found.reason, strict=True)) == wanted


LAWS = {
    "uniform": lambda u: u,
    "Bernoulli": lambda u: (u < 0.5).double(),
    "arcsine": lambda u: (math.pi * u / 2).sin().square(),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_of_series_without_an_effect_betting_decides_at_most_5_and_the_paper_37_in_100(law):
    """Each "decided" is a wrong verdict: the true mean is 1/2. Measured over 20,000 series: 0.028
    to 0.037, and 0.37.
    """
    series = law(
        torch.rand(4000, 100, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    )
    wrong = [
        sum(reason == "decided" for reason in rule(series).reason) / 4000
        for rule in (betting_test, stop_early)
    ]
    assert 0.015 < wrong[0] <= 0.05
    assert abs(wrong[1] - 0.37) < 0.03


def test_clear_cases_need_few_trials():
    """Beta laws with a + b = 2: 64, 15 and 9 trials at 0.60, 0.75 and 0.90, where the paper's rule
    needs 30 at least.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for mean, wanted, share in ((0.6, 64, 0.68), (0.75, 15, 1.0), (0.9, 9, 1.0)):
            law = torch.distributions.Beta(
                *torch.tensor([2 * mean, 2 - 2 * mean], dtype=torch.float64)
            )
            found = betting_test(law.sample((2000, 100)))
            assert abs(found.trials.double().mean() - wanted) < 2
            assert abs(sum(reason == "decided" for reason in found.reason) / 2000 - share) < 0.03


def test_the_larger_wealth_tells_the_side():
    series = torch.tensor([[1.0], [0.0]]).repeat(1, 20)
    above, below = log_wealth(series)
    assert (above[0] > below[0]).all()
    assert (above[1] < below[1]).all()
    assert betting_test(series, most=20).reason == ["decided", "decided"]


def test_impossible_bets_are_refused():
    with pytest.raises(BadSetting, match="trials must go from 1"):
        betting_test(torch.ones(1, 10))
    with pytest.raises(BadSetting, match="tau and alpha between 0 and 1"):
        betting_test(torch.ones(1, 10), tau=1.0, most=10)
    with pytest.raises(BadSetting, match=r"trials in \[0, 1\]"):
        betting_test(torch.full((1, 10), 1.5), most=10)
