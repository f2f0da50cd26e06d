"""Random numbers that are counted, not drawn one after another: each is a hash of its stream and
its number.

    stream              s = mix(seed + place G)
    number t of it      u = (mix(s + t G) >> 11) / 2^53        all modulo 2^64

with G = 0x9E3779B97F4A7C15 and the mixer of SplitMix64 (Steele, Lea & Flood 2014): x ^= x >> 30, x
*= A, x ^= x >> 27, x *= B, x ^= x >> 31. Numbers of millions of streams are made at once where they
are needed, the same on every device, and none of them depends on which others are asked for.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

_GOLDEN_GAMMA, _FIRST_FACTOR, _SECOND_FACTOR = (
    0x9E3779B97F4A7C15,
    0xBF58476D1CE4E5B9,
    0x94D049BB133111EB,
)


def _as_signed_int64(value: int) -> int:
    """A number, modulo 2^64, as the int64 with the same bits.

    >>> _as_signed_int64(2**64 - 1)
    -1
    """
    return (value + 2**63) % 2**64 - 2**63


def random_streams(seed: Tensor, place: Tensor) -> Tensor:
    """The stream of each place under each seed.  (M,) int64, (M,) int64 -> (M,) int64"""
    return _mix_bits_(place * _as_signed_int64(_GOLDEN_GAMMA) + seed)


def uniform_at(stream: Tensor, number: int | Tensor) -> Tensor:
    """Number ``number`` (an int, or () int64 where the streams are) of each stream, in [0, 1).
    (M,) -> (M,) float64

    >>> uniform_at(random_streams(torch.tensor([0, 0, 1]), torch.tensor([1, 2, 1])), 0)
    tensor([0.6524, 0.2762, 0.3682], dtype=torch.float64)
    """
    jump = (
        (number + 1) * _as_signed_int64(_GOLDEN_GAMMA)
        if isinstance(number, Tensor)
        else _as_signed_int64((number + 1) * _GOLDEN_GAMMA)
    )
    bits = _mix_bits_(stream + jump)
    if bits.device.type == "cpu":
        return torch.from_numpy((_as_unsigned_view(bits) >> np.uint64(11)) * 2.0**-53)
    return (bits >> 11).bitwise_and_(2**53 - 1).to(torch.float64).mul_(2.0**-53)


def normal_at(stream: Tensor, number: int) -> Tensor:
    """Number ``number`` of each stream as one of N(0, 1), by the inverse of its distribution
    function.  (M,) -> (M,) float64

    >>> normal_at(random_streams(torch.tensor([0, 0, 1]), torch.tensor([1, 2, 1])), 0)
    tensor([ 0.3919, -0.5941, -0.3367], dtype=torch.float64)
    """
    return torch.special.ndtri(uniform_at(stream, number).add_(2.0**-54))


def _mix_bits_(x: Tensor) -> Tensor:
    """Mix the bits of (M,) int64 values in place.

    On a CPU NumPy does it, because torch is ten times slower there.
    """
    if x.device.type == "cpu":
        own = _as_unsigned_view(x)
        for shift, factor in ((30, _FIRST_FACTOR), (27, _SECOND_FACTOR)):
            own ^= own >> np.uint64(shift)
            own *= np.uint64(factor)
        own ^= own >> np.uint64(31)
        return x
    for shift, factor in ((30, _FIRST_FACTOR), (27, _SECOND_FACTOR)):
        x.bitwise_xor_((x >> shift).bitwise_and_(2 ** (64 - shift) - 1)).mul_(
            _as_signed_int64(factor)
        )
    return x.bitwise_xor_((x >> 31).bitwise_and_(2**33 - 1))


def _as_unsigned_view(x: Tensor) -> Any:
    """The memory of a tensor on the CPU, its bits read as numbers from 0."""
    return x.numpy().view(np.uint64)
