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


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def num_threads(request):
    """Run a test with one and with two threads inside torch."""
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(1)
