import resource
import subprocess
import sys

import pytest
import torch

from graphgauge.core.errors import BadSetting
from graphgauge.core.memory import _address_space_left, _free_bytes, budget_bytes, parse_bytes

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GiB", 2 * 2**30),
        ("500MB", 500_000_000),
        ("1.5 kib", 1536),
        (" 7 B ", 7),
        (12, 12),
        ("1TB", 10**12),
    ],
)
def test_budgets_are_read(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "GiB", "-1GiB", "2 gigs", "0MB", 0, -5, 1.5, True, None, "1e9B", "2GiB/s"]
)
def test_other_budgets_are_refused(text):
    with pytest.raises(BadSetting, match="memory_budget must be"):
        parse_bytes(text)


def test_without_a_budget_a_quarter_of_what_is_free_is_used():
    free = _free_bytes(CPU)
    assert 0.15 * free < budget_bytes(None, CPU) < 0.35 * free
    assert budget_bytes("1MiB", CPU) == 2**20


def test_an_address_space_limit_bounds_what_is_free():
    code = (
        "import resource, torch; "
        "from graphgauge.core.memory import _address_space_left, _free_bytes\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, resource.RLIM_INFINITY))\n"
        "print(0 < _address_space_left() < 6 * 2**30, "
        "_free_bytes(torch.device('cpu')) <= _address_space_left() + 2**20)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "True True\n"
    )


def test_there_is_no_limit_where_none_is_set():
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        assert _address_space_left() is None
    else:
        assert _address_space_left() > 0
