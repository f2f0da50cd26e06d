"""GPU kernels for one step of learned masks (Triton, optional).

The plain way (`mask_steps`) takes some thirty passes over memory for a mask: its gates, their
product with the values, two changes of layout, the gradient with its penalties, and Adam. The
kernels take two:

    write_gates     leaf = value σ(a)
    update_logits   g = σ'(a) (value dL/dleaf + p - q a)
                    m <- m + (1 - β₁) (g - m)        v <- β₂ v + (1 - β₂) g²
                    a <- a - r / (1 - β₁ᵗ)  m / (sqrt(v / (1 - β₂ᵗ)) + ε)

with logits a, the weights p and q of the penalties, and Adam's means m and v at step t.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# arguments of a kernel are pointers and numbers of Triton, which has no types for them

from dataclasses import dataclass

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl

    _HAS_TRITON = True
except ImportError:
    _HAS_TRITON = False

_BLOCK = 1024  #: items of one program
_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8  #: as in torch.optim.Adam


@dataclass(frozen=True)
class MaskPlaces:
    """Where the M items of a mask are.

    Args:
        leaf: What the network is differentiated for, flattened; gates are written into it.
        at: Position of each item in it.  (M,)
        slot: Position of each item among the logits.  (M,)
        value: What the gate of each item is multiplied with; None: 1.  (M,)
    """

    leaf: Tensor
    at: Tensor
    slot: Tensor
    value: Tensor | None

    @staticmethod
    def from_indices(leaf: Tensor, at: Tensor, slot: Tensor, value: Tensor | None) -> "MaskPlaces":
        """With short indices where that is possible."""
        narrow = torch.int32 if max(leaf.numel(), len(slot)) < 2**30 else torch.int64
        return MaskPlaces(leaf.detach().view(-1), at.to(narrow), slot.to(narrow), value)


@dataclass(frozen=True)
class AdamState:
    """What Adam keeps of logits: its means (size,), twice, and the number of steps ()."""

    mean: Tensor
    square: Tensor
    step: Tensor

    @staticmethod
    def before_first_step(logit: Tensor) -> "AdamState":
        """All means are 0."""
        step = torch.zeros((), dtype=torch.float64, device=logit.device)
        return AdamState(torch.zeros_like(logit), torch.zeros_like(logit), step)


def write_gates(places: MaskPlaces, logit: Tensor) -> None:
    """Write value σ(a) of every item into the leaf.

    Args:
        places: Where the items are.
        logit: The logits a.  (size,)
    """
    count = len(places.at)
    if count:
        value = places.leaf if places.value is None else places.value
        _write_gates_kernel[(triton.cdiv(count, _BLOCK),)](
            places.leaf, places.at, places.slot, value, logit, count,
            places.value is not None, _BLOCK,
        )  # fmt: skip


def update_logits(
    places: MaskPlaces,
    logit: Tensor,
    for_leaf: Tensor,
    penalties: tuple[Tensor, Tensor],
    adam: AdamState,
    rate: float,
) -> None:
    """Make one step of Adam, in place.

    Args:
        places: Where the items are.
        logit: The logits a, which are changed.  (size,)
        for_leaf: The gradient of the loss for the leaf.
        penalties: The weights p and q.  (size,) twice
        adam: What Adam keeps, which is changed.
        rate: The learning rate r.
    """
    adam.step.add_(1)
    count = len(places.at)
    if count:
        value = places.leaf if places.value is None else places.value
        _update_logits_kernel[(triton.cdiv(count, _BLOCK),)](
            logit, adam.mean, adam.square, adam.step, for_leaf.contiguous(), places.at, places.slot,
            value, *penalties, count, places.value is not None, float(rate), _BETA_1, _BETA_2,
            _EPSILON, _BLOCK,
        )  # fmt: skip


if _HAS_TRITON:

    @triton.jit
    def _write_gates_kernel(
        leaf, at, slot, value, logit, count, HAS_VALUE: tl.constexpr, BLOCK: tl.constexpr
    ):
        """Some items."""
        item = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        is_there = item < count
        place = tl.load(slot + item, mask=is_there, other=0).to(tl.int64)
        gate = 1 / (1 + tl.exp(-tl.load(logit + place, mask=is_there, other=0.0)))
        if HAS_VALUE:
            gate = gate * tl.load(value + item, mask=is_there, other=0.0)
        tl.store(
            leaf + tl.load(at + item, mask=is_there, other=0).to(tl.int64), gate, mask=is_there
        )

    @triton.jit
    def _update_logits_kernel(
        logit,
        mean,
        square,
        step,
        for_leaf,
        at,
        slot,
        value,
        for_size,
        for_entropy,
        count,
        HAS_VALUE: tl.constexpr,
        RATE: tl.constexpr,
        BETA_1: tl.constexpr,
        BETA_2: tl.constexpr,
        EPSILON: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """Some items."""
        item = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        is_there = item < count
        place = tl.load(slot + item, mask=is_there, other=0).to(tl.int64)
        source = tl.load(at + item, mask=is_there, other=0).to(tl.int64)
        a = tl.load(logit + place, mask=is_there, other=0.0)
        slope = tl.load(for_leaf + source, mask=is_there, other=0.0)
        if HAS_VALUE:
            slope = slope * tl.load(value + item, mask=is_there, other=0.0)
        slope += tl.load(for_size + place, mask=is_there, other=0.0)
        slope -= tl.load(for_entropy + place, mask=is_there, other=0.0) * a
        gate = 1 / (1 + tl.exp(-a))
        slope = slope * gate * (1 - gate)
        m = tl.load(mean + place, mask=is_there, other=0.0)
        v = tl.load(square + place, mask=is_there, other=0.0)
        m = m + (1 - BETA_1) * (slope - m)
        v = BETA_2 * v + (1 - BETA_2) * slope * slope
        steps = tl.load(step)
        first = (1 - tl.exp(steps * tl.log(tl.full([], BETA_1, tl.float64)))).to(a.dtype)
        second = (1 - tl.exp(steps * tl.log(tl.full([], BETA_2, tl.float64)))).to(a.dtype)
        a = a - RATE / first * m / (tl.sqrt(v / second) + EPSILON)
        tl.store(mean + place, m, mask=is_there)
        tl.store(square + place, v, mask=is_there)
        tl.store(logit + place, a, mask=is_there)
