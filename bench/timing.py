"""Timing shared by the benchmarks."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch


def seconds(call: Callable[[], Any], repeat: int) -> float:
    """Median wall-clock time of a call, after one to warm up."""
    call()
    return statistics.median(once(call) for _ in range(repeat))


def once(call: Callable[[], Any]) -> float:
    """Wall-clock time of one call, the device synchronised."""
    start = time.perf_counter()
    call()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter() - start
