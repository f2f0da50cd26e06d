"""Settings of the whole suite."""

import os

import pytest
import torch
from hypothesis import settings

settings.register_profile(
    "graphgauge", deadline=None, max_examples=int(os.environ.get("GRAPHGAUGE_EXAMPLES", "40")), derandomize=True
)
settings.load_profile("graphgauge")
torch.set_num_threads(1)  # the suite runs in two processes on two cores


@pytest.fixture
def two_threads():
    """Two threads inside torch, for this test."""
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)
