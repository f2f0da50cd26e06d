"""Steps of an optimisation that a GPU records once and then replays.

One step starts a hundred or more kernels, and for a small union starting them takes longer than
running them. The steps are the same but for the numbers in memory, so the fourth is recorded as a
CUDA graph, and the others are one call each. A step can be recorded if nothing in it waits for the
GPU (as reading a number does, or ``x[mask]``); the third step is watched for that. Elsewhere, and
on a CPU, steps are simply taken. The kernels are the same either way.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from graphgauge.models.engine import is_out_of_memory

WARM_UP = 2  #: steps taken before one is watched
Step = Callable[[], None]


class Replay:
    """Calls ``step`` once per call, or does on the GPU what that would do."""

    def __init__(self, step: Step, device: torch.device) -> None:
        self.step, self.can_be_recorded = step, device.type == "cuda"
        self.taken = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """One step."""
        if self.graph is not None:
            self.graph.replay()
        elif not self.can_be_recorded or self.taken < WARM_UP:
            self.step()
        elif self.taken == WARM_UP:
            self.can_be_recorded = never_waits(self.step)
        else:
            self.graph = recorded(self.step)
            self.can_be_recorded = self.graph is not None
            self.graph.replay() if self.graph is not None else self.step()
        self.taken += 1


def never_waits(step: Step) -> bool:
    """Take the step and tell whether it waited for the GPU; a step that does is begun twice and
    ends once.
    """
    try:
        with waiting_is_an_error():
            step()
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        step()
        return False
    return True


@contextmanager
def waiting_is_an_error() -> Iterator[None]:
    """Operations that wait for the GPU raise."""
    mode = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype")
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(mode)


def recorded(step: Step) -> torch.cuda.CUDAGraph | None:
    """The kernels of the step, without running them; None where they cannot be recorded."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                step()
            finally:
                graph.capture_end()
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise
        return None
    torch.cuda.current_stream().wait_stream(stream)
    return graph
