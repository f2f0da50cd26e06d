"""Kernels are used where they work, and nowhere else."""

import pytest
import torch

from graphgauge.core import can_run_kernels, gpu_kernels


class BrokenKernel:
    """As if Triton found no compiler."""

    def __getitem__(self, grid):
        def launch(*arguments):
            raise RuntimeError("Failed to find C compiler")

        return launch


class WrongKernel:
    """As if a kernel computed nothing."""

    def __getitem__(self, grid):
        return lambda *arguments: None


class RightKernel:
    def __getitem__(self, grid):
        return lambda values, size: values.add_(1)


@pytest.mark.parametrize(
    ("kernel", "works"), [(BrokenKernel(), False), (WrongKernel(), False), (RightKernel(), True)]
)
def test_a_kernel_is_tried_before_kernels_are_used(kernel, works, monkeypatch):
    monkeypatch.setattr(gpu_kernels, "_HAS_TRITON", True)
    monkeypatch.setattr(gpu_kernels, "_add_one_kernel", kernel, raising=False)
    assert gpu_kernels._has_working_kernels.__wrapped__("cpu") == works


def test_without_triton_there_are_no_kernels(monkeypatch):
    monkeypatch.setattr(gpu_kernels, "_HAS_TRITON", False)
    assert not gpu_kernels._has_working_kernels.__wrapped__("cpu")


@pytest.mark.numeric
def test_only_floats_on_a_gpu_have_kernels(device):
    if device == "cpu":
        assert not can_run_kernels(torch.zeros(2))
    assert not can_run_kernels(torch.zeros(2, dtype=torch.int64, device=device))
    assert not can_run_kernels(torch.zeros(2, dtype=torch.bfloat16, device=device))
