"""Optimisation steps recorded as CUDA graphs.

One step launches a hundred or more kernels, and for a small batch launching takes longer than
running them. All steps launch the same kernels on the same memory, so the fourth step is recorded
as a CUDA graph, and each further step is one replay of it.

A step can be recorded if nothing in it synchronises with the GPU (as reading a value does, or
``x[mask]``); the third step tests this. If it cannot be recorded, and on a CPU, each step is
executed as usual. The kernels are the same either way.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from graphgauge.execution import is_out_of_memory

_WARM_UP = 2  #: steps before the one that is tested for synchronisation
_OptimisationStep = Callable[[], None]


class ReplayedStep:
    """Executes ``step`` at each call, on a GPU by replaying its recording if possible."""

    def __init__(self, step: _OptimisationStep, device: torch.device) -> None:
        self.step, self.can_be_recorded = step, device.type == "cuda"
        self.taken = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Execute one step."""
        if self.graph is not None:
            self.graph.replay()
        elif not self.can_be_recorded or self.taken < _WARM_UP:
            self.step()
        elif self.taken == _WARM_UP:
            self.can_be_recorded = _runs_without_sync(self.step)
        else:
            self.graph = _capture_cuda_graph(self.step)
            self.can_be_recorded = self.graph is not None
            self.graph.replay() if self.graph is not None else self.step()
        self.taken += 1


def _runs_without_sync(step: _OptimisationStep) -> bool:
    """Execute the step and tell whether it ran without synchronising with the GPU.

    A step that synchronises is started twice and completed once.
    """
    try:
        with _error_on_sync():
            step()
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        step()
        return False
    return True


@contextmanager
def _error_on_sync() -> Iterator[None]:
    """Make operations that synchronise with the GPU raise RuntimeError."""
    mode = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype")
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(mode)


def _capture_cuda_graph(step: _OptimisationStep) -> torch.cuda.CUDAGraph | None:
    """Record the kernels of the step without running them; None if that is not possible."""
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
