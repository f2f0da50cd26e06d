import random

import numpy as np
import pytest
import torch

from graphgauge.core.rng_state import preserve_rng_state, temporary_global_seed


def draws():
    return torch.rand(2).tolist(), np.random.rand(2).tolist(), random.random()


def expected_draws():
    torch.manual_seed(3), np.random.seed(3), random.seed(3)
    return draws()


def restart():
    torch.manual_seed(3), np.random.seed(3), random.seed(3)


def test_draws_inside_do_not_move_the_global_states():
    expected = expected_draws()
    restart()
    with preserve_rng_state():
        draws()
    assert draws() == expected


def test_nor_do_they_when_something_fails():
    expected = expected_draws()
    restart()
    with pytest.raises(KeyError), temporary_global_seed(5):
        draws()
        raise KeyError
    assert draws() == expected


def test_a_global_seed_decides_the_draws_inside():
    with temporary_global_seed(5):
        first = draws()
    with temporary_global_seed(5):
        assert draws() == first
