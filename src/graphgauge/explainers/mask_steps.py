"""Steps of the optimisation of masks: gates into the batch, gradients into the logits.

On a GPU with Triton the elementwise work of a step is done by two kernels (`triton_masks`), else by
the operations of torch. Both are Adam on the gradients of `LearnedMask`.
"""

import torch
from torch import Tensor

from graphgauge.core import can_run_kernels
from graphgauge.explainers.mask_optimisation import LearnedMask, MaskedBatch
from graphgauge.explainers.triton_masks import (
    AdamState,
    MaskPlaces,
    update_logits,
    write_gates,
)


class MaskSteps:
    """Adam on the logits of a batch's masks: that of the features and, if there is one, of edges.

    Args:
        copies: The batch.
        masks: The mask of its features, then that of its edges.
        rate: The learning rate.
    """

    def __init__(self, copies: MaskedBatch, masks: list[LearnedMask], rate: float) -> None:
        self.copies, self.masks, self.rate = copies, masks, rate
        logits = [mask.logit for mask in masks]
        self.uses_kernels = can_run_kernels(copies.value)
        if self.uses_kernels:
            self.places = [MaskPlaces.from_indices(*indices) for indices in copies.mask_indices()]
            self.states = [AdamState.before_first_step(logit) for logit in logits]
        else:
            self.adam = torch.optim.Adam(
                logits, lr=rate, fused=True, capturable=copies.value.is_cuda
            )

    @torch.no_grad()
    def write_gates(self) -> None:
        """Multiply features and messages by the gates."""
        if not self.uses_kernels:
            self.copies.set_gates(*(mask.gates() for mask in self.masks))
            return
        for mask, places in zip(self.masks, self.places, strict=True):
            write_gates(places, mask.logit)

    @torch.no_grad()
    def update(self, for_leaves: list[Tensor]) -> None:
        """Make one step against the gradients for the leaves of the batch.

        Args:
            for_leaves: The gradients of the loss, as `MaskedBatch.leaf_gradients` gives them.
        """
        if not self.uses_kernels:
            for_gates = self.copies.gate_gradients(for_leaves)
            for mask, gradient in zip(self.masks, for_gates, strict=True):
                mask.logit.grad = mask.gradient(gradient)
            self.adam.step()
            return
        is_first = self.masks[0].is_alive is None
        alive = self._find_alive(for_leaves) if is_first else []
        for mask, places, state, for_leaf in zip(
            self.masks, self.places, self.states, for_leaves, strict=True
        ):
            penalties = (mask.for_size, mask.for_entropy)
            update_logits(places, mask.logit, for_leaf, penalties, state, self.rate)
        if is_first:
            for mask, is_alive in zip(self.masks, alive, strict=True):
                mask.start_penalties(is_alive)

    def _find_alive(self, for_leaves: list[Tensor]) -> list[Tensor]:
        """Which logits of each mask have a gradient.  (size,) bool each"""
        for_gates = self.copies.gate_gradients(for_leaves)
        slopes = [mask.gates() * (1 - mask.gate) for mask in self.masks]
        return [grad * slope != 0 for grad, slope in zip(for_gates, slopes, strict=True)]
