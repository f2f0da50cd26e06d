"""Early stopping: when a network stops learning, and which of its weights are kept.

After each epoch the loss on one part of the labels is computed, without dropout. The weights with
the lowest loss so far are kept, and a network stops once the loss has not improved for ``patience``
epochs. ``watch`` names the part: "val", or "train" for a network that should fit its training part,
whatever that does to other data (docs/training.md has numbers for both).
"""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from graphgauge.core import BadSetting, lookup

WATCHED_PARTS = ("train", "val")  #: parts of the labels that training looks at


@dataclass(frozen=True)
class StoppingRule:
    """The rule: how long to train at most, the patience, and the part whose loss is watched.

    >>> StoppingRule(watch="test")
    Traceback (most recent call last):
    ...
    graphgauge.core.errors.UnknownName: No part to watch is called 'test'. Known: train, val.
    """

    epochs: int = 200
    patience: int = 10
    watch: str = "val"

    def __post_init__(self) -> None:
        lookup(dict.fromkeys(WATCHED_PARTS), self.watch, "part to watch")
        if self.epochs < 1 or self.patience < 1:
            raise BadSetting(
                f"epochs and patience must be at least 1, but are {self.epochs} and "
                f"{self.patience}."
            )


@dataclass(frozen=True)
class _BestWeights:
    """For each of K networks: the lowest loss so far, the weights and the epoch that gave it, and
    how long ago that was.
    """

    loss: Tensor  #: (K,)
    theta: Tensor  #: (K, T)
    epoch: Tensor  #: (K,)
    last_epoch: Tensor  #: (K,) the last one in which it learnt
    waited: Tensor  #: (K,) epochs since

    def after(self, epoch: int, loss: Tensor, theta: Tensor, patience: int) -> "_BestWeights":
        """The state after one more epoch. Networks that have stopped do not change.  (K,),
        (K, T)
        """
        learnt = self.waited < patience
        better = learnt & (loss < self.loss)
        return _BestWeights(
            loss=torch.where(better, loss, self.loss),
            theta=torch.where(better[:, None], theta, self.theta),
            epoch=torch.where(better, epoch, self.epoch),
            last_epoch=torch.where(learnt, epoch, self.last_epoch),
            waited=torch.where(better, 0, self.waited + learnt),
        )

    def rows(self, index: Tensor) -> "_BestWeights":
        """The state of some of the networks."""
        return _BestWeights(
            **{field.name: getattr(self, field.name)[index] for field in fields(self)}
        )


def initial_best(theta: Tensor) -> _BestWeights:
    """The state before the first epoch.  (K, T)"""
    zero = torch.zeros(len(theta), dtype=torch.int64, device=theta.device)
    return _BestWeights(theta.new_full((len(theta),), torch.inf), theta, zero, zero, zero)
