"""Whether kernels that are written in Triton can be run on a GPU.

Triton compiles a kernel when it is first launched, and needs a C compiler and a driver that fit. So
a small kernel is tried once for each GPU. Where it fails, torch computes the same in more steps.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# arguments of a kernel are pointers and numbers of Triton, which has no types for them

from functools import lru_cache

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl

    _HAS_TRITON = True
except ImportError:
    _HAS_TRITON = False

_NUM_PROBED = 8


def can_run_kernels(like: Tensor) -> bool:
    """Whether kernels can be run on tensors of this type, on this device.

    Args:
        like: A tensor.

    >>> import torch
    >>> can_run_kernels(torch.zeros(2))
    False
    """
    if not like.is_cuda or like.dtype not in (torch.float32, torch.float64):
        return False
    return _has_working_kernels(str(like.device))


@lru_cache
def _has_working_kernels(device: str) -> bool:
    """Whether a small kernel compiles and gives the right result."""
    if not _HAS_TRITON:
        return False
    try:
        probe = torch.zeros(_NUM_PROBED, device=device)
        _add_one_kernel[(1,)](probe, _NUM_PROBED)
        return bool((probe == 1).all())
    except Exception:  # no compiler, an old driver, a GPU that Triton does not know
        return False


if _HAS_TRITON:

    @triton.jit
    def _add_one_kernel(values, SIZE: tl.constexpr):
        """Add 1 to each value."""
        place = values + tl.arange(0, SIZE)
        tl.store(place, tl.load(place) + 1)
