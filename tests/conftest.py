"""Settings of the whole suite."""

import os

import torch
from hypothesis import settings

settings.register_profile(
    "graphgauge", deadline=None, max_examples=int(os.environ.get("GRAPHGAUGE_EXAMPLES", "40")), derandomize=True
)
settings.load_profile("graphgauge")
torch.set_num_threads(2)
