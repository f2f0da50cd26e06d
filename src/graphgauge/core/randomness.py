"""The global random states of torch, NumPy and Python: saved, restored, never silently moved."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from graphgauge.core.seeds import check_seed


@contextmanager
def preserved_randomness() -> Iterator[None]:
    """Whatever draws from the global random states inside leaves them as they were."""
    states = random_states()
    try:
        yield
    finally:
        restore_random_states(states)


def random_states() -> tuple[Any, ...]:
    """The global random states of torch (each device), NumPy and Python."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    return torch.get_rng_state(), cuda, np.random.get_state(), random.getstate()


def restore_random_states(states: tuple[Any, ...]) -> None:
    """Put the global random states back."""
    cpu, cuda, numpy_state, python_state = states
    torch.set_rng_state(cpu)
    if cuda is not None:
        torch.cuda.set_rng_state_all(cuda)
    np.random.set_state(numpy_state)
    random.setstate(python_state)


@contextmanager
def seeded_globally(seed: int) -> Iterator[None]:
    """For code of others that draws from the global random states: seeded inside, as before
    outside.
    """
    check_seed(seed)
    with preserved_randomness():
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        yield
