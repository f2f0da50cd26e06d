"""Recorded steps are steps. On a CPU nothing is recorded; what a GPU learns is compared with PyG in
the explainers' own tests.
"""

import pytest
import torch

from graphgauge.explainers.cuda_graphs import ReplayedStep


@pytest.mark.numeric
@pytest.mark.parametrize("waits", [False, True])
def test_every_call_is_one_step(device, waits):
    total = torch.zeros(3, device=device)

    def step():
        if waits:
            float(total.sum())
        total.add_(1)

    again = ReplayedStep(step, total.device)
    for count in range(1, 9):
        again()
        assert total.tolist() == [count] * 3
    assert (again.graph is not None) == (total.is_cuda and not waits)


@pytest.mark.numeric
def test_an_error_of_the_step_is_told(device):
    def step():
        raise RuntimeError("the step's own")

    again = ReplayedStep(step, torch.device(device))
    again.taken = 2  # the step that is watched
    with pytest.raises(RuntimeError, match="the step's own"):
        again()
    assert not torch.cuda.is_initialized() or torch.cuda.get_sync_debug_mode() == 0
