"""The parts of the door, one by one: names of the host, the rate, what explainers are expected to
cost.
"""

import pytest

from graphgauge.serve.latency_estimate import LatencyEstimates
from graphgauge.serve.requests import RequestRefused
from graphgauge.serve.security import TokenBucket, _check_host
from graphgauge.serve.settings import Settings


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8321", "localhost:1", "LocalHost", "[::1]", "[::1]:8321"]
)
def test_own_names_are_welcome_on_any_port(host):
    _check_host([host.encode()], Settings().host_names)


OTHERS = [
    "",
    "127.0.0.1:",
    "127.0.0.1:x",
    "::1",
    "[::1",
    "127.0.0.2",
    "localhost.evil.example",
    "evil@localhost",
    "localhost:80:80",
    "127.0.0.1:٣",
    "\xff",
]


@pytest.mark.parametrize("host", OTHERS)
def test_other_names_are_not(host):
    with pytest.raises(RequestRefused, match="does not answer under that Host") as caught:
        _check_host([host.encode()], Settings().host_names)
    assert caught.value.status == 421


@pytest.mark.parametrize("given", [[], [b"localhost", b"localhost"]])
def test_a_host_is_named_once(given):
    with pytest.raises(RequestRefused):
        _check_host(given, Settings().host_names)


def test_a_bucket_gives_its_burst_at_once_and_then_its_rate():
    now = [0.0]
    bucket = TokenBucket(rate=2, burst=3, clock=lambda: now[0])

    def taken(seconds):
        now[0] += seconds
        count = 0
        with pytest.raises(RequestRefused) as caught:
            while True:
                bucket.take()
                count += 1
        assert (caught.value.status, caught.value.retry_after) == (429, 1)
        return count

    assert [taken(0), taken(0.4), taken(0.1), taken(1), taken(1000)] == [3, 0, 1, 2, 3]


def test_expected_costs_follow_their_definition():
    costs = LatencyEstimates()
    costs.record_batch("a", 1.0)
    costs.record_batch("a", 2.0)
    assert costs.expected("a") == pytest.approx(0.8 * 1.0 + 0.2 * 2.0)
    costs.record_timeout("a", 4.0)
    assert costs.expected("a") == 6.0
    costs.record_timeout("a", 1.0)
    assert costs.expected("a") == 6.0
    costs.record_skip("a")
    assert costs.expected("a") == pytest.approx(6.0 * 0.98)
