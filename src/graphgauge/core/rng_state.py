"""The global random states of torch, NumPy and Python: saved, restored, never silently moved."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from graphgauge.core.seeds import check_seed


@contextmanager
def preserve_rng_state() -> Iterator[None]:
    """Whatever draws from the global random states inside leaves them as they were."""
    states = save_rng_state()
    try:
        yield
    finally:
        _restore_rng_state(states)


def save_rng_state() -> tuple[Any, ...]:
    """The global random states of torch (each device), NumPy and Python."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    return torch.get_rng_state(), cuda, np.random.get_state(), random.getstate()


def _restore_rng_state(states: tuple[Any, ...]) -> None:
    """Put the global random states back."""
    cpu, cuda, numpy_state, python_state = states
    torch.set_rng_state(cpu)
    if cuda is not None:
        torch.cuda.set_rng_state_all(cuda)
    np.random.set_state(numpy_state)
    random.setstate(python_state)


@contextmanager
def temporary_global_seed(seed: int) -> Iterator[None]:
    """For code of others that draws from the global random states: seeded inside, as before
    outside.
    """
    check_seed(seed)
    with preserve_rng_state():
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
        yield
